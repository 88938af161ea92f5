"""The map of the state of a night: what it keeps of its ranking, by which windows of nights are measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import FloatType

from biasspark.config import Config, merge_rules
from biasspark.corpus.survey import list_valued
from biasspark.pipeline import JOB, Measurement, cut_at
from biasspark.ranking.state_engine import state_rows
from biasspark.ranking.state_header import Cut, Header, State, is_lopsided, reuse_cut
from biasspark.session import describe
from biasspark.tables.nights import Series, StoredHeader, list_configurations, read_blocks, read_headers
from biasspark.tables.store import Store


def keep_state(measurement: Measurement, config: Config, store: Store) -> Measurement:
    """Return the measurement of a night that keeps its state, cut as the last night of the same rules was.

    Notes
    -----
    Two small Spark jobs, over the ledger and over the headers of one run.
    """
    spark = measurement.corpus.sparkSession
    with describe(spark, "look up how scores are cut"):
        last = _find_last(spark, store, config, _types_of(measurement))
    survey, ranges = measurement.survey, config.ranking.ranges or measurement.survey.chosen_ranges
    cuts = []
    for model, found in zip(config.models, survey.boundaries(config.ranking.ranges), strict=True):
        kept = reuse_cut(last[model], ranges) if model in last else None
        cuts.append(kept or Cut(found, ranges))
    return cut_at(measurement, cuts)


def state_of(measurement: Measurement, config: Config) -> DataFrame:
    """Return the table ``score_blocks``, less the run's columns, of a night that was ranked and is persisted."""
    ranked = measurement.ranking.ranked
    with describe(ranked.sparkSession, "sum up the state"):
        found = measurement.ranking.overview.collect()
    codebook, survey, schema = measurement.codebook, measurement.survey, measurement.corpus.schema
    counts = np.array(next(row["counts"] for row in found if row["counts"] is not None), np.int64)
    members = counts[codebook.first_pair_tally :]
    of_night: dict[str, Any] = {
        "rules": merge_rules(config.resolved()),
        "types": _types_of(measurement),
        "values": survey.values,
        "members": [(*codebook.pairs[pair], int(members[pair])) for pair in np.flatnonzero(members)],
    }
    headers = []
    for number, ((model, column), cut) in enumerate(zip(config.models.items(), measurement.cuts, strict=True)):
        ranges = [row for row in found if row["model"] == number and row["n_rows"]]
        n_rows, fullest = sum(row["n_rows"] for row in ranges), max((row["n_rows"] for row in ranges), default=0)
        ends = (min(row["lowest"] for row in ranges), max(row["highest"] for row in ranges)) if ranges else None
        own = Header(
            **of_night,
            n_rows=n_rows,
            fullest=fullest,
            extremes=survey.extremes.get(model, ends),  # of all rows with a label, where histograms ask for them
            quantiles=survey.quantiles[number].tolist(),
            is_single=isinstance(schema[column].dataType, FloatType),
            ranges=cut.ranges,
            lopsided=is_lopsided(fullest, n_rows, cut.boundaries) if cut.lopsided is None else cut.lopsided,
        )
        headers.append(own)
    return state_rows(ranked, codebook, headers, measurement.cuts)


def decode_states(stored: Mapping[str, StoredHeader]) -> dict[str, State]:
    """Return the state of each model from what is stored of it."""
    return {
        model: State(own.state_key, np.array(own.boundaries, np.float64), Header.decode(own.header))
        for model, own in stored.items()
    }


def _find_last(spark: SparkSession, store: Store, config: Config, types: Mapping[str, str]) -> dict[str, State]:
    """Return the state of each model on the night last published that was measured by the same rules."""
    rules = merge_rules(config.resolved())
    last: dict[str, State] = {}
    for configured, run in list_configurations(spark, store, Series(JOB, config.corpus.name)):
        if "state" not in configured or merge_rules(configured) != rules or set(config.models) <= last.keys():
            continue
        (stored,) = read_headers(read_blocks(spark, store, [run]), 1)
        for model, state in decode_states(stored).items():
            if state.header.types == types:
                last.setdefault(model, state)
    return last


def _types_of(measurement: Measurement) -> dict[str, str]:
    schema = measurement.corpus.schema
    return {name: schema[name].dataType.simpleString() for name in list_valued(measurement.measures)}
