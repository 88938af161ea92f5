"""The Python workers of the tests' session, started as `python -m tests.python_workers` in place of `pyspark.daemon`.

They are forked with all that tasks import: a worker that is started anew, as after each task that fails, would take
most of a second for it. And Spark begins every task with `importlib.invalidate_caches()`, on which Python 3.11 reads
what is in `pyspark.zip` anew, 16 times: 0.13 s, many times what a task of a test takes. No zip file changes in a run.
"""

from __future__ import annotations

from importlib import import_module
from zipimport import zipimporter

from pyspark import daemon

IMPORTED = (
    "pyspark.sql.pandas.serializers",
    "biasspark.api.comparisons",
    "biasspark.api.metrics",
    "biasspark.api.attribution",
    "biasspark.maps.comparisons",
)


def keep_caches(_: zipimporter) -> None:
    """Take the place of what reads a zip file anew."""


if __name__ == "__main__":
    zipimporter.invalidate_caches = keep_caches  # type: ignore[method-assign]  # that is the purpose
    for name in IMPORTED:
        import_module(name)
    daemon.manager()
