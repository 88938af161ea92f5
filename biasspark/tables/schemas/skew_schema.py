"""The class-skew experiment: how pinned AUC and the suite change when rows are dropped at random."""

from __future__ import annotations

from biasspark.columns import SUMMARIZED_AUCS
from biasspark.tables.schemas.dsl import IDENTITY, MODEL, SLICE, Table, columns

_ADVICE = "Its authors advise against it: it moves with the class balance."

_SUITE = {
    "subgroup_auc": "AUC within the subgroup, all rows kept",
    "bpsn_auc": "AUC of background positives and subgroup negatives, all rows kept",
    "bnsp_auc": "AUC of background negatives and subgroup positives, all rows kept",
}


def _stands_still(name: str) -> str:
    """Declare an AUC of the suite before rows are dropped, and over the trials."""
    return f"""
        {name} DOUBLE: {_SUITE[name]}. 0 to 1, 1 is best. NULL where a cell is empty.
        {name}_sampled_mean DOUBLE: Mean of {name} over the trials. 0 to 1. Close to {name}, since the class balance
            does not move it. NULL where a cell is empty, or empty once rows are dropped.
        {name}_sampled_sd DOUBLE: Standard deviation of {name} over the trials (n - 1), 0 or more. 0 where no row that
            it ranks is dropped. NULL with one trial, or where the mean is.
    """


PINNED_SKEW = Table(
    name="pinned_skew",
    job="pinned_skew",
    comment="Pinned AUC of every identity before and after a random part of one cell of one of them is dropped, beside "
    "the AUCs of the suite. The model is the same: what moves measures the class balance.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        {IDENTITY}
        cell STRING: The cell of skewed_identity from which rows are dropped: subgroup_ or background_ and then negative
            or positive.
    """),
    values=columns(f"""
        skewed_identity STRING: The identity whose cell loses rows. The rows of other identities show what that does to
            them. NULL in runs of older versions, which have it alone.
        fraction DOUBLE: The part of the cell that is dropped, as configured. 0 to 1, both excluded. Never NULL.
        n_rows BIGINT: Rows of the cell before any is dropped, 0 or more.
        n_dropped BIGINT: Rows of the cell that each trial drops: fraction x n_rows, halves rounded up.
        trials INT: How often other rows are dropped, 1 or more, as configured.
        pinned_auc DOUBLE: Pinned AUC of all rows, by its closed form. 0 to 1, 1 is best. {_ADVICE} NULL where a label
            is missing.
        pinned_auc_skewed DOUBLE: Pinned AUC once rows are dropped, by its closed form with the smaller cell. 0 to 1, 1
            is best. {_ADVICE} NULL where a label is then missing.
        pinned_auc_sampled_mean DOUBLE: Mean of the pinned AUC over the trials. 0 to 1, 1 is best. {_ADVICE} NULL where
            pinned_auc_skewed is, and for other identities.
        pinned_auc_sampled_sd DOUBLE: Standard deviation of the pinned AUC over the trials (n - 1), 0 or more. {_ADVICE}
            NULL with one trial, or where the mean is.
    """)
    + columns("\n".join(map(_stands_still, SUMMARIZED_AUCS))),
)
