"""One identity of a configuration alone: what is asked of one costs about what one costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from biasspark.config import Identities, Measures, say_unknown_identity
from biasspark.corpus.survey import Survey
from biasspark.errors import InputError

AnyMeasures = TypeVar("AnyMeasures", bound=Measures)


def keep_identity(measures: AnyMeasures, identity: str) -> AnyMeasures:
    """Return what is left of the measures where one identity is ranked, by blocks, and nothing else is measured.

    Where it may be a value of a column, the columns of values stay, and their other values are ranked, too, at the cost
    of the rows that have them.
    """
    return replace(
        measures,
        identities=measures.identities.only(identity),
        ranking=replace(measures.ranking, engine="blocks"),
        pinned_auc=measures.pinned_auc and replace(measures.pinned_auc, trials=0),
        thresholds=None,
        histograms=None,
        label_balance=None,
        templates=None,
    )


def check_identity(survey: Survey, identities: Identities, identity: str) -> None:
    """Refuse an identity that is not there, now that the values of the corpus are known.

    Raises
    ------
    InputError
        If the configuration names no such identity and no column has the value that would be it. Those that there are,
        are listed.
    """
    values = (
        value if column == identities.array else f"{column}={value}"
        for column, found in survey.values.items()
        for value in found
    )
    known = (*identities.known_names, *values)
    if identity not in known:
        raise InputError(say_unknown_identity("[pinned_skew]", identity, known))
