"""Errors for missing libraries of extras."""

from __future__ import annotations

from biasspark.errors import ConfigError
from biasspark.session_request import GET_AN_ENGINE, how_to_install

_USES = {
    "matplotlib": f"draws pictures: {how_to_install('plot')}, or '.[report]'",
    **dict.fromkeys(("jinja2", "markupsafe"), f"writes reports: {how_to_install('report')}"),
    **dict.fromkeys(("sklearn", "scipy"), f"trains classifiers: {how_to_install('mitigation')}"),
}
"""What modules of extras do, and how to get them."""


def explain_missing(error: ModuleNotFoundError) -> Exception:
    """Return an error with the extra that has the missing module; the given error if none has it."""
    name = (error.name or "").partition(".")[0]
    if name == "pyspark":
        return ConfigError(f"No engine is installed. {GET_AN_ENGINE}.")
    return ConfigError(f"{name} is not installed. It {_USES[name]}.") if name in _USES else error
