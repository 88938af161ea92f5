"""Two models' placements of the same rows and their products, against loops over all pairs, cut in any way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import FOUR_CELLS
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.crowd_blocks import OTHER, Around, CrowdPart, cut_examples
from biasspark.ranking.crowds import Crowds
from biasspark.ranking.paired_blocks import Products, place_by_first, sum_products
from tests.ranking_without_spark import array, codebook_of, find_states, flags, membership_fields, pack

N = 90


def make_examples(seed: int, crossed: bool = False) -> tuple[Codebook, pa.RecordBatch, list[np.ndarray]]:
    """Rows with many ties, some rejected for one model, identities unknown on some of them, and values of an array."""
    rng = np.random.default_rng(seed)
    book = codebook_of(flags("a", "b"), array("group", "x", "y", nullable=False), models=2, slices=2, crossed=crossed)
    states = {name: rng.choice([True, False, None], N, p=[0.3, 0.5, 0.2]).tolist() for name in "ab"}
    values = {1: [list(rng.choice(["x", "y"], rng.integers(0, 3))) for _ in range(N)]}
    fields = membership_fields(book, states, values)
    fields |= {("label", 0): rng.random(N) < 0.4, ("slice", 1): rng.random(N) < 0.6}
    fields |= {("row_reason", 0): rng.random(N) < 0.1, ("score_reason", 1): 2 * (rng.random(N) < 0.1)}
    scores = [np.round(rng.normal(size=N) + fields["label", 0], 0), np.round(rng.normal(size=N), 1)]
    batch = pack(book, fields, scores, values)
    usable = ~fields["row_reason", 0] & (fields["score_reason", 1] == 0)
    return book, batch, [fields["label", 0], usable, fields["slice", 1], *scores]


def look_around(parts: Sequence[CrowdPart]) -> dict[int, tuple[list[bytes], Around]]:
    """Do what Spark does between two maps: bring ranges together, and count what lies around them."""
    counts = {(part.score_range, place): np.array(part.counts) for place, part in enumerate(parts)}
    totals = sum(counts.values())
    found = {}
    for score_range in sorted({part.score_range for part in parts}):
        below = sum((own for (other, _), own in counts.items() if other < score_range), 0 * totals)
        found[score_range] = ([p.data for p in parts if p.score_range == score_range], Around(below, totals))
    return found


def sum_twice(
    batches: Sequence[pa.RecordBatch], book: Codebook, crowds: Crowds, edges: Sequence[Sequence[float]]
) -> dict[tuple[int, int, str, str], Products]:
    """Run both maps without Spark, and return the sums by (slice, identity, cell, among)."""
    boundaries = [np.array(own, float) for own in edges]
    parts = [part for batch in batches for part in cut_examples([batch], book, crowds, boundaries[:1], [OTHER])]
    sums: dict[tuple[int, int, str, str], Products] = defaultdict(lambda: Products(0, 0, 0, 0, 0, 0))
    for number in range(len(book.slices)):
        second = [
            part
            for blocks, around in look_around([part for part in parts if part.slice == number]).values()
            for part in place_by_first(blocks, around, crowds, boundaries[1], number)
        ]
        for blocks, around in look_around(second).values():
            for found in sum_products(blocks, around, crowds):
                key = (number, found.identity, found.cell, found.among)
                sums[key] = Products(*map(sum, zip(sums[key], found.sums, strict=True)))
    return sums


def placements(scores: np.ndarray, rows: np.ndarray, among: np.ndarray) -> list[int]:
    return [sum(2 * int(scores[j] < scores[i]) + int(scores[j] == scores[i]) for j in among) for i in rows]


@pytest.mark.parametrize("crossed", [False, True])
def test_sums_are_those_of_all_pairs_whatever_the_cut(crossed: bool) -> None:
    book, batch, (label, usable, short, *scores) = make_examples(7, crossed)
    states = np.array(find_states(book, batch), object)
    crowds = Crowds.of(book, range(len(book.names)))
    table = pa.Table.from_batches([batch]).filter(pa.array(usable))  # both models score a row
    whole = sum_twice(table.to_batches(), book, crowds, ([], []))
    cut = sum_twice(table.to_batches(max_chunksize=17), book, crowds, ([-0.5, 0.5, 1.0], [0.0, 0.3]))
    assert whole == cut
    for number, identity in product(range(2), range(len(book.names))):
        inside = usable & (short if number else True)
        cells = {
            cell: np.flatnonzero(
                inside & (states[:, identity] == cell.startswith("subgroup")) & (label == cell.endswith("positive"))
            )
            for cell in FOUR_CELLS
        }
        for cell, among in product(FOUR_CELLS, FOUR_CELLS):
            if cell != among and (identity or "subgroup" not in cell + among):
                x, y = (placements(own, cells[cell], cells[among]) for own in scores)
                expected = Products(
                    len(x),
                    sum(x),
                    sum(y),
                    *(sum(a * b for a, b in zip(u, v, strict=True)) for u, v in ((x, x), (y, y), (x, y))),
                )
                assert whole[number, identity, cell, among] == expected


def test_some_identities_alone_have_the_sums_that_they_have_among_all() -> None:
    book, batch, _ = make_examples(8)
    every = sum_twice([batch], book, Crowds.of(book, range(5)), ([0.0], [0.0]))
    some = sum_twice([batch], book, Crowds.of(book, [2, 3]), ([0.0], [0.0]))
    assert some == {key: sums for key, sums in every.items() if key[1] in (2, 3)}


def test_products_beyond_64_bits_are_exact() -> None:
    x, y = np.array([2**40, 3, 2**40 - 1]), np.array([2**41 + 1, 2**41, 7])
    sums = Products.of(x, y)
    assert sums.products == sum(int(a) * int(b) for a, b in zip(x, y, strict=True))
    assert sums.second_squares == sum(int(b) ** 2 for b in y)
