"""Sums over the rows of segments and their placements, and all that is searched, against loops over the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.attribution.block_sums import CELLS_A_PART, SummedValue, Target, sum_blocks
from biasspark.attribution.crosses import count_pairs_of_groups, list_named_pairs, measure_crosses
from biasspark.attribution.influence import Placed, read_sets
from biasspark.attribution.losses import sum_losses
from biasspark.attribution.measured_sets import MAX_SETS, MeasuredSet, Regions, cut_block, measure_sets, sum_range
from biasspark.attribution.moments import Moments
from biasspark.attribution.slice_search import search_slices
from biasspark.attribution.trees import grow_tree
from biasspark.config.attribution_settings import NamedPair, SliceSearch, TreeSettings
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.features import Condition
from biasspark.ranking import row_blocks
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.row_blocks import Blocks, run_searches
from biasspark.tables.schemas import NAMED_PAIRS
from tests.fixtures.ranked_rows import N_ROWS, Ranked, blocks_of, cut_blocks, draw_examples, find, place_segment
from tests.harness.grown_trees import feature_of
from tests.oracle import attribution as oracle
from tests.oracle import suite
from tests.oracle.attribution import Example

FEATURES = (feature_of("age", 3, numeric=True, nullable=True), feature_of("work", 3, nullable=True))
CONDITIONS: tuple[Condition, ...] = (
    {},
    {0: frozenset({0, 1})},
    {1: frozenset({2})},
    {0: frozenset({1, 2}), 1: frozenset({0, 3})},
    {0: frozenset({3}), 1: frozenset({1})},
    {0: frozenset({7})},
)
NESTED: tuple[Condition, ...] = (
    {},
    {0: frozenset({0, 1})},
    {0: frozenset({2, 3})},
    {0: frozenset({0, 1}), 1: frozenset({2})},
    {0: frozenset({2, 3}), 1: frozenset({0, 3})},
    {0: frozenset({7})},
)
"""As of the nodes of a tree, in part without siblings."""
N_MODELS = 2
TARGETS = tuple(
    Target(model, part, name)
    for model, part, name in [(0, 0, "auc"), (0, 0, "gini"), (0, 1, "auc"), (1, 0, "cross_entropy"), (0, 2, "auc")]
)
COMPARED = (Target(2, 0, "auc"), Target(2, 1, "auc"), Target(2, 2, "auc"))


def measure(
    blocks: Blocks, conditions: Sequence[Condition], edges: Sequence[float] = ()
) -> Mapping[Target, Sequence[MeasuredSet]]:
    of_targets = dict.fromkeys(TARGETS, CONDITIONS) | dict.fromkeys(COMPARED, conditions)
    return measure_sets(blocks, of_targets, N_MODELS, {2: np.array(edges, np.float64)})


def sum_node(rows: Sequence[Example], members: Sequence[Example], values: Mapping[Example, float]) -> MeasuredSet:
    """The sums of a node by their definition; values in units of 2^-57."""

    def moments(honest: bool) -> Moments:
        rounded = [oracle.round_to_units(values[row], 57) for row in members if row.honest == honest]
        total, squares = sum(rounded, Fraction()), sum((value**2 for value in rounded), Fraction())
        return Moments(len(rounded), total, squares)

    placed = dict(zip(rows, oracle.placements(rows).tolist(), strict=True))
    lost = {row: 2 * sum(other.label != row.label for other in rows) - placed[row] for row in members}

    return MeasuredSet(moments(False), moments(True), sum(lost.values()))


def test_sums_and_variances_of_every_set() -> None:
    models = [Ranked(draw_examples(seed, 130, FEATURES), [0.4, 0.6]) for seed in (1, 2)]
    models.append(Ranked(draw_examples(3, 140, FEATURES, baseline=True), [0.5]))
    measured = measure(blocks_of(models, 2), NESTED, [0.3, 0.45])
    for target in (*TARGETS, *COMPARED):
        rows = [row for row in models[target.model].rows if row.in_slice(target.slice)]
        values = dict(zip(rows, oracle.target_values(rows, target.name) or [math.nan] * len(rows), strict=True))
        conditions = NESTED if target in COMPARED else CONDITIONS
        for condition, of_set in zip(conditions, measured[target], strict=True):
            *sums, variance = of_set
            members = [row for row in rows if row.meets(condition)]
            if target.slice == 2 or not members:  # there are no positives in the slice, or no such bin
                assert of_set == MeasuredSet()
                continue
            assert sums == [*sum_node(rows, members, values)[:-1]], target
            inside = [row in members and row.honest for row in rows]
            honest = [values[row] for row in members if row.honest]
            if len(honest) < 2:
                expected = math.nan
            elif target.name == "auc":
                baseline = [row.of_baseline for row in rows] if target in COMPARED else None
                expected = oracle.variance(inside, rows, baseline)
            else:
                expected = float(np.var(honest, ddof=1)) / len(honest)
            assert variance == (pytest.approx(expected, rel=1e-9) if len(honest) > 1 else None)


SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0])
EDGES = st.lists(st.sampled_from([-2.0, -1.0, 0.1, 0.25, 0.3, 3.0]), unique=True).map(sorted)
ROWS = st.lists(
    st.tuples(SCORES, st.booleans(), st.booleans(), st.integers(0, 3), st.booleans(), SCORES).map(
        lambda row: Example(row[0], row[1], row[2], (row[3],), segments=(row[4], False), baseline=row[5])
    ),
    min_size=1,
    max_size=20,
)


@given(rows=ROWS, edges=EDGES, n_tasks=st.integers(1, 3))
def test_sums_of_named_segments(rows: list[Example], edges: list[float], n_tasks: int) -> None:
    """Over all rows of a segment, not the honest ones alone; of one without rows, too."""
    models = [Ranked([row._replace(baseline=None) for row in rows], edges)]
    blocks = blocks_of(models, n_tasks)
    _, placed, _ = find(blocks, sum_losses([None], {(0, 0): ("m", "all")}, ("s", "t")))
    for number, segment in enumerate(("s", "t")):
        assert placed["m", "all", segment] == place_segment(rows, [row.segments[number] for row in rows])


@given(rows=ROWS, edges=EDGES, n_tasks=st.integers(1, 3))
def test_auc_of_named_pairs(rows: list[Example], edges: list[float], n_tasks: int) -> None:
    """Of some negatives against some positives, with the variance by its definition, and of a slice, too."""
    rows = [row._replace(baseline=None, slices=(row.bins[0] > 0,), pairs=(row.segments[0], row.honest)) for row in rows]
    blocks = blocks_of([Ranked(rows, edges)], n_tasks)
    encoding = Encoding(models=("m",), slices=("all", "some"), sources=())
    counted = find(
        blocks, count_pairs_of_groups(encoding, dict.fromkeys(("p0", "p1"), ("outside", "inside")), only_last=True)
    )
    all_wrong, expected = {}, {}
    for number, name in enumerate(("all", "some")):
        of_slice = [row for row in rows if row.in_slice(number)]
        if not of_slice:
            continue
        labels, placed = [row.label for row in of_slice], oracle.placements(of_slice)
        all_wrong["m", name] = wrong = 2 * labels.count(True) * labels.count(False) - placed[labels].sum()
        for pair in range(2):
            in_pair = [row for row in of_slice if row.pairs[pair]]
            low, high = ([row.score for row in in_pair if row.label == label] for label in (False, True))
            ordered = suite.ordered_doubled(low, high)
            headroom = ordered.size - ordered.sum() / 2
            expected[name, f"p{pair}"] = {
                "n_negative": len(low),
                "n_positive": len(high),
                "n_pairs": ordered.size,
                "ordered_doubled": ordered.sum(),
                "auc": suite.auc_by_pairs(low, high),
                "auc_variance": suite.delong_variance(low, high),
                "headroom_pairs": headroom,
                "headroom_share": headroom / (wrong / 2) if wrong else math.nan,
            }
    asked = {f"p{pair}": NamedPair(negatives=f"n{pair}", positives=f"p{pair}") for pair in range(2)}
    found = measure_crosses(NAMED_PAIRS, list_named_pairs(asked, counted), all_wrong, 0.95).to_pylist()
    assert [(row["slice"], row["pair"]) for row in found] == list(expected)
    for row in found:
        assert (row["negative_predicate"], row["positive_predicate"]) == (f"n{row['pair'][1]}", row["pair"])
        wanted = expected[row["slice"], row["pair"]]
        values = {name: math.nan if row[name] is None else float(row[name]) for name in wanted}
        assert values == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@given(rows=ROWS, edges=EDGES, baseline_edges=EDGES, n_tasks=st.integers(1, 3))
def test_variances_of_differences(
    rows: list[Example], edges: list[float], baseline_edges: list[float], n_tasks: int
) -> None:
    blocks, target = blocks_of([Ranked(rows, edges)], n_tasks), Target(0, 0, "auc")
    conditions = CONDITIONS[:2]
    measured = measure_sets(blocks, {target: conditions}, 0, {0: np.array(baseline_edges)})[target]
    for condition, (*_, variance) in zip(conditions, measured, strict=True):
        inside = [row.honest and row.meets(condition) for row in rows]
        if sum(inside) < 2 or len({row.label for row in rows}) < 2:
            assert variance is None
        else:
            expected = oracle.variance(inside, rows, [row.of_baseline for row in rows])
            assert variance == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_more_sets_than_one_job_takes() -> None:
    """Of trees of different sizes; each set is placed as if it were alone."""
    rows = draw_examples(3, 90, FEATURES, baseline=True)
    blocks = blocks_of([Ranked(rows, [0.5])] * 3)
    conditions: list[Condition] = [{}, *({0: frozenset({a})} for a in range(4))]
    conditions += [{0: frozenset({a}), 1: frozenset({b})} for a in range(4) for b in range(4)]
    assert MAX_SETS < len(conditions) < 2 * MAX_SETS
    measured = measure(blocks, conditions)
    for condition, of_set in zip(conditions, measured[COMPARED[0]], strict=True):
        assert measure(blocks, [condition])[COMPARED[0]] == [of_set]
    assert {of_set.variance for of_set in measured[COMPARED[2]]} == {None}


def test_what_passes_the_bytes_of_one_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of([Ranked(draw_examples(3, 90, FEATURES, baseline=True))] * 3)
    monkeypatch.setattr(row_blocks, "MAX_BLOCK_BYTES", 1000)
    with pytest.raises(InputError):
        measure(blocks, CONDITIONS[:2])


def test_placements_past_32_bits_are_exact() -> None:
    """With so many rows of a set in other ranges that doubled placements, which are unsigned, are as wide as sums."""
    (block,), target = cut_blocks(draw_examples(3, 60, baseline=True)).values(), Target(0, 0, "auc")

    def sum_up(n_elsewhere: int) -> Any:
        offsets = RankOffsets(np.array([n_elsewhere] * 2), np.array([2 * n_elsewhere] * 2))
        regions = Regions([{}], np.array([0]), {0: offsets})
        parts: dict[int, list[Any]] = {}
        for part in cut_block(block, target, regions, offsets, np.empty(0)):
            parts.setdefault(part.kind, []).append(part.data)
        [sets] = read_sets(sum_range(parts, regions))
        return sets

    offset = 2**34
    for few, many in zip(sum_up(100), sum_up(100 + offset // 2), strict=True):
        assert many == Placed(
            *(few.n, few.k, few.placed, few.inside + offset * few.k, few.squares, few.crossed + offset * few.placed),
            few.inside_squares + 2 * offset * few.inside + offset**2 * few.k,
            few.inside_of_all + offset * few.n,
            few.inside_squares_of_all + 2 * offset * few.inside_of_all + offset**2 * few.n,
        )


# ---- whatever the ranges, the tasks and the order of rows


def compute_all(blocks: Blocks, baseline_edges: Sequence[float], n_cells: int) -> list[Any]:
    targets = [*TARGETS, *COMPARED]
    wanted = SliceSearch(max_predicates=2, most=4, min_rows=3)
    searched = [Target(0, 0, "auc"), Target(0, 1, "auc")]
    encoding = Encoding(models=("m", "n", "m - n"), slices=("all", "some", "negatives"), sources=())
    of_trees = [SummedValue.of(target, N_ROWS) for target in targets]
    of_slices = [SummedValue.of(target, N_ROWS, 0.4) for target in searched]
    settings = TreeSettings(max_depth=2, min_leaf=4)
    searches: list[Any] = [grow_tree(FEATURES, value, settings, 0.0) for value in of_trees]
    searches += [search_slices(FEATURES, value, wanted) for value in of_slices]
    results = run_searches(sum_blocks(blocks, [*of_trees, *of_slices], n_cells), searches)
    trees, slices = results[: len(targets)], [best.conditions() for best in results[len(targets) :]]
    crosses = find(blocks, count_pairs_of_groups(encoding, {"g": ("a", "b", "c")}))
    nodes = {target: [node.condition for node in tree] for target, tree in zip(targets, trees, strict=True)}
    measured = measure_sets(blocks, nodes, N_MODELS, {2: np.array(baseline_edges)})
    names = {(model, part): (f"m{model}", f"s{part}") for model in range(N_MODELS + 1) for part in range(3)}
    losses = find(blocks, sum_losses([None] * (N_MODELS + 1), names, ("s", "t")))
    return [trees, slices, crosses, measured, *losses]


@cache
def draw_models() -> list[list[Example]]:
    drawn = [draw_examples(seed, 80, FEATURES, levels=20, baseline=seed == 7) for seed in (5, 6, 7)]
    # Values that no binary fraction holds, whose float sums do depend on order.
    return [[row._replace(score=row.score / 3 + 0.3) for row in rows] for rows in drawn]


@cache
def compute_whole() -> list[Any]:
    return compute_all(blocks_of(list(map(Ranked, draw_models()))), [], 1)


CUTS = st.lists(st.floats(0.25, 0.7), max_size=5, unique=True).map(sorted)


@settings(max_examples=15)
@given(
    cuts=st.tuples(CUTS, CUTS, CUTS),
    baseline_edges=CUTS,
    n_tasks=st.integers(1, 4),
    n_parts=st.integers(1, 3),
    seed=st.randoms(use_true_random=False),
)
def test_ranges_tasks_parts_and_the_order_of_rows_change_no_bit(
    cuts: tuple[list[float], ...], baseline_edges: list[float], n_tasks: int, n_parts: int, seed: Any
) -> None:
    shuffled = [Ranked(seed.sample(rows, len(rows)), edges) for rows, edges in zip(draw_models(), cuts, strict=True)]
    computed = compute_all(blocks_of(shuffled, n_tasks), baseline_edges, n_parts * CELLS_A_PART)
    assert computed == compute_whole()


def test_there_is_something_that_could_change() -> None:
    trees, slices, crosses, *_ = compute_whole()
    assert min(len(tree) for tree in trees[:4]) >= 3
    assert all(slices)
    assert len(crosses) == 3 * (9 + 9 + 9)
