"""Any configuration is read as it was written, or refused with one line per fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.config import Crossed, Identities, Terms, parse_config, parse_measures
from biasspark.errors import ConfigError
from tests.harness.least_configuration import LEAST, faults_of

KEYS = [
    "corpus", "label", "models", "identities", "slices", "ranking", "intervals", "rejects", "output", "name", "path",
    "table", "options", "column", "threshold", "positive", "range", "columns", "predicates", "terms", "file", "list",
    "crossed", "pairs", "min_rows", "engine", "ranges", "level", "max_rows", "catalog", "duplicates", "id", "all",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=3), st.dates(),
    st.datetimes(), st.sampled_from([10**500, -(10**4000), "parquet", "reject", "(overall)", "a & b", 1j]),
)  # fmt: skip
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4) | st.integers(), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(table=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), JUNK, max_size=9))
@settings(deadline=None)
def test_junk_is_refused_with_one_line_a_fault(table: dict[str, Any]) -> None:
    for message in map(str, faults_of(table)):
        assert "\n" not in message
        assert message.isprintable() or not message.isascii()


@given(part=st.sampled_from(sorted(LEAST)), junk=JUNK)
@settings(deadline=None, max_examples=300)
def test_junk_in_one_table_is_refused_or_read(part: str, junk: object) -> None:
    try:
        config = parse_config({**LEAST, part: junk}, Path())
    except ConfigError:
        return
    assert parse_config(json.loads(config.json), Path()).json == config.json


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6).filter(str.strip)
IDENTITY_NAMES = NAMES.filter(lambda name: name != "(overall)" and " & " not in name)


@given(
    names=st.lists(IDENTITY_NAMES, min_size=3, max_size=9, unique=True),
    models=st.dictionaries(NAMES, NAMES, min_size=1, max_size=3),
    terms=st.lists(NAMES, min_size=1, max_size=3),
    pairs=st.booleans(),
)
@settings(deadline=None)
def test_what_is_valid_reads_back_equal(
    names: list[str], models: dict[str, str], terms: list[str], pairs: bool
) -> None:
    cut = len(names) // 3
    identities = Identities(
        columns=tuple(names[:cut]),
        predicates=dict.fromkeys(names[cut : 2 * cut], "x > 0"),
        terms=Terms(column="text", list=dict.fromkeys(names[2 * cut :], tuple(terms))),
        crossed=Crossed(pairs=pairs, min_rows=3),
    )
    measures = parse_measures({"label": {"column": "y"}, "models": models, "identities": identities})
    assert measures.identities == identities
    assert measures.identities.known_names == tuple(names)
    assert parse_measures(json.loads(measures.json)) == measures
