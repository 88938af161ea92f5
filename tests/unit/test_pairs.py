"""Which rows are paired, and what is said of a node besides its tests."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.attribution import pairs
from biasspark.attribution.pairs import Samples, pair_segments
from biasspark.config.attribution_settings import Pairs
from biasspark.features import Feature
from biasspark.ranking.row_blocks import send
from biasspark.ranking.task_rows import Key
from biasspark.tables.schemas import PAIR_SEGMENTS, table_of_rows
from tests.fixtures.ranked_rows import Ranked, cut_blocks, draw_examples, list_columns
from tests.oracle import attribution as oracle
from tests.oracle.attribution import Example
from tests.oracle.intervals import logit_interval, newcombe_interval

FEATURES = (Feature("age", "age", True, (0.0, 20.0, 40.0), True), Feature("job", "job", False, ("a", "b"), True))


def segment(
    models: Sequence[Ranked], settings: Pairs, level: float = 0.95, features: Sequence[Feature] = FEATURES
) -> list[dict[str, Any]]:
    """The rows of the table, of models and slices that are named by their numbers."""
    blocks = [cut_blocks(*ranked) for ranked in models]
    n_slices = list_columns(models[0].rows[0]).n_slices
    keys = product(range(len(models)), range(n_slices))
    searching = pair_segments(features, {(m, s): (f"m{m}", f"s{s}") for m, s in keys}, settings, level)
    query = next(searching)
    assert query.combine is not None
    measured: defaultdict[Key, list[Any]] = defaultdict(list)
    for model, of_model in enumerate(blocks):
        for score_range, block in sorted(of_model.items()):
            for part, chunk, data in query.measure(model, score_range, block):
                measured[model, part, chunk].append(data)
                n_sent = np.bincount(data[0], minlength=2)
                assert (n_sent <= [2 * settings.negatives, 2 * settings.positives]).all()
    nodes = send(searching, {key: query.combine(key, iter(ranges)) for key, ranges in measured.items()})[1]
    assert nodes is not None
    rows: list[dict[str, Any]] = table_of_rows(PAIR_SEGMENTS, nodes).to_pylist()
    return rows


def in_order(rows: Sequence[Example], label: bool) -> list[Example]:
    """The rows of a label in the order in which they are drawn."""
    return sorted((row for row in rows if row.label == label), key=lambda row: (row.draw, mix(row)))


def mix(row: Example) -> int:
    """A hash of the bins and the score of a row: a finalizer of SplitMix64 for each."""
    mixed = 0
    (bits,) = struct.unpack("<Q", struct.pack("<d", row.score + 0.0))
    for value in (*row.bins, bits):
        mixed = (mixed * 0x9E3779B97F4A7C15 + value + 1) % 2**64
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
    return mixed


ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.25, 0.5]),
        st.booleans(),
        st.booleans(),
        st.tuples(st.integers(0, 3), st.integers(0, 2)),
        st.sampled_from([-(2**63), -1, 0, 1 << 53, (1 << 53) + 1, 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1),
    ).map(lambda row: Example(row[0], row[1], slices=(row[2],), bins=row[3], draw=row[4])),
    min_size=1,
    max_size=40,
)


@given(
    rows=ROWS,
    edges=st.lists(st.sampled_from([0.1, 0.25, 0.3]), unique=True).map(sorted),
    sizes=st.tuples(st.integers(2, 9), st.integers(2, 9)),
)
def test_samples_are_the_rows_with_the_lowest_hashes(
    rows: list[Example], edges: list[float], sizes: tuple[int, int]
) -> None:
    """Of many rows as many as are asked for, of few half; those of one hash by what is used of them."""
    drawn: list[Samples] = []

    def take(samples: Samples, *_: Any) -> list[Any]:
        drawn.append(samples)
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "grow_and_measure", take)
        segment([Ranked(rows, edges)], Pairs(negatives=sizes[0], positives=sizes[1]))
    expected = []
    for part in (0, 1):
        of_labels = [in_order([row for row in rows if row.in_slice(part)], label) for label in (False, True)]
        halves = [min(size, len(of_label) // 2) for size, of_label in zip(sizes, of_labels, strict=True)]
        train = [of_label[:half] for of_label, half in zip(of_labels, halves, strict=True)]
        honest = [of_label[half : 2 * half] for of_label, half in zip(of_labels, halves, strict=True)]
        expected += [train, honest] if any(halves) else []
    sampled = [
        [sorted(zip(side.scores.tolist(), map(tuple, side.bins.T.tolist()), strict=True)) for side in sample]
        for samples in drawn
        for sample in samples
    ]
    assert sorted(sampled) == sorted(
        [sorted((row.score, row.bins) for row in of_label) for of_label in sample] for sample in expected
    )


def test_values_that_few_rows_of_a_side_have_are_not_named_there() -> None:
    """Of 200 negatives and 200 positives half grow the tree: of these, a and c are rare among the negatives alone."""
    jobs = Feature("job", "job", False, ("a", "b", "c"), True)
    weights = {False: (0.4, 0.05, 0.5, 0.05), True: (0.25, 0.25, 0.25, 0.25)}
    rng = np.random.default_rng(4)
    rows = []
    for label in (False, True):
        for bin_ in rng.choice(4, 200, p=weights[label]).tolist():
            score = float(rng.random() + (bin_ == 2))
            rows.append(Example(score, label, bins=(0, bin_), draw=int(rng.integers(-(2**63), 2**63))))
    found = segment([Ranked(rows)], Pairs(max_depth=2, min_leaf=500, min_side=15), features=(FEATURES[0], jobs))
    rules = {side: " ".join(row[f"{side}_rule"] for row in found) for side in ("negative", "positive")}
    assert not {"a", "c"} & set(re.findall(r"\b[abc]\b", rules["negative"]))
    assert "job is" in rules["negative"]


def test_what_is_said_of_nodes() -> None:
    models = [Ranked(draw_examples(seed, 200, FEATURES), [0.5]) for seed in (5, 6)]
    rows = segment(models, Pairs(negatives=40, positives=30, max_depth=2, min_side=4))
    assert {(row["model"], row["slice"]) for row in rows} == {(f"m{m}", f"s{s}") for m in (0, 1) for s in (0, 1, 2)}
    root, *nodes = (row for row in rows if (row["model"], row["slice"]) == ("m1", "s0"))
    assert (root["node_id"], root["negative_rule"], root["positive_predicate"]) == (1, "all rows", "TRUE")
    assert (root["n_pairs_train"], root["n_negatives_honest"], root["n_positives_honest"]) == (1200, 40, 30)
    assert any("job is" in row["negative_rule"] + row["positive_rule"] for row in nodes)
    assert any("age >= " in row["negative_predicate"] + row["positive_predicate"] for row in nodes)


def test_intervals_are_those_of_an_auc() -> None:
    def rows_of(n_rows: int, shift: float) -> list[Example]:
        draws = np.random.default_rng(1).permutation(n_rows).tolist()
        return [
            Example((n % 7 // 3) + shift * (n % 2 == 0), n % 2 == 0, bins=(1, 1), draw=draws[n] << 40)
            for n in range(n_rows)
        ]

    settings = Pairs(positives=120, negatives=150, max_depth=0)
    models = [Ranked(rows_of(600, 0.5)), Ranked(rows_of(44, 5.0))]
    roots = segment(models, settings, level=0.9)
    for (rows, _), root in zip(models, roots, strict=True):
        sizes = [min(most, len(rows) // 4) for most in (150, 120)]
        honest = [
            row for label, n in zip((False, True), sizes, strict=True) for row in in_order(rows, label)[n : 2 * n]
        ]
        m, n = sizes
        placed = oracle.placements(honest) / 2
        above, below = placed[:m] / n, placed[m:] / m
        auc, variance = above.mean(), above.var(ddof=1) / m + below.var(ddof=1) / n
        ends = logit_interval(auc, variance, 0.9) if m > 50 else newcombe_interval(auc, m, n, 0.9)
        assert root["mean_honest"] == pytest.approx(auc, rel=0, abs=1e-12)
        assert (root["mean_honest_low"], root["mean_honest_high"]) == pytest.approx(ends, rel=0, abs=1e-12)


def test_what_cannot_be_paired_is_null() -> None:
    sizes = {"m0": (80, 0), "m1": (80, 3), "one row": (1, 0), "one of each": (1, 1)}
    models = [
        Ranked([Example(float(n), label, bins=(1, 1), draw=n) for label in (False, True) for n in range(both[label])])
        for both in sizes.values()
    ]
    alone, one = segment(models, Pairs(positives=120, negatives=150, min_side=12))
    for name, root in (("m0", alone), ("m1", one)):
        assert (root["model"], root["node_id"], root["parent_id"], root["depth"]) == (name, 1, None, 0)
        assert (root["is_leaf"], root["found"]) == (True, False)
        unknown = ("mean_honest_low", "mean_honest_high", "p_value", "p_adjusted", "p_chance", "p_chance_adjusted")
        assert {root[column] for column in (*unknown, "p_train_honest", "false_discovery")} == {None}
    assert (alone["n_pairs_train"], alone["n_negatives_honest"], alone["n_positives_honest"]) == (0, 40, 0)
    assert (alone["mean_train"], alone["mean_honest"]) == (None, None)
    assert (one["n_pairs_train"], one["n_negatives_honest"], one["n_positives_honest"]) == (40, 40, 1)
    assert 0 <= one["mean_honest"] <= 1
