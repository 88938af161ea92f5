"""CSV files on the embedded engine: read by pyarrow as Spark reads them, as text and NULL.

Lines whose fields do not match the header line, at which the engine's own reader fails, are marked (`MALFORMED`), as on
Spark. Lines that the two parsers split differently are refused.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from biasspark.columns import MALFORMED
from biasspark.config import Corpus
from biasspark.errors import ABSENT, Fault, InputError
from biasspark.session.engines import available_memory
from biasspark.session.spark_errors import condition_fault

_BLOCK = 1 << 26
_ON_SPARK = "Rewrite the file, or run it on Spark."


def read_header(file: Path, corpus: Corpus) -> list[str]:
    """Return the names of the columns in the header line of a file."""
    with _opened(file, corpus) as content, TextIOWrapper(content, "utf-8-sig", "replace", newline="") as text:
        lines = (line for line in text if line.strip("\r\n"))
        return _parse_record(lines, corpus.separator)


@contextmanager
def _opened(file: Path, corpus: Corpus) -> Iterator[pa.NativeFile]:
    """Open a file, decompressed by the end of its name. Raises `InputError` if that fails."""
    try:
        with pa.input_stream(file) as content:
            yield content
    except OSError:
        raise InputError(condition_fault(corpus.location, "FAILED_READ_FILE", f"File: {file}.")) from None


def _parse_record(lines: Iterable[str], separator: str) -> list[str]:
    """Return the fields of the first record, of any length."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(csv.reader(lines, delimiter=separator), [])
    finally:
        csv.field_size_limit(limit)


def csv_schema(names: Sequence[str]) -> pa.Schema:
    """Return the schema of the rows of a CSV."""
    return pa.schema([*((name, pa.string()) for name in names), (MALFORMED, pa.bool_())])


def read_csv(file: Path, corpus: Corpus, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as `csv_schema`; malformed lines hold only the id and the day.

    Raises `InputError` if the file cannot be read as Spark reads it, or does not fit the free memory.
    """
    schema = csv_schema(names)
    with _opened(file, corpus) as decompressed:
        content = _normalize_line_ends(file, _read_whole(file, decompressed), corpus.separator)
    malformed: list[str] = []

    def keep(row: arrow_csv.InvalidRow) -> str:
        malformed.append(row.text or "")
        return "skip"

    try:
        reader = arrow_csv.open_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            arrow_csv.ParseOptions(delimiter=corpus.separator, newlines_in_values=True, invalid_row_handler=keep),
            arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in read_header(file, corpus)},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        for batch in reader:
            corrupt = pa.array([False] * batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, corrupt], schema=schema)
    except pa.ArrowInvalid as error:
        rule = "it is not UTF-8" if "UTF" in str(error) else "a quoted text has no end, or a line is too long"
        raise InputError(f"corpus: {file}: The embedded engine cannot read it: {rule}. {_ON_SPARK}") from None
    if malformed:
        kept = [name for name in names if name in (corpus.id, corpus.run_date_column)]
        fields = [_parse_record([text], corpus.separator) for text in malformed]
        known = [dict(zip(names, line, strict=False)) for line in fields]
        rows = [{MALFORMED: True, **{name: line.get(name) or None for name in kept}} for line in known]
        yield from pa.Table.from_pylist(rows, schema=schema).to_batches()


def _read_whole(file: Path, content: pa.NativeFile) -> bytes:
    """Return the content of a file. Raises `InputError` if the free memory is less than twice its size."""
    available, n_bytes, blocks = available_memory(), file.stat().st_size, []
    while block := content.read(_BLOCK):
        blocks.append(block)
        n_bytes = max(n_bytes, sum(map(len, blocks)))
        if available is not None and 2 * n_bytes > available:  # at least: quotes and line ends take more copies
            rule = (
                f"The embedded engine reads {file} in memory, which needs {n_bytes / 2**29:.1f} GiB or more, and "
                f"{available / 2**30:.1f} GiB are free."
            )
            raise InputError(Fault(("corpus", "path"), ABSENT, rule, "Split the file, or run it on Spark."))
    return b"".join(blocks)


def _normalize_line_ends(file: Path, content: bytes, separator: str) -> bytes:
    """Return the content of a file with Spark's line ends, also within quotes if the first line ends that way.

    Raises `InputError` if lines end in several ways, or a quote within a field is not doubled: parsers disagree on it.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    # To Spark, all lines end as the first one: it joins others, or keeps their carriage returns in values.
    outside_quotes = b"".join(content.split(b'"')[::2])
    if content[: content.find(b"\n") + 1].endswith(b"\r\n"):
        content = content.replace(b"\r\n", b"\n")
        is_mixed = re.search(rb"[\r\n]", outside_quotes.replace(b"\r\n", b""))
    else:
        is_mixed = re.search(rb"\r", outside_quotes)
    edge = re.escape(separator.encode())
    is_loose = re.search(rb'(?<![\n%b])"(?![\n%b]|\Z)' % (edge, edge), content.replace(b'""', b"")[1:])
    if is_loose or is_mixed:
        what = "a quote within a field, which is not doubled," if is_loose else "lines that end in several ways"
        rule = f"The embedded engine reads {what} differently from Spark: {file}."
        raise InputError(Fault(("corpus", "path"), ABSENT, rule, _ON_SPARK))
    return content
