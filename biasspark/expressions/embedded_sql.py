r"""Translate Spark SQL to SQL that has the same meaning on the embedded engine. No Spark.

The engine silently computes some things differently: sums of integers wrap, 0.7 is a decimal to which doubles are
rounded, ``\w`` matches letters that Java's does not. These are rewritten if possible; the rest is refused.
``scripts/dev/engine_campaign.py`` compares both engines, and functions that it has not compared, or not found equal,
are refused as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Literal

from biasspark.expressions.java_regex import to_rust

Kind = Literal["double", "float", "decimal", "integer", "text", "boolean", "date", "other"]


class NotOnTheEmbeddedEngine(ValueError):
    """An expression that the embedded engine would compute differently; the message is the rule that it breaks."""

    def __init__(self, rule: str, fix: str = "Write it in another way, or run it on Spark.") -> None:
        super().__init__(rule)
        self.fix = fix


_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?![A-Za-z0-9_]))
    |(?P<name>[^\W\d]\w*|\d\w+)
    |(?P<sign><=>|<>|!=|<=|>=|==|\|\||->|::|=>|<<|>>>?|.)""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_WITHIN_VALUES = {
    "case", "cast", "date", "div", "end", "extract", "false", "interval", "null", "timestamp", "true", "try_cast"
}  # fmt: skip
_BETWEEN_VALUES = {
    "and", "as", "between", "both", "by", "collate", "day", "distinct", "else", "escape", "exists", "for", "from",
    "hour", "ilike", "in", "is", "leading", "like", "minute", "month", "not", "or", "overlay", "regexp", "rlike",
    "second", "then", "to", "trailing", "when", "year",
}  # fmt: skip
_KEYWORDS = _WITHIN_VALUES | _BETWEEN_VALUES
"""Keywords that are part of a value, and those that separate values, as comparisons do."""
_INTEGER_FUNCTIONS = {
    "array_position", "array_size", "ascii", "cardinality", "char_length", "character_length", "crc32", "date_diff",
    "datediff", "day", "dayofmonth", "dayofweek", "dayofyear", "hour", "instr", "len", "length", "levenshtein",
    "locate", "minute", "month", "octet_length", "position", "quarter", "regexp_count", "second", "size",
    "weekofyear", "year",
}  # fmt: skip
_HASHES = {"hash", "xxhash64"}
_WITH_PATTERN = {"regexp", "regexp_count", "regexp_extract", "regexp_like", "regexp_replace", "rlike", "split"}
_CHOICES = {"coalesce": 0, "greatest": 0, "if": 1, "ifnull": 0, "least": 0, "nullif": 0, "nvl": 0, "nvl2": 1}
"""Functions that return one of their arguments, and the number of arguments before these."""
_EQUAL_FUNCTIONS = _INTEGER_FUNCTIONS | _HASHES | _WITH_PATTERN | _CHOICES.keys() | {
    "abs", "add_months", "aggregate", "array", "array_compact", "array_contains", "array_distinct",
    "array_intersect", "array_join", "array_max", "array_min", "array_remove", "array_sort", "array_union",
    "arrays_overlap", "base64", "bigint", "btrim", "concat", "concat_ws", "contains", "current_date",
    "current_timestamp", "date", "date_add", "date_format", "date_sub", "double", "element_at", "endswith",
    "equal_null", "exists", "extract", "filter", "flatten", "float", "forall", "get", "hex", "int", "isnan",
    "isnotnull", "isnull", "last_day", "lcase", "left", "lower", "lpad", "ltrim", "make_date", "md5", "mod",
    "nanvl", "next_day", "now", "pmod", "repeat", "replace", "reverse", "right", "round", "rpad", "rtrim", "sha2",
    "sign", "signum", "slice", "sort_array", "soundex", "split_part", "startswith", "string", "substr", "substring",
    "substring_index", "to_date", "transform", "translate", "trim", "try_element_at", "try_mod", "ucase", "upper",
}  # fmt: skip
_WRITES_TEXT = {"array_join", "concat", "concat_ws", "string"}
_WHOLE_DATE_FORMAT = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|[-/.:_ ])*")
_FRACTION = re.compile(r"\s*[+-]?(?:\d+\.\d*|\.\d+)\s*")
_FINITE = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(?:\d|\.\d|nan|inf)", re.IGNORECASE)
"""The start of a string that Spark casts to a double."""
_LONG_NUMBER = re.compile(r"(?=(?:\.?\d){39})[\d.]+(?:BD)?", re.IGNORECASE)
_ENDS_OF_COMPARISONS = {"and", "or", "then", "else", "end"}
_FLOATS = {"double", "float"}
_INTEGERS = {"int", "integer", "bigint", "long", "smallint", "tinyint"}
_CASTS = _FLOATS | _INTEGERS | {"string", "boolean", "date"}
_COMPARISON_SIGNS = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>"}
_COMPARISONS = _COMPARISON_SIGNS | {",", "->", "=>", "||"}
_UNBALANCED = "finds unbalanced parentheses, brackets or CASE ... END", "Correct it."
_MAY_BE_COLUMNS = {"year", "month", "day", "hour", "minute", "second", "date", "timestamp"}
_PARTS_OF_DATES = {"year", "quarter", "month", "week", "day", "hour", "minute"}
_MAX_WORDS = 5_000
"""Names, keywords and signs but commas. The engine reads each operator in a deeper call; too many end the process."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass
class _Token:
    kind: str
    text: str
    value: str = ""
    """A column's name in lower case, or the value of a string literal."""
    column: Kind | None = None
    """The kind of the column that it names."""
    is_call: bool = False
    """Whether a parenthesis follows."""
    is_function: bool = False
    is_operator: bool = False

    @property
    def is_column(self) -> bool:
        """Whether it names a column, although it may also be a keyword."""
        return self.column is not None and self.value in _MAY_BE_COLUMNS


