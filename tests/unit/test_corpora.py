"""Every synthetic corpus, chunk by chunk, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from biasspark.errors import ConfigError
from biasspark.synthetic.chunks import CHUNK_ROWS, check_request, make_table
from biasspark.synthetic.civil import UNMENTIONED_SHARE, CivilRequest
from biasspark.synthetic.imbalanced import IMBALANCED, ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.score_cells import ScoreDistribution, ScoreDistributionsRequest, TallAverageShortRequest
from biasspark.synthetic.wording import IDENTITY_TERMS

OF_CELLS = (ScoreDistributionsRequest(3, 2 * CHUNK_ROWS), TallAverageShortRequest(3, 2 * CHUNK_ROWS))
OF_ROWS = tuple(kind(CHUNK_ROWS + 50, 3) for kind in (CivilRequest, ImbalancedRequest, MadlibsRequest))


def name_of(request: object) -> str | None:
    return type(request).__name__ if hasattr(request, "make_chunk") else None


@pytest.mark.parametrize("asked", [*OF_ROWS, *OF_CELLS], ids=name_of)
def test_chunks_depend_on_seed_and_number_only(asked: Any) -> None:
    first, later = map(asked.make_chunk, (0, 1))
    assert asked.make_chunk(0).equals(first)
    assert not replace(asked, seed=4).make_chunk(1).equals(later)
    assert later["id"][0].as_py() == first.num_rows == CHUNK_ROWS


@pytest.mark.parametrize("longer", OF_ROWS, ids=name_of)
def test_a_shorter_corpus_is_the_beginning_of_a_longer_one(longer: Any) -> None:
    whole = make_table(longer)
    assert whole["id"].to_pylist() == list(range(CHUNK_ROWS + 50))
    for rows in (CHUNK_ROWS + 7, 17):
        assert make_table(replace(longer, rows=rows)).equals(whole.slice(0, rows))


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        (CivilRequest(0, -1, 0.95), ["rows", "seed", "unannotated"]),
        (
            ImbalancedRequest(0, -1, (("gay", 0.01), ("old", 0.01)), ("gay", "ferry", "one who is on the long side")),
            # Words of the sentences, too many characters, and no term.
            ["rows", "seed", *["terms"] * 3, "imbalanced"],
        ),
        (ImbalancedRequest(10, 1, (("gay", 0.1), ("old", 0.1))), ["imbalanced"]),
        (ImbalancedRequest(10, 1, (("gay", -0.5), ("old", float("nan")))), ["imbalanced"] * 2),
        (
            MadlibsRequest(0, -1, ("gay", "disabled guest", "Gay", "label", "", "wide  gap")),
            ["rows", "seed", *["terms"] * 5],
        ),
        (MadlibsRequest(1, 1, ()), ["terms"]),
        (ScoreDistributionsRequest(-1, 1), ["seed", "rows_per_cell"]),
        (TallAverageShortRequest(-1, 0), ["seed", "rows_per_cell"]),
    ],
    ids=name_of,
)
def test_every_fault_is_listed(asked: Any, keys: list[str]) -> None:
    assert [fault.partition(":")[0] for fault in asked.list_faults()] == keys
    with pytest.raises(ConfigError) as caught:
        check_request(asked)
    assert list(caught.value.faults) == asked.list_faults()


@pytest.mark.parametrize(
    "asked",
    [
        CivilRequest(1, 0, UNMENTIONED_SHARE),
        ImbalancedRequest(1, 0),
        ImbalancedRequest(10, 1, (("gay", 0.13),)),
        MadlibsRequest(1_000, 1, ("gay", "african", "african american", "american", "Middle Eastern")),
        ScoreDistributionsRequest(0, 2, (ScoreDistribution("mine", (0.1, 0.2), (0.3, 0.4)),)),
        TallAverageShortRequest(0, 1),
    ],
    ids=name_of,
)
def test_the_limits_are_allowed(asked: Any) -> None:
    check_request(asked)
    assert set(IMBALANCED) < set(IDENTITY_TERMS)
