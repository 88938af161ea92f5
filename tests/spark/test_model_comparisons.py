"""Two models on the same rows: against brute force, cut in any way, by either method, and as a job."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import false_discovery_control, norm

import biasspark
from biasspark.corpus.clusters import cluster_of, group_of
from biasspark.tables.schemas import MODEL_COMPARISONS
from biasspark.tables.views import DUCKDB_FILE
from jobs import bias_metrics
from jobs import compare_models as job
from scripts.drill_intervals import logit_interval, newcombe_interval
from tests.oracle.suite import PAIRS, delong_variance, ordered_doubled
from tests.running_jobs import Done, run_main

N = 400
Z = norm.ppf(0.975)
SLICES = {"short": "id % 2 = 0", "nobody": "id < 0"}
KEY = ["slice", "identity", "metric"]
CONFIG = """
[corpus]
name = "people"
path = "{folder}/corpus"
id = "id"
[label]
column = "y"
[models]
new = "s"
old = "t"
other = "s"
late = "late"
[identities]
columns = ["a", "b", "few"]
[compare]
baseline = "old"
models = ["new"]
[output]
path = "{folder}/warehouse"
"""


def make_rows() -> pd.DataFrame:
    """Scores with many ties, by which a differs; the model is better on it, and its scores are missing on some rows."""
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
    return biasspark.model_comparisons(corpus, **(asked | measures)).toPandas().sort_values(KEY, ignore_index=True)


@pytest.fixture(scope="module")
def found(corpus: DataFrame) -> pd.DataFrame:
    return compare(corpus)


# ---- the definitions


def list_cells(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame, pd.DataFrame]]:
    """Give for every slice, identity and metric the rows of its two cells, scored by both models."""
    rows = rows[rows["s"].notna()]
    states = {name: rows[name].astype("boolean") for name in ("a", "b", "few")}
    states["a & b"] = states["a"] & states["b"]
    slices = {"all": rows["id"] >= 0, "short": rows["id"] % 2 == 0, "nobody": rows["id"] < 0}
    for number, inside in slices.items():
        yield (number, "(overall)", "auc"), rows[inside & ~rows["y"]], rows[inside & rows["y"]]
        for (name, state), (metric, cells) in product(states.items(), PAIRS.items()):
            low, high = (
                rows[
                    inside
                    & (state == cell.startswith("subgroup")).fillna(False)
                    & (rows["y"] == cell.endswith("positive"))
                ]
                for cell in cells
            )
            yield (number, name, metric), low, high


def combine_variance(low: pd.DataFrame, high: pd.DataFrame, sign: int) -> float:
    pairs = [ordered_doubled(low[m], high[m]) / 2 for m in ("s", "t")]
    covariances = [np.cov([one.mean(axis=axis) for one in pairs]) for axis in (0, 1)]
    sizes = (len(high), len(low))
    return float(sum((c[0, 0] + c[1, 1] + 2 * sign * c[0, 1]) / m for c, m in zip(covariances, sizes, strict=True)))


def own_interval(low: pd.Series, high: pd.Series, auc: float) -> tuple[float, float]:
    variance, m, n = delong_variance(low, high), len(low), len(high)
    by_score = newcombe_interval(auc, m, n)
    by_logit = logit_interval(auc, variance) if variance > 0 else by_score
    wider = by_logit[1] - by_logit[0] > by_score[1] - by_score[0]
    return by_logit if variance > 0 and (min(m, n) * auc * (1 - auc) >= 10 or wider) else by_score


def expect(metric: str, low: pd.DataFrame, high: pd.DataFrame) -> dict[str, Any]:
    """What the table says of a metric, from all pairs of its rows."""
    found: dict[str, Any] = {"n_low": len(low), "n_high": len(high)}
    if not len(low) or not len(high):
        return found
    aucs = [ordered_doubled(low[m], high[m]).mean() / 2 for m in ("s", "t")]
    is_gap = metric.endswith("aeg")
    a, b = (auc - 0.5 if is_gap else auc for auc in aucs)
    found |= {"value": a, "baseline_value": b, "difference": abs(a) - abs(b)}
    if min(len(low), len(high)) < 10:
        return found
    signs = [(1, 1)]
    if is_gap:
        ends = [own_interval(low[m], high[m], auc) for m, auc in zip(("s", "t"), aucs, strict=True)]
        allowed = [[1] * (top > 0.5) + [-1] * (bottom < 0.5) for bottom, top in ends]
        signs = list(product(*allowed))
    contrasts = [(s * a - t * b, sqrt(combine_variance(low, high, -s * t))) for s, t in signs]
    least, most = -1.0, 1.0
    if is_gap:  # each by its own interval
        most, least = (s * max(abs(end - 0.5) for end in own) for s, own in zip((1, -1), ends, strict=True))
    return found | {
        "n_signs": len(signs),
        "difference_low": max(min(one - Z * sd for one, sd in contrasts), least),
        "difference_high": min(max(one + Z * sd for one, sd in contrasts), most),
        "p_value": max(2 * norm.sf(abs(one) / sd) for one, sd in contrasts),
    }


NUMBERS = ("value", "baseline_value", "difference", "difference_low", "difference_high", "p_value")


def test_every_number_is_that_of_all_pairs(rows: pd.DataFrame, found: pd.DataFrame) -> None:
    by_key = found.set_index(KEY)
    cells = list(list_cells(rows))
    assert len(cells) == len(found) == 3 * (1 + 4 * 6)
    signs_unknown = 0
    for key, low, high in cells:
        expected, row = expect(key[2], low, high), by_key.loc[key]
        assert (row["n_low"], row["n_high"]) == (expected["n_low"], expected["n_high"])
        for name in NUMBERS:
            assert row[name] == pytest.approx(expected.get(name, np.nan), abs=1e-12, nan_ok=True), (key, name)
        signs_unknown += expected.get("n_signs", 1) > 1
    assert signs_unknown


def test_verdicts_follow_from_p_values_adjusted_slice_by_slice(found: pd.DataFrame) -> None:
    for (_, crossed), own in found.groupby(["slice", "crossed"]):
        tested = own[own["p_value"].notna()]
        assert not tested.empty or own["slice"].iloc[0] == "nobody" or crossed
        if len(tested):
            assert tested["p_adjusted"].to_numpy() == pytest.approx(
                false_discovery_control(tested["p_value"]), abs=1e-12
            )
    gain = found["difference"].where(~found["metric"].str.endswith("aeg"), -found["difference"])
    verdict = np.where(gain > 0, "better", "worse")
    verdict = np.where(found["p_adjusted"] < 0.05, verdict, "no_evidence")
    verdict = np.where(found["p_value"].isna(), "insufficient_data", verdict)
    assert found["verdict"].tolist() == verdict.tolist()
    assert {"better", "no_evidence", "insufficient_data"} <= set(verdict)
    assert set(found["method"]) == {"paired_delong"}
    assert found.columns.tolist() == list(MODEL_COMPARISONS.value_columns)


def test_no_bit_depends_on_ranges_or_on_the_order_of_rows(corpus: DataFrame, found: pd.DataFrame) -> None:
    cut = compare(corpus.orderBy("author").repartition(3), ranges=4, slices={})
    pd.testing.assert_frame_equal(cut, found[found["slice"] == "all"].reset_index(drop=True), check_exact=True)


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


def groups_of(rows: DataFrame, cluster: str | None, n_groups: int = 1 << 20) -> list[int]:
    """The group of every row, in the order of ids."""
    group = group_of("id", cluster_of(cluster, rows.schema), n_groups)
    return [row[0] for row in rows.orderBy("id").select(group).collect()]


def test_a_row_without_a_cluster_is_in_none(spark: SparkSession) -> None:
    """Also where its id is the name of a cluster."""
    rows = spark.range(50).selectExpr("id", "if(id % 2 = 0, NULL, id - 1) AS cluster")
    found = groups_of(rows, "cluster")
    assert len(set(found)) == 50
    assert found[1::2] == groups_of(rows.where("cluster IS NOT NULL").selectExpr("cluster AS id"), None)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_nan_is_no_cluster_and_both_zeros_are_one(spark: SparkSession, kind: str) -> None:
    """As pandas makes of numbers of which some are missing."""
    values = [math.nan, None, 0.0, -0.0, 2.5, 2.5, math.nan]
    rows = spark.createDataFrame(list(enumerate(values)), f"id BIGINT, cluster {kind}")
    found = groups_of(rows, "cluster")
    assert found[2] == found[3]
    assert found[4] == found[5]
    assert len(set(found)) == 5


def compare_flocks(corpus: DataFrame, n_flocks: int) -> pd.DataFrame:
    """Leave out clusters, one after the other, each in a group of its own."""
    flocks = corpus.withColumn("flock", F.col("id") % n_flocks)
    found = compare(flocks, method="jackknife", cluster="flock", id="id", slices={}, identities=["a"], groups=1000)
    assert set(found["n_groups"]) == {n_flocks}
    return found


def test_nine_clusters_are_insufficient_data(corpus: DataFrame) -> None:
    with pytest.warns(UserWarning, match="'flock' has so few values that only 9 of 1000 groups have rows"):
        found = compare_flocks(corpus, 9)
    assert set(found["verdict"]) == {"insufficient_data"}
    assert found["p_value"].isna().all()
    assert found["difference"].notna().all()


def test_ten_clusters_are_judged_by_student(corpus: DataFrame, rows: pd.DataFrame) -> None:
    found = compare_flocks(corpus, 10)
    assert set(found["verdict"]) <= {"better", "no_evidence"}
    assert found["p_value"].notna().all()
    overall = found.set_index("metric").loc["auc"]
    kept = rows[rows["s"].notna()]
    replicates = np.array([find_difference(kept[kept["id"] % 10 != flock]) for flock in range(10)])
    sd, law = sqrt(9 / 10 * ((replicates - replicates.mean()) ** 2).sum()), stats.t(9)
    # SciPy's own quantile is right to 3e-11 before 1.17.
    difference, half = find_difference(kept), brentq(lambda t: law.sf(t) - 0.025, 1, 10, xtol=1e-15) * sd
    assert [overall["difference_low"], overall["difference_high"]] == pytest.approx(
        [difference - half, difference + half], abs=1e-12
    )
    assert overall["p_value"] == pytest.approx(2 * law.sf(abs(difference) / sd), rel=1e-9)


def find_difference(rows: pd.DataFrame) -> float:
    """AUC of the model less that of the baseline."""
    low, high = rows[~rows["y"]], rows[rows["y"]]
    new, old = (ordered_doubled(low[name], high[name]).mean() / 2 for name in ("s", "t"))
    return float(new - old)


@pytest.mark.slow
def test_the_jackknife_keeps_clusters_together(corpus: DataFrame) -> None:
    """Of ten copies of every row that stay together the intervals are those of one."""
    rows = corpus.withColumn("author", corpus["id"].cast("string"))
    copies = rows.crossJoin(corpus.sparkSession.range(10).toDF("copy"))
    asked: dict[str, Any] = {"method": "jackknife", "groups": 200, "cluster": "author", "slices": {}, "id": "author"}
    once, often = (compare(one, **asked, identities=["a", "b"]) for one in (rows, copies))
    assert often["n_low"].tolist() == (10 * once["n_low"]).tolist()
    aucs = once["p_value"].notna() & ~once["metric"].str.endswith("aeg")
    assert aucs.sum() > 5
    for end in ("difference_low", "difference_high"):
        assert often.loc[aucs, end].to_numpy() == pytest.approx(once.loc[aucs, end].to_numpy(), abs=1e-9)


APART = "compare: late with new: no row with a label is scored by both, so nothing is compared."
LOOSE = "compare: 'author' has no value on {share:.0%} of the rows ({n} of 400). Each of them stands for itself."
FEW = (
    "compare: old with new: 'few' has so few values that only 2 of 100 groups have rows, and a verdict takes 10. Name "
    "another column, or take more `groups` if it has more values."
)


@pytest.mark.parametrize(("cluster", "said"), [(None, [APART]), ("author", [LOOSE, APART]), ("few", [APART, FEW])])
def test_a_notebook_is_warned_at_the_line_that_asks(
    corpus: DataFrame, rows: pd.DataFrame, cluster: str | None, said: list[str]
) -> None:
    asked = {"models": {"new": "s", "old": "t", "late": "late"}, "baseline": "new", "label": "y", "identities": "a"}
    by: dict[str, Any] = {"method": "jackknife", "cluster": cluster, "id": "id"} if cluster else {}
    with pytest.warns(biasspark.InputWarning, match="^compare: ") as caught:
        biasspark.model_comparisons(corpus, **asked, **by)
    n, ours = int(rows["author"].isna().sum()), [own for own in caught if own.category is biasspark.InputWarning]
    of_comparison = [text for own in ours if (text := str(own.message)).startswith("compare: ")]
    assert of_comparison == [text.format(n=n, share=n / N) for text in said]
    assert {own.filename for own in ours} == {__file__}


# ---- the job


@pytest.fixture(scope="module")
def folder(corpus: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comparisons")
    corpus.write.parquet(str(folder / "corpus"))
    (folder / "job.toml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    return folder


def run(folder: Path, *flags: str) -> Done:
    return run_main(job.main, "--config", folder / "job.toml", "--run-date", "2026-01-15", *flags)


def test_the_plan(folder: Path) -> None:
    jackknife = ("--set", 'compare={baseline="old", method="jackknife", cluster="author"}')
    code, out, _ = run(folder, "--dry-run", *jackknife)
    assert code == 0
    assert "compared:    new, other, late with old\n" in out
    assert "method:      jackknife, 100 groups by id, whole clusters of author\n" in out
    assert not (folder / "warehouse").exists()


def test_the_job_publishes_what_the_function_returns(folder: Path, rows: pd.DataFrame, found: pd.DataFrame) -> None:
    code, out, err = run(folder)
    assert code == 0, err
    *shown, last = out.splitlines()
    summary = json.loads(last)
    assert summary["tables"] == {"model_comparisons": 19, "comparison_alerts": 0}
    assert summary["n_rows"] == N
    assert "comparing 1 model with old: 400 rows read, 1 slice, 3 identities, 0 crossed pairs\n" in err
    assert shown[0] == "new significantly better than old:"
    tally, _, where, _ = shown[-4:]  # a warning of the scores that lack comes last
    n_verdicts = found.loc[(found["slice"] == "all") & ~found["crossed"], "verdict"].value_counts()
    counts = [n_verdicts.get(verdict, 0) for verdict in ("worse", "better", "no_evidence", "insufficient_data")]
    assert tally.split() == ["new", "old", "all", *map(str, [rows["s"].notna().sum(), *counts])]
    assert where.startswith("latest_model_comparisons has every comparison")
    with duckdb.connect() as connection:
        connection.execute((folder / "warehouse" / DUCKDB_FILE).read_text(encoding="utf-8"))
        read = connection.execute(f"SELECT * FROM latest_model_comparisons ORDER BY {', '.join(KEY)}").df()
    same = [*KEY, "value", "difference_low", "p_value"]
    expected = found[(found["slice"] == "all") & ~found["crossed"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(read[same], expected[same], check_exact=True)


RULES = """gate.rule=[
    {name = "fails", metric = "bpsn_auc", baseline = "new", max_drop = 0.02, identity = "a"},
    {name = "warns", metric = "negative_aeg", baseline = "new", max_rise = 0, severity = "warn", worst = true},
    {name = "keeps", metric = "auc", baseline = "new", max_drop = 0.45},
    {name = "left to the nightly job", metric = "bpsn_auc", min = 0.5},
]"""


@pytest.fixture(scope="module")
def gated(folder: Path) -> tuple[int, str, str]:
    """The baseline and the model exchanged: what was better is worse."""
    turned = ("--set", 'compare={baseline="new", models=["old"]}', "--set", RULES.replace("\n", " "))
    return run(folder, *turned, "--set", f"output.path={folder}/gated")


def test_rules_on_a_baseline_are_judged_on_the_differences(
    folder: Path, gated: tuple[int, str, str], found: pd.DataFrame
) -> None:
    code, out, err = gated
    assert code == 5, err
    summary = json.loads(out.splitlines()[-1])
    assert (summary["status"], summary["gate"]) == ("published", "fail")
    assert summary["tables"] == {"model_comparisons": 19, "comparison_alerts": 1 + 4 + 1}
    with duckdb.connect() as connection:
        connection.execute((folder / "gated" / DUCKDB_FILE).read_text(encoding="utf-8"))
        read = connection.execute("SELECT * FROM latest_comparison_alerts ORDER BY rule, identity").df()
    by_key = found[found["slice"] == "all"].set_index(["identity", "metric"])
    fails = read[read["rule"] == "fails"].iloc[0]
    expected = by_key.loc["a", "bpsn_auc"]
    assert fails["change"] == pytest.approx(-expected["difference"], abs=1e-12)
    assert fails["change_low"] == pytest.approx(-expected["difference_high"], abs=1e-12)
    sd = (expected["difference_high"] - expected["difference_low"]) / 2 / Z
    z = (expected["difference"] - 0.02) / sd  # how much worse the old model is
    assert fails["p_violation_adjusted"] == pytest.approx(norm.sf(z), rel=1e-9)
    assert (fails["outcome"], fails["baseline_model"], fails["bound_kind"]) == ("fail", "new", "max_drop")
    outcomes = dict(zip(zip(read["rule"], read["identity"], strict=True), read["outcome"], strict=True))
    assert outcomes["keeps", "(overall)"] == "pass"
    assert outcomes["warns", "a"] == outcomes["warns", "(overall)"] == "warn"
    assert outcomes["warns", "few"] == "insufficient_evidence"


def test_the_screen_says_what_came_of_the_rules(gated: tuple[int, str, str]) -> None:
    _, out, _ = gated
    assert "\ngate: 1 fail, 2 warn, 2 insufficient_evidence, 1 pass\nfail: fails, old, all: bpsn_auc of a is 0." in out
    assert "that of new 0." in out
    [undecided] = [line for line in out.splitlines() if line.startswith("insufficient_evidence")]
    assert "2 checks" in undecided
    assert "latest_comparison_alerts" in undecided


def test_a_rule_on_a_baseline_is_left_to_the_comparison(folder: Path) -> None:
    rules = ("--set", RULES.replace("\n", " "), "--set", 'compare={baseline="new", models=["old"]}')
    flags = ("--config", folder / "job.toml", "--run-date", "2026-01-15", "--dry-run", *rules)
    left = "gate:        left to the nightly job; left to jobs/compare_models.py: fails, warns, keeps\n"
    assert left in run_main(bias_metrics.main, *flags).out
    assert "gate:        fails, warns, keeps\n" in run(folder, "--dry-run", *rules).out


def warn(folder: Path, name: str, asked: str) -> list[str]:
    """Give what the job says of a comparison that is published all the same."""
    code, out, err = run(folder, "--set", f"compare={{{asked}}}", "--set", f"output.path={folder}/{name}")
    assert code == 0, err
    return [text for text in json.loads(out.splitlines()[-1])["warnings"] if text.startswith("compare: ")]


def test_rows_without_a_cluster_are_counted(folder: Path, rows: pd.DataFrame) -> None:
    n = int(rows["author"].isna().sum())
    assert warn(folder, "loose", 'baseline="old", models=["new"], method="jackknife", cluster="author"') == [
        f"compare: 'author' has no value on {n / N:.0%} of the rows ({n} of 400). Each of them stands for itself."
    ]


def test_too_few_clusters_are_warned_of(folder: Path) -> None:
    assert warn(folder, "few", 'baseline="old", models=["new", "other"], method="jackknife", cluster="few"') == [
        "compare: new, other with old: 'few' has so few values that only 2 of 100 groups have rows, and a verdict "
        "takes 10. Name another column, or take more `groups` if it has more values."
    ]


def test_labels_that_are_all_alike_are_a_warning(folder: Path) -> None:
    asked = ("corpus.filter='y'", f"output.path='{folder}/alike'", "compare={baseline='old'}")
    done = run(folder, *(part for key in asked for part in ("--set", key)))
    assert done.code == 0, done.err
    assert [text for text in done.summary["warnings"] if "with old" in text and "is negative" in text]


@pytest.mark.parametrize("method", ["delong", "jackknife"])
def test_models_that_score_no_row_in_common_are_named(folder: Path, method: str) -> None:
    assert warn(folder, method, f'baseline="new", models=["old", "late"], method="{method}"') == [
        "compare: late with new: no row with a label is scored by both, so nothing is compared."
    ]


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (
            ('--set=compare={baseline="old", method="jackknife", cluster="writer"}',),
            3,
            "[compare] cluster: the corpus has",
        ),
        (('--set=compare.models=["old"]',), 2, '[compare] models: "old": It must be one of "new", "other", "late"'),
    ],
)
def test_faults(folder: Path, flags: tuple[str, ...], code: int, message: str) -> None:
    found, _, err = run(folder, *flags)
    assert found == code
    assert message in err
