"""The SQL of a configuration, as columns of whichever engine computes it."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from biasspark.errors import ABSENT, Fault, InputError
from biasspark.expressions.embedded_sql import Kind, NotOnTheEmbeddedEngine, to_embedded_sql
from biasspark.session.engine_choice import is_embedded

_KINDS: tuple[tuple[tuple[type[T.DataType], ...], Kind], ...] = (
    ((T.DoubleType,), "double"),
    ((T.FloatType,), "float"),
    ((T.DecimalType,), "decimal"),
    ((T.IntegralType,), "integer"),
    ((T.StringType,), "text"),
    ((T.BooleanType,), "boolean"),
    ((T.DateType, T.TimestampType, T.TimestampNTZType), "date"),
)


def expression(corpus: DataFrame, text: str) -> Column:
    """Return an expression of a configuration as a column of a corpus.

    Raises `InputError` if the embedded engine would compute it in another way than Spark.
    """
    if not is_embedded(corpus.sparkSession):
        return F.expr(text)
    kinds: dict[str, Kind] = {
        field.name: next((kind for types, kind in _KINDS if isinstance(field.dataType, types)), "other")
        for field in corpus.schema
    }
    try:
        return F.expr(to_embedded_sql(text, kinds))
    except NotOnTheEmbeddedEngine as error:
        rule = f"The embedded engine {error}."
        raise InputError(Fault((), ABSENT, rule, "Write it in another way, or run it on Spark.")) from None
