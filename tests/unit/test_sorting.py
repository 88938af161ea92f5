"""What a task makes of its rows, merged as the reducers do, against loops over all pairs of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.corpus.codebook import Codebook
from biasspark.ranking import fields
from biasspark.ranking.blocks import Block
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS, TALLIES, TALLIES_RANGE
from tests.oracle.pairs import Example, State, count_identity, cross_all
from tests.ranking_without_spark import (
    category,
    codebook_of,
    count_by_name,
    flags,
    membership_fields,
    merge_parts,
    pack,
    pairs_by_name,
    rank_batches,
    six_pairs,
    sort_batches,
)

ROWS = 90


@dataclass(frozen=True)
class Corpus:
    """A corpus of two models and two slices, rejects and unknowns in it, as EXAMPLES and as plain columns."""

    codebook: Codebook
    batch: pa.RecordBatch
    scores: np.ndarray
    label: np.ndarray
    inside: np.ndarray
    usable: np.ndarray
    states: list[tuple[State, ...]]

    def examples(self, model: int, number: int) -> list[Example]:
        rows = np.flatnonzero(self.usable[model] & (self.inside | (number == 0)))
        return [Example(float(self.scores[model][row]), bool(self.label[row]), self.states[row]) for row in rows]


def random_corpus(seed: int = 1, *, crossed: bool = True, levels: int = 6) -> Corpus:
    rng = np.random.default_rng(seed)
    codebook = codebook_of(flags("a", "b"), category("c", "x", "y"), models=2, slices=2, crossed=crossed)
    columns = {name: [(True, False, None)[state] for state in rng.integers(0, 3, ROWS)] for name in "ab"}
    values = rng.choice(np.array([None, "x", "y"], object), ROWS).tolist()
    fields = membership_fields(codebook, columns, {1: values})
    label, inside = rng.random(ROWS) < 0.4, rng.random(ROWS) < 0.5
    row_reason = rng.choice([0] * 20 + list(range(1, len(ROW_REASONS) + 1)), ROWS)
    reasons = rng.choice([0] * 12 + list(range(1, len(SCORE_REASONS) + 1)), (2, ROWS))
    fields |= {("label", 0): label, ("row_reason", 0): row_reason, ("annotation", 0): rng.random(ROWS) < 0.1}
    fields |= {("score_reason", n): reasons[n] for n in range(2)} | {("slice", 1): inside}
    scores = rng.integers(-levels, levels, (2, ROWS)) / 4 * rng.choice([-1.0, 1.0], (2, ROWS))
    singles = [
        (False, a, b, *(value and value == name for name in "xy"))
        for a, b, value in zip(columns["a"], columns["b"], values, strict=True)
    ]
    states = [(False, *cross_all(row[1:])) if crossed else row for row in singles]
    batch = pack(codebook, fields, list(scores), {1: values})
    return Corpus(codebook, batch, scores, label, inside, (row_reason == 0) & (reasons == 0), states)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_model_slice_and_identity(seed: int, crossed: bool) -> None:
    corpus = random_corpus(seed, crossed=crossed)
    ranked = rank_batches([corpus.batch], corpus.codebook, [[-0.5, 0.25], [0.0]])
    assert sorted(ranked.sums) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for (model, number), sums in ranked.sums.items():
        assert pairs_by_name(sums, corpus.codebook) == count_by_name(corpus.examples(model, number), corpus.codebook)


def test_counts_of_rows_rejects_and_pairs() -> None:
    corpus = random_corpus()
    fields, batch = corpus.codebook.fields, corpus.batch

    def read(what: str, number: int = 0) -> np.ndarray:
        place = fields[what, number]
        words: np.ndarray = batch[f"word_{place.word}"].to_numpy()
        return (words >> place.shift) & ((1 << place.width) - 1)

    row_reason, reasons = read("row_reason"), [read("score_reason", model) for model in range(2)]
    stays = row_reason == 0
    rejects = Counter(ROW_REASONS[code - 1] for code in row_reason[~stays])
    rejects += Counter(SCORE_REASONS[code - 1] for codes in reasons for code in codes[stays & (codes > 0)])
    rejects["annotation_out_of_range"] = int((read("annotation").astype(bool) & stays).sum())
    ranked = rank_batches([batch], corpus.codebook)
    assert ranked.tally.n_rows == ROWS
    assert ranked.tally.n_rejected == int((~stays | ((reasons[0] > 0) & (reasons[1] > 0))).sum())
    assert ranked.tally.rejects == dict(rejects)
    assert ranked.tally.n_eligible == {f"model {n}": int(corpus.usable[n].sum()) for n in range(2)}
    first = corpus.codebook.first_pair
    members = [sum(states[number] is True for states in corpus.states) for number in range(first, first + 6)]
    assert ranked.n_members == tuple(members)


def test_a_profile_says_what_the_scores_are_like() -> None:
    corpus = random_corpus()
    ranked = rank_batches([corpus.batch], corpus.codebook, [[], [0.0, 0.5]])
    for model in range(2):
        rows = Counter(example.score for example in corpus.examples(model, 0))
        profiles = ranked.profiles[model, 0]
        assert sum(profile.n_distinct for profile in profiles) == len(rows)
        assert max(profile.largest_tie for profile in profiles) == max(rows.values())
        assert (profiles[0].lowest, profiles[-1].highest) == (min(rows), max(rows))


@pytest.mark.parametrize("flush", [1, 7, 30, 1000])
@pytest.mark.parametrize("tasks", [1, 4])
def test_flushes_batches_and_tasks_change_nothing(flush: int, tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = random_corpus()
    whole = rank_batches([corpus.batch], corpus.codebook, [[0.0], [0.0]])
    monkeypatch.setattr(fields, "FLUSH_ROWS", flush)
    batches = [corpus.batch.slice(start, 6) for start in range(0, ROWS, 6)]
    parts = [
        part for task in range(tasks) for part in sort_batches(batches[task::tasks], corpus.codebook, [[0.0], [0.0]])
    ]
    found = merge_parts(parts, corpus.codebook)
    assert (found.tally, found.profiles, found.n_members) == (whole.tally, whole.profiles, whole.n_members)
    for key, sums in whole.sums.items():
        assert pairs_by_name(found.sums[key], corpus.codebook) == pairs_by_name(sums, corpus.codebook)


def test_minus_zero_ties_with_zero() -> None:
    codebook = codebook_of(flags("a", nullable=False))
    scores, label = [-0.0, 0.0, 0.0, -0.0], [True, False, True, False]
    batch = pack(codebook, {("label", 0): label, ("member", 1): [True, True, False, False]}, [scores])
    for boundaries in ([], [0.0], [-0.0]):
        ranked = rank_batches([batch], codebook, [boundaries])
        [profile] = ranked.profiles[0, 0]
        assert (profile.n_distinct, profile.largest_tie) == (1, 4)
        assert {sums.u_doubled for sums in six_pairs(ranked.sums[0, 0], 1)} == {1}
        assert six_pairs(ranked.sums[0, 0], 0)[3].u_doubled == 4


def test_what_a_rejected_score_holds_is_of_no_meaning() -> None:
    codebook = codebook_of(flags("a"))
    fields = {("score_reason", 0): [0, 3, 4, 0], ("label", 0): [True, True, False, False]}
    batch = pack(codebook, fields, [[1.0, np.nan, np.inf, 0.0]])
    overall = six_pairs(rank_batches([batch], codebook).sums[0, 0], 0)[3]
    assert (overall.n_low, overall.n_high, overall.u_doubled) == (1, 1, 2)


def test_nothing_usable_leaves_tallies_alone() -> None:
    codebook = codebook_of(flags("a"), models=2, slices=2)
    batch = pack(codebook, {("row_reason", 0): [1, 2, 3]}, [np.zeros(3)] * 2)
    parts = sort_batches([batch], codebook)
    assert {(part.score_range, part.kind) for part in parts} == {(TALLIES_RANGE, TALLIES)}
    assert {part[:2] for part in parts} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert merge_parts(parts, codebook).tally.n_eligible == {"model 0": 0, "model 1": 0}


def test_no_batches_make_no_parts() -> None:
    assert sort_batches([], codebook_of(flags("a"))) == []


def test_rows_of_no_other_slice_pay_nothing() -> None:
    codebook = codebook_of(flags("a"), slices=3)
    batch = pack(codebook, {("slice", 2): [True, False]}, [[0.5, 0.7]])
    blocks = {part.slice: Block.decode(part.data) for part in sort_batches([batch], codebook) if part.kind == CELLS}
    assert {number: block.scores.tolist() for number, block in blocks.items()} == {0: [0.5, 0.7], 2: [0.5]}


def test_memberships_are_one_entry_a_mention() -> None:
    codebook = codebook_of(flags("a", "b", "c"))
    states: dict[str, list[State]] = {"a": [True, False, False], "b": [None, False, False], "c": [False, False, True]}
    batch = pack(codebook, membership_fields(codebook, states), [[0.1, 0.2, 0.3]])
    [part] = [part for part in sort_batches([batch], codebook) if part.kind == MEMBERSHIPS]
    assert Block.decode(part.data).lengths.tolist() == [1, 1, 1]


@pytest.mark.parametrize("n_sources", [20, 40, 61])
def test_as_many_sources_as_the_configuration_may_have_can_be_unknown(n_sources: int) -> None:
    rng, rows = np.random.default_rng(n_sources), 15
    codebook = codebook_of(*(category(f"c{n}", "x") for n in range(n_sources)))
    values = {n: rng.choice(np.array([None, "x"], object), rows).tolist() for n in range(n_sources)}
    label, scores = rng.random(rows) < 0.5, rng.integers(0, 4, rows).astype(float)
    fields = membership_fields(codebook, {}, values) | {("label", 0): label}
    sums = rank_batches([pack(codebook, fields, [scores], values)], codebook, [[1.0]]).sums[0, 0]
    for n in range(n_sources):
        rows_of_source = zip(scores.tolist(), label.tolist(), values[n], strict=True)
        examples = [
            Example(score, positive, (None if value is None else True,)) for score, positive, value in rows_of_source
        ]
        assert six_pairs(sums, n + 1) == count_identity(examples, 0)
