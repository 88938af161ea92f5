"""What a command line asks of the session of its job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

Engine: TypeAlias = Literal["spark", "embedded"]
ENGINES: tuple[Engine, ...] = ("spark", "embedded")

GET_AN_ENGINE = (
    "Install the embedded one, which needs no Java: pip install 'biasspark[embedded]'. Or Spark: pip install "
    "'biasspark[spark]'"
)


@dataclass(frozen=True)
class SessionRequest:
    """What is asked of a session: the only engine that may run the job, None for any, and a URL.

    It is that of a Spark Connect server, ``remote``, or the master of a classic session.
    """

    engine: Engine | None = None
    remote: str | None = None
    master: str | None = None


_REQUEST: ContextVar[SessionRequest | None] = ContextVar("_REQUEST", default=None)


@contextmanager
def session_requested(request: SessionRequest) -> Iterator[None]:
    """Have a job that is run within a block get the session that is asked for."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def current_request() -> SessionRequest:
    """Return what the command line that runs asks of the session."""
    return _REQUEST.get() or SessionRequest()
