"""The U statistics, the bias suite that follows from them, and its summary."""

from __future__ import annotations

from biasspark.columns import BIASES, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.tables.schemas.dsl import CROSSED, IDENTITY, MODEL, SLICE, Table, columns


def _interval(name: str, lowest: str, highest: str) -> str:
    """Declare the two ends of the interval of a value."""
    level = f"of the interval of {name} at the configured level, 0.95 unless given"
    return f"""
        {name}_low DOUBLE: Lower end {level}. {lowest} or more. NULL where there is none, see {name}_method.
        {name}_high DOUBLE: Upper end {level}. {highest} or less. NULL where there is none, see {name}_method.
    """


def _wording(name: str) -> str:
    """Declare how the interval of a value was made, and why there is no value."""
    return f"""
        {name}_method STRING: How the interval of {name} was made: logit_delong, the DeLong variance on the logit scale.
            newcombe, a score interval for small or separated cells. none, no interval can be given, as with one row in
            a cell.
        {name}_reason STRING: Why {name} is NULL: {_EMPTY[name]}, below_minimum_rows, withheld. NULL where it has a
            value.
    """


_EMPTY = {
    "auc": "no_negatives, no_positives",
    "subgroup_auc": "no_subgroup_negatives, no_subgroup_positives",
    "bpsn_auc": "no_subgroup_negatives, no_background_positives",
    "bnsp_auc": "no_background_negatives, no_subgroup_positives",
    "background_auc": "no_background_negatives, no_background_positives",
    "negative_aeg": "no_background_negatives, no_subgroup_negatives",
    "positive_aeg": "no_background_positives, no_subgroup_positives",
}
"""The reasons that its two cells give each value."""

_SUITE = {
    "subgroup_auc": """AUC within the subgroup: how often a positive of the identity scores above a negative of it, ties
        half. 0 to 1, 1 is best, 0.5 is chance. Low: the identity is ranked badly. NULL where a cell is empty.""",
    "bpsn_auc": """Background positive, subgroup negative AUC: how often a positive of the background scores above a
        negative of the identity, ties half. 0 to 1, 1 is best. Low: false positives on the identity. NULL where a cell
        is empty.""",
    "bnsp_auc": """Background negative, subgroup positive AUC: how often a positive of the identity scores above a
        negative of the background, ties half. 0 to 1, 1 is best. Low: false negatives on the identity. NULL where a
        cell is empty.""",
    "background_auc": """AUC within the background, the rows known to be outside the identity: how often a positive
        scores above a negative, ties half. 0 to 1, 1 is best. Compare subgroup_auc with it. NULL where a cell is
        empty.""",
    "negative_aeg": """Negative average equality gap: how often a negative of the identity scores above a negative of
        the background, ties half, less 1/2. -0.5 to 0.5, 0 is best. Above 0: scored higher, towards false positives.
        NULL where a cell is empty.""",
    "positive_aeg": """Positive average equality gap: how often a positive of the identity scores above a positive of
        the background, ties half, less 1/2. -0.5 to 0.5, 0 is best. Below 0: scored lower, towards false negatives.
        NULL where a cell is empty.""",
}


def _measure(name: str) -> str:
    """Declare the five columns of a metric of the suite."""
    return f"{name} DOUBLE: {_SUITE[name]}{_interval(name, *_ends(name))}{_wording(name)}"


def _ends(name: str) -> tuple[str, str]:
    return ("-0.5", "0.5") if name in SUMMARIZED_GAPS else ("0", "1")


