"""The messages of the configuration in the words of a notebook: `engine` for `[ranking] engine`."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial

TABLES = (
    *("corpus", "label", "models", "identities", "slices", "ranking", "intervals", "evidence", "privacy"),
    *("thresholds", "histograms", "label_balance", "templates", "pinned_auc", "pinned_skew", "compare", "attribution"),
)
RENAMED = {
    ("corpus", "id"): "id",
    ("label", "column"): "label",
    ("label", "threshold"): "label_threshold",
    ("label", "positive"): "label_positive",
    ("identities", "threshold"): "identity_threshold",
    ("identities", "unannotated"): "unannotated",
    ("ranking", "engine"): "engine",
    ("ranking", "ranges"): "ranges",
    ("ranking", "bins"): "rank_bins",
    ("intervals", "level"): "level",
    ("templates", "column"): "template",
}
"""Keys of the configuration that are keywords of another name, or of a table that is none."""

_PLACE = re.compile(rf"\[({'|'.join(TABLES)})(?:\.(\w+))?\](?: (\w+))?")
_KEY_OF_LABEL = re.compile(r"\b(column|threshold|positive)\b(?=`| = | and positive| are both)")


_EXAMPLES = {
    'toxicity = "toxicity"': 'models = ["toxicity"]',
    'columns = ["male", "female"]': 'identities = ["male", "female"]',
}
"""What could stand in a file, and what a notebook writes for it."""


def name_keywords(fault: str, keywords: Collection[str], given: Collection[str]) -> str:
    """Return a fault of a configuration as one of the keywords of a function.

    Parameters
    ----------
    fault
        One of a `ConfigError` or an `InputError`.
    keywords
        Those that the function has.
    given
        Those that it was called with.
    """
    start = _PLACE.match(fault)
    said = _PLACE.sub(partial(_name_place, keywords=keywords, given=given), fault)
    said = said.replace("Remove the line", "Leave it out").replace("remove the line", "leave it out")
    if not start:
        return said
    if start[1] == "label":
        return _KEY_OF_LABEL.sub(lambda found: RENAMED["label", found[1]], said)
    if keyword := _find_keyword(start[1], start[3], keywords, given):
        return re.sub(rf"\b{start[3]} = ", f"{keyword} = ", said)
    for written, instead in _EXAMPLES.items():
        said = said.replace(f"Write, for example, {written}", f"Write, for example, {instead}")
    return said


def _name_place(found: re.Match[str], keywords: Collection[str], given: Collection[str]) -> str:
    """Name the keyword of a table of the configuration, or of a key of one."""
    table, part, key = found.groups()
    if keyword := _find_keyword(table, key, keywords, given):
        return keyword
    if part in keywords:
        return f"{part} {key}" if key else str(part)
    if table not in keywords and key in keywords:
        return str(key)
    return " ".join(filter(None, (table, part, key)))


def _find_keyword(table: str, key: str, keywords: Collection[str], given: Collection[str]) -> str | None:
    """Find the keyword of another name that a key has; not where identities are a table, with keys of its own."""
    keyword = RENAMED.get((table, key))
    return keyword if keyword in keywords and (table != "identities" or keyword in given) else None
