"""Label balance alone: labels are counted, and nothing is ranked."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.config import Measures
from biasspark.corpus.check import check_schema
from biasspark.corpus.decode import count_labels, count_rows, count_sides
from biasspark.corpus.encode import build_encoding, encode_examples, list_length_bins
from biasspark.corpus.survey import survey_corpus
from biasspark.corpus.usable import check_identities, check_lengths, check_usable
from biasspark.metrics.data_quality import identity_warnings
from biasspark.metrics.label_balance import label_balance
from biasspark.session import describe
from biasspark.session.spark_errors import translate_corpus_errors
from biasspark.workflows.measurement import warn_of_rows


def balance_labels(corpus: DataFrame, measures: Measures) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the table ``label_balance``, less the run's columns, and warnings. Scores are not read.

    Raises
    ------
    InputError
        If the corpus does not fit the configuration, or no row has a label.

    Notes
    -----
    Runs three narrow jobs: the survey, and two that count rows and labels.
    """
    assert measures.label_balance is not None
    check_schema(corpus, measures)
    spark, expressions = corpus.sparkSession, measures.expressions
    with describe(spark, "survey the corpus"), translate_corpus_errors(corpus, expressions):
        survey = survey_corpus(corpus, measures)
    encoding = build_encoding(measures, survey)
    examples = encode_examples(corpus, measures, encoding, None)
    with describe(spark, "count the rows"), translate_corpus_errors(corpus, expressions):
        (counted,) = count_rows(examples, encoding, [count_sides(encoding).alias("sides")]).collect()
        labels = count_labels(examples, encoding)
    counts = encoding.read_row_counts(counted["counts"])
    check_usable(counts, measures, corpus.schema)
    unknown = [name for name, sides in zip(encoding.singles, counted["sides"], strict=True) if not any(sides)]
    check_identities(measures.identities, encoding.singles, unknown, counts.unreadable)
    check_lengths(labels, measures.label_balance)
    names, length_bins = encoding.names[: encoding.first_pair], list_length_bins(measures.label_balance)
    balance = label_balance(labels, names, length_bins, measures.privacy)
    warnings = (
        *survey.warnings,
        *identity_warnings(encoding.singles, counted["sides"], counts.n_labelled),
        *warn_of_rows(counts),
    )
    return balance, warnings