U_STATISTICS = Table(
    name="u_statistics",
    job="bias_metrics",
    comment="For every identity the Mann-Whitney U of its six pairs of cells, from which all metrics follow.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        identity STRING: {IDENTITY.comment} (overall) stands for the whole slice.
        low_cell STRING: The cell that should score lower: subgroup_ or background_ and then negative or positive, or
            negative for (overall).
        high_cell STRING: The cell that should score higher: subgroup_ or background_ and then negative or positive, or
            positive for (overall).
    """),
    values=columns(f"""
        {CROSSED}
        n_low BIGINT: Rows of the low cell, 0 or more.
        n_high BIGINT: Rows of the high cell, 0 or more.
        u_doubled DECIMAL(38,0): Twice U, a whole number: 2 x the pairs with the score of the high cell above that of
            the low cell, plus the ties. 0 to 2 x n_low x n_high.
        low_square_sum DECIMAL(38,0): Sum over the rows of the low cell of the square of (2 x the rows of the high cell
            that score above it, plus ties). The DeLong variance needs it.
        high_square_sum DECIMAL(38,0): Sum over the rows of the high cell of the square of (2 x the rows of the low cell
            that score below it, plus ties). The DeLong variance needs it.
        auc DOUBLE: u_doubled / 2 / n_low / n_high: how often the high cell scores above the low one, ties half. 0 to 1.
            NULL where a cell is empty.
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL where a cell has fewer than two rows.
        reason STRING: Why auc is NULL: no_ and the name of an empty cell, below_minimum_rows, withheld. If withheld,
            all counts are NULL, too. NULL where auc has a value.
    """),
)

BIAS_METRICS = Table(
    name="bias_metrics",
    job="bias_metrics",
    comment="For each model, slice and identity: how well the model ranks the rows of the identity against all others.",
    key=(MODEL, SLICE, IDENTITY),
    values=columns(f"""
        {CROSSED}
        subgroup_size BIGINT: Rows in the identity with a label and a score, 0 or more.
        n_subgroup_negative BIGINT: Rows in the identity with a negative label and a score, 0 or more.
        n_subgroup_positive BIGINT: Rows in the identity with a positive label and a score, 0 or more.
        n_background_negative BIGINT: Rows known to be outside the identity with a negative label and a score.
        n_background_positive BIGINT: Rows known to be outside the identity with a positive label and a score.
        subgroup_positive_rate DOUBLE: Positives among the rows in the identity, 0 to 1. NULL where it has no rows.
        background_positive_rate DOUBLE: Positives among the rows of the background, 0 to 1. NULL where it has no rows.
    """)
    + columns("\n".join(map(_measure, _SUITE)))
    + columns(f"""
        bias STRING: The bias that the intervals show: {", ".join(BIASES)}. NULL where no metric has a value.
        bias_size STRING: large where the subgroup, BPSN or BNSP AUC is below the background AUC by 0.05 or more, with
            evidence. small where only the gaps show the bias. NULL where bias is no_evidence or NULL.
    """),
)


def _sum_up_auc(name: str) -> str:
    """Declare the aggregates over identities of one AUC of the suite."""
    null = "NULL where no identity has a value."
    return f"""
        {name}_min DOUBLE: The lowest {name} of an identity, the worst. 0 to 1. {null}
        {name}_min_identity STRING: The identity with the lowest {name}, the first by name if several are equal. {null}
        {name}_max DOUBLE: The highest {name} of an identity. 0 to 1. {null}
        {name}_power_mean DOUBLE: Generalised mean of {name} over identities with power -5, in which the worst weigh
            most. 0 to 1, 1 is best, 0 if one of them is 0. {null}
    """


def _sum_up_gap(name: str) -> str:
    """Declare the aggregates over identities of one gap of the suite."""
    null = "NULL where no identity has a value."
    return f"""
        {name}_max_abs DOUBLE: The largest absolute {name} of an identity, the worst. 0 to 0.5. {null}
        {name}_max_abs_identity STRING: The identity with the largest absolute {name}, the first by name if several are
            equal. {null}
    """


MODEL_SUMMARY = Table(
    name="model_summary",
    job="bias_metrics",
    comment="For each model and slice: the overall AUC, and the suite summed up over identities without crossed pairs.",
    key=(MODEL, SLICE),
    values=columns(f"""
        n_negative BIGINT: Rows of the slice with a negative label and a score, 0 or more.
        n_positive BIGINT: Rows of the slice with a positive label and a score, 0 or more.
        auc DOUBLE: How often a positive of the slice scores above a negative, ties half. 0 to 1, 1 is best, 0.5 is
            chance. NULL without positives or negatives, see auc_reason.
        {_interval("auc", "0", "1")}
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of a label.
        {_wording("auc")}
    """)
    + columns("\n".join((*map(_sum_up_auc, SUMMARIZED_AUCS), *map(_sum_up_gap, SUMMARIZED_GAPS))))
    + columns("""
        n_identities_undefined BIGINT: Identities that lack at least one of the five metrics, and are left out of its
            aggregates. 0 is best.
        competition_score DOUBLE: The score of the public competition on unintended bias: a quarter each of auc and of
            the power means of subgroup_auc, bpsn_auc and bnsp_auc. 0 to 1, 1 is best. NULL where a part is NULL.
        pinned_auc_equality_difference DOUBLE: Sum over identities of |AUC - pinned AUC|, both of the rows on which the
            identity is known, 0 or more, 0 is best. The authors of pinned AUC advise against it: it moves with the
            class balance. NULL where no identity has one.
    """),
)
