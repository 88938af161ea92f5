"""The tables of AUC attribution: which rows, segments, slices and pairs cost a model its AUC."""

from __future__ import annotations

from biasspark.tables.schemas.dsl import MODEL, SLICE, Table, columns

JOB = "attribution"

EXAMPLE_ATTRIBUTIONS = Table(
    name="example_attributions",
    job=JOB,
    comment="For each model, slice and row: its share of the AUC. Half the credit of each rightly ordered pair goes to "
    "either of its rows.",
    key=(MODEL, SLICE, *columns("row_id STRING: The id of the row, as text.")),
    values=columns("""
        label BOOLEAN: Whether the row is positive. Never NULL.
        score DOUBLE: The score of the row by the model, 0 to 1 for probabilities. Never NULL.
        n_opposite BIGINT: Rows of the slice with the other label, 0 or more.
        ordered_doubled BIGINT: Twice the opposite rows with which the row is rightly ordered, plus its ties. 0 to 2
            n_opposite.
        attribution DOUBLE: ordered_doubled / 4, half a credit for each rightly ordered pair. 0 or more, more is better.
            The sum over a slice is AUC x positives x negatives. Never NULL.
        normalized_attribution DOUBLE: attribution / n_opposite. 0 to 0.5, 0.5 is best. Its mean over the positives, as
            over the negatives, is AUC / 2. NULL where n_opposite is 0.
    """),
    unique=False,
    per_row=True,
)

ATTRIBUTION_CORRELATIONS = Table(
    name="attribution_correlations",
    job=JOB,
    comment="For each model and slice: how the attributions of rows correlate with their losses.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        attribution STRING: total (the attribution of a row) or normalized (divided by its opposite rows).
        loss STRING: cross_entropy or gini, of the single row.
    """),
    values=columns("""
        pearson DOUBLE: Pearson correlation over all rows. -1 to 1. NULL where either does not vary, or a score is no
            probability.
        n_rows BIGINT: Rows of the slice that count for the model, 0 or more.
    """),
)


def _estimates(what: str, whole: str) -> str:
    """Declare what is estimated of a part of the rows, by those that found it and by the others."""
    return f"""
        rule STRING: Which rows they are, in words.
        predicate STRING: The same as a predicate of Spark SQL: of the rows that count for the model, it is true on
            exactly these. Never NULL.
        n_train BIGINT: Rows of the {what} among those that searched, 0 or more.
        mean_train DOUBLE: Their mean of what is predicted, 0 to 0.5 for attribution. Too extreme, since the search
            chose it. NULL without rows.
        n_honest BIGINT: Rows of the {what} among those that only estimate, 0 or more.
        mean_honest DOUBLE: Their mean of what is predicted, the number to read. 0 to 0.5 for the attribution of one
            model, 0.5 is best. NULL without rows.
        mean_honest_low DOUBLE: Lower end of its interval. For attributions it counts the opposite class as sampled,
            too. 0 to 0.5, for a difference -0.5 to 0.5. NULL where it cannot be estimated.
        mean_honest_high DOUBLE: Upper end of its interval. 0 to 0.5 for attribution, for a difference -0.5 to 0.5. NULL
            where it cannot be estimated.
        p_value DOUBLE: Welch test of the honest rows in the {what} against those outside it. 0 to 1. NULL for
            {whole}.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg. 0 to 1. NULL where nothing is tested.
        p_train_honest DOUBLE: Welch test of the rows that searched against the honest ones. 0 to 1. NULL with fewer
            than two of either.
        false_discovery BOOLEAN: True where p_train_honest is below 0.05: the two samples tell different stories.
        found BOOLEAN: True where p_adjusted is below 0.05, and it is no false discovery. NULL where nothing is tested.
        loss_share DOUBLE: Share of all wrongly ordered pairs that falls on the rows of the {what}, half of each pair on
            each of its rows. 0 to 1, less is better. NULL where the AUC is 1.
        p_chance DOUBLE: Test of mean_honest against the mean of as many rows that are drawn at random from all honest
            ones. 0 to 1. NULL for {whole}.
        p_chance_adjusted DOUBLE: p_chance after Benjamini-Hochberg. 0 to 1. NULL where nothing is tested.
        confirmed BOOLEAN: True where found, and p_chance_adjusted is below 0.05, too: what to act on where nearly all
            pairs are rightly ordered. NULL where nothing is tested.
    """


_NODE_ID = "node_id INT: The node: 1 is the root, and 2k and 2k + 1 are what node k is split into."

_NODE = """
    parent_id INT: The node that was split into this one. NULL for the root.
    depth INT: Splits above the node, 0 for the root.
    is_leaf BOOLEAN: True where the node is not split. The leaves are the segments.
"""

ATTRIBUTION_SEGMENTS = Table(
    name="attribution_segments",
    job=JOB,
    comment="For each model and slice: the tree that finds where a model gains and loses its AUC, one row per node.",
    key=columns(f"""
        model STRING: {MODEL.comment}
        baseline_model STRING: The model whose attribution is subtracted. Empty where none is.
        slice STRING: {SLICE.comment}
        target STRING: What the tree predicts: auc (the normalized attribution, or its difference to that of the
            baseline), cross_entropy or gini (losses, less is better).
        {_NODE_ID}
    """),
    values=columns(_NODE + _estimates("node", "the root")),
)

ATTRIBUTION_SLICES = Table(
    name="attribution_slices",
    job=JOB,
    comment="For each model and slice: the conjunctions of up to three conditions that lack most attribution, each at "
    "least a quarter more per row than any shorter one of its conditions. Adjoining intervals of a number are joined. "
    "Slices may overlap, unlike the leaves of a tree.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        rank INT: The place by score among those of the model and slice, 1 is where most is lost.
    """),
    values=columns(
        """
        score DOUBLE: Size times loss, of the rows that searched: n_train x (mean of all - mean_train). Above 0 to
            n_train / 2, more is worse. Never NULL.
        """
        + _estimates("conjunction", "all rows")
    ),
)

