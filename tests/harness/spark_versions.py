"""What versions of Spark say differently."""

from __future__ import annotations

import inspect

import pyspark
from pyspark.sql.pandas.types import to_arrow_schema

IS_3_5 = pyspark.__version__.startswith("3.5.")
KNOWS_TIMES_OF_DAY = not pyspark.__version__.startswith(("3.5.", "4.0."))

OF_ARROW = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
"""What the schema of Arrow needs to be told of times, from Spark 4.3 on."""


def say_part(of: str) -> str:
    """Say, after a fault, which part of an expression fails, as Spark 4 knows."""
    return "" if IS_3_5 else f" Part: {of}."
