"""The sums behind losses and correlations against loops over the rows, and warnings about links."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.attribution.attribution_warnings import link_warnings
from biasspark.attribution.losses import losses, sum_losses
from biasspark.attribution.moments import Moments
from biasspark.columns import OVERALL
from biasspark.config import Attribution
from biasspark.ranking.kernels.placements import Profile
from biasspark.ranking.row_blocks import MAX_OPPOSITE
from tests.fixtures.ranked_rows import Ranked, blocks_of, find
from tests.oracle.attribution import Example, cross_entropy, gini, round_to_units, target_values


@given(scores=st.lists(st.floats(-800, 800) | st.sampled_from([0.0, 1.0, -0.0, 1e-16]), min_size=1))
@pytest.mark.parametrize("link", [None, "logit"])
def test_losses_of_scores(link: str | None, scores: list[float]) -> None:
    """Beyond 0 and 1, a probability is the nearer of them; log-odds that overflow are certain."""
    (negatives, positives) = (losses(np.array(scores), label, link) for label in (0, 1))
    of_rows = np.stack([negatives[0], positives[0], negatives[1], positives[1]])
    assert of_rows.max() < 35
    for score, of_score in zip(scores, of_rows.T.tolist(), strict=True):
        against = math.exp(-score) if score > -700 else math.inf
        probability = 1 / (1 + against) if link else min(max(score, 0.0), 1.0)
        examples = [Example(probability, label) for label in (False, True)]
        expected = [*map(cross_entropy, examples), *map(gini, examples)]
        assert of_score == pytest.approx(expected, rel=1e-12, abs=1e-15)


ROWS = st.lists(
    st.tuples(
        st.floats(-0.5, 1.5) | st.sampled_from([0.0, 0.5, 1.0]), *[st.booleans()] * 4
    ).map(lambda row: Example(row[0], row[1], row[2], slices=(row[3],), segments=(row[4], False))),
    min_size=1,
    max_size=25,
)  # fmt: skip


@given(rows=ROWS, edges=st.lists(st.sampled_from([0.0, 0.4, 0.5, 1.0]), unique=True).map(sorted))
def test_sums_are_those_of_every_row(rows: list[Example], edges: list[float]) -> None:
    names = {(0, part): ("m", f"slice {part}") for part in (0, 1)}
    summed, _, train = find(blocks_of([Ranked(rows, edges)]), sum_losses([None], names, ("s", "t")))
    for part in (0, 1):
        members = [row for row in rows if row.in_slice(part)]
        of_sets = [train[0, part], *(summed.get((*names[0, part], segment), {}) for segment in (OVERALL, "s", "t"))]
        normalized = target_values(members, "auc") or [0.0] * len(members)
        for number, of_labels in enumerate(of_sets):
            for label in (False, True):
                inside = [(not row.honest, True, *row.segments)[number] and row.label == label for row in members]
                chosen = np.flatnonzero(inside).tolist()
                clipped = [members[n]._replace(score=min(max(members[n].score, 0.0), 1.0)) for n in chosen]
                values = {
                    "normalized": [normalized[n] for n in chosen],
                    "cross_entropy": list(map(cross_entropy, clipped)),
                    "gini": list(map(gini, clipped)),
                }
                for loss in ("cross_entropy", "gini"):
                    both = zip(values["normalized"], values[loss], strict=True)
                    values |= {f"normalized_{loss}": [one + other for one, other in both]}
                check_label(of_labels.get(label), values)


def check_label(of_label: Mapping[str, Moments] | None, values: dict[str, list[float]]) -> None:
    if of_label is None:
        assert not values["normalized"]
        return
    assert of_label.keys() == values.keys()
    for name, moments in of_label.items():
        rounded = [round_to_units(value, 57) for value in values[name]]
        assert moments.n == len(rounded)
        assert Fraction(moments.total) == sum(rounded)
        assert Fraction(moments.squares) == sum(value**2 for value in rounded)


def test_squares_of_the_largest_placements_fit() -> None:
    assert (np.array([2 * MAX_OPPOSITE]) ** 2).tolist() == [4 * MAX_OPPOSITE**2]


@pytest.mark.parametrize(
    ("lowest", "highest", "link", "text"),
    [
        (0.0, 1.0, None, None),
        (-5.0, 4.0, "logit", None),
        (-5.0, 4.0, None, '`link` of this model to "logit"'),
        (0.0, 97.5, None, "divide them by 100"),
        (0.0, 1.0, "logit", "none of its scores is negative"),
        (0.0, 97.5, "logit", "also divide them by 100"),
    ],
)
def test_wrong_links_have_a_warning(lowest: float, highest: float, link: str | None, text: str | None) -> None:
    attribution = Attribution(link={"m": link} if link else {})
    warnings = [*link_warnings(attribution, {"m": Profile(30, 20, 3, lowest, highest)})]
    assert len(warnings) == (text is not None)
    assert all(text is not None and text in warning for warning in warnings)
