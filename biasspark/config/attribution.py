"""The part ``[attribution]`` of a configuration: what is asked about the rows that cost a model its AUC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from biasspark.columns import OVERALL
from biasspark.config.faults import Faults
from biasspark.config.section import Section, find_repeated, guess, keys_of
from biasspark.config.wording import list_choices, quote, show_key, show_value

TARGETS = ("auc", "cross_entropy", "gini")
LINKS = ("logit",)
MOST_DEPTH = 10
MOST_BINS = 1024
MOST_SAMPLED = 100_000
MOST_SLICES = 50
MOST_PREDICATES = 3
MOST_SEGMENTS = 50


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """How trees of segments are grown, and how rows are split: some grow the trees, the others only estimate.

    Attributes
    ----------
    max_depth
        Levels of splits.
    min_leaf
        The fewest rows of a leaf, both of those that grow the tree and of those that estimate.
    min_gain
        The least share of the target's variance that a split must explain.
    max_bins
        The most bins of a numeric feature: with more distinct values it is cut at quantiles.
    honest_fraction
        The share of rows, by a hash of the id, that only estimate.
    seed
        The seed of that hash.
    """

    max_depth: int = 4
    min_leaf: int = 100
    min_gain: float = 0.0
    max_bins: int = 256
    honest_fraction: float = 0.5
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """How pair segments are grown.

    Attributes
    ----------
    positives, negatives
        The most examples of this label that are sampled to grow the tree; as many others are sampled to estimate.
    max_depth
        Levels of splits.
    min_leaf
        The fewest pairs of a leaf; None is a tenth of all pairs. Rare groups have fewer: lower it to look for them.
    min_side
        The fewest distinct examples of a leaf on either side, both of those that grow the tree and of those that
        estimate.
    seed
        The seed of the samples.
    """

    positives: int = 1000
    negatives: int = 1000
    max_depth: int = 4
    min_leaf: int | None = None
    min_side: int = 30
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class SliceSearch:
    """How slices are searched, with the same split of the rows as for trees.

    Attributes
    ----------
    max_predicates
        The most conditions, each on a different feature, that a slice may combine: 1 to 3.
    most
        The most slices that are found. Adjoining ones are then joined, so fewer may be reported.
    min_rows
        The fewest rows of a slice, both of those that search and of those that estimate.
    max_bins
        The most intervals, of about equally many rows, into which a numeric feature is cut.
    """

    max_predicates: int = 3
    most: int = 10
    min_rows: int = 100
    max_bins: int = 8


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What attribution computes; a part that is left out is not computed.

    Attributes
    ----------
    write_examples
        Whether the attribution of every row is written.
    numeric, categorical
        Columns that trees, slices and pairs may split on.
    groupings
        Names of groupings, each with its column or SQL expression, for ``auc_crosses``.
    segments
        Names of segments, each with its SQL predicate, for ``loss_by_segment``.
    compare
        Pairs of models, the baseline second, for trees on the difference.
    targets
        What trees predict: ``auc`` (the attribution), ``cross_entropy``, ``gini``.
    link
        Model to what makes probabilities of its scores for the losses; models left out have probabilities.
    tree
        How trees of segments are grown.
    pairs
        How trees over pairs are grown.
    slice_search
        How slices are searched.
    """

    write_examples: bool = False
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    groupings: dict[str, str] = field(default_factory=dict)
    segments: dict[str, str] = field(default_factory=dict)
    compare: tuple[tuple[str, str], ...] = ()
    targets: tuple[str, ...] = TARGETS[:1]
    link: dict[str, str] = field(default_factory=dict)
    tree: TreeSettings | None = None
    pairs: Pairs | None = None
    slice_search: SliceSearch | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """The columns to split on: numeric ones first."""
        return (*self.numeric, *self.categorical)

    @property
    def split(self) -> TreeSettings:
        """How rows are split into those that search and those that estimate, also where no tree is grown."""
        return self.tree or TreeSettings()


def read_attribution(value: object, models: Collection[str], faults: Faults) -> Attribution:
    """Read ``[attribution]``; ``models`` are the names of those that there are."""
    section = Section("[attribution]", value, keys_of(Attribution), faults)
    found = Attribution(
        write_examples=section.flag("write_examples", Attribution.write_examples),
        numeric=section.names("numeric"),
        categorical=section.names("categorical"),
        groupings=_read_texts(section, "groupings", "a grouping's name", "a column or an expression"),
        segments=_read_texts(section, "segments", "a segment's name", "the predicate"),
        compare=_read_pairs_of_models(section, models),
        targets=_read_targets(section),
        link=_read_link(section, models),
        tree=_read_tree(section.table.get("tree"), faults),
        pairs=_read_pairs(section.table.get("pairs"), faults),
        slice_search=_read_slice_search(section.table.get("slice_search"), faults),
    )
    _check_features(section, found)
    _check_parts(section, found)
    return found


def _read_texts(section: Section, key: str, names: str, values: str) -> dict[str, str]:
    own = Section(f"[attribution.{key}]", section.table.get(key), (), section.faults)
    found = own.texts_by_name(names, values, multiline=True)
    if len(found) > MOST_SEGMENTS:
        own.complain("", f"{len(found)} of them. At most {MOST_SEGMENTS} are allowed. Measure them in several runs.")
    return found


