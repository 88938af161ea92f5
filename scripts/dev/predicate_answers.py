"""Compute thousands of predicates on rows of edge cases, on one engine; store or compare the results.

usage: python -m scripts.dev.predicate_answers embedded|spark [--store FILE] [--compare FILE] [--share SHARE]

A predicate has three values, and a filter does not tell NULL from false, so each predicate is selected as a column
here. Predicates are drawn from every form in campaign_predicates.toml and combined, over columns of all types with
NULL, NaN, infinities, signed zeros, the ends of ranges and texts that look alike. Those that the embedded engine
refuses are left out.

Supports docs/embedded.md#sql: predicates have the same three values.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from itertools import product
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from biasspark.session import build_session, expression
from biasspark.session_request import SessionRequest
from scripts.dev.campaign_corpora import COMBINATIONS, PREDICATES, fill_form, is_supported, kind_of

SEED = 20261125
A_FORM, COMBINED, AT_ONCE = 5, 80, 40
_TEXTS = (
    *("", "a", "A", "gay", " gay ", "B", "ÄÖ", "it's", "12", "0.5", "2026-01-15", "K", "toxic ", "a b", "x_gay"),
    *("straße", "\t", "100%", "1e3", "NaN", "true"),
)
_TIMES = (
    datetime(2026, 1, 15, 23, 59, 59, 999999, UTC),
    datetime(2000, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 1, 0, UTC),
)
COLUMNS: Mapping[str, tuple[str, pa.DataType, Sequence[Any]]] = {
    "double": ("number", pa.float64(), (0.0, -0.0, 0.5, 0.7, 1.0, -1.0, nan, inf, -inf, 1e308, 0.1 + 0.2, 2.5, 100.0)),
    "float": ("number", pa.float32(), (0.0, 0.7, 1.0, nan, -1.5, inf, 16777216.0)),
    "int": ("number", pa.int32(), (0, 1, -1, 2**31 - 1, -(2**31), 7, 100, 3)),
    "bigint": ("number", pa.int64(), (0, 1, -1, 2**63 - 1, -(2**63), 9007199254740993, 10)),
    "smallint": ("number", pa.int16(), (0, 1, -1, 32767, 7)),
    "decimal": ("number", pa.decimal128(12, 4), tuple(map(Decimal, ("0.5", "1.25", "-1", "0", "99999999.9999")))),
    "text": ("text", pa.string(), _TEXTS),
    "boolean": ("boolean", pa.bool_(), (True, False)),
    "date": ("day", pa.date32(), (date(2026, 1, 15), date(1999, 12, 31), date(2024, 2, 29))),
    "time": ("day", pa.timestamp("us", "UTC"), _TIMES),
    "list": ("list", pa.list_(pa.string()), ([], ["a"], ["a", None], ["gay", "B", ""], [None])),
}
"""By name, the kind of its predicates, its type, and its values besides NULL."""

Answers = dict[str, dict[str, str]]
"""By type and predicate, a digest of its values on all rows, or "error"."""


def draw_predicates(rng: random.Random, of_type: str) -> list[str]:
    """Return predicates over the columns c and d: some of every form, and combinations; none that is refused."""
    forms = PREDICATES["kinds"][COLUMNS[of_type][0]]
    kinds = dict.fromkeys(("c", "d"), kind_of(of_type))
    drawn = [
        fill_form(rng, form, c="c", d="d", v=rng.choice(forms["values"]))
        for form in forms["forms"]
        for _ in range(3 * A_FORM if "{r}" in form else A_FORM)
    ]
    supported = [text for text in dict.fromkeys(drawn) if is_supported(text, kinds)]
    for _ in range(COMBINED):
        text = rng.choice(COMBINATIONS).format(*(rng.choice(supported) for _ in range(3)))
        if text not in supported and is_supported(text, kinds):
            supported.append(text)
    return supported


def write_pairs(of_type: str, folder: Path) -> str:
    """Write all pairs of the values of a type, NULL among them, and return the path."""
    _, arrow, values = COLUMNS[of_type]
    pairs = list(product((None, *values), repeat=2))
    first, second = (pa.array(column, arrow, from_pandas=False) for column in zip(*pairs, strict=True))
    path = folder / f"{of_type}.parquet"
    pq.write_table(pa.table({"n": pa.array(range(len(pairs))), "c": first, "d": second}), path, write_statistics=False)
    return str(path)


def answer(spark: SparkSession, share: float) -> Answers:
    """Compute the predicates on an engine: all of them, or a part."""
    answers: Answers = {}
    with TemporaryDirectory() as folder:
        for of_type in COLUMNS:
            rng = random.Random(f"{SEED} {of_type}")
            predicates = draw_predicates(rng, of_type)
            chosen = rng.sample(predicates, round(share * len(predicates)))
            path = write_pairs(of_type, Path(folder))
            rows = spark.read.schema(spark.read.parquet(path).schema).parquet(path)
            answers[of_type] = dict(_compute(rows, chosen))
    return answers


def _compute(rows: DataFrame, predicates: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each predicate with the digest of its values; halve the predicates while they are many, or some fail."""
    named = [expression(rows, text).alias(f"p{number}") for number, text in enumerate(predicates)]
    table: list[Any] = []
    with suppress(Exception):  # each engine has its own
        table = sorted(map(tuple, rows.select("n", *named).collect())) if len(named) <= AT_ONCE else []
    if table:
        values = list(zip(*table, strict=True))[1:]
        yield from zip(predicates, (sha256(repr(each).encode()).hexdigest()[:12] for each in values), strict=True)
    elif len(predicates) == 1:
        yield predicates[0], "error"
    else:
        middle = len(predicates) // 2
        for half in (predicates[:middle], predicates[middle:]):
            yield from _compute(rows, half)


def compare(answers: Answers, stored: Answers) -> list[str]:
    """Return the predicates whose values differ from the stored ones, or that are not stored.

    Those that fail on either engine do not count.
    """
    return [
        f"{of_type}: {text}"
        for of_type, of_predicates in answers.items()
        for text, digest in of_predicates.items()
        if "error" not in (digest, known := stored[of_type].get(text)) and digest != known
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["embedded", "spark"])
    parser.add_argument("--store", type=Path, help="where to keep what comes out")
    parser.add_argument("--compare", type=Path, help="what another engine has stored")
    parser.add_argument("--share", type=float, default=1.0, help="of the predicates that are computed")
    options = parser.parse_args()
    spark = build_session("predicates", request=SessionRequest(options.engine))
    answers = answer(spark, share=options.share)
    n_predicates = sum(map(len, answers.values()))
    n_errors = sum(digest == "error" for of_type in answers.values() for digest in of_type.values())
    print(f"{n_predicates:,} predicates of {len(answers)} types, {n_errors:,} end with an error")
    if options.store:
        options.store.write_text(
            json.dumps(answers, indent=0, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
        )
    differing = []
    if options.compare:
        differing = compare(answers, json.loads(options.compare.read_text(encoding="utf-8")))
        print(*differing, f"{len(differing):,} differ", sep="\n")
    spark.stop()
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
