r"""Translate Java's regular expressions, which Spark uses, to Rust's, which the embedded engine uses.

They look alike but silently differ: Rust's ``\w``, ``\d``, ``\s`` and ``(?i)`` are those of Unicode and Java's of
ASCII, Java's ``.`` stops at every line terminator, and its ``$`` matches before the last one.
"""

from __future__ import annotations

import re

_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\x0B\f\r"}
_PLAIN_ESCAPES = set("tnrf")
_CATEGORY = re.compile(r"[pP](?:[LMNPSZC]|\{[A-Z][a-z]?\})")
_CODE = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}")
_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})(?P<kind>[+?]?)")


def to_rust(pattern: str, only_matches: bool = True) -> str:
    r"""Translate a Java pattern to a Rust pattern that matches the same.

    If it `only_matches`, only whether there is a match counts, not where it ends, which may be before ``$``. Raises
    `ValueError` with the rule if there is no such pattern, as in "has no regular expressions with look-around".
    """
    return _Pattern(pattern, only_matches).write()


class _Pattern:
    def __init__(self, pattern: str, only_matches: bool) -> None:
        self.pattern, self.only_matches, self.n = pattern, only_matches, 0
        self.ignores_case = self.is_unicode = self.dot_matches_all = False

    def write(self) -> str:
        parts = []
        flags = re.match(r"\(\?([a-z]+)\)", self.pattern)
        if flags:
            if set(flags[1]) - set("ius"):
                raise ValueError(f"has no flags (?{flags[1]}) in regular expressions like Java's")
            self.ignores_case, self.is_unicode, self.dot_matches_all = (flag in flags[1] for flag in "ius")
            self.n = flags.end()
        while self.n < len(self.pattern):
            parts.append(self._next())
        prefix = "(?i)" if self.ignores_case and self.is_unicode else ""
        return prefix + "".join(parts)

    def _next(self) -> str:  # noqa: PLR0911 - a case for each sign
        char, rest = self.pattern[self.n], self.pattern[self.n :]
        if char == "(":
            opening = "(?:" if rest.startswith("(?:") else "("
            if rest.startswith("(?") and opening == "(":
                raise ValueError("has no regular expressions with look-around, named groups or flags within them")
            self.n += len(opening)
            return opening
        if match := _REPEAT.match(rest):
            if match["kind"] == "+":
                raise ValueError("has no possessive repetitions in regular expressions")
            self.n += match.end()
            return match[0]
        if char == "{":
            raise ValueError("reads a brace in a regular expression differently from Java")
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        self.n += 1
        if char == ".":
            return r"(?s:.)" if self.dot_matches_all else f"[^{_ENDS}]"
        if char == "$":
            if not self.only_matches:
                raise ValueError("matches $ elsewhere than Java")
            return rf"(?:\r\n|[{_ENDS}])?\z"
        return f"[{char.lower()}{char.upper()}]" if self._has_two_cases(char) else char

    def _has_two_cases(self, char: str) -> bool:
        """Return whether a letter matches in both cases: without (?u), Java ignores only the case of ASCII letters."""
        return self.ignores_case and not self.is_unicode and char.isascii() and char.isalpha()

    def _escape(self) -> str:
        if self.n + 1 >= len(self.pattern):
            raise ValueError("finds no character after the last \\ of a regular expression")
        rest = self.pattern[self.n + 1 :]
        char = rest[0]
        self.n += 2
        if char in _CLASSES:
            return f"[{_CLASSES[char]}]"
        if char.lower() in _CLASSES:
            return f"[^{_CLASSES[char.lower()]}]"
        if char in "bBAz" or char in _PLAIN_ESCAPES:
            return f"\\{char}"
        if match := _CATEGORY.match(rest) or _CODE.match(rest):
            if self.ignores_case and char in "xu":
                raise ValueError("ignores case differently from Java")
            self.n += match.end() - 1
            return f"\\{match[0]}"
        if char.isalnum():
            raise ValueError(f"has no \\{char} in regular expressions like Java's")
        return re.escape(char)

    def _class(self) -> str:
        end, parts, has_letters = self.n + 1, [], False
        if self.pattern[end : end + 1] == "^":
            parts, end = ["^"], end + 1
        first = end
        while end < len(self.pattern) and (self.pattern[end] != "]" or end == first):
            char = self.pattern[end]
            if char == "[" or self.pattern.startswith("&&", end) or (char == "]" and end == first):
                raise ValueError("has no classes within classes in regular expressions like Java's")
            if char == "\\":
                escaped = self.pattern[end + 1 : end + 2]
                if escaped in _CLASSES:
                    parts.append(_CLASSES[escaped])
                elif escaped in _PLAIN_ESCAPES or (escaped and not escaped.isalnum()):
                    parts.append(f"\\{escaped}")
                else:
                    raise ValueError(f"has no \\{escaped} in a class of a regular expression like Java's")
                end += 2
                continue
            if char in "~-&" and self.pattern[end + 1 : end + 2] == char:
                raise ValueError("reads two signs in a class of a regular expression differently from Java")
            parts.append(char)
            has_letters = has_letters or self._has_two_cases(char)
            end += 1
        if end >= len(self.pattern):
            raise ValueError("finds no end of a class in a regular expression")
        self.n = end + 1
        body = "".join(parts)
        if not has_letters:
            return f"[{body}]"
        inner = body.removeprefix("^")
        is_odd = re.search(r"[^A-Za-z0-9 _^\-]|(?<![A-Za-z0-9])-(?=.)|-(?![A-Za-z0-9])(?=.)", body)
        if is_odd or any(a.isupper() != b.isupper() for a, b in re.findall(r"([A-Za-z])-([A-Za-z])", inner)):
            raise ValueError("ignores case in a class of a regular expression differently from Java")
        lower, upper = inner.lower(), inner.upper()
        return f"[{'^' if body.startswith('^') else ''}{lower}{upper if not upper.startswith('-') else upper[1:]}]"
