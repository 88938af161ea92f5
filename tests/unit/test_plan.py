"""The plan printed by `--dry-run`, as far as it needs no corpus."""

from __future__ import annotations

import pytest

from biasspark.config import Identities, Terms
from biasspark.workflows.nightly import describe_identities

GAY, LGBT, TRANS = ("gay", ("gay",)), ("lgbt", ("gay", "lesbian")), ("trans", ("transgender",))


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ([GAY], "1 term in text (gay)"),
        ([GAY, ("blind", ("blind",))], "2 terms in text (gay, blind)"),
        ([LGBT], "1 group of terms in text (lgbt)"),
        ([LGBT, GAY, TRANS], "1 term, 2 groups of terms in text (lgbt, gay, trans)"),
    ],
)
def test_terms_and_groups_of_terms_are_counted(terms: list[tuple[str, tuple[str, ...]]], text: str) -> None:
    assert describe_identities(Identities(terms=Terms(column="text", list=dict(terms)))) == text
