"""The whole configuration: frozen, complete and checked. Its fields are the keys of the TOML file.

It is read from a TOML file or from tables. All faults are reported at once, in one `ConfigError`.
"""

from __future__ import annotations

import hashlib
import json
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from biasspark.columns import ALL_ROWS
from biasspark.config import kinds, optional_metrics
from biasspark.config.attribution_settings import Attribution
from biasspark.config.declaration import (
    REQUIRED,
    Kind,
    Reader,
    Section,
    Spot,
    broken_text_rule,
    is_finite_number,
    plain,
    setting,
)
from biasspark.config.gate_rules import AT_THRESHOLDS, Gate
from biasspark.config.identities import AN_INTERVAL, Identities, check_threshold, unknown_identity
from biasspark.config.mitigation_settings import BASELINE, FOLDER, MITIGATED, MODELS, Mitigation, fill_experiment
from biasspark.config.toml_file import apply_overrides, is_within, read_toml, unusable_path
from biasspark.errors import ABSENT, REDACTED, Fault, Key, KeyPath, Setting, Text, Words, redact, type_of
from biasspark.text import list_choices

ENGINES = ("blocks", "windows")
DUPLICATES = ("estimate", "reject", "allow")
MAX_RANGES = 4096
LONGEST_DAYS = 36_500
FILTER = ("corpus", "filter")
_SET_BLOCKS: Text = ("Set ", Setting(("ranking", "engine"), ENGINES[0]), ", or leave it out.")
_PATHS = ("path", "pool", "debiasing", "random", "test")
_LOSSY_OPTIONS = {("mode", "DROPMALFORMED"), ("ignorecorruptfiles", "TRUE"), ("ignoremissingfiles", "TRUE")}
"""Options of Spark readers that silently drop rows."""


