"""Attribute the AUC of every model to rows, segments, groups and pairs, and publish which of them cost it most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.cli import DRY_RUN, NIGHTLY_EXAMPLES, Command, Outcome, make_parser, on_date
from biasspark.config import Attribution, Config, Measures
from biasspark.report.console_summary import show_lost
from biasspark.tables.schemas import LOSS_BY_SEGMENT
from biasspark.workflows import nightly
from biasspark.workflows.attribution import describe_rare, describe_rows, ranked_blocks, survey_rows, warn_of_features
from biasspark.workflows.attribution_tables import asked_tables, list_tables
from biasspark.workflows.measurement import rows_only

JOB = LOSS_BY_SEGMENT.job


def run_night(corpus: DataFrame, context: nightly.RunContext) -> Outcome:
    """Survey, rank, search and publish; return the outcome."""
    config, progress = context.config, context.progress
    progress.stage(f"surveying {config.corpus.name}")
    with survey_rows(corpus, config, str(config.corpus.id), config.corpus.duplicates) as surveyed:
        progress.stage(f"ranking {surveyed.size_text}")
        with ranked_blocks(surveyed, config.rejects) as ranked:
            counts, of_rows = describe_rows(surveyed, ranked)
            tables, warnings = list_tables(surveyed, ranked, progress.stage)
            small = {table: rows for table, rows in tables.items() if isinstance(rows, pa.Table)}
            shown = partial(show_lost, small, describe_rare(surveyed))
            return progress.end(context.publish(tables, counts, (*of_rows, *warnings), shown))


def plan_attribution(config: Config) -> nightly.Plan:
    """Plan the attribution."""
    asked = _require_attribution(config)
    passes = [nightly.Pass("survey the features and groupings")] if asked.searches or asked.groupings else []
    shuffled = f"{20 if asked.pairs else 12} bytes per score"
    shuffled += ", and about 100 for each row of two models that are compared" if asked.compare else ""
    passes.append(nightly.Pass("rank every row", shuffled))
    passes += [nightly.Pass("list the examples", "9 bytes per score and the id")] if asked.write_examples else []
    pairs = asked.pairs_of.items()
    parts = {
        "features": ", ".join(asked.features) or "none",
        "searched": ", ".join(_list_searches(asked)) or "nothing",
        "crosses": ", ".join(f"{name}: {text}" for name, text in asked.groupings.items()) or "none",
        "pairs": ", ".join(f"{name}: {pair.negatives} against {pair.positives}" for name, pair in pairs) or "none",
        "segments": ", ".join(f"{name}: {text}" for name, text in asked.segments.items()) or "none",
    }
    return nightly.Plan(parts, passes, asked_tables(asked), warn_of_features(asked))


def _list_searches(asked: Attribution) -> Iterator[str]:
    if asked.tree:
        yield f"trees of {', '.join(asked.targets)}, depth {asked.tree.max_depth}"
    for new, old in asked.compare:
        yield f"{new} against {old}"
    if asked.slice_search:
        yield f"the {asked.slice_search.most} worst slices"
    if asked.pairs:
        yield f"pairs of {asked.pairs.positives:,} positives and {asked.pairs.negatives:,} negatives"


def _require_attribution(config: Config) -> Attribution:
    return nightly.require(config.attribution, "attribution", 'numeric = ["comment_length"], tree = {}')


def _attributed_only(config: Config) -> Measures:
    return replace(rows_only(config), attribution=_require_attribution(config))


# ---- the command line

EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "attribution.toml")

FLAGS = (*on_date("the date whose rows are attributed"), DRY_RUN)
main = partial(nightly.plan_or_run, nightly.NightlyJob(JOB, _attributed_only, plan_attribution, run_night))
COMMAND = Command(partial(make_parser, __doc__, EXAMPLES, FLAGS), main)
