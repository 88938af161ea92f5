"""Which dates a corpus has, for the fault of a night without rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import cached_property

from pyspark.sql import SparkSession

from biasspark.config import FILTER, Corpus
from biasspark.corpus.read import count_days
from biasspark.errors import ABSENT, Fault, NoRows
from biasspark.text import format_count


class CorpusDates:
    """The dates of a configured corpus, looked up when the first night without rows asks for them."""

    def __init__(self, spark: SparkSession, corpus: Corpus) -> None:
        self._spark = spark
        self._corpus = corpus

    @contextmanager
    def named(self, run_date: date) -> Iterator[None]:
        """Have the fault of a night without rows, NoRows, name the first, the last and the nearest date.

        It stays as it was where no column has the dates of rows.
        """
        try:
            yield
        except NoRows:
            if self._corpus.run_date_column is None:
                raise
            raise NoRows(_describe(self._corpus, run_date, self._days)) from None

    @cached_property
    def _days(self) -> list[tuple[date, int, int]] | None:
        try:
            return count_days(self._spark, self._corpus)
        except Exception:  # noqa: BLE001 - the night has no rows, whatever is wrong with the files of others
            return None


def _describe(corpus: Corpus, run_date: date, days: list[tuple[date, int, int]] | None) -> Fault:
    """Return the fault of a date without rows; it shows no value of the corpus but dates."""
    no_row = f"There is no row of {run_date}."
    if days is None:
        return Fault(("corpus",), ABSENT, no_row, "Check --run-date and the keys of this table.")
    path, value = ("corpus", "run_date_column"), corpus.run_date_column
    if not days:
        rule = f"{no_row} The column has no date in any row. A date that is text is written YYYY-MM-DD."
        return Fault(path, value, rule, "Name another column, convert this one in a view, or check the path.")
    chosen = [day for day, _, n_chosen in days if n_chosen]
    if not chosen:
        return Fault(FILTER, corpus.filter, f"{no_row} The filter leaves no row of any date.", "Correct it.")
    nearest = min(chosen, key=lambda day: abs(day - run_date))
    if len(chosen) == 1:
        available = f"{nearest} only"
    else:
        available = f"{format_count(len(chosen), 'date')}, from {chosen[0]} to {chosen[-1]}; the nearest is {nearest}"
    if n_of_date := sum(n_rows for day, n_rows, _ in days if day == run_date):
        rule = f"It leaves none of the {n_of_date:,} rows of {run_date}. There are rows of {available}."
        return Fault(FILTER, corpus.filter, rule, "Correct it, or name such a date by --run-date.")
    rule = f"{no_row} There are rows of {available}."
    return Fault(path, value, rule, "Name such a date by --run-date, or check the path.")
