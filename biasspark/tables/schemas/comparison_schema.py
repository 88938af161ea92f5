"""Model minus baseline, metric by metric, on the rows that both score."""

from __future__ import annotations

from biasspark.tables.schemas.dsl import CROSSED, IDENTITY, SLICE, Table, columns

JOB = "compare_models"

MODEL_COMPARISONS = Table(
    name="model_comparisons",
    job=JOB,
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
