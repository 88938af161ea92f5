"""What can go wrong, and the exit code that says so.

BiasSparkError          1  something unexpected
├── ConfigError         2  wrong usage or configuration
├── InputError          3  the input breaks its contract
└── PublishConflict     4  another run published the same night first

What is no error has an exit code, too: 5 for a night that is published although a gate failed, 130 for a job that was
interrupted.

Every error carries all the faults that were found, each as
``where: what, with the value. the rule. how to mend it.``
"""

from __future__ import annotations

import re

GATE_FAILED, INTERRUPTED = 5, 130
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


class BiasSparkError(Exception):
    """A failure with one or more faults to report; ``str`` gives one line per fault."""

    exit_code = 1

    def __init__(self, *faults: str) -> None:
        super().__init__(*faults)
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(self.faults)


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


def no_usable_row(n_rows: int, why: str = "") -> InputError:
    """Return the fault of a corpus of which no row counts for any model."""
    return InputError(
        f"corpus: none of its {n_rows:,} rows can be used{why}. A row needs a label and a score. Check [label] and "
        "[models]."
    )


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
    found = find_error_condition(error)
    return found in conditions if found else any(f"[{condition}]" in str(error) for condition in conditions)


def find_condition_of_a_value(text: str) -> str | None:
    """Find Spark's condition in a message that quotes a value, since it does not suit what is computed of it.

    ``CAST_INVALID_INPUT``, for example; ``USER_RAISED_EXCEPTION`` where an expression raised an error.
    """
    if found := _OF_A_VALUE.search(text):
        return found[1] or found[2]
    return "USER_RAISED_EXCEPTION" if _RAISED.search(text) else None


def _ask(holder: object, method: str) -> str | None:
    try:
        condition = getattr(holder, method)()
    except Exception:  # noqa: BLE001 - the JVM may be gone in any way: then there is no condition to say
        return None
    return condition if isinstance(condition, str) and ERROR_CONDITION.fullmatch(condition) else None
