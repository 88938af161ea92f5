"""The part ``[attribution]`` of a configuration: which rows, segments and pairs cost a model its AUC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biasspark.columns import OVERALL
from biasspark.config import kinds
from biasspark.config.declaration import REQUIRED, Kind, Section, Spot, setting, unknown
from biasspark.text import quote

TARGETS = ("auc", "cross_entropy", "gini")
MAX_DEPTH = 10
MAX_SAMPLED = 100_000
MAX_SEGMENTS = 50


@dataclass(frozen=True, kw_only=True)
class TreeSettings(Section):
    """How trees of segments are grown, and how rows are split: some rows grow the trees, the rest only estimate."""

    max_depth: int = setting(4, kinds.whole(1, MAX_DEPTH))
    """Levels of splits."""
    min_leaf: int = setting(100, kinds.whole(2))
    """The fewest rows of a leaf, among those that grow the tree and among those that estimate."""
    min_gain: float = setting(0.0, kinds.number(0, 1, "low"))
    """The least share of the target's variance that a split must explain."""
    max_bins: int = setting(256, kinds.whole(2, 1024))
    """The most bins of a numeric feature. With more distinct values, it is cut at quantiles."""
    honest_fraction: float = setting(0.5, kinds.number(0, 1))
    """The share of rows, by a hash of the id, that only estimate."""
    seed: int = setting(1, kinds.whole())
    """The seed of that hash."""


@dataclass(frozen=True, kw_only=True)
class Pairs(Section):
    """How pair segments are grown."""

    positives: int = setting(1000, kinds.whole(2, MAX_SAMPLED))
    """The most examples of this label that are sampled to grow the tree. As many others are sampled to estimate."""
    negatives: int = setting(1000, kinds.whole(2, MAX_SAMPLED))
    """See `positives`."""
    max_depth: int = setting(4, kinds.whole(1, MAX_DEPTH))
    """Levels of splits."""
    min_leaf: int | None = setting(None, kinds.whole(1))
    """The fewest pairs of a leaf, a tenth of all pairs unless given. Rare groups have fewer: lower it to find them."""
    min_side: int = setting(30, kinds.whole(2))
    """The fewest distinct examples of a leaf on either side, among those that grow the tree and among those that
    estimate."""
    seed: int = setting(1, kinds.whole())
    """The seed of the samples."""


@dataclass(frozen=True, kw_only=True)
class SliceSearch(Section):
    """How slices are searched, with the same split of the rows as for trees."""

    max_predicates: int = setting(3, kinds.whole(1, 3))
    """The most conditions, each on a different feature, that a slice may combine: 1 to 3."""
    most: int = setting(10, kinds.whole(1, 50))
    """The most slices that are found. Adjacent slices are then joined, so fewer may be reported."""
    min_rows: int = setting(100, kinds.whole(2))
    """The fewest rows of a slice, among those that search and among those that estimate."""
    max_bins: int = setting(8, kinds.whole(2, 64))
    """The most intervals of a numeric feature, each with about equally many rows."""


@dataclass(frozen=True, kw_only=True)
class NamedPair(Section):
    """Some negatives and some positives whose pairs are evaluated."""

    negatives: str = setting(REQUIRED, kinds.string(multiline=True), example="age < 30")
    """The Spark SQL predicate of the negatives; `"true"` for all of them."""
    positives: str = setting(REQUIRED, kinds.string(multiline=True), example="age >= 30")
    """The predicate of the positives."""


def _read_pair(spot: Spot) -> Any:
    match spot.value:
        case [str(model), str(baseline)] if model != baseline:
            return model, baseline
    return spot.refuse("It must be two different models, the second the baseline.")


def _read_link(spot: Spot) -> Any:
    link = kinds.choice("logit")
    return (kinds.named("a model's name", link) if isinstance(spot.value, Mapping) else link).read(spot)


