"""The delete-a-group jackknife: groups of rows by a hash of their ids, and the AUCs of a run without each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.columns import GROUP, OVERALL_METRIC
from biasspark.config import JACKKNIFE_GROUPS, Gate, Rule
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.values import column
from biasspark.metrics.suite import METRIC_OF_CELLS
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.workflows.corpus_steps import Measurement, SurveyedCorpus


def group_of(id_column: str, cluster: Column | None, groups: int) -> Column:
    """Return the group of a row, INT from 0 to groups - 1, by a hash of its cluster, or of its id without a cluster.

    A row without a cluster shares no group by name with a cluster, even if its id equals the cluster.
    """
    row_id = column(id_column).cast("string")
    hashed = F.xxhash64(row_id)
    if cluster is not None:
        hashed = F.when(cluster.isNull(), F.xxhash64(F.lit("row"), row_id)).otherwise(F.xxhash64(cluster))
    return F.pmod(hashed, F.lit(groups)).cast("int").alias(GROUP)


def leave_out_groups(surveyed: SurveyedCorpus, measurement: Measurement, gate: Gate) -> pa.Table:
    """Return the table ``jackknife_statistics`` for the rules on changes. One scan and one shuffle."""
    rules, all_measures, id_column = gate.change_rules, surveyed.measures, surveyed.id_column
    assert id_column is not None  # [gate] paired needs it
    models = {name: text for name, text in all_measures.models.items() if any(name in rule.models for rule in rules)}
    slices = {name: text for name, text in all_measures.slices.items() if any(name in rule.slices for rule in rules)}
    measures = replace(all_measures, models=models, slices=slices, label_balance=None)
    encoding = build_encoding(measures, surveyed.survey, surveyed.corpus)
    numbers = {number for rule in rules for number in _numbers_of(rule, encoding)}
    identities = sorted(numbers & set(measurement.counts.numbers.tolist()))
    group = group_of(id_column, None, JACKKNIFE_GROUPS)
    examples = encode_examples(surveyed.corpus, measures, encoding, id_column, [group])
    boundaries = surveyed.cut_finely(measures.models)
    with surveyed.job("leave out groups"):
        statistics = count_replicates(examples, encoding, boundaries, identities, JACKKNIFE_GROUPS)
    metrics = {rule.metric for rule in rules}
    cells = zip(statistics["low_cell"].to_pylist(), statistics["high_cell"].to_pylist(), strict=True)
    return statistics.filter(pa.array([METRIC_OF_CELLS[pair] in metrics for pair in cells], pa.bool_()))


def _numbers_of(rule: Rule, encoding: Encoding) -> Iterator[int]:
    """Yield the numbers of the identities of a rule that exist."""
    if rule.metric == OVERALL_METRIC:
        yield 0
    elif rule.identities is not None:
        yield from (number for number, name in enumerate(encoding.names) if name in rule.identities)
    else:
        yield from range(1, len(encoding.names) if rule.crossed else encoding.first_pair)
