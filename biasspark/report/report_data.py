"""The data of a report: one published run and the runs before it, reduced to the rows that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from biasspark.columns import ALL_ROWS, OVERALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS, WORSE
from biasspark.config import diff_config, list_differences
from biasspark.errors import InputError
from biasspark.gate.alerts import alert_order
from biasspark.report.cells import Row, is_weak
from biasspark.report.definitions import SUITE
from biasspark.tables.runs import read_config
from biasspark.tables.schemas import LOSS_BY_SEGMENT, TABLES, tables_of
from biasspark.text import format_count, show_value

Rows: TypeAlias = Sequence[Row]

MIN_ROWS = 30
"""Identities with fewer rows come after the others: the lowest of many such AUCs is low by chance."""
MAX_THRESHOLDS = 3
MAX_ALERTS = 200

WORST = {**{name: f"{name}_min" for name in SUMMARIZED_AUCS}, **{name: f"{name}_max_abs" for name in SUMMARIZED_GAPS}}
"""The column of ``model_summary`` with the worst value of each metric; with ``_identity``, the name of its identity."""

OF_ATTRIBUTION = tuple(table.name for table in tables_of(LOSS_BY_SEGMENT.job))
"""The tables of attribution."""

ALERTS = ("bias_alerts", "comparison_alerts")
COUNTED_BY = {
    **dict.fromkeys(ALERTS, ("model", "outcome")),
    "model_comparisons": ("slice", "model", "baseline_model", "verdict"),
}
"""Tables of which a report shows some rows and counts all, and by which columns."""


class Lowest(NamedTuple):
    """The AUC of an identity whose interval ends lowest. Tuples sort from the worst identity to the best.

    ``weakness`` is 0 for an AUC with an interval and at least `MIN_ROWS` rows, 1 with fewer rows, 2 without interval,
    and 3 without an AUC and so a ``metric``. ``high`` is the upper end of the interval, or the value without one.
    """

    weakness: int
    high: float
    metric: str


class PastRun(NamedTuple):
    """An earlier run: its metrics on all rows, whether its files are gone, and what was measured differently."""

    run_date: date
    run_id: str
    metrics: Rows
    summaries: Rows = ()
    is_lost: bool = False
    differences: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The rows that were published for ``run_date`` of a ``corpus``, or measured from a data frame.

    Attributes
    ----------
    run, acceptances
        Rows of the ledger: the run of the main job, or of attribution if it ran alone, and those by which people
        accepted runs. For a data frame, ``run`` has the columns that apply.
    tables
        The shown rows by table (see `filter_tables`). Empty tables are left out.
    counts
        The number of rows of each table of `COUNTED_BY`, shown or not, by the values of these columns.
    lost
        The tables whose files are gone though the ledger lists them, each with the fault.
    runs, configs
        The run of each job, and its configuration.
    history, has_earlier_runs
        The runs for earlier dates that are shown, oldest first, and whether there are any, shown or not.
    baseline, baseline_label
        The run to compare with, if any, and why it was chosen.
    n_identities
        The number of measured identities, of which the worst are shown.
    new_identities, missing_identities
        Identities that this run has and the baseline lacks, and the other way around.
    """

    tables: Mapping[str, Rows]
    corpus: str = ""
    run_date: date = date.min
    run: Row = field(default_factory=dict)
    counts: Mapping[str, Mapping[tuple[Any, ...], int]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    history: Sequence[PastRun] = ()
    has_earlier_runs: bool = False
    baseline: PastRun | None = None
    baseline_label: str = ""
    acceptances: Rows = ()
    n_identities: int = 0
    new_identities: Sequence[str] = ()
    missing_identities: Sequence[str] = ()

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The configuration of the run; empty if the ledger has none."""
        return read_config(self.run)

    @property
    def is_published(self) -> bool:
        """Whether it is a published run, which has a gate, a history and a configuration, not a data frame."""
        return "run_id" in self.run

    @property
    def has_suite(self) -> bool:
        """Whether models were measured. If not, the report is on attribution, an experiment or labels alone."""
        return bool(self.tables.get("model_summary"))

    @property
    def subject(self) -> str:
        """The title of the report."""
        if self.has_suite:
            return "Unintended bias"
        names = {"loss_by_segment": "Lost AUC", "pinned_skew": "Pinned AUC", "label_balance": "Label balance"}
        return next((title for name, title in names.items() if self.tables.get(name)), "Unintended bias")

    def describe_other_settings(self) -> list[str]:
        """Return a sentence on each other job with tables on the page whose run was measured differently."""
        shown_jobs = {TABLES[name].job for name in self.tables if name in TABLES}
        identities = {"identities": self.config.get("identities")}  # which do not matter to attribution
        compared = {
            job: {**config, **identities} if LOSS_BY_SEGMENT.job in (job, self.run.get("job")) else config
            for job, config in self.configs.items()
        }
        return [
            f"The run of {job} was measured differently: {'; '.join(phrases)}."
            for job, config in compared.items()
            if job in shown_jobs and (phrases := list_config_differences(config, self.config, ("there", "here")))
        ]

    def defined_tables(self) -> set[str]:
        """Return the published tables that the report shows, including lost ones."""
        names = {*(name for name, rows in self.tables.items() if rows), *self.lost, "bias_runs"}
        return names | ({"template_scores"} if "template_means" in names else set())

    def rows(self, table: str, **values: object) -> list[Row]:
        """Return the rows of a table that have these values; none without the table."""
        return [row for row in self.tables.get(table, ()) if all(row[name] == value for name, value in values.items())]

    def alerts(self) -> list[Row]:
        """Return the alerts of the gate, also those on comparisons of models, in their order."""
        return sorted((row for name in ALERTS for row in self.rows(name)), key=alert_order)

    def models(self) -> list[str]:
        """Return the names of the models."""
        return self.models_of("model_summary", "bias_metrics") or self.models_of("loss_by_segment", "pinned_skew")

    def models_of(self, *tables: str) -> list[str]:
        """Return the names of the models in some tables."""
        return sorted({row["model"] for name in tables for row in self.rows(name)})

    def slices(self) -> list[str]:
        """Return the names of the slices that are shown, all rows first."""
        return sorted({row["slice"] for row in self.rows("model_summary")}, key=lambda name: (name != ALL_ROWS, name))

    def pictured(self) -> list[str]:
        """Return the identities whose score distributions are drawn by slice, the worst in any slice first."""
        drawn = {row["identity"] for row in self.rows("score_histograms") if row["slice"] != ALL_ROWS}
        return [name for name in order_worst_first(self.rows("bias_metrics")) if name in drawn]

    def identities(self, slice_name: str = ALL_ROWS) -> list[str]:
        """Return the identities of a slice in the order of `order_worst_first`."""
        return order_worst_first(self.rows("bias_metrics", slice=slice_name))

    def all_runs(self) -> list[PastRun]:
        """Return the runs for earlier dates and this one, oldest first."""
        summaries = self.rows("model_summary", slice=ALL_ROWS)
        return [*self.history, PastRun(self.run_date, self.run["run_id"], self.rows("bias_metrics"), summaries)]

    def suite(self, slice_name: str = ALL_ROWS) -> dict[tuple[str, str], Row]:
        """Return the rows of ``bias_metrics`` on a slice, by model and identity."""
        return {(row["model"], row["identity"]): row for row in self.rows("bias_metrics", slice=slice_name)}

    def summaries(self, slice_name: str = ALL_ROWS) -> dict[str, Row]:
        """Return the rows of ``model_summary`` on a slice, by model."""
        return {row["model"]: row for row in self.rows("model_summary", slice=slice_name)}

    @property
    def level(self) -> float:
        """The level of the run's intervals."""
        return float((self.config.get("intervals") or {}).get("level", 0.95))

    @property
    def alpha(self) -> float:
        """The significance level of the run's gate."""
        return float((self.config.get("gate") or {}).get("alpha", 0.05))


def group_rows(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by the values of some columns, keeping their order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups


def order_worst_first(metrics: Rows) -> list[str]:
    """Return the identities in rows of ``bias_metrics``, sorted by `find_lowest` of any model, then by name."""
    return list(dict.fromkeys(row["identity"] for row in sorted(metrics, key=lowest_first)))


def find_lowest(row: Row) -> Lowest:
    """Return the subgroup, BPSN or BNSP AUC of a row of ``bias_metrics`` for which a low value is most certain."""
    has_few_rows = (row["n_subgroup_negative"] or 0) + (row["n_subgroup_positive"] or 0) < MIN_ROWS
    aucs = (
        Lowest(2, row[name], name) if high is None else Lowest(int(has_few_rows), high, name)
        for name, high in ((name, row[f"{name}_high"]) for name in SUMMARIZED_AUCS)
        if row[name] is not None
    )
    return min(aucs, default=Lowest(3, 0.0, ""))


def lowest_first(row: Row) -> tuple[int, float, str]:
    """Return the sort key of rows of ``bias_metrics`` by `find_lowest`, then by identity."""
    return *find_lowest(row)[:2], row["identity"]


def choose_thresholds(rows: Rows) -> list[float]:
    """Return the thresholds to show: all if there are few, else the quartiles."""
    thresholds = sorted({row["threshold"] for row in rows})
    if len(thresholds) <= MAX_THRESHOLDS:
        return thresholds
    return [thresholds[len(thresholds) * quarter // 4] for quarter in (1, 2, 3)]


# ---- which rows are shown: their number does not grow with the number of identities

MAX_IDENTITIES = 100
MAX_SLICES, MAX_SLICE_ROWS, MIN_IN_SLICE = 8, 200, 10
"""Slices shown besides all rows, identities shown in all of them together (about), and at least in each."""
MAX_PICTURED, MAX_PICTURES = 6, 144
"""Identities whose scores are drawn by slice, and drawings of them (about)."""
MAX_NAMED = 20
"""Hidden slices that are named."""
MAX_PAIRS = 8
MAX_BINS = 100
MAX_WORSE = 500
"""Significantly worse differences of two models that are shown in addition to those of the shown identities."""

AUC_SUMS = {
    **dict.fromkeys(("competition_score", "pinned_auc_equality_difference"), SUMMARIZED_AUCS),
    **{f"{name}_power_mean": (name,) for name in SUMMARIZED_AUCS},
}
RATE_SUMS = {"false_positive_equality_difference": ("fpr_gap",), "false_negative_equality_difference": ("fnr_gap",)}
"""Sums and means over identities, and the columns that enter each."""

SUITE_COLUMNS = (
    *("model", "slice", "identity", "crossed", "n_subgroup_negative", "n_subgroup_positive"),
    *(f"{name}{end}" for name in SUITE for end in ("", "_low", "_high")),
)
SHOWN_COLUMNS = (*SUITE_COLUMNS, *(f"{name}_reason" for name in SUITE))
"""Columns of ``bias_metrics`` by which rows are ranked, and those that are shown."""


def filter_tables(whole: Mapping[str, pa.Table], config: Mapping[str, Any]) -> dict[str, Rows]:
    """Return the rows to show by table, given the whole tables of a run and its configuration.

    Any table may be missing, as after attribution alone. At most 100 identities are shown, those with the lowest AUC
    and those with a model's worst value of a metric, and at most 8 slices besides all rows, those with the lowest AUC,
    with fewer identities each if there are many. Histograms by slice are kept for a few identities. Empty tables are
    left out.

    Some entries are derived: ``hidden_slices``; ``crossed_pairs``, the worst pairs of each model, as rows of
    ``bias_metrics``; ``template_means`` (`mean_over_templates`); the numbers of identities in sums (`count_parts`).
    """
    tables: dict[str, Rows] = {}
    slices, shown, pictured = [ALL_ROWS], list[str](), list[str]()
    if "bias_metrics" in whole:
        slices, shown, pictured, tables = _filter_suite(whole["bias_metrics"], whole["model_summary"])
    elif "label_balance" in whole:
        rows = whole["label_balance"].sort_by([("n_negatives_to_add", "descending")])
        shown = [OVERALL, *list(dict.fromkeys(rows["identity"].to_pylist()))[:MAX_IDENTITIES]]
    for name, table in whole.items():
        all_rows = _on_all_rows(table)
        if name in ("pinned_auc", "label_balance", "training_balance"):
            tables[name] = keep(all_rows, identity=shown).to_pylist()
        elif name == "pinned_skew":
            skewed = {*shown, *all_rows["skewed_identity"].to_pylist()} - {None}
            tables[name] = (keep(all_rows, identity=skewed) if shown else all_rows).to_pylist()
        elif name in ALERTS:
            tables[name] = sorted(table.to_pylist(), key=alert_order)[:MAX_ALERTS]
        elif name in OF_ATTRIBUTION:
            tables[name] = all_rows.to_pylist()
        elif name == "model_comparisons":
            tables[name] = _shown_comparisons(all_rows, shown)
        elif name == "template_scores":
            tables["template_means"] = mean_over_templates(keep(table, identity=shown).to_pylist())
        elif name == "score_histograms":
            in_slices = keep(table, slice=slices[1:], identity=pictured)
            bins = [keep(all_rows, identity=shown), in_slices]
            n_bins = int((config.get("histograms") or {}).get("bins", 0))
            tables[name] = merge_bins(pa.concat_tables(bins), -(-n_bins // MAX_BINS)).to_pylist()
    if "threshold_rates" in whole and "threshold_summary" in whole:
        totals = whole["threshold_summary"].to_pylist()
        thresholds = choose_thresholds(totals)
        rates = keep(_on_all_rows(whole["threshold_rates"]), threshold=thresholds)
        tables["threshold_rates"] = keep(rates, identity=shown).to_pylist()
        parts = (f"{gap}{end}" for gaps in RATE_SUMS.values() for gap in gaps for end in ("", "_low", "_high"))
        key = ("slice", "model", "threshold")
        singles = rates.filter(~pc.field("crossed")).select([*key, *parts]).to_pylist()
        tables["threshold_summary"] = count_parts(totals, singles, key, RATE_SUMS)
    return {name: rows for name, rows in tables.items() if rows}


def _filter_suite(metrics: pa.Table, summaries: pa.Table) -> tuple[list[str], list[str], list[str], dict[str, Rows]]:
    """Return the slices to show, the identities on all rows, those drawn by slice, and the rows of the suite."""
    slices, hidden = _choose_slices(metrics, summaries)
    rows = keep(metrics, slice=slices)
    singles = rows.filter(~pc.field("crossed")).select(SUITE_COLUMNS).to_pylist()
    n_models = len(set(summaries["model"].to_pylist()))
    n_pictured = max(1, min(MAX_PICTURED, MAX_PICTURES // max(1, len(slices) * n_models)))
    pictured = order_worst_first(singles)[:n_pictured] if len(slices) > 1 else []
    n_others = min(MAX_IDENTITIES, max(MIN_IN_SLICE, MAX_SLICE_ROWS // max(1, len(slices) - 1)))
    slice_summaries, identities = keep(summaries, slice=slices).to_pylist(), dict[str, set[str]]()
    for name in slices:
        ranked = order_worst_first([row for row in singles if row["slice"] == name])
        n_ranked = MAX_IDENTITIES if name == ALL_ROWS else n_others
        of_slice = [row for row in slice_summaries if row["slice"] == name]
        worst = {row[f"{column}_identity"] for row in of_slice for column in WORST.values()} - {None}
        identities[name] = {*ranked[:n_ranked], *worst, *pictured, OVERALL}
    slice_metrics = [keep(rows, slice=[name], identity=identities[name]) for name in slices]
    tables: dict[str, Rows] = {
        "bias_metrics": pa.concat_tables(slice_metrics).to_pylist(),
        "model_summary": count_parts(slice_summaries, singles, ("slice", "model"), AUC_SUMS),
        "hidden_slices": [{"slice": name} for name in hidden],
        "crossed_pairs": _worst_pairs(_on_all_rows(metrics)),
    }
    return slices, sorted(identities[ALL_ROWS]), pictured, tables


def count_rows(whole: Mapping[str, pa.Table]) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return the number of rows of each table of `COUNTED_BY`, by the values of these columns."""
    return {
        name: Counter(zip(*(whole[name][column].to_pylist() for column in columns), strict=True))
        for name, columns in COUNTED_BY.items()
        if name in whole
    }


def list_identities(metrics: pa.Table, run_id: str | None = None) -> set[str]:
    """Return the identities of ``bias_metrics`` on all rows, without crossed pairs; of one run if it holds several."""
    singles = _on_all_rows(metrics).filter(~pc.field("crossed"))
    singles = singles if run_id is None else singles.filter(pc.field("run_id") == run_id)
    return set(singles["identity"].to_pylist())


def list_config_differences(left: Mapping[str, Any], right: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """List in phrases what two runs measured differently, and the levels of their intervals if these differ.

    For ``names`` see `biasspark.config.list_differences`.
    """
    level, other_level = (config.get("intervals") for config in (left, right))
    phrases = list_differences(level, other_level, names, ("intervals",)) if level and other_level else []
    return [*diff_config(left, right, names).phrases, *phrases]


def count_parts(totals: Rows, rows: Rows, key: Sequence[str], sums: Mapping[str, Sequence[str]]) -> list[Row]:
    """Add to totals for each sum X the number of its identities, ``X_n``, and of those with few rows, ``X_weak``."""
    groups, counted = group_rows(rows, *key), []
    for total in totals:
        counts: Row = {}
        for name, parts in sums.items():
            summed_rows = groups.get(tuple(total[column] for column in key), ())
            weak = [[is_weak(row, part) for part in parts if row[part] is not None] for row in summed_rows]
            counts |= {f"{name}_n": sum(map(bool, weak)), f"{name}_weak": sum(map(any, weak))}
        counted.append(total | counts)
    return counted


_LARGEST_SCORE = 1e300


def mean_over_templates(scores: Rows) -> Rows:
    """Return for each model and identity the mean and standard deviation over templates of its score and departure.

    The departure is the mean score of the identity minus that of all sentences of the template. Templates have equal
    weights. Standard deviations are sample ones (n - 1), None for a single template. ``lowest_score`` and
    ``highest_score`` are those of the mean scores by template. A model and identity with scores so large that their
    differences may pass the largest double has no row.
    """
    known = [row for row in scores if row["mean_score"] is not None]
    overall = {(row["model"], row["template"]): row["mean_score"] for row in known if row["identity"] == OVERALL}
    compared = (row for row in known if row["identity"] != OVERALL and (row["model"], row["template"]) in overall)
    groups = group_rows(compared, "model", "identity")
    means = []
    for model, identity in sorted(groups):
        rows = groups[model, identity]
        by_template = [row["mean_score"] for row in rows]
        departures = [row["mean_score"] - overall[model, row["template"]] for row in rows]
        if max(map(abs, (*by_template, *departures))) > _LARGEST_SCORE:
            continue
        mean: Row = {"model": model, "identity": identity, "n_templates": len(rows)}
        mean |= {"n_rows": sum(row["n_rows"] for row in rows)}
        mean |= {"lowest_score": min(by_template), "highest_score": max(by_template)}
        for name, values in (("score", by_template), ("departure", departures)):
            mean |= {f"mean_{name}": fmean(values), f"{name}_deviation": stdev(values) if len(rows) > 1 else None}
        means.append(mean)
    return means


def merge_bins(histograms: pa.Table, n_merged: int) -> pa.Table:
    """Merge every ``n_merged`` adjacent bins of ``score_histograms``: drawings are narrower than the finest ones."""
    if n_merged <= 1:
        return histograms
    number = pc.divide(histograms["bin"], n_merged)
    offset = pc.subtract(histograms["bin"], pc.multiply(number, n_merged))
    width = pc.subtract(histograms["bin_high"], histograms["bin_low"])
    low = pc.subtract(histograms["bin_low"], pc.multiply(offset, width))
    key = ["model", "slice", "identity", "cell", "bin"]
    merged = {name: histograms[name] for name in (*key, "n_rows")} | {"bin": number, "bin_low": low}
    merged["bin_high"] = pc.add(low, pc.multiply(width, n_merged))
    sums = [("n_rows", "sum"), ("bin_low", "min"), ("bin_high", "max")]
    summed = pa.table(merged).group_by(key, use_threads=False).aggregate(sums)
    return summed.select([*key, *("_".join(column) for column in sums)]).rename_columns([*key, *dict(sums)])


def _choose_slices(metrics: pa.Table, summaries: pa.Table) -> tuple[list[str], list[str]]:
    """Return the slices to show, all rows first, and the others, by name."""
    names = sorted(set(summaries["slice"].to_pylist()) - {ALL_ROWS})
    chosen = names
    if len(names) > MAX_SLICES:
        singles = metrics.filter(~pc.field("crossed") & (pc.field("slice") != ALL_ROWS)).select(SUITE_COLUMNS)
        lowest = sorted(singles.to_pylist(), key=lambda row: (find_lowest(row)[:2], row["slice"]))
        ranked = dict.fromkeys([*(row["slice"] for row in lowest), *names])
        chosen = sorted([*ranked][:MAX_SLICES])
    return [ALL_ROWS, *chosen], [name for name in names if name not in chosen]


def _on_all_rows(table: pa.Table) -> pa.Table:
    return table.filter(pc.field("slice") == ALL_ROWS) if "slice" in table.column_names else table


def check_unique(rows: pa.Table, key: Sequence[str], name: str, fix: str = "Keep one run.") -> None:
    """Raise `InputError`, which calls the rows ``name``, if several have the same key."""
    n_rows = rows.group_by(key, use_threads=False).aggregate([([], "count_all")])
    repeated = n_rows.filter(pc.field("count_all") > 1).to_pylist()
    if repeated:
        example = ", ".join(f"{column} {show_value(repeated[0][column])}" for column in key)
        several = format_count(len(repeated), "key of several rows", "keys of several rows")
        raise InputError(f"{name}: {several}, such as {example}. Each has one row in a run. {fix}")


def keep(table: pa.Table, **columns: Collection[Any]) -> pa.Table:
    """Return the rows in which each named column has one of the given values."""
    for name, values in columns.items():
        table = table.filter(pc.is_in(table[name], pa.array(list(values), table.schema.field(name).type)))
    return table


def _worst_pairs(metrics: pa.Table) -> Rows:
    """Return each model's worst crossed pairs, of those that have an AUC with an interval."""
    pairs = metrics.filter(pc.field("crossed"))
    suite = [row | {"number": number} for number, row in enumerate(pairs.select(SUITE_COLUMNS).to_pylist())]
    ranked = sorted(suite, key=lambda row: (row["model"], lowest_first(row)))
    by_model = group_rows((row for row in ranked if find_lowest(row).weakness < 2), "model").values()
    worst = [row["number"] for rows in by_model for row in rows[:MAX_PAIRS]]
    rows: Rows = pairs.take(pa.array(worst, pa.int64())).to_pylist()
    return rows


def _shown_comparisons(compared: pa.Table, shown: Sequence[str]) -> Rows:
    """Return all comparisons of the shown identities, and the most certain of the other significantly worse ones."""
    is_shown = pc.is_in(compared["identity"], pa.array(shown, pa.string()))
    unlisted = compared.filter(pc.and_not(pc.equal(compared["verdict"], WORSE), is_shown)).to_pylist()
    unlisted.sort(key=lambda row: (row["p_value"], -abs(row["difference"]), row["identity"], row["metric"]))
    by_pair = group_rows(unlisted, "model", "baseline_model").values()
    return [*compared.filter(is_shown).to_pylist(), *(row for rows in by_pair for row in rows[:MAX_WORSE])]
