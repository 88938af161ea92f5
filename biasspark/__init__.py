"""Exact unintended-bias metrics of binary classifiers, on Spark and without it.

The functions work on frames of any kind. ``jobs/`` has the jobs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from biasspark.errors import explain_missing

if TYPE_CHECKING:
    from biasspark import plot as plot
    from biasspark.api.attribution_functions import (
        AttributedCorpus,
        attribute,
        attribution_correlations,
        attribution_segments,
        attribution_slices,
        auc_crosses,
        example_attributions,
        loss_by_segment,
        named_pairs,
        pair_segments,
    )
    from biasspark.api.comparison_functions import model_comparisons, side_by_side
    from biasspark.api.measured import MeasuredCorpus, measure
    from biasspark.api.metrics import (
        bias_metrics,
        label_balance,
        model_summary,
        pinned_auc,
        pinned_skew,
        score_histograms,
        template_scores,
        threshold_rates,
        threshold_summary,
        u_statistics,
    )
    from biasspark.api.reports import bias_report, metric_table, night_report
    from biasspark.config import Identities
    from biasspark.errors import BiasSparkError, ConfigError, InputError, InputWarning, NoRows, PublishConflict
    from biasspark.session import local

__version__ = "0.1.0"

# Imported on first use, in this order: executors import the kernels, which need no pyspark.
_MODULES = (
    "biasspark.errors",
    "biasspark.config.identities",
    "biasspark.api.measured",
    "biasspark.api.metrics",
    "biasspark.api.comparison_functions",
    "biasspark.api.attribution_functions",
    "biasspark.session.job_session",
    "biasspark.api.reports",  # the last, since it needs an extra
)

__all__ = [
    "AttributedCorpus",
    "BiasSparkError",
    "ConfigError",
    "Identities",
    "InputError",
    "InputWarning",
    "MeasuredCorpus",
    "NoRows",
    "PublishConflict",
    "attribute",
    "attribution_correlations",
    "attribution_segments",
    "attribution_slices",
    "auc_crosses",
    "bias_metrics",
    "bias_report",
    "example_attributions",
    "label_balance",
    "local",
    "loss_by_segment",
    "measure",
    "metric_table",
    "model_comparisons",
    "model_summary",
    "named_pairs",
    "night_report",
    "pair_segments",
    "pinned_auc",
    "pinned_skew",
    "score_histograms",
    "side_by_side",
    "template_scores",
    "threshold_rates",
    "threshold_summary",
    "u_statistics",
]


def __getattr__(name: str) -> Any:
    if name == "plot":  # needs an extra
        return import_module("biasspark.plot")
    if name not in __all__:
        raise AttributeError(f"module 'biasspark' has no attribute {name!r}")
    candidates = ((module, getattr(import_module(module), name, None)) for module in _MODULES)
    try:
        return next(value for module, value in candidates if getattr(value, "__module__", "") == module)
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "plot"])
