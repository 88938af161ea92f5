"""The corpora of the campaign: drawn from a seed and a number, written to files, shrunk, and counted by hand.

Used by scripts/dev/engine_campaign.py.
"""

from __future__ import annotations

import csv
import io
import math
import random
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.expressions.embedded_sql import Kind, NotOnTheEmbeddedEngine, to_embedded_sql

NAN, INF = math.nan, math.inf
NEGATIVE_NAN = math.copysign(NAN, -1)

ARROW: dict[str, pa.DataType] = {
    "double": pa.float64(),
    "float": pa.float32(),
    "half": pa.float16(),
    "boolean": pa.bool_(),
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    "decimal(5,3)": pa.decimal128(5, 3),
    "decimal(18,2)": pa.decimal128(18, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "text": pa.string(),
    "large_text": pa.large_string(),
    "binary": pa.binary(),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "number category": pa.dictionary(pa.int8(), pa.int64()),
    "date": pa.date32(),
    "time": pa.timestamp("us", "UTC"),
    "local time": pa.timestamp("us"),
    "milliseconds": pa.timestamp("ms", "UTC"),
    "nanoseconds": pa.timestamp("ns"),
    "list": pa.list_(pa.string()),
    "large list": pa.large_list(pa.string()),
    "numbers": pa.list_(pa.int32()),
    "struct": pa.struct([("p", pa.int32())]),
    "null": pa.null(),
}
IN_CSV = dict.fromkeys(("list", "large list", "numbers", "struct", "binary", "null", "category", "large_text"), "text")
IN_CSV |= {"number category": "int64", "half": "double"}
"""The types of values in a CSV file that Arrow has other types for."""
DECIMALS = tuple(name for name in ARROW if name.startswith("decimal"))
LABELS = ("boolean", "int32", "int8", "uint8", "double", "double", "float", "decimal(5,3)", "text", "text")
CATEGORIES = (
    *("text", "category", "number category", "int32", "double", "float", "decimal(5,3)", "date", "boolean"),
    *("large_text", "uint16"),
)
NUMBERS = ("double", "double", "double", "float", "float", *DECIMALS, "int32", "int64", "uint8", "uint64", "text")

# fmt: off
_SHARES = [0.0, -0.0, 0.5, 0.7, 0.1, 1.0, 0.25, 1 / 3, 0.30000000000000004, 0.5000000000000001]
_SCORES = [*_SHARES, 2.5, -1.5, 1e-12, 5e-324, 1e300, -1e15, 123456789.125, 12345678901234567.0, NAN, NEGATIVE_NAN,
           INF, -INF]
_NUMBER_TEXTS = [
    "0.5", "0.7", "1", "0", "1.0", "-0", "+0.5", ".5", "5.", "1e-3", "1E2", "NaN", "nan", "inf", "-Infinity", "+inf",
    "infinity", " 0.5 ", "0.5\t", "\n0.5", "0.5\u00a0", "1d", "0.5f", "1D", "0x1F", "1,5", "", " ", "x",
    "true", "false", "TRUE", "yes", "t", "n", "1_000", "\u0661", "1e400", "1e-400", "--1", "0.1.2", "NULL", "1e", "e1",
    "0.30000000000000004", "9007199254740993", "1" * 40, "0." + "3" * 30, "2.2250738585072011e-308", "007",
]
_TEXTS = [
    "", " ", "a", "A", "b", "ab c", "gay", "Gay man", "a gay, a lesbian", "gaya", "x_gay", "GAY", "lesbian\n", "ÄÖ",
    "straße", "\u017f", "K", "😀", "é", "e\u0301", "İı", "it's", 'say "hi"', "a\\b", "100%", "a_b", "tab\there", "a\nb",
    "2026-01-15", "12", "0.5", "true", "null", "NaN", "a\r\nb", "a\u2028b", "x" * 300, "two words", "a  b", " a",
]
_DAY_TEXTS = ["2026-01-15", "2026-1-15", "2026-01-15 10:00:00", "2026-01-15T23:59:59Z", "2026-01-16", " 2026-01-15",
              "2026-01", "2026", "15/01/2026", "", "2026-02-30", "20260115", "2026-01-15x", "2026-01-15 "]
_DAYS = [date(2026, 1, 15), date(2026, 1, 14), date(2026, 1, 16), date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31),
         date(2024, 2, 29), date(1900, 3, 1), date(1582, 10, 4)]
