"""Label balance alone: labels are counted, and nothing is ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.arrays import Ints
from biasspark.config import Config, Measures, Rejects
from biasspark.corpus.decode import count_labels, count_rows, count_sides
from biasspark.corpus.eligibility import rejected_rows
from biasspark.corpus.encode import list_length_bins
from biasspark.corpus.encoding import Encoding, RowCounts
from biasspark.corpus.usable import check_lengths
from biasspark.metrics.data_quality import identity_warnings
from biasspark.metrics.label_balance import label_balance
from biasspark.tables.publish import Rows
from biasspark.tables.schemas import LABEL_BALANCE, REJECTED_ROWS, Table
from biasspark.workflows.measurement import (
    SurveyedCorpus,
    check_counts,
    job_on_corpus,
    survey_for_ranking,
    warn_of_rows,
)


@dataclass(frozen=True)
class CountedLabels:
    """The labels of a corpus: negatives and positives by identity and length bin (`biasspark.ranking.counts.Counts`).

    The sides are the labelled rows in and outside of each identity, crossed pairs left out.
    """

    surveyed: SurveyedCorpus
    counts: RowCounts
    labels: Ints
    sides: Sequence[tuple[int, int]]

    @property
    def balance(self) -> pa.Table:
        """The table ``label_balance``, less the run's columns."""
        return tabulate_labels(self.labels, self.surveyed.encoding, self.surveyed.measures)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should look at."""
        surveyed, counts = self.surveyed, self.counts
        of_identities = identity_warnings(surveyed.encoding.singles, self.sides, counts.n_labelled)
        return (*surveyed.survey.warnings, *of_identities, *warn_of_rows(counts))

    def tables(self, config: Config) -> dict[Table, Rows]:
        """Return what a job publishes of it: the balance, and the rejected rows if there are any."""
        corpus, reasons = self.surveyed.corpus, self.counts.rejects
        rejects = rejected_rows(corpus, config, config.corpus.id, reasons, config.rejects.max_rows)
        return {LABEL_BALANCE: self.balance} | ({} if rejects is None else {REJECTED_ROWS: rejects})


def tabulate_labels(labels: Ints, encoding: Encoding, measures: Measures) -> pa.Table:
    """Return the table ``label_balance`` of labels that were counted by an encoding."""
    assert measures.label_balance is not None
    length_bins = list_length_bins(measures.label_balance)
    return label_balance(labels, encoding.names[: encoding.first_pair], length_bins, measures.privacy)


@contextmanager
def balance_labels(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    duplicates: str = "allow",
    rejects: Rejects | None = None,
) -> Iterator[CountedLabels]:
    """Count the labels of a corpus, for a block. Scores are not read. Parameters are those of `survey_for_ranking`.

    Runs three narrow jobs: the survey, and two that count rows and labels. Raises `InputError` if the corpus does not
    fit the configuration, no row has a label, or more is rejected than is allowed.
    """
    assert measures.label_balance is not None
    with survey_for_ranking(corpus, measures, id_column, duplicates) as surveyed:
        examples, encoding = surveyed.examples, surveyed.encoding
        with job_on_corpus(surveyed, "count the rows"):
            (counted,) = count_rows(examples, encoding, [count_sides(encoding).alias("sides")]).collect()
            labels = count_labels(examples, encoding)
        counts = encoding.read_row_counts(counted["counts"])
        check_counts(surveyed, counts, counted["sides"], rejects)
        check_lengths(labels, measures.label_balance)
        yield CountedLabels(surveyed, counts, labels, counted["sides"])
