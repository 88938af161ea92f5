"""Which leaf of its tree a row is in, as one column for any number of trees.

A chain of CASE for every split of every tree would pass what Spark can compile. So each leaf of a tree has a bit, as
conditions have in `biasspark.expressions.conditions`, and a row meets exactly one leaf of a tree: one lookup for
each feature, however many trees there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.attribution.growth import GrownTree, Node, NodeKey
from biasspark.expressions.conditions import bits_by_bin, look_up
from biasspark.features import bin_name

_BITS = 62
"""Leaves of a tree that share a BIGINT."""

_STRIDE = 65
"""Places for the leaves of one tree: 62, and the 65th, which no bit at all leads to."""


def leaf_of(trees: Sequence[GrownTree], wanted: Collection[NodeKey] | None = None) -> Column:
    """Return a row's leaf in its tree.

    Parameters
    ----------
    trees : sequence of GrownTree
        Of any depth; they need not be complete, nor all trees.
    wanted : collection of (tree, node_id), optional
        The leaves that are asked for; all unless given.

    Returns
    -------
    Column of INT
        The leaf's node_id, by the columns ``tree`` and ``bin_k``. NULL for a row in no wanted leaf.

    Notes
    -----
    For every 62 leaves, a lookup for each feature that is split on. The arrays have an entry for each tree and bin.
    """
    leaves: list[list[Node]] = [[] for _ in range(1 + max((tree.number for tree in trees), default=0))]
    for tree in trees:
        leaves[tree.number] = [node for node in tree.nodes if node.is_leaf]
        if wanted is not None:
            leaves[tree.number] = [node for node in leaves[tree.number] if (tree.number, node.node_id) in wanted]
    n_bins = _count_bins(trees)
    found = [
        _leaf_among([members[start : start + _BITS] for members in leaves], n_bins)
        for start in range(0, max(map(len, leaves)), _BITS)
    ]
    return F.coalesce(*found) if found else F.lit(None).cast("int")


def _count_bins(trees: Sequence[GrownTree]) -> dict[int, int]:
    """Return how many bins each feature has that is split on: where it is first, both sides hold all of them."""
    n_bins: dict[int, int] = {}
    for node in (node for tree in trees for node in tree.nodes):
        for place, bins in node.condition.items():
            n_bins[place] = max(n_bins.get(place, 0), max(bins) + 1)
    return n_bins


def _leaf_among(leaves: Sequence[Sequence[Node]], n_bins: Mapping[int, int]) -> Column:
    """Return which of at most 62 leaves of its tree a row is in."""
    tree, asked = F.col("tree"), {place for members in leaves for node in members for place in node.condition}
    bits = [look_up([(1 << len(members)) - 1 for members in leaves], tree)]
    for place in sorted(asked):
        conditions = ([node.condition for node in members] for members in leaves)
        allowed = [bits for own in conditions for bits in bits_by_bin(own, place, n_bins[place])]
        bits.append(look_up(allowed, tree * n_bins[place] + F.col(bin_name(place))))
    padded = ([node.node_id for node in members] + [0] * (_STRIDE - len(members)) for members in leaves)
    ids = [node_id for members in padded for node_id in members]
    # Below a single bit all bits are set, and their number is its place; below no bit at all there are 64 ones.
    place_of_bit = F.bit_count(reduce(Column.bitwiseAND, bits) - 1)
    return F.nullif(look_up(ids, tree * _STRIDE + place_of_bit), F.lit(0)).cast("int")
