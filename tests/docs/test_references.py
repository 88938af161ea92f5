"""The written references: what is committed is what scripts/docs writes."""

from __future__ import annotations

import pytest

from scripts.dev.references import DOCS, REFERENCES, put_between


@pytest.mark.parametrize("name", REFERENCES)
def test_what_is_committed_is_what_is_written(name: str) -> None:
    page, write = REFERENCES[name]
    text = (DOCS / page).read_text("utf-8")
    assert put_between(text, name, write()) == text, "run scripts/docs"
