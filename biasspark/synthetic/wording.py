"""The numbers and words of the corpora, from TOML files of this package."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_packaged(corpus: str) -> dict[str, Any]:
    """Read the TOML file of a corpus, even if the package is a zip."""
    return tomllib.loads(resources.files("biasspark.synthetic").joinpath(f"{corpus}.toml").read_text("utf-8"))


_WORDING = read_packaged("madlibs")

IDENTITY_TERMS: tuple[str, ...] = tuple(_WORDING["identity_terms"])
"""The terms of conf/identity_terms.txt, in the same order."""

FILLERS: tuple[dict[str, list[str]], ...] = tuple(
    _WORDING["fillers"] | _WORDING[f"{kind}_fillers"] for kind in ("harmless", "toxic")
)
"""Words for each slot of harmless and of toxic templates. All slots have the same number of words."""

TEMPLATES: tuple[list[str], ...] = (_WORDING["harmless_templates"], _WORDING["toxic_templates"])
"""The harmless and the toxic templates, equally many."""


def with_article(word: str) -> str:
    """Put "a" or "an" before a word."""
    lower = word.lower()
    if lower.startswith(("honest", "lgbt")):
        return f"an {word}"
    vowel = lower.startswith(tuple("aeiou")) and not lower.startswith(("eu", "uni", "use"))
    return f"{'an' if vowel else 'a'} {word}"
