"""The map of what pairs a night with others: its ids are put into groups, and U is counted without each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from biasspark.columns import GROUP, OVERALL_METRIC
from biasspark.config import GROUPS, Gate, Rule
from biasspark.corpus.clusters import group_of
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.tallies import count_rows
from biasspark.maps.comparisons import cut_finely, leave_out
from biasspark.metrics.suite import metric_of_pair
from biasspark.pipeline import Measurement
from biasspark.session import describe
from biasspark.tables.schemas import JACKKNIFE_STATISTICS


def leave_out_groups(measurement: Measurement, gate: Gate) -> DataFrame | None:
    """Return the table ``jackknife_statistics``, less the run's columns, of what rules on changes look at.

    Returns
    -------
    DataFrame or None
        None where the night has nothing of it.

    Notes
    -----
    Lazy; one narrow job where a rule is on crossed pairs, of which those count that have enough rows. What is returned
    scans the corpus once more and shuffles it once for every 32 identities: see `rank_without_groups`.
    """
    rules, whole, id_column = gate.of_changes, measurement.measures, measurement.id_column
    assert id_column is not None  # the configuration requires it
    measures = replace(
        whole,
        models={name: column for name, column in whole.models.items() if any(name in rule.models for rule in rules)},
        slices={name: text for name, text in whole.slices.items() if any(name in rule.slices for rule in rules)},
        label_balance=None,
    )
    codebook = build_codebook(measures, measurement.survey)
    group = group_of(id_column, None, GROUPS).alias(GROUP)
    examples = label_examples(measurement.corpus, measures, codebook, id_column, [group])
    with describe(examples.sparkSession, "count the rows"), corpus_faults(measurement.corpus, whole.expressions):
        identities = _list_asked(rules, examples, codebook)
    if not identities:
        return None
    boundaries = cut_finely(measurement.survey, whole, tuple(measures.models))
    left = leave_out(examples, codebook, boundaries, identities, GROUPS)
    asked = left.where(metric_of_pair().isin(*{rule.metric for rule in rules}))
    return asked.select(*JACKKNIFE_STATISTICS.value_columns)


def compute_left_out(measurement: Measurement) -> None:
    """Compute the table, which is persisted: what is wrong with the corpus is told as such, and not as of a write."""
    assert measurement.left_out is not None
    corpus = measurement.corpus
    with describe(corpus.sparkSession, "leave out groups"), corpus_faults(corpus, measurement.measures.expressions):
        measurement.left_out.count()


def _list_asked(rules: Sequence[Rule], examples: DataFrame, codebook: Codebook) -> list[int]:
    """Return the numbers of the identities that rules look at, ascending."""
    asked = {number for rule in rules for number in _numbers_of(rule, codebook)}
    if asked and max(asked) >= codebook.first_pair:
        (counted,) = count_rows(examples, codebook).collect()
        asked &= set(codebook.list_identities(counted["counts"]))
    return sorted(asked)


def _numbers_of(rule: Rule, codebook: Codebook) -> Iterator[int]:
    """Give the numbers of the identities that a rule looks at, as far as there are."""
    if rule.metric == OVERALL_METRIC:
        yield 0
    elif rule.identities is not None:
        yield from (number for number, name in enumerate(codebook.names) if name in rule.identities)
    else:
        yield from range(1, len(codebook.names) if rule.crossed else codebook.first_pair)