_TIMES = [datetime(2026, 1, 15, 23, 59, 59, 999999), datetime(2026, 1, 15), datetime(2026, 1, 14, 23, 59, 59),
          datetime(1970, 1, 1), datetime(1969, 12, 31, 12), datetime(2024, 2, 29, 12, 30, 15, 500)]
# fmt: on
_LISTS = [[], ["a"], ["b", "a"], ["a", "a"], [None], ["a", None], ["A", ""], ["gay"], None]
_FLOAT_CATEGORIES = [0.0, -0.0, 1.0, 2.0, 0.1, 0.25, NAN, 1234567.5, 0.001, 1e7, 1e16, 1e-4, INF, 1 / 3]


@dataclass(frozen=True)
class File:
    """Some rows and columns of a corpus, and how they are written."""

    start: int
    stop: int
    columns: tuple[str, ...]
    folder: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    changed: str = ""
    """A column that has another type in this file: text."""


@dataclass(frozen=True)
class Case:
    """A corpus, and its configuration."""

    number: int
    types: dict[str, str]
    values: dict[str, list[Any]]
    files: tuple[File, ...]
    corpus: dict[str, Any]
    measures: dict[str, Any]
    is_whole: bool = False

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return max(map(len, self.values.values()), default=0)

    def describe(self) -> dict[str, Any]:
        """Return the case as text, for a person."""
        return asdict(replace(self, values={name: list(map(repr, each[:12])) for name, each in self.values.items()}))


# ---- making


def make_case(seed: int, number: int) -> Case:
    rng = random.Random(f"{seed}/{number}")
    n_rows = rng.choice([0, 1, 2, 5, 12, 12, 30, 30, 60, 200])
    kind = rng.choices(["parquet", "csv"], [4, 1])[0]
    types: dict[str, str] = {}
    values: dict[str, list[Any]] = {}

    def add(name: str, of_type: str, pool: Sequence[Any] | None = None) -> None:
        types[name] = of_type
        values[name] = _draw(rng, _pool_of(of_type, name) if pool is None else pool, n_rows)

    add("id", rng.choice(["int64", "text", "int32"] * 4 + ["decimal(18,2)", "date", "double"]))
    values["id"] = _ids(rng, types["id"], n_rows)
    label = _add_label(rng, add)
    n_models = rng.choice([1, 1, 2])
    for n in range(n_models):
        add(f"s{n}", rng.choice(NUMBERS))
    for n in range(rng.choice([0, 1, 2])):
        add(f"u{n}", rng.choice([*NUMBERS, "boolean", "text"]))
    if rng.random() < 0.5:
        add("c", rng.choice(CATEGORIES))
    if rng.random() < 0.3:
        add("a", rng.choice(["list", "list", "large list", "numbers", "text"]))
    add("txt", rng.choice(["text", "text", "text", "large_text", "category"]), _TEXTS)
    add("len", rng.choice(["int32", "int64", "int16", "uint16", "int8"]), [1, 5, 50, 100, 127, 0, 7, 3, None])
    add("day", rng.choice(["date", "time", "local time", "text", "milliseconds"]))
    add("x", rng.choice(["double", "float", "double"]), _SCORES)
    add("m", rng.choice(DECIMALS))
    add("b", "boolean")
    if rng.random() < 0.15:
        add("rest", rng.choice([*ARROW]))
    if kind != "parquet":
        types = {name: IN_CSV.get(of_type, of_type) for name, of_type in types.items()}
    measures = {"label": label, "models": [f"s{n}" for n in range(n_models)]}
    measures |= {"identities": _identities(rng, types)}
    expressions = [_any_predicate(rng, types) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    measures |= {"slices": {f"slice{n}": text for n, text in enumerate(expressions)}} if expressions else {}
    is_whole = number % 8 == 0
    if is_whole:
        measures |= _optional_parts(rng)
    corpus: dict[str, Any] = {"format": kind}
    if rng.random() < 0.8:
        corpus |= {"id": "id", "duplicates": rng.choice(["allow", "allow", "reject", "estimate"])}
    if rng.random() < 0.15:
        corpus |= {"run_date_column": "day"}
    if rng.random() < 0.15:
        corpus |= {"filter": _any_predicate(rng, types)}
    if kind == "parquet" and rng.random() < 0.15:
        corpus |= {"options": {"mergeSchema": "true"}}
    files = tuple(_files(rng, kind, types, n_rows))
    return Case(number, types, values, files, corpus, measures, is_whole)


def _add_label(rng: random.Random, add: Any) -> dict[str, Any]:
    of_type = rng.choice(LABELS)
    label: dict[str, Any] = {"column": "y"}
    if of_type == "text" and rng.random() < 0.5:
        add("y", of_type, ["toxic", "Toxic", "toxic ", "fine", "", None, "1"])
        return label | {"positive": ["toxic"]}
    add("y", of_type, [0, 1, 1, 0, 2, None] if "int" in of_type else None)
    if of_type == "boolean" or ("int" in of_type and rng.random() < 0.5):
        return label
    if rng.random() < 0.2:
        return label | {"positive": rng.choice([[1], [0.5, 1], [0.7]]) if "int" not in of_type else [1]}
    label |= {"threshold": rng.choice([0.5, 0.7, 0.1, 1, 0.30000000000000004])}
    return label | ({"range": [0, 1]} if rng.random() < 0.2 else {})


def _identities(rng: random.Random, types: dict[str, str]) -> dict[str, Any]:
    columns = [name for name in ("u0", "u1") if name in types]
    chosen: dict[str, Any] = {}
    if columns:
        chosen |= {"columns": columns, "threshold": rng.choice([0.5, 0.7, 0.1, 1.0, 0.0])}
        chosen |= {"range": [0, 1]} if rng.random() < 0.2 else {}
    if "c" in types:
        chosen |= {"categorical": ["c"]}
    if "a" in types:
        chosen |= {"array": "a"}
    if rng.random() < 0.3:
        terms = rng.choice([["gay", "lesbian"], ["a: a, ab", "k", "ä"], ["straße", "s"], ["b_", "a"]])
        chosen |= {"terms": {"column": "txt", "list": terms}}
    if rng.random() < 0.3 or not chosen:
        chosen |= {"predicates": {f"p{n}": _any_predicate(rng, types) for n in range(rng.choice([1, 1, 2]))}}
    if rng.random() < 0.2:
        chosen |= {"crossed": {"pairs": True, "min_rows": 1}}
    if rng.random() < 0.3:
        chosen |= {"unannotated": "exclude"}
    return chosen


def _optional_parts(rng: random.Random) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "thresholds": {"at": [0.5, 0.7]},
        "histograms": {"bins": 4},
        "pinned_auc": {},
        "label_balance": rng.choice([{"length": "len"}, {"text": "txt"}]) | {"buckets": [0, 5, 60]},
    }
    return {name: value for name, value in parts.items() if rng.random() < 0.6}


