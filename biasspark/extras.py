"""Errors for missing libraries of extras."""

from __future__ import annotations

from biasspark.errors import ConfigError
from biasspark.session_request import GET_AN_ENGINE, how_to_install

_OF_TRAINING = {"sklearn", "scipy"}
_OF_REPORTS = {"jinja2", "markupsafe"}


def explain_missing(error: ModuleNotFoundError) -> Exception:
    """Return an error with the extra that has the missing module; the given error if none has it."""
    name = (error.name or "").partition(".")[0]
    if name == "pyspark":
        return ConfigError(f"No engine is installed. {GET_AN_ENGINE}.")
    if name == "matplotlib":
        return ConfigError(f"matplotlib is not installed. It draws pictures: {how_to_install('plot')}, or '.[report]'.")
    if name in _OF_REPORTS:
        return ConfigError(f"{name} is not installed. It writes reports: {how_to_install('report')}.")
    if name in _OF_TRAINING:
        return ConfigError(f"{name} is not installed. It trains classifiers: {how_to_install('mitigation')}.")
    return error
