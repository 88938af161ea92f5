"""What versions of Spark say differently."""

from __future__ import annotations

import pyspark

IS_3_5 = pyspark.__version__.startswith("3.5.")
