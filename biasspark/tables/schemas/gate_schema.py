"""Model minus baseline, metric by metric; and the gate: the outcome of every rule, and what pairs nights."""

from __future__ import annotations

from biasspark.tables.schemas.dsl import CROSSED, IDENTITY, MODEL, SLICE, Table, columns
from biasspark.tables.schemas.suite_schema import U_STATISTICS

MODEL_COMPARISONS = Table(
    name="model_comparisons",
    job="compare_models",
    comment="For each slice, identity and metric: by how much a model differs from a baseline on the rows that both "
    "score, and whether that is more than chance.",
    key=columns(f"""
        {SLICE}
        identity STRING: {IDENTITY.comment} (overall) stands for the whole slice, with the metric auc.
        metric STRING: subgroup_auc, bpsn_auc, bnsp_auc, background_auc, negative_aeg or positive_aeg, as in
            bias_metrics. auc for (overall).
        model STRING: The name of the model in the configuration.
        baseline_model STRING: The name of the model that it is compared with.
    """),
    values=columns(f"""
        {CROSSED}
        n_low BIGINT: Rows of the cell that should score lower (for a gap, the background), scored by both models. 0 or
            more.
        n_high BIGINT: Rows of the cell that should score higher (for a gap, the subgroup), scored by both models. 0 or
            more.
        value DOUBLE: The metric of the model, on these rows. 0 to 1, for a gap -0.5 to 0.5. NULL where a cell is empty.
        baseline_value DOUBLE: The metric of the baseline, on the same rows. 0 to 1, for a gap -0.5 to 0.5. NULL where a
            cell is empty.
        difference DOUBLE: value - baseline_value, more is better. For a gap |value| - |baseline_value|, less is better.
            -1 to 1, for a gap -0.5 to 0.5. NULL where a value is.
        difference_low DOUBLE: Lower end of its interval at the configured level, 0.95 unless given. For a gap over all
            signs that both intervals allow, and no lower than minus the largest |baseline_value| allowed. -1 to 1, for
            a gap -0.5 to 0.5. NULL where data are insufficient.
        difference_high DOUBLE: Upper end of its interval, for a gap no higher than the largest |value| that its
            interval allows. -1 to 1, for a gap -0.5 to 0.5. NULL where data are insufficient.
        p_value DOUBLE: Two-sided, for the hypothesis that both models are equally good. 0 to 1. For a gap the largest
            over these signs. 1 where they score these rows alike. NULL where data are insufficient.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg over the metrics and identities of the slice and the two
            models, crossed pairs by themselves. 0 to 1. NULL where data are insufficient.
        verdict STRING: better or worse, where p_adjusted is below 0.05. no_evidence, where it is not.
            insufficient_data, with fewer than 10 rows in a cell, with the jackknife fewer than 10 groups or 5 in a
            cell, or without variance of the difference.
        method STRING: How variances were made: paired_delong, from the placements of rows. jackknife, from leaving out
            groups of rows.
        n_groups INT: With the jackknife, the groups with a row in either cell. Intervals and p-values are from the t
            distribution with one degree of freedom less. 0 or more. NULL with DeLong.
    """),
)


_METRIC = "-0.5 to 0.5 for gaps of AUCs, -1 to 1 for those of rates, else 0 to 1."
_ADJUSTED = "adjusted by Benjamini-Hochberg over the rows of the rule. 0 to 1."
_WORST = "For a verdict on the worst identity"

_RULE, _IDENTITY, _METRIC_OF_RULE = columns("""
    rule STRING: The name of the rule in the configuration.
    identity STRING: The identity, as in bias_metrics. (overall) is the whole slice, or the verdict on the worst
        identity of a rule that asks for it.
    metric STRING: The metric: a column of bias_metrics, auc of model_summary, or with a threshold a column of
        threshold_rates.
""")

_OUTCOME = """
    outcome STRING: fail or warn where the bound is shown to be broken, pass where it is shown to be kept, else
        insufficient_evidence, or what [gate] insufficient makes of that: fail or warn. fail where the model has no
        usable score.
    message STRING: The same in a sentence.
    severity STRING: The outcome if the rule is broken, fail or warn. Only fail keeps a run from being accepted.
"""

_DECIDED = """
    decided BOOLEAN: True where the bound is shown to be broken or kept. False where evidence is insufficient or the
        model has no usable score, whatever the outcome. NULL in runs of older versions.
"""

