"""The map: one line a stage, in the order in which data flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark import __version__
from biasspark.columns import ALL_ROWS, CROSSED, IDENTITY, MODEL, SLICE, SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE
from biasspark.config import Config, Measures
from biasspark.corpus.check import check_schema
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.rejects import rejected_rows
from biasspark.corpus.source import input_faults, mark_duplicates
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.errors import InputError
from biasspark.metrics.hygiene import ScoreProfile, score_warnings
from biasspark.metrics.statistics import with_auc
from biasspark.metrics.suite import bias_metrics
from biasspark.metrics.summary import model_summary
from biasspark.ranking.engine import Ranking, rank
from biasspark.session import describe, persisted
from biasspark.tables.runs import RunRecord
from biasspark.tables.schemas import BIAS_METRICS, MODEL_SUMMARY, REJECTED_ROWS, U_STATISTICS, Table

WORST = (MODEL, SLICE, IDENTITY, "subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")


@dataclass(frozen=True)
class Measurement:
    """A ranked corpus: everything that is published is arithmetic on it. All lazy.

    Attributes
    ----------
    statistics
        `u_statistics`, less the run's columns.
    """

    corpus: DataFrame
    measures: Measures
    survey: Survey
    codebook: Codebook
    ranking: Ranking
    statistics: DataFrame
    id_column: str | None

    @property
    def extent(self) -> str:
        """How much there is to rank, in words."""
        book = self.codebook
        return (
            f"{self.survey.n_rows:,} rows: {len(book.models)} models, {len(book.slices)} slices, "
            f"{len(book.singles)} identities, {len(book.pairs)} crossed pairs"
        )

    def tables(self, tally: Tally, max_rejects: int) -> dict[Table, DataFrame]:
        """Return the rows of every table, less the run's columns; the corpus is scanned again only for rejects."""
        intervals = self.measures.intervals
        return {
            U_STATISTICS: self.statistics,
            BIAS_METRICS: bias_metrics(self.statistics, intervals),
            MODEL_SUMMARY: model_summary(self.statistics, intervals),
            REJECTED_ROWS: rejected_rows(self.corpus, self.measures, self.id_column, tally.rejects, max_rejects),
        }


def measure(
    corpus: DataFrame, measures: Measures, id_column: str | None = None, duplicates: str = "allow"
) -> Measurement:
    """Rank a corpus for the bias metrics.

    Parameters
    ----------
    corpus : DataFrame
        One row a comment.
    measures : Measures
        Label, models, identities, slices, engine and intervals.
    id_column : str, optional
        What identifies a row.
    duplicates : {"allow", "estimate", "reject"}
        What to do about ids that repeat.

    Raises
    ------
    InputError
        If the corpus does not fit the configuration.

    Notes
    -----
    Runs one narrow job, the survey. What is returned scans the corpus once and shuffles it once; persist
    `Measurement.ranking.ranked` to take several tables of one ranking.
    """
    check_schema(corpus, measures, id_column)
    spark = corpus.sparkSession
    with describe(spark, "survey the corpus"), input_faults("corpus"):
        survey = survey_corpus(corpus, measures, id_column if duplicates == "estimate" else None)
    if duplicates == "reject" and id_column:
        corpus = mark_duplicates(corpus, id_column)
    codebook = build_codebook(measures, survey)
    examples = label_examples(corpus, measures, codebook, id_column)
    ranking = rank(examples, codebook, survey.boundaries(measures.ranking.ranges), measures.ranking.engine)
    statistics = with_auc(ranking.statistics)
    return Measurement(corpus, measures, survey, codebook, ranking, statistics, id_column)


@contextmanager
def ranked_once(measurement: Measurement) -> Iterator[Tally]:
    """Rank the corpus, keep the ranking for the block, and give what was counted on the way.

    Raises
    ------
    InputError
        If a file cannot be read, or no row counts for any model.
    """
    spark = measurement.corpus.sparkSession
    with persisted(measurement.ranking.ranked, measurement.statistics):
        with describe(spark, "rank every score"), input_faults("corpus"):
            counts = measurement.ranking.tallies.collect()[0]["counts"]
        tally = measurement.codebook.read_tally(counts)
        if not any(tally.n_eligible.values()):
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in tally.rejects.items())
            raise InputError(
                f"corpus: none of its {tally.n_rows:,} rows can be used ({reasons}). A row needs a label and a score. "
                "Check [label] and [models]."
            )
        yield tally


def find_warnings(measurement: Measurement) -> tuple[str, ...]:
    """Return what a person should look at: repeated ids, and peculiar scores."""
    within = (F.col("low_cell") == SUBGROUP_NEGATIVE) & (F.col("high_cell") == SUBGROUP_POSITIVE)
    everyone = measurement.statistics.where(within & (F.col(SLICE) == ALL_ROWS) & ~F.col(CROSSED))
    best = {row[MODEL]: row["best"] for row in everyone.groupBy(MODEL).agg(F.max("auc").alias("best")).collect()}
    found = {row[MODEL]: row for row in measurement.ranking.profiles.collect()}
    profiles = []
    for number, model in enumerate(measurement.codebook.models):
        scores = found[number].asDict() if number in found else {"n_rows": 0, "n_distinct": 0, "largest_tie": 0}
        profiles.append(ScoreProfile(**scores | {"model": model, "best_subgroup_auc": best.get(model)}))
    return (*measurement.survey.warnings, *score_warnings(profiles))


def worst_identities(metrics: DataFrame, most: int = 10) -> list[dict[str, Any]]:
    """Return the identities with the lowest of their subgroup, BPSN and BNSP AUC, crossed pairs left out."""
    lowest = F.least("subgroup_auc", "bpsn_auc", "bnsp_auc")
    rows = (
        metrics.where(lowest.isNotNull() & ~F.col(CROSSED))
        .orderBy(lowest, *WORST[:3])
        .select(*WORST)
        .limit(most)
        .collect()
    )
    return [row.asDict() for row in rows]


def describe_run(config: Config, tally: Tally, warnings: tuple[str, ...], spark_version: str) -> RunRecord:
    """Return what the ledger says of a run."""
    return RunRecord(
        n_rows=tally.n_rows,
        n_rejected=tally.n_rejected,
        rejects=tally.rejects,
        warnings=warnings,
        config=config.json,
        config_hash=config.hash,
        code_version=__version__,
        spark_version=spark_version,
    )
