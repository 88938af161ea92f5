"""The configuration: what a run reads, measures and writes, checked before anything is read.

``load_config`` reads a TOML file and the overrides of the command line. ``parse_measures`` and ``parse_identities``
check what the public functions are given, by the same rules and with the same messages. Whatever is wrong is reported
at once, in one ``ConfigError``.
"""

from __future__ import annotations

from biasspark.config.attribution import Attribution, Pairs, SliceSearch, TreeSettings
from biasspark.config.compare import GROUPS, JACKKNIFE, Compare
from biasspark.config.further import (
    EvidenceSettings,
    Histograms,
    LabelBalance,
    PinnedAuc,
    PinnedSkew,
    Privacy,
    Templates,
    Thresholds,
    divide,
)
from biasspark.config.gate import Gate, Rule
from biasspark.config.identities import Crossed, Identities, find_too_many_pairs, say_unknown_identity
from biasspark.config.mergeable import Otherwise, find_otherwise, list_differences, merge_rules
from biasspark.config.model import (
    FILTER,
    Config,
    Corpus,
    Intervals,
    Label,
    Maintenance,
    Measures,
    Output,
    RankingSettings,
    Rejects,
    StateSettings,
)
from biasspark.config.reading import load_config, parse_config, parse_identities, parse_measures
from biasspark.config.redaction import redact
from biasspark.config.report import ReportSettings
from biasspark.config.section import find_close
from biasspark.config.source import say_no_place
from biasspark.config.terms import Terms
from biasspark.config.wording import (
    cut_to_width,
    list_first,
    measure_width,
    narrow_widths,
    say_count,
    show_p_value,
    show_value,
    show_visibly,
)

__all__ = [
    "FILTER",
    "GROUPS",
    "JACKKNIFE",
    "Attribution",
    "Compare",
    "Config",
    "Corpus",
    "Crossed",
    "EvidenceSettings",
    "Gate",
    "Histograms",
    "Identities",
    "Intervals",
    "Label",
    "LabelBalance",
    "Maintenance",
    "Measures",
    "Otherwise",
    "Output",
    "Pairs",
    "PinnedAuc",
    "PinnedSkew",
    "Privacy",
    "RankingSettings",
    "Rejects",
    "ReportSettings",
    "Rule",
    "SliceSearch",
    "StateSettings",
    "Templates",
    "Terms",
    "Thresholds",
    "TreeSettings",
    "cut_to_width",
    "divide",
    "find_close",
    "find_otherwise",
    "find_too_many_pairs",
    "list_differences",
    "list_first",
    "load_config",
    "measure_width",
    "merge_rules",
    "narrow_widths",
    "parse_config",
    "parse_identities",
    "parse_measures",
    "redact",
    "say_count",
    "say_no_place",
    "say_unknown_identity",
    "show_p_value",
    "show_value",
    "show_visibly",
]
