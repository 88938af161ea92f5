"""The map: one line a stage, in the order in which data flow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
from biasspark.ranking.engine import Ranking, rank, read_overview
from biasspark.ranking.placements import Profile
from biasspark.session import describe, persisted
from biasspark.tables.runs import RunRecord
from biasspark.tables.schemas import BIAS_METRICS, MODEL_SUMMARY, REJECTED_ROWS, U_STATISTICS, Table

_NO_SCORES = Profile(0, 0, 0, math.inf, -math.inf)
WORST = (MODEL, SLICE, IDENTITY, "subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")


@dataclass(frozen=True)
class Measurement:
    """A ranked corpus: everything that is published is arithmetic on it. All lazy.

    Attributes
    ----------
    statistics
        `u_statistics`, less the run's columns.
    kept
        What the tables come of: persist these frames to compute each of them once.
    """

    corpus: DataFrame
    measures: Measures
    survey: Survey
    codebook: Codebook
    ranking: Ranking
    statistics: DataFrame
    id_column: str | None
    kept: tuple[DataFrame, ...]

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
    `Measurement.kept` to take several tables of one ranking.
    """
    check_schema(corpus, measures, id_column)
    spark = corpus.sparkSession
    with describe(spark, "survey the corpus"), input_faults("corpus"):
        survey = survey_corpus(corpus, measures, id_column if duplicates == "estimate" else None)
    kept: list[DataFrame] = []
    if duplicates == "reject" and id_column:
        corpus, *kept = mark_duplicates(corpus, id_column)
    codebook = build_codebook(measures, survey)
    examples = label_examples(corpus, measures, codebook, id_column)
    ranking = rank(examples, codebook, survey.boundaries(measures.ranking.ranges), measures.ranking.engine)
    statistics = with_auc(ranking.statistics)
    kept += [ranking.ranked, statistics]
    return Measurement(corpus, measures, survey, codebook, ranking, statistics, id_column, tuple(kept))


@contextmanager
def ranked_once(measurement: Measurement) -> Iterator[tuple[Tally, dict[str, Profile]]]:
    """Rank the corpus, keep the ranking for the block, and give its counts of rows and each model's profile.

    Raises
    ------
    InputError
        If a file cannot be read, or no row counts for any model.
    """
    spark = measurement.corpus.sparkSession
    with persisted(*measurement.kept):
        with describe(spark, "rank every score"), input_faults("corpus"):
            tally, profiles = read_overview(measurement.ranking.overview.collect(), measurement.codebook)
        if not any(tally.n_eligible.values()):
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in tally.rejects.items())
            raise InputError(
                f"corpus: none of its {tally.n_rows:,} rows can be used ({reasons}). A row needs a label and a score. "
                "Check [label] and [models]."
            )
        yield tally, profiles


def find_warnings(measurement: Measurement, profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """Return what a person should look at: repeated ids, and peculiar scores."""
    within = (F.col("low_cell") == SUBGROUP_NEGATIVE) & (F.col("high_cell") == SUBGROUP_POSITIVE)
    everyone = measurement.statistics.where(within & (F.col(SLICE) == ALL_ROWS) & ~F.col(CROSSED))
    with describe(measurement.corpus.sparkSession, "combine the ranges"):
        best = {row[MODEL]: row["best"] for row in everyone.groupBy(MODEL).agg(F.max("auc").alias("best")).collect()}
    scores = [
        ScoreProfile(model, **profiles.get(model, _NO_SCORES)._asdict(), best_subgroup_auc=best.get(model))
        for model in measurement.codebook.models
    ]
    return (*measurement.survey.warnings, *score_warnings(scores))


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
