"""A headless Chromium for tests that look at a report, in which it must not fail nor ask for anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
NEEDS_BROWSER = [
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not here: apt-get install chromium"),
    # Playwright closes its event loop as it likes.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""The marks of a module whose tests take a browser."""


@contextmanager
def launched() -> Iterator[Any]:
    """Have a browser for the block."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield found
        found.close()


@contextmanager
def opening(browser: Any) -> Iterator[Callable[..., Any]]:
    """Give what opens a page in a context of its own; at the end there must be no error and no request but for files.

    Settings are those of a context of Playwright.
    """
    contexts, said, asked, wanted = [], [], [], set()

    def open_page(address: str, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        wanted.add(address)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert set(asked) == wanted
