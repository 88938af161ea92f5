"""The numbers and words of the corpora, in TOML files of this package."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_packaged(corpus: str) -> dict[str, Any]:
    """Return what the TOML file of a corpus holds, also where the package is a zip."""
    return tomllib.loads(resources.files("biasspark.synthetic").joinpath(f"{corpus}.toml").read_text("utf-8"))
