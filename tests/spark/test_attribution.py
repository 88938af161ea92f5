"""AUC attribution from end to end: the public functions against loops over all pairs, SciPy and scikit-learn."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from statistics import variance
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy.stats import pearsonr
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark.config import Measures, parse_measures
from biasspark.errors import ABSENT, ConfigError, InputError
from biasspark.tables.schemas import tables_of
from biasspark.workflows.attribute import list_tables, rank_surveyed, survey_rows
from tests.harness.least_configuration import key_of, raised_fault, raised_faults
from tests.oracle import attribution as oracle
from tests.oracle.attribution import Example
from tests.oracle.suite import delong_variance

SCHEMA = "id INT, target BOOLEAN, s1 DOUBLE, s2 DOUBLE, age DOUBLE, job STRING, text STRING"
HOSTILE = 'it\'s a \\ $1 \n"job"'
JOBS = ("cook", "Cook", HOSTILE, None)
Z = 1.959963984540054


def make_rows(n_rows: int = 300) -> list[tuple[Any, ...]]:
    """Scores with ties that are worse for the old, features with nulls and NaN, and some rows that no model can use."""
    rng = random.Random(7)
    rows: list[tuple[Any, ...]] = []
    for number in range(n_rows):
        label, age, job = rng.random() < 0.4, rng.choice([18.0, 25.5, 40.0, 61.0, None, math.nan]), rng.choice(JOBS)
        noise = 0.5 if age == 61.0 else 0.15
        first = min(max(round(0.35 + 0.3 * label + rng.gauss(0, noise), 2), 0.0), 1.0)
        second = min(max(round(0.4 + 0.2 * label + rng.gauss(0, 0.2), 1), 0.0), 1.0)
        rows.append((number, label, first, second, age, job, "..."))
    rows[5] = (5, None, *rows[5][2:])
    rows[6] = (6, True, math.nan, *rows[6][3:])
    rows[7] = (7, False, 0.5, None, *rows[7][4:])
    return rows


ROWS = make_rows()
TREE = {"max_depth": 2, "min_leaf": 10}
PART: dict[str, Any] = {
    "write_examples": True,
    "numeric": ["age"],
    "categorical": ["job"],
    "groupings": {"job": "job", "old": "age > 50"},
    "segments": {"cooks": "lower(job) = 'cook'", "nobody": "age < 0"},
    "pairs_of": {"cooks, old": {"negatives": "lower(job) = 'cook'", "positives": "age > 50"}},
    "compare": [["s2", "s1"]],
    "targets": ["auc", "gini"],
    "tree": TREE,
    "pairs": {"min_side": 5, "min_leaf": 20, "max_depth": 2},
    "slice_search": {"min_rows": 10, "most": 3},
}
MEASURED = {"models": ["s1", "s2"], "label": {"column": "target"}, "slices": {"elder": "age >= 40"}}


def corpus_of(spark: SparkSession, partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).repartition(partitions)


def is_elder(age: float | None) -> bool:
    return age is not None and (math.isnan(age) or age >= 40)  # NaN is above all numbers in Spark


def examples_of(model: str, name: str = "all") -> dict[int, Example]:
    """The rows that count, by id."""
    place = 2 if model == "s1" else 3
    usable = [row for row in ROWS if row[1] is not None and row[place] is not None and not math.isnan(row[place])]
    return {row[0]: Example(row[place], row[1]) for row in usable if name == "all" or is_elder(row[4])}


@pytest.fixture(scope="module")
def found(spark_session: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """Every table of the job, as rows."""
    return attribute(corpus_of(spark_session), parse_measures({**MEASURED, "attribution": PART}, grouped=False))


def attribute(corpus: DataFrame, measures: Measures) -> dict[str, list[dict[str, Any]]]:
    with survey_rows(corpus, measures, "id") as surveyed, rank_surveyed(surveyed) as ranked:
        tables, _ = list_tables(surveyed, ranked)
        return {
            table.name: [row.asDict() for row in rows.collect()] if isinstance(rows, DataFrame) else rows.to_pylist()
            for table, rows in tables.items()
        }


Found = dict[str, list[dict[str, Any]]]


def test_every_table_of_the_job_has_rows(found: Found) -> None:
    assert set(found) == {table.name for table in tables_of("attribution")}
    assert all(found.values())


@pytest.mark.parametrize("model", ["s1", "s2"])
@pytest.mark.parametrize("name", ["all", "elder"])
def test_every_row_has_its_attribution(found: Found, model: str, name: str) -> None:
    rows = {
        int(row["row_id"]): row
        for row in found["example_attributions"]
        if (row["model"], row["slice"]) == (model, name)
    }
    examples = examples_of(model, name)
    assert set(rows) == set(examples)
    for number, example in examples.items():
        row = rows[number]
        assert (row["label"], row["score"]) == (example.label, example.score)
        assert row["attribution"] == oracle.attribution(example, list(examples.values()))
        assert row["ordered_doubled"] == 4 * row["attribution"]
        assert row["normalized_attribution"] == pytest.approx(row["attribution"] / row["n_opposite"], abs=1e-15)
    positives = sum(example.label for example in examples.values())
    total = math.fsum(row["attribution"] for row in rows.values())
    auc = roc_auc_score([e.label for e in examples.values()], [e.score for e in examples.values()])
    assert total / positives / (len(rows) - positives) == pytest.approx(auc, abs=1e-12)


def test_correlations_are_those_of_scipy(found: Found) -> None:
    rows = found["attribution_correlations"]
    assert len(rows) == 2 * 2 * 2 * 2
    for row in rows:
        examples = list(examples_of(row["model"], row["slice"]).values())
        share = oracle.attribution if row["attribution"] == "total" else oracle.normalized
        loss = oracle.cross_entropy if row["loss"] == "cross_entropy" else oracle.gini
        theirs = pearsonr([share(example, examples) for example in examples], list(map(loss, examples)))
        assert row["pearson"] == pytest.approx(theirs.statistic, abs=1e-12)
        assert row["n_rows"] == len(examples)


def check_mean(row: Mapping[str, Any], name: str, mean: float, variance: float, within: tuple[float, float]) -> None:
    """Check a mean with its interval, which is cut off at the least and the most that it may be."""
    half = Z * math.sqrt(variance)
    ends = (max(mean - half, within[0]), min(mean + half, within[1]))
    assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx((mean, *ends), abs=1e-12)


def check_pairs(row: Mapping[str, Any], positives: list[Example], negatives: list[Example]) -> float:
    """Check what a row counts of its pairs; return how many are rightly ordered."""
    ordered = float(oracle.credits_of(positives, negatives).sum())
    n_pairs = len(positives) * len(negatives)
    assert (row["n_positive"], row["n_negative"], row["n_pairs"]) == (len(positives), len(negatives), n_pairs)
    assert row["ordered_doubled"] == 2 * ordered
    assert row["auc"] == (pytest.approx(ordered / n_pairs, abs=1e-12) if n_pairs else None)
    return ordered


def test_losses_by_segment(found: Found) -> None:
    rows = {(row["model"], row["slice"], row["segment"]): row for row in found["loss_by_segment"]}
    assert len(rows) == len(found["loss_by_segment"]) == 2 * 2 * 3
    cooks = {row[0] for row in ROWS if (row[5] or "").lower() == "cook"}
    for (model, name, segment), row in rows.items():
        examples = examples_of(model, name)
        chosen = {"(overall)": set(examples), "cooks": cooks & set(examples), "nobody": set()}[segment]
        members = [examples[number] for number in sorted(chosen)]
        assert row["predicate"] == PART["segments"].get(segment)
        assert (row["n_rows"], row["n_positive"]) == (len(members), sum(example.label for example in members))
        if segment == "nobody":
            counted = {"model", "slice", "segment", "predicate", "n_rows", "n_positive"}
            assert {value for key, value in row.items() if key not in counted} == {None}
            continue
        whole = list(examples.values())
        assert row["auc"] == pytest.approx(oracle.auc(members), abs=1e-12)
        for measure, loss, most in (
            ("cross_entropy", oracle.cross_entropy, math.inf),
            ("gini_impurity", oracle.gini, 1.0),
        ):
            losses = list(map(loss, members))
            check_mean(row, measure, oracle.mean_of(loss, members), variance(losses) / len(losses), (0.0, most))
        mean = oracle.mean_of(partial(oracle.normalized, rows=whole), members)
        spread = oracle.variance([number in chosen for number in examples], whole)
        check_mean(row, "mean_normalized_attribution", mean, spread, (0.0, 0.5))
        scores = ([example.score for example in members if example.label == label] for label in (False, True))
        assert row["auc_variance"] == pytest.approx(delong_variance(*scores), abs=1e-12)
        assert 0 <= row["auc_low"] < row["auc"] < row["auc_high"] <= 1
        assert row["auc_method"] in {"logit_delong", "newcombe"}


def test_named_pairs_are_counted_over_all_pairs(found: Found) -> None:
    assert len(found["named_pairs"]) == 4
    by_id = {row[0]: row for row in ROWS}
    for row in found["named_pairs"]:
        examples = examples_of(row["model"], row["slice"])
        negatives = [e for n, e in examples.items() if not e.label and (by_id[n][5] or "").lower() == "cook"]
        positives = [e for n, e in examples.items() if e.label and by_id[n][4] is not None and not by_id[n][4] <= 50]
        check_pairs(row, positives, negatives)
        assert row["n_pairs"] > 0


def test_crosses_are_counted_over_all_pairs(found: Found) -> None:
    groups: dict[str, Callable[[tuple[Any, ...]], str]] = {
        "job": lambda row: row[5] or "(null)",
        "old": lambda row: "(null)" if row[4] is None else str(not row[4] <= 50).lower(),
    }
    crosses: dict[tuple[str, ...], dict[tuple[str, str], dict[str, Any]]] = defaultdict(dict)
    for row in found["auc_crosses"]:
        crosses[row["model"], row["slice"], row["grouping"]][row["positive_group"], row["negative_group"]] = row
    assert len(crosses) == 8
    by_id = {row[0]: row for row in ROWS}
    for (model, name, grouping), of_grouping in crosses.items():
        examples = examples_of(model, name)
        members = defaultdict(list)
        for number, example in examples.items():
            members[groups[grouping](by_id[number])].append(example)
        assert set(of_grouping) == {(high, low) for high in members for low in members}
        wrong = 0.0
        for (high, low), row in of_grouping.items():
            positives = [example for example in members[high] if example.label]
            negatives = [example for example in members[low] if not example.label]
            ordered = check_pairs(row, positives, negatives)
            assert row["headroom_pairs"] == len(positives) * len(negatives) - ordered
            wrong += row["headroom_pairs"]
            if not row["n_pairs"]:
                assert {row[name] for name in ("auc_low", "auc_high", "auc_variance", "auc_method")} == {None}
                continue
            assert row["auc_low"] <= row["auc"] <= row["auc_high"]
            assert row["auc_method"] in {"logit_delong", "newcombe"}
            scores = ([example.score for example in side] for side in (negatives, positives))
            assert row["auc_variance"] == pytest.approx(delong_variance(*scores), abs=1e-12)
        assert math.fsum(row["headroom_share"] for row in of_grouping.values()) == pytest.approx(1, abs=1e-12)
        n_positive = sum(example.label for example in examples.values())
        headroom = 1 - oracle.auc(list(examples.values()))
        assert wrong / n_positive / (len(examples) - n_positive) == pytest.approx(headroom, abs=1e-12)


def members_of(spark: SparkSession, predicates: Iterable[str]) -> dict[str, set[int]]:
    """The ids that each predicate selects, in one query."""
    asked = sorted(set(predicates))
    rows = corpus_of(spark).select("id", *(F.expr(text).alias(f"p{n}") for n, text in enumerate(asked))).collect()
    return {text: {row["id"] for row in rows if row[f"p{n}"]} for n, text in enumerate(asked)}


def honest_ids(spark: SparkSession) -> set[int]:
    hashed = corpus_of(spark).selectExpr(
        "id", "pmod(xxhash64(1L, CAST(id AS STRING)), 1073741824) < 536870912 AS honest"
    )
    return {row["id"] for row in hashed.where("honest").collect()}


def test_nodes_and_slices_are_what_their_predicates_select(spark: SparkSession, found: Found) -> None:
    honest = honest_ids(spark)
    nodes = [row for row in found["attribution_segments"] if not row["baseline_model"]]
    nodes += [row | {"target": "slice"} for row in found["attribution_slices"]]
    assert {(row["model"], row["slice"], row["target"]) for row in nodes} == set(
        product(("s1", "s2"), ("all", "elder"), ("auc", "gini", "slice"))
    )
    selected = members_of(spark, (row["predicate"] for row in nodes))
    for row in nodes:
        examples, selected_rows = examples_of(row["model"], row["slice"]), selected[row["predicate"]]
        assert selected_rows & set(examples_of(row["model"])) <= set(examples)
        whole, inside = list(examples.values()), selected_rows & set(examples)
        estimating = [examples[number] for number in sorted(inside & honest)]
        assert (row["n_train"], row["n_honest"]) == (len(inside - honest), len(estimating))
        value = oracle.gini if row["target"] == "gini" else partial(oracle.normalized, rows=whole)
        mean = oracle.mean_of(value, estimating)
        if row["target"] != "gini":
            spread = oracle.variance([number in inside & honest for number in examples], whole)
        else:
            spread = math.fsum((value(row) - mean) ** 2 for row in estimating) / (len(estimating) - 1) / len(estimating)
        check_mean(row, "mean_honest", mean, spread, (0.0, 1.0 if row["target"] == "gini" else 0.5))


def test_the_leaves_of_a_tree_share_all_that_is_lost(found: Found) -> None:
    shares: dict[tuple[str, ...], float] = defaultdict(float)
    for row in found["attribution_segments"]:
        if row["is_leaf"]:
            shares[row["model"], row["baseline_model"], row["slice"], row["target"]] += row["loss_share"]
    assert len(shares) == 10
    assert all(share == pytest.approx(1, abs=1e-12) for share in shares.values())


def check_compared(spark: SparkSession, nodes: list[dict[str, Any]], rows: list[tuple[Any, ...]]) -> None:
    """Check the nodes of a tree of s2 against s1, over rows of which ids may repeat."""
    honest, members = honest_ids(spark), members_of(spark, (node["predicate"] for node in nodes))
    for node in nodes:
        scored = examples_of("s1", node["slice"]).keys() & examples_of("s2", node["slice"]).keys()
        common = [row for row in rows if row[0] in scored]
        model, baseline = ([Example(row[column], row[1]) for row in common] for column in (3, 2))
        inside = [row[0] in members[node["predicate"]] & honest for row in common]
        differences = [
            oracle.normalized(a, model) - oracle.normalized(b, baseline)
            for a, b, is_in in zip(model, baseline, inside, strict=True)
            if is_in
        ]
        assert node["n_honest"] == len(differences)
        mean, variance = math.fsum(differences) / len(differences), oracle.variance(inside, model, baseline)
        check_mean(node, "mean_honest", mean, variance, (-math.inf, math.inf))


def test_two_models_are_compared_on_the_rows_that_both_score(spark: SparkSession, found: Found) -> None:
    nodes = [row for row in found["attribution_segments"] if row["baseline_model"]]
    kinds = {(row["model"], row["baseline_model"], row["slice"]) for row in nodes}
    assert kinds == {("s2", "s1", "all"), ("s2", "s1", "elder")}
    check_compared(spark, nodes, ROWS)


def test_models_are_compared_row_by_row_where_ids_repeat(spark: SparkSession) -> None:
    """Every third id is of two rows, and every sixth of three."""
    rows = [*ROWS, *ROWS[::3], *ROWS[::6]]
    part = {"numeric": ["age"], "compare": [["s2", "s1"]], "tree": TREE}
    nodes = attribute(
        spark.createDataFrame(rows, SCHEMA), parse_measures({**MEASURED, "attribution": part}, grouped=False)
    )
    compared = [row for row in nodes["attribution_segments"] if row["baseline_model"]]
    assert len(compared) > 4
    check_compared(spark, compared, rows)


def test_scores_outside_0_to_1_have_no_losses_nor_trees_of_them(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(n, n % 3 == 0, (n * 7 % 11) - 5.0) for n in range(40)], "id INT, y BOOLEAN, s DOUBLE"
    )
    (row,) = biasspark.loss_by_segment(frame, id="id", models=["s"], label="y").collect()
    assert (row["cross_entropy"], row["gini_impurity"]) == (None, None)
    assert row["mean_normalized_attribution"] == pytest.approx(row["auc"] / 2, abs=1e-12)
    trees: dict[str, Any] = {"numeric": ["s"], "targets": ["gini"], "tree": {"min_leaf": 2}}
    assert biasspark.attribution_segments(frame, id="id", models=["s"], label="y", **trees).isEmpty()


def test_a_model_of_log_odds_beside_one_of_probabilities(spark: SparkSession) -> None:
    """Either has the losses of its probabilities; trees of losses, too."""
    values = "id INT, y BOOLEAN, log_odds DOUBLE, p DOUBLE, q DOUBLE, x INT"
    odds = [(n * 7 % 11) - 5.0 for n in range(80)]
    rows = [(n, n % 3 == 0, odd, 1 / (1 + math.exp(-odd)), (n * 5 % 13) / 12, n % 4) for n, odd in enumerate(odds)]
    frame, link = spark.createDataFrame(rows, values), {"m": "logit"}
    searched = {"numeric": ["x"], "targets": ["gini"], "tree": {"min_leaf": 5, "max_depth": 1}}

    def rows_of(column: str, link: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
        asked = {"models": {"m": column, "q": "q"}, "label": {"column": "y"}}
        found = attribute(frame, parse_measures(asked | {"attribution": {**searched, "link": link}}, grouped=False))
        return {
            table: sorted(rows, key=lambda row: tuple(map(str, row.values()))) for table, rows in found.items() if rows
        }

    linked, plain = rows_of("log_odds", link), rows_of("p", {})
    assert set(linked) == {"loss_by_segment", "attribution_correlations", "attribution_segments"}
    for table, found in linked.items():
        assert found == [pytest.approx(row, abs=1e-12) for row in plain[table]]
        assert len(found) >= 2
        assert {row["model"] for row in found} == {"m", "q"}
    fault = raised_fault(ConfigError, biasspark.loss_by_segment, frame, id="id", label="y", models=["q"], link=link)
    assert fault.path == ("attribution", "link", "m")


def test_the_settings_of_a_tree_split_the_rows_of_slices_without_a_tree(spark: SparkSession) -> None:
    """A tree would need more rows than there are."""
    asked: dict[str, Any] = {"id": "id", "models": ["s1"], "label": "target", "numeric": ["age"]}
    asked |= {"slice_search": {"min_rows": 10}, "tree": {"seed": 2}}
    with pytest.warns(biasspark.InputWarning, match="distinct values") as caught:
        assert biasspark.attribution_slices(corpus_of(spark), **asked).count()
    assert [warning for warning in caught if "min_leaf" in str(warning.message)] == []


def test_what_is_wrong_is_said_before_anything_is_ranked(spark: SparkSession) -> None:
    part = {"numeric": ["job", "agee"], "groupings": {"g": "sum(age)"}, "segments": {"s": "age"}, "tree": {}}
    measures = parse_measures({**MEASURED, "attribution": part}, grouped=False)
    faults = raised_faults(InputError, attribute, corpus_of(spark), measures)
    assert {(key_of(fault), fault.value) for fault in faults} == {
        ("attribution.numeric", ABSENT),
        ("attribution.segments.s", "age"),
        ("attribution.groupings.g", "sum(age)"),
    }
    assert "agee" in "".join(map(str, faults))


def test_columns_of_the_corpus_keep_their_meaning_whatever_their_names(spark: SparkSession) -> None:
    """Scores, label and features under the names of encoded columns."""
    names = {"s1": "feature_0", "s2": "score", "target": "draw", "job": "feature_1", "age": "label"}
    renamed, plain = (
        biasspark.attribution_segments(
            corpus_of(spark).withColumnsRenamed(new),
            id="id",
            models={"a": new["s1"], "b": new["s2"]},
            label=new["target"],
            slices={"elder": f"{new['age']} >= 40"},
            numeric=[new["age"]],
            categorical=[new["job"]],
            compare=[("a", "b")],
            tree=TREE,
        ).drop("rule", "predicate")
        for new in (names, {name: name for name in names})
    )
    assert sorted(map(str, renamed.collect())) == sorted(map(str, plain.collect())) != []


def test_tables_of_one_ranking_are_those_of_the_functions(spark: SparkSession, found: Found) -> None:
    keys: dict[str, Any] = {"id": "id", "models": ["s1", "s2"], "label": "target"}
    attributed = biasspark.attribute(corpus_of(spark), numeric=["age"], pairs={"min_side": 2}, tree=TREE, **keys)
    assert "attribution_segments" in repr(attributed)
    segments = biasspark.attribution_segments(corpus_of(spark), numeric=["age"], tree=TREE, **keys)
    assert attributed.attribution_segments().collect() == segments.collect()
    assert attributed.loss_by_segment().collect() == biasspark.loss_by_segment(corpus_of(spark), **keys).collect()
    assert attributed.pair_segments().count() >= 2
    with pytest.raises(ConfigError, match=r"auc_crosses: .* groupings="):
        attributed.auc_crosses()
