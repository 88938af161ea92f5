"""The map of label balance alone: labels are counted, and nothing is ranked."""

from __future__ import annotations

from pyspark.sql import DataFrame

from biasspark.config import Measures
from biasspark.corpus.buckets import bucket_ends
from biasspark.corpus.check import check_schema
from biasspark.corpus.codebook import Tally
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.labels import label_counts
from biasspark.corpus.survey import survey_corpus
from biasspark.corpus.tallies import count_positives, count_rows, count_sides
from biasspark.errors import InputError
from biasspark.metrics.balance import label_balance
from biasspark.metrics.hygiene import annotation_warnings, reject_warnings, side_warnings
from biasspark.metrics.withholding import withhold_rows
from biasspark.session import describe
from biasspark.tables.schemas import LABEL_BALANCE


def balance_labels(corpus: DataFrame, measures: Measures) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the table ``label_balance``, less the run's columns, and warnings. Scores are not read.

    Raises
    ------
    InputError
        If the corpus does not fit the configuration, or no row has a label.

    Notes
    -----
    Runs two narrow jobs: the survey, and one that counts rows. The table is lazy, and scans the corpus once.
    """
    assert measures.label_balance is not None
    check_schema(corpus, measures)
    spark, expressions = corpus.sparkSession, measures.expressions
    with describe(spark, "survey the corpus"), corpus_faults(corpus, expressions):
        survey = survey_corpus(corpus, measures)
    codebook = build_codebook(measures, survey)
    examples = label_examples(corpus, measures, codebook, None)
    further = [count_positives((), codebook).alias("n_positive"), count_sides(codebook).alias("sides")]
    with describe(spark, "count the rows"), corpus_faults(corpus, expressions):
        (counted,) = count_rows(examples, codebook, further).collect()
    tally = codebook.read_tally(counted["counts"])
    n_labelled = tally.n_rows - tally.n_rejected
    if not n_labelled:
        raise InputError(_say_no_label(tally))
    balance = label_balance(label_counts(examples, codebook), bucket_ends(measures.label_balance))
    warnings = (
        *survey.warnings,
        *_warn_of_one_label(n_labelled, counted["n_positive"]),
        *side_warnings(codebook.singles, counted["sides"]),
        *annotation_warnings(tally.unreadable),
        *reject_warnings("corpus", "rows", tally.n_rows, tally.rejects),
    )
    return withhold_rows(balance, LABEL_BALANCE, measures.privacy), warnings


def _say_no_label(tally: Tally) -> str:
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in tally.rejects.items())
    return f"corpus: none of its {tally.n_rows:,} rows can be used ({reasons}). A row needs a label. Check [label]."


def _warn_of_one_label(n_labelled: int, n_positive: int) -> tuple[str, ...]:
    if n_positive not in (0, n_labelled):
        return ()
    label = "negative" if n_positive else "positive"
    return (f"label: none of the {n_labelled:,} rows with a label is {label}. Check [label].",)
