"""The table formats with transactions: what a session needs to speak them, what they enforce, how they tidy up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from biasspark.config import redact
from biasspark.errors import BiasSparkError, ConfigError
from biasspark.expressions.sql import quote_name, quote_string
from biasspark.tables.contract import named_fault
from biasspark.tables.schemas import BIAS_RUNS, CORPUS, RUN_DATE, RUN_ID, Column, Table

_EXTENSIONS = "spark.sql.extensions"
_NO_FILE = re.compile(r"CANTOPEN|[Uu]nable to open|NoSuchFile|FileNotFound|[Nn]o such file|Permission denied")
_VACUUM_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@dataclass(frozen=True)
class Format:
    """What the formats share: the parts of a session that they need.

    Parameters
    ----------
    name : str
        The format in SQL.
    extension : str
        The class in ``spark.sql.extensions``.
    catalog : mapping
        Settings of a catalog, by what follows its name.
    artifacts : mapping
        The runtimes that were run, by the version of Spark. Iceberg has none for 4.2 yet, and neither has one for 4.3.
    """

    name: str
    extension: str
    catalog: Mapping[str, str]
    artifacts: Mapping[str, str]

    def check_session(self, spark: SparkSession, catalog: str) -> None:
        """Refuse a session that does not speak the format, with all that it lacks and the flags that give it.

        So is one whose catalog lies where no file can be opened, with the settings that say where.

        Raises
        ------
        ConfigError
            In one fault.
        """
        lacking = [] if self.extension in (spark.conf.get(_EXTENSIONS, "") or "") else [_EXTENSIONS]
        if spark.conf.get(f"spark.sql.catalog.{catalog}", None) is None:
            lacking.append(f"spark.sql.catalog.{catalog}")
        if lacking:
            raise ConfigError(self._say_lacking(spark, catalog, f"lacks {' and '.join(lacking)}"))
        try:
            with named_fault(f"catalog {catalog}", "opened"):
                spark.catalog.tableExists(f"{quote_name(catalog)}.default.{BIAS_RUNS.name}")
        except BiasSparkError as error:
            if re.search("ClassNotFound|Cannot find catalog plugin class", str(error)):
                lacking_classes = self._say_lacking(spark, catalog, "lacks the classes that its settings name")
                raise ConfigError(lacking_classes) from error
            if _NO_FILE.search(str(error)):
                raise ConfigError(_say_misplaced(spark, catalog, error)) from error
            raise

    def choose_properties(self, table: Table) -> dict[str, str]:
        """Return the properties with which a table is made, constraints among them."""
        raise NotImplementedError

    def list_constraints(self, table: Table, columns: Sequence[Column]) -> list[str]:
        """Return what follows ALTER TABLE once columns were added, to have the table refuse what the contract does."""
        raise NotImplementedError

    def tidy(self, spark: SparkSession, catalog: str, name: str, before: datetime) -> None:
        """Compact a table, and delete the files that nothing but snapshots older than a time still names."""
        raise NotImplementedError

    def _say_lacking(self, spark: SparkSession, catalog: str, what: str) -> str:
        artifact = self.artifacts.get(".".join(spark.version.split(".")[:2]), f"(the runtime of {self.name})")
        settings = {_EXTENSIONS: self.extension}
        settings |= {f"spark.sql.catalog.{catalog}{key}": value for key, value in self.catalog.items()}
        flags = " ".join(f"--conf {key}={value}" for key, value in settings.items())
        return (
            f'output.format: "{self.name}", but the session of Spark {spark.version} {what}. A table format needs its '
            f"runtime. Give spark-submit --properties-file conf/lake-{self.name}.conf, or --packages {artifact} {flags}"
        )


class Delta(Format):
    """Delta: it enforces NOT NULL and that no DOUBLE is NaN."""

    def choose_properties(self, table: Table) -> dict[str, str]:
        """See ``Format.choose_properties``."""
        found = _no_nan(table.columns)
        return {f"delta.constraints.{name}": check for name, check in found.items()}

    def list_constraints(self, table: Table, columns: Sequence[Column]) -> list[str]:
        """See ``Format.list_constraints``."""
        added = _no_nan(columns) if columns != table.columns else {}
        return [f"ADD CONSTRAINT {name} CHECK ({check})" for name, check in added.items()]

    def tidy(self, spark: SparkSession, catalog: str, name: str, before: datetime) -> None:  # noqa: ARG002 - Iceberg's
        """See ``Format.tidy``: OPTIMIZE, then VACUUM."""
        hours = max((datetime.now(UTC) - before).total_seconds() / 3600, 0)
        spark.sql(f"OPTIMIZE {name}")
        with _allowing_any_retention(spark):
            spark.sql(f"VACUUM {name} RETAIN {hours:.3f} HOURS")


class Iceberg(Format):
    """Iceberg: it enforces NOT NULL, and knows the key as identifier fields."""

    def choose_properties(self, table: Table) -> dict[str, str]:  # noqa: ARG002 - Delta's
        """See ``Format.choose_properties``.

        A run's rows are of one night and sorted: they are written as they come, without a shuffle and another sort.
        """
        return {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}

    def list_constraints(self, table: Table, columns: Sequence[Column]) -> list[str]:
        """See ``Format.list_constraints``. Identifier fields, once, where the key has no DOUBLE, which none can be."""
        if columns != table.columns or not table.unique or any(column.type == "DOUBLE" for column in table.key):
            return []
        return [f"SET IDENTIFIER FIELDS {', '.join((RUN_DATE.name, CORPUS.name, *table.key_columns, RUN_ID.name))}"]

    def tidy(self, spark: SparkSession, catalog: str, name: str, before: datetime) -> None:
        """See ``Format.tidy``: its procedures. Files that nothing names are removed where they are a day old."""
        table, time = quote_string(name), f"TIMESTAMP{quote_string(f'{before:%Y-%m-%d %H:%M:%S}')}"
        calls = [f"rewrite_data_files(table => {table})"]
        calls += [f"expire_snapshots(table => {table}, older_than => {time}, retain_last => 1)"]
        if (datetime.now(UTC) - before).days >= 1:
            calls += [f"remove_orphan_files(table => {table}, older_than => {time})"]
        for call in calls:
            spark.sql(f"CALL {quote_name(catalog)}.system.{call}")


def _say_misplaced(spark: SparkSession, catalog: str, error: BiasSparkError) -> str:
    keys = (f"spark.sql.catalog.{catalog}.{part}" for part in ("uri", "warehouse"))
    found = {key: value for key in keys if (value := spark.conf.get(key, None))}
    settings = " and ".join(f'{key} = "{redact(value)}"' for key, value in found.items())
    cause = str(error).removesuffix(".").replace(". Nothing was published. Mend the cause, then run again", "")
    return (
        f"{cause}. It is where {settings or 'its settings'} say; relative paths begin where the job is started. Give "
        "absolute paths, of folders that are there."
    )


def _no_nan(columns: Sequence[Column]) -> dict[str, str]:
    """Return by its name the check that no DOUBLE of columns that came together is NaN."""
    doubles = [column.name for column in columns if column.type == "DOUBLE"]
    return {f"no_nan_from_{doubles[0]}": " AND ".join(f"NOT isnan({name})" for name in doubles)} if doubles else {}


@contextmanager
def _allowing_any_retention(spark: SparkSession) -> Iterator[None]:
    """Let VACUUM keep less than a week, which Delta refuses unless told that the grace period is meant."""
    before = spark.conf.get(_VACUUM_CHECK, "true") or "true"
    spark.conf.set(_VACUUM_CHECK, "false")
    try:
        yield
    finally:
        spark.conf.set(_VACUUM_CHECK, before)


DELTA = Delta(
    name="delta",
    extension="io.delta.sql.DeltaSparkSessionExtension",
    catalog={"": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
    artifacts={
        "3.5": "io.delta:delta-spark_2.12:3.3.2",
        "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.3.1",
        "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
    },
)
ICEBERG = Iceberg(
    name="iceberg",
    extension="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    catalog={"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": "PATH"},
    artifacts={
        "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0",
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    },
)
FORMATS: Mapping[str, Format] = {DELTA.name: DELTA, ICEBERG.name: ICEBERG}
