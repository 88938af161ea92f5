"""SQL and regular expressions as the embedded engine is given them; ``tests/embedded`` runs them."""

from __future__ import annotations

import re

import pytest

from biasspark.expressions.embedded_sql import Kind, NotOnTheEmbeddedEngine, to_embedded_sql, without_suffix
from biasspark.expressions.java_regex import to_rust

COLUMNS: dict[str, Kind] = {
    "score": "double", "half": "float", "n": "integer", "m": "decimal", "text": "text", "day": "date",
    "values": "other", "is": "boolean", "case": "integer", "hour": "integer"
}  # fmt: skip


def translate(text: str) -> str:
    return " ".join(to_embedded_sql(text, COLUMNS).split())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("score > 0.7", "> 0.7D"),
        ("score IN (0)", "+ CAST(0 AS DOUBLE)) IN"),
        ("-score > 1", "(nanvl(- (nanvl(score,"),
        ("score - 1 > 0 AND is", "+ CAST(0 AS DOUBLE)) - 1, CAST('NaN' AS DOUBLE)) + CAST(0 AS DOUBLE)) > 0 AND is"),
        ("CASE WHEN is THEN score END * 2 > 1", "(nanvl(CASE WHEN is THEN (nanvl(score,"),
        ("pmod(score, 2) > 1", "(nanvl(pmod((nanvl(score,"),
        ("coalesce(text, 'a') = 'a' AND n > 1", "coalesce(text, 'a')"),
        ("text = '0.5' AND n > '1'", "text = '0.5'"),
        ("coalesce(CAST(n AS STRING), 'a') = '1'", "CAST (n AS STRING)"),
        ("CASE WHEN score > 0 THEN 'p' WHEN score < 0 THEN 'n' END = 'p'", "THEN 'p' WHEN"),
        ("array_contains(values, text)", "CASE WHEN (text) IS NULL THEN NULL"),
        ("score BETWEEN -0.5 AND .5", "- 0.5D AND .5D"),
        ("length(text) / 10 > 0.5", "> 0.5D"),
        ("m > 0.7 AND text IN ('a', '1')", "('a' , '1')"),
        ("n * 2 > length(text) AND text = '4'", "text = '4'"),
        ("n * 2 > n * 3 OR n * 4 BETWEEN n * 5 AND n * 6", " OR "),
        ("hour * n > 5", "CAST(hour AS DECIMAL(20, 0)) * CAST(n AS DECIMAL(20, 0))"),
        ("score * hour > 3", "CAST(hour AS DOUBLE), CAST('NaN' AS DOUBLE))"),
        ("n > 0.7", "n > 0.7D"),
        ("n + 1 > 2", "CAST(n AS DECIMAL(20, 0)) + 1 > 2"),
        ("length(text) * 2 > n", "CAST(length(text) AS DECIMAL(20, 0)) * 2"),
        ("n * 2 > score", "CAST(n AS DOUBLE) * 2"),
        ("n > 1 AND day > DATE'2026-01-15' AND text = '1'", "n > 1 AND day"),
        ("n IN ('1', '2') AND date_add(day, n) > DATE'2026-01-15'", "date_add(day, n) >"),
        ("day + INTERVAL 1 DAY > now()", "day + INTERVAL 1 DAY > now()"),
        ("text RLIKE '\\\\w+'", r"RLIKE '[_A-Za-z0-9]+'"),
        ("text = 'it''s'", r"text = 'it\'s'"),
        ("`score` > 1 -- 0.5", "> 1"),
        ("NOT isnan(score)", "coalesce(isnan("),
        ("text = 'sqrt(2)' /* floor(1) */", "text = 'sqrt(2)'"),
        ("`case` > 1", "`case` > 1"),
        ("n < CAST('-27.5' AS DOUBLE) OR n >= CAST('1e+22' AS DOUBLE)", "n < - 27.5D OR n >= 1e+22D"),
        ("text IN (concat('O', chr(39), 'B', chr(92)), chr(36))", r"text IN ('O\'B\\' , '$')"),
        ("concat('a', text) = concat('a', 'b')", "concat('a', text) = 'ab'"),
        ("CASE WHEN n > 1 THEN true END", "CASE WHEN n > 1 THEN true END"),
        ("try_cast(trim(text) AS DOUBLE) > 1", without_suffix("trim(text)")),
    ],
)
def test_what_means_the_same(text: str, part: str) -> None:
    assert part in translate(text)


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(score) > 1",
        "half + 1 > 2",
        "round(m) = '1'",
        "try_cast(n AS SMALLINT) = 1",
        "nvl(m, 1) > 0.5",
        "m div 2 = 1",
        "coalesce(score, '0.5') > 0.5",
        "m = '0.5'",
        "m NOT IN (0, '0.5')",
        "m BETWEEN 0 AND ' nan'",
        "CASE m WHEN '.5' THEN true END",
        "text = 'a' OR m > text",
        "n NOT RLIKE '1'",
        "score > 0.5 AND CASE length(text) + 1 WHEN '2.5' THEN true END",
        "least(m, text) < 1.25",
        "'1.0' = n",
        "if(n > 1, '1', n) = '1'",
        "CASE WHEN is THEN CASE WHEN is THEN 'a' ELSE 1 END END = 'a'",
        "nvl(day, '2026-1-15') = day",
        "n >= DATE'2026-01-15'",
        "to_date(n) = '2026-01-15'",
        "day < n",
        "CASE WHEN score > 1 THEN 1",
        "n * 0.1 > 1",
        "m > score",
        "m / 3 > 1",
        "CAST(m AS INT) = 1",
        "CAST(n AS DECIMAL(4, 2)) > 1",
        "CAST(score AS STRING) = '1.0'",
        "concat(text, score) = 'a1.0'",
        "try_cast(text AS DATE) > '2026-01-01'",
        "(n + n) / 2 > 1",
        "n * n * n > 1",
        "n * n + n * n > 1",
        "n * hour * m > 1",
        "n * hour * n > 1",
        "CASE WHEN n > 1 THEN n * n WHEN n < 1 THEN n END * n > 1",
        "(n * n > 1 AND n * n < 9)",
        "pmod(hash(score), 2) = 1",
        "date_format(day, 'EEEE') = 'Monday'",
        "extract(DOW FROM day) = 1",
        "text RLIKE 'a(?=b)'",
        "text RLIKE text",
        "size(split(text, '')) > 1",
        "substring(text, 1, -1) = ''",
        "n & 1 = 1",
        "n IN (SELECT 1)",
        f"n < {10**38}",
        "text LIKE ANY ('a%', 'b%')",
        "`rand`() > 1",
        "(score > 1",
        "CASE WHEN (n > 1 THEN true END)",
        " OR ".join(["n = 1"] * 1700),
        f"{'NOT ' * 5000} n > 1",
        f"{'(' * 1000}n > 1{')' * 1000}",
    ],
)
def test_what_has_no_such_form_is_refused(text: str) -> None:
    with pytest.raises(NotOnTheEmbeddedEngine):
        to_embedded_sql(text, COLUMNS)


