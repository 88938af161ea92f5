"""The configuration as the stages receive it: frozen, complete, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from biasspark.config.attribution import Attribution
from biasspark.config.compare import Compare
from biasspark.config.further import (
    EvidenceSettings,
    Histograms,
    LabelBalance,
    PinnedAuc,
    PinnedSkew,
    Privacy,
    Templates,
    Thresholds,
)
from biasspark.config.gate import Gate
from biasspark.config.identities import Identities
from biasspark.config.redaction import REDACTED, redact
from biasspark.config.report import ReportSettings
from biasspark.config.terms import Terms

ENGINES = ("blocks", "windows", "binned")
DUPLICATES = ("estimate", "reject", "allow")
OUTPUT_FORMATS = ("parquet", "delta", "iceberg")
MOST_RANGES = 4096
FILTER = "[corpus] filter"


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What is read: a path or a catalog table, and which of its rows.

    Attributes
    ----------
    name
        The corpus in the key of every table.
    path
        Folder, file pattern or URI to read. A relative path is looked up beside the configuration file, then in the
        working folder. Give this or ``table``.
    table
        Catalog table to read. Give this or ``path``.
    format
        Format of the files: ``parquet``, ``csv`` (with a header line), ``json``, ``orc`` or any other that Spark knows.
    options
        Options of Spark's reader. Their values are never shown or stored.
    schema
        Columns and types as DDL, where the files do not have them.
    filter
        A Spark SQL predicate; the rows for which it is true are the corpus.
    run_date_column
        If set, only rows in which this column equals the run date are read.
    id
        The column that identifies a row in rejects and attributions.
    duplicates
        What to do about repeated ids: ``estimate`` how many there are and warn, ``reject`` them, or ``allow`` them.
        Without an ``id`` always ``allow``.
    """

    name: str
    path: str | None = None
    table: str | None = None
    format: str = "parquet"
    options: dict[str, str] = field(default_factory=dict, repr=False)
    schema: str | None = None
    filter: str | None = None
    run_date_column: str | None = None
    id: str | None = None
    duplicates: str = DUPLICATES[0]

    @property
    def is_untyped(self) -> bool:
        """Whether it is a CSV of which nothing says what is a number."""
        asks = {key.lower(): value.lower() for key, value in self.options.items()}.get("inferschema", "false")
        return bool(self.path) and self.format.lower() == "csv" and self.schema is None and asks != "true"


