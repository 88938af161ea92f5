"""The configuration: what a run reads, measures and writes, checked before any data is read.

`load_config` reads a TOML file and command-line overrides. `parse_measures` reads the arguments of public functions by
the same rules. All faults are reported at once, in one `ConfigError`.
"""

from __future__ import annotations

from biasspark.config.attribution_settings import Attribution, Pairs, TreeSettings
from biasspark.config.config_diff import ConfigDiff, diff_config, list_differences, merge_rules
from biasspark.config.configuration import (
    FILTER,
    Config,
    Corpus,
    Intervals,
    Label,
    Measures,
    Output,
    RankingSettings,
    Rejects,
    load_config,
    parse_config,
    parse_identities,
    parse_measures,
)
from biasspark.config.gate_rules import Gate, Rule
from biasspark.config.identities import Crossed, Identities, Terms, too_many_pairs, unknown_identity
from biasspark.config.mitigation_settings import Mitigation
from biasspark.config.optional_metrics import (
    JACKKNIFE,
    JACKKNIFE_GROUPS,
    Compare,
    Histograms,
    LabelBalance,
    MinimumCellRows,
    PinnedAuc,
    PinnedSkew,
    Privacy,
    Thresholds,
    divide,
)
from biasspark.config.toml_file import unusable_path, write_toml
