"""The part ``[identities]`` of a configuration: sources, lists of terms, and unique names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from biasspark.columns import OVERALL, PAIR
from biasspark.config import kinds
from biasspark.config.declaration import REQUIRED, Kind, Section, Spot, broken_text_rule, setting
from biasspark.config.toml_file import URI_SCHEME, locate, read_text
from biasspark.errors import Fault, KeyPath, Line, Setting, Text, Value, Words
from biasspark.text import closest_match, list_first, quote

UNANNOTATED = ("exclude", "background")
A_VALUE = "(a value)"
AN_INTERVAL = [0.0, 1.0]
_VALUE_SOURCES = ("categorical", "array")
"""Sources whose identities are values of the data."""
_FORM_OF_LINE = 'A line is one term, or a group as "name: a, b, c".'
_NO_TERM = "It must hold at least one term."

Group = tuple[Spot, object, list[object]]
"""A group of terms before it is checked: its spot, name and terms."""


def read_term_file(spot: Spot) -> Any:
    """Read a file of terms, one per line. Skip empty lines and comments, which begin with ``#``."""
    if rule := broken_text_rule(spot.value):
        return spot.refuse(rule)
    try:
        if URI_SCHEME.match(spot.value):
            raise ValueError("a term list is read from a local file, not from a URI")
        text = read_text(Path(locate(spot.value, spot.reader.base)))
    except ValueError as error:
        rule = f"It must be a file in UTF-8 that can be read: {error}."
        where = Words("next to the configuration, then in the working folder.", "in the working folder.")
        return spot.refuse(rule, ("It is looked up ", where))
    lines = [spot.within(Line(number), line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    groups = [(line, *_split_line(line.value)) for line in lines if line.value and not line.value.startswith("#")]
    return _check_groups(groups) if groups else spot.refuse(_NO_TERM, "Write one term per line.")


def _read_term_list(spot: Spot) -> Any:
    """Read a list of lines, as those of a file, or a table of name = list of terms."""
    groups: list[Group]
    if isinstance(spot.value, Mapping):
        inner = [(name, spot.within(name, terms)) for name, terms in spot.value.items()]
        groups = [(terms, name, [*terms.entries]) for name, terms in inner]
    elif isinstance(spot.value, list | tuple):
        groups = [(spot.within(number, line), *_split_line(line)) for number, line in enumerate(spot.value, 1)]
    else:
        return spot.refuse_type("a list of terms")
    return _check_groups(groups) if groups else spot.refuse(_NO_TERM)


@dataclass(frozen=True, kw_only=True)
class Terms(Section):
    """Identities found in text as whole words, any case.

    After reading, ``list`` maps each identity to its terms, from a file or a list. One of them must be in the text.
    """

    column: str = setting(REQUIRED, kinds.string(), example="comment_text")
    """The column of the text."""
    file: Any = setting(None, Kind("text", read_term_file))
    """A file of terms, one per line, or `name: a, b, c` for a group. Give this or `list`."""
    list: dict[str, tuple[str, ...]] = setting(
        {}, Kind("list of text, or table", _read_term_list), example=["christian", "muslim"]
    )
    """The same lines, or name = list of terms."""

    def check(self, written: Spot) -> None:
        """Report a fault unless either a file or a list is given."""
        written.need_one("file", "list", list=["christian", "muslim"])

    def resolve(self) -> Self:
        """Return the terms as a list."""
        return replace(self, list=self.file or self.list, file=None)


def _split_line(line: object) -> tuple[object, list[object]]:
    """Split a line into the name of a group and its terms. A single term is both."""
    if not isinstance(line, str):
        return line, [line]
    name, colon, terms = line.partition(":")
    return (name.strip(), [term.strip() for term in terms.split(",")]) if colon else (line.strip(), [line.strip()])


def _check_groups(groups: Iterable[Group]) -> dict[str, tuple[str, ...]]:
    checked: dict[str, tuple[str, ...]] = {}
    for spot, name, terms in groups:
        for text in [name, *(term for term in terms if terms != [name])]:
            if rule := broken_text_rule(text):
                replace(spot, value=text).refuse(rule, _FORM_OF_LINE)
        if not terms:
            spot.refuse("A group has at least one term.", _FORM_OF_LINE)
        if name in checked:
            spot.refuse("An earlier entry has the same name. Names must differ.", "Rename or remove one.")
        if isinstance(name, str):
            checked[name] = tuple(term for term in terms if isinstance(term, str))
    return checked


@dataclass(frozen=True, kw_only=True)
class Crossed(Section):
    """Whether each pair of identities is an identity too."""

    pairs: bool = setting(False, kinds.flag(), example=True)
    """True for all pairs of all identities, including the values of columns."""
    min_rows: int = setting(1000, kinds.whole())
    """The fewest rows, scored and labeled or not, with which a pair is reported. All pairs are ranked."""
    max_pairs: int | None = setting(None, kinds.whole())
    """The most pairs allowed: with more the job stops before anything is ranked. 20,000 if not set."""


@dataclass(frozen=True, kw_only=True)
class Identities(Section):
    """Identities, in the order columns, categorical, array, predicates, terms; without any, only slices have AUCs."""

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
    predicates: dict[str, str] = setting({}, kinds.expressions("an identity's name"), example={"young": "age < 30"})
    """Names of identities, each with its Spark SQL predicate. A row where it is NULL is outside."""
    terms: Terms | None = setting(
        None, kinds.table(Terms), example={"column": "comment_text", "list": ["christian", "muslim"]}
    )
    """Identities found in text."""
    crossed: Crossed = setting(Crossed(), kinds.table(Crossed), example={"pairs": True})
    """Pairs of identities, `a & b`, as identities of their own."""

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a key and an identity's name, or the column whose values are identities, in order."""
        array, terms = (self.array,) if self.array else (), self.terms.list if self.terms else ()
        keys = ("columns", "categorical", "array", "predicates", "terms")
        names = (self.columns, self.categorical, array, self.predicates, terms)
        return tuple((key, name) for key, names_of_key in zip(keys, names, strict=True) for name in names_of_key)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns whose values are identities: the categorical ones, and that of arrays."""
        return (*self.categorical, self.array) if self.array else self.categorical

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names known before any row is read: columns, predicates and terms, in order."""
        return tuple(name for key, name in self.sources if key not in _VALUE_SOURCES)

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names for messages, in order, with ``column=(a value)`` for a categorical column."""
        named = (source for source in self.sources if source[0] != "array")
        return tuple(f"{name}={A_VALUE}" if key == "categorical" else name for key, name in named)

    def explain_name(self, name: str) -> tuple[Text, Text] | None:
        """Return why no identity or pair can have this name, and the fix; None if one can."""
        parts = name.split(PAIR) if self.crossed.pairs else []
        pairs = ((PAIR.join(parts[:n]), PAIR.join(parts[n:])) for n in range(1, len(parts)))
        if self.find_sources(name) or any(map(self._is_in_order, pairs)):
            return None
        fault = unknown_identity((), name, self.shown_names)
        return fault.rule, "Name one of them, or two of them in this order." if parts[1:] else fault.fix

    def _is_in_order(self, pair: tuple[str, str]) -> bool:
        """Return whether a pair of identities may exist in this order. All values of a column have the same rank."""
        first, second = map(self.find_sources, pair)
        return pair[0] != pair[1] and bool(first and second) and min(first) <= max(second)

    def find_sources(self, name: str) -> list[int]:
        """Return the indices of the sources that may give an identity of this name, except a crossed pair."""
        if name in self.known_names:
            return [n for n, (key, known) in enumerate(self.sources) if known == name and key not in _VALUE_SOURCES]
        return [
            n
            for n, (key, column) in enumerate(self.sources)
            if key == "array" or (key == "categorical" and name.startswith(f"{column}="))
        ]

    def check(self, written: Spot) -> None:
        """Report the faults of names that are not unique, and of identities without a source."""
        check_threshold(written, self.threshold, self.range)
        keys: dict[str, str] = {}
        for key, name in [source for source in self.sources if source[0] not in _VALUE_SOURCES]:
            if name == OVERALL:
                written[key].complain(f"{quote(name)} is the name of the whole slice.", "Rename the identity.")
            if keys.setdefault(name, key) != key:
                what = f"{quote(name)} is named in {keys[name]}, too. Identities must differ."
                written[key].complain(what, "Rename or remove one.")
        if fault := too_many_pairs(len(keys), self.crossed):
            written.reader.faults.append(fault)
        if written.sound() and not self.sources:
            what = "no identity is named. At least one of columns, categorical, array, predicates, terms is required."
            written.complain(what, written.write(columns=["male", "female"]))

    @classmethod
    def explain_unknown(cls, path: KeyPath, key: str) -> Text:
        """Return how to define an identity that was written as a key."""
        return ("For an identity of that name write ", Setting((*path, "predicates", key), "..."), ".")


def check_threshold(written: Spot, threshold: float | None, span: tuple[float, float] | None) -> None:
    """Report a fault if ``threshold`` lies outside ``range``."""
    if span and threshold is not None and not span[0] <= threshold <= span[1]:
        rule = ("It lies outside range = ", Value(span), ", so every row would fall on the same side.")
        written.within("threshold", threshold).refuse(rule, "Change one of the two.")


def unknown_identity(path: KeyPath, name: str, known: Sequence[str]) -> Fault:
    """Return the fault of a key that names an unknown identity. Crossed pairs do not count."""
    listed = list_first(known, 20) or "none"
    columns = [] if PAIR in name else [shown.removesuffix(A_VALUE) for shown in known if shown.endswith(A_VALUE)]
    close = closest_match(name, known) or " or ".join(f"{column}{name}" for column in columns)
    rule = f"There is no such identity. The identities are {listed}."
    return Fault(path, name, rule, f"Did you mean {close}?" if close else "Name one of them.")


def too_many_pairs(n_identities: int, crossed: Crossed) -> Fault | None:
    """Return the fault that crossed identities make more pairs than are allowed, None if they do not."""
    n_pairs = n_identities * (n_identities - 1) // 2
    most = 20_000 if crossed.max_pairs is None else crossed.max_pairs
    if not crossed.pairs or n_pairs <= most:
        return None
    rule = f"{n_identities:,} identities make {n_pairs:,} pairs. At most {most:,} are allowed, since each is ranked."
    fix = "Name fewer identities, raise max_pairs, or leave out the pairs."
    return Fault(("identities", "crossed", "pairs"), True, rule, fix)
