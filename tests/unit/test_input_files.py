"""The files of a corpus that Spark skips."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from biasspark.config import Corpus
from biasspark.corpus.input_files import refuse_skipped
from biasspark.errors import InputError


@pytest.mark.parametrize(
    ("names", "read", "skipped"),
    [
        (["/c/a", "/c/b"], ["/c/a", "/c/b"], []),
        (["/c/a", "/c/sub/b"], ["/c/a"], ["/c/sub/b"]),
        (["/c/day=1/a", "/c/day=2/a"], ["/c/day=1/a", "/c/day=2/a"], []),
        (["/c/a", "/c/day=1/a"], ["/c/a", "/c/day=1/a"], ["/c/a"]),
        (["/c/day=1/a", "/c/day=1/hour=2/a"], ["/c/day=1/a", "/c/day=1/hour=2/a"], ["/c/day=1/a"]),
        (["/c/x=1/a", "/c/plain/a"], ["/c/x=1/a", "/c/plain/a"], []),  # a pattern of both: x is no column
        (["/c/x=1/day=%C3%A9%3D1/a", "/c/x=2/day=1/a"], ["/c/x=1/day=%C3%A9%3D1/a", "/c/x=2/day=1/a"], []),
        ([], [], []),
    ],
)
def test_files_that_spark_skips(names: list[str], read: list[str], skipped: list[str]) -> None:
    corpus = Corpus(name="c", path="/c")
    with pytest.raises(InputError, match=rf": {', '.join(skipped)}\.$") if skipped else nullcontext():
        refuse_skipped(names, read, ["id", "day", "hour"], corpus)
