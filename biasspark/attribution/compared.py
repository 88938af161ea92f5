"""Two models side by side (Attributing, section 5.5): the difference of their normalised attributions, row by row.

Both models are ranked among the rows that both score, so a row has as many opposite rows for either, and whatever holds
for the placements of one model holds for the differences of two.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row

from biasspark.attribution.influence import Placed, variance_of_influences
from biasspark.attribution.moments import read_whole, sum_whole
from biasspark.columns import (
    HONEST,
    IN_SETS,
    LABEL,
    MODEL,
    N_OPPOSITE,
    ORDERED_DOUBLED,
    ORDERED_IN_SETS,
    ROW_ID,
    SLICE,
)
from biasspark.features import bin_names


def difference_rows(ranked: DataFrame, trees: Mapping[str, int], models: tuple[str, str], n_features: int) -> DataFrame:
    """Return ROWS, of which trees are grown, for the difference of two models' normalised attributions.

    Parameters
    ----------
    ranked : DataFrame
        RANKED rows of the two models, among the rows that both score, with ``row_id``, ``honest`` and bins.
    trees : mapping of str to int
        The number of the tree by slice.
    models : (str, str)
        The model, and the baseline that is subtracted.

    Returns
    -------
    DataFrame
        ``value`` is the model's attribution less the baseline's, -0.5 to 0.5: above 0 the model does better.
        ``loss_doubled`` is the model's. And ``repeated``: more than one row has the id, so that nothing tells which two
        attributions are of one row.

    Notes
    -----
    One shuffle of all rows, by their ids.
    """
    bins = bin_names(n_features)
    model, baseline = models
    own, theirs = (F.col(MODEL) == name for name in (model, baseline))
    both = ranked.groupBy(SLICE, ROW_ID).agg(
        (F.count(F.lit(1)) > 2).alias("repeated"),
        *(F.max(F.when(side, F.col(ORDERED_DOUBLED))).alias(name) for name, side in (("own", own), ("theirs", theirs))),
        *(F.max(name).alias(name) for name in (LABEL, HONEST, N_OPPOSITE, *bins)),
    )
    number = F.element_at(F.create_map(*(F.lit(part) for entry in trees.items() for part in entry)), F.col(SLICE))
    return both.where(F.col(N_OPPOSITE) > 0).select(
        number.alias("tree"),
        *(LABEL, HONEST),
        ((F.col("own") - F.col("theirs")) / (4 * F.col(N_OPPOSITE))).alias("value"),
        (2 * F.col(N_OPPOSITE) - F.col("own")).alias("loss_doubled"),
        "repeated",
        *bins,
    )


def difference_variances(ranked: DataFrame, model: str, n_sets: int) -> list[float | None]:
    """Return the variance of the mean difference of each set, by the influence of every row of the slice.

    With the difference E of a row's two doubled placements among all opposite rows in place of D, and that among those
    of the set in place of d, it is the variance of `influence_variance`, whose sums are linear and quadratic in them.

    Parameters
    ----------
    ranked : DataFrame
        RANKED rows of the two models and one slice, with ``row_id``, and placed in sets.
    model : str
        The one from whose attribution the other's is subtracted.
    n_sets : int
        How many sets there are.

    Notes
    -----
    One job: a shuffle of all rows by their ids, then each row once for each set. The driver collects two rows per
    set.
    """
    is_own = F.col(MODEL) == model
    own, theirs = (F.max(F.when(side, F.col(ORDERED_IN_SETS))) for side in (is_own, ~is_own))
    both = ranked.groupBy(ROW_ID).agg(
        F.sum(F.when(is_own, F.col(ORDERED_DOUBLED)).otherwise(-F.col(ORDERED_DOUBLED))).alias("everywhere"),
        F.array(*(own[number] - theirs[number] for number in range(n_sets))).alias("inside"),
        *(F.max(name).alias(name) for name in (LABEL, N_OPPOSITE, IN_SETS)),
    )
    rows = both.select(LABEL, N_OPPOSITE, IN_SETS, "everywhere", F.posexplode("inside").alias("set_number", "inside"))
    is_in = F.getbit(IN_SETS, F.col("set_number")) == 1
    everywhere, inside = F.col("everywhere"), F.col("inside")
    outside = everywhere - inside
    sums = {
        "placed": everywhere,
        "placed_inside": inside,
        "squares": everywhere * everywhere,
        "squares_inside": inside * inside,
        "squares_outside": outside * outside,
    }
    own_sums = {name: F.when(is_in, value).otherwise(F.lit(0)) for name, value in sums.items()}
    every_sum = own_sums | {"squares_inside_of_all": inside * inside}
    found = rows.groupBy("set_number", LABEL).agg(
        F.count(F.lit(1)).alias("n"),
        F.count_if(is_in).alias("k"),
        *(column for name, value in every_sum.items() for column in sum_whole(value, name)),
    )
    by_set = {(row["set_number"], row[LABEL]): _read(row) for row in found.collect()}
    return [
        variance_of_influences(by_set[number, False], by_set[number, True])
        if {(number, False), (number, True)} <= set(by_set)
        else None
        for number in range(n_sets)
    ]


def _read(row: Row) -> Placed:
    sums = {name: read_whole(row, name) for name in Placed._fields[2:]}
    return Placed(n=row["n"], k=row["k"], **sums)
