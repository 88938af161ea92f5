"""Errors, their exit codes, and their messages.

An error has all faults at once. A fault of a configuration or of keyword arguments is a `Fault`: the key, its value,
the rule that it breaks, and the fix. A `Language` formats it for a TOML file or for a function call. Any other fault is
a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from biasspark.text import describe_type, quote, show_key, show_value

GATE_FAILED, INTERRUPTED, TERMINATED = 5, 130, 143
REDACTED = "(redacted)"
ERROR_CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")
_VALUE_CONDITION = re.compile(
    r"\[([A-Z][A-Z0-9_.]*)\](?:(?!SQLSTATE: ).)*SQLSTATE: (?:22|P0)\w{3}"
    # Spark 3.5 has no SQLSTATE
    r"|org\.apache\.spark\.Spark(?:Arithmetic|ArrayIndexOutOfBounds|DateTime|NumberFormat)Exception: "
    r"\[([A-Z][A-Z0-9_.]*)\]",
    re.DOTALL,
)
_RAISED_BY_USER = re.compile(  # by raise_error or assert_true, without a condition in Spark 3.5
    r"java\.lang\.RuntimeException\b(?:(?!\n\tat ).)*\n\tat org\.apache\.spark\.sql\.catalyst\.expressions\."
    r"(?:RaiseError\.|GeneratedClass\$)",
    re.DOTALL,
)
_URI = re.compile(r"""[a-z][a-z0-9+.-]*://(?:[^/@:\[\s"]*:[^/@\n"]*@)?[^\s"]*""", re.IGNORECASE)
"""Up to a blank or a quote. A password before the host may have blanks."""
# An Amazon key may have slashes. Otherwise a colon, digits and a slash are a port, which buckets do not have.
_USERINFO = re.compile(
    r"^(?P<scheme>s3[an]?://|[^:]*://(?![^/@:]*:[0-9]{1,5}/))[^/@:\[]*:.*(?=@)", re.IGNORECASE | re.DOTALL
)
_SECRET_IN_QUERY = re.compile(
    r"(?P<name>[?&;](?:[\w.%-]*(?:token|key|pass|pwd|secret|signature|credential)[\w.%-]*|(?:[\w.%-]*[-_.])?sig)=)[^&]+",
    re.IGNORECASE,
)

# ---- faults

KeyPath: TypeAlias = tuple[str | int, ...]
"""A key of the configuration: ``("label", "threshold")``, ``("gate", "rule", "floor", "min")``. Entries of lists are
counted from 1; entries of lists of tables are identified by name, if they have one. ``()`` is no key."""


class Line(int):
    """The number of a line of a file, within a path."""


ABSENT: Final = object()
"""The value of a fault that shows no value: the key is missing, or its value may be a secret."""


@dataclass(frozen=True)
class Key:
    """A key of the configuration within a sentence."""

    path: KeyPath


@dataclass(frozen=True)
class Setting:
    """A key with an example value; a table with some of its keys."""

    path: KeyPath
    value: object


@dataclass(frozen=True)
class Value:
    """A value within a sentence."""

    value: object


@dataclass(frozen=True)
class Words:
    """Words that differ between a TOML file and a function call."""

    toml: str
    call: str


Text: TypeAlias = "str | Key | Setting | Value | Words | tuple[Text, ...]"
"""A sentence, or its parts."""


@dataclass(frozen=True, repr=False)
class Fault:
    """A fault of the value of a key; the value is `ABSENT` if it is not shown.

    The rule says in whole sentences what must hold or what is wrong, the first in lower case if there is no value. The
    fix is a whole sentence.
    """

    path: KeyPath
    value: object
    rule: Text
    fix: Text = ""

    def __str__(self) -> str:
        return TOML.describe(self)

    def __repr__(self) -> str:
        return f"Fault({str(self)!r})"  # with secrets redacted


class Language:
    """Formats faults for a TOML file: ``[ranking] engine = "fast". It must be ...``."""

    is_call = False
    """Whether faults are those of a function call."""

    def describe(self, fault: Fault | str) -> str:
        """Format a fault in one line: the key, its value, the rule and the fix."""
        if isinstance(fault, str):
            return fault
        where = self.key(fault.path)
        if fault.value is not ABSENT:
            where += f" = {self.value(fault.value)}."
        elif where:
            where += ":"
        return " ".join(filter(None, (where, self.text(fault.rule, fault.path), self.text(fault.fix, fault.path))))

    def text(self, text: Text, path: KeyPath) -> str:
        """Format a string about the key at a path."""
        match text:
            case tuple():
                return "".join(self.text(part, path) for part in text)
            case Key():
                return self.near_key(text.path, path)
            case Setting():
                return self.setting(text, path)
            case Value():
                return self.value(text.value)
            case Words():
                return text.call if self.is_call else text.toml
        return text

    def key(self, path: KeyPath) -> str:
        """Format a key: ``[ranking] engine``, ``[label]``, ``[[gate.rule]] "floor" min``."""
        table, inner = "", path
        if path[:2] == ("gate", "rule") and len(path) > 2:
            table = f"[[gate.rule]] {quote(path[2]) if isinstance(path[2], str) else path[2]}"
            inner = path[3:]
        names = [show_key(name) for name in inner if isinstance(name, str)]
        if names and not table:
            outer, names = (names, []) if len(names) == 1 else (names[:-1], names[-1:])
            table = f"[{'.'.join(outer)}]"
        entries = [f", {'line' if isinstance(n, Line) else 'entry'} {n}" for n in inner if isinstance(n, int)]
        return " ".join(filter(None, [table, *names])) + "".join(entries)

    def near_key(self, key: KeyPath, path: KeyPath) -> str:
        """Format a key, without its table if that is the table of the fault at a path."""
        table = key[:-1]
        is_near = table != () and table in (path, path[:-1])
        return show_key(key[-1]) if is_near else self.key(key)

    def setting(self, setting: Setting, path: KeyPath) -> str:
        """Format a key and its value, or some keys of a table, in a string about the key at a path."""
        if not isinstance(setting.value, Mapping):
            return f"{self.near_key(setting.path, path)} = {self.value(setting.value)}"
        settings = [Setting((*setting.path, key), value) for key, value in setting.value.items()]
        return ", ".join(self.setting(inner, path) for inner in settings)

    def value(self, value: object) -> str:
        """Format a value without secrets."""
        return show_value(redact(value) if isinstance(value, str) else value)