def _read_pairs_of_models(section: Section, models: Collection[str]) -> tuple[tuple[str, str], ...]:
    given, found = section.table.get("compare", []), []
    for pair in given if isinstance(given, list | tuple) else [given]:
        match pair:
            case [str(model), str(baseline)] if model != baseline and {model, baseline} <= set(models):
                found.append((model, baseline))
            case _:
                section.complain(
                    f"compare: {show_value(pair)}",
                    f"It must be two different models of {list_choices(models) or '[models]'}, the second the "
                    'baseline. Write, for example, compare = [["new", "old"]].',
                )
    for model, baseline in find_repeated(found):
        section.complain("compare", f"{quote(model)} and {quote(baseline)} are listed twice. Remove one.")
    return tuple(found)


def _read_targets(section: Section) -> tuple[str, ...]:
    found = section.names("targets") if "targets" in section.table else Attribution.targets
    for target in found:
        if target not in TARGETS:
            section.complain(f"targets: {quote(target)}", f"It must be one of {list_choices(TARGETS)}. Correct it.")
    section.refuse_repeated("targets", found)
    return found


def _read_link(section: Section, models: Collection[str]) -> dict[str, str]:
    """Read the links of those models that have one: one text for all, or a table."""
    given = section.table.get("link")
    if not isinstance(given, Mapping):
        link = section.optional_text("link", 'link = "logit"')
        return {} if link is None or not _is_link(section, "link", link) else dict.fromkeys(models, link)
    own = Section("[attribution.link]", given, (), section.faults)
    found = own.texts_by_name("a model's name", "the link")
    for model in [name for name in found if models and name not in models]:
        what = f"there is no such model. The models are {list_choices(models)}. {guess(model, tuple(models))}"
        own.complain(show_key(model), what)
    return {model: link for model, link in found.items() if _is_link(own, model, link)}


def _is_link(section: Section, key: str, link: str) -> bool:
    if link not in LINKS:
        mend = "Correct it, or remove the line where there is none."
        section.refuse(key, f"It must be {list_choices(LINKS)}.", mend)
    return link in LINKS


def _read_tree(value: object, faults: Faults) -> TreeSettings | None:
    if value is None:
        return None
    section = Section("[attribution.tree]", value, keys_of(TreeSettings), faults)
    return TreeSettings(
        max_depth=section.whole("max_depth", TreeSettings.max_depth, MOST_DEPTH, least=1),
        min_leaf=section.whole("min_leaf", TreeSettings.min_leaf, least=2),
        min_gain=section.fraction("min_gain", TreeSettings.min_gain, with_0=True),
        max_bins=section.whole("max_bins", TreeSettings.max_bins, MOST_BINS, least=2),
        honest_fraction=section.fraction("honest_fraction", TreeSettings.honest_fraction),
        seed=section.whole("seed", TreeSettings.seed),
    )


def _read_pairs(value: object, faults: Faults) -> Pairs | None:
    if value is None:
        return None
    section = Section("[attribution.pairs]", value, keys_of(Pairs), faults)
    return Pairs(
        positives=section.whole("positives", Pairs.positives, MOST_SAMPLED, least=2),
        negatives=section.whole("negatives", Pairs.negatives, MOST_SAMPLED, least=2),
        max_depth=section.whole("max_depth", Pairs.max_depth, MOST_DEPTH, least=1),
        min_leaf=section.optional_whole("min_leaf", least=1),
        min_side=section.whole("min_side", Pairs.min_side, least=2),
        seed=section.whole("seed", Pairs.seed),
    )


def _read_slice_search(value: object, faults: Faults) -> SliceSearch | None:
    if value is None:
        return None
    section = Section("[attribution.slice_search]", value, keys_of(SliceSearch), faults)
    return SliceSearch(
        max_predicates=section.whole("max_predicates", SliceSearch.max_predicates, MOST_PREDICATES, least=1),
        most=section.whole("most", SliceSearch.most, MOST_SLICES, least=1),
        min_rows=section.whole("min_rows", SliceSearch.min_rows, least=2),
        max_bins=section.whole("max_bins", SliceSearch.max_bins, 64, least=2),
    )


def _check_features(section: Section, found: Attribution) -> None:
    """Refuse features that are named twice, and searches that have none."""
    for name in find_repeated(found.features):
        what = f"{quote(name)} is named 2 times. Features must differ. Remove one."
        section.complain("numeric and categorical", what)
    for key in ("tree", "pairs", "slice_search"):
        if key in section.table and not found.features:
            section.complain(
                key,
                "there is no feature to split on. At least one is required. Write, for example, numeric = "
                '["comment_length"], or remove the line.',
            )


def _check_parts(section: Section, found: Attribution) -> None:
    """Refuse what only a tree uses where there is no tree, and the name that stands for all rows."""
    for key in ("compare", "targets"):
        asked = getattr(found, key) != getattr(Attribution, key)
        if asked and found.tree is None and section.table.get("tree") is None:
            section.complain(key, "Only a tree uses it, and there is none. Add tree = {}, or remove the line.")
    if OVERALL in found.segments:
        section.complain(f"segments: {quote(OVERALL)}", "That name stands for all rows. Rename the segment.")
