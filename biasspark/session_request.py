"""The session that a command line requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

Engine: TypeAlias = Literal["spark", "embedded"]
ENGINES: tuple[Engine, ...] = ("spark", "embedded")


@dataclass(frozen=True)
class SessionRequest:
    """A requested engine, None for any, and the URL of a Spark Connect server or the master of a classic session."""

    engine: Engine | None = None
    remote: str | None = None
    master: str | None = None


_REQUEST: ContextVar[SessionRequest] = ContextVar("_REQUEST", default=SessionRequest())  # noqa: B039 - frozen


@contextmanager
def session_requested(request: SessionRequest) -> Iterator[None]:
    """Request a session for jobs that run inside the block."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def current_request() -> SessionRequest:
    """Return the request of the current command line."""
    return _REQUEST.get()
