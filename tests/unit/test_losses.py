"""When the losses of a model are not what somebody wants: without a link, or with one."""

from __future__ import annotations

import pytest

from biasspark.attribution.losses import LabelSums, Losses, say_what_link_does
from biasspark.columns import OVERALL


def losses_of(lowest: float, highest: float) -> Losses:
    sums = LabelSums(
        n=1, n_opposite=1, ordered_doubled=2, ordered_square_sum=4, moments={}, lowest=lowest, highest=highest
    )
    others = LabelSums(n=1, n_opposite=1, ordered_doubled=2, ordered_square_sum=4, moments={}, lowest=-9.0, highest=9.0)
    return {("m", "all", OVERALL): {True: sums, False: sums}, ("other", "all", OVERALL): {True: others}}


@pytest.mark.parametrize(
    ("ends", "link", "said"),
    [
        ((0.0, 1.0), None, None),
        ((-2.0, 1.0), "logit", None),
        ((-2.0, 1.0), None, '`[attribution] link = { m = "logit" }` makes probabilities of log-odds.'),
        (
            (0.2, 1.5),
            None,
            "model m: some scores lie outside 0 to 1, so its cross-entropy and Gini impurity are NULL. ",
        ),
        ((0.2, 0.8), "logit", "model m: all its scores lie within 0 to 1, and `[attribution] link` takes them for "),
        ((0.2, 0.8), "logit", "If they are probabilities, name the models of log-odds alone."),
    ],
)
def test_what_a_link_does_to_scores(ends: tuple[float, float], link: str | None, said: str | None) -> None:
    found = say_what_link_does(losses_of(*ends), "m", link)
    assert found is None if said is None else found is not None and said in found
