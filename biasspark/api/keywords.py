"""What the public functions take: every keyword once, with its type and its default, and what they become."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, Literal, Required, TypeAlias, TypedDict, TypeVar, cast, get_args, get_type_hints

import pandas as pd

from biasspark.api.keyword_faults import MAIN_KEYS, find_keywords, name_keywords
from biasspark.config import Identities, Intervals, Measures, RankingSettings, list_first, parse_measures, show_value
from biasspark.config.section import find_broken_text_rule, guess
from biasspark.errors import ConfigError, InputError

Models: TypeAlias = str | Sequence[str] | Mapping[str, str]
Engine: TypeAlias = Literal["blocks", "windows", "binned"]
Unannotated: TypeAlias = Literal["exclude", "background"]
Function = TypeVar("Function", bound=Callable[..., Any])


class LabelKeywords(TypedDict, total=False):
    """What every function takes."""

    label: Required[str]
    label_threshold: float | None
    label_positive: Sequence[Any] | None
    slices: Mapping[str, str] | None
    ranges: int
    level: float


class ModelKeywords(LabelKeywords, total=False):
    """What ranks scores."""

    models: Required[Models]


class IdentityKeywords(LabelKeywords, total=False):
    """What looks at identities."""

    identities: Required[str | Sequence[str] | Mapping[str, Any] | Identities]
    identity_threshold: float
    unannotated: Unannotated
    engine: Engine
    rank_bins: int | None


class GroupKeywords(IdentityKeywords, total=False):
    """What counts groups of rows, of which small ones may be withheld."""

    privacy: Mapping[str, Any] | int | bool | None


class ComparedKeywords(ModelKeywords, IdentityKeywords, total=False):
    """What compares models."""


class SuiteKeywords(ModelKeywords, GroupKeywords, total=False):
    """What `bias_metrics` takes."""

    evidence: Mapping[str, Any] | int | None


class MeasureKeywords(SuiteKeywords, total=False):
    """What `measure` takes: what `bias_metrics` takes, and the tables besides the suite's."""

    thresholds: Mapping[str, Any] | Sequence[float] | None
    histograms: Mapping[str, Any] | int | bool | None
    label_balance: Mapping[str, Any] | str | bool | None
    templates: Mapping[str, Any] | str | None
    pinned_auc: Mapping[str, Any] | int | bool | None


DEFAULTS: dict[str, Any] = {
    "models": Parameter.empty,
    "label": Parameter.empty,
    "label_threshold": None,
    "label_positive": None,
    "identities": Parameter.empty,
    "identity_threshold": 0.5,
    "unannotated": "exclude",
    "slices": None,
    "engine": RankingSettings.engine,
    "ranges": RankingSettings.ranges,
    "rank_bins": None,
    "level": Intervals.level,
    "evidence": None,
    "privacy": None,
    "thresholds": None,
    "histograms": None,
    "label_balance": None,
    "templates": None,
    "pinned_auc": None,
}
"""In the order in which signatures have them; those without a default are required."""

OTHER_WORDS = {
    **dict.fromkeys(("y_true", "target"), "label"),
    **dict.fromkeys(("y_score", "y_pred", "scores", "score"), "models"),
    **dict.fromkeys(("sensitive_features", "subgroups", "groups"), "identities"),
    "compare": "baseline",
}
"""What other tools, and the configuration, call a keyword."""


def with_keywords(function: Function) -> Function:
    """Give a public function the signature with every keyword, and errors that speak of keywords.

    Its last parameter is ``**measures``, typed by one of the dicts above.
    """
    signature = _spell_out(function)

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        _check_keywords(function.__name__, signature, given)
        if args or "df" in given:
            check_frame(function.__name__, args[0] if args else given["df"])
        _check_id(signature, given)
        with _say_keywords(signature, given):
            return function(*args, **given)

    called.__signature__ = signature  # type: ignore[attr-defined]  # inspect looks for it
    return cast("Function", called)


def parse_keywords(given: Mapping[str, Any], parts: Mapping[str, Any] | None = None, scored: bool = True) -> Measures:
    """Check what a function is given, by the rules of the configuration.

    Parameters
    ----------
    given
        Keywords that functions share.
    parts
        Further tables of the configuration.
    scored
        Whether there are models.
    """
    models = given.get("models")
    table = {
        "label": {
            "column": given.get("label"),
            "threshold": given.get("label_threshold"),
            "positive": given.get("label_positive"),
        },
        "models": [models] if isinstance(models, str) else models,
        "identities": _gather_identities(given),
        "slices": given.get("slices"),
        "ranking": {"engine": given.get("engine"), "ranges": given.get("ranges"), "bins": given.get("rank_bins")},
        "intervals": {"level": given.get("level")},
    }
    further = {name: _make_table(given.get(name), key) for name, key in MAIN_KEYS.items()}
    return parse_measures(table | further | dict(parts or {}), scored=scored)


