"""Reports from published tables, as HTML, Markdown and text. No Spark, except in the two functions for notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["metric_table", "night_report"]


def __getattr__(name: str) -> Any:
    # Imported on first use: they read tables with Spark, and draw with libraries that are an extra.
    if name not in __all__:
        raise AttributeError(f"module 'biasspark.report' has no attribute {name!r}")
    return getattr(import_module("biasspark.api.reports"), name)
