"""Tables of biasspark as matplotlib figures, in the colors of the report. No Spark is needed.

Each function raises `TypeError` or `InputError` if its argument is not a frame, is another table, or lacks requested
names.
"""

from __future__ import annotations

from biasspark.errors import explain_missing

try:
    from biasspark.plot.pictures import crosses, histograms, intervals, label_balance, pinned_auc, rate_curves, tree
except ModuleNotFoundError as error:
    raise explain_missing(error) from None

__all__ = ["crosses", "histograms", "intervals", "label_balance", "pinned_auc", "rate_curves", "tree"]