@dataclass(frozen=True, kw_only=True)
class Label:
    """Which rows are positive: a boolean column, a number at or above ``threshold``, or one of the values ``positive``.

    In a text column, a boolean or a number in ``positive`` matches every text that reads as that value: ``TRUE``,
    ``1.0``. A label outside the closed interval ``range`` is rejected.
    """

    column: str
    threshold: float | None = None
    positive: tuple[str | bool | int | float, ...] | None = None
    range: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class RankingSettings:
    """How scores are ranked: the engine, and how many ranges of scores the work is cut into (0: chosen from the rows).

    ``bins`` is for the engine ``binned`` only: at about how many points the scores of a model are cut into bins.
    """

    engine: str = ENGINES[0]
    ranges: int = 0
    bins: int | None = None


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The level of all confidence intervals, strictly between 0 and 1."""

    level: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Rejects:
    """How many rejected rows are kept, and how many a run may have; all are counted.

    Attributes
    ----------
    max_rows
        How many rejected rows are written for each reason.
    max_share
        The largest share of rejects, 0 to 1, with which a run is published: of all rows, and for each model of its
        scores on the rows that are not rejected for all models. Not set, there is no limit.
    allow_missing_models
        Whether a run is published although a model has no usable score. The gate, if there is one, then fails by every
        rule on that model.
    """

    max_rows: int = 10_000
    max_share: float | None = None
    allow_missing_models: bool = False


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """Whether a night keeps its sorted scores, to measure windows of nights without reading the corpus again."""

    keep: bool = False


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the tables go: a folder or a catalog.

    Attributes
    ----------
    path
        Folder or URI of the tables. A relative path that exists beside the configuration file is taken from there, any
        other from the working folder, where it is made. It must be neither the root of a file system, such as ``/``,
        nor a pattern; the root of a bucket is allowed. Give this or ``catalog``.
    catalog
        The ``catalog.schema`` of the tables. Give this or ``path``.
    format
        Format of the tables: ``parquet``, ``delta`` or, in a catalog only, ``iceberg``.
    views
        The ``catalog.schema`` for the views, if the catalog of the tables cannot hold views.
    """

    path: str | None = None
    catalog: str | None = None
    format: str = OUTPUT_FORMATS[0]
    views: str | None = None


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """What ``jobs/maintain.py`` keeps, and whether it compacts.

    Attributes
    ----------
    keep_days
        How long a superseded run is kept.
    grace_hours
        How long after its start a run may still be running, and how long a reader may go on using old files.
    compact
        Whether a run that lies in many small files is rewritten into few.
    """

    keep_days: int = 30
    grace_hours: int = 168
    compact: bool = True


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What is measured, on whatever rows: all that the numbers depend on besides the corpus.

    The public functions work with this much; a ``Config`` is this and where rows come from and tables go to.
    ``models`` maps a model's name to its score column, ``slices`` a slice's name to its Spark SQL predicate. The slice
    ``all`` is always there and never in ``slices``. The parts that may be None are measured only where they are there.
    """

    label: Label
    models: dict[str, str]
    identities: Identities
    slices: dict[str, str] = field(default_factory=dict)
    ranking: RankingSettings = RankingSettings()
    intervals: Intervals = Intervals()
    pinned_auc: PinnedAuc | None = None
    thresholds: Thresholds | None = None
    histograms: Histograms | None = None
    label_balance: LabelBalance | None = None
    templates: Templates | None = None
    pinned_skew: PinnedSkew | None = None
    attribution: Attribution | None = None
    compare: Compare | None = None
    evidence: EvidenceSettings | None = None
    privacy: Privacy | None = None

    @property
    def expressions(self) -> dict[str, str]:
        """Every expression of Spark SQL over the columns of the corpus, by where it stands."""
        attribution = self.attribution or Attribution()
        parts = {
            "[slices] ": self.slices,
            "[identities] predicates.": self.identities.predicates,
            "[attribution.segments] ": attribution.segments,
            "[attribution.groupings] ": attribution.groupings,
        }
        return {f"{where}{name}": text for where, texts in parts.items() for name, text in texts.items()}

    def resolved(self) -> dict[str, Any]:
        """Every table and key with the value that holds, defaults included, as plain dicts, lists and scalars.

        What is not set is left out. Reading it again (``parse_measures``) gives an equal object.
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: plain_value(part) for name, part in parts.items() if part is not None}

    @property
    def json(self) -> str:
        """``resolved`` as canonical JSON: one line of ASCII, in the order of the declarations and of the names."""
        return json.dumps(self.resolved(), separators=(",", ":"), allow_nan=False)

    @property
    def hash(self) -> str:
        """SHA-256 of ``json``, in hexadecimal: equal for configurations that mean the same."""
        return hashlib.sha256(self.json.encode("ascii")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Config(Measures):
    """A job's whole configuration: what is measured, of which corpus, and where the tables go."""

    corpus: Corpus
    output: Output
    rejects: Rejects = Rejects()
    gate: Gate | None = None
    state: StateSettings | None = None
    report: ReportSettings = field(default_factory=ReportSettings)
    maintenance: Maintenance = Maintenance()

    @property
    def expressions(self) -> dict[str, str]:
        """As ``Measures.expressions``, and the filter of the corpus."""
        return super().expressions | ({FILTER: self.corpus.filter} if self.corpus.filter else {})

    def resolved(self) -> dict[str, Any]:
        """As ``Measures.resolved``, with the values of ``options`` and secrets in URIs replaced by ``(redacted)``.

        ``[report]`` and ``[maintenance]`` are left out.
        """
        table = super().resolved()
        for name in ("report", "maintenance"):
            del table[name]  # it says nothing of a run
        table["corpus"]["options"] = dict.fromkeys(sorted(self.corpus.options), REDACTED)
        for part in (table["corpus"], table["output"]):
            if "path" in part:
                part["path"] = redact(part["path"])
        return {"corpus": table.pop("corpus")} | table


def plain_value(value: Any) -> Any:
    """Turn a part of the configuration into the dicts, lists and scalars that read back to it."""
    if isinstance(value, Terms):
        return {"column": value.column, "list": {name: list(terms) for name, terms in value.terms}}
    if isinstance(value, Mapping):
        return {key: plain_value(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [plain_value(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__"):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return {name: plain_value(part) for name, part in parts.items() if part is not None}
    return value