PAIR_SEGMENTS = Table(
    name="pair_segments",
    job=JOB,
    comment="For each model and slice: the tree that finds which negatives are wrongly ordered with which positives, "
    "one row per node.",
    key=(MODEL, SLICE, *columns(_NODE_ID)),
    values=columns(
        _NODE
        + """
        negative_rule STRING: Which negatives, in words.
        positive_rule STRING: Which positives, in words.
        negative_predicate STRING: Which negatives, as a predicate of Spark SQL. Never NULL.
        positive_predicate STRING: Which positives, as a predicate of Spark SQL. Never NULL.
        n_pairs_train BIGINT: Sampled pairs of the node that grew the tree, 0 or more.
        mean_train DOUBLE: Their share of rightly ordered ones, ties half. 0 to 1. Too extreme, since the tree chose it.
            NULL without pairs.
        n_negatives_honest BIGINT: Other sampled negatives in the node, that only estimate, 0 or more.
        n_positives_honest BIGINT: Other sampled positives in the node, that only estimate, 0 or more.
        mean_honest DOUBLE: AUC of those positives against those negatives. 0 to 1, 1 is best. NULL where either is
            missing.
        mean_honest_low DOUBLE: Lower end of its interval by DeLong. 0 to 1. NULL where mean_honest is.
        mean_honest_high DOUBLE: Upper end of its interval by DeLong. 0 to 1. NULL where mean_honest is.
        p_value DOUBLE: Test of mean_honest against the AUC of all honest rows, by paired placements. 0 to 1. NULL for
            the root.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg over the leaves. 0 to 1. NULL for inner nodes.
        p_train_honest DOUBLE: Test of the AUC of the sample that grew the tree against mean_honest. 0 to 1. NULL where
            either has no variance.
        false_discovery BOOLEAN: True where p_train_honest is below 0.05: the two samples tell different stories.
        found BOOLEAN: True where p_adjusted is below 0.05, and it is no false discovery. NULL for inner nodes.
        p_chance DOUBLE: Test of mean_honest against the AUC of as many negatives and positives that are drawn at
            random from all honest rows. 0 to 1. NULL for the root.
        p_chance_adjusted DOUBLE: p_chance after Benjamini-Hochberg over the leaves. 0 to 1. NULL for inner nodes.
        confirmed BOOLEAN: True where found, and p_chance_adjusted is below 0.05, too: what to act on where nearly all
            pairs are rightly ordered. NULL for inner nodes.
        """
    ),
)

