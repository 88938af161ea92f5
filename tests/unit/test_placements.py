"""One range of the score line, against loops over all pairs of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from biasspark.arrays import Ints
from biasspark.columns import CELL_PAIRS
from biasspark.ranking.kernels import placements
from biasspark.ranking.kernels.blocks import Block, cell_key, membership_key, merge_cells
from biasspark.ranking.kernels.pair_sums import CELLS_OF_PAIRS, PairSums
from biasspark.ranking.kernels.placements import Profile, measure_range
from tests.oracle.pairs import CELLS, PAIRS, Example, Sums, count_identity, count_pairs

WIDTHS = pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
MOST_ROWS_OF_A_LABEL = 2**30 - 1
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

    def oracle(self, identity: int) -> tuple[Sums, ...]:
        """Give the six pairs of an identity; number 0 has nobody in it."""
        return count_identity(self.known(), identity)

    def known(self) -> list[Example]:
        """Give the examples with what is known of them; nobody is in identity 0."""
        return [
            example._replace(states=(False, *(state if pattern >> source & 1 else None for state, source in pairs)))
            for example, pattern in zip(self.examples, self.patterns, strict=True)
            for pairs in [list(zip(example.states, self.sources, strict=True))]
        ]


def key_of(make_key: Callable[..., np.ndarray], *parts: int) -> int:
    return int(make_key(*(np.array(part, np.int64) for part in parts)))


def block_of(entries: Mapping[tuple[int, float], int]) -> Block:
    ordered = sorted(entries)
    keys = sorted({key for key, _ in ordered})
    return Block(
        np.array(keys, np.int64),
        np.array([sum(one == key for one, _ in ordered) for key in keys], np.int64),
        np.array([score for _, score in ordered], np.float64),
        np.array([entries[entry] for entry in ordered], np.int64),
    )


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
    _, sums, _ = corpus.measure()
    for identity in range(len(corpus.masks)):
        assert six_pairs(sums, identity) == corpus.oracle(identity)


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


@WIDTHS
def test_scores_alone_their_extremes_and_their_ties(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr(placements, "NARROW_ROWS", 0)
    edges = [-1.7976931348623157e308, -5e-324, 0.0, 5e-324, 1.7976931348623157e308]
    examples = [
        Example(score, positive, (state,))
        for score in edges
        for positive in (False, True)
        for state in (True, False, None)
    ]
    assert_exact(Corpus(examples, [0], [1] * len(examples)))


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("state", [True, False, None])
def test_a_single_row(positive: bool, state: bool | None) -> None:
    corpus = Corpus([Example(0.5, positive, (state,))], [0], [1])
    assert_exact(corpus)
    assert corpus.measure()[2] == Profile(1, 1, 1, 0.5, 0.5)


def test_a_range_without_members_still_holds_the_background() -> None:
    examples = [Example(score, label, (False, False)) for score, label in [(0.1, False), (0.2, True), (0.2, False)]]
    corpus = Corpus(examples, [0, 1], [0b11, 0b01, 0b11])
    assert_exact(corpus)
    assert corpus.measure()[0].tolist() == [[0, 0, 0], [0, 0, 0], [2, 2, 2], [1, 1, 0]]


def test_a_range_on_which_a_source_is_known_nowhere() -> None:
    corpus = Corpus([Example(0.1, True, (True,)), Example(0.2, False, (False,))], [0], [0, 0])
    assert six_pairs(corpus.measure()[1], 1) == (Sums(0, 0, 0, 0, 0),) * 6


def test_everybody_and_nobody_and_all_unknown() -> None:
    for state in (True, False, None):
        examples = [Example(score / 4, score % 3 == 0, (state,)) for score in range(8)]
        assert_exact(Corpus(examples, [0], [1] * 8))


def test_parts_in_any_order_and_cut_in_any_way() -> None:
    corpus = random_corpus(3, 4, rows=60)
    whole = corpus.measure()[1]
    pieces = [Corpus(corpus.examples[n::3], corpus.sources, corpus.patterns[n::3]).blocks() for n in (2, 0, 1)]
    cells, memberships = ([block for (block,) in parts] for parts in zip(*pieces, strict=True))
    _, parted, _ = measure_range(merge_cells(cells), memberships, corpus.masks)
    for identity in range(len(corpus.masks)):
        assert six_pairs(parted, identity) == six_pairs(whole, identity)


@pytest.mark.parametrize("seed", range(10))
def test_profile(seed: int) -> None:
    corpus = random_corpus(seed, 5)
    rows: Counter[float] = Counter()
    for example in corpus.examples:
        rows[example.score] += example.rows
    assert corpus.measure()[2] == Profile(rows.total(), len(rows), max(rows.values()), min(rows), max(rows))


# ---- sums that pass 64 bits


def test_a_giant_tie_of_20_million_rows() -> None:
    """Half of them positive, a quarter of either in the identity: all pairs tie, so U is half of them."""
    quarter, rest = 2_500_000, 7_500_000
    examples = [
        Example(0.5, positive, (state,), rows)
        for positive in (False, True)
        for state, rows in ((True, quarter), (False, rest))
    ]
    corpus = Corpus(examples, [0], [1] * 4)
    _, sums, profile = corpus.measure()
    assert profile == Profile(20_000_000, 1, 20_000_000, 0.5, 0.5)
    sizes = {"subgroup": quarter, "background": rest}
    for found, pair in zip(six_pairs(sums, 1), PAIRS, strict=True):
        n, m = (sizes[cell.split("_")[0]] for cell in pair)
        assert found == Sums(n, m, n * m, n * m * m, n * n * m)
    assert max(found.low_squares for found in six_pairs(sums, 1)) > 2**63


@pytest.mark.parametrize("unknown", [0, 10**8])
def test_thousand_million_rows_of_two_scores(unknown: int) -> None:
    """Negatives lie below positives, but for one tie each way: closed forms, and the loop over the four scores."""
    million = 10**6
    inside, outside = 400 * million, 500 * million
    examples = [
        Example(score, positive, (state,), rows)
        for positive, scores in ((False, (0.25, 0.5)), (True, (0.5, 0.75)))
        for score in scores
        for state, rows in ((True, inside // 2), (False, outside // 2), (None, unknown // 2))
        if rows
    ]
    corpus = Corpus(examples, [0], [1] * len(examples))
    assert_exact(corpus)
    subgroup = six_pairs(corpus.measure()[1], 1)[0]
    half = inside // 2
    # Three of the four quarters of the pairs are rightly ordered, one ties.
    assert subgroup.u_doubled == 7 * half * half
    # The lower half is below all the positives; the upper half below half of them, and ties with the others.
    assert subgroup.low_squares == half * (4 * half) ** 2 + half * (3 * half) ** 2
    assert subgroup.low_squares == subgroup.high_squares > 2**80


def test_the_largest_cells_that_one_range_may_have() -> None:
    half = MOST_ROWS_OF_A_LABEL // 2
    examples = [
        Example(0.1 * place, positive, (state,), half)
        for place, (positive, state) in enumerate([(False, True), (True, False), (False, False), (True, True)])
    ]
    assert_exact(Corpus(examples, [0], [1] * 4))


@pytest.mark.parametrize("seed", range(10))
def test_huge_counts_anywhere(seed: int) -> None:
    corpus = random_corpus(seed, 4, rows=20)
    rng = np.random.default_rng(seed)
    huge = [example._replace(rows=int(rng.integers(1, MOST_ROWS_OF_A_LABEL // 20))) for example in corpus.examples]
    assert_exact(Corpus(huge, corpus.sources, corpus.patterns))


@pytest.mark.parametrize("seed", range(10))
def test_narrow_and_wide_sums_agree_where_both_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = random_corpus(seed, 6, rows=60)
    huge = Corpus(
        [example._replace(rows=example.rows * 3000) for example in corpus.examples], corpus.sources, corpus.patterns
    )
    assert sum(example.rows for example in huge.examples) < placements.NARROW_ROWS
    narrow = huge.measure()[1]
    monkeypatch.setattr(placements, "NARROW_ROWS", 0)
    wide = huge.measure()[1]
    for identity in range(len(corpus.masks)):
        assert six_pairs(narrow, identity) == six_pairs(wide, identity)


def test_the_narrow_path_ends_before_its_sums_overflow() -> None:
    assert 8 * placements.NARROW_ROWS**3 < 2**63


def test_narrow_sums_hold_up_to_their_last_row() -> None:
    """As many rows as a narrow range may have, arranged for the largest squares: one third above two thirds."""
    third = placements.NARROW_ROWS // 3
    examples = [
        Example(0.0, False, (True,), third),
        Example(0.0, False, (False,), third),
        Example(1.0, True, (True,), third // 2),
        Example(1.0, True, (False,), third // 2),
    ]
    corpus = Corpus(examples, [0], [1] * 4)
    assert sum(example.rows for example in examples) <= placements.NARROW_ROWS
    assert_exact(corpus)


# ---- sums of pairs of cells


def as_sums(sums: Sums) -> PairSums:
    return PairSums(*(np.array([[value]], object) for value in sums))


@pytest.mark.parametrize("seed", range(5))
def test_exchanging_the_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = [
        [Example(float(rng.integers(0, 5)), False, rows=int(rng.integers(1, 4))) for _ in range(rng.integers(0, 9))]
        for _ in range(2)
    ]
    assert as_sums(count_pairs(*cells)).exchanged() == as_sums(count_pairs(*reversed(cells)))


def test_pairs_are_in_the_order_of_the_table() -> None:
    assert tuple((CELLS[low], CELLS[high]) for low, high in CELLS_OF_PAIRS) == CELL_PAIRS


@pytest.mark.parametrize("n_ranges", [1, 2, 7])
@pytest.mark.parametrize("seed", range(6))
def test_ranges_merge_into_what_all_pairs_give(seed: int, n_ranges: int) -> None:
    corpus = random_corpus(seed, 6, rows=60)
    total = PairSums(*np.zeros((5, 6, len(corpus.masks)), object))
    for start in np.linspace(0, 1, n_ranges, endpoint=False):
        inside = [start <= example.score < start + 1 / n_ranges for example in corpus.examples]
        examples = [example for example, chosen in zip(corpus.examples, inside, strict=True) if chosen]
        patterns = [pattern for pattern, chosen in zip(corpus.patterns, inside, strict=True) if chosen]
        if examples:
            total = total.merge(Corpus(examples, corpus.sources, patterns).measure()[1])
    for identity in range(len(corpus.masks)):
        assert six_pairs(total, identity) == corpus.oracle(identity)


def test_pairs_across_ranges_of_thousands_of_millions_of_rows() -> None:
    """Each range is a tie of one cell: all that differs between ranges is offsets."""
    n_low, n_high = 3 * 10**9, 7 * 10**9
    merged = as_sums(Sums(n_low, 0, 0, 0, 0)).merge(as_sums(Sums(0, n_high, 0, 0, 0)))
    assert merged == as_sums(count_pairs([Example(0.0, False, rows=n_low)], [Example(1.0, True, rows=n_high)]))
    assert merged.two_u[0, 0] > 2**64  # U itself passes 63 bits
