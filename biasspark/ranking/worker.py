"""What a Python worker of Spark keeps from one task to the next. It imports no Spark."""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_files() -> None:
    """Let the next task of this worker begin without reading anew what is in the zip files that modules come from.

    A task begins with ``importlib.invalidate_caches()``, on which Python 3.11 reads the contents of every zip file once
    for each of its packages that was imported from. Of Spark's own ``pyspark.zip`` alone that takes 0.1 s, which is
    most of what a short task takes. An import that needs a zip file again opens it again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
