"""Ranking without an engine: the methods of a DataFrame that jobs call, in one process, and EXAMPLES made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.corpus.encoding import Encoding, Source
from biasspark.ranking.counts import Counts
from biasspark.ranking.engine import rank
from biasspark.ranking.kernels.blocks import Block
from biasspark.ranking.kernels.pair_sums import CELLS_OF_PAIRS
from biasspark.ranking.kernels.subsets import Subset, draw_runs
from biasspark.ranking.range_job import Cut
from biasspark.ranking.task_rows import Key, Parts, TaskRows
from tests.oracle.pairs import Example, State, Sums, count_identity

_LIST = pa.list_(pa.string())

Fields = dict[tuple[str, int], Any]
"""Values of bit fields, row by row, by what `Encoding.fields` knows them."""


class LocalFrame:
    """Record batches by task, with the methods of a DataFrame that ranking jobs call."""

    sparkSession = None

    def __init__(self, tasks: Sequence[Iterable[pa.RecordBatch]]) -> None:
        self.tasks = [list(task) for task in tasks]

    def select(self, *columns: str) -> LocalFrame:
        return LocalFrame([[batch.select(columns) for batch in task] for task in self.tasks])

    def mapInArrow(self, function: Any, _: str) -> LocalFrame:
        return LocalFrame([function(iter(task)) for task in self.tasks])

    def selectExpr(self, _: str, task: str) -> LocalFrame:
        """Append the task to which a row is shuffled: any number that rows of the same range share."""
        assert task.endswith(" AS task")
        return LocalFrame([[_append_task(batch) for batch in task] for task in self.tasks])

    def drop(self, name: str) -> LocalFrame:
        return LocalFrame([[batch.drop_columns([name]) for batch in task] for task in self.tasks])

    def where(self, condition: str) -> LocalFrame:
        name, comparison, value = condition.split()
        compare = {"<": pc.less, ">=": pc.greater_equal}[comparison]
        return LocalFrame([[batch.filter(compare(batch[name], int(value))) for batch in task] for task in self.tasks])

    def repartition(self, n_tasks: int, *key: str) -> LocalFrame:
        """Bring rows with the same key into one task, in another order than they had."""
        tasks: list[list[pa.RecordBatch]] = [[] for _ in range(n_tasks)]
        for batch in (batch for task in self.tasks for batch in task):
            task_of_row = [hash(row) % n_tasks for row in zip(*(batch[name].to_pylist() for name in key), strict=True)]
            for place, task in enumerate(tasks):
                task.insert(0, batch.take(pa.array(np.flatnonzero(np.array(task_of_row) == place)[::-1])))
        return LocalFrame(tasks)

    def collect(self) -> list[dict[str, Any]]:
        return [row for task in self.tasks for batch in task for row in batch.to_pylist()]


def _append_task(batch: pa.RecordBatch) -> pa.RecordBatch:
    keys = zip(*(batch[name].to_pylist() for name in ("model", "slice", "score_range")), strict=True)
    return batch.append_column("task", pa.array([hash(key) for key in keys], pa.int64()))


def frame_of(*tasks: Iterable[pa.RecordBatch]) -> DataFrame:
    """Give batches by task as a frame that can be ranked."""
    return cast("DataFrame", LocalFrame(tasks))


def draw_rows(
    seed: int, rows: int, levels: int, shares: Mapping[str, Sequence[float]]
) -> tuple[list[float], list[bool], dict[str, list[State]]]:
    """Draw scores, labels, and the states of identities by name.

    There are `levels` scores, or no two alike if 0; `shares` are those of each identity's rows that are in it, not in
    it, and unknown.
    """
    rng = np.random.default_rng((seed, levels))
    scores = rng.integers(0, levels, rows) / 4 if levels else rng.random(rows)
    states: dict[str, list[State]] = {
        name: [(True, False, None)[state] for state in rng.choice(3, rows, p=share)] for name, share in shares.items()
    }
    return scores.tolist(), (rng.random(rows) < 0.4).tolist(), states


def block_of(entries: Mapping[tuple[int, float], int]) -> Block:
    """Give the block of so many rows of each (key, score)."""
    ordered = sorted(entries)
    keys, lengths = np.unique(np.array([key for key, _ in ordered], np.int64), return_counts=True)
    scores = np.array([score for _, score in ordered], np.float64)
    return Block(keys, lengths, scores, np.array([entries[entry] for entry in ordered], np.int64))


def flags(*names: str, nullable: bool = True, name: str = "columns") -> Source:
    return Source(name, "flags", nullable, names)


def category(name: str, *values: str, nullable: bool = True) -> Source:
    return Source(name, "category", nullable, tuple(f"{name}={value}" for value in values), values)


def array(name: str, *values: str, nullable: bool = True) -> Source:
    return Source(name, "array", nullable, values, values)


def encoding_of(*sources: Source, models: int = 1, slices: int = 1, crossed: bool = False) -> Encoding:
    return Encoding(
        models=tuple(f"model {n}" for n in range(models)),
        slices=("all", *(f"slice {n}" for n in range(1, slices))),
        sources=sources,
        crossed=crossed,
    )


def membership_fields(
    encoding: Encoding,
    states: Mapping[str, Sequence[State]],
    values: Mapping[int, Sequence[Any]] | None = None,
) -> Fields:
    """Give the bit fields of states of flags by identity, and of values by place of their source.

    A source of flags is unknown on the rows on which all its identities are.
    """
    fields: Fields = {
        ("known", encoding.nullable_sources.index(place)): [value is not None for value in column]
        for place, column in (values or {}).items()
        if encoding.sources[place].nullable
    }
    for source in encoding.sources:
        for name in source.identities if source.kind == "flags" else ():
            number = encoding.number[name]
            fields["member", number] = [state is True for state in states[name]]
            if source.nullable:
                fields["unknown", number] = [state is None for state in states[name]]
    return fields


def pack(
    encoding: Encoding,
    fields: Fields,
    scores: Sequence[ArrayLike],
    values: Mapping[int, Sequence[Any]] | None = None,
) -> pa.RecordBatch:
    """Make EXAMPLES of bit fields (0 unless given), of the scores of every model, and of values."""
    columns: dict[str, Any] = {name: np.zeros(len(np.asarray(scores[0])), np.int64) for name in encoding.word_columns}
    for key, column in fields.items():
        bits = encoding.fields[key]
        columns[encoding.word_columns[bits.word]] |= np.asarray(column).astype(np.int64) << bits.shift
    columns |= {
        name: np.asarray(column, np.float64) for name, column in zip(encoding.score_columns, scores, strict=True)
    }
    for place, name in encoding.value_columns.items():
        kind = pa.string() if encoding.sources[place].kind == "category" else _LIST
        columns[name] = pa.array((values or {})[place], kind)
    return pa.RecordBatch.from_pydict(columns)


def find_states(encoding: Encoding, batch: pa.RecordBatch) -> list[list[State]]:
    """Give for every row the state of every identity by number, as entries and known populations say it together."""
    rows = TaskRows(pa.Table.from_batches([batch]), encoding)
    found: list[list[State]] = [
        [False if not mask or known & mask else None for mask in encoding.known_masks] for known in rows.known.tolist()
    ]
    for row, number, unknown in zip(*(column.tolist() for column in rows.memberships), strict=True):
        assert found[row][number] is False, "an entry of a row outside of the known population, or a repeated one"
        found[row][number] = None if unknown else True
    return found


def rank_batches(
    batches: Sequence[pa.RecordBatch],
    encoding: Encoding,
    boundaries: Sequence[ArrayLike] | None = None,
    edges: Sequence[Floats] = (),
) -> Counts:
    """Rank the rows of one task."""
    float_boundaries = [np.asarray(edges, np.float64) for edges in boundaries or [()] * len(encoding.models)]
    return rank(frame_of(batches), encoding, float_boundaries, edges)


def six_pairs(counts: Counts, identity: int, model: int = 0, part: int = 0) -> tuple[Sums, ...]:
    """Give the six pairs of cells of an identity by number, as the oracle gives them."""
    n_models, numbers = len(set(counts.groups.model)), counts.numbers.tolist()
    n_slices = len(counts.groups.model) // n_models // len(numbers)
    group = (model * n_slices + part) * len(numbers) + numbers.index(identity)
    cells = counts.cells[:, group].tolist()
    return tuple(
        Sums(cells[low], cells[high], *map(int, counts.sums[pair, :, group]))
        for pair, (low, high) in enumerate(CELLS_OF_PAIRS)
    )


def pairs_by_name(counts: Counts, encoding: Encoding, model: int = 0, part: int = 0) -> dict[str, tuple[Sums, ...]]:
    """Give the six pairs of every identity by its name."""
    return {name: six_pairs(counts, number, model, part) for number, name in enumerate(encoding.names)}


def count_by_name(examples: Sequence[Example], encoding: Encoding) -> dict[str, tuple[Sums, ...]]:
    """Give what the oracle counts of every identity by its name."""
    return {name: count_identity(examples, number) for number, name in enumerate(encoding.names)}


def gather_parts(batches: Iterable[pa.RecordBatch], encoding: Encoding, cut: Cut) -> dict[Key, Parts]:
    """Cut each batch as a task of its own, and bring the parts of every range together, ascending."""
    gathered: dict[Key, dict[int, list[Any]]] = {}
    for batch in batches:
        for part in cut(TaskRows(pa.Table.from_batches([batch]), encoding)):
            gathered.setdefault(part[:3], {}).setdefault(part.kind, []).append(part.data)
    return dict(sorted(gathered.items()))


def draw_positions(subset: Subset, start: int, stop: int) -> Ints:
    """Return the positions of a subset in [start, stop), each of which is a run of its own."""
    runs, counts = draw_runs(np.arange(stop - start + 1), subset, start)
    assert (counts == 1).all()
    return start + runs