def _make_table(value: Any, main_key: str) -> Any:
    """Make a table of what stands for one: True for its defaults, anything else for its main key."""
    if value is None or value is False:
        return None
    if isinstance(value, Mapping):
        return value
    return {} if value is True else {main_key: value}


def _gather_identities(given: Mapping[str, Any]) -> Any:
    """Bring a list of columns together with the keywords that go with it; a whole table stays as it is."""
    identities, beside = given.get("identities"), ("identity_threshold", "unannotated")
    if not isinstance(identities, Mapping | Identities):
        columns = [identities] if isinstance(identities, str) else identities
        threshold, unannotated = (given.get(name) for name in beside)
        return None if columns is None else {"columns": columns, "threshold": threshold, "unannotated": unannotated}
    if asked := [f"{name} = {given[name]!r}" for name in beside if given.get(name) not in (None, DEFAULTS[name])]:
        raise ConfigError(
            f"{', '.join(asked)}: identities is a dict here, which has its own threshold and unannotated. "
            "Set them there."
        )
    return identities


def _spell_out(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function with the keywords of ``**measures`` written out."""
    hints = get_type_hints(function)
    *own, measures = inspect.signature(function).parameters.values()
    (keywords,) = get_args(hints[measures.name])
    types = get_type_hints(keywords)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
        for name, default in DEFAULTS.items()
        if name in types
    ]
    return Signature(parameters, return_annotation=hints["return"])


def check_frame(name: str, df: Any) -> None:
    """Raise TypeError for what is no DataFrame of Spark, classic or Connect."""
    if hasattr(df, "sparkSession"):
        return
    mend = "what spark.read or spark.createDataFrame returns"
    if isinstance(df, pd.DataFrame):
        mend = "spark.createDataFrame(df)"
    elif hasattr(df, "to_spark"):
        mend = "df.to_spark()"
    raise TypeError(f"{name}() takes a DataFrame of Spark. Give {mend}.")


def _check_keywords(name: str, signature: Signature, given: Mapping[str, Any]) -> None:
    """Raise TypeError for keywords that there are not, else for those that are missing."""
    known = signature.parameters
    if unknown := [word for word in given if word not in known]:
        wrong = "\n".join(f"{name}() has no keyword {word!r}. {_mend_keyword(word, known)}" for word in unknown)
        raise TypeError(f"{wrong}\nIts keywords are {', '.join(list(known)[1:])}.")
    missing = [
        own.name
        for own in known.values()
        if own.kind is Parameter.KEYWORD_ONLY and own.default is Parameter.empty and own.name not in given
    ]
    if missing:
        raise TypeError(
            f"{name}() lacks {', '.join(missing)}. Give {'each' if len(missing) > 1 else 'it'} as a keyword."
        )


def _check_id(signature: Signature, given: Mapping[str, Any]) -> None:
    """Raise ConfigError for an id that is no name of a column; where it has a default, None may stand for it."""
    own = signature.parameters.get("id")
    if own is None or "id" not in given or (given["id"] is None and own.default is None):
        return
    if rule := find_broken_text_rule(given["id"]):
        raise ConfigError(f"id = {show_value(given['id'])}. {rule} Name the column that identifies a row.")


def _mend_keyword(word: str, known: Collection[str]) -> str:
    """Say which keyword is meant, or which functions have it."""
    meant = OTHER_WORDS.get(word, word)
    if meant in known:
        return f"Did you mean {meant}?"
    if named := find_keywords(word, known):
        return f"Did you mean {' or '.join(named)}?"
    public = import_module("biasspark")  # which imports this module
    having = [
        f"{name}()"
        for name in public.__all__
        if meant in getattr(getattr(public, name), "__signature__", Signature()).parameters
    ]
    if not having:
        return guess(word, tuple(known))
    return f"{list_first(having, 3)} {'has' if len(having) == 1 else 'have'} {'it' if meant == word else meant}."


@contextmanager
def _say_keywords(signature: Signature, given: Mapping[str, Any]) -> Iterator[None]:
    """Have the faults that a block raises name keywords in place of the configuration's tables."""
    try:
        yield
    except (ConfigError, InputError) as error:
        raise type(error)(*(name_keywords(fault, signature.parameters, given) for fault in error.faults)) from None
