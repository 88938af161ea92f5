"""Read a configuration from a TOML file or from tables. All faults are reported at once, in one `ConfigError`."""

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

_NEED_IDENTITIES = {"pinned_auc", "templates", "pinned_skew", "mitigation"}
_NEED_MODELS = {"thresholds", "histograms", "pinned_auc", "templates", "pinned_skew", "attribution", "compare"}
_NEED_MODELS |= {"gate", "state"}


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration file, and apply the overrides ``table.key=value`` of the command line.

    Relative paths are looked up next to the file, then in the working folder. An output that exists in neither is
    created in the working folder. Raises `ConfigError` with all faults, or if the file cannot be read or is not TOML.
    """
    table, faults = apply_overrides(read_toml(Path(path)), overrides)
    return parse_config(table, Path(path).parent, faults)


def parse_config(table: Mapping[str, Any], base: Path, faults: Sequence[Fault] = ()) -> Config:
    """Check a configuration, with paths relative to `base`. Raises `ConfigError` with all faults, those given first."""
    table = _drop_empty_identities(table)
    given = {name for name, part in table.items() if part is not None}
    is_misspelled = closest_match("identities", sorted(given - {*declarations(Config)})) is not None
    only_scores = "models" in given and not given & _NEED_IDENTITIES and not is_misspelled
    reader = Reader(base, _optional_tables(table) | ({"identities"} if only_scores else set()))
    reader.faults.extend(faults)
    return reader.read(Config, fill_experiment(table, reader))


def parse_measures(table: Mapping[str, Any], *, scored: bool = True, grouped: bool = True) -> Measures:
    """Check what is measured, for functions that are given a DataFrame: no corpus and no output.

    ``models`` may be a list of columns, and ``identities`` a list of columns or an `Identities`. None counts as absent.
    Unless `scored`, there are no models: only labels are counted. Unless `grouped`, identities are optional. Raises
    `ConfigError` with all faults.
    """
    table = _drop_empty_identities(table)
    given = {name: plain(part) for name, part in table.items() if scored or name != "models"}
    optional = _optional_tables(table) | (set() if scored else {"models"}) | (set() if grouped else {"identities"})
    return Reader(Path.cwd(), optional).read(Measures, given)


def parse_identities(value: object, base: Path | None = None) -> Identities:
    """Check identities: columns, the table ``[identities]`` as a dict, or an `Identities`. Raises `ConfigError`."""
    return Reader(base or Path.cwd(), {"label", "models"}).read(Measures, {"identities": plain(value)}).identities


def _drop_empty_identities(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop identities that are empty, as ``resolved`` has them in a configuration without identities."""
    return {name: part for name, part in table.items() if name != "identities" or part != plain(Identities())}


def _optional_tables(table: Mapping[str, Any]) -> set[str]:
    """Return the required tables that may be missing: identities in attribution, models for the label balance alone."""
    given = {name for name, part in table.items() if part is not None}
    only_labels = "label_balance" in given and not given & _NEED_MODELS
    return {"identities"} if "attribution" in given else {"models"} if only_labels else set()
