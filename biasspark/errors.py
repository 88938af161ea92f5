"""What can go wrong, and the exit code that says so.

BiasSparkError          1  something unexpected
├── ConfigError         2  wrong usage or configuration
├── InputError          3  the input breaks its contract
└── PublishConflict     4  another run published the same night first

Three exit codes are no errors: 5 for a run that is published although a gate failed, 130 for a job that was
interrupted, 143 for one that was terminated.

An error carries every fault at once. A fault of a configuration or of keyword arguments is a `Fault`: the key, its
value, the rule that it breaks, and how to fix it. A `Language` writes it down for those who wrote a TOML file, another
one for those who called a function. Any other fault is a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from biasspark.text import describe_type, quote, show_key, show_value

GATE_FAILED, INTERRUPTED, TERMINATED = 5, 130, 143
REDACTED = "(redacted)"
ERROR_CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")
_OF_A_VALUE = re.compile(
    r"\[([A-Z][A-Z0-9_.]*)\](?:(?!SQLSTATE: ).)*SQLSTATE: (?:22|P0)\w{3}"
    # Spark 3.5 says no SQLSTATE
    r"|org\.apache\.spark\.Spark(?:Arithmetic|ArrayIndexOutOfBounds|DateTime|NumberFormat)Exception: "
    r"\[([A-Z][A-Z0-9_.]*)\]",
    re.DOTALL,
)
_RAISED = re.compile(  # by raise_error or assert_true, which Spark 3.5 gives no condition
    r"java\.lang\.RuntimeException\b(?:(?!\n\tat ).)*\n\tat org\.apache\.spark\.sql\.catalyst\.expressions\."
    r"(?:RaiseError\.|GeneratedClass\$)",
    re.DOTALL,
)
_URI = re.compile(r"""[a-z][a-z0-9+.-]*://(?:[^/@:\[\s"]*:[^/@\n"]*@)?[^\s"]*""", re.IGNORECASE)
"""Up to a blank or a quote, but a password before the host may have blanks."""
# An Amazon key may have slashes. A colon, digits and a slash are otherwise a port, which no bucket has.
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
counted from 1; the entry of a list of tables is its name where it has one. ``()`` is no key at all."""


class Line(int):
    """The number of a line of a file, within a path."""


class Absent(Enum):
    """The value of a fault that shows none: the key is missing, or its value may be a secret."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True)
class Key:
    """A key of the configuration within a sentence."""

    path: KeyPath


@dataclass(frozen=True)
class Setting:
    """A key with a value that it may have; a table with some of its keys."""

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
    """One thing that is wrong with the value of a key; `ABSENT` where no value is shown.

    The rule says what must hold, or what is wrong: whole sentences, the first in lower case where there is no value.
    The fix, a whole sentence, says what to do about it.
    """

    path: KeyPath
    value: object
    rule: Text
    fix: Text = ""

    def __str__(self) -> str:
        return TOML.describe(self)

    def __repr__(self) -> str:
        return f"Fault({str(self)!r})"  # in which secrets are redacted


class Language:
    """Faults in the words of a TOML file: ``[ranking] engine = "fast". It must be ...``."""

    def describe(self, fault: Fault | str) -> str:
        """Return a fault in one line: the key, its value, the rule and the fix."""
        if isinstance(fault, str):
            return fault
        where = self.key(fault.path)
        if fault.value is not ABSENT:
            where += f" = {self.value(fault.value)}."
        elif where:
            where += ":"
        return " ".join(filter(None, (where, self.text(fault.rule, fault.path), self.text(fault.fix, fault.path))))

    def text(self, text: Text, path: KeyPath) -> str:
        """Return a text about the key at a path."""
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
                return self.words(text)
        return text

    def key(self, path: KeyPath) -> str:
        """Return a key: ``[ranking] engine``, ``[label]``, ``[[gate.rule]] "floor" min``."""
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
        """Return a key, without its table where that is the table of the fault at a path."""
        table = key[:-1]
        is_near = table != () and table in (path, path[:-1])
        return show_key(key[-1]) if is_near else self.key(key)

    def setting(self, setting: Setting, path: KeyPath) -> str:
        """Return a key and its value, of a table some of its keys, in a text about the key at a path."""
        if not isinstance(setting.value, Mapping):
            return f"{self.near_key(setting.path, path)} = {self.value(setting.value)}"
        settings = [Setting((*setting.path, key), value) for key, value in setting.value.items()]
        return ", ".join(self.setting(inner, path) for inner in settings)

    def value(self, value: object) -> str:
        """Return a value; text without its secrets."""
        return show_value(redact(value) if isinstance(value, str) else value)

    def words(self, words: Words) -> str:
        """Return the words of this language."""
        return words.toml


