"""SQL assembled from parts: each part is quoted, a number, or declared in code, and is listed here.

The test reads all arguments of functions that parse SQL, and every formatted string that begins as a statement. A
predicate of the configuration is SQL without changes. Values of the data are never part of SQL:
they are compared as `F.lit`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARSERS = {"sql", "expr", "selectExpr", "where", "filter"}
STATEMENT = re.compile(
    r"\s*(SELECT|WITH|CREATE|ALTER|DROP|INSERT|DELETE|MERGE|UPDATE|DESCRIBE|SHOW|USE|SET|MSCK|REFRESH|COMMENT|CALL|"
    r"OPTIMIZE|VACUUM|TRUNCATE|ANALYZE|CACHE|PARTITION)\b"
)
QUOTING = re.compile(r"(quote|quote_string|quote_names?|(self|store)\.name)\(.*\)|self\.schema|store\.view_schema")

SAFE = {
    # numbers, constants and dates
    "kind": "a type, a constant of corpus/csv_rows.py and corpus/read.py",
    "hours:.3f": "a number",
    "run.run_date.isoformat()": "a date",
    "first": "a date, in tables/parquet.py",
    "last": "likewise",
    "_FILES": "a constant",
    "RUN_DATE": "a date, a constant of workflows/demo.py",
    # names and types that are declared in biasspark/tables/tables.toml
    "table.name": "",
    "', '.join(table.names)": "",
    "', '.join(self.partition)": "",
    "', '.join(select)": "columns of a view",
    "', '.join((RUN_DATE.name, CORPUS.name, *table.key_columns, RUN_ID.name))": "",
    "self.provider": "the format: parquet, delta or iceberg",
    "types": "names and types",
    "typed": "names and types, with comments",
    "each": "names of the key",
    "self.name": "the name of a table with a prefix",
    # results of quoting functions
    "_with_comments(table.columns)": "each column with quote_string of its comment",
    "_with_comments(view.columns)": "likewise",
    "_spark_view(table, f'{table.name}_files')": "declared names and quote_string",
    "columns": "define_column of each, or the names, types and comments of DuckDB's view",
    "', '.join(map(define_column, new))": "",
    "comment": "quote_string",
    "doubles": "quote_names",
    "location": "quote_string",
    "_partition(run)": "DATE with isoformat, and quote_string",
    "name": "a store's name(...)",
    "root": "the folder with its quotes doubled, as DuckDB wants it",
    "rows": "a table's name, declared or from a store's name(...)",
    "text": "functions of a quote_name, in corpus/values.py",
    "day": "functions of a quote_name, in corpus/read.py",
    # statements and clauses that are checked where they are made
    "runs": "the name of the ledger with a clause, or a query over it",
    "latest": "an expression over declared columns",
    "ending": "clauses of a format, constants",
    "clause": "clauses of a format",
    "call": "a procedure with quoted arguments",
    "self.query": "a query",
    "view.query": "likewise",
}
"""Each part as it stands in the code, and why it is safe where that does not show."""


def unsafe_sql(path: str, source: str) -> Iterator[str]:
    """Yield every part of SQL that is neither quoted nor listed, and SQL that is assembled in other ways."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr) and is_statement(node):
            yield from unsafe_parts(path, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARSERS:
            for argument in node.args if ast.unparse(node.func) != "np.where" else ():
                yield from unsafe_parts(path, argument)


def is_statement(text: ast.JoinedStr) -> bool:
    first = text.values[0] if text.values else None
    return isinstance(first, ast.Constant) and bool(STATEMENT.match(str(first.value)))


def unsafe_parts(path: str, text: ast.expr) -> Iterator[str]:
    rule = f"Quote it, and list it in {Path(__file__).name}."
    if isinstance(text, ast.JoinedStr):
        for part in text.values:
            written = ast.unparse(ast.JoinedStr([part]))[3:-2]
            if isinstance(part, ast.FormattedValue) and written not in SAFE and not QUOTING.fullmatch(written):
                yield f"{path}:{text.lineno}: {written} is put into SQL. {rule}"
    elif isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add | ast.Mod) and holds_text(text):
        yield f"{path}:{text.lineno}: SQL is put together by an operator. Write one formatted string."
    elif isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute) and text.func.attr == "format":
        yield f"{path}:{text.lineno}: SQL is put together by format. Write one formatted string."


def holds_text(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node))


@pytest.mark.parametrize(
    "source",
    [
        "spark.sql(f'SELECT * FROM t WHERE a = {value}')",
        "spark.sql(f'DROP TABLE {user.name}')",
        "F.expr(f'a = \"{value}\"')",
        "F.expr(f'array({row[0]})')",
        "df.where(f'model = {model!r}')",
        "df.selectExpr(f'{column} AS x')",
        "spark.sql('SELECT ' + columns)",
        "spark.sql('DROP TABLE %s' % name)",
        "F.expr('a = {}'.format(value))",
        "def f(value):\n    query = f\"SELECT '{value}'\"\n    return spark.sql(query)",
        "text = f'{quote(a)}'; spark.sql(f'SELECT {quote(a)}, {a}')",
    ],
)
def test_unquoted_parts_are_unsafe(source: str) -> None:
    assert len(list(unsafe_sql("biasspark/x.py", source))) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "F.expr(f'try_cast({quote(name)} AS DOUBLE)')",
        "spark.sql(f'DROP TABLE {self.name(table.name)} COMMENT {quote_string(text)}')",
        "F.expr(predicate)",
        "df.where((F.col('a') == F.lit(value)) & is_known)",
        "np.where(is_known, f'no_{cell}', '')",
        "raise ValueError(f'select a name other than {name}')",
        "print(f'{a} and SELECT {b}')",
    ],
)
def test_quoted_parts_are_safe(source: str) -> None:
    assert list(unsafe_sql("biasspark/x.py", source)) == []


def test_every_part_of_sql_is_quoted_or_known() -> None:
    files = sorted([*(ROOT / "biasspark").rglob("*.py"), *(ROOT / "jobs").glob("*.py")])
    assert len(files) > 50
    faults = [fault for file in files for fault in unsafe_sql(str(file.relative_to(ROOT)), file.read_text("utf-8"))]
    assert faults == []
