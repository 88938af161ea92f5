"""The files of a corpus: their format by the first line, and those that Spark skips."""

from __future__ import annotations

import pytest

from biasspark.corpus.input_files import guess_format, list_skipped_files


@pytest.mark.parametrize(
    ("line", "guess"),
    [
        ("PAR1\x15\x04", ("parquet", "")),
        ("ORC\x08", ("orc", "")),
        ("Obj\x01\x04\x14avro.codec", ("avro", "")),
        ('{"id": 1, "text": "a;b;c"}', ("json", "")),
        ("[", ("json", "")),
        ('[{"id": 1}]', ("json", "")),
        ("id,target,score", ("csv", "")),
        ('\ufeff"id";"target";"score"', ("csv", ";")),
        ("id\ttarget\tscore", ("csv", "\\t")),
        ("id|target|a, b", ("csv", "|")),
        ("1,0.5,true", None),
        ("a,,b", None),
        ("a,a", None),
        ("one column", None),
        ("", None),
        ("\x00\x01,\x02", None),
        (f"{'x' * 100},y", None),
    ],
)
def test_the_first_line_shows_the_format(line: str, guess: tuple[str, str] | None) -> None:
    assert guess_format(line) == guess


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
    assert list_skipped_files(names, read, ["id", "day", "hour"]) == skipped
