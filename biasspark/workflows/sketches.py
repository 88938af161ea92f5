"""Sketches of runs: measure and keep the ranking in ``score_blocks``, and read what earlier runs kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import FloatType

from biasspark.columns import HEADER_RANGE
from biasspark.config import Config, merge_rules
from biasspark.corpus.values import combine
from biasspark.ranking.counts import Counts
from biasspark.session import describe
from biasspark.tables.ledger import list_configurations
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS, SCORE_BLOCKS, Table
from biasspark.tables.spark_schemas import no_rows
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store
from biasspark.windows import sketch
from biasspark.windows.sketch import RUN, RangeBoundaries, Sketch, SketchHeader
from biasspark.workflows.corpus_job import RunContext
from biasspark.workflows.corpus_steps import Measurement, SurveyedCorpus, measure, measure_and_keep


@contextmanager
def rank_and_measure(
    surveyed: SurveyedCorpus, context: RunContext
) -> Iterator[tuple[Measurement, dict[Table, DataFrame]]]:
    """Rank every score, and yield the measurement, and ``score_blocks`` if the run keeps its sketches."""
    chosen = _choose_boundaries(surveyed, context) if context.config.state else None
    context.progress.stage(f"ranking {surveyed.size_text}")
    if chosen is None:
        yield measure(surveyed), {}
        return
    with measure_and_keep(surveyed, [ranges.boundaries for ranges in chosen]) as (measurement, ranked):
        yield measurement, {SCORE_BLOCKS: _score_blocks(surveyed, measurement.counts, ranked, context.config, chosen)}


def _choose_boundaries(surveyed: SurveyedCorpus, context: RunContext) -> list[RangeBoundaries]:
    """Return the boundaries of each model for a ranking that is kept: if possible, those of the last run like it."""
    config = context.config
    with describe(context.spark, "look up boundaries"):
        last = _find_last(context.spark, context.store, config, _types_of(surveyed))
    ranges = config.ranking.ranges or surveyed.survey.chosen_ranges
    return [
        (sketch.reuse_boundaries(last[model], ranges) if model in last else None) or RangeBoundaries(boundaries, ranges)
        for model, boundaries in zip(config.models, surveyed.boundaries, strict=True)
    ]


def _score_blocks(
    surveyed: SurveyedCorpus, counts: Counts, ranked: DataFrame, config: Config, chosen: list[RangeBoundaries]
) -> DataFrame:
    """Return the table ``score_blocks`` of a run with these RANKED blocks. Lazy."""
    encoding, survey, schema = surveyed.encoding, surveyed.survey, surveyed.corpus.schema
    common: dict[str, Any] = {
        "rules": merge_rules(config.resolved()),
        "types": _types_of(surveyed),
        "values": survey.values,
        "members": [(*encoding.pairs[pair], int(counts.pair_rows[pair])) for pair in np.flatnonzero(counts.pair_rows)],
    }
    headers = []
    for number, ((model, column), ranges) in enumerate(zip(config.models.items(), chosen, strict=True)):
        profile, max_range_rows = counts.profiles.get(model), counts.max_range_rows.get(model, 0)
        n_rows, ends = (profile.n_rows, (profile.lowest, profile.highest)) if profile else (0, None)
        skewed = ranges.skewed
        if skewed is None:
            skewed = sketch.is_skewed(max_range_rows, n_rows, ranges.boundaries)
        header = SketchHeader(
            **common,
            n_rows=n_rows,
            max_range_rows=max_range_rows,
            extremes=survey.extremes.get(model, ends),  # of all rows with a label, if histograms need them
            quantiles=survey.quantiles[number].tolist(),
            is_single=isinstance(schema[column].dataType, FloatType),
            ranges=ranges.ranges,
            skewed=skewed,
        )
        headers.append(header)
    return sketch.sketch_rows(ranked, encoding, headers, chosen)


def read_score_blocks(spark: SparkSession, store: Store, runs: Sequence[Run]) -> DataFrame:
    """Return the rows of ``score_blocks`` of some runs, with the index of the run as ``run``."""
    blocks = [no_rows(spark, SCORE_BLOCKS).withColumn(RUN, F.lit(0))]
    for index, run in enumerate(runs):
        with suppress(FileNotFoundError):  # the run kept no ranking, or its files are gone
            blocks.append(store.read(spark, SCORE_BLOCKS, run).withColumn(RUN, F.lit(index)))
    return combine(DataFrame.unionByName, blocks)


def read_states(blocks: DataFrame, n_runs: int) -> list[dict[str, Sketch]]:
    """Return the sketches of each run by model, {} for a run without them. Their size does not grow with rows."""
    rows = blocks.where(F.col("score_range") == HEADER_RANGE)
    parts: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in rows.select(RUN, "model", "part", "state_key", "boundaries", "block").collect():
        parts[row[RUN], row["model"]].append(row)
    states: list[dict[str, Sketch]] = [{} for _ in range(n_runs)]
    for (run, model), model_parts in parts.items():
        ordered = sorted(model_parts, key=lambda part: part["part"])
        header = SketchHeader.decode(b"".join(bytes(part["block"]) for part in ordered))
        states[run][model] = Sketch(ordered[0]["state_key"], np.array(ordered[0]["boundaries"], np.float64), header)
    return states


def _find_last(spark: SparkSession, store: Store, config: Config, types: Mapping[str, str]) -> dict[str, Sketch]:
    """Return the sketch of each model in the last published run with the same rules."""
    rules = merge_rules(config.resolved())
    last: dict[str, Sketch] = {}
    for configured, run in list_configurations(spark, store, BIAS_METRICS.job, config.corpus.name):
        if "state" not in configured or merge_rules(configured) != rules or set(config.models) <= last.keys():
            continue
        with storage_errors(store.location(SCORE_BLOCKS, run), "read"):
            (states,) = read_states(read_score_blocks(spark, store, [run]), 1)
        for model, state in states.items():
            if state.header.types == types:
                last.setdefault(model, state)
    return last


def _types_of(surveyed: SurveyedCorpus) -> dict[str, str]:
    schema = surveyed.corpus.schema
    return {name: schema[name].dataType.simpleString() for name in surveyed.measures.identities.value_columns}