def test_deep_nesting_takes_no_time() -> None:
    """Each level is translated once."""
    deep = "score"
    for n in range(30):
        deep = f"coalesce(({deep}), {n})"
    assert translate(f"{deep} > 1").endswith(", 29) > 1")


@pytest.mark.parametrize(
    ("text", "words", "is_advised"),
    [
        ("nofunc(n) > 1", "if Spark", True),  # it may not compute the expression either
        ("n & 1 = 1", "if Spark", False),
        ("n < 1 & n > 0", "AND", True),  # joined as in pandas
    ],
)
def test_what_to_write_in_its_place_is_advised(text: str, words: str, is_advised: bool) -> None:
    with pytest.raises(NotOnTheEmbeddedEngine) as caught:
        to_embedded_sql(text, COLUMNS)
    assert (words in caught.value.fix) == is_advised


@pytest.mark.parametrize(
    ("pattern", "matching", "unmatched"),
    [
        (r"\bgay\b", ["a gay man"], ["gaya"]),
        (r"^\w+$", ["ab_1", "ab\n"], ["ä", "a b", "ab\nc"]),
        (r"\d", ["1"], ["\u0661"]),
        (r"\s", [" ", "\t"], ["\u00a0"]),
        (r"(?i)k", ["K", "k"], ["\u212a"]),
        (r"(?iu)^[h-j]i$", ["\u0130\u0131", "II"], ["k\u0131"]),
        (r"(?i)[a-k]s", ["KS", "as"], ["\u212as", "a\u017f"]),
        (r"a.b", ["axb"], ["a\rb", "a\nb", "a\u2028b"]),
        (r"(?s)a.b", ["a\rb", "a\nb"], ["ab"]),
        (r"^a$", ["a", "a\n", "a\r\n", "a\u2028"], ["a\n\n", "ab"]),
        (r"[\w.]+x", ["a.x"], ["äx"]),
        (r"[\s-_]", ["-", "_", " ", "\x0b"], ["A", "5", "\x0e"]),
        (r"[\w-\.]", ["-", ".", "_", "9"], ["/", "`"]),
        (r"[\w-z]", ["-"], ["`"]),
        (r"(?i)^[a\d-]$", ["-", "A", "1"], ["b", "B"]),
        (r"(?i)^[a-]$", ["-", "A"], ["B"]),
        (r"(?iu)^[h-j_-]$", ["-", "\u0130", "_"], ["`"]),
    ],
)
def test_patterns_match_as_in_java(pattern: str, matching: list[str], unmatched: list[str]) -> None:
    """Python's `re`, like Rust, knows letters of Unicode, and is given the classes that the translation writes out."""
    written = re.sub(r"\\x\{([0-9a-f]+)\}", lambda match: f"\\u{int(match[1], 16):04x}", to_rust(pattern)).replace(
        r"\z", r"\Z"
    )
    assert [text for text in matching if not re.search(written, text)] == []
    assert [text for text in unmatched if re.search(written, text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "a(?=b)",
        "(?<!a)b",
        r"(a)\1",
        "a++",
        "[[:alpha:]]",
        "[a&&b]",
        r"\h",
        r"\Qa\E",
        "{",
        "a(?i)b",
        "(?m)^a",
        "[",
        "(?iu)ß",
        "(?iu)[z-a]",
    ],
)
def test_patterns_without_such_a_form(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        to_rust(pattern)
