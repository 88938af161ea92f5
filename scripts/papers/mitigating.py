"""Dixon, Li, Sorensen, Thain and Vasserman, "Measuring and Mitigating" (2018): tables and pictures of the slides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd
from scipy.sparse import csr_matrix, vstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import biasspark
from biasspark import plot
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.imbalanced import BUCKETS, ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.score_cells import TallAverageShortRequest
from biasspark.synthetic.wording import IDENTITY_TERMS
from scripts.papers.exhibits import Made, Numbers, Picture, Source, read_data, read_printed
from scripts.papers.nuanced import SENTENCES

MITIGATING = Source(
    "mitigating",
    'Dixon, Li, Sorensen, Thain and Vasserman, "Measuring and Mitigating Unintended Bias in Text Classification" '
    "(2018), the slides",
)
TRAINING_ROWS, ADDED_ROWS = 127_820, 4_620
"""Comments of the training corpus, and those that were added to it."""

IMBALANCED = {"gay": 0.03, "homosexual": 0.009, "lesbian": 0.006, "queer": 0.006}
"""The terms that the authors chose most of their comments for, and the share of comments that mention each here."""

MODELS = {"Baseline": None, "Control": "toxicity_debiasing_data_random", "Bias-Mitigated": "toxicity_debiasing_data"}
"""The three models, and the file of the comments that are added for each."""

GENERATED = "127,820 generated comments, seed 1, with four imbalanced terms (`ImbalancedRequest`)"
SNIPPETS = "the authors' 4,620 Wikipedia snippets and 4,620 random ones (`wiki_testsets`)"


@cache
def training_corpus() -> pd.DataFrame:
    """Return comments in which some terms are mostly toxic, as many as the authors had."""
    comments: pd.DataFrame = make_table(ImbalancedRequest(TRAINING_ROWS, 1, tuple(IMBALANCED.items()))).to_pandas()
    return comments


def read_snippets(shared: Path, name: str) -> pd.DataFrame:
    """Return the harmless comments that the authors added for a model."""
    return read_data(shared, f"wiki_testsets/{name}").query("split != 'test'")


@cache
def measured_heights() -> biasspark.MeasuredCorpus:
    """Measure people of three heights."""
    return biasspark.measure(
        make_table(TallAverageShortRequest(1, 20_000)).to_pandas(),
        models=["score"],
        label="label",
        identities={"categorical": ["height"]},
        histograms=50,
        pinned_auc=True,
    )


@cache
def measured_models(shared: Path) -> biasspark.MeasuredCorpus:
    """Train the three models, and measure them on templated sentences about fifty terms."""
    corpus = training_corpus()
    words = CountVectorizer(binary=True, token_pattern=r"\w+", min_df=2)
    features = words.fit_transform(corpus["comment_text"])
    sentences = make_table(MadlibsRequest(50_000, 1)).select(["comment_text", "label"]).to_pandas()
    tested = words.transform(sentences["comment_text"])
    for model, name in MODELS.items():
        added = words.transform(read_snippets(shared, name)["comment"]) if name else csr_matrix((0, features.shape[1]))
        labels = corpus["label"].to_list() + [False] * added.shape[0]
        classifier = LogisticRegression(max_iter=200).fit(vstack([features, added]), labels)
        sentences[model] = classifier.predict_proba(tested)[:, 1]
    return biasspark.measure(
        sentences,
        models=list(MODELS),
        label="label",
        identities={"terms": {"column": "comment_text", "list": list(IDENTITY_TERMS)}},
    )


MITIGATING.leave_out(
    "Perspective API",
    'The score of "You\'re a dork!", and what the API is made of',
    "An illustration of a product that no data belong to.",
)


@MITIGATING.exhibit(
    "Example scores",
    "Scores of sentences that differ in the identity alone",
    data='TOXICITY@1 of "You are a caring ... person", from the authors\' scored sentences (`madlibs_scored`)',
    why='The sentences of the slides, "i\'m a proud ... person" and "audre is a ... computer programmer", were never '
    "published with scores, and tall and brazilian are in none. In either form the order is the same: gay above "
    "lesbian, transgender above muslim.",
)
def example_scores(shared: Path) -> Iterator[Made]:
    printed = {"lesbian": "0.51", "gay": "0.69", "muslim": "0.08", "transgender": "0.56"}
    means = biasspark.template_scores(
        read_data(shared, SENTENCES),
        template="template",
        models="toxicity_1",
        label="label",
        identities={"terms": {"column": "phrase", "list": list(printed)}},
    )
    ours = means.query("template == 'you_are_identity_p'").set_index("identity")[["mean_score"]]
    yield Numbers(pd.DataFrame({"mean_score": printed}), ours)


@MITIGATING.exhibit(
    "Toxicity by length",
    "Percent toxic by term and length of the comment",
    data=f"{GENERATED}; and 1,492 comments of Wikipedia's talk pages about identities (`wiki_testsets`)",
    why="The training comments were never published. The generated ones have the printed shares of all comments, and "
    'give every imbalanced term those of "gay"; its other terms are toxic as often as any comment, and it lacks words '
    "that are no identity. The real comments are a test set chosen for identity terms, with few comments in a cell.",
)
def toxicity_by_length(shared: Path) -> Iterator[Made]:
    printed = read_printed(shared, "slides_term_toxicity_by_length")
    real = read_data(shared, "wiki_testsets/toxicity_nonfuzzed_testset")
    for title, comments, text, label in (
        ("Generated comments", training_corpus(), "comment_text", "label"),
        ("Comments of talk pages", real, "comment", "toxic"),
    ):
        balance = biasspark.label_balance(
            comments,
            label=label,
            text=text,
            buckets=list(BUCKETS),
            identities={"terms": {"column": text, "list": printed.index.drop("ALL").to_list()}},
        )
        percent = balance.assign(percent=100 * balance["positive_rate"]).pivot(
            index="identity", columns="bucket", values="percent"
        )
        percent.columns = pd.Index([f"percent_toxic_len_{bucket.replace('-', '_')}" for bucket in percent])
        yield Numbers(printed, percent.rename({"(overall)": "ALL"}), title=title)
        yield Picture(plot.label_balance(balance), f"{title}: share of toxic ones by term and length.")


@MITIGATING.exhibit(
    "Added examples",
    "Comments of the training corpus, and those added to it",
    data=f"{GENERATED}; {SNIPPETS}",
)
def added_examples(shared: Path) -> Iterator[Made]:
    rows = {name: len(read_snippets(shared, name)) for name in MODELS.values() if name}
    printed = {"training corpus": TRAINING_ROWS} | dict.fromkeys(("random snippets", "chosen snippets"), ADDED_ROWS)
    ours = dict(zip(printed, (len(training_corpus()), *rows.values()), strict=True))
    yield Numbers(pd.DataFrame({"rows": printed}).astype(str), pd.DataFrame({"rows": ours}))


@MITIGATING.exhibit(
    "Heights",
    "AUC and pinned AUC of tall, average and short people",
    data="generated scores of people of three heights, 20,000 a cell, seed 1 (`make-corpus heights`)",
    why="The corpus has the printed AUC within each height, and the short are shifted so that the AUC of all is the "
    "printed one. The three pinned AUCs follow from these.",
)
def heights(shared: Path) -> Iterator[Made]:
    measured = measured_heights()
    pinned = measured.pinned_auc().set_index("identity")
    ours = pinned.rename(columns={"subgroup_auc": "auc"})[["auc", "pinned_auc"]]
    ours.index = pd.Index([name.partition("=")[2].title() for name in ours.index])
    ours.loc["Combined", "auc"] = pinned["overall_auc"].iloc[0]
    yield Numbers(read_printed(shared, "slides_tall_average_short"), ours)
    yield Picture(plot.histograms(measured), "Scores of each height below those of all others.")
    yield Picture(plot.pinned_auc(measured), "Pinned AUC of each height, and the AUC of all.")


@MITIGATING.exhibit(
    "Equality difference",
    "Pinned AUC equality difference of three models",
    data=f"{GENERATED}, to which {SNIPPETS} are added; 50,000 templated sentences, seed 1 (`make-corpus madlibs`)",
    why="The Wikipedia comments on which the authors trained were never published. Four terms are imbalanced in the "
    "generated ones, so fewer terms add to the sum, which is smaller. Chosen comments mitigate as in the slides. "
    "Random ones make it a little worse there and a little better here. `jobs/mitigation_experiment.py` does this with "
    "classifiers of its own.",
)
def equality_difference(shared: Path) -> Iterator[Made]:
    printed = read_printed(shared, "slides_pinned_auc_equality_difference").set_axis(["sum"], axis=1)
    summary = measured_models(shared).model_summary().set_index("model")
    ours = summary[["pinned_auc_equality_difference"]].set_axis(["sum"], axis=1)
    values = printed["sum"].astype(float)
    printed["of baseline"] = (values / values["Baseline"]).map("{:.2f}".format)
    ours["of baseline"] = ours["sum"] / ours["sum"]["Baseline"]
    yield Numbers(printed, ours)


@MITIGATING.exhibit(
    "Per-term Pinned AUC",
    "Pinned AUC of fifty terms with the three models",
    data=f"{GENERATED}, to which {SNIPPETS} are added; 50,000 templated sentences, seed 1 (`make-corpus madlibs`)",
    why="The slide prints no number.",
)
def per_term_pinned_auc(shared: Path) -> Iterator[Made]:
    yield Picture(plot.pinned_auc(measured_models(shared)), "Pinned AUC of each term with each model.")