def _pool_of(of_type: str, name: str) -> Sequence[Any]:
    if name == "c" and of_type in ("double", "float"):
        return _FLOAT_CATEGORIES
    pools: dict[str, Sequence[Any]] = {
        "double": _SCORES,
        "float": [value if abs(value) < 1e30 or math.isinf(value) else 1e30 for value in _SCORES],
        "half": [0.5, 1.0, NAN],
        "boolean": [True, False, None],
        "text": _DAY_TEXTS if name == "day" else _TEXTS if name == "c" else _NUMBER_TEXTS,
        "large_text": _TEXTS,
        "category": ["a", "b", "A", "", "gay", None],
        "number category": [1, 2, 7, None],
        "binary": [b"a", b"\xff", None],
        "date": _DAYS,
        "time": _TIMES,
        "local time": _TIMES,
        "milliseconds": [time.replace(microsecond=0) for time in _TIMES],
        "nanoseconds": [time.replace(microsecond=0) for time in _TIMES],
        "list": _LISTS,
        "large list": _LISTS,
        "numbers": [[1], [], None, [2, None]],
        "struct": [{"p": 1}, None, {"p": None}],
        "null": [None],
    }
    if of_type in pools:
        return pools[of_type]
    if of_type in DECIMALS:
        texts = ["0", "0.5", "0.7", "1", "0.25", "-0.5", "2.5", "99", "0.125", "1.25"]
        scale = ARROW[of_type].scale
        return [Decimal(text).quantize(Decimal(1).scaleb(-scale)) for text in texts if scale > 2 or len(text) < 5]
    ends = np.iinfo(of_type)
    return [0, 1, 1, 0, 2, 3, 7, ends.max, ends.min, 100]


