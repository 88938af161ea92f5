"""The session that a command line requests."""

from __future__ import annotations

import os
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


_REQUEST: ContextVar[SessionRequest | None] = ContextVar("_REQUEST", default=None)


@contextmanager
def session_requested(request: SessionRequest) -> Iterator[None]:
    """Request a session for jobs that run inside the block."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def describe_start() -> str:
    """Return the name of the stage that starts a session: ``starting the engine``, or the server it connects to."""
    remote = current_request().remote or os.environ.get("SPARK_REMOTE", "")
    return f"connecting to {endpoint_of(remote)}" if remote.startswith("sc://") else "starting the engine"


def endpoint_of(remote: str) -> str:
    """Return the host and port of the URL of a Spark Connect server, without its parameters, which may be secret."""
    return remote.removeprefix("sc://").partition("/")[0].partition(";")[0].rpartition("@")[2]


def current_request() -> SessionRequest:
    """Return the request of the current command line."""
    return _REQUEST.get() or SessionRequest()
