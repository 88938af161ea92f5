"""From a TOML file, or from tables, to a checked configuration. Every fault comes out at once, in one `ConfigError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biasspark.config.configuration import Config, Measures
from biasspark.config.declaration import Reader, declarations, plain
from biasspark.config.identities import Identities
from biasspark.config.mitigation_settings import fill_experiment
from biasspark.config.toml_file import apply_overrides, read_toml
from biasspark.errors import Fault
from biasspark.text import closest_match

OF_SCORES = {
    *("pinned_auc", "thresholds", "histograms", "templates", "pinned_skew", "attribution", "compare", "gate", "state"),
}
"""Tables of the configuration that need models."""
OF_IDENTITIES = {"pinned_auc", "templates", "pinned_skew", "mitigation"}
"""Those that need identities."""


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration file, and what the command line changes in it by ``table.key=value``.

    Relative paths in it are looked up next to it, then in the working folder; an output that exists in neither is made
    in the working folder. Raises `ConfigError` with every fault, or, of a file that cannot be read or is not TOML, with
    that alone.
    """
    table, faults = apply_overrides(read_toml(Path(path)), overrides)
    return _read(table, Path(path).parent, faults)


def parse_config(table: Mapping[str, Any], base: Path) -> Config:
    """Check a whole configuration that was read already; relative paths in it are looked up in the folder ``base``.

    Raises `ConfigError` with every fault.
    """
    return _read(table, base)


def parse_measures(table: Mapping[str, Any], *, scored: bool = True, grouped: bool = True) -> Measures:
    """Check what is measured, without a corpus to read or an output: for functions that are given a DataFrame.

    In the tables of a configuration ``models`` may be a list of columns, and ``identities`` a list of columns or an
    `Identities`. What is None counts as absent. Unless ``scored`` there are no models, so that only labels can be
    counted; unless ``grouped`` no identities are required. Raises `ConfigError` with every fault.
    """
    table = _less_no_identities(table)
    given = {name: plain(part) for name, part in table.items() if scored or name != "models"}
    left_out = _left_out(table) | (set() if scored else {"models"}) | (set() if grouped else {"identities"})
    return Reader(Path.cwd(), left_out).read(Measures, given)


def parse_identities(value: object, base: Path | None = None) -> Identities:
    """Check identities: a list of columns, the table ``[identities]`` as a dict, or an `Identities`.

    Raises `ConfigError` with every fault.
    """
    return Reader(base or Path.cwd(), {"label", "models"}).read(Measures, {"identities": plain(value)}).identities


def _read(table: Mapping[str, Any], base: Path, faults: Sequence[Fault] = ()) -> Config:
    """Read a whole configuration, some faults of which are known."""
    table = _less_no_identities(table)
    given = {name for name, part in table.items() if part is not None}
    is_misspelled = closest_match("identities", sorted(given - {*declarations(Config)})) is not None
    scores_alone = "models" in given and not given & OF_IDENTITIES and not is_misspelled
    reader = Reader(base, _left_out(table) | ({"identities"} if scores_alone else set()))
    reader.faults.extend(faults)
    return reader.read(Config, fill_experiment(table, reader))


def _less_no_identities(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables without the identities that ``resolved`` gives where there are none."""
    return {name: part for name, part in table.items() if name != "identities" or part != plain(Identities())}


def _left_out(table: Mapping[str, Any]) -> set[str]:
    """Return the required tables that need not be there.

    Attribution needs no identities, and label balance alone no models.
    """
    given = {name for name, part in table.items() if part is not None}
    balances_alone = "label_balance" in given and not given & OF_SCORES
    return {"identities"} if "attribution" in given else {"models"} if balances_alone else set()