def _read_options(spot: Spot) -> Any:
    """Read the options of the Spark reader. No fault shows a value, since some are secrets."""
    options: dict[str, str] = {}
    for name, value in (spot.reader.mapping(spot) or {}).items():
        inner, upper = spot.within(name, ABSENT), str(value).strip().upper()
        if rule := broken_text_rule(name):
            inner.complain(("this is an option's name. ", rule), "Rename it.")
        elif not isinstance(value, str | bool) and not is_finite_number(value):
            inner.complain("its value must be text, a number, true or false.", "Put it in quotes.")
        elif (name.lower(), upper) == ("mode", "FAILFAST"):
            inner.complain("FAILFAST is not allowed: its errors print whole records.", 'Use "PERMISSIVE", the default.')
        elif (name.lower(), upper) in _LOSSY_OPTIONS:
            inner.complain(f"{upper} is not allowed: it drops rows without counting them.", "Leave it out.")
        elif name.lower() in map(str.lower, options):
            inner.complain("it is given twice: Spark ignores case in the names of options.", "Remove one.")
        else:
            options[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return options


def _read_values(spot: Spot) -> Any:
    values = tuple(spot.entries)
    if values and any(all(isinstance(value, kind) for value in values) for kind in (str, bool)):
        return values
    if values and all(map(is_finite_number, values)):
        return tuple(int(value) if isinstance(value, numbers.Integral) else float(value) for value in values)
    return spot.refuse("It must be a list of values of one kind: text, finite numbers, or true and false.")


def _read_models(spot: Spot) -> Any:
    if isinstance(spot.value, list | tuple):
        return {name: name for name in kinds.list_of(nonempty=True).read(spot)}
    if isinstance(spot.value, Mapping):
        return kinds.named("a model's name", kinds.string(), "the name of the score column", nonempty=True).read(spot)
    rule = Words("It must be a table.", "It must be text, a list or a dict.")
    return spot.complain(("this is ", type_of(spot.value), ". ", rule))


def _read_engine(spot: Spot) -> Any:
    """Read the name of an engine. ``binned`` was removed."""
    if isinstance(spot.value, str) and spot.value == "binned":
        return spot.refuse("This engine was removed.", ("Write ", Setting(spot.path, ENGINES[0]), ", or leave it out."))
    return kinds.choice(*ENGINES).read(spot)


@dataclass(frozen=True, kw_only=True)
class Corpus(Section):
    """The data to read: a path or a catalog table, and a choice of its rows."""

    name: str = setting(REQUIRED, kinds.string(), example="civil")
    """The name of the corpus in every table."""
    path: str | None = setting(None, kinds.string(is_path=True))
    """Folder, file pattern or URI to read. A relative path is looked up next to the configuration file, then in the
    working folder. Give this or `table`."""
    table: str | None = setting(None, kinds.string())
    """Catalog table to read. Give this or `path`."""
    format: str = setting("parquet", kinds.string())
    """Format of the files: `parquet`, `csv` (with a header line), `json`, `orc` or any other that Spark knows."""
    options: dict[str, str] = setting({}, Kind("table of text", _read_options), is_shown=False)
    """Options of the Spark reader. Their values are never shown or stored."""
    schema: str | None = setting(None, kinds.string(multiline=True))
    """Columns and types as DDL, if the files do not have them."""
    filter: str | None = setting(None, kinds.string(multiline=True))
    """A Spark SQL predicate. The corpus is the rows for which it is true."""
    run_date_column: str | None = setting(None, kinds.string())
    """If set, only rows in which this column equals the run date are read. A row without a date is in no run, and not
    counted."""
    id: str | None = setting(None, kinds.string())
    """The column that identifies a row in rejected rows and attributions."""
    duplicates: str = setting(DUPLICATES[0], kinds.choice(*DUPLICATES))
    """How to treat repeated ids: `estimate` their number and warn from about 2% on, `reject` all rows that have one,
    also the first, or `allow` them. Without an `id` always `allow`."""

    @property
    def location(self) -> str:
        """The corpus in messages: ``corpus: path /data/civil``, without secrets."""
        return f"corpus: table {self.table}" if self.table else f"corpus: path {redact(self.path or '')}"

    @property
    def file_format(self) -> str:
        """The format in lower case. Spark ignores case in formats and in names of options."""
        return self.format.lower()

    @property
    def lower_options(self) -> dict[str, str]:
        """The options by name in lower case."""
        return {name.lower(): value for name, value in self.options.items()}

    @property
    def separator(self) -> str:
        """The separator of the fields of a CSV file."""
        return self.lower_options.get("sep", self.lower_options.get("delimiter", ","))

    @property
    def is_untyped(self) -> bool:
        """Whether it is CSV without a schema, not even an inferred one."""
        infers = self.lower_options.get("inferschema", "false").lower() == "true"
        return bool(self.path) and self.file_format == "csv" and self.schema is None and not infers

    def check(self, written: Spot) -> None:
        """Report faults of the source, and a rule for repeated ids without an id."""
        written.need_one("path", "table", path="data/civil")
        if "schema" in written and "table" in written:
            written["schema"].refuse("A catalog table has its own schema.", "Leave it out.")
        if written["duplicates"].value in DUPLICATES[:2] and "id" not in written:
            fix = 'Name the id column, id = "...", or leave it out.'
            written["duplicates"].refuse("Repeated ids are found by the id column, and none is named.", fix)

    def resolve(self) -> Self:
        """Return the corpus; repeated ids are allowed without an id column."""
        return self if self.id else replace(self, duplicates="allow")


@dataclass(frozen=True, kw_only=True)
class Label(Section):
    """Which rows are positive: a boolean or 0/1 column, a number at or above `threshold`, or the values `positive`."""

    column: str = setting(REQUIRED, kinds.string(), example="target")
    """The column of the label."""
    threshold: float | None = setting(None, kinds.number())
    """A row is positive at or above it."""
    positive: tuple[str | bool | int | float, ...] | None = setting(
        None, Kind("list of values", _read_values), example=["Charged Off"]
    )
    """The values that are positive. In a text column, a boolean or a number matches every text with that value: `TRUE`,
    `1.0`."""
    range: tuple[float, float] | None = setting(None, kinds.span(), example=AN_INTERVAL)
    """A label outside this closed interval is rejected."""

    def check(self, written: Spot) -> None:
        """Report a label that is defined twice, and faults of its range."""
        if "threshold" in written and "positive" in written:
            rule: Text = (Key(("label", "positive")), " is given, too. A label is defined by one of the two.")
            written["threshold"].refuse(rule, "Remove one.")
        if self.range and self.positive and isinstance(self.positive[0], str):
            rule = "Only a label that is a number has a range, and positive holds text."
            written["range"].refuse(rule, "Leave it out.")
        check_threshold(written, self.threshold, self.range)


@dataclass(frozen=True, kw_only=True)
class RankingSettings(Section):
    """How scores are ranked."""

    engine: str = setting(ENGINES[0], Kind(list_choices(ENGINES), _read_engine))
    """`blocks` sorts blocks of scores with numpy; `windows` ranks in Spark SQL alone."""
    ranges: int = setting(0, kinds.whole(0, MAX_RANGES))
    """The number of score ranges that tasks work on; 0 to choose it from the number of rows."""

    @classmethod
    def explain_unknown(cls, path: KeyPath, key: str) -> Text:
        """Return the fix for the key of an engine that was removed."""
        return 'Delete it: only the engine "binned" had bins.' if key == "bins" else super().explain_unknown(path, key)


@dataclass(frozen=True, kw_only=True)
class Intervals(Section):
    """The confidence intervals."""

    level: float = setting(0.95, kinds.number(0, 1))
    """The level of all confidence intervals."""


@dataclass(frozen=True, kw_only=True)
class Measures(Section):
    """What is measured: everything that the numbers depend on except the corpus.

    The public functions use these settings. A `Config` adds the corpus and the output. ``models`` maps names to score
    columns, ``slices`` names to Spark SQL predicates. The slice ``all`` always exists and is never in ``slices``. Parts
    that are None are not measured.
    """

    label: Label = setting(REQUIRED, kinds.table(Label), example={"column": "target", "threshold": 0.5})
    models: dict[str, str] = setting(
        REQUIRED,
        Kind("table of text", _read_models, {}),
        fix=("Write, for example, ", Words('[models] toxicity = "toxicity"', 'models = ["toxicity"]'), "."),
    )
    """name = score column. Higher scores mean more likely positive. At least one is required, unless only
    `[label_balance]` is measured."""
    identities: Identities = setting(
        REQUIRED, kinds.table(Identities, "columns"), example={"columns": ["male", "female"]}
    )
    slices: dict[str, str] = setting({}, kinds.expressions("a slice's name"), example={"short": "length(text) < 100"})
    """name = Spark SQL predicate. The slice `all` always exists."""
    ranking: RankingSettings = setting(RankingSettings(), kinds.table(RankingSettings))
    intervals: Intervals = setting(Intervals(), kinds.table(Intervals))
    pinned_auc: optional_metrics.PinnedAuc | None = setting(None, kinds.table(optional_metrics.PinnedAuc))
    thresholds: optional_metrics.Thresholds | None = setting(None, kinds.table(optional_metrics.Thresholds))
    histograms: optional_metrics.Histograms | None = setting(None, kinds.table(optional_metrics.Histograms))
    label_balance: optional_metrics.LabelBalance | None = setting(None, kinds.table(optional_metrics.LabelBalance))
    templates: optional_metrics.Templates | None = setting(None, kinds.table(optional_metrics.Templates))
    pinned_skew: optional_metrics.PinnedSkew | None = setting(None, kinds.table(optional_metrics.PinnedSkew))
    attribution: Attribution | None = setting(None, kinds.table(Attribution))
    compare: optional_metrics.Compare | None = setting(None, kinds.table(optional_metrics.Compare))
    evidence: optional_metrics.MinimumCellRows | None = setting(None, kinds.table(optional_metrics.MinimumCellRows))
    privacy: optional_metrics.Privacy | None = setting(None, kinds.table(optional_metrics.Privacy))

    @property
    def expressions(self) -> dict[KeyPath, str]:
        """Every Spark SQL expression over columns of the corpus, by its key."""
        attribution = self.attribution or Attribution()
        parts: dict[KeyPath, Mapping[str, str]] = {
            ("slices",): self.slices,
            ("identities", "predicates"): self.identities.predicates,
            ("attribution", "segments"): attribution.segments,
            ("attribution", "groupings"): attribution.groupings,
            **{("attribution", "pairs_of", name): vars(pair) for name, pair in attribution.pairs_of.items()},
        }
        return {(*path, name): text for path, texts in parts.items() for name, text in texts.items()}

    def resolved(self) -> dict[str, Any]:
        """Return all tables with their values, defaults included, as plain dicts, lists and scalars.

        Keys that are not set are left out. ``parse_measures`` reads the result back to an equal object.
        """
        return dict(plain(self))

    @property
    def json(self) -> str:
        """``resolved`` as canonical JSON: one line of ASCII, in the order of the declarations and of the names."""
        return json.dumps(self.resolved(), separators=(",", ":"), allow_nan=False)

    @property
    def hash(self) -> str:
        """SHA-256 of ``json``, in hexadecimal: equal for equivalent configurations."""
        return hashlib.sha256(self.json.encode("ascii")).hexdigest()

    def check(self, written: Spot) -> None:
        """Report contradictions between tables."""
        models, skew = tuple(self.models), self.pinned_skew
        if ALL_ROWS in self.slices:
            rule = f"The slice {ALL_ROWS} always exists and holds every row."
            written["slices"][ALL_ROWS].refuse(rule, "Rename the slice.")
        if models and self.compare:
            self.compare.check_models(written["compare"], models)
        if models and self.attribution:
            self.attribution.check_models(written["attribution"], models)
        if self.pinned_auc and self.pinned_auc.trials and self.ranking.engine == "windows":
            rule = 'The engine is "windows", and trials are drawn from sorted blocks.'
            written["pinned_auc"]["trials"].refuse(rule, _SET_BLOCKS)
        if skew and skew.identity and written.sound("identities") and not self.identities.find_sources(skew.identity):
            path, known = ("pinned_skew", "identity"), self.identities.shown_names
            written.reader.faults.append(unknown_identity(path, skew.identity, known))

    def resolve(self) -> Self:
        """Return the measures with all compared models, and with the link of each model."""
        compare, attribution = self.compare, self.attribution
        if compare:
            compare = replace(compare, models=compare.compared(tuple(self.models)))
        link: object = attribution.link if attribution else {}
        if attribution and isinstance(link, str):  # one for all models
            attribution = replace(attribution, link=dict.fromkeys(self.models, link))
        return replace(self, compare=compare, attribution=attribution)


@dataclass(frozen=True, kw_only=True)
class Rejects(Section):
    """Limits of rejected rows: how many are kept, and how many a run may have. All are counted."""

    max_rows: int = setting(10000, kinds.whole())
    """The most rejected rows that are written for each reason."""
    max_share: float | None = setting(None, kinds.number(0, 1, "low high"), example=0.5)
    """The largest share of rejects, 0 to 1, with which a run is published: of all rows, and of the scores of each model
    on the rows that are not rejected for all models. There is no limit unless it is set."""
    allow_missing_models: bool = setting(False, kinds.flag())
    """Whether a run is published although a model has no AUC: no usable score, or those of one label only. The gate
    then fails by every rule on that model."""


@dataclass(frozen=True, kw_only=True)
class SketchSettings(Section):
    """Mergeable summaries of a run."""

    keep: bool = setting(False, kinds.flag())
    """Whether a run keeps its sorted scores, so that windows of runs can be measured without the corpus."""


@dataclass(frozen=True, kw_only=True)
class Output(Section):
    """The output of the tables: a folder or a catalog."""

    path: str | None = setting(None, kinds.string(is_path=True))
    """Folder or URI of the tables. A relative path that exists next to the configuration file is taken from there, any
    other from the working folder, where it is created. It must be neither a pattern nor the root of a file system, such
    as `/`; the root of a bucket is allowed. Give this or `catalog`."""
    catalog: str | None = setting(None, kinds.string(), example="spark_catalog.bias")
    """The `catalog.schema` of the tables. Give this or `path`."""
    format: str = setting("parquet", kinds.choice("parquet", "delta", "iceberg"))
    """Format of the tables: `parquet`, `delta` or, in a catalog only, `iceberg`."""
    views: str | None = setting(None, kinds.string(), example="spark_catalog.bias")
    """The `catalog.schema` for the views, if the catalog of the tables cannot hold views."""

    def check(self, written: Spot) -> None:
        """Report names and formats that a folder or a catalog cannot have."""
        written.need_one("path", "catalog", path="warehouse")
        for key, name in (("catalog", self.catalog), ("views", self.views)):
            if name is not None and not re.fullmatch(r"[\w-]+\.[\w-]+", name):
                rule = "It must be catalog.schema, two names of letters, digits, _ and -."
                written[key].refuse(rule, written.write(**{key: "spark_catalog.bias"}))
        if "path" in written and self.format == "iceberg":
            fix = 'Write catalog = "lake.bias" in place of path.'
            written["format"].refuse("Iceberg keeps its tables in a catalog.", fix)
        if "path" in written and "views" in written:
            written["views"].refuse("A path has its views in files next to the tables.", "Leave it out.")


@dataclass(frozen=True, kw_only=True)
class ReportSettings(Section):
    """Where `biasspark report --publish` writes reports."""

    path: str | None = setting(None, kinds.string(is_path=True), example="reports")
    """Folder or URI of the reports, on any file system that Spark can write: `s3a://`, `hdfs://`, `file:/`. Without a
    scheme it is on the default file system of Spark, usually the disks of the driver. A relative path is resolved as
    that of `[output]`. The default is the folder `reports` in the `path` of `[output]`; with a `catalog` there is
    none."""


@dataclass(frozen=True, kw_only=True)
class Maintenance(Section):
    """What `biasspark maintain` keeps, and whether it compacts."""

    keep_days: int = setting(30, kinds.whole(0, LONGEST_DAYS))
    """How long a superseded run is kept."""
    grace_hours: int = setting(168, kinds.whole(1, 24 * LONGEST_DAYS))
    """How long after its start a run may still be running, and how long readers may use old files."""
    compact: bool = setting(True, kinds.flag())
    """Whether a run in many small files is rewritten into few. On Delta and Iceberg, whether old files are deleted,
    too."""


@dataclass(frozen=True, kw_only=True)
class _Source(Section):
    """The first table. It is a base class since dataclasses put the fields of the last base first."""

    corpus: Corpus = setting(REQUIRED, kinds.table(Corpus), example={"name": "civil", "path": "data/civil"})


@dataclass(frozen=True, kw_only=True)
class Config(Measures, _Source):
    """The whole configuration of a job: measures, corpus and output."""

    output: Output = setting(REQUIRED, kinds.table(Output), example={"path": "warehouse"})
    rejects: Rejects = setting(Rejects(), kinds.table(Rejects))
    gate: Gate | None = setting(None, kinds.table(Gate))
    state: SketchSettings | None = setting(None, kinds.table(SketchSettings))
    report: ReportSettings = setting(ReportSettings(), kinds.table(ReportSettings))
    maintenance: Maintenance = setting(Maintenance(), kinds.table(Maintenance))
    mitigation: Mitigation | None = setting(None, kinds.table(Mitigation))

    @property
    def expressions(self) -> dict[KeyPath, str]:
        """Those of `Measures`, and the filter of the corpus."""
        return super().expressions | ({FILTER: self.corpus.filter} if self.corpus.filter else {})

    def resolved(self) -> dict[str, Any]:
        """Like `Measures.resolved`, with ``(redacted)`` in place of values of ``options`` and secrets in URIs.

        ``[report]`` and ``[maintenance]`` are left out: no number depends on them.
        """
        tables = {name: part for name, part in super().resolved().items() if name not in ("report", "maintenance")}
        tables["corpus"]["options"] = dict.fromkeys(sorted(self.corpus.options), REDACTED)
        for part in (tables["corpus"], tables["output"], tables.get("mitigation", {})):
            part |= {key: redact(part[key]) for key in _PATHS if key in part}
        return tables

    def check(self, written: Spot) -> None:
        """Report contradictions between tables."""
        super().check(written)
        self._check_id(written)
        self._check_paths(written)
        if self.gate:
            self._check_gate(self.gate, written)
        if self.mitigation:
            self._check_mitigation(self.mitigation, written)
        keeps = bool(self.state and self.state.keep)
        if keeps and self.ranking.engine != ENGINES[0]:
            written["state"]["keep"].refuse(
                f'The engine is "{self.ranking.engine}", which sorts no blocks.', _SET_BLOCKS
            )
        unsuppressed = {
            "[attribution], which publishes numbers of single rows": self.attribution,
            "[compare], which publishes numbers of every identity": self.compare,
            "[mitigation], which publishes the labels of the rows added for every identity": self.mitigation,
            "[state], which keeps the score, label and identities of every row": keeps,
            "[gate] paired, which publishes counts that reveal single rows": self.gate and self.gate.paired,
        }
        for part in [part for part, is_given in unsuppressed.items() if is_given and self.privacy]:
            fix = "Put one of them into its own configuration."
            written["privacy"].complain(f"cannot be combined with {part}.", fix)

    def _check_id(self, written: Spot) -> None:
        if self.corpus.id or not written["corpus"].sound("id"):
            return
        corpus = written["corpus"]
        reasons = {
            "[attribution] splits and samples by it": self.attribution,
            "The jackknife of [compare] groups rows without a cluster by it": self.compare and self.compare.groups,
            "[gate] paired groups rows by it": self.gate and self.gate.paired,
        }
        for reason in [reason for reason, needs_id in reasons.items() if needs_id]:
            corpus["id"].complain(f"missing. {reason}.", corpus.write(id="row_id"))

    def _check_paths(self, written: Spot) -> None:
        output, corpus = self.output.path, self.corpus.path
        rule, fix = unusable_path(output) if output else ("", "")
        if rule:
            written["output"].within("path", output).refuse(rule, fix)
        for part, path in (("output", None if rule else output), ("report", self.report.path)):
            if path and corpus and is_within(path, corpus):
                rule = "It lies in the path of [corpus], and the next run would read its files as rows."
                written[part].within("path", path).refuse(rule, "Name a folder outside.")

    def _check_gate(self, gate: Gate, written: Spot) -> None:
        models, rules = tuple(self.models), written["gate"]["rule"]
        identities = self.identities if written.sound("identities") else None
        for index, rule in enumerate(gate.rule):
            spots = rules.within(rule.name or index + 1, rules.entries[index])
            rule.check_names(spots, models, tuple(self.slices), identities)
            if rule.baseline is not None and models:
                rule.check_baseline(spots, models, self.compare, written.sound("compare"))
            at = self.thresholds.at if self.thresholds else ()
            if rule.metric in AT_THRESHOLDS and rule.threshold not in (None, *at) and written.sound("thresholds"):
                fix = ("Add it to ", Key(("thresholds", "at")), ".")
                spots["threshold"].refuse("[thresholds] does not have it.", fix)

    def _check_mitigation(self, mitigation: Mitigation, written: Spot) -> None:
        if self.output.catalog and not self.output.path:
            rule = "The corpora are written into a folder, next to the tables."
            fix: Text = ("Write, for example, ", Setting(("output", "path"), "build/mitigation/warehouse"), ".")
            written["output"]["catalog"].refuse(rule, fix)
        names, needed = set(self.models), {BASELINE, MITIGATED}
        if "models" in written and written.sound("models") and not needed <= names <= set(MODELS):
            what = f"they are {list_choices(sorted(names))}. An experiment compares {', '.join(MODELS)}."
            written["models"].complain(what, f"Name {BASELINE}, {MITIGATED} and, if there is one, {MODELS[1]}.")
        if mitigation.has_test_set or not written.sound("identities"):
            return
        if not self.terms:
            what = "no terms are given. Templated sentences are about terms."
            written["identities"].complain(what, "Name terms, or a test set, [mitigation] test.")
        for fault in () if mitigation.rows or not self.terms else mitigation.test_request(self.terms).list_faults():
            key, _, what = fault.partition(": ")
            written["identities" if key == "terms" else "mitigation"].complain(what, "")

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of all identities found in text."""
        groups = self.identities.terms.list.values() if self.identities.terms else ()
        return tuple(dict.fromkeys(term for terms in groups for term in terms))

    def resolve(self) -> Self:
        """Return the configuration with the models of every rule, and the folder of generated corpora."""
        config = super().resolve()
        if config.mitigation and config.mitigation.rows:
            config = replace(config, corpus=replace(config.corpus, path=f"{config.output.path}/{FOLDER}"))
        gate, compared = config.gate, config.compare.models if config.compare else None
        if gate:
            chosen = ((rule, (rule.baseline and compared) or tuple(config.models)) for rule in gate.rule)
            rules = (rule if rule.models else replace(rule, models=models) for rule, models in chosen)
            gate = replace(gate, rule=tuple(rules))
        return replace(config, gate=gate, state=config.state if config.state and config.state.keep else None)


# ---- reading

_NEED_IDENTITIES = {"pinned_auc", "templates", "pinned_skew", "mitigation"}
_NEED_MODELS = {"thresholds", "histograms", "pinned_auc", "templates", "pinned_skew", "attribution", "compare"}
_NEED_MODELS |= {"gate", "state"}


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration file, and apply the overrides ``table.key=value`` of the command line.

    Relative paths are looked up next to the file, then in the working folder. An output that exists in neither is
    created in the working folder. Raises `ConfigError` with all faults, or if the file cannot be read or is not TOML.
    """
    table, faults = apply_overrides(read_toml(Path(path)), overrides)
    return parse_config(table, Path(path).parent, faults)


def parse_config(table: Mapping[str, Any], base: Path, faults: Sequence[Fault] = ()) -> Config:
    """Check a configuration, with paths relative to `base`. Raises `ConfigError` with all faults, also those given."""
    given = _drop_absent(table)
    optional = set() if given.keys() & _NEED_IDENTITIES else {"identities"}
    if "label_balance" in given and not given.keys() & {"models", *_NEED_MODELS}:  # only labels are counted
        optional = {"models"}
    reader = Reader(base, optional, faults)
    return reader.read(Config, fill_experiment(given, reader))


def parse_measures(
    table: Mapping[str, Any], *, scored: bool = True, grouped: bool = True, faults: Sequence[Fault] = ()
) -> Measures:
    """Check what is measured, for functions that are given a DataFrame: no corpus and no output.

    ``models`` may be a list of columns, and ``identities`` a list of columns or an `Identities`. None counts as absent.
    Unless `scored`, there are no models: only labels are counted. Unless `grouped`, identities are optional. Raises
    `ConfigError` with all faults, also those given.
    """
    given = {name: plain(part) for name, part in _drop_absent(table).items() if scored or name != "models"}
    optional = {name for name, is_needed in (("models", scored), ("identities", grouped)) if not is_needed}
    return Reader(Path.cwd(), optional, faults).read(Measures, given)


def parse_identities(value: object) -> Identities:
    """Check identities: columns, the table ``[identities]`` as a dict, or an `Identities`. Raises `ConfigError`."""
    return Reader(Path.cwd(), {"label", "models"}).read(Measures, {"identities": plain(value)}).identities


def _drop_absent(table: Mapping[str, Any]) -> dict[str, Any]:
    """Drop parts that are None, and empty identities, which ``resolved`` has in a configuration without identities."""
    empty = plain(Identities())
    return {name: part for name, part in table.items() if part is not None and (name != "identities" or part != empty)}