def _draw(rng: random.Random, pool: Sequence[Any], n_rows: int) -> list[Any]:
    """Draw values: from all, from a few, one, or one and an unknown value."""
    known = [value for value in pool if value is not None and not (isinstance(value, float) and math.isnan(value))]
    how = rng.choice(["all", "all", "few", "one", "one and unknown", "all and unknown"])
    if how == "few":
        pool = rng.sample(list(pool), min(3, len(pool)))
    elif how == "one":
        pool = [rng.choice(pool)]
    elif how == "one and unknown":
        missing = [None, NAN, NEGATIVE_NAN] if any(isinstance(value, float) for value in pool) else [None]
        pool = [rng.choice(known or pool)] * 3 + [rng.choice(missing)]
    elif how == "all and unknown":
        pool = [*pool, None]
    return [rng.choice(pool) for _ in range(n_rows)]


def _ids(rng: random.Random, of_type: str, n_rows: int) -> list[Any]:
    numbers: list[Any] = list(range(n_rows))
    for _ in range(rng.choice([0, 0, 2]) if n_rows > 2 else 0):
        numbers[rng.randrange(n_rows)] = rng.choice([0, 1, None])
    make: dict[str, Any] = {
        "text": lambda n: f"c{n}",
        "date": lambda n: date(2020, 1, 1) + timedelta(n),
        "double": lambda n: n * 1.5,
        "decimal(18,2)": lambda n: Decimal(n).quantize(Decimal("0.01")),
    }
    return [None if n is None else make.get(of_type, int)(n) for n in numbers]


