"""A window of nights that kept their state, beside measuring the same rows again: what one session compares."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Progress
from biasspark.config import Config, parse_config
from biasspark.maps.windows import find_window, merge_nights
from biasspark.metrics.suite import bias_metrics
from biasspark.night import run_night
from biasspark.pipeline import JOB, Measurement, measure
from biasspark.tables.runs import new_run
from biasspark.tables.store import open_store

FIRST = date(2026, 1, 1)
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True)
class Nights:
    """A corpus, each row of which belongs to one of so many nights, and where their tables are."""

    spark: SparkSession
    corpus: DataFrame
    config: Config
    n_nights: int

    @staticmethod
    def of(spark: SparkSession, corpus: DataFrame, folder: Path, n_nights: int = 7) -> Nights:
        """Configure what the job of the other candidates measures, with its state kept."""
        table: dict[str, Any] = tomllib.loads((Path(__file__).parent / "job.toml").read_text("utf-8"))
        table |= {"state": {"keep": True}, "output": {"path": str(folder / "nights")}}
        return Nights(spark, corpus, parse_config(table, folder), n_nights)

    def publish(self) -> None:
        """Measure every night, and keep its state."""
        for place in range(self.n_nights):
            run = new_run(FIRST + timedelta(days=place), self.config.corpus.name, JOB)
            rows = self.corpus.where(F.col("id") % self.n_nights == place)
            run_night(rows, self.config, open_store(self.config.output), run, Progress())

    def merge(self) -> DataFrame:
        """Return the suite of the window, headers and ledger read now."""
        self.spark.conf.set(_BATCH, "64")  # as jobs/window_metrics.py has it
        days = (FIRST, FIRST + timedelta(days=self.n_nights - 1))
        window = find_window(self.spark, open_store(self.config.output), self.config, days, allow_missing=False)
        return self._suite(merge_nights(window, self.config))

    def rescan(self) -> DataFrame:
        """Return the suite of all rows, surveyed now."""
        self.spark.conf.set(_BATCH, "200000")
        return self._suite(measure(self.corpus, self.config))

    def _suite(self, measurement: Measurement) -> DataFrame:
        return bias_metrics(measurement.statistics, self.config.intervals)

    def cases(self) -> Mapping[str, Any]:
        """Return both ways by name."""
        return {"rescan": self.rescan, f"window of {self.n_nights} nights": self.merge}
