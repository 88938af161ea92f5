"""Small corpora of a label y, a score s and an identity u: read, labelled, ranked, and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.config import Corpus, Measures, parse_measures
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.rejects import rejected_rows
from biasspark.corpus.source import read_corpus
from biasspark.corpus.survey import Survey
from biasspark.errors import InputError
from biasspark.pipeline import measure, ranked_once
from tests.oracle.pairs import State
from tests.ranking_without_spark import find_states

NIGHT = date(2026, 1, 15)


def measures_of(**changes: Any) -> Measures:
    return parse_measures({"label": {"column": "y"}, "models": ["s"], "identities": ["u"]} | changes)


def corpus_of(**source: Any) -> Corpus:
    return Corpus(**({"name": "test"} | source))


@dataclass(frozen=True)
class Examples:
    """EXAMPLES on the driver, readable."""

    codebook: Codebook
    batch: pa.RecordBatch

    def read(self, what: str, number: int = 0) -> list[int]:
        place = self.codebook.fields[what, number]
        words = self.batch[self.codebook.word_columns[place.word]].to_pylist()
        return [word >> place.shift & (1 << place.width) - 1 for word in words]

    @property
    def labels(self) -> list[bool | str]:
        """The label, or why the row is rejected."""
        pairs = zip(self.read("label"), self.read("row_reason"), strict=True)
        return [ROW_REASONS[reason - 1] if reason else bool(label) for label, reason in pairs]

    def scores(self, model: int = 0) -> list[float | str]:
        """The score, or why it is rejected."""
        pairs = zip(self.batch[f"score_{model}"].to_pylist(), self.read("score_reason", model), strict=True)
        return [SCORE_REASONS[reason - 1] if reason else score for score, reason in pairs]

    @property
    def states(self) -> dict[str, list[State]]:
        """The state of every row by identity."""
        rows = find_states(self.codebook, self.batch)
        return {name: [row[number] for row in rows] for number, name in enumerate(self.codebook.names) if number}


def examples_of(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> Examples:
    """Collect EXAMPLES; `values` stands for what the survey finds in categorical and array columns."""
    found = {name: tuple(of_name) for name, of_name in (values or {}).items()}
    codebook = build_codebook(measures, Survey(1, found, ()))
    return read_examples(codebook, label_examples(corpus, measures, codebook, id_column).collect())


def examples_of_each(cases: Sequence[tuple[DataFrame, Measures]]) -> list[Examples]:
    """Collect EXAMPLES of several corpora by one query."""
    codebooks = [build_codebook(measures, Survey(1, {}, ())) for _, measures in cases]
    frames = [
        label_examples(corpus, measures, codebook, None).withColumn("case", F.lit(number))
        for number, ((corpus, measures), codebook) in enumerate(zip(cases, codebooks, strict=True))
    ]
    rows = reduce(DataFrame.union, frames).collect()
    return [
        read_examples(codebook, [row for row in rows if row["case"] == number])
        for number, codebook in enumerate(codebooks)
    ]


def read_examples(codebook: Codebook, rows: Sequence[Row]) -> Examples:
    kinds = dict.fromkeys(codebook.word_columns, pa.int64()) | dict.fromkeys(codebook.score_columns, pa.float64())
    for place, name in codebook.value_columns.items():
        kinds[name] = pa.string() if codebook.sources[place].kind == "category" else pa.list_(pa.string())
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    assert not any(columns[name].null_count for name in (*codebook.word_columns, *codebook.score_columns))
    return Examples(codebook, pa.RecordBatch.from_pydict(columns))


def rank_and_reject(
    corpus: DataFrame, measures: Measures, duplicates: str = "allow", max_rows: int = 100
) -> tuple[Tally, Counter[tuple[Any, ...]]]:
    measurement = measure(corpus, measures, "id", duplicates)
    with ranked_once(measurement) as (tally, _):
        rejects = rejected_rows(measurement.corpus, measures, "id", tally.rejects, max_rows)
        found = [] if rejects is None else rejects.collect()
    return tally, Counter(map(tuple, found))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Collect a frame in an order that does not depend on its partitions."""
    return sorted(map(tuple, frame.collect()), key=str)


def write_rows(spark: SparkSession, path: Path, n_rows: int = 20) -> None:
    frame = spark.range(n_rows).selectExpr("id", "id % 2 = 0 AS y", "id / 10.0D AS s", "1.0D AS u", "'secret' AS text")
    frame.coalesce(1).write.parquet(str(path))


def read_and_rank(spark: SparkSession, path: Path, **source: Any) -> None:
    corpus = read_corpus(spark, corpus_of(path=str(path), **source), NIGHT)
    with ranked_once(measure(corpus, measures_of(), "id" if "id" in corpus.columns else None)):
        pass


def fault_of(spark: SparkSession, path: Path, **source: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_and_rank(spark, path, **source)
    assert "secret" not in str(caught.value)
    return str(caught.value)
