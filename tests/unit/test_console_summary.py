"""What a job prints of the tables that it published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.report import console_summary
from biasspark.report.console_summary import show_balance, show_changes, show_suite, show_worst_identities
from biasspark.tables.schemas import BIAS_METRICS, LABEL_BALANCE, MODEL_COMPARISONS, MODEL_SUMMARY
from biasspark.text import measure_width

QUERY = Path(__file__).parents[2] / "conf" / "sql" / "worst_identities.sql"
HEADINGS = "slice identity metric value baseline_value difference difference_low difference_high p_adjusted"


def change(identity: str, p: float, metric: str = "bpsn_auc", verdict: str = "worse", **other: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"slice": ALL_ROWS, "identity": identity, "metric": metric}
    row |= {"model": "new", "baseline_model": "old"}
    row |= {"crossed": "&" in identity, "n_low": 50, "n_high": 70, "method": "paired_delong", "value": 0.7}
    row |= {"baseline_value": 0.8, "difference": -0.1, "difference_low": -0.2, "difference_high": -0.05}
    return row | {"verdict": verdict, "p_value": p, "p_adjusted": p} | other


def overall(slice_name: str = ALL_ROWS, model: str = "new", verdict: str = "no_evidence") -> dict[str, Any]:
    n_high = 300 if slice_name == ALL_ROWS else 30
    return change(OVERALL, 0.5, "auc", verdict, slice=slice_name, model=model, n_low=1_000, n_high=n_high)


def show(rows: list[dict[str, Any]]) -> list[str]:
    return show_changes(pa.Table.from_pylist(rows, MODEL_COMPARISONS.arrow_schema)).split("\n\n")


def read_rows(paragraph: str) -> Iterator[tuple[str, str, str]]:
    """Return slice, identity and metric of what is listed under a title."""
    _, headings, *lines = paragraph.splitlines()
    assert " ".join(headings.split()) == HEADINGS
    for line in lines:
        if not line.startswith("and "):
            slice_name, *identity, metric = line.replace("< ", "<").split()[:-6]
            yield slice_name, " ".join(identity), metric


def test_what_tells_most_comes_first_and_equal_rows_in_the_order_of_the_key() -> None:
    rows = [
        overall(),
        change("a & b", 1e-30),
        change("a", 1e-20, slice="short"),
        change("a", 1e-40, "background_auc"),
        change("c", 0.0),
        change("b", 0.0),
        change("b", 0.0, "bnsp_auc"),
        change("d", 0.0, difference=0.3, metric="negative_aeg"),
        change("a", 1e-9, verdict="better"),
        change("e", 0.04, p_value=0.02),
        change("f", 0.04, p_value=0.01),
    ]
    worse, better, *_ = show(rows[::-1])
    assert "worse" in worse.splitlines()[0]
    assert list(read_rows(worse)) == [
        ("all", "d", "negative_aeg"),
        ("all", "b", "bnsp_auc"),
        ("all", "b", "bpsn_auc"),
        ("all", "c", "bpsn_auc"),
        ("all", "f", "bpsn_auc"),
        ("all", "e", "bpsn_auc"),
        ("short", "a", "bpsn_auc"),
        ("all", "a & b", "bpsn_auc"),
    ]
    assert "better" in better.splitlines()[0]
    assert list(read_rows(better)) == [("all", "a", "bpsn_auc")]
    assert "more" not in worse + better


def test_each_model_has_as_many_as_another_and_says_how_many_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [change(f"i{place:02}", 0.001 * place) for place in range(6)]
    rows += [change("i00", 1e-9, model="newer"), change("i01", 1e-9, model="newer", verdict="better")]
    rows += [change("i00", 0.0, "background_auc"), overall(), overall(model="newer")]
    monkeypatch.setattr(console_summary, "MAX_SHOWN", 4)
    *lists, _, everything = show(rows)
    titles = [paragraph.splitlines()[0].split() for paragraph in lists]
    assert [(title[0], "worse" in title, title[-1]) for title in titles] == [
        *(("new", True, "old:"), ("newer", True, "old:"), ("newer", False, "old:"))
    ]
    assert [identity for _, identity, _ in read_rows(lists[0])] == ["i00", "i01", "i02", "i03"]
    assert [paragraph.splitlines()[-1] for paragraph in lists if "more" in paragraph] == ["and 2 more"]
    assert "latest_model_comparisons" in everything


def test_verdicts_are_counted_beside_the_rows_that_both_models_score() -> None:
    rows = [
        overall("a slice"),
        overall(),
        overall(model="newer", verdict="better"),
        change("a", 0.01),
        change("a", 0.01, "background_auc"),
        change("b", 0.6, verdict="no_evidence"),
        change("c", 0.9, verdict="insufficient_data", p_value=None, p_adjusted=None),
    ]
    *_, counts, _ = show(rows)
    assert [" ".join(line.split()) for line in counts.splitlines()] == [
        "model baseline_model slice n_rows worse better no_evidence insufficient_data",
        "new old all 1300 2 0 2 1",
        "new old a slice 1030 0 0 1 0",
        "newer old all 1300 0 1 0 0",
    ]


def test_names_in_titles_are_written_out() -> None:
    worse, *_ = show([overall(), change("a", 0.01, model="n\x1b[2J")])
    assert worse.startswith(r"n\x1b[2J ")


Interval = tuple[float | None, float | None, float | None]
GOOD, NONE = (0.9, 0.88, 0.92), (None, None, None)


def metrics_of(
    identity: str, *aucs: Interval, n: int | None = 50, model: str = "m", slice_name: str = ALL_ROWS
) -> dict[str, Any]:
    """Return a row of metrics; the AUCs that are not given are good."""
    row: dict[str, Any] = {"model": model, "slice": slice_name, "identity": identity, "crossed": "&" in identity}
    row |= {"n_subgroup_negative": n, "n_subgroup_positive": n}
    intervals = [*aucs, *[GOOD] * (3 - len(aucs))]
    for name, interval in zip(("subgroup_auc", "bpsn_auc", "bnsp_auc"), intervals, strict=True):
        row |= {f"{name}{end}": value for end, value in zip(("", "_low", "_high"), interval, strict=True)}
    return row


MIXED = [
    metrics_of("lucky", (0.0, 0.0, 0.5), n=3),  # two rows of a kind: the point says nothing
    metrics_of("unsure", (0.4, 0.1, 0.8)),
    metrics_of("sure", GOOD, (0.6, 0.55, 0.65)),
    metrics_of("tied", (0.7, 0.6, 0.8), (0.7, 0.6, 0.8), (0.7, 0.6, 0.8)),
    metrics_of("partly", (0.1, None, None), (None, None, None), (0.7, 0.69, 0.71)),
    metrics_of("a & b", (0.1, 0.0, 0.2)),
    metrics_of("absent", NONE, NONE, NONE, n=0),
    metrics_of("withheld", NONE, NONE, NONE, n=None),
    metrics_of("sure", NONE, NONE, NONE, n=1, slice_name="short"),
    metrics_of("good"),
]


def show_worst(rows: list[dict[str, Any]]) -> list[str]:
    return show_worst_identities(pa.Table.from_pylist(rows, BIAS_METRICS.arrow_schema)).splitlines()


def test_what_is_surely_low_comes_first_and_small_identities_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, headings, *lines, left_out = show_worst(MIXED)
    assert headings.split() == ["model", "slice", "identity", "n_rows", "metric", "value", "low", "high", "bias"]
    assert [line.split()[2:] for line in lines] == [
        ["sure", "100", "bpsn_auc", "0.6000", "0.5500", "0.6500"],
        ["partly", "100", "bnsp_auc", "0.7000", "0.6900", "0.7100"],
        ["tied", "100", "bnsp_auc", "0.7000", "0.6000", "0.8000"],
        ["unsure", "100", "subgroup_auc", "0.4000", "0.1000", "0.8000"],
        ["good", "100", "bnsp_auc", "0.9000", "0.8800", "0.9200"],
    ]
    assert "4 of 9 rows" in left_out
    monkeypatch.setattr(console_summary, "MAX_SHOWN", 4)
    _, _, *first, same = show_worst(MIXED)
    assert [line.split() for line in first] == [line.split() for line in lines[:4]]
    assert same == left_out


def test_no_model_fills_the_lines_of_another() -> None:
    """Ten lines are shared out, and each model has at least three."""
    aucs = {(f"i{n}", f"m{model}"): 0.5 + n / 100 + model / 10 for n in range(5) for model in range(4)}
    rows = [metrics_of(name, (auc, auc - 0.1, auc + 0.1), model=model) for (name, model), auc in aucs.items()]
    assert [line.split()[0] for line in show_worst(rows)[2:]] == [f"m{model}" for model in range(4) for _ in range(3)]


def test_the_order_is_that_of_the_query_of_the_worst_identities() -> None:
    lines = [line.split()[:5] for line in show_worst(MIXED)[2:-1]]
    metrics = pa.Table.from_pylist(MIXED, BIAS_METRICS.arrow_schema)
    with duckdb.connect() as connection:
        connection.register("metrics", metrics)
        for view in ("latest_bias_metrics", "latest_accepted_bias_metrics"):
            connection.execute(
                f"CREATE VIEW {view} AS SELECT *, DATE '2026-01-15' AS run_date, 'c' AS corpus FROM metrics"
            )
        answer = connection.sql(QUERY.read_text(encoding="utf-8")).to_arrow_table().to_pylist()
    assert [(line[2], line[4]) for line in lines] == [(row["identity"], row["metric"]) for row in answer]


def test_without_identities_the_overall_auc_is_shown() -> None:
    summaries = [
        {"model": model, "slice": name, "n_negative": n, "n_positive": 2, "auc": 0.75, "auc_low": 0.7, "auc_high": 0.8}
        for model, name, n in (("b", "all", 1), ("a", "few", None), ("a", "all", 2))
    ]
    tables = {BIAS_METRICS: [], MODEL_SUMMARY: summaries}
    of_rows = {table: pa.Table.from_pylist(rows, table.arrow_schema) for table, rows in tables.items()}
    _, headings, *lines = show_suite(of_rows).splitlines()
    assert headings.split() == ["model", "slice", "n_rows", "auc", "auc_low", "auc_high"]
    assert [line.split() for line in lines] == [
        ["a", "all", "4", "0.7500", "0.7000", "0.8000"],
        ["b", "all", "3", "0.7500", "0.7000", "0.8000"],
        ["a", "few", "-", "0.7500", "0.7000", "0.8000"],
    ]


def test_rows_in_no_bucket_are_counted() -> None:
    def shown(n_rows: int | None) -> str:
        whole = {"identity": OVERALL, "bucket": "(all)", "n_rows": 10_000}
        bucket = {"identity": OVERALL, "bucket": "20-59", "n_rows": n_rows, "length_low": 20, "length_high": 59}
        return show_balance(pa.Table.from_pylist([bucket, whole], LABEL_BALANCE.arrow_schema)).splitlines()[-1]

    assert shown(8_766).startswith("1,234 of 10,000 rows are ")
    assert "below 20, above 59" in shown(8_766)
    assert shown(9_999).startswith("1 of 10,000 rows is ")
    assert not any(" of 10,000 " in shown(n_rows) for n_rows in (10_000, None))


def test_an_identity_of_too_few_rows_everywhere_leaves_no_table() -> None:
    [left_out] = show_worst([metrics_of("a", n=14), metrics_of("b", NONE, NONE, NONE)])
    assert "2 of 2 rows" in left_out
    _, _, *lines = show_worst([metrics_of("a", n=15)])
    assert [line.split()[2:4] for line in lines] == [["a", "30"]]  # none is left out: nothing is said of it


def test_long_names_fit_a_screen_and_neither_numbers_nor_the_bias_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("an identity with a name of many words " * 3, "宗教" * 40, "short")
    bias = {"bias": "negatives_shifted_up", "bias_size": "large"}
    rows = [metrics_of(name, model=f"model {name}", slice_name=f"slice {name}", n=10**9) | bias for name in names]
    _, *whole = show_worst(rows)
    shown = "2000000000  bnsp_auc  0.9000  0.8800  0.9200  negatives shifted up, large"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for columns in (80, 120, 150):
        monkeypatch.setenv("COLUMNS", str(columns))
        _, *lines = show_worst(rows)
        assert len(lines) == 1 + len(names)
        assert max(map(measure_width, lines)) == max(columns, 120) < max(map(measure_width, whole))
        assert all(line.endswith(shown) for line in (*lines[1:], *whole[1:]))
