"""Pictures of the tables of biasspark as matplotlib figures, in the colors of the report. No Spark.

Each raises `TypeError` or `InputError` if it is given something else than a frame, another table, or a table that lacks
the requested names.
"""

from __future__ import annotations

from biasspark.extras import explain_missing

try:
    from biasspark.plot.pictures import crosses, histograms, intervals, label_balance, pinned_auc, rate_curves, tree
except ModuleNotFoundError as error:
    raise explain_missing(error) from None

__all__ = ["crosses", "histograms", "intervals", "label_balance", "pinned_auc", "rate_curves", "tree"]
