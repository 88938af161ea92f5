"""The jackknife: U without each group of rows, for comparisons of models and for rules on changes between runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from biasspark.arrays import Floats
from biasspark.columns import GROUP, OVERALL_METRIC
from biasspark.config import GROUPS, Gate, Measures, Rule
from biasspark.corpus.clusters import group_of
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.survey import MOST_CHOSEN_RANGES, Survey
from biasspark.metrics.suite import METRIC_OF_CELLS
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.workflows.measurement import Measurement, SurveyedCorpus, job_on_corpus

ROWS_A_RANGE = 1 << 17
"""Of the corpus: a row takes a placement for every identity along, so fewer of them fit a worker."""

IDENTITIES_AT_ONCE = 32
"""More are ranked in several passes."""


def leave_out_groups(surveyed: SurveyedCorpus, measurement: Measurement, gate: Gate) -> pa.Table:
    """Return the table ``jackknife_statistics`` of what rules on changes are on.

    Scans the corpus once more and shuffles it once: see `count_replicates`.
    """
    rules, whole, id_column = gate.change_rules, surveyed.measures, surveyed.id_column
    assert id_column is not None  # the configuration requires it
    measures = replace(
        whole,
        models={name: column for name, column in whole.models.items() if any(name in rule.models for rule in rules)},
        slices={name: text for name, text in whole.slices.items() if any(name in rule.slices for rule in rules)},
        label_balance=None,
    )
    encoding = build_encoding(measures, surveyed.survey)
    asked = {number for rule in rules for number in _numbers_of(rule, encoding)}
    identities = sorted(asked & set(measurement.counts.numbers.tolist()))
    group = group_of(id_column, None, GROUPS).alias(GROUP)
    examples = encode_examples(surveyed.corpus, measures, encoding, id_column, [group])
    boundaries = cut_finely(surveyed.survey, whole, tuple(measures.models))
    with job_on_corpus(surveyed, "leave out groups"):
        statistics = count_replicates(examples, encoding, boundaries, identities, GROUPS)
    metrics = {rule.metric for rule in rules}
    cells = zip(statistics["low_cell"].to_pylist(), statistics["high_cell"].to_pylist(), strict=True)
    return statistics.filter(pa.array([METRIC_OF_CELLS[pair] in metrics for pair in cells], pa.bool_()))


def in_chunks(identities: Sequence[int]) -> Iterator[Sequence[int]]:
    """Give identities by their numbers, 32 at a time."""
    for start in range(0, len(identities), IDENTITIES_AT_ONCE):
        yield identities[start : start + IDENTITIES_AT_ONCE]


def cut_finely(survey: Survey, measures: Measures, models: Sequence[str]) -> list[Floats]:
    """Return where the ranges of some of the surveyed models meet, so many that a worker has room for every row."""
    chosen = min(-(-survey.n_rows // ROWS_A_RANGE), MOST_CHOSEN_RANGES)
    boundaries = survey.boundaries(measures.ranking.ranges or chosen)
    return [boundaries[list(measures.models).index(name)] for name in models]


def _numbers_of(rule: Rule, encoding: Encoding) -> Iterator[int]:
    """Give the numbers of the identities that a rule is on, as far as there are."""
    if rule.metric == OVERALL_METRIC:
        yield 0
    elif rule.identities is not None:
        yield from (number for number, name in enumerate(encoding.names) if name in rule.identities)
    else:
        yield from range(1, len(encoding.names) if rule.crossed else encoding.first_pair)
