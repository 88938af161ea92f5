"""One identity of a configuration alone: what is asked of one costs what one costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from biasspark.config import Identities, Measures, say_unknown_identity
from biasspark.corpus.survey import Survey
from biasspark.errors import InputError

AnyMeasures = TypeVar("AnyMeasures", bound=Measures)


def keep_identity(measures: AnyMeasures, identity: str) -> AnyMeasures:
    """Return what is left of the measures where one identity is ranked, by windows, and nothing else is measured.

    Of an identity that is a value of a column, the column stays with all of its values: see `keep_value`.
    """
    return replace(
        measures,
        identities=measures.identities.only(identity),
        ranking=replace(measures.ranking, engine="windows"),
        pinned_auc=measures.pinned_auc and replace(measures.pinned_auc, trials=0),
        thresholds=None,
        histograms=None,
        label_balance=None,
        templates=None,
    )


def keep_value(survey: Survey, identities: Identities, identity: str) -> Survey:
    """Return the survey of a corpus without the values that are other identities.

    Raises
    ------
    InputError
        If the configuration names no such identity and no column has the value that would be it. Those that there are,
        are listed.
    """
    values = {
        column: {value if column == identities.array else f"{column}={value}": value for value in found}
        for column, found in survey.values.items()
    }
    known = (*identities.known_names, *(name for names in values.values() for name in names))
    if identity not in known:
        raise InputError(say_unknown_identity(identity, known))
    kept: dict[str, tuple[str, ...]] = {
        column: (names[identity],) if identity in names else () for column, names in values.items()
    }
    return replace(survey, values=kept)
