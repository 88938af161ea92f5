"""Check that an expression depends on its own row alone, and is deterministic.

Spark refuses other predicates in its analysis. The embedded engine does not, and would measure something else.
"""

from __future__ import annotations

import re

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from biasspark.session import expression

_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_LEFT_TO_CHANCE = re.compile(
    r"\b(rand|random|randn|randstr|uniform|uuid|uuidv7|shuffle|monotonically_increasing_id|spark_partition_id"
    r"|input_file_name|input_file_block_start|input_file_block_length)\s*\(",
    re.IGNORECASE,
)
_WINDOW_OR_GENERATOR = re.compile(
    r"\bover\b|\b((pos)?explode(_outer)?|inline(_outer)?|stack|json_tuple)\s*\(", re.IGNORECASE
)
_N_ROWS = 2


def has_lambda(text: str) -> bool:
    """Return whether an expression applies a function to the elements of an array, as in ``exists(a, v -> v = 1)``."""
    return "->" in _QUOTED.sub(" ", text)


def misfit_condition(corpus: DataFrame, text: str) -> str | None:
    """Return Spark's error condition for an expression that is random or reads other rows; None if it fits.

    Raises `AnalysisException` if the engine has no plan for the expression, such as for text used as a boolean.

    Notes
    -----
    Random functions, windows and generators are found by name. Aggregates are found by evaluating the expression on two
    rows of NULLs, for which they return one row; the corpus is not read.
    """
    bare = _QUOTED.sub(" ", text)
    if _LEFT_TO_CHANCE.search(bare):
        return "NOT_DETERMINISTIC"
    if _WINDOW_OR_GENERATOR.search(bare):
        return "INVALID_WHERE_CONDITION"
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in corpus.schema]
    frame = corpus.sparkSession.range(_N_ROWS).select(*nulls)
    try:
        try:
            rows = frame.select(F.expr(text)).collect()
        except AnalysisException:  # the form that is actually computed may have a plan
            rows = frame.select(expression(frame, text)).collect()
    except AnalysisException:
        raise
    except PySparkException:
        return None  # an expression that fails on a row is named when the corpus is read
    return None if len(rows) == _N_ROWS else "INVALID_WHERE_CONDITION"