_PAIRS_OF_ROWS = """
    n_pairs DECIMAL(38,0): n_positive x n_negative.
    ordered_doubled DECIMAL(38,0): Twice the rightly ordered pairs, plus ties. 0 to 2 n_pairs.{of_all}
    auc DOUBLE: ordered_doubled / (2 n_pairs), the share of rightly ordered pairs. 0 to 1, 1 is best. NULL without
        pairs.
    auc_low DOUBLE: Lower end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
    auc_high DOUBLE: Upper end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
    auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of either {side}.
    auc_method STRING: How the interval of auc was made, as in bias_metrics. NULL where auc is.
    headroom_pairs DOUBLE: Wrongly ordered pairs, ties half. 0 or more, less is better. Never NULL.
    headroom_share DOUBLE: Their share of all wrongly ordered pairs of the slice. 0 to 1. NULL where the AUC is 1.
"""

AUC_CROSSES = Table(
    name="auc_crosses",
    job=JOB,
    comment="For each model, slice and grouping: how positives of one group are ordered with negatives of another, "
    "over all pairs.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        grouping STRING: The name of the grouping in the configuration.
        positive_group STRING: The group of the positives. (null) is NULL, (other) is all but the 200 most frequent
            values.
        negative_group STRING: The group of the negatives, likewise.
    """),
    values=columns(
        """
        n_positive BIGINT: Positives in positive_group, 0 or more.
        n_negative BIGINT: Negatives in negative_group, 0 or more.
        """
        + _PAIRS_OF_ROWS.format(of_all=" Adds up to that of the whole slice.", side="group")
    ),
)

NAMED_PAIRS = Table(
    name="named_pairs",
    job=JOB,
    comment="For each model, slice and named pair: how these positives are ordered with these negatives, over all "
    "pairs.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        pair STRING: The name of the pair in the configuration.
    """),
    values=columns(
        """
        negative_predicate STRING: The predicate of the negatives. Never NULL.
        positive_predicate STRING: The predicate of the positives. Never NULL.
        n_positive BIGINT: Positives that meet positive_predicate, 0 or more.
        n_negative BIGINT: Negatives that meet negative_predicate, 0 or more.
        """
        + _PAIRS_OF_ROWS.format(of_all="", side="side")
    ),
)

LOSS_BY_SEGMENT = Table(
    name="loss_by_segment",
    job=JOB,
    comment="For each model, slice and named segment: its losses, its AUC, and its share in the AUC.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        segment STRING: The name of the segment in the configuration. (overall) is all rows of the slice.
    """),
    values=columns("""
        predicate STRING: The predicate of the segment. NULL for (overall).
        n_rows BIGINT: Rows of the segment that count for the model, 0 or more.
        n_positive BIGINT: Positives among n_rows, 0 or more.
        cross_entropy DOUBLE: Mean cross-entropy, natural logarithm, scores clipped to 1e-15 from 0 and 1. 0 or more, 0
            is best. NULL without rows, or where scores are no probabilities.
        cross_entropy_low DOUBLE: Lower end of its interval at the configured level. 0 or more. NULL with one row.
        cross_entropy_high DOUBLE: Upper end of its interval at the configured level. 0 or more. NULL with one row.
        gini_impurity DOUBLE: Mean of 1 - the probability of the true label. 0 to 1, 0 is best. NULL without rows, or
            where scores are no probabilities.
        gini_impurity_low DOUBLE: Lower end of its interval at the configured level. 0 to 1. NULL with one row.
        gini_impurity_high DOUBLE: Upper end of its interval at the configured level. 0 to 1. NULL with one row.
        auc DOUBLE: AUC within the segment. 0 to 1, 1 is best. NULL where a label is missing.
        auc_low DOUBLE: Lower end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
        auc_high DOUBLE: Upper end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of a label.
        auc_method STRING: How the interval of auc was made, as in bias_metrics. NULL where auc is.
        mean_normalized_attribution DOUBLE: Mean normalized attribution of its rows in the slice. 0 to 0.5, 0.5 is best.
            NULL without rows, or where the slice lacks a label.
        mean_normalized_attribution_low DOUBLE: Lower end of its interval, which counts the opposite class as sampled,
            too. 0 to 0.5. NULL with one row.
        mean_normalized_attribution_high DOUBLE: Upper end of its interval, likewise. 0 to 0.5. NULL with one row.
    """),
)
