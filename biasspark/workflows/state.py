"""What a night keeps of its ranking, so that windows of nights are measured without reading the corpus again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import FloatType

from biasspark.columns import HEADER_RANGE
from biasspark.config import Config, merge_rules
from biasspark.corpus.survey import list_valued
from biasspark.ranking.counts import Counts
from biasspark.session import describe
from biasspark.tables.ledger import JobCorpus, list_configurations
from biasspark.tables.published import check_count
from biasspark.tables.runs import Run
from biasspark.tables.schema_check import no_rows
from biasspark.tables.schemas import BIAS_METRICS, SCORE_BLOCKS
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store
from biasspark.windows.sketch import RangeBoundaries, Sketch, SketchHeader, is_skewed, reuse_boundaries
from biasspark.windows.sketch_rows import sketch_rows
from biasspark.workflows.measurement import SurveyedCorpus
from biasspark.workflows.publish_run import RunContext


def plan_state(surveyed: SurveyedCorpus, context: RunContext) -> tuple[SurveyedCorpus, list[RangeBoundaries]]:
    """Return the corpus as it is ranked to keep its state, and the boundaries of the last night of the same rules.

    Two small Spark jobs, over the ledger and over the headers of one run.
    """
    config = context.config
    with describe(context.spark, "look up boundaries"):
        last = _find_last(context.spark, context.store, config, _types_of(surveyed))
    ranges = config.ranking.ranges or surveyed.survey.chosen_ranges
    cuts = []
    for model, boundaries in zip(config.models, surveyed.boundaries, strict=True):
        kept = reuse_boundaries(last[model], ranges) if model in last else None
        cuts.append(kept or RangeBoundaries(boundaries, ranges))
    return replace(surveyed, encoding=replace(surveyed.encoding, keeps_state=True)), cuts


def score_blocks(
    surveyed: SurveyedCorpus, counts: Counts, ranked: DataFrame, config: Config, cuts: list[RangeBoundaries]
) -> DataFrame:
    """Return the table ``score_blocks`` of a night whose blocks are RANKED. Lazy."""
    encoding, survey, schema = surveyed.encoding, surveyed.survey, surveyed.corpus.schema
    of_night: dict[str, Any] = {
        "rules": merge_rules(config.resolved()),
        "types": _types_of(surveyed),
        "values": survey.values,
        "members": [(*encoding.pairs[pair], int(counts.pair_rows[pair])) for pair in np.flatnonzero(counts.pair_rows)],
    }
    headers = []
    for number, ((model, column), cut) in enumerate(zip(config.models.items(), cuts, strict=True)):
        profile, max_range_rows = counts.profiles.get(model), counts.max_range_rows.get(model, 0)
        n_rows, ends = (profile.n_rows, (profile.lowest, profile.highest)) if profile else (0, None)
        header = SketchHeader(
            **of_night,
            n_rows=n_rows,
            max_range_rows=max_range_rows,
            extremes=survey.extremes.get(model, ends),  # of all rows with a label, where histograms ask for them
            quantiles=survey.quantiles[number].tolist(),
            is_single=isinstance(schema[column].dataType, FloatType),
            ranges=cut.ranges,
            skewed=is_skewed(max_range_rows, n_rows, cut.boundaries) if cut.skewed is None else cut.skewed,
        )
        headers.append(header)
    return sketch_rows(ranked, encoding, headers, cuts)


def check_blocks(store: Store, blocks: DataFrame, runs: Sequence[Run]) -> None:
    """Raise `InputError` if a run has other blocks than the ledger counts, unless it has none. One small Spark job."""
    with storage_errors(f"{store.root}/{SCORE_BLOCKS.name}", "read"):
        counts = {row["night"]: row["count"] for row in blocks.groupBy("night").count().collect()}
    for index, n_rows in counts.items():
        check_count(store, SCORE_BLOCKS, runs[index], n_rows)


def read_blocks(spark: SparkSession, store: Store, runs: Sequence[Run]) -> DataFrame:
    """Return the rows of ``score_blocks`` of some runs, with the index of each run in the list as ``night``."""
    blocks = [_blocks_of(spark, store, run) for run in runs] or [no_rows(spark, SCORE_BLOCKS)]
    return reduce(DataFrame.unionByName, [rows.withColumn("night", F.lit(index)) for index, rows in enumerate(blocks)])


def read_states(blocks: DataFrame, n_nights: int) -> list[dict[str, Sketch]]:
    """Return the state of each night by model, from what `read_blocks` gives; empty where a night keeps none.

    One Spark job; the driver receives what grows with nights, models and identities, never with rows.
    """
    rows = blocks.where(F.col("score_range") == HEADER_RANGE)
    parts: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in rows.select("night", "model", "part", "state_key", "boundaries", "block").collect():
        parts[row["night"], row["model"]].append(row)
    states: list[dict[str, Sketch]] = [{} for _ in range(n_nights)]
    for (night, model), of_model in parts.items():
        ordered = sorted(of_model, key=lambda part: part["part"])
        header = SketchHeader.decode(b"".join(bytes(part["block"]) for part in ordered))
        states[night][model] = Sketch(ordered[0]["state_key"], np.array(ordered[0]["boundaries"], np.float64), header)
    return states


def _blocks_of(spark: SparkSession, store: Store, run: Run) -> DataFrame:
    """Return the blocks of a run; none where they are gone, or were never there."""
    try:
        return store.read(spark, SCORE_BLOCKS, run)
    except FileNotFoundError:
        return no_rows(spark, SCORE_BLOCKS)


def _find_last(spark: SparkSession, store: Store, config: Config, types: Mapping[str, str]) -> dict[str, Sketch]:
    """Return the state of each model on the night last published that was measured by the same rules."""
    rules = merge_rules(config.resolved())
    last: dict[str, Sketch] = {}
    for configured, run in list_configurations(spark, store, JobCorpus(BIAS_METRICS.job, config.corpus.name)):
        if "state" not in configured or merge_rules(configured) != rules or set(config.models) <= last.keys():
            continue
        (states,) = read_states(read_blocks(spark, store, [run]), 1)
        for model, state in states.items():
            if state.header.types == types:
                last.setdefault(model, state)
    return last


def _types_of(surveyed: SurveyedCorpus) -> dict[str, str]:
    schema = surveyed.corpus.schema
    return {name: schema[name].dataType.simpleString() for name in list_valued(surveyed.measures)}
