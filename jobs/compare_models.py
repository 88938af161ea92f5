"""Compare models with a baseline by every metric of the suite, and publish what got significantly better or worse.

Rules of the gate that name the baseline are judged here; if one fails, the comparison is published and the exit code
is 5.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from biasspark.cli import NIGHTLY_EXAMPLES, Outcome, Progress, job_parser, run_job
from biasspark.config import Config, load_config
from biasspark.corpus.source import read_corpus
from biasspark.errors import ConfigError
from biasspark.highlights import show_changes
from biasspark.maps.comparisons import compare, compared_alone
from biasspark.maps.gate import judged_comparison, show_alerts
from biasspark.night import NightlyJob, conclude, plan_or_run
from biasspark.pipeline import describe_run, warn_of_rejects
from biasspark.plan import describe_comparison
from biasspark.session import persisted
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run
from biasspark.tables.schemas import COMPARISON_ALERTS, MODEL_COMPARISONS
from biasspark.tables.store import Store

JOB = MODEL_COMPARISONS.job
EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "compare.toml")


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the comparison."""
    config = load_config(arguments.config, arguments.overrides)
    if config.compare is None:
        example = '[compare] baseline = "old"'
        raise ConfigError(f"[compare]: missing. This job requires the table. Write, for example, {example}.")
    asked = compared_alone(config)
    read = partial(read_corpus, corpus=config.corpus, measures=asked)
    return plan_or_run(NightlyJob(JOB, read, describe_comparison, run_night), config, arguments)


def run_night(corpus: DataFrame, config: Config, store: Store, run: Run, progress: Progress) -> Outcome:
    """Survey, compare, publish, and say what changed."""
    spark = corpus.sparkSession
    progress.stage(f"surveying {config.corpus.name}")
    comparison = compare(corpus, config, config.corpus.id, config.corpus.duplicates, config.rejects)
    progress.stage(f"comparing {comparison.extent}")
    found = (*comparison.warnings, *warn_of_rejects(comparison.tally))
    with persisted(*comparison.kept, comparison.compared):
        comparison.compute()
        with judged_comparison(comparison.compared, config, comparison.missing_models) as verdict:
            warnings = (*found, *verdict.warnings)
            record = replace(describe_run(config, comparison.tally, warnings, spark.version), status=verdict.status)
            tables = {MODEL_COMPARISONS: comparison.table, COMPARISON_ALERTS: verdict.alerts}
            published = publish(tables, run, store, record)

    def show() -> str:
        alerts = show_alerts(store.read(spark, COMPARISON_ALERTS, run), COMPARISON_ALERTS, verdict)
        return "\n\n".join(filter(None, [show_changes(spark, store, run), alerts]))

    done = conclude(spark, store, published, record, show)
    return progress.end(replace(done, summary={**done.summary, "gate": verdict.outcome}, exit_code=verdict.exit_code))


if __name__ == "__main__":
    sys.exit(
        run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night on whose rows the models are compared"))
    )