def to_embedded_sql(text: str, columns: Mapping[str, Kind]) -> str:
    """Translate Spark SQL over columns of these kinds for the embedded engine, or raise `NotOnTheEmbeddedEngine`."""
    tokens = _replace_constants(_read(text))
    _mark_roles(tokens, {name.lower(): kind for name, kind in columns.items()})
    if any(token.text == "(" and (after.kind, after.value) == ("name", "select") for token, after in pairwise(tokens)):
        raise NotOnTheEmbeddedEngine("does not accept subqueries")
    if any(_LONG_NUMBER.fullmatch(token.text) for token in tokens):
        fix = "Write it with fewer, or as a floating-point number, such as 1e40."
        raise NotOnTheEmbeddedEngine("does not accept numbers of more than 38 digits", fix)
    try:
        if sum(token.kind not in ("number", "text") and token.text != "," for token in tokens) > _MAX_WORDS:
            raise RecursionError
        expression = _Expression(tokens)
        expression.check()
        return expression.translate(0, len(tokens))
    except RecursionError:
        fix = "Write IN (...) in place of a chain of OR, or run it on Spark."
        raise NotOnTheEmbeddedEngine("cannot read an expression this deep", fix) from None


def _read(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind, part = str(match.lastgroup), match[0]
        if kind == "space":
            continue
        value = part.lower() if kind == "name" else part
        if kind == "quoted":
            value = part[1:-1].replace("``", "`").lower()
        elif kind == "text":
            value = _unescape(part)
        yield _Token(kind, part, value)


def _replace_constants(tokens: Iterable[_Token]) -> list[_Token]:
    """Return tokens with literals for the constants in predicates of attribution: casts of texts, chr and concat."""
    result: list[_Token] = []
    for token in tokens:
        result.append(token)
        if token.text != ")":
            continue
        values = [(each.kind, each.value) for each in result]
        match values[-6:]:
            case [("name", "cast"), _, ("text", number), ("name", "as"), ("name", "double"), ("sign", ")")]:
                if _FINITE.fullmatch(number):
                    result[-6:] = _read(f"{number}D")
            case [*_, ("name", "chr"), ("sign", "("), ("number", code), ("sign", ")")]:
                if code.isdecimal() and 0 < int(code) < 128:
                    result[-4:] = [_text_token(chr(int(code)))]
            case [*_, ("text", _), ("sign", ")")]:
                start = len(values) - 2
                while values[start - 1] == ("sign", ",") and values[start - 2][0] == "text":
                    start -= 2
                if values[start - 2 : start] == [("name", "concat"), ("sign", "(")]:
                    result[start - 2 :] = [_text_token("".join(value for _, value in values[start:-1:2]))]
    return result


def _text_token(value: str) -> _Token:
    return _Token("text", _write_literal(value), value)


def _unescape(literal: str) -> str:
    if literal[0] in "rR":
        return literal[2:-1]
    quote, body = literal[0], literal[1:-1]

    def replace(match: re.Match[str]) -> str:
        if match[0] == quote * 2:
            return quote
        if match["hex"] or match["octal"]:
            return chr(int(match["hex"][1:], 16) if match["hex"] else int(match["octal"], 8))
        return _ESCAPES.get(match["char"], match["char"])

    numbers = r"(?P<hex>u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(?P<octal>[01][0-7]{2})"
    return re.sub(rf"{quote}{quote}|\\(?:{numbers}|(?P<char>.))", replace, body, flags=re.DOTALL)


def _mark_roles(tokens: Sequence[_Token], columns: Mapping[str, Kind]) -> None:
    """Tell columns, functions and operators among the tokens. A sign after a value is a binary operator."""
    is_after_value = False
    for token, following in zip_longest(tokens, tokens[1:]):
        is_name = token.kind == "name"
        token.is_call = following is not None and following.text == "("
        if token.kind == "quoted" or (is_name and not token.is_call):
            token.column = columns.get(token.value)
        is_keyword = is_name and token.value in _KEYWORDS and (is_after_value or token.value not in _EQUAL_FUNCTIONS)
        token.is_function = token.kind in ("name", "quoted") and token.is_call and not is_keyword
        token.is_operator = token.value == "div" or (is_after_value and token.text in ("+", "-", "*", "/", "%"))
        if is_name:
            is_after_value = token.value not in _KEYWORDS - {"end", "null", "true", "false"} or token.is_column
        else:
            is_after_value = token.kind in ("number", "text", "quoted") or token.text in (")", "]")


def _is_date_literal(tokens: Sequence[_Token]) -> bool:
    return [(token.kind, token.value) for token in tokens[:1]] == [("name", "date")] and tokens[-1].kind == "text"


def _write_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class _Expression:
    """The tokens of an expression, and the columns that it names."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.closing = tokens, _match_pairs(tokens)
        self.named = {token.column for token in tokens if token.column}
        self.fractions = _FLOATS & self.named
        self.functions = {token.value for token in tokens if token.is_function}
        self.types = set(self._types())
        numbers = [token.text.lower() for token in tokens if token.kind == "number"]
        has_literal = any(re.search("[def]", text.removesuffix("bd")) for text in numbers)
        self.has_floats = bool(self.fractions or _FLOATS & (self.functions | self.types)) or has_literal
        self.operators = {token.value for token in tokens if token.is_operator}

    def check(self) -> None:
        """Refuse expressions without an equivalent form."""
        called = [token.value for token in self.tokens if token.is_function]
        if unknown_functions := [name for name in called if name not in _EQUAL_FUNCTIONS]:
            fix = "Correct the name, write it in another way, or run it on Spark if Spark computes it from one row."
            raise NotOnTheEmbeddedEngine(f"is not known to compute the function {unknown_functions[0]} like Spark", fix)
        signs = {token.text for token in self.tokens if token.kind == "sign"}
        if signs & {"&", "|", "^"}:
            fix = "Write AND or OR between conditions: &, | and ^ combine bits. For bits, run it on Spark."
            raise NotOnTheEmbeddedEngine("gives operators on bits another precedence than Spark", fix)
        indices = range(len(self.tokens))
        if self._converts_texts() or any(self._mixes_types(n) or self._matches_number(n) for n in indices):
            raise NotOnTheEmbeddedEngine("converts a string that meets another type differently from Spark")
        if any(map(self._casts_integer_to_date, indices)):
            raise NotOnTheEmbeddedEngine("casts integers to dates, which Spark refuses", "Compare values of one type.")
        if unknown := sorted(self.types - _CASTS):
            raise NotOnTheEmbeddedEngine(f"casts to {unknown[0].upper()} differently from Spark")
        has_floats, has_decimals = self.has_floats, "decimal" in self.named
        if has_floats and has_decimals:
            raise NotOnTheEmbeddedEngine("compares decimals with floating-point numbers differently from Spark")
        converts = self.types & {*_INTEGERS, "boolean"} or {"ifnull", "nvl", "nvl2", "round"} & self.functions
        divides = has_decimals and {"/", "div"} & self.operators
        if divides or (has_decimals and converts) or (has_floats and "div" in self.operators):
            raise NotOnTheEmbeddedEngine("divides and converts fractions differently from Spark")
        if "float" in self.named and (self.operators or "round" in self.functions):
            raise NotOnTheEmbeddedEngine("computes with columns of FLOAT with another precision than Spark")
        if has_floats and ("string" in self.types or _WRITES_TEXT & self.functions or "||" in signs):
            raise NotOnTheEmbeddedEngine("writes floating-point numbers as text differently from Spark")
        if "text" in self.named and ("date" in self.types or self.functions & {"to_date", "date"}):
            raise NotOnTheEmbeddedEngine("reads dates differently from Spark")
        if _HASHES & self.functions and (has_floats or has_decimals or self.operators & {"+", "-", "*"}):
            raise NotOnTheEmbeddedEngine("hashes fractions and results of arithmetic differently from Spark")
        if "integer" in self.named and "*" in self.operators and self._multiplies_twice():
            raise NotOnTheEmbeddedEngine("does not notice when products of integers that meet in a value overflow")

    def _mixes_types(self, n: int) -> bool:
        """Return whether a function or CASE at a token mixes text with values of another type."""
        branches = [self.tokens[start:stop] for start, stop in self._branches(n)]
        has_text = any("text" in (branch[0].kind, branch[0].column) for branch in branches if len(branch) == 1)
        uncast = [token for branch in branches if "string" not in {each.value for each in branch} for token in branch]
        return has_text and any(token.kind == "number" or token.column not in (None, "text") for token in uncast)

    def _matches_number(self, n: int) -> bool:
        """Return whether a token is RLIKE after a column that is not text."""
        before = [token for token in self.tokens[max(n - 2, 0) : n] if token.value != "not"]
        is_pattern = self.tokens[n].value in ("regexp", "rlike")
        return is_pattern and any(token.column not in (None, "text") for token in before[-1:])

    def _casts_integer_to_date(self, n: int) -> bool:
        """Return whether a token compares a column of integers with a date, or is a function that makes it one."""
        token, before, after = self.tokens[n], self.tokens[max(n - 2, 0) : n], self.tokens[n + 1 : n + 3]
        if token.is_function and token.value in ("date", "to_date"):
            return after[-1].column == "integer"
        is_comparison = token.text in _COMPARISON_SIGNS or token.value == "between"
        if not (is_comparison and before and after):
            return False
        left, right = before[-1].column, after[0].column
        is_date_left = left == "date" or _is_date_literal(before)
        is_date_right = right == "date" or _is_date_literal(after)
        return (left == "integer" and is_date_right) or (is_date_left and right == "integer")

    def _converts_texts(self) -> bool:
        """Return whether a number in quotes or a column of strings may be compared with decimals or integers.

        Spark casts a string that meets decimals to a double; the engine rounds it to the decimal: 1 equals '0.5'. Spark
        casts one that meets integers to an integer, and stops at a fraction; the engine computes some integers as
        decimals or doubles (see `_widen`).
        """
        sums = bool(self.operators & {"+", "-", "*"})
        has_decimal = has_integer = has_text = has_fraction = is_between = False
        n = 0
        while n < len(self.tokens):
            token = self.tokens[n]
            ends = token.kind == "name" and token.value in _ENDS_OF_COMPARISONS
            if ends and not (is_between and token.value == "and"):
                has_decimal = has_integer = has_text = has_fraction = False
            is_count = token.is_function and token.value in _INTEGER_FUNCTIONS
            has_decimal |= token.column == "decimal"
            has_integer |= token.column == "integer" or is_count or token.value in _INTEGERS | {"div"}
            has_text |= token.column == "text" or (token.kind == "text" and bool(_NUMBER.match(token.value)))
            has_fraction |= token.kind == "text" and bool(_FRACTION.fullmatch(token.value))
            if ((has_decimal or (has_integer and sums)) and has_text) or (has_integer and has_fraction):
                return True
            is_between = token.value == "between" or (is_between and token.value != "and")
            n = 1 + (self.closing[n + 1] if is_count else n)
        return False

    def _multiplies_twice(self) -> bool:
        """Return whether there are two products between comparisons that are in no parentheses or CASE."""
        n_products = 0
        for n in self._within(0, len(self.tokens)):
            inner = self.tokens[n : self.closing.get(n, n) + 1]
            n_products = 0 if self._is_between_values(n) else n_products + sum(token.text == "*" for token in inner)
            if n_products > 1:
                return True
        return False

    def _branches(self, n: int) -> list[tuple[int, int]]:
        """Return the spans of the values that a function or CASE chooses from; empty for other tokens."""
        value = self.tokens[n].value
        if value in _CHOICES and self.tokens[n].is_call:
            return self._arguments(n, self.closing[n + 1])[_CHOICES[value] :]
        if value != "case" or n not in self.closing:
            return []
        spans, start = [], 0
        for m in self._within(n + 1, self.closing[n] + 1):
            value = self.tokens[m].value
            if start and value in ("when", "else", "end"):
                spans.append((start, m))
                start = 0
            if value in ("then", "else"):
                start = m + 1
        return spans

    def _types(self) -> Iterator[str]:
        for n, token in enumerate(self.tokens[:-1]):
            if token.text == "::":
                yield self.tokens[n + 1].value
            elif token.value in ("cast", "try_cast") and token.is_call:
                yield self.tokens[self._last_as(n) + 1].value

    def _last_as(self, n: int) -> int:
        return max(m for m in range(n, self.closing[n + 1]) if self.tokens[m].value == "as")

    def translate(self, start: int, stop: int) -> str:
        """Translate a span of tokens: values, and the keywords and comparisons between them."""
        texts, value, n = [], dict[int, str](), start
        while n < stop:
            part, end = self._part(n)
            if self._is_between_values(n):
                texts += [self._join(value, n), part]
                value = {}
            else:
                value[n] = part
            n = end
        return " ".join(filter(None, [*texts, self._join(value, stop)]))

    def _is_between_values(self, n: int) -> bool:
        token = self.tokens[n]
        if token.kind == "name":
            return token.value in _BETWEEN_VALUES and not (token.is_function or token.is_column)
        return token.kind == "sign" and token.text in _COMPARISONS

    def _join(self, value: Mapping[int, str], stop: int) -> str:
        """Join the translated parts of a value, given by their first tokens; arithmetic may yield -NaN or -0.0."""
        text, tokens = " ".join(value.values()), self.tokens[min(value, default=stop) : stop]
        is_computed = any(self.tokens[n].text in ("+", "-", "*", "/", "%") for n in value)
        is_double = any(token.value == "double" or token.column in _FLOATS for token in tokens)
        return _normalize(text) if is_computed and is_double else text

    def _part(self, n: int) -> tuple[str, int]:  # noqa: PLR0911 - a case for each kind of token
        """Translate a token, or a whole call, and return it with the index of the next token."""
        token = self.tokens[n]
        if token.is_function or (token.value == "try_cast" and token.is_call):
            end = self.closing[n + 1]
            return self._call(n, end) if token.is_function else self._try_cast(n, end), end + 1
        if n in self.closing:
            end = self.closing[n]
            gap = " " * (token.value == "case")
            return f"{token.text}{gap}{self.translate(n + 1, end)}{gap}{self.tokens[end].text}", end + 1
        if token.kind == "number":
            return self._number(n), n + 1
        if token.kind == "text" and token.text[0] * 2 in token.text[1:-1]:
            return _write_literal(token.value), n + 1
        if token.value in ("rlike", "regexp") and not token.is_call:
            return f"RLIKE {self._pattern(n + 1, n + 2)}", n + 2
        if token.column in ("double", "float"):
            return _normalize(token.text, token.column.upper()), n + 1
        return self._widen(token.text) if token.column == "integer" else token.text, n + 1

    def _widen(self, integer: str) -> str:
        """Cast an integer to the type in which integers are added and multiplied: that of the other numbers."""
        if not self.operators & {"+", "-", "*"}:
            return integer
        # With a division, integers would have to stay integers.
        divides = "/" in self.operators and (self.named & {"integer"} or self.functions & _INTEGER_FUNCTIONS)
        has_remainders = self.operators & {"%", "div"} or self.functions & {"mod", "pmod", "try_mod"}
        if divides or (self.has_floats and has_remainders):
            raise NotOnTheEmbeddedEngine("does not notice when sums or products of integers overflow")
        return f"CAST({integer} AS {'DOUBLE' if self.has_floats else 'DECIMAL(20, 0)'})"

    def _within(self, start: int, stop: int) -> Iterator[int]:
        """Yield the indices of the tokens of a span, without those within parentheses and CASE."""
        while start < stop:
            yield start
            start = 1 + self.closing.get(start, start)

    def _arguments(self, n: int, end: int) -> list[tuple[int, int]]:
        commas = [m for m in self._within(n + 2, end) if self.tokens[m].text == ","]
        starts = [n + 2, *(m + 1 for m in commas)]
        return list(zip(starts, [*commas, end], strict=True)) if end > n + 2 else []

    def _call(self, n: int, end: int) -> str:
        name, spans = self.tokens[n].value, self._arguments(n, end)
        texts = [self.translate(*span) for span in spans]
        if name in _WITH_PATTERN and len(spans) > 1:
            texts[1] = self._pattern(*spans[1], only_matches=name in ("regexp", "regexp_like", "rlike"))
            if name == "split" and len(spans) == 2 and not self.tokens[spans[1][0]].value:
                raise NotOnTheEmbeddedEngine("splits by an empty pattern differently from Spark")
        if name == "date_format":
            start, stop = spans[-1]
            if stop - start != 1 or not _WHOLE_DATE_FORMAT.fullmatch(self.tokens[start].value):
                raise NotOnTheEmbeddedEngine("formats dates like Spark only by yyyy, MM, dd, HH, mm and ss")
        if name == "extract" and self.tokens[n + 2].value not in _PARTS_OF_DATES:
            raise NotOnTheEmbeddedEngine(f"extracts {self.tokens[n + 2].text} differently from Spark")
        is_length = len(spans) == (2 if name in ("left", "right") else 3)
        if name in ("left", "right", "substr", "substring") and is_length and "-" in texts[-1]:
            raise NotOnTheEmbeddedEngine("takes no negative lengths")
        if name == "isnan":
            return f"coalesce(isnan({texts[0]}), false)"
        if name == "array_contains" and len(texts) == 2:  # NULL if the value is, or is missing and an element is
            array, value = texts
            return (
                f"CASE WHEN ({value}) IS NULL THEN NULL WHEN array_contains({array}, {value}) THEN true WHEN "
                f"size(array_compact({array})) < size({array}) THEN NULL ELSE array_contains({array}, {value}) END"
            )
        written = f"{self.tokens[n].text}({', '.join(texts)})"
        if name in _INTEGER_FUNCTIONS:
            return self._widen(written)
        return _normalize(written) if name in ("mod", "pmod", "try_mod") and self.fractions else written

    def _pattern(self, start: int, stop: int, only_matches: bool = True) -> str:
        if stop - start != 1 or stop > len(self.tokens) or self.tokens[start].kind != "text":
            raise NotOnTheEmbeddedEngine("only takes patterns that are literals")
        try:
            return _write_literal(to_rust(self.tokens[start].value, only_matches))
        except ValueError as error:
            raise NotOnTheEmbeddedEngine(str(error)) from None

    def _try_cast(self, n: int, end: int) -> str:
        before_type = self._last_as(n)
        value, kind = self.translate(n + 2, before_type), self.translate(before_type + 1, end)
        value_tokens = self.tokens[n + 2 : before_type]
        is_text = any(token.column == "text" for token in value_tokens) and all(
            token.column == "text" or token.text.lower() in ("trim", "(", ")") for token in value_tokens
        )
        if kind.lower() in _INTEGERS - {"bigint", "long"} and "integer" in self.named:
            raise NotOnTheEmbeddedEngine(f"lets integers overflow in try_cast to {kind.upper()}")
        return f"try_cast({without_suffix(value) if kind.lower() in _FLOATS and is_text else value} AS {kind})"

    def _number(self, n: int) -> str:
        """Translate a number; a decimal becomes the double that Spark uses, unless decimals are meant."""
        text = self.tokens[n].text
        if text.upper().endswith("BD"):
            if self.has_floats:
                raise NotOnTheEmbeddedEngine("compares decimals with floating-point numbers differently from Spark")
            return text
        if "." not in text or text[-1].upper() in "DF" or "e" in text.lower() or "decimal" in self.named:
            return text
        is_term = any(token.is_operator for token in self.tokens[max(n - 1, 0) : n + 2])
        if is_term and not self.fractions:
            raise NotOnTheEmbeddedEngine(f"computes with decimals such as {text} differently from Spark")
        return f"{text}D"


def _normalize(value: str, kind: str = "DOUBLE") -> str:
    """Drop the signs of NaN and zero: the engine takes -NaN for the least number, and IN distinguishes -0.0."""
    return f"(nanvl({value}, CAST('NaN' AS {kind})) + CAST(0 AS {kind}))"


def without_suffix(value: str) -> str:
    """Return SQL for a string without the type suffix that Java, and so Spark, allows in numbers: ``1.5d``, ``1f``."""
    number = r"^(\\s*[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF](\\s*)$"
    return f"regexp_replace({value}, '{number}', '$1$2')"


def _match_pairs(tokens: Sequence[_Token]) -> dict[int, int]:
    """Return the index of the closing token for each parenthesis, bracket and CASE."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for n, token in enumerate(tokens):
        in_case = bool(opened) and tokens[opened[-1]].value == "case"
        is_bracket = token.text in (")", "]")
        if token.text in ("(", "[") or (token.kind == "name" and token.value == "case" and not token.is_call):
            opened.append(n)
        elif is_bracket or (in_case and token.kind == "name" and token.value == "end"):
            if not opened or in_case == is_bracket:
                raise NotOnTheEmbeddedEngine(*_UNBALANCED)
            closing[opened.pop()] = n
    if opened:
        raise NotOnTheEmbeddedEngine(*_UNBALANCED)
    return closing
