"""Which expression of the configuration fails on a row of the corpus, as Spark itself does not always say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from biasspark.config import FILTER
from biasspark.corpus.plain_words import ExpressionFault, input_faults
from biasspark.errors import InputError, find_error_condition
from biasspark.session import describe


@contextmanager
def corpus_faults(corpus: DataFrame, expressions: Mapping[str, str]) -> Iterator[None]:
    """Do as `input_faults` does, and name each expression that fails on a row.

    Parameters
    ----------
    expressions : mapping of str to str
        Where each stands in the configuration, and its text.

    Notes
    -----
    Costs nothing where nothing fails. Where something does that an expression may be to blame for, the corpus is
    scanned once for each of them, and once without any.
    """
    try:
        with input_faults("corpus"):
            yield
    except Exception as error:
        faults = list(_find_culprits(corpus, expressions)) if expressions and _may_be_an_expression(error) else []
        if not faults:
            raise
        raise InputError(*faults) from None


def _may_be_an_expression(error: Exception) -> bool:
    """Say whether this is what a value did to an expression, or something of Spark's that nobody knows."""
    return isinstance(error, ExpressionFault | PySparkException) or type(error).__name__ == "Py4JJavaError"


def _find_culprits(corpus: DataFrame, expressions: Mapping[str, str]) -> Iterator[str]:
    """Give a fault for each expression that fails by itself; where the rows fail without any, for their filter."""
    others = dict(expressions)
    chosen = others.pop(FILTER, None)
    with describe(corpus.sparkSession, "find the expression that fails"):
        try:
            with input_faults(f'{FILTER} = "{chosen}"'):
                corpus.agg(F.max(F.lit(True))).collect()
        except ExpressionFault as error:
            yield from error.faults if chosen else ()
            return
        except Exception:  # noqa: BLE001 - it is no expression that fails
            return
        for where, text in others.items():
            yield from _try_alone(corpus, f'{where} = "{text}"', text)


def _try_alone(corpus: DataFrame, where: str, text: str) -> tuple[str, ...]:
    """Compute an expression on every row, and say what is wrong with it; nothing where all is well."""
    try:
        with input_faults(where):
            corpus.agg(F.max(F.expr(text))).collect()
    except ExpressionFault as error:
        return error.faults
    except Exception as error:  # noqa: BLE001 - whatever it is, Spark could read the rows
        condition = find_error_condition(error)
        return (f"{where}: it cannot be computed on some row{f' ({condition})' if condition else ''}. Correct it.",)
    return ()
