"""All messages of broken configurations and calls, stored in messages.txt to be reviewed when they change.

python -m tests.unit.test_messages     updates the file
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import biasspark
from biasspark.config import parse_config
from biasspark.errors import BiasSparkError
from tests.harness.broken_configurations import CALLS, RULES, TABLES, keywords_of
from tests.harness.least_configuration import changed

SNAPSHOT = Path(__file__).with_name("messages.txt")
NO_FRAME: Any = SimpleNamespace(sparkSession=None)
"""No call reads a row, so none needs a true frame."""


def messages_of(act: Callable[..., object], *arguments: Any, **keywords: Any) -> tuple[str, ...]:
    with pytest.raises(BiasSparkError) as caught:
        act(*arguments, **keywords)
    return caught.value.messages


def write() -> str:
    """Return the messages of every broken configuration and call; those that come with another one are indented."""
    parts = {"TOML": [messages_of(parse_config, changed(**tables), Path()) for tables in (TABLES | RULES).values()]}
    for function, keywords in CALLS.values():
        call, asked = getattr(biasspark, function), keywords_of(function, keywords)
        parts.setdefault(f"{function}()", []).append(messages_of(call, NO_FRAME, **asked))
    return "\n".join(
        f"# {name}\n" + "".join("\n  ".join(messages) + "\n" for messages in of_part) for name, of_part in parts.items()
    )


def test_messages_are_those_that_were_read() -> None:
    assert write() == SNAPSHOT.read_text("utf-8"), "read what changed: python -m tests.unit.test_messages, git diff"


if __name__ == "__main__":
    SNAPSHOT.write_text(write(), "utf-8")
