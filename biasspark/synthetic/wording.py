"""The numbers and words of the corpora, from TOML files of this package; the words of templated sentences."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_packaged(corpus: str) -> dict[str, Any]:
    """Return what the TOML file of a corpus holds, also where the package is a zip."""
    return tomllib.loads(resources.files("biasspark.synthetic").joinpath(f"{corpus}.toml").read_text("utf-8"))


_WORDING = read_packaged("madlibs")

IDENTITY_TERMS: tuple[str, ...] = tuple(_WORDING["identity_terms"])
"""The terms of conf/identity_terms.txt, in its order."""

FILLERS: tuple[dict[str, list[str]], ...] = tuple(
    _WORDING["fillers"] | _WORDING[f"{kind}_fillers"] for kind in ("harmless", "toxic")
)
"""Words for each slot, for harmless and for toxic templates: as many for one slot as for any other."""

TEMPLATES: tuple[list[str], ...] = (_WORDING["harmless_templates"], _WORDING["toxic_templates"])
"""At 0 what is harmless, at 1 what is toxic: as many of one as of the other."""


def with_article(word: str) -> str:
    """Put a or an before a word, as it is spoken."""
    lower = word.lower()
    if lower.startswith(("honest", "lgbt")):
        return f"an {word}"
    vowel = lower.startswith(tuple("aeiou")) and not lower.startswith(("eu", "uni", "use"))
    return f"{'an' if vowel else 'a'} {word}"
