"""Train classifiers on an imbalanced corpus, mitigate the bias of one by a plan, and measure what that changes."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, Progress, job_parser, run_job
from biasspark.mitigation.comparison import JOB, judge, read_models, read_terms
from biasspark.mitigation.experiment import Folder, run_experiment
from biasspark.mitigation.settings import MODELS, describe_experiment, load_experiment
from biasspark.mitigation.training_data import read_snippets
from biasspark.night import run_night
from biasspark.pipeline import JOB as NIGHT
from biasspark.session import follow_tasks, job_session
from biasspark.tables.runs import new_run
from biasspark.tables.schemas import BIAS_METRICS, MODEL_SUMMARY, TABLES
from biasspark.tables.store import open_store

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/mitigation.toml --run-date 2026-03-31
  spark-submit jobs/%(prog)s --config conf/mitigation.toml --run-date 2026-03-31 --set mitigation.rows=20000
  spark-submit jobs/%(prog)s --config conf/mitigation.toml --run-date 2026-03-31 \\
      --set mitigation.corpus=snippets --set mitigation.text=comment \\
      --set mitigation.debiasing=data/chosen.parquet --set mitigation.random=data/random.parquet

The scored test set is measured as any corpus, into the tables of the job bias_metrics. The exit code is 5 unless the
mitigated model has the lowest pinned AUC equality difference of the three, and the highest lowest BPSN AUC; and it is 5
where a rule of [gate] fails.
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the experiment and the night of its test set."""
    progress = Progress()
    experiment = load_experiment(arguments.config, arguments.overrides)
    settings, store = experiment.mitigation, open_store(experiment.output)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {settings.corpus}") as spark:
        snippets = read_snippets(spark, settings, arguments.run_date)
        store.check(spark, TABLES.values())
        if arguments.dry_run:
            summary = {"job": JOB, "status": "planned", "config_hash": experiment.hash}
            return Outcome(summary=summary, table=describe_experiment(experiment))
        run = new_run(arguments.run_date, settings.corpus, NIGHT)
        folder = Folder(spark, f"{experiment.corpus.path}/{run.partition}")
        with follow_tasks(spark, progress.advance):
            scored = run_experiment(folder, settings, snippets, progress)
            night = run_night(scored.test_set, experiment, store, run, progress)
            models = read_models(store.read(spark, MODEL_SUMMARY, run))
            terms = read_terms(store.read(spark, BIAS_METRICS, run), tuple(settings.imbalanced))
        return judge(night, [model | scored.sizes[name] for name, model in zip(MODELS, models, strict=True)], terms)


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night to publish the scored test set as")))