TOML = Language()


def type_of(value: object) -> Text:
    """Return the type of a value: ``text``, ``a whole number``, ..."""
    return Words("a table", "a dict") if isinstance(value, Mapping) else describe_type(value)


def redact(text: str) -> str:
    """Return a text without the secrets of the URIs in it.

    These are a user with a password, up to the last ``@`` of what may be one, and the values of a query whose names
    suggest a key: ``sig``, ``token``, ``X-Amz-Signature`` and the like.
    """

    def redact_uri(uri: re.Match[str]) -> str:
        return _SECRET_IN_QUERY.sub(rf"\g<name>{REDACTED}", _USERINFO.sub(rf"\g<scheme>{REDACTED}", uri[0]))

    return _URI.sub(redact_uri, text)


# ---- errors


class BiasSparkError(Exception):
    """A failure with one or more `faults`, each a Fault or a sentence; ``str`` writes them in its `language`."""

    exit_code = 1

    def __init__(self, *faults: Fault | str) -> None:
        super().__init__(*faults)
        self.faults = faults
        self.language = TOML

    @property
    def messages(self) -> tuple[str, ...]:
        """The faults in words."""
        return tuple(map(self.language.describe, self.faults))

    def __str__(self) -> str:
        return "\n".join(self.messages)


class ConfigError(BiasSparkError):
    """The command line or the configuration is wrong: nothing was read."""

    exit_code = 2


class InputError(BiasSparkError):
    """The corpus is not what the configuration says: nothing was published."""

    exit_code = 3


class NoRows(InputError):
    """The path, the filter and the run date leave no row."""


class InputWarning(UserWarning):
    """Something in the corpus, or in numbers made from it, that a person should look at: the public functions warn."""


class PublishConflict(BiasSparkError):
    """Another run of the same job published the same date and corpus in the meantime."""

    exit_code = 4


def corpus_changed(what: str) -> InputError:
    """Return the fault of a corpus that is not, read once more, what it was."""
    return InputError(f"corpus: {what}. The corpus must not change while it is read. Run again when it is at rest.")


def find_error_condition(error: BaseException | None) -> str | None:
    """Find Spark's error condition, such as ``TABLE_OR_VIEW_NOT_FOUND``, of an exception or of one that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for holder in (error, getattr(error, "java_exception", None)):
            # getCondition is Spark 4's name, getErrorClass Spark 3.5's, of which PySpark 4 warns.
            older = () if hasattr(type(holder), "getCondition") else ("getErrorClass",)
            for method in ("getCondition", *older):
                if condition := _ask(holder, method):
                    return condition
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def has_condition(error: BaseException, *conditions: str) -> bool:
    """Say whether Spark's error condition is one of these. Where it names none, as in older versions, its text does."""
    condition = find_error_condition(error)
    return condition in conditions if condition else any(f"[{condition}]" in str(error) for condition in conditions)


def innermost_cause(error: BaseException) -> str:
    """Return the innermost cause that the JVM reports of an error, in one line."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("An error occurred while")]
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[:1] or [type(error).__name__]
    return redact(causes[-1].removeprefix("Caused by: ").removeprefix(": ").rstrip("."))


def find_condition_of_a_value(text: str) -> str | None:
    """Find Spark's condition in a message that quotes a value, since it does not suit what is computed of it.

    ``CAST_INVALID_INPUT``, for example; ``USER_RAISED_EXCEPTION`` where an expression raised an error.
    """
    if match := _OF_A_VALUE.search(text):
        return match[1] or match[2]
    return "USER_RAISED_EXCEPTION" if _RAISED.search(text) else None


def _ask(holder: object, method: str) -> str | None:
    try:
        condition = getattr(holder, method)()
    except Exception:  # noqa: BLE001 - the JVM may be gone in any way: then there is no condition to say
        return None
    return condition if isinstance(condition, str) and ERROR_CONDITION.fullmatch(condition) else None