@dataclass(frozen=True, kw_only=True)
class Attribution(Section):
    """What attribution computes. A part that is left out is not computed.

    After reading, ``link`` maps models to their links. Other models have probabilities.
    """

    write_examples: bool = setting(False, kinds.flag())
    """Whether the attribution of every row is written."""
    numeric: tuple[str, ...] = setting((), kinds.list_of())
    """Columns that trees, slices and pairs may split on."""
    categorical: tuple[str, ...] = setting((), kinds.list_of())
    """See `numeric`."""
    groupings: dict[str, str] = setting(
        {}, kinds.expressions("a grouping's name", "the expression", most=MAX_SEGMENTS), example={"language": "lang"}
    )
    """Names of groupings, each with its column or SQL expression, for `auc_crosses`."""
    segments: dict[str, str] = setting(
        {}, kinds.expressions("a segment's name", most=MAX_SEGMENTS), example={"long": "length(text) > 500"}
    )
    """Names of segments, each with its SQL predicate, for `loss_by_segment`."""
    pairs_of: dict[str, NamedPair] = setting(
        {},
        kinds.named("a pair's name", kinds.table(NamedPair), most=MAX_SEGMENTS),
        example={"young, old": {"negatives": "age < 30", "positives": "age >= 30"}},
    )
    """Names of pairs, each with the SQL predicates of its `negatives` and of its `positives`, for `named_pairs`."""
    compare: tuple[tuple[str, str], ...] = setting(
        (), kinds.list_of(Kind("two models each", _read_pair)), example=[["new", "old"]]
    )
    """Pairs of models, the baseline second, for trees on the difference."""
    targets: tuple[str, ...] = setting(TARGETS[:1], kinds.list_of(kinds.choice(*TARGETS)))
    """What trees predict: `auc` (the attribution), `cross_entropy`, `gini`. If empty, `tree` only splits rows for
    slices."""
    link: dict[str, str] = setting({}, Kind("text, or table of text", _read_link))
    """`"logit"` if the scores of all models are log-odds, since losses need probabilities; or model = `"logit"` for
    each model with log-odds."""
    tree: TreeSettings | None = setting(None, kinds.table(TreeSettings), example={"max_depth": 3})
    """How trees of segments are grown."""
    pairs: Pairs | None = setting(None, kinds.table(Pairs), example={"max_depth": 3})
    """How trees over pairs are grown."""
    slice_search: SliceSearch | None = setting(None, kinds.table(SliceSearch), example={"max_predicates": 2})
    """How slices are searched."""

    @property
    def features(self) -> tuple[str, ...]:
        """The columns to split on, numeric ones first."""
        return (*self.numeric, *self.categorical)

    @property
    def has_losses(self) -> bool:
        """Whether losses are configured, or nothing else is."""
        has_others = self.searches or self.groupings or self.pairs_of or self.write_examples
        return bool(self.link or self.segments or {*self.targets} - {*TARGETS[:1]} or not has_others)

    @property
    def grows_trees(self) -> bool:
        """Whether trees of segments are grown."""
        return bool(self.tree and (self.targets or self.compare))

    @property
    def searches(self) -> bool:
        """Whether anything is searched by features."""
        return bool(self.tree or self.slice_search or self.pairs)

    @property
    def splits_rows(self) -> bool:
        """Whether some rows only search, and the others only estimate."""
        return bool(self.tree or self.slice_search)

    @property
    def split(self) -> TreeSettings:
        """How rows are split into those that search and those that estimate, with or without trees."""
        return self.tree or TreeSettings()

    def check(self, written: Spot) -> None:
        """Report features of two kinds, and parts that lack features or a tree."""
        for name in [name for name in self.numeric if name in self.categorical]:
            what = f"{quote(name)} is numeric, too. A feature is either numeric or categorical."
            written["categorical"].complain(what, "Remove one.")
        for key in ("tree", "pairs", "slice_search"):
            if key in written and not self.features and written.sound("numeric", "categorical"):
                what = "there is no feature to split on. At least one is required."
                written[key].complain(what, written.write(numeric=["comment_length"]))
        is_used = self.targets or self.compare or self.slice_search
        if "tree" in written and not is_used and written.sound("targets", "compare", "slice_search"):
            written["targets"].refuse("At least one is required, unless models are compared or slices are searched.")
        for key, is_default in (("compare", not self.compare), ("targets", self.targets == TARGETS[:1])):
            if not is_default and "tree" not in written:
                written[key].refuse("Only a tree uses it, and there is none.", "Add tree = {}, or leave it out.")
        if OVERALL in self.segments:
            rule = "This name stands for all rows."
            written["segments"][OVERALL].refuse(rule, "Rename the segment.")

    def check_models(self, written: Spot, models: Sequence[str]) -> None:
        """Report models that do not exist."""
        for pair in self.compare:
            for name in [name for name in pair if name not in models]:
                written.refuse_entry("compare", pair, *unknown("model", name, models))
        link = written["link"]
        for name in [name for name in link.keys if name not in models]:
            link[name].refuse(*unknown("model", name, models))
