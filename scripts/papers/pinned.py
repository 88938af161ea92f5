"""Borkan, Dixon, Li, Sorensen, Thain and Vasserman, "Limitations of Pinned AUC" (2019): two tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import biasspark
from biasspark import plot
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import GROUPS, PinnedBalanceRequest
from scripts.papers.exhibits import Made, Numbers, Picture, Source, read_data, read_printed
from scripts.papers.nuanced import AUCS, MODELS, SCORED_SENTENCES, SENTENCES

PINNED = Source(
    "pinned",
    'Borkan, Dixon, Li, Sorensen, Thain and Vasserman, "Limitations of Pinned AUC for Measuring Unintended Bias" '
    "(2019)",
)


@cache
def measured_balances() -> biasspark.MeasuredCorpus:
    """Measure three groups with the same scores and different balances of labels."""
    return biasspark.measure(
        make_table(PinnedBalanceRequest(1)).to_pandas(),
        models=["score"],
        label="label",
        identities=list(GROUPS),
        histograms=50,
        pinned_auc={"include_subgroup_in_background": False},
    )


@PINNED.exhibit(
    "Table 1",
    "The same scores, and other pinned AUCs, as the class balance changes",
    data="generated scores with the large right shift of Table 2 of Nuanced Metrics (`make-corpus pinned`, seed 1)",
    why="The paper prints no parameters, and a value for A alone. The distributions that its other paper publishes for "
    "this shift give that value, where the pinned set is half subgroup and half background. The metrics of the suite "
    "do not change.",
)
def table_1(_: Path) -> Iterator[Made]:
    measured = measured_balances()
    pinned = measured.pinned_auc().set_index("identity")[["pinned_auc"]]
    suite = measured.bias_metrics().set_index("identity")[AUCS]
    printed = pd.DataFrame({"pinned_auc": {"A": "0.94", "B": "higher", "C": "lower"}})
    yield Numbers(printed.assign(**dict.fromkeys(AUCS, "")), pinned.join(suite))
    yield Picture(
        plot.histograms(measured, identities=list(GROUPS)),
        "Scores of background and subgroup in A, B and C: the same distributions, other numbers of rows.",
    )


@PINNED.exhibit(
    "Table 2",
    "Pinned AUC of 14 terms before and after half of the harmless sentences about one are dropped",
    data="the authors' 30,240 scored sentences (`madlibs_scored`)",
    why=f'{SCORED_SENTENCES}. As in the paper, the pinned AUC of "gay" rises with TOXICITY@1 '
    "and less with TOXICITY@6, and those of the other terms rise by .01 at most. The paper has means of 100 trials; "
    "ours are those of all trials, in closed form.",
)
def table_2(shared: Path) -> Iterator[Made]:
    printed = read_printed(shared, "pinned_table2").drop(columns="skewed_term")
    terms = {"column": "phrase", "list": printed.index.to_list()}
    corpus: dict[str, Any] = {"models": MODELS, "label": "label", "identities": {"terms": terms}}
    sentences = read_data(shared, SENTENCES)
    skew = biasspark.pinned_skew(sentences, identity="gay", **corpus)
    original, skewed = (
        skew.pivot(index="identity", columns="model", values=name) for name in ("pinned_auc", "pinned_auc_skewed")
    )
    yield Numbers(printed, original.add_prefix("original_pinned_auc_").join(skewed.add_prefix("skewed_pinned_auc_")))
    figure = plot.pinned_auc(biasspark.pinned_auc(sentences, **corpus), identities=printed.index.to_list())
    yield Picture(figure, "Pinned AUC of each term, nothing dropped.")
