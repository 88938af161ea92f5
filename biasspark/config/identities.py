"""The identities of a configuration, and that they can be told apart in the tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from biasspark.columns import OVERALL
from biasspark.config.model import MOST_CROSSED_PAIRS, UNANNOTATED, Crossed, Identities, plain_value
from biasspark.config.section import Section, find_close, find_repeated, keys_of
from biasspark.config.terms import read_terms
from biasspark.config.wording import quote

MOST_LISTED = 20


def read_identities(value: object, base: Path, faults: list[str]) -> Identities:
    """Read ``[identities]``, or a list of columns, or ``Identities`` that were built by hand."""
    if isinstance(value, list | tuple):
        value = {"columns": value}
    table = plain_value(value) if isinstance(value, Identities) else value
    so_far = len(faults)
    section = Section("[identities]", table, keys_of(Identities), faults, '[identities] columns = ["male", "female"]')
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
    if len(faults) == so_far and not (identities.known_names or identities.categorical or identities.array):
        section.complain(
            "",
            "no identity is named. At least one of columns, categorical, array, predicates, terms is required. "
            'Write, for example, columns = ["male", "female"].',
        )
    return identities


def say_unknown_identity(name: str, known: Sequence[str]) -> str:
    """Say that ``[pinned_skew]`` names an identity that is not there, and which ones are; crossed pairs are not."""
    more = f" and {len(known) - MOST_LISTED:,} more" if len(known) > MOST_LISTED else ""
    listed = f"There {'is' if len(known) == 1 else 'are'} {', '.join(known[:MOST_LISTED]) or 'none'}{more}"
    close = find_close(name, known)
    mend = f"Did you mean {close}?" if close else "Name one of them."
    return f"[pinned_skew] identity = {quote(name)}. There is no such identity. {listed}. {mend}"


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
    for column in find_repeated(identities.categorical):
        section.complain("categorical", f"{quote(column)} is listed twice. Columns must differ. Remove one.")
    if identities.crossed.pairs:
        _check_pairs(section, tuple(sources))


def _check_pairs(section: Section, names: tuple[str, ...]) -> None:
    n_pairs = len(names) * (len(names) - 1) // 2
    if n_pairs > MOST_CROSSED_PAIRS:
        section.complain(
            "crossed",
            f"pairs = true makes {n_pairs} pairs of {len(names)} identities. At most {MOST_CROSSED_PAIRS} are allowed. "
            "Name fewer identities, or set pairs = false.",
        )
        return
    for name in find_repeated([*names, *(f"{one} & {other}" for one, other in combinations(names, 2))]):
        section.complain(
            "crossed", f"pairs = true makes a second identity {quote(name)}. Identities must differ. Rename one."
        )


def _read_crossed(value: object, faults: list[str]) -> Crossed:
    section = Section("[identities.crossed]", value, keys_of(Crossed), faults)
    return Crossed(pairs=section.flag("pairs", Crossed.pairs), min_rows=section.whole("min_rows", Crossed.min_rows))
