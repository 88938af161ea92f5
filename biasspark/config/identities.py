"""The identities of a configuration, and that they can be told apart in the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from biasspark.columns import OVERALL, PAIR
from biasspark.config.faults import Faults
from biasspark.config.section import Section, find_close, find_repeated, keys_of
from biasspark.config.terms import Terms, read_terms
from biasspark.config.wording import list_first, quote

UNANNOTATED = ("exclude", "background")
MOST_CROSSED_PAIRS = 20_000
MOST_LISTED = 20


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """Whether each pair of identities is an identity too.

    Attributes
    ----------
    pairs
        True for all pairs of all identities, including the values of columns.
    min_rows
        The fewest rows with which a pair is reported. All pairs are ranked, whatever their rows.
    max_pairs
        The most pairs allowed: with more the job stops before anything is ranked. 20,000 if not set.
    """

    pairs: bool = False
    min_rows: int = 1000
    max_pairs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Identities:
    """The identities, from five kinds of sources. Tables and pairs keep the order in which they are given.

    Attributes
    ----------
    columns, threshold, range
        Boolean columns, or numeric ones: a value at or above ``threshold`` puts the row into the identity, and one
        outside the closed interval ``range`` is unknown.
    unannotated
        What a missing annotation means: ``exclude`` (unknown: in neither subgroup nor background) or ``background``.
    categorical
        Columns in which each value is an identity, ``column=value``.
    array
        A column of arrays of text, in which each value is an identity.
    predicates
        Names of identities, each with its Spark SQL predicate.
    terms
        Identities found in text, or None.
    crossed
        Pairs of identities, ``a & b``, as identities of their own.
    """

    columns: tuple[str, ...] = ()
    threshold: float = 0.5
    range: tuple[float, float] | None = None
    unannotated: str = UNANNOTATED[0]
    categorical: tuple[str, ...] = ()
    array: str | None = None
    predicates: dict[str, str] = field(default_factory=dict)
    terms: Terms | None = None
    crossed: Crossed = Crossed()

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names that are known before any row is read: of columns, predicates and terms, in order."""
        return tuple(name for _, name in self.named_sources)

    @property
    def named_sources(self) -> tuple[tuple[str, str], ...]:
        """The names of ``known_names``, each with the key of the configuration that gives it."""
        names_by_source = {
            "columns": self.columns,
            "predicates": tuple(self.predicates),
            "terms": tuple(name for name, _ in self.terms.terms) if self.terms else (),
        }
        return tuple((source, name) for source, names in names_by_source.items() for name in names)

    @property
    def may_name_any(self) -> bool:
        """Whether there is any source."""
        return bool(self.known_names or self.categorical or self.array)

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names as messages list them: those that are known, and ``column=(a value)``."""
        return (*self.known_names, *(f"{column}=(a value)" for column in self.categorical))

    def can_give(self, name: str) -> bool:
        """Say whether there may be an identity of that name; crossed pairs are none."""
        return self.only(name).may_name_any

    def list_sides(self, name: str) -> list[tuple[str, str]]:
        """Return which two identities a name may join, in either order; none where pairs are not crossed."""
        parts = name.split(PAIR) if self.crossed.pairs else []
        cuts = ((PAIR.join(parts[:n]), PAIR.join(parts[n:])) for n in range(1, len(parts)))
        return [sides for sides in cuts if all(map(self.can_give, sides))]

    def may_precede(self, one: str, other: str) -> bool:
        """Say whether an identity may stand before another one, so that their pair is named in this order."""
        return one != other and min(self._places(one)) <= max(self._places(other))

    def _places(self, name: str) -> list[int]:
        """Return at which places an identity may be given, of all that give one; the values of a column share one."""
        own, terms = self.only(name), self.terms.terms if self.terms else ()
        given = [column == name for column in self.columns]
        given += [column in own.categorical for column in self.categorical]
        given += [own.array is not None]
        given += [known == name for known in (*self.predicates, *(term for term, _ in terms))]
        return [place for place, is_given in enumerate(given) if is_given]

    def only(self, name: str) -> Identities:
        """Return what can give the identity of that name: its entry, or else the columns that may hold it as a value.

        Of a name that nothing can give, no source is left. Crossed pairs are left out.
        """
        known = name in self.known_names
        own_terms = tuple(entry for entry in self.terms.terms if entry[0] == name) if self.terms else ()
        return replace(
            self,
            columns=tuple(column for column in self.columns if column == name),
            categorical=() if known else tuple(column for column in self.categorical if name.startswith(f"{column}=")),
            array=None if known else self.array,
            predicates={own: predicate for own, predicate in self.predicates.items() if own == name},
            terms=replace(self.terms, terms=own_terms) if self.terms and own_terms else None,
            crossed=Crossed(),
        )


def read_identities(value: object, base: Path, faults: Faults) -> Identities:
    """Read ``[identities]``, or a list of columns."""
    if isinstance(value, list | tuple):
        value = {"columns": value}
    so_far = len(faults)
    section = Section("[identities]", value, keys_of(Identities), faults, '[identities] columns = ["male", "female"]')
    identities = Identities(
        columns=section.names("columns"),
        threshold=section.number("threshold", Identities.threshold),
        range=section.span("range"),
        unannotated=section.choice("unannotated", UNANNOTATED),
        categorical=section.names("categorical"),
        array=section.optional_text("array"),
        predicates=Section("[identities.predicates]", section.table.get("predicates"), (), faults).texts_by_name(
            "an identity's name", "the predicate", multiline=True
        ),
        terms=read_terms(section.table.get("terms"), base, faults),
        crossed=_read_crossed(section.table.get("crossed"), faults),
    )
    section.check_inside(identities.threshold, identities.range)
    _check_names(section, identities)
    if len(faults) == so_far and not identities.may_name_any:
        section.complain(
            "",
            "no identity is named. At least one of columns, categorical, array, predicates, terms is required. "
            'Write, for example, columns = ["male", "female"].',
        )
    return identities


def say_unknown_identity(where: str, name: str, known: Sequence[str]) -> str:
    """Say that a table, ``[pinned_skew]``, names an identity that is not there, and which are; crossed pairs are not.

    ``where`` is how messages name the table.
    """
    listed = f"There {'is' if len(known) == 1 else 'are'} {list_first(known, MOST_LISTED) or 'none'}"
    close = find_close(name, known)
    mend = f"Did you mean {close}?" if close else "Name one of them."
    return f"{where} identity = {quote(name)}. There is no such identity. {listed}. {mend}"


def _check_names(section: Section, identities: Identities) -> None:
    """Refuse identities that could not be told apart in the tables."""
    sources: dict[str, list[str]] = {}
    for source, name in identities.named_sources:
        sources.setdefault(name, []).append(source)
    for name, named_by in sources.items():
        if name == OVERALL:
            section.complain(
                named_by[0], f"an identity is named {quote(name)}. That name stands for the whole slice. Rename it."
            )
        if len(named_by) > 1:
            both = " and ".join(dict.fromkeys(named_by))
            section.complain(
                both,
                f"{quote(name)} is named {len(named_by)} times. Identities must differ. Remove or rename all but one.",
            )
    section.refuse_repeated("categorical", identities.categorical, "Columns must differ. Remove one.")
    if identities.crossed.pairs:
        _check_pairs(section, tuple(sources), identities.crossed)


def find_too_many_pairs(n_identities: int, crossed: Crossed) -> str:
    """Say that so many identities make more pairs than are allowed; nothing where they do not."""
    n_pairs = n_identities * (n_identities - 1) // 2
    most = MOST_CROSSED_PAIRS if crossed.max_pairs is None else crossed.max_pairs
    if not crossed.pairs or n_pairs <= most:
        return ""
    return (
        f"[identities] crossed: pairs = true makes {n_pairs:,} pairs of {n_identities:,} identities. At most "
        f"{most:,} are allowed, since each is ranked. Name fewer identities, set max_pairs, or set pairs = false."
    )


def _check_pairs(section: Section, names: tuple[str, ...], crossed: Crossed) -> None:
    if fault := find_too_many_pairs(len(names), crossed):
        section.note(fault)
        return
    for name in find_repeated([*names, *(f"{one}{PAIR}{other}" for one, other in combinations(names, 2))]):
        section.complain(
            "crossed", f"pairs = true makes a second identity {quote(name)}. Identities must differ. Rename one."
        )


def _read_crossed(value: object, faults: Faults) -> Crossed:
    section = Section("[identities.crossed]", value, keys_of(Crossed), faults)
    return Crossed(
        pairs=section.flag("pairs", Crossed.pairs),
        min_rows=section.whole("min_rows", Crossed.min_rows),
        max_pairs=section.optional_whole("max_pairs"),
    )