TOML = Language()


def type_of(value: object) -> Text:
    """Return the type of a value: ``text``, ``a whole number``, ..."""
    return Words("a table", "a dict") if isinstance(value, Mapping) else describe_type(value)


def redact(text: str) -> str:
    """Drop the secrets of URIs: users with passwords, to the last possible ``@``, and keys in queries."""
    return _URI.sub(
        lambda uri: _SECRET_IN_QUERY.sub(rf"\g<name>{REDACTED}", _USERINFO.sub(rf"\g<scheme>{REDACTED}", uri[0])), text
    )


# ---- errors


class BiasSparkError(Exception):
    """An error with one or more `faults`, each a `Fault` or a sentence. ``str`` formats them in its `language`."""

    exit_code = 1

    def __init__(self, *faults: Fault | str) -> None:
        super().__init__(*faults)
        self.faults = faults
        self.language = TOML

    @property
    def messages(self) -> tuple[str, ...]:
        """The formatted faults."""
        return tuple(map(self.language.describe, self.faults))

    def __str__(self) -> str:
        return "\n".join(self.messages)


class ConfigError(BiasSparkError):
    """The command line, the configuration or a keyword is wrong: nothing was read."""

    exit_code = 2


class InputError(BiasSparkError):
    """The corpus is not what the configuration says: nothing was published."""

    exit_code = 3


class NoRows(InputError):
    """There is no row for the path, filter and run date."""


class InputWarning(UserWarning):
    """A warning of public functions about the corpus or about numbers computed from it."""


class PublishConflict(BiasSparkError):
    """Another run of the same job published the same date and corpus in the meantime."""

    exit_code = 4


def corpus_changed(what: str) -> InputError:
    """Return the error for a corpus that changed between two reads."""
    return InputError(f"corpus: {what}. The corpus must not change while it is read. Run again when it is complete.")


def find_error_condition(error: BaseException | None) -> str | None:
    """Return the Spark error condition, such as ``TABLE_OR_VIEW_NOT_FOUND``, of an exception or of its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for holder in (error, getattr(error, "java_exception", None)):
            if condition := _condition_of(holder):
                return condition
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def _condition_of(holder: object) -> str | None:
    # getCondition is the name in Spark 4, getErrorClass in Spark 3.5; PySpark 4 warns about the latter.
    older = () if hasattr(type(holder), "getCondition") else ("getErrorClass",)
    for method in ("getCondition", *older):
        with suppress(Exception):  # there is no such method, or the JVM is gone
            condition = getattr(holder, method)()
            if isinstance(condition, str) and ERROR_CONDITION.fullmatch(condition):
                return condition
    return None


def has_condition(error: BaseException, *conditions: str) -> bool:
    """Return whether an error has one of these Spark conditions, or names it in its text, as in older versions."""
    condition = find_error_condition(error)
    return condition in conditions if condition else any(f"[{condition}]" in str(error) for condition in conditions)


def innermost_cause(error: BaseException) -> str:
    """Return the innermost cause of an error in the JVM, in one line."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("An error occurred while")]
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[:1] or [type(error).__name__]
    return redact(causes[-1].removeprefix("Caused by: ").removeprefix(": ").rstrip("."))


def find_condition_of_a_value(text: str) -> str | None:
    """Return the Spark condition of a message that quotes a value, such as ``CAST_INVALID_INPUT``, or None."""
    if match := _VALUE_CONDITION.search(text):
        return match[1] or match[2]
    return "USER_RAISED_EXCEPTION" if _RAISED_BY_USER.search(text) else None


# ---- missing libraries of extras


def how_to_install(extra: str) -> str:
    """Return how to get an extra. The package may come from a clone or from a wheel, and is not on PyPI."""
    return f"install biasspark with the extra {extra} (in a clone: pip install '.[{extra}]')"


GET_AN_ENGINE = (
    f"For the embedded one, without Java, {how_to_install('embedded')}. For Spark, {how_to_install('spark')}, in a "
    "separate environment"
)
_USES = {
    "matplotlib": f"draws pictures: {how_to_install('plot')}, or '.[report]'",
    **dict.fromkeys(("jinja2", "markupsafe"), f"writes reports: {how_to_install('report')}"),
    **dict.fromkeys(("sklearn", "scipy"), f"trains classifiers: {how_to_install('mitigation')}"),
}
"""What modules of extras do, and how to get them."""


def explain_missing(error: ModuleNotFoundError) -> Exception:
    """Return an error with the extra that has the missing module; the given error if none has it."""
    name = (error.name or "").partition(".")[0]
    if name == "pyspark":
        return ConfigError(f"No engine is installed. {GET_AN_ENGINE}.")
    return ConfigError(f"{name} is not installed. It {_USES[name]}.") if name in _USES else error
