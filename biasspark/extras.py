"""Errors for missing libraries of extras."""

from __future__ import annotations

from biasspark.errors import ConfigError
from biasspark.session_request import GET_AN_ENGINE

_OF_TRAINING = {"sklearn", "scipy"}
_OF_REPORTS = {"jinja2", "markupsafe"}


def explain_missing(error: ModuleNotFoundError) -> Exception:
    """Return an error with the extra that has the missing module; the given error if none has it."""
    name = (error.name or "").partition(".")[0]
    if name == "pyspark":
        return ConfigError(f"No engine is installed. {GET_AN_ENGINE}.")
    if name == "matplotlib":
        return ConfigError(
            "matplotlib is not installed. It draws pictures: pip install 'biasspark[plot]', or 'biasspark[report]', "
            "which writes reports, too."
        )
    if name in _OF_REPORTS:
        return ConfigError(f"{name} is not installed. It writes reports: pip install 'biasspark[report]'.")
    if name in _OF_TRAINING:
        return ConfigError(f"{name} is not installed. It trains classifiers: pip install 'biasspark[mitigation]'.")
    return error
