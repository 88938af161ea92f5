"""The identities of a configuration, and that the tables can tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from biasspark.columns import OVERALL, PAIR
from biasspark.config import kinds
from biasspark.config.declaration import Section, Spot, repeated, setting
from biasspark.config.term_lists import Terms
from biasspark.errors import Fault, KeyPath, Setting, Text, Value
from biasspark.text import closest_match, list_first, quote

UNANNOTATED = ("exclude", "background")
MOST_CROSSED_PAIRS = 20_000
MOST_LISTED = 20
A_VALUE = "(a value)"
AN_INTERVAL = [0.0, 1.0]


@dataclass(frozen=True, kw_only=True)
class Crossed(Section):
    """Whether each pair of identities is an identity too."""

    pairs: bool = setting(False, kinds.flag(), example=True)
    """True for all pairs of all identities, including the values of columns."""
    min_rows: int = setting(1000, kinds.whole())
    """The fewest rows with which a pair is reported. All pairs are ranked, whatever their rows."""
    max_pairs: int | None = setting(None, kinds.whole())
    """The most pairs allowed: with more the job stops before anything is ranked. 20,000 if not set."""


@dataclass(frozen=True, kw_only=True)
class Identities(Section):
    """The identities, from five kinds of sources, in the order given. Without the table only whole slices have AUCs."""

    columns: tuple[str, ...] = setting((), kinds.list_of(), example=["male", "female"])
    """Boolean columns, or numeric ones: a value at or above `threshold` puts the row into the identity, and one outside
    the closed interval `range` is unknown."""
    threshold: float = setting(0.5, kinds.number())
    """See `columns`."""
    range: tuple[float, float] | None = setting(None, kinds.span(), example=AN_INTERVAL)
    """See `columns`."""
    unannotated: str = setting(UNANNOTATED[0], kinds.choice(*UNANNOTATED))
    """What a missing annotation means: `exclude` (unknown: in neither subgroup nor background) or `background`."""
    categorical: tuple[str, ...] = setting((), kinds.list_of())
    """Columns in which each value is an identity, `column=value`."""
    array: str | None = setting(None, kinds.string())
    """A column of arrays of text, in which each value is an identity."""
    predicates: dict[str, str] = setting(
        {},
        kinds.expressions("an identity's name"),
        example={"young": "age < 30"},
    )
    """Names of identities, each with its Spark SQL predicate."""
    terms: Terms | None = setting(
        None, kinds.table(Terms), example={"column": "comment_text", "list": ["christian", "muslim"]}
    )
    """Identities found in text."""
    crossed: Crossed = setting(Crossed(), kinds.table(Crossed), example={"pairs": True})
    """Pairs of identities, `a & b`, as identities of their own."""

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names that are known before any row is read: of columns, predicates and terms, in order."""
        return tuple(name for _, name in self.named_sources)

    @property
    def named_sources(self) -> tuple[tuple[str, str], ...]:
        """The names of ``known_names``, each with the key of the configuration that gives it."""
        names_by_source: dict[str, Sequence[str]] = {
            "columns": self.columns,
            "predicates": tuple(self.predicates),
            "terms": tuple(self.terms.list) if self.terms else (),
        }
        return tuple((source, name) for source, names in names_by_source.items() for name in names)

    @property
    def has_sources(self) -> bool:
        """Whether there is any source."""
        return bool(self.known_names or self.categorical or self.array)

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names as messages list them: those that are known, and ``column=(a value)``."""
        return (*self.known_names, *(f"{column}={A_VALUE}" for column in self.categorical))

    def can_give(self, name: str) -> bool:
        """Return whether there may be an identity of that name, crossed pairs aside."""
        return self.select(name).has_sources

    def split_pair(self, name: str) -> list[tuple[str, str]]:
        """Return which two identities a name may join, in either order; none where pairs are not crossed."""
        parts = name.split(PAIR) if self.crossed.pairs else []
        cuts = ((PAIR.join(parts[:n]), PAIR.join(parts[n:])) for n in range(1, len(parts)))
        return [sides for sides in cuts if all(map(self.can_give, sides))]

    def may_precede(self, first: str, second: str) -> bool:
        """Return whether an identity may come before another one, so that their pair is named in this order."""
        return first != second and min(self._ranks(first)) <= max(self._ranks(second))

    def _ranks(self, name: str) -> list[int]:
        """Return at which ranks of the order an identity may be; the values of a column share one."""
        selected = self.select(name)
        gives = [column == name for column in self.columns]
        gives += [column in selected.categorical for column in self.categorical]
        gives += [selected.array is not None]
        gives += [known == name for known in (*self.predicates, *(self.terms.list if self.terms else ()))]
        return [rank for rank, may_give in enumerate(gives) if may_give]

    def select(self, name: str) -> Identities:
        """Return the sources of the identity of that name: its entry, else the columns that may hold it as a value.

        There are no sources of a name that nothing can give. Crossed pairs are left out.
        """
        known = name in self.known_names
        terms = {term: texts for term, texts in self.terms.list.items() if term == name} if self.terms else {}
        return replace(
            self,
            columns=tuple(column for column in self.columns if column == name),
            categorical=() if known else tuple(column for column in self.categorical if name.startswith(f"{column}=")),
            array=None if known else self.array,
            predicates={known: predicate for known, predicate in self.predicates.items() if known == name},
            terms=replace(self.terms, list=terms) if self.terms and terms else None,
            crossed=Crossed(),
        )

    def check(self, written: Spot) -> None:
        """Note the faults of identities that the tables could not tell apart, and of none."""
        check_threshold(written, self.threshold, self.range)
        keys: dict[str, str] = {}
        for key, name in self.named_sources:
            if name == OVERALL:
                what = f"{quote(name)} is the name of the whole slice."
                written[key].complain(what, "Rename the identity.")
            if keys.setdefault(name, key) != key:
                what = f"{quote(name)} is named in {keys[name]}, too. Identities must differ."
                written[key].complain(what, "Rename or remove one.")
        if self.crossed.pairs:
            _check_pairs(written, tuple(keys), self.crossed)
        if written.sound() and not self.has_sources:
            what = "no identity is named. At least one of columns, categorical, array, predicates, terms is required."
            written.complain(what, written.write(columns=["male", "female"]))

    @classmethod
    def explain_unknown(cls, path: KeyPath, key: str) -> Text:
        """Return how an identity is named that was taken for a key."""
        return ("For an identity of that name write ", Setting((*path, "predicates", key), "..."), ".")


def check_threshold(written: Spot, threshold: float | None, span: tuple[float, float] | None) -> None:
    """Note the fault that the key ``threshold`` lies outside the key ``range``."""
    if span and threshold is not None and not span[0] <= threshold <= span[1]:
        rule = ("It lies outside range = ", Value(span), ", so every row would fall on the same side.")
        written.note(Fault((*written.path, "threshold"), threshold, rule, "Change one of the two."))


def unknown_identity(path: KeyPath, name: str, known: Sequence[str]) -> Fault:
    """Return the fault that a key names an identity that there is not, crossed pairs being none; lists those known."""
    listed = list_first(known, MOST_LISTED) or "none"
    columns = [] if PAIR in name else [shown.removesuffix(A_VALUE) for shown in known if shown.endswith(A_VALUE)]
    close = closest_match(name, known) or " or ".join(f"{column}{name}" for column in columns)
    rule = f"There is no such identity. The identities are {listed}."
    return Fault(path, name, rule, f"Did you mean {close}?" if close else "Name one of them.")


def too_many_pairs(n_identities: int, crossed: Crossed) -> Fault | None:
    """Return the fault that so many identities make more pairs than are allowed; None where they do not."""
    n_pairs = n_identities * (n_identities - 1) // 2
    most = MOST_CROSSED_PAIRS if crossed.max_pairs is None else crossed.max_pairs
    if not crossed.pairs or n_pairs <= most:
        return None
    rule = f"{n_identities:,} identities make {n_pairs:,} pairs. At most {most:,} are allowed, since each is ranked."
    fix = "Name fewer identities, raise max_pairs, or leave out the pairs."
    return Fault(("identities", "crossed", "pairs"), True, rule, fix)


def _check_pairs(written: Spot, names: tuple[str, ...], crossed: Crossed) -> None:
    if fault := too_many_pairs(len(names), crossed):
        written.note(fault)
        return
    for name in repeated([*names, *(f"{first}{PAIR}{second}" for first, second in combinations(names, 2))]):
        rule = f"A pair would be the second identity named {quote(name)}. Identities must differ."
        written.note(Fault((*written.path, "crossed", "pairs"), True, rule, "Rename one."))
