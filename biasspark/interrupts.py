"""Signals that interrupt the main thread, and calls that a thread repeats.

No signal interrupts while gRPC holds a lock: its channel would wait for it forever.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

REPEAT_SECONDS = 0.5


class Terminated(KeyboardInterrupt):
    """SIGTERM, or SIGHUP of a closed terminal, which ends a job like Ctrl-C."""


def guard_interrupts(
    signum: signal.Signals = signal.SIGINT, error: type[KeyboardInterrupt] = KeyboardInterrupt
) -> bool:
    """Let a signal raise an error once that is safe, unless the program has a handler. Return whether it will."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signum) not in (signal.SIG_DFL, signal.default_int_handler):
        return False

    def interrupt(_: int, frame: FrameType | None) -> None:
        if _is_safe(frame):
            raise error
        again = threading.Timer(0.01, os.kill, (os.getpid(), signum))
        again.daemon = True
        again.start()

    signal.signal(signum, interrupt)
    return True


@contextmanager
def interrupted_by(signum: signal.Signals, error: type[KeyboardInterrupt] = KeyboardInterrupt) -> Iterator[None]:
    """Let a signal raise an error within a block, once that is safe, also if another error then follows."""
    before = signal.getsignal(signum)
    is_guarded = guard_interrupts(signum, error)
    try:
        yield
    except Exception as failure:
        raise_earlier_interrupt(failure)
        raise
    finally:
        if is_guarded:
            signal.signal(signum, before)


def raise_earlier_interrupt(error: BaseException | None) -> None:
    """Raise the interrupt, if any, that an error followed: what closes a session fails if the session is gone."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__context__


@contextmanager
def repeating(call: Callable[[], object]) -> Iterator[None]:
    """Repeat a call every `REPEAT_SECONDS` in another thread, for a block."""
    stopped = threading.Event()

    def repeat() -> None:
        while not stopped.wait(REPEAT_SECONDS):
            call()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _is_safe(frame: FrameType | None) -> bool:
    """Return whether gRPC does not run, or only waits for the engine, which it does by `threading`."""
    if frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_name) == ("threading", "wait"):
        return True
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith("grpc."):
        frame = frame.f_back
    return frame is None
