"""One range of the score line, against loops over all pairs of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from biasspark.arrays import Ints
from biasspark.ranking.kernels import placements
from biasspark.ranking.kernels.blocks import Block, cell_key, membership_key, merge_cells
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.kernels.placements import Profile, measure_range
from tests.harness.ranking_without_spark import block_of
from tests.oracle.pairs import Example, Sums, count_identity, count_pairs

WIDTHS = pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
MAX_ROWS_OF_A_LABEL = 2**30 - 1
"""A cell of so many rows in one range is still measured exactly."""


@dataclass(frozen=True)
class Corpus:
    """Examples, the source of every identity from number 1 on, and the pattern of known sources of every example."""

    examples: Sequence[Example]
    sources: Sequence[int]
    patterns: Sequence[int]

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """Give the blocks that hold all of it, in one range: of cells and of memberships."""
        cells: Counter[tuple[int, float]] = Counter()
        memberships: Counter[tuple[int, float]] = Counter()
        for example, pattern in zip(self.examples, self.patterns, strict=True):
            cells[key_of(cell_key, pattern, example.positive), example.score] += example.rows
            for identity, (state, source) in enumerate(zip(example.states, self.sources, strict=True), 1):
                if pattern >> source & 1 and state is not False:
                    key = key_of(membership_key, identity, state is None, example.positive)
                    memberships[key, example.score] += example.rows
        return [block_of(cells)], [block_of(memberships)]

    def measure(self) -> tuple[Ints, PairSums, Profile]:
        cells, memberships = self.blocks()
        return measure_range(merge_cells(cells), memberships, self.masks)

    @property
    def masks(self) -> list[int]:
        return [0, *(1 << source for source in self.sources)]

    def known(self) -> list[Example]:
        """Give the examples with what is known of them; nobody is in identity 0."""
        return [
            example._replace(states=(False, *(state if pattern >> source & 1 else None for state, source in pairs)))
            for example, pattern in zip(self.examples, self.patterns, strict=True)
            for pairs in [list(zip(example.states, self.sources, strict=True))]
        ]


def key_of(make_key: Callable[..., np.ndarray], *parts: int) -> int:
    return int(make_key(*(np.array(part, np.int64) for part in parts)))


def random_corpus(seed: int, levels: int, rows: int = 25, identities: int = 4, sources: int = 2) -> Corpus:
    rng = np.random.default_rng((seed, levels))
    one_sided = rng.random() < 0.2
    examples = [
        Example(
            score=float(rng.integers(0, levels)) / 8 if levels else float(rng.normal()),
            positive=bool(one_sided or rng.random() < 0.5),
            states=tuple((True, False, None)[state] for state in rng.integers(0, 3, identities)),
            rows=int(rng.choice([1, 1, 1, 2, 5])),
        )
        for _ in range(rng.integers(1, rows))
    ]
    patterns = rng.integers(0, 1 << sources, len(examples)).tolist()
    return Corpus(examples, rng.integers(0, sources, identities).tolist(), patterns)


def six_pairs(sums: PairSums, identity: int) -> tuple[Sums, ...]:
    """Give the six pairs of cells of an identity as the oracle gives them."""
    return tuple(Sums(*map(int, pair)) for pair in zip(*(column[:, identity] for column in sums), strict=True))


def assert_exact(corpus: Corpus) -> None:
    _, sums, profile = corpus.measure()
    for identity in range(len(corpus.masks)):
        assert six_pairs(sums, identity) == count_identity(corpus.known(), identity)
    rows: Counter[float] = Counter()
    for example in corpus.examples:
        rows[example.score] += example.rows
    assert profile == Profile(rows.total(), len(rows), max(rows.values()), min(rows), max(rows))


@WIDTHS
@pytest.mark.parametrize("levels", [0, 1, 2, 6], ids=lambda levels: f"{levels or 'all'} scores")
@pytest.mark.parametrize("seed", range(15))
def test_random_corpora(seed: int, levels: int, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr(placements, "NARROW_ROWS", 0)
    assert_exact(random_corpus(seed, levels))


@pytest.mark.parametrize("seed", range(5))
def test_identities_of_any_known_source_or_of_all_rows(seed: int) -> None:
    """Base masks of several bits mean that one of the sources is known, 0 all rows: identity 2 is in either base."""
    corpus = random_corpus(seed, 5, sources=2)
    _, sums, _ = measure_range(merge_cells(corpus.blocks()[0]), [], [0, 0b01, 0b11])
    for identity, mask in enumerate([0, 0b01, 0b11]):
        base = [
            example._replace(states=(False,))
            for example, pattern in zip(corpus.examples, corpus.patterns, strict=True)
            if mask == 0 or pattern & mask
        ]
        assert six_pairs(sums, identity) == count_identity(base, 0)


HALF, THIRD = MAX_ROWS_OF_A_LABEL // 2, placements.NARROW_ROWS // 3
EXTREMES = {
    "scores": [
        Example(score, positive, (state,))
        for score in (-1.7976931348623157e308, -5e-324, 0.0, 5e-324, 1.7976931348623157e308)
        for positive in (False, True)
        for state in (True, False, None)
    ],
    "a tie of 20 million rows": [
        Example(0.5, positive, (state,), rows)
        for positive in (False, True)
        for state, rows in ((True, 2_500_000), (False, 7_500_000))
    ],
    "a thousand million rows of three scores": [
        Example(score, positive, (state,), rows)
        for score, positive in ((0.25, False), (0.5, False), (0.5, True), (0.75, True))
        for state, rows in ((True, 2 * 10**8), (False, 25 * 10**7), (None, 5 * 10**7))
    ],
    "the largest cells of one range": [
        Example(0.1, False, (True,), HALF),
        Example(0.2, True, (False,), HALF),
        Example(0.3, False, (False,), HALF),
        Example(0.4, True, (True,), HALF),
    ],
    "as many rows as narrow sums hold, a third above two thirds": [
        Example(0.0, False, (True,), THIRD),
        Example(0.0, False, (False,), THIRD),
        Example(1.0, True, (True,), THIRD // 2),
        Example(1.0, True, (False,), THIRD // 2),
    ],
}


@WIDTHS
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr(placements, "NARROW_ROWS", 0)
    assert_exact(Corpus(EXTREMES[name], [0], [1] * len(EXTREMES[name])))


@pytest.mark.parametrize("seed", range(10))
def test_huge_counts_anywhere(seed: int) -> None:
    corpus = random_corpus(seed, 4, rows=20)
    rng = np.random.default_rng(seed)
    huge = [example._replace(rows=int(rng.integers(1, MAX_ROWS_OF_A_LABEL // 20))) for example in corpus.examples]
    assert_exact(Corpus(huge, corpus.sources, corpus.patterns))


def test_the_narrow_path_ends_before_its_sums_overflow() -> None:
    assert 8 * placements.NARROW_ROWS**3 < 2**63


def as_sums(sums: Sums) -> PairSums:
    return PairSums(*(np.array([[value]], object) for value in sums))


def test_pairs_across_ranges_of_thousands_of_millions_of_rows() -> None:
    """Each range is a tie of one cell: all that differs between ranges is offsets."""
    n_low, n_high = 3 * 10**9, 7 * 10**9
    merged = as_sums(Sums(n_low, 0, 0, 0, 0)).merge(as_sums(Sums(0, n_high, 0, 0, 0)))
    assert merged == as_sums(count_pairs([Example(0.0, False, rows=n_low)], [Example(1.0, True, rows=n_high)]))
    assert merged.two_u[0, 0] > 2**64  # U itself passes 63 bits
