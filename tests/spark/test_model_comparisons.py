"""Two models on the same rows: compared with brute force, for any ranges, by both methods, and as a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy.stats import false_discovery_control

import biasspark
from biasspark.corpus.values import category, column
from biasspark.tables.schemas import MODEL_COMPARISONS
from biasspark.workflows import compare as job
from biasspark.workflows.jackknife import group_of
from tests.harness.least_configuration import raised_faults
from tests.harness.main_job import run as run_job
from tests.harness.main_job import run_well, write_config
from tests.harness.running_jobs import open_views
from tests.oracle.differences import Cell, compare_models
from tests.oracle.suite import PAIRS, cut_cells

N = 400
SLICES = {"short": "id % 2 = 0", "nobody": "id < 0"}
KEY = ["slice", "identity", "metric"]


def make_rows() -> pd.DataFrame:
    """Scores with many ties. The model is better on identity a, and has no score on some rows."""
    rng = np.random.default_rng(3)
    y, a, b = (rng.random(N) < share for share in (0.4, 0.4, 0.3))
    t = np.round(rng.normal(y + 0.8 * (a & ~y), 1), 1)
    s = np.round(0.7 * t + rng.normal(1.2 * y - 0.6 * (a & ~y), 0.5), 1)
    rows = pd.DataFrame({"id": np.arange(N), "y": y, "s": s, "t": t, "a": a, "b": b, "few": np.arange(N) % 80 == 7})
    rows["author"] = [f"author {n}" if n % 7 else None for n in rng.integers(0, 150, N)]
    unknown = rng.random((N, 3)) < 0.1
    rows[["a", "b"]] = rows[["a", "b"]].astype("boolean").mask(unknown[:, :2])
    rows["s"] = rows["s"].mask(unknown[:, 2])
    rows["late"] = rows["t"].where(rows["s"].isna())
    return rows


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return make_rows()


@pytest.fixture(scope="module")
def corpus(spark_session: SparkSession, rows: pd.DataFrame) -> DataFrame:
    schema = "id BIGINT, y BOOLEAN, s DOUBLE, t DOUBLE, a BOOLEAN, b BOOLEAN, few BOOLEAN, author STRING, late DOUBLE"
    values = [tuple(None if pd.isna(v) else v for v in row) for row in rows.astype(object).itertuples(index=False)]
    return spark_session.createDataFrame(values, schema)


def compare(corpus: DataFrame, **measures: Any) -> pd.DataFrame:
    asked: dict[str, Any] = {
        "models": {"new": "s", "old": "t"},
        "baseline": "old",
        "label": "y",
        "identities": {"columns": ["a", "b", "few"], "crossed": {"pairs": True, "min_rows": 10}},
        "slices": SLICES,
    }
    compared: DataFrame = biasspark.model_comparisons(corpus, **(asked | measures))
    return compared.toPandas().sort_values(KEY, ignore_index=True)


@pytest.fixture(scope="module")
def found(corpus: DataFrame) -> pd.DataFrame:
    return compare(corpus)


# ---- the definitions


def list_cells(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], Cell, Cell]]:
    """Yield for every slice, identity and metric the rows of its two cells, with the scores of both models."""
    rows = rows[rows["s"].notna()]
    states = {name: rows[name].astype("boolean") for name in ("a", "b", "few")}
    states["a & b"] = states["a"] & states["b"]
    for part, inside in {"all": rows["id"] >= 0, "short": rows["id"] % 2 == 0, "nobody": rows["id"] < 0}.items():
        scores, y = [rows.loc[inside, model].to_numpy() for model in "st"], rows.loc[inside, "y"].to_numpy()
        yield (part, "(overall)", "auc"), (scores[0][~y], scores[1][~y]), (scores[0][y], scores[1][y])
        for name, state in states.items():
            first, second = (
                cut_cells(of_model, y, state[inside].to_numpy(float, na_value=np.nan)) for of_model in scores
            )
            for metric, (low, high) in PAIRS.items():
                yield (part, name, metric), (first[low], second[low]), (first[high], second[high])


NUMBERS = ("n_low", "n_high", "value", "baseline_value", "difference", "difference_low", "difference_high", "p_value")


def test_every_number_is_that_of_all_pairs(rows: pd.DataFrame, found: pd.DataFrame) -> None:
    by_key: Any = found.set_index(KEY)
    cells = list(list_cells(rows))
    assert found.columns.tolist() == list(MODEL_COMPARISONS.value_columns)
    assert len(cells) == len(found) == 3 * (1 + 4 * 6)
    n_unknown_signs = 0
    for key, low, high in cells:
        expected, row = compare_models(key[2], low, high), by_key.loc[key]
        for name in NUMBERS:
            assert row[name] == pytest.approx(expected.get(name, np.nan), abs=1e-12, nan_ok=True), (key, name)
        n_unknown_signs += expected.get("n_signs", 1) > 1
    assert n_unknown_signs


def test_verdicts_follow_from_p_values_adjusted_slice_by_slice(corpus: DataFrame, found: pd.DataFrame) -> None:
    """With the baseline and the model exchanged, better becomes worse."""
    table = pd.concat([found, compare(corpus, baseline="new")])
    for _, family in table[table["p_value"].notna()].groupby(["model", "slice", "crossed"]):
        expected = false_discovery_control(family["p_value"].to_numpy())
        assert family["p_adjusted"].to_numpy() == pytest.approx(expected, abs=1e-12)
    gain = table["difference"].where(~table["metric"].str.endswith("aeg"), -table["difference"])
    verdict = np.where(table["p_adjusted"] < 0.05, np.where(gain > 0, "better", "worse"), "no_evidence")
    assert table["verdict"].tolist() == np.where(table["p_value"].isna(), "insufficient_data", verdict).tolist()
    assert set(table["verdict"]) == {"better", "worse", "no_evidence", "insufficient_data"}


def test_models_are_judged_apart(corpus: DataFrame, found: pd.DataFrame) -> None:
    """Each model has its own tests with the baseline, however many are compared."""
    both = compare(corpus, models={"new": "s", "by age": "id", "old": "t"})
    of_new = both[both["model"] == "new"].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_new, found, check_exact=True)


def test_the_jackknife_agrees_with_delong_where_rows_are_independent(corpus: DataFrame, found: pd.DataFrame) -> None:
    left_out = compare(corpus, method="jackknife", groups=200, id="id", slices={}, ranges=3)
    by_delong = found[found["slice"] == "all"].reset_index(drop=True)
    same = ["n_low", "n_high", "value", "baseline_value", "difference"]
    pd.testing.assert_frame_equal(left_out[same], by_delong[same], check_exact=True)
    widths = [one["difference_high"] - one["difference_low"] for one in (left_out, by_delong)]
    ratio = (widths[0] / widths[1])[by_delong[["n_low", "n_high"]].min(axis=1) >= 30]
    assert len(ratio) > 10
    assert ratio.between(0.8, 1.25).all()
    assert ratio.median() == pytest.approx(1, abs=0.05)
    assert set(left_out["method"]) == {"jackknife"}
    assert (left_out["n_groups"] <= left_out["n_low"] + left_out["n_high"]).all()
    assert by_delong["n_groups"].isna().all()


def groups_of(rows: DataFrame, cluster: str | None) -> list[int]:
    """The groups of all rows, in the order of ids."""
    group = group_of("id", category(column(cluster), rows.schema[cluster].dataType) if cluster else None, 1 << 20)
    return [row[0] for row in rows.orderBy("id").select(group).collect()]


def test_a_row_without_a_cluster_is_in_none(spark: SparkSession) -> None:
    """Even if its id equals a cluster."""
    rows = spark.range(50).selectExpr("id", "if(id % 2 = 0, NULL, id - 1) AS cluster")
    found = groups_of(rows, "cluster")
    assert len(set(found)) == 50
    assert found[1::2] == groups_of(rows.where("cluster IS NOT NULL").selectExpr("cluster AS id"), None)


def test_the_jackknife_keeps_clusters_together(corpus: DataFrame) -> None:
    """Ten copies of every row in one cluster have the intervals of a single copy."""
    rows = corpus.withColumn("author", corpus["id"].cast("string"))
    copies = rows.crossJoin(corpus.sparkSession.range(10).toDF("copy"))
    asked: dict[str, Any] = {"method": "jackknife", "groups": 200, "cluster": "author", "slices": {}, "id": "author"}
    once, often = (compare(one, **asked, identities=["a", "b"]) for one in (rows, copies))
    assert often["n_low"].tolist() == (10 * once["n_low"]).tolist()
    aucs = once["p_value"].notna() & ~once["metric"].str.endswith("aeg")
    assert aucs.sum() > 5
    for end in ("difference_low", "difference_high"):
        assert often.loc[aucs, end].to_numpy() == pytest.approx(once.loc[aucs, end].to_numpy(), abs=1e-9)


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (None, [["late with new"]]),
        ("author", [["'author'", "{n} of 400"], ["late with new"]]),
        ("few", [["late with new"], ["old with new", "'few'", "only 2 of 100 groups"]]),
    ],
)
def test_a_notebook_is_warned_at_the_line_that_asks(
    corpus: DataFrame, rows: pd.DataFrame, cluster: str | None, words: list[list[str]]
) -> None:
    asked: dict[str, Any] = {"models": {"new": "s", "old": "t", "late": "late"}, "baseline": "new"}
    asked |= {"label": "y", "identities": "a"}
    by: dict[str, Any] = {"method": "jackknife", "cluster": cluster, "id": "id"} if cluster else {}
    with pytest.warns(biasspark.InputWarning, match=r"^compare: ") as caught:
        biasspark.model_comparisons(corpus, **asked, **by)
    ours = [warning for warning in caught if warning.category is biasspark.InputWarning]
    assert {warning.filename for warning in ours} == {__file__}
    texts = [text for warning in ours if (text := str(warning.message)).startswith("compare: ")]
    n = rows["author"].isna().sum()
    for text, of_text in zip(texts, words, strict=True):
        assert [word for word in of_text if word.format(n=n) not in text] == []


# ---- the job


@pytest.fixture(scope="module")
def config(corpus: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comparisons")
    corpus.write.parquet(str(folder / "corpus"))
    return write_config(
        folder,
        label={"column": "y", "threshold": None},
        models={"m": None, "new": "s", "old": "t", "other": "s", "late": "late"},
        identities={"columns": ["a", "b", "few"]},
        compare={"baseline": "old", "models": ["new"]},
    )


def test_the_job_publishes_what_the_function_returns(config: Path, rows: pd.DataFrame, found: pd.DataFrame) -> None:
    done = run_well(config, job=job)
    assert (done.summary["tables"], done.summary["n_rows"]) == ({"model_comparisons": 19}, N)
    shown = done.out.splitlines()
    assert all(word in shown[0] for word in ("new", "better", "old"))
    expected = found[(found["slice"] == "all") & ~found["crossed"]].reset_index(drop=True)
    n_verdicts = expected["verdict"].value_counts()
    counts = [n_verdicts.get(verdict, 0) for verdict in ("worse", "better", "no_evidence", "insufficient_data")]
    assert ["new", "old", "all", *map(str, [rows["s"].notna().sum(), *counts])] in [line.split() for line in shown]
    read = (
        open_views(config.parent / "warehouse")
        .execute(f"SELECT * FROM latest_model_comparisons ORDER BY {', '.join(KEY)}")
        .df()
    )
    same = [*KEY, "value", "difference_low", "p_value"]
    pd.testing.assert_frame_equal(read[same], expected[same], check_exact=True)


RULES = """gate.rule=[
    {name = "fails", model = "old", metric = "bpsn_auc", baseline = "new", max_drop = 0.02, identity = "a"},
    {name = "warns", model = "old", metric = "negative_aeg", baseline = "new", max_rise = 0, worst = true,
     severity = "warn"},
    {name = "keeps", model = "old", metric = "auc", baseline = "new", max_drop = 0.45},
    {name = "left to the nightly job", metric = "bpsn_auc", min = 0.5},
]"""


def test_rules_on_a_baseline_are_evaluated_on_the_differences(config: Path, found: pd.DataFrame) -> None:
    """With the baseline and the model exchanged, better becomes worse."""
    rules = ("--set", 'compare={baseline="new", models=["old", "late"]}', "--set", RULES.replace("\n", " "))
    done = run_job(config, *rules, "--set", f"output.path={config.parent}/gated", job=job)
    assert done.code == 5, done.err
    assert (done.summary["status"], done.summary["gate"]) == ("published", "fail")
    assert [text for text in done.summary["warnings"] if text.startswith("compare: late with new: ")]
    assert done.summary["tables"] == {"model_comparisons": 2 * 19, "comparison_alerts": 1 + 4 + 1}
    assert "gate: 1 fail, 2 warn, 2 insufficient_evidence, 1 pass\nfail: fails, old, all: bpsn_auc of a" in done.out
    read = open_views(config.parent / "gated").execute("SELECT * FROM latest_comparison_alerts").df()
    outcomes = dict(zip(zip(read["rule"], read["identity"], strict=True), read["outcome"], strict=True))
    assert outcomes == {
        ("fails", "a"): "fail", ("warns", "a"): "warn", ("warns", "b"): "insufficient_evidence",
        ("warns", "few"): "insufficient_evidence", ("warns", "(overall)"): "warn", ("keeps", "(overall)"): "pass",
    }  # fmt: skip
    by_key: Any = found[found["slice"] == "all"].set_index(["identity", "metric"])
    fails, expected = read[read["rule"] == "fails"].iloc[0], by_key.loc[("a", "bpsn_auc")]
    change = fails[["change", "change_low", "change_high"]].tolist()
    assert change == pytest.approx([-expected[f"difference{end}"] for end in ("", "_high", "_low")], abs=1e-12)
    assert (fails["baseline_model"], fails["bound_kind"]) == ("new", "max_drop")
    measured = run_job(config, *rules, "--set", f"output.path={config.parent}/gated")
    assert "\ngate: 3 rules with a baseline, judged by" in measured.out


def test_a_cluster_that_the_corpus_lacks_is_named(corpus: DataFrame) -> None:
    asked = {"id": "id", "method": "jackknife", "cluster": "writer", "label": "z"}
    faults = raised_faults(biasspark.InputError, compare, corpus, **asked)
    assert {fault.path for fault in faults} == {("label", "column"), ("compare", "cluster")}
