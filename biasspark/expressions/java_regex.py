r"""Translate Java's regular expressions, which Spark uses, to Rust's, which the embedded engine uses.

They look alike but silently differ: Rust's ``\w``, ``\d``, ``\s`` and ``(?i)`` are those of Unicode and Java's of
ASCII, Java's ``.`` stops at every line terminator, and its ``$`` matches before the last one.
"""

from __future__ import annotations

import re

_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "_A-Za-z0-9", "s": r" \t-\r"}
"""Each ends with a range: a hyphen after a range is itself a member, as it is after a class in Java."""
_PLAIN_ESCAPES = set("tnrf")
_PART = re.compile(
    r"""(?P<group>\((?:\?:)?)
    |(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?)
    |(?P<class>\[(?P<content>\^?(?:\\.?|[^\]\\])*)(?P<end>\]?))
    |\\(?P<escape>[pP](?:[LMNPSZC]|\{[A-Z][a-z]?\})|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.?)
    |(?P<char>.)""",
    re.DOTALL | re.VERBOSE,
)
EQUAL_TO_I = "iI\u0130\u0131"
"""With (?iu), Java ignores the dots of these letters, and Rust does not."""
_ODD_LETTERS = set("ßẞΐ\u1fd3ΰ\u1fe3ﬅﬆƛ\ua7dc")
_NESTED = "has no classes within classes in regular expressions like Java's"
_PART_OF_CLASS = re.compile(r"\\(?P<escape>.?)|(?P<nested>\[|&&)|(?P<double>~~|--)|(?P<char>.)", re.DOTALL)


def to_rust(pattern: str, only_matches: bool = True) -> str:
    r"""Translate a Java pattern to a Rust pattern that matches the same.

    If it `only_matches`, only whether there is a match counts, not where it ends, which may be before ``$``. Raises
    `ValueError` with the rule if there is no such pattern, as in "does not support look-around".
    """
    flags, start = _read_flags(pattern)
    ignores_case = {"i", "u"} <= flags
    has_cases = "i" in flags and "u" not in flags  # without (?u), Java ignores only the case of ASCII letters
    plain = {".": r"(?s:.)" if "s" in flags else f"[^{_ENDS}]"}
    if ignores_case:
        plain |= dict.fromkeys(EQUAL_TO_I, f"[{EQUAL_TO_I}]")
    parts = ["(?i)"] if ignores_case else []
    if only_matches:
        plain["$"] = rf"(?:\r\n|[{_ENDS}])?\z"
    for part in _PART.finditer(pattern, start):
        match part.lastgroup, part[0]:
            case "group", text:
                if text == "(" and pattern.startswith("?", part.end()):
                    raise ValueError("does not support look-around, named groups or inner flags in regular expressions")
            case "repeat", text:
                if len(text) > 1 and text.endswith("+"):
                    raise ValueError("does not support possessive quantifiers in regular expressions")
            case "class", _:
                text = _write_class(part["content"], bool(part["end"]), has_cases, ignores_case)
            case "escape", _:
                text = _write_escape(part["escape"], "i" in flags)
            case _, "{":
                raise ValueError("reads a brace in a regular expression differently from Java")
            case _, "$" if not only_matches:
                raise ValueError("matches $ elsewhere than Java")
            case _, char:
                is_letter = has_cases and char.isascii() and char.isalpha()
                text = f"[{char.lower()}{char.upper()}]" if is_letter else plain.get(char, char)
        parts.append(text)
    return "".join(parts)


def _read_flags(pattern: str) -> tuple[set[str], int]:
    """Return the flags at the start of a pattern, and where they end."""
    start = re.match(r"\(\?([a-z]+)\)", pattern)
    if start is None:
        return set(), 0
    flags = set(start[1])
    if flags - set("ius"):
        raise ValueError(f"has no flags (?{start[1]}) in regular expressions like Java's")
    if flags >= {"i", "u"} and (odd := set(pattern) & _ODD_LETTERS):
        raise ValueError(f"ignores the case of {min(odd)} differently from Java")
    return flags, start.end()


def _write_escape(escaped: str, ignores_case: bool) -> str:
    """Translate what follows a backslash."""
    if not escaped:
        raise ValueError("finds no character after the last \\ of a regular expression")
    if escaped.lower() in _CLASSES:
        return f"[{'^' if escaped.isupper() else ''}{_CLASSES[escaped.lower()]}]"
    if len(escaped) > 1:  # a category or a code
        if ignores_case and escaped[0] in "xu":
            raise ValueError("ignores case differently from Java")
        return f"\\{escaped}"
    if escaped in "bBAz" or escaped in _PLAIN_ESCAPES:
        return f"\\{escaped}"
    if escaped.isalnum():
        raise ValueError(f"has no \\{escaped} in regular expressions like Java's")
    return re.escape(escaped)


def _write_class(content: str, has_end: bool, has_cases: bool, ignores_case: bool) -> str:
    """Translate what is within the brackets of a class."""
    negation = "^" if content.startswith("^") else ""
    if has_end and content == negation:  # then the first bracket is a member
        raise ValueError(_NESTED)
    parts, has_letters = [], False
    for part in _PART_OF_CLASS.finditer(content, len(negation)):
        char, escaped = part["char"], part["escape"]
        if part["nested"]:
            raise ValueError(_NESTED)
        if part["double"]:
            raise ValueError("reads two signs in a class of a regular expression differently from Java")
        if char:
            has_letters |= has_cases and char.isascii() and char.isalpha()
            parts.append(char)
        elif escaped in _CLASSES:
            parts.append(_CLASSES[escaped])
        elif escaped in _PLAIN_ESCAPES or (escaped and not escaped.isalnum()):
            parts.append(f"\\{escaped}")
        else:
            raise ValueError(f"has no \\{escaped} in a class of a regular expression like Java's")
    if not has_end:
        raise ValueError("finds no end of a class in a regular expression")
    body = "".join(parts)
    if ignores_case and _matches_i(body):
        body = f"{EQUAL_TO_I}i-i{body}"  # it may begin or end with a hyphen
    if not has_letters:
        return f"[{negation}{body}]"
    is_odd = re.search(r"[^A-Za-z0-9 _^\-]|(?<![A-Za-z0-9])-(?=.)|-(?![A-Za-z0-9])(?=.)", body)
    if is_odd or any(a.isupper() != b.isupper() for a, b in re.findall(r"([A-Za-z])-([A-Za-z])", body)):
        raise ValueError("ignores case in a class of a regular expression differently from Java")
    return f"[{negation}{body.lower().removesuffix('-')}{body.upper().removeprefix('-')}]"


def _matches_i(body: str) -> bool:
    """Return whether a class with these members matches i, in either case."""
    try:
        return bool(re.match(f"[{body}]", "i", re.IGNORECASE))
    except re.error:
        raise ValueError("finds a range without members in a regular expression") from None
