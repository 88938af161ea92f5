"""Trees over the rows of a corpus: histograms by Spark, one job per level for all trees, and what their nodes hold.

ROWS are those of `biasspark.attribution.row_sums`, with the values that trees predict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.attribution.evidence import NodeSums
from biasspark.attribution.growth import ROOT, GrownTree, Histogram, Histograms, Limits, NodeKey, grow
from biasspark.attribution.leaves import leaf_of
from biasspark.attribution.moments import LARGEST_BITS, read_moments, sum_moments
from biasspark.attribution.row_sums import KIND, SUM_BITS, in_units, read_row_sums, row_sums
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature, bin_names

_COLUMNS = Histogram._fields


def grow_trees(
    rows: DataFrame, n_trees: int, features: Sequence[Feature], settings: TreeSettings, n_rows: int
) -> list[GrownTree]:
    """Grow a tree for each number from 0 to `n_trees` - 1.

    Parameters
    ----------
    rows : DataFrame
        ROWS, which are read once per level: of ranked rows that the caller persists they are a narrow projection.
    n_trees : int
        A tree without rows has a root only.
    features : sequence of Feature
        Of which the columns ``bin_k`` are the bins.
    settings : TreeSettings
        Depth, least leaf and least gain.
    n_rows : int
        At least the rows of any tree; fixes the units of the sums.

    Returns
    -------
    list of GrownTree
        The same under any partitioning and order of the rows: values are rounded to whole units of 2^-s, with s as
        large as sums of so many rows allow (35 for two million), and added up as BIGINT.

    Notes
    -----
    A job for each level: every row is exploded into (feature, bin), of nodes that are split only the smaller side, and
    aggregated before it is shuffled. The driver collects one row for each (tree, node, feature, bin) that has rows, so
    at most nodes times bins, whatever the number of rows. With `min_gain` one more job sums up the values.
    """
    shift = SUM_BITS - LARGEST_BITS - max(n_rows, 1).bit_length()
    square_sums = [0.0] * n_trees
    if settings.min_gain > 0:
        square_sums = [square_sum * 4.0**shift for square_sum in _sum_squares(rows, n_trees)]

    def measure(trees: Sequence[GrownTree], nodes: Sequence[NodeKey]) -> Mapping[NodeKey, Histograms]:
        return _measure_bins(rows, trees, nodes, features, shift)

    return grow(measure, features, Limits.of(settings, square_sums))


def measure_nodes(rows: DataFrame, trees: Sequence[GrownTree]) -> dict[NodeKey, NodeSums]:
    """Add up the rows of every node of every tree.

    Parameters
    ----------
    rows : DataFrame
        ROWS.
    trees : sequence of GrownTree
        As `grow_trees` gave them.

    Returns
    -------
    dict
        By (tree, node_id), one entry for every node, inner ones as sums of their leaves. Sums are exact, so they are
        the same under any partitioning.

    Notes
    -----
    One job; the driver collects at most four rows per leaf.
    """
    sums = rows.groupBy("tree", leaf_of(trees).alias("node"), *KIND).agg(*row_sums())
    totals = {(tree.number, node.node_id): NodeSums() for tree in trees for node in tree.nodes}
    for row in sums.where(F.col("node").isNotNull()).collect():
        part = read_row_sums(row)
        for node_id in _upwards(row["node"]):
            totals[row["tree"], node_id] += part
    return totals


def _upwards(node_id: int) -> Iterator[int]:
    """Give the node and all above it."""
    while node_id >= ROOT:
        yield node_id
        node_id //= 2


def _sum_squares(rows: DataFrame, n_trees: int) -> list[float]:
    """Return for each tree the sum of squares of the growing rows' values around their mean."""
    square_sums = [0.0] * n_trees
    growing = rows.where(~F.col("honest") & F.col("tree").between(0, n_trees - 1))
    sums = growing.groupBy("tree").agg(F.count(F.lit(1)).alias("n"), *sum_moments(F.col("value"), "value"))
    for row in sums.collect():
        square_sums[row["tree"]] = (read_moments(row, "value", row["n"]).variance or 0.0) * (row["n"] - 1)
    return square_sums


def _measure_bins(
    rows: DataFrame, trees: Sequence[GrownTree], nodes: Sequence[NodeKey], features: Sequence[Feature], shift: int
) -> dict[NodeKey, list[Histogram]]:
    """Return the histograms of some leaves of the trees as they are."""
    honest = F.col("honest").cast("bigint")
    placed = rows.select(
        "tree",
        leaf_of(trees, set(nodes)).alias("node"),
        (1 - honest).alias("counts"),
        ((1 - honest) * in_units(shift)).alias("sums"),
        honest.alias("honest"),
        F.array(*bin_names(len(features))).alias("bins"),
    )
    exploded = placed.where(F.col("node").isNotNull()).select("*", F.posexplode("bins").alias("feature", "bin"))
    sums = exploded.groupBy("tree", "node", "feature", "bin").agg(*(F.sum(name).alias(name) for name in _COLUMNS))
    found = {
        key: [Histogram(*(np.zeros(feature.n_bins, np.int64) for _ in _COLUMNS)) for feature in features]
        for key in nodes
    }
    for row in sums.collect():
        for column, name in zip(found[row["tree"], row["node"]][row["feature"]], _COLUMNS, strict=True):
            column[row["bin"]] = row[name]
    return found
