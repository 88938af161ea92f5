"""What versions of Spark say differently."""

from __future__ import annotations

import pyspark

IS_3_5 = pyspark.__version__.startswith("3.5.")
KNOWS_TIMES_OF_DAY = not pyspark.__version__.startswith(("3.5.", "4.0."))


def say_part(of: str) -> str:
    """Say, after a fault, which part of an expression fails, as Spark 4 knows."""
    return "" if IS_3_5 else f" Part: {of}."
