"""What `--dry-run` says of a run, as far as no corpus is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biasspark.config import Identities, Terms, parse_config
from biasspark.plan import describe_plan
from tests.least_configuration import LEAST

GAY, LGBT, TRANS = ("gay", ("gay",)), ("lgbt", ("gay", "lesbian")), ("trans", ("transgender",))


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ([GAY], "1 term in text (gay)"),
        ([GAY, ("blind", ("blind",))], "2 terms in text (gay, blind)"),
        ([LGBT], "1 group of terms in text (lgbt)"),
        ([LGBT, GAY, TRANS], "1 term, 2 groups of terms in text (lgbt, gay, trans)"),
    ],
)
def test_terms_are_told_from_groups_of_them(terms: list[tuple[str, tuple[str, ...]]], said: str) -> None:
    identities = Identities(terms=Terms(column="text", terms=tuple(terms)))
    plan = describe_plan(replace(parse_config(LEAST, Path()), identities=identities), 3, ())
    assert f"identities:  {said}" in plan.splitlines()
