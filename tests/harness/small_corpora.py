"""Small corpora of a label y, a score s and an identity u: read, encoded, measured, and refused."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.config import Corpus, Measures, Rejects, parse_measures
from biasspark.corpus.decode import states
from biasspark.corpus.eligibility import rejected_rows
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.encoding import Encoding, RowCounts
from biasspark.corpus.read import read_corpus
from biasspark.corpus.survey import Survey
from biasspark.errors import Fault, InputError
from biasspark.workflows.corpus_steps import Measurement, measure, survey_for_ranking

RUN_DATE = date(2026, 1, 15)
SECRET = "secret"


def measures_of(**changes: Any) -> Measures:
    return parse_measures({"label": {"column": "y"}, "models": ["s"], "identities": ["u"]} | changes)


def corpus_of(**source: Any) -> Corpus:
    return Corpus(**({"name": "test"} | source))


def read(
    spark: SparkSession, path: Path | str | None = None, measures: Measures | None = None, **source: Any
) -> DataFrame:
    return read_corpus(spark, corpus_of(**({"path": str(path)} if path else {}), **source), RUN_DATE, measures)


@dataclass(frozen=True)
class Examples:
    """EXAMPLES on the driver, readable."""

    encoding: Encoding
    rows: Sequence[Row]

    def read(self, what: str, number: int = 0) -> list[int]:
        field = self.encoding.fields[what, number]
        words = [row[self.encoding.word_columns[field.word]] for row in self.rows]
        return [word >> field.shift & (1 << field.width) - 1 for word in words]

    @property
    def labels(self) -> list[bool | str]:
        """The label, or why the row is rejected."""
        pairs = zip(self.read("label"), self.read("row_reason"), strict=True)
        return [ROW_REASONS[reason - 1] if reason else bool(label) for label, reason in pairs]

    @property
    def scores(self) -> list[float | str]:
        """The score of the first model, or why it is rejected."""
        scores = [row[self.encoding.score_columns[0]] for row in self.rows]
        assert None not in scores
        pairs = zip(scores, self.read("score_reason"), strict=True)
        return [SCORE_REASONS[reason - 1] if reason else score for score, reason in pairs]

    @property
    def states(self) -> dict[str, list[bool | None]]:
        """The state of every row by identity."""
        names = enumerate(self.encoding.names)
        return {name: [row["states"][number] for row in self.rows] for number, name in names if number}


def examples_of(corpus: DataFrame, measures: Measures, values: Mapping[str, Sequence[str]] | None = None) -> Examples:
    """Collect EXAMPLES; `values` are those of categorical and array columns."""
    return examples_of_each([(corpus, measures)], values)[0]


def examples_of_each(
    cases: Sequence[tuple[DataFrame, Measures]], values: Mapping[str, Sequence[str]] | None = None
) -> list[Examples]:
    """Collect EXAMPLES of several corpora by one query."""
    survey = Survey(1, {name: tuple(texts) for name, texts in (values or {}).items()}, ())
    encodings = [build_encoding(measures, survey) for _, measures in cases]
    frames = [
        encode_examples(corpus.coalesce(1), measures, encoding, None).select(
            "*", F.array(*states(encoding)).alias("states"), F.lit(number).alias("case")
        )
        for number, ((corpus, measures), encoding) in enumerate(zip(cases, encodings, strict=True))
    ]
    rows = reduce(DataFrame.union, frames).collect()
    return [Examples(coded, [row for row in rows if row["case"] == number]) for number, coded in enumerate(encodings)]


def measure_corpus(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    duplicates: str = "allow",
    rejects: Rejects | None = None,
) -> Measurement:
    with survey_for_ranking(corpus, measures, id_column, duplicates, rejects) as surveyed:
        return measure(surveyed)


def count_and_reject(
    corpus: DataFrame, measures: Measures, duplicates: str = "allow"
) -> tuple[RowCounts, Counter[tuple[Any, ...]]]:
    """Measure a corpus with a column id; return its row counts, and its rejected rows."""
    with survey_for_ranking(corpus, measures, "id", duplicates) as surveyed:
        counts = measure(surveyed).counts.row_counts
        rejects = rejected_rows(surveyed.corpus, measures, "id", 100)
        return counts, Counter(map(tuple, rejects.collect()))


def cell_sizes(measurement: Measurement, model: str = "s") -> dict[str, tuple[int, int]]:
    """Return negatives and positives of every identity, and of ``(overall)``, on all rows."""
    groups, cells = measurement.counts.groups, measurement.counts.cells
    chosen = [n for n, key in enumerate(zip(groups.model, groups.slice, strict=True)) if key == (model, "all")]
    first = {n: 2 * int(groups.is_overall[n]) for n in chosen}  # (overall) has only a background
    return {groups.identity[n]: (int(cells[first[n], n]), int(cells[first[n] + 1, n])) for n in chosen}


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Collect a frame in an order that does not depend on its partitions."""
    return sorted(map(tuple, frame.collect()), key=str)


def explained(frame: DataFrame) -> str:
    """Return the plans of a frame."""
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    return text.getvalue()


def write_rows(spark: SparkSession, path: Path, n_rows: int = 20) -> None:
    columns = ("id", "id % 2 = 0 AS y", "id / 10.0D AS s", "1.0D AS u", f"'{SECRET}' AS text")
    spark.range(n_rows).selectExpr(*columns).coalesce(1).write.parquet(str(path))


def read_and_rank(spark: SparkSession, path: Path | str, measures: Measures | None = None, **source: Any) -> RowCounts:
    corpus = read(spark, path, measures, **source)
    id_column = "id" if "id" in corpus.columns else None
    return measure_corpus(corpus, measures or measures_of(), id_column).counts.row_counts


def faults_of(spark: SparkSession, path: Path | str, measures: Measures | None = None, **source: Any) -> list[Fault]:
    """Return the faults of a corpus that is refused; a sentence stands as a fault of no key."""
    with pytest.raises(InputError) as caught:
        read_and_rank(spark, path, measures, **source)
    assert SECRET not in str(caught.value)
    assert caught.value.exit_code == 3
    return [fault if isinstance(fault, Fault) else Fault((), None, fault) for fault in caught.value.faults]


def fault_of(spark: SparkSession, path: Path | str, measures: Measures | None = None, **source: Any) -> str:
    """Return the message of a corpus that is refused with one fault."""
    with pytest.raises(InputError) as caught:
        read_and_rank(spark, path, measures, **source)
    assert SECRET not in str(caught.value)
    (message,) = caught.value.messages
    return message


def holds(text: str, *parts: object) -> bool:
    """Return whether a text has all parts, in their order."""
    start = 0
    for part in map(str, parts):
        if (index := text.find(part, start)) < 0:
            return False
        start = index + len(part)
    return True