_EVIDENCE = f"""
    change_low DOUBLE: Lower end of the interval of change, at the configured level. -1 to 1. NULL where there is none.
    change_high DOUBLE: Upper end of the interval of change, at the configured level. -1 to 1. NULL where there is none.
    p_violation DOUBLE: How likely such a value is if the bound is kept. 0 to 1, low is evidence that it is broken.
        NULL without an interval.
    p_compliance DOUBLE: How likely such a value is if the bound is broken. 0 to 1, low is evidence that it is kept.
        NULL without an interval.
    p_violation_adjusted DOUBLE: p_violation, {_ADJUSTED} {_WORST} the least of its identities. NULL where p_violation
        is.
    p_compliance_adjusted DOUBLE: p_compliance, {_ADJUSTED} {_WORST} the largest of its identities. NULL where one has
        none.
"""

BIAS_ALERTS = Table(
    name="bias_alerts",
    job="bias_metrics",
    comment="The outcome of each rule of the gate, for each model, slice and identity that it applies to. Empty "
    "without a gate.",
    key=(_RULE, MODEL, SLICE, _IDENTITY, _METRIC_OF_RULE),
    values=columns(f"""
        value DOUBLE: The metric of this run. {_METRIC} NULL where it has none, and for a verdict on the worst identity.
        value_low DOUBLE: Lower end of the interval of value, as in the table of the metric, for a rate by Wilson.
            {_METRIC} NULL where there is none.
        value_high DOUBLE: Upper end of the interval of value, as in the table of the metric, for a rate by Wilson.
            {_METRIC} NULL where there is none.
        bound DOUBLE: The bound of the rule, of the value or of its change, see bound_kind. -1 to 1. Never NULL.
        baseline_run_id STRING: The run that a change is measured against: the latest accepted one before that has an
            interval of the metric. NULL where there is none, for bounds of the value, and for a verdict on identities
            with different baselines.
        {_OUTCOME}
        bound_kind STRING: min, max or max_abs for the value, max_drop for the fall of an AUC or a rate since the
            baseline, max_rise for the rise of a rate or of the size of a gap since the baseline.
        baseline_value DOUBLE: The metric of the baseline. {_METRIC} NULL where there is none.
        change DOUBLE: value - baseline_value, for a gap |value| - |baseline_value|. -1 to 1. NULL where there is no
            baseline_value.
        {_EVIDENCE}
    """)
    + columns(f"""
        paired BOOLEAN: True where a change is judged by leaving the same groups of ids out of both runs, false where
            the variances of both are added. NULL where no change is judged.
        threshold DOUBLE: For a rate or its gap, the threshold of its decisions. A finite number, 0 to 1 for
            probabilities. NULL for other metrics.
        {_DECIDED}
    """),
)

JACKKNIFE_STATISTICS = Table(
    name="jackknife_statistics",
    job="bias_metrics",
    comment="For each pair of cells that rules on changes look at: U, and what is left of it without each of 100 "
    "groups of rows, by a hash of the id. Two nights are paired by them. Empty without [gate] paired. "
    "Differences to u_doubled reveal single rows: restrict access.",
    key=U_STATISTICS.key,
    values=(
        CROSSED,
        *(column for column in U_STATISTICS.values if column.name in ("n_low", "n_high", "u_doubled")),
        *columns("""
            n_low_left ARRAY<BIGINT>: By group: rows of the low cell that are not in it.
            n_high_left ARRAY<BIGINT>: By group: rows of the high cell that are not in it.
            u_doubled_left ARRAY<DECIMAL(38,0)>: By group: u_doubled of the rows that are not in it.
        """),
    ),
)

COMPARISON_ALERTS = Table(
    name="comparison_alerts",
    job="compare_models",
    comment="The outcome of each rule of the gate on a model and a baseline, for each slice and identity, on the rows "
    "that both score. Empty without such rules.",
    key=columns(f"""
        {_RULE}
        {MODEL}
        baseline_model STRING: The name of the model that it is compared with.
        {SLICE}
        {_IDENTITY}
        {_METRIC_OF_RULE}
    """),
    values=columns(f"""
        value DOUBLE: The metric of the model. {_METRIC} NULL where a cell is empty, and for a verdict on the worst
            identity.
        bound DOUBLE: The bound of the rule, on the change. 0 to 1. Never NULL.
        {_OUTCOME}
        bound_kind STRING: max_drop, how far an AUC may lie below that of the baseline. max_rise, how much further from
            0 a gap may lie.
        baseline_value DOUBLE: The metric of the baseline, on the same rows. {_METRIC} NULL where value is.
        change DOUBLE: value - baseline_value for an AUC, |value| - |baseline_value| for a gap. -1 to 1. NULL where
            value is.
        {_EVIDENCE}
        {_DECIDED}
    """),
)
