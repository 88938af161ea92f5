"""Stage 6: published tables -> what people read.

``night_report`` and ``metric_table`` show themselves in notebooks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biasspark.report.notebook import Document, NightReport, metric_table, night_report

__all__ = ["Document", "NightReport", "metric_table", "night_report"]


def __getattr__(name: str) -> Any:
    # Looked up when asked for: what draws is an extra, and comparing two models does without.
    if name not in __all__:
        raise AttributeError(f"module 'biasspark.report' has no attribute {name!r}")
    return getattr(import_module("biasspark.report.notebook"), name)
