"""Exact unintended-bias metrics of binary classifiers, on Spark.

The functions work on any DataFrame, on any session; ``jobs/`` has the nightly run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biasspark.api import (
        bias_metrics,
        label_balance,
        model_comparisons,
        model_summary,
        pinned_auc,
        pinned_skew,
        score_histograms,
        side_by_side,
        template_scores,
        threshold_rates,
        threshold_summary,
        u_statistics,
    )
    from biasspark.attribution_api import (
        attribution_correlations,
        attribution_segments,
        attribution_slices,
        auc_crosses,
        example_attributions,
        loss_by_segment,
        pair_segments,
    )
    from biasspark.config import Identities
    from biasspark.errors import BiasSparkError, ConfigError, InputError, PublishConflict

__version__ = "0.1.0"

# Looked up when first asked for: executors import the kernels, and those need no pyspark.
_HOMES = {
    "bias_metrics": "biasspark.api",
    "u_statistics": "biasspark.api",
    "model_summary": "biasspark.api",
    "pinned_auc": "biasspark.api",
    "pinned_skew": "biasspark.api",
    "threshold_rates": "biasspark.api",
    "threshold_summary": "biasspark.api",
    "score_histograms": "biasspark.api",
    "side_by_side": "biasspark.api",
    "model_comparisons": "biasspark.api",
    "label_balance": "biasspark.api",
    "template_scores": "biasspark.api",
    "example_attributions": "biasspark.attribution_api",
    "attribution_correlations": "biasspark.attribution_api",
    "attribution_segments": "biasspark.attribution_api",
    "attribution_slices": "biasspark.attribution_api",
    "pair_segments": "biasspark.attribution_api",
    "auc_crosses": "biasspark.attribution_api",
    "loss_by_segment": "biasspark.attribution_api",
    "Identities": "biasspark.config",
    "BiasSparkError": "biasspark.errors",
    "ConfigError": "biasspark.errors",
    "InputError": "biasspark.errors",
    "PublishConflict": "biasspark.errors",
}

__all__ = [
    "BiasSparkError",
    "ConfigError",
    "Identities",
    "InputError",
    "PublishConflict",
    "attribution_correlations",
    "attribution_segments",
    "attribution_slices",
    "auc_crosses",
    "bias_metrics",
    "example_attributions",
    "label_balance",
    "loss_by_segment",
    "model_comparisons",
    "model_summary",
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
    if name not in _HOMES:
        raise AttributeError(f"module 'biasspark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
