"""The part ``[mitigation]`` of a configuration, and the tables that it fills in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biasspark.config import kinds
from biasspark.config.declaration import Kind, Reader, Section, Spot, setting
from biasspark.config.identities import read_term_file
from biasspark.errors import ABSENT
from biasspark.synthetic.imbalanced import BUCKETS, IMBALANCED, ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.wording import IDENTITY_TERMS

MODELS = BASELINE, CONTROL, MITIGATED = "baseline", "control", "mitigated"
FOLDER = "mitigation"
TEXT, LABEL, TEMPLATE = "comment_text", "label", "template"
ROWS = 127_820
"""Comments of the training corpus of the publication."""


def _read_terms(spot: Spot) -> Any:
    """Read a list of terms, or a file as in ``[identities.terms]``. Groups are split into their terms."""
    if isinstance(spot.value, list | tuple):
        return kinds.list_of(nonempty=True).read(spot)
    groups = read_term_file(spot)
    return groups if groups is ABSENT else tuple(dict.fromkeys(term for terms in groups.values() for term in terms))


@dataclass(frozen=True, kw_only=True)
class Mitigation(Section):
    """The mitigation experiment: classifiers are trained on a corpus, with and without the comments that a plan adds.

    The corpus is `[corpus]`, with its `[label]` and `[identities]`. Without `[corpus]`, one is generated. The models
    are `baseline`, `control` and `mitigated`.
    """

    text: str = setting(TEXT, kinds.string(), example="comment")
    """The column of the comments, in `[corpus]` and in all files."""
    pool: str | None = setting(None, kinds.string(is_path=True))
    """A Parquet file or folder of harmless comments. The plan says how many are added for the mitigated model; as many
    at random are added for the control."""
    debiasing: str | None = setting(None, kinds.string(is_path=True))
    """A Parquet file of harmless comments that are all added for the mitigated model. Give this and `random` in place
    of `pool`."""
    random: str | None = setting(None, kinds.string(is_path=True))
    """A Parquet file of harmless comments that are all added for the control."""
    filter: str | None = setting(None, kinds.string(multiline=True))
    """A Spark SQL predicate that chooses rows of these files."""
    test: str | None = setting(None, kinds.string(is_path=True))
    """The test set: labeled comments with the columns of `[corpus]`, in its format. Without it and `test_filter` the
    models are measured on templated sentences about the terms of `[identities.terms]`."""
    test_filter: str | None = setting(None, kinds.string(multiline=True), example="split = 'test'")
    """In place of `[corpus] filter`, the predicate that chooses the rows of the test set: from `test`, else from
    `[corpus]`."""
    train: bool = setting(True, kinds.flag())
    """False for your own models: nothing is trained, and `[models]` names their score columns in the test set."""
    test_rows: int = setting(50_000, kinds.whole(1))
    """Templated sentences, half of them toxic."""
    seed: int = setting(1, kinds.whole())
    """The seed of all random choices."""
    corpus: str = setting("mitigation", kinds.string())
    """The name in the tables if there is no `[corpus]`."""
    rows: int | None = setting(None, kinds.whole(1), default_text=f"{ROWS:,} without `[corpus]`", example=20_000)
    """Comments of the generated corpus."""
    terms: tuple[str, ...] = setting(
        IDENTITY_TERMS,
        Kind("text, or list of text", _read_terms),
        default_text="the fifty of `conf/identity_terms.txt`",
    )
    """Identity terms of the generated corpus: a file, one per line, or a list."""
    imbalanced: dict[str, float] = setting(
        IMBALANCED,
        kinds.named("an identity term", kinds.number(0, 1), nonempty=True),
        default_text="as in `conf/mitigation.toml`",
        example={"gay": 0.005},
    )
    """The imbalanced terms of the generated corpus, each with its share of the comments."""

    @property
    def training_request(self) -> ImbalancedRequest | None:
        """The training corpus to generate, None if `[corpus]` is used."""
        if self.rows is None:
            return None
        return ImbalancedRequest(self.rows, self.seed, tuple(self.imbalanced.items()), self.terms)

    def test_request(self, terms: Sequence[str]) -> MadlibsRequest:
        """Return the templated sentences about some terms."""
        return MadlibsRequest(self.test_rows, self.seed, tuple(terms))

    @property
    def has_test_set(self) -> bool:
        """Whether a test set is given."""
        return bool(self.test or self.test_filter)

    @property
    def files(self) -> dict[str, str]:
        """The files of harmless comments by key."""
        return {key: path for key in ("pool", "debiasing", "random") if (path := getattr(self, key))}

    @property
    def text_column(self) -> str:
        """The column of the comments in the training corpus and the test set."""
        return TEXT if self.rows else self.text

    def check(self, written: Spot) -> None:
        """Report faults of the files, and those of the generators."""
        given = [key for key in ("debiasing", "random") if key in written]
        if len(given) == 1:
            what = f"{given[0]} is given alone. The mitigated model and the control get comments of one kind."
            written.complain(what, "Name both.")
        if given and "pool" in written:
            written["pool"].refuse("debiasing and random are given, too. They are added as they are.", "Remove one.")
        if "filter" in written and not self.files:
            written["filter"].refuse("It filters files of comments, and there is none.", "Name one, or leave it out.")
        if not self.train and not self.has_test_set:
            written["train"].refuse("Your own models have no scores of generated sentences.", "Name a test set.")
        request = self.training_request
        if request and written.sound():
            for fault in dict.fromkeys((*request.list_faults(), *self.test_request(self.terms).list_faults())):
                key, _, what = fault.partition(": ")
                written[key].complain(what, "")


def fill_experiment(table: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Add the tables that ``[mitigation]`` implies to those of a configuration; report contradictions."""
    written = table.get("mitigation")
    if not isinstance(written, Mapping):
        return dict(table)
    alone = Reader(reader.base)  # it fills in other tables; its faults are reported when the whole is read
    mitigation = alone.section(Mitigation, Spot(("mitigation",), written, "", alone))
    top = Spot((), table, "", reader)
    filled: dict[str, Any] = {}
    if "corpus" in table:
        for key in [key for key in ("corpus", "rows", "terms", "imbalanced") if key in written]:
            what = "it describes the generated corpus, and [corpus] is given."
            top["mitigation"][key].complain(what, "Leave it out.")
        if mitigation.train and not mitigation.files:
            what = "pool is missing. Your own corpus needs your own comments to add."
            fix = 'Write, for example, pool = "harmless.parquet", or name debiasing and random.'
            top["mitigation"].complain(what, fix)
    else:
        what = "it is given without [corpus]. A generated corpus defines its own."
        for name in [name for name in ("label", "identities") if name in table]:
            top[name].complain(what, "Remove the table, or name your [corpus].")
        terms = {term: [term] for term in mitigation.terms}
        filled = {
            "mitigation": {"rows": ROWS, **written},
            "corpus": {"name": mitigation.corpus, "path": FOLDER, "id": "id", "duplicates": "allow"},
            "label": {"column": LABEL},
            "identities": {"terms": {"column": TEXT, "list": terms}},
        }
    if mitigation.train and "models" in table:
        fix = "Remove the table, or set [mitigation] train = false to use your own scores."
        top["models"].complain("it is given. The experiment trains its own models.", fix)
    if mitigation.train:
        filled["models"] = {name: name for name in MODELS}
    optional = {"label_balance": {"text": TEXT if "corpus" not in table else mitigation.text, "buckets": list(BUCKETS)}}
    if "privacy" not in table:
        optional["compare"] = {"baseline": BASELINE}
    return {**optional, **table, **filled}
