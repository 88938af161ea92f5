"""What is left of U without each group of rows, of two sides -> both AUCs, and variances of what is made of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame

from biasspark.metrics.comparisons.paired import PAIRED_AUCS, LeftOut, PairedAucs, jackknife_aucs

IS_BASELINE = "is_baseline"
_CELLS = ("low_cell", "high_cell")


def paired_by_jackknife(sides: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return two AUCs of every pair of cells, with variances by the jackknife.

    Parameters
    ----------
    sides : DataFrame
        The key, ``low_cell, high_cell``, the fields of `LeftOut`, and BOOLEAN ``is_baseline``, which tells both sides
        apart.
    key : sequence of str
        What tells the identities apart.

    Returns
    -------
    DataFrame
        The key, ``low_cell, high_cell``, and the fields of `PairedAucs`, where there are both sides. Lazy; one shuffle
        of the sides, which do not grow with the corpus.
    """
    names = (*key, *_CELLS)
    types = ", ".join(f"{name} {sides.schema[name].dataType.simpleString()}" for name in names)
    return sides.groupBy(*key).applyInPandas(_pair_sides(names), f"{types}, {PAIRED_AUCS}")


def _pair_sides(names: Sequence[str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(sides: pd.DataFrame) -> pd.DataFrame:
        by_cells: dict[tuple[Any, ...], dict[bool, LeftOut]] = {}
        for row in sides.to_dict("records"):
            by_cells.setdefault(tuple(row[name] for name in names), {})[row[IS_BASELINE]] = _read_left(row)
        found = [(*cells, *jackknife_aucs(own[False], own[True])) for cells, own in by_cells.items() if len(own) > 1]
        return pd.DataFrame(found, columns=[*names, *PairedAucs._fields])

    return run


def _read_left(row: Mapping[Any, Any]) -> LeftOut:
    n_low, n_high, u_doubled = (int(row[name]) for name in LeftOut._fields[:3])
    low_left, high_left, u_left = (list(map(int, row[name])) for name in LeftOut._fields[3:])
    return LeftOut(n_low, n_high, u_doubled, low_left, high_left, u_left)
