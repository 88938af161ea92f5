"""What a night keeps of its ranking, so that windows of nights are measured without reading the corpus again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import FloatType

from biasspark.config import Config, merge_rules
from biasspark.corpus.survey import list_valued
from biasspark.ranking.counts import Counts
from biasspark.session import describe
from biasspark.tables.ledger import JobCorpus, list_configurations
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.store import Store
from biasspark.tables.stored_blocks import StoredHeader, read_blocks, read_headers
from biasspark.windows.sketch import RangeBoundaries, Sketch, SketchHeader, is_skewed, reuse_boundaries
from biasspark.windows.sketch_rows import sketch_rows
from biasspark.workflows.measurement import SurveyedCorpus
from biasspark.workflows.publish_run import RunContext


def plan_state(surveyed: SurveyedCorpus, context: RunContext) -> tuple[SurveyedCorpus, list[RangeBoundaries]]:
    """Return the corpus as it is ranked to keep its state, and the boundaries of the last night of the same rules.

    Notes
    -----
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


def decode_states(stored: Mapping[str, StoredHeader]) -> dict[str, Sketch]:
    """Return the state of each model from what is stored of it."""
    return {
        model: Sketch(header.state_key, np.array(header.boundaries, np.float64), SketchHeader.decode(header.header))
        for model, header in stored.items()
    }


def _find_last(spark: SparkSession, store: Store, config: Config, types: Mapping[str, str]) -> dict[str, Sketch]:
    """Return the state of each model on the night last published that was measured by the same rules."""
    rules = merge_rules(config.resolved())
    last: dict[str, Sketch] = {}
    for configured, run in list_configurations(spark, store, JobCorpus(BIAS_METRICS.job, config.corpus.name)):
        if "state" not in configured or merge_rules(configured) != rules or set(config.models) <= last.keys():
            continue
        (stored,) = read_headers(read_blocks(spark, store, [run]), 1)
        for model, state in decode_states(stored).items():
            if state.header.types == types:
                last.setdefault(model, state)
    return last


def _types_of(surveyed: SurveyedCorpus) -> dict[str, str]:
    schema = surveyed.corpus.schema
    return {name: schema[name].dataType.simpleString() for name in list_valued(surveyed.measures)}