def _files(rng: random.Random, kind: str, types: dict[str, str], n_rows: int) -> Iterator[File]:
    n_files = rng.choice([1, 1, 1, 2, 3])
    layout = rng.choices(["flat", "partitions"], [6, 1])[0] if kind == "parquet" else "flat"
    columns = list(types)
    for n in range(n_files):
        of_file = columns.copy()
        if n and rng.random() < 0.3:
            rng.shuffle(of_file)
        if n_files > 1 and rng.random() < 0.12:
            of_file.remove(rng.choice(of_file))
        parts = ["a", "1", "b c", "__HIVE_DEFAULT_PARTITION__", "x%3Dy"]
        folder = f"part={rng.choice(parts)}" if layout == "partitions" else ""
        changed = rng.choice(of_file) if n and rng.random() < 0.06 else ""
        options = _parquet_options(rng, types) if kind == "parquet" else _text_options(rng)
        yield File(n * n_rows // n_files, (n + 1) * n_rows // n_files, tuple(of_file), folder, options, changed)


def _parquet_options(rng: random.Random, types: dict[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "row_group_size": rng.choice([1, 3, 10, 1000]),
        "data_page_size": rng.choice([1, 64, 1 << 20]),
        "write_batch_size": rng.choice([1, 3, 1024]),
        "use_dictionary": rng.choice([True, True, False, ["c", "txt", "s0", "u0"]]),
        "write_statistics": rng.choice([True, True, True, False, ["s0", "u0"]]),
        "compression": rng.choice(["snappy", "zstd", "gzip", "none"]),
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "store_schema": rng.choice([True, True, False]),
        "write_page_index": rng.choice([True, False]),
        "write_page_checksum": rng.choice([True, False]),
    }
    if options["use_dictionary"] is False and rng.random() < 0.6:
        by_type = {
            "double": ["BYTE_STREAM_SPLIT", "PLAIN"],
            "float": ["BYTE_STREAM_SPLIT", "PLAIN"],
            "int32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
            "int64": ["DELTA_BINARY_PACKED", "PLAIN"],
            "text": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"],
            "date": ["DELTA_BINARY_PACKED"],
            "boolean": ["RLE", "PLAIN"],
        }
        options["column_encoding"] = {name: rng.choice(by_type[t]) for name, t in types.items() if t in by_type}
    if rng.random() < 0.1:
        options |= {"use_deprecated_int96_timestamps": True}
    return options


def _text_options(rng: random.Random) -> dict[str, Any]:
    return {
        "quote_all": rng.random() < 0.3,
        "line_end": rng.choice(["\n", "\n", "\r\n"]),
        "broken": rng.choices(["", "short", "long", "quote", "not json"], [6, 1, 1, 1, 1])[0],
        "null": rng.choice(["", "", "missing"]),
        "blank_lines": rng.random() < 0.1,
        "mark": rng.random() < 0.1,
    }


# ---- predicates


def _any_predicate(rng: random.Random, types: dict[str, str]) -> str:
    """Return a predicate; nine in ten are ones that the embedded engine takes."""
    kinds = {name: kind_of(of_type) for name, of_type in types.items()}
    while True:
        text = make_predicate(rng, types)
        if is_supported(text, kinds) or rng.random() < 0.02:
            return text


def is_supported(text: str, kinds: Mapping[str, Kind]) -> bool:
    """Return whether the embedded engine takes a predicate over columns of these kinds."""
    try:
        to_embedded_sql(text, kinds)
    except NotOnTheEmbeddedEngine:
        return False
    return True


def kind_of(of_type: str) -> Kind:
    if of_type in ("double", "float"):
        return "double" if of_type == "double" else "float"
    if of_type.startswith("decimal") or of_type == "uint64":
        return "decimal"
    if "int" in of_type or of_type == "number category":
        return "integer"
    if of_type in ("text", "large_text", "category"):
        return "text"
    if of_type == "boolean":
        return "boolean"
    return "date" if of_type in ("date", "time", "local time", "milliseconds") else "other"


COMBINATIONS = (
    "{0} AND {1}",
    "({0}) OR ({1})",
    "NOT ({0})",
    "CASE WHEN {0} THEN {1} ELSE {2} END",
    "if({0}, {1}, {2})",
    "coalesce({0}, {1})",
    "({0}) IS NULL",
    "({0}) = ({1})",
    "({0}) <=> ({1})",
)
"""How predicates are combined."""


def make_predicate(rng: random.Random, types: dict[str, str], depth: int = 0) -> str:
    """Return a predicate as people write them, over the columns of a corpus."""
    if depth < 2 and rng.random() < 0.35:
        inner = [make_predicate(rng, types, depth + 1) for _ in range(3)]
        return rng.choice(COMBINATIONS).format(*inner)
    by_kind = {
        "number": [name for name, t in types.items() if t in ("double", "float") or t in DECIMALS or "int" in t],
        "text": [name for name, t in types.items() if t in ("text", "large_text", "category") and name != "a"],
        "boolean": [name for name, t in types.items() if t == "boolean"],
        "day": [name for name, t in types.items() if t in ("date", "time", "local time", "milliseconds")],
        "list": [name for name, t in types.items() if t in ("list", "large list")],
    }
    kind = rng.choice([kind for kind, names in by_kind.items() if names for _ in range(_KINDS[kind]["weight"])])
    chosen = {"c": rng.choice(by_kind[kind]), "d": rng.choice(by_kind[kind]), "v": rng.choice(_KINDS[kind]["values"])}
    forms = _KINDS[kind]["forms"]
    return fill_form(rng, rng.choices(forms, [_KINDS[kind]["often"].get(each, 1) for each in forms])[0], **chosen)


def fill_form(rng: random.Random, form: str, **chosen: str) -> str:
    """Return a predicate of a form, given its columns `c` and `d` and its literal `v`."""
    return form.format(
        **chosen,
        n=rng.choice([-1, 0, 1, 2, 3, 10]),
        r=rng.choice(PREDICATES["patterns"]),
        f=rng.choice(PREDICATES["date_formats"]),
        o=rng.choice(["=", "<", ">", "<=", ">=", "<>", "!=", "<=>"]),
    )


PREDICATES = tomllib.loads((Path(__file__).parent / "campaign_predicates.toml").read_text(encoding="utf-8"))
_KINDS = PREDICATES["kinds"]


# ---- writing


def write_case(case: Case, folder: Path, splits_bytes: bool = True) -> None:
    """Write the files of a corpus below a folder; in an encoding that Spark does not read only if `splits_bytes`."""
    root = folder / "corpus"
    root.mkdir(parents=True)
    for n, file in enumerate(case.files):
        (root / file.folder).mkdir(exist_ok=True)
        path = root / file.folder / f"part-{n}.{case.corpus['format']}"
        if case.corpus["format"] == "parquet":
            _write_parquet(case, file if splits_bytes else _without_split(file), path)
        else:
            path.write_bytes(_csv_text(case, file).encode())


def _without_split(file: File) -> File:
    encodings = file.options.get("column_encoding") or {}
    plain = {name: "PLAIN" if encoding == "BYTE_STREAM_SPLIT" else encoding for name, encoding in encodings.items()}
    return replace(file, options=file.options | {"column_encoding": plain}) if plain else file


def _write_parquet(case: Case, file: File, path: Path) -> None:
    arrays = {}
    for name in file.columns:
        cells = case.values[name][file.start : file.stop]
        if name == file.changed:
            arrays[name] = pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
            continue
        arrays[name] = _array(cells, case.types[name])
    options = dict(file.options)
    names = set(file.columns)
    for key in ("use_dictionary", "write_statistics"):
        if isinstance(options.get(key), list):
            options[key] = [name for name in options[key] if name in names]
    if "column_encoding" in options:
        encodings = {
            name: encoding
            for name, encoding in options["column_encoding"].items()
            if name in names and name != file.changed
        }
        options["column_encoding"] = encodings or None
    pq.write_table(pa.table(arrays), path, **options)
    try:
        pq.ParquetFile(path).read()
    except pa.ArrowInvalid:  # lists in very small pages: pyarrow cannot read back its own file
        pq.write_table(pa.table(arrays), path)


def _array(cells: Sequence[Any], of_type: str) -> pa.Array:
    kind = ARROW[of_type]
    if pa.types.is_dictionary(kind):
        return pa.array(cells, kind.value_type).dictionary_encode()
    if of_type in ("time", "milliseconds"):
        cells = [None if cell is None else cell.replace(tzinfo=UTC) for cell in cells]
    return pa.array(cells, kind, from_pandas=False)


def _csv_text(case: Case, file: File) -> str:
    text = io.StringIO()
    if file.options["mark"]:
        text.write("\ufeff")
    quoting: Any = csv.QUOTE_ALL if file.options["quote_all"] else csv.QUOTE_MINIMAL
    writer = csv.writer(text, lineterminator=file.options["line_end"], quoting=quoting)
    writer.writerow(file.columns)
    rows = list(zip(*(case.values[name][file.start : file.stop] for name in file.columns), strict=True))
    for n, row in enumerate(rows):
        cells = ["" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row]
        if n == len(rows) // 2 and (broken := file.options["broken"]):
            cells = {"short": cells[:-2], "long": [*cells, "more"]}.get(broken, cells)
            if broken == "quote":
                text.write(",".join(['a"b', *['x "y" z'] * (len(cells) - 1)]) + file.options["line_end"])
                continue
        writer.writerow(cells)
        if file.options["blank_lines"]:
            text.write(file.options["line_end"])
    return text.getvalue()


# ---- smaller


def simpler_cases(case: Case) -> Iterator[Case]:
    """Yield cases with fewer rows, files, columns, expressions or identities, the boldest first."""
    if case.is_whole:
        yield replace(case, is_whole=False)
    n_rows = case.n_rows
    spans = [(0, n_rows // 2), (n_rows // 2, n_rows), (0, n_rows // 4), (n_rows - n_rows // 4, n_rows)]
    for start, stop in spans if n_rows > 1 else ():
        yield _slice(case, start, stop)
    if len(case.files) > 1:
        for n in range(len(case.files)):
            yield replace(case, files=case.files[:n] + case.files[n + 1 :])
    for key in ("slices", "thresholds", "histograms", "pinned_auc", "label_balance"):
        if key in case.measures:
            yield replace(case, measures=_drop(case.measures, [key]))
    slices = case.measures.get("slices", {})
    for name in slices if len(slices) > 1 else ():
        yield replace(case, measures=case.measures | {"slices": {name: slices[name]}})
    for key in ("filter", "run_date_column", "options", "id"):
        if key in case.corpus:
            yield replace(case, corpus=_drop(case.corpus, [key, "duplicates"] if key == "id" else [key]))
    identities = case.measures["identities"]
    if "predicates" not in identities or len(identities) > 1:
        yield replace(case, measures=case.measures | {"identities": {"predicates": {"p": "b"}}})
    used = f"{case.measures} {case.corpus}"
    unused = [name for name in case.types if name not in used]
    if unused:
        files = (replace(file, columns=tuple(_drop(dict.fromkeys(file.columns), unused))) for file in case.files)
        types, values = _drop(case.types, unused), _drop(case.values, unused)
        yield replace(case, types=types, values=values, files=tuple(files))


def _slice(case: Case, start: int, stop: int) -> Case:
    """Keep the rows of a span; each kept row stays in its file."""

    def cut(file: File) -> File:
        first = max(file.start, start) - start
        return replace(file, start=first, stop=max(min(file.stop, stop) - start, first))

    values = {name: each[start:stop] for name, each in case.values.items()}
    return replace(case, values=values, files=tuple(map(cut, case.files)))


def _drop(table: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in names}


def count_by_hand(case: Case) -> str | None:
    """Return the rows of a corpus as its files hold them; None if SQL or a date selects rows."""
    if case.corpus["format"] != "parquet" or {"filter", "run_date_column"} & case.corpus.keys():
        return None
    return repr(sum(file.stop - file.start for file in case.files))
