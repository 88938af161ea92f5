"""What tasks make of their rows, ranked without an engine, against loops over all pairs of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.ranking import task_rows
from biasspark.ranking.engine import CORPUS, cut_task_rows, rank
from biasspark.ranking.kernels.blocks import Block
from biasspark.ranking.task_rows import Kind, Part, TaskRows, read_blocks
from tests.harness import ranking_without_spark as local
from tests.harness.ranking_without_spark import encoding_of, flags, pack, rank_batches
from tests.oracle.pairs import Example, State, count_identity, cross_all

ROWS = 90


@dataclass(frozen=True)
class Corpus:
    """A corpus of two models and two slices, with rejects and unknowns, as EXAMPLES and as plain columns."""

    encoding: Encoding
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
    encoding = encoding_of(flags("a", "b"), local.category("c", "x", "y"), models=2, slices=2, crossed=crossed)
    columns = {name: [(True, False, None)[state] for state in rng.integers(0, 3, ROWS)] for name in "ab"}
    values = rng.choice(np.array([None, "x", "y"], object), ROWS).tolist()
    fields = local.membership_fields(encoding, columns, {1: values})
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
    batch = pack(encoding, fields, list(scores), {1: values})
    return Corpus(encoding, batch, scores, label, inside, (row_reason == 0) & (reasons == 0), states)


def cut(batch: pa.RecordBatch, encoding: Encoding) -> list[Part]:
    rows = TaskRows(pa.Table.from_batches([batch]), encoding)
    return list(cut_task_rows(rows, [np.empty(0)] * len(encoding.models)))


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_model_slice_and_identity(seed: int, crossed: bool) -> None:
    corpus = random_corpus(seed, crossed=crossed)
    counts = rank_batches([corpus.batch], corpus.encoding, [[-0.5, 0.25], [0.0]])
    for model, part in np.ndindex(2, 2):
        wanted = local.count_by_name(corpus.examples(model, part), corpus.encoding)
        assert local.pairs_by_name(counts, corpus.encoding, model, part) == wanted
    for model in range(2):
        rows = Counter(example.score for example in corpus.examples(model, 0))
        profile = (rows.total(), len(rows), max(rows.values()), min(rows), max(rows))
        assert counts.profiles[f"model {model}"] == profile


def test_counts_of_rows_rejects_and_pairs() -> None:
    corpus = random_corpus()
    rows = TaskRows(pa.Table.from_batches([corpus.batch]), corpus.encoding)
    row_reason, reasons = rows.read("row_reason"), [rows.read("score_reason", model) for model in range(2)]
    stays = row_reason == 0
    rejects = Counter(ROW_REASONS[code - 1] for code in row_reason[~stays])
    rejects += Counter(SCORE_REASONS[code - 1] for codes in reasons for code in codes[stays & (codes > 0)])
    rejects["annotation_out_of_range"] = int((rows.read("annotation").astype(bool) & stays).sum())
    counts = rank_batches([corpus.batch], corpus.encoding)
    assert counts.row_counts.n_rows == ROWS
    assert counts.row_counts.n_rejected == int((~stays | ((reasons[0] > 0) & (reasons[1] > 0))).sum())
    assert counts.row_counts.rejects == dict(rejects)
    assert counts.row_counts.n_eligible == {f"model {n}": int(corpus.usable[n].sum()) for n in range(2)}
    first = corpus.encoding.first_pair
    members = [sum(states[number] is True for states in corpus.states) for number in range(first, first + 6)]
    assert counts.pair_rows.tolist() == members


@pytest.mark.parametrize("flush", [1, 7, 30, 1000])
@pytest.mark.parametrize("n_tasks", [1, 4])
def test_flushes_batches_and_tasks_change_nothing(flush: int, n_tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, boundaries = random_corpus(), [np.zeros(1)] * 2
    whole = rank_batches([corpus.batch], corpus.encoding)
    monkeypatch.setattr(task_rows, "FLUSH_ROWS", flush)
    batches = [corpus.batch.slice(start, 6) for start in range(0, ROWS, 6)]
    counts = rank(local.frame_of(*(batches[task::n_tasks] for task in range(n_tasks))), corpus.encoding, boundaries)
    assert (counts.row_counts, counts.profiles) == (whole.row_counts, whole.profiles)
    assert counts.pair_rows.tolist() == whole.pair_rows.tolist()
    assert (counts.cells == whole.cells).all()
    assert (counts.sums == whole.sums).all()


def test_wide_rows_are_held_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = random_corpus()
    batches = [corpus.batch.slice(start, 6) for start in range(0, ROWS, 6)]
    most = 3 * max(batch.nbytes for batch in batches)
    monkeypatch.setattr(task_rows, "FLUSH_BYTES", most)
    held = list(task_rows.hold_rows(iter(batches), corpus.encoding))
    assert sum(map(len, held)) == ROWS
    assert len(held) > 2
    assert max(rows.table.nbytes for rows in held) < most + batches[0].nbytes * 2


def test_empty_batches_alone_are_no_rows() -> None:
    corpus = random_corpus()
    assert list(task_rows.hold_rows([corpus.batch.slice(0, 0)], corpus.encoding)) == []


def test_without_a_usable_row_only_row_counts_are_left() -> None:
    encoding = encoding_of(flags("a"), models=2, slices=2)
    batch = pack(encoding, {("row_reason", 0): [1, 2, 3]}, [np.zeros(3)] * 2)
    assert {part.model for part in cut(batch, encoding)} == {CORPUS}
    counts = rank_batches([batch], encoding)
    assert counts.row_counts.n_eligible == {"model 0": 0, "model 1": 0}
    assert (counts.profiles, counts.cells.sum()) == ({}, 0)


def test_values_off_the_scale_are_counted_on_rows_that_are_not_rejected() -> None:
    encoding = replace(encoding_of(flags("a", "b")), fraction_columns=("label", "b"))
    fields = {("row_reason", 0): [0, 1, 0, 0], ("off_scale", 0): [1, 1, 0, 0], ("off_scale", 2): [0, 1, 1, 1]}
    counts = rank_batches([pack(encoding, fields, [np.zeros(4)])], encoding)
    assert counts.row_counts.off_scale == {"label": 1, "b": 2}


def test_rows_cost_nothing_in_slices_that_they_are_not_in() -> None:
    encoding = encoding_of(flags("a"), slices=3)
    batch = pack(encoding, {("slice", 2): [True, False]}, [[0.5, 0.7]])
    blocks = {part.slice: part.data for part in cut(batch, encoding) if part.kind == Kind.CELLS}
    assert {number: block.scores.tolist() for number, block in blocks.items()} == {0: [0.5, 0.7], 2: [0.5]}


def test_a_membership_is_one_entry() -> None:
    encoding = encoding_of(flags("a", "b", "c"))
    states: dict[str, list[State]] = {"a": [True, False, False], "b": [None, False, False], "c": [False, False, True]}
    batch = pack(encoding, local.membership_fields(encoding, states), [[0.1, 0.2, 0.3]])
    [part] = [part for part in cut(batch, encoding) if part.kind == Kind.MEMBERSHIPS]
    assert part.data.lengths.tolist() == [1, 1, 1]


@pytest.mark.parametrize("n_sources", [20, 40, 61])
def test_as_many_sources_as_a_configuration_may_have_can_be_unknown(n_sources: int) -> None:
    rng, rows = np.random.default_rng(n_sources), 15
    encoding = encoding_of(*(local.category(f"c{n}", "x") for n in range(n_sources)))
    values = {n: rng.choice(np.array([None, "x"], object), rows).tolist() for n in range(n_sources)}
    label, scores = rng.random(rows) < 0.5, rng.integers(0, 4, rows).astype(float)
    fields = local.membership_fields(encoding, {}, values) | {("label", 0): label}
    counts = rank_batches([pack(encoding, fields, [scores], values)], encoding, [[1.0]])
    for n in range(n_sources):
        rows_of_source = zip(scores.tolist(), label.tolist(), values[n], strict=True)
        examples = [
            Example(score, positive, (None if value is None else True,)) for score, positive, value in rows_of_source
        ]
        assert local.six_pairs(counts, n + 1) == count_identity(examples, 0)


@pytest.mark.parametrize("n_groups", [1, 100])
def test_a_range_with_too_many_rows_of_a_label_is_refused(n_groups: int) -> None:
    def parts_of(n_rows: int, key: int) -> dict[int, list[Block]]:
        block = Block(np.array([key * n_groups]), np.array([1]), np.array([0.5]), np.array([n_rows]))
        return {Kind.CELLS: [block] * 2}

    for key in (0, 1):
        assert len(read_blocks(parts_of(2**29 - 1, key), Kind.CELLS, n_groups)) == 2
        with pytest.raises(InputError):
            read_blocks(parts_of(2**29, key), Kind.CELLS, n_groups)
