"""Label balance alone: labels are counted, and nothing is ranked."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.config import Measures
from biasspark.corpus.decode import count_labels, count_rows, count_sides
from biasspark.corpus.encode import list_length_bins
from biasspark.corpus.usable import check_lengths
from biasspark.metrics.data_quality import identity_warnings
from biasspark.metrics.label_balance import label_balance
from biasspark.workflows.measurement import check_counts, job_on_corpus, survey_for_ranking, warn_of_rows


def balance_labels(corpus: DataFrame, measures: Measures) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the table ``label_balance``, less the run's columns, and warnings. Scores are not read.

    Runs three narrow jobs: the survey, and two that count rows and labels. Raises `InputError` if the corpus does not
    fit the configuration, or no row has a label.
    """
    assert measures.label_balance is not None
    with survey_for_ranking(corpus, measures) as surveyed:
        examples, encoding = surveyed.examples, surveyed.encoding
        with job_on_corpus(surveyed, "count the rows"):
            (counted,) = count_rows(examples, encoding, [count_sides(encoding).alias("sides")]).collect()
            labels = count_labels(examples, encoding)
    counts = encoding.read_row_counts(counted["counts"])
    check_counts(surveyed, counts, counted["sides"])
    check_lengths(labels, measures.label_balance)
    names, length_bins = encoding.names[: encoding.first_pair], list_length_bins(measures.label_balance)
    balance = label_balance(labels, names, length_bins, measures.privacy)
    warnings = (
        *surveyed.survey.warnings,
        *identity_warnings(encoding.singles, counted["sides"], counts.n_labelled),
        *warn_of_rows(counts),
    )
    return balance, warnings
