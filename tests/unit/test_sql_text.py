"""SQL that is put together from parts: each part is quoted, a number, or declared in code, and is listed here.

Looked at are all arguments of what parses SQL, and every formatted string that begins as a statement does. A predicate
of the configuration is SQL as it stands; nothing is put into it. Values of the data are never part of SQL: they are
compared as `F.lit`.
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
    # numbers, of the configuration or counted
    "_ACCURACY": "a constant",
    "part / parts!r": "a number",
    "shares": "numbers",
    "kind": "a type, a constant of corpus/csv_rows.py",
    "label": "NOT, or nothing",
    "listed": "numbers",
    "hours:.3f": "a number",
    "run.run_date.isoformat()": "a date",
    "score": "a column that the survey names, score_0",
    # names and types that are declared in code, in biasspark/tables/schemas
    "table.name": "",
    "', '.join(table.names)": "",
    "', '.join(PARTITION)": "",
    "RUN_DATE.name": "",
    "', '.join((RUN_DATE.name, CORPUS.name, *table.key_columns, RUN_ID.name))": "",
    "self.format.name": "",
    "types": "names and types",
    "each": "names of the key",
    # parts that quoting functions made
    "_commented(table)": "each column with quote_string of its comment",
    "_spark_view(table, f'{table.name}_files')": "declared names and quote_string",
    "columns": "define_column of each, or the names, types and comments of DuckDB's view",
    "', '.join(_define_columns(table))": "define_column of each",
    "', '.join(map(define_column, new))": "",
    "comment": "quote_string",
    "location": "quote_string",
    "night": "DATE and isoformat",
    "attempt": "quote_string",
    "_partition(run)": "DATE with isoformat, and quote_string",
    "name": "a store's name(...)",
    "view": "a store's name(...)",
    "root": "the folder with its quotes doubled, as DuckDB wants it",
    "rows": "a table's name, declared or from a store's name(...)",
    "ledger": "likewise",
    "runs": "the name of the ledger with a clause, or a query over it, looked at where they are made",
    "RUN_ID_RULE": "a constant",
    "latest": "an expression over declared columns",
    "_FILES": "a constant",
    "ending": "clauses of a format, constants",
    "clause": "clauses of a format, looked at where they are made",
    "call": "a procedure with quoted arguments, looked at where it is made",
    "query": "a statement, looked at where it is made",
}
"""Each part as it stands in the code, and why it is safe where that does not show."""


def find_unsafe(path: str, source: str) -> Iterator[str]:
    """Give every part of SQL that is neither quoted nor listed, and SQL that is put together in other ways."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr) and is_statement(node):
            yield from unsafe_parts(path, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARSERS:
            for argument in node.args:
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
def test_what_nobody_quotes_is_found(source: str) -> None:
    assert len(list(find_unsafe("biasspark/x.py", source))) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "F.expr(f'try_cast({quote(name)} AS DOUBLE)')",
        "spark.sql(f'DROP TABLE {self.name(table.name)} COMMENT {quote_string(text)}')",
        "F.expr(predicate)",
        "df.where((F.col('a') == F.lit(value)) & other)",
        "raise ValueError(f'select a name other than {name}')",
        "print(f'{a} and SELECT {b}')",
    ],
)
def test_what_is_quoted_passes(source: str) -> None:
    assert list(find_unsafe("biasspark/x.py", source)) == []


def test_every_part_of_sql_is_quoted_or_known() -> None:
    files = sorted([*(ROOT / "biasspark").rglob("*.py"), *(ROOT / "jobs").glob("*.py")])
    assert len(files) > 50
    found = [fault for file in files for fault in find_unsafe(str(file.relative_to(ROOT)), file.read_text("utf-8"))]
    assert found == []
