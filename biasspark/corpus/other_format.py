"""Files that are of another format than the configured one: which it is, told from the first line of one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from biasspark.config import Corpus, redact
from biasspark.corpus.files import plain_path
from biasspark.errors import InputError

_NAMES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro", "csv": "CSV", "json": "JSON"}
_MAGIC = {"PAR1": "parquet", "ORC": "orc", "Obj\x01": "avro"}  # by which files of a format begin
_ENDINGS = {"jsonl": "json", "ndjson": "json", "tsv": "csv"} | {name: name for name in _NAMES}
_SEPARATORS = {",": ",", ";": ";", "\t": "\\t", "|": "|"}  # and how TOML writes them
_LONGEST_NAME, _LONGEST_LINE = 64, 10_000
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?", re.IGNORECASE)
_WRONG_FORMAT = re.compile(r"is not a Parquet file|Could not read footer|Malformed ORC|CANNOT_READ_FILE_FOOTER")


class Guess(NamedTuple):
    """The format of a file, and what its fields are separated by, if that is not a comma."""

    format: str
    separator: str = ""


def may_be_other_format(error: Exception) -> bool:
    """Say whether Spark complains of a file that is not of the format as which it is read."""
    return bool(_WRONG_FORMAT.search(str(error)))


def find_named_file(error: Exception, names: Sequence[str]) -> str:
    """Return the first of some files, by their URIs, that an error names; the first of all where it names none."""
    text = str(error)
    return next((name for name in names if name.rsplit("/", 1)[-1] in text), names[0])


def may_be_no_csv(header: str) -> bool:
    """Say whether the first name of a header line is none: a file of another format begins with it."""
    return header.startswith((*_MAGIC, '{"', '[{"', "{'"))


def refuse_other_format(spark: SparkSession, corpus: Corpus, name: str) -> None:
    """Stop if the first line of a file shows that it is of another format; runs one small Spark job.

    Parameters
    ----------
    name
        The URI of the file, escaped.
    """
    guess = guess_format(_read_first_line(spark, unquote(name)))
    configured = corpus.format.lower()
    if guess is None or guess.format == configured:
        return
    wanted, found = _NAMES.get(configured, configured), _NAMES[guess.format]
    options = f' and `options = {{ sep = "{guess.separator}" }}`' if guess.separator else ""
    raise InputError(
        f"corpus: path {redact(str(corpus.path))}: {redact(plain_path(unquote(name)))} is not "
        f"{'an' if wanted[0] in 'AEIOaeio' else 'a'} {wanted} file. It looks like {found}. Set `[corpus] format = "
        f'"{guess.format}"`{options} if all files are {found}; otherwise remove the file.'
    )


def guess_format(line: str) -> Guess | None:
    """Guess the format of a file from its first line; None where that shows none."""
    text = line.lstrip("\ufeff \t")
    for magic, name in _MAGIC.items():
        if text.startswith(magic):
            return Guess(name)
    if not text.replace("\t", " ").rstrip().isprintable():
        return None
    if re.match(r"\[?\s*\{\s*(\"|$)|\[\s*$", text):
        return Guess("json")
    separator = max(_SEPARATORS, key=text.count)
    fields = [field.strip(" \"'\r\n") for field in text.split(separator)]
    is_header = len(fields) > 1 and len(set(fields)) == len(fields) and all(map(_may_be_name, fields))
    return Guess("csv", "" if separator == "," else _SEPARATORS[separator]) if is_header else None


def format_of_ending(name: str) -> str | None:
    """Return the format that the name of a file ends with, compressed or not."""
    ending = re.search(r"\.(\w+)(?:\.(?:gz|bz2|zst|snappy|lz4|deflate))?$", name)
    return _ENDINGS.get(ending[1].lower()) if ending else None


def _may_be_name(field: str) -> bool:
    """Say whether a field may be the name of a column, as in a header line."""
    return 0 < len(field) <= _LONGEST_NAME and not _NUMBER.fullmatch(field)


def _read_first_line(spark: SparkSession, path: str) -> str:
    try:
        lines = spark.read.text(path).where(F.trim("value") != "").limit(1)
        # As bytes, since those of a binary file are no UTF-8.
        found = lines.select(F.substring("value", 1, _LONGEST_LINE).cast("binary").alias("value")).collect()
    except Exception as error:
        if not isinstance(error, PySparkException) and type(error).__name__ != "Py4JJavaError":
            raise
        return ""  # it cannot be read as text either
    return bytes(found[0]["value"]).decode("utf-8", errors="replace") if found else ""
