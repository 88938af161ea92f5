"""The configuration of the mitigation experiment: the table [mitigation], and the rest as for any night."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biasspark.config import Config, Corpus, parse_config, redact, show_value
from biasspark.config.faults import Faults
from biasspark.config.section import Section, is_number, keys_of
from biasspark.config.source import apply_overrides, locate, read_toml
from biasspark.errors import ConfigError
from biasspark.plan import lay_out
from biasspark.synthetic.corpora import read_terms
from biasspark.synthetic.imbalanced import IMBALANCED, ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

MODELS = ("baseline", "control", "mitigated")
FOLDER = "mitigation"
TEXT, LABEL, TEMPLATE = "comment_text", "label", "template"
MADE = ("corpus", "label", "models", "identities")
"""The tables of a night's configuration that the experiment fills in itself."""


@dataclass(frozen=True, kw_only=True)
class Mitigation:
    """What is generated, and what is read in place of generated comments.

    Attributes
    ----------
    corpus
        The name of the scored test set in the tables.
    rows, seed, terms, imbalanced
        Of the training corpus: see `biasspark.synthetic.imbalanced`. Seed and terms are those of the test set, too.
    test_rows
        Sentences of the test set.
    debiasing, random
        Parquet files with the harmless comments that are added for the mitigated model, and for the control. Both are
        set or none: then comments are generated, those of the mitigated model as the plan asks.
    text, filter
        For these files: the column of the comments, and a predicate that chooses rows.
    """

    corpus: str = "mitigation"
    rows: int = 127_820
    test_rows: int = 50_000
    seed: int = 1
    terms: tuple[str, ...] = IDENTITY_TERMS
    imbalanced: dict[str, float] = field(default_factory=lambda: dict(IMBALANCED))
    debiasing: str | None = None
    random: str | None = None
    text: str = TEXT
    filter: str | None = None

    @property
    def training_request(self) -> ImbalancedRequest:
        """The training corpus."""
        return ImbalancedRequest(self.rows, self.seed, tuple(self.imbalanced.items()), self.terms)

    @property
    def test_request(self) -> MadlibsRequest:
        """The test set."""
        return MadlibsRequest(self.test_rows, self.seed, self.terms)

    @property
    def snippets(self) -> dict[str, Corpus]:
        """The files to read, by the model for which they are; empty where comments are generated."""
        paths = {"control": self.random, "mitigated": self.debiasing}
        return {model: Corpus(name=model, path=path, filter=self.filter) for model, path in paths.items() if path}


@dataclass(frozen=True, kw_only=True)
class Experiment(Config):
    """The configuration of the night that measures the three models, and how these come about."""

    mitigation: Mitigation

    def resolved(self) -> dict[str, Any]:
        """As ``Config.resolved``, and likewise without passwords."""
        table = super().resolved()
        own = table["mitigation"]
        return table | {"mitigation": own | {key: redact(own[key]) for key in ("debiasing", "random") if key in own}}


def load_experiment(path: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read the configuration of the experiment and what the command line changes in it.

    Parameters
    ----------
    path
        A TOML file with the tables of any night but those of `MADE`, and ``[mitigation]``.
    overrides
        ``table.key=value``, as of ``biasspark.config.load_config``.

    Raises
    ------
    ConfigError
        With every fault, one per line. If the file cannot be read or is not TOML, with that alone.
    """
    faults = Faults()
    table = apply_overrides(read_toml(Path(path)), overrides, faults)
    return parse_experiment(table, Path(path).parent, faults)


def parse_experiment(table: Mapping[str, Any], base: Path, so_far: Iterable[str] = ()) -> Experiment:
    """Check a configuration of the experiment that was read already, with faults: see `load_experiment`."""
    faults = Faults()
    faults.note("", *so_far)
    mitigation = _read_mitigation(table.get("mitigation"), base, faults)
    for name in [name for name in MADE if name in table]:
        faults.note(name, f"[{name}]: given. The experiment makes its own corpora and models. Remove the table.")
    night = {name: part for name, part in table.items() if name not in (*MADE, "mitigation")}
    try:
        config = parse_config(night | _describe_test_set(mitigation), base)
    except ConfigError as error:
        faults.note("", *error.faults)
    else:
        if config.output.path is None:
            faults.note(
                "output",
                f"[output] catalog = {show_value(config.output.catalog)}. The corpora are written beside the tables, "
                'into a folder. Write, for example, path = "build/mitigation/warehouse".',
            )
    if faults:
        raise ConfigError(*faults)
    parts = {name: getattr(config, name) for name in keys_of(Config)}
    corpus = Corpus(name=mitigation.corpus, path=f"{config.output.path}/{FOLDER}", id="id", duplicates="allow")
    return Experiment(**parts | {"corpus": corpus}, mitigation=mitigation)


def _describe_test_set(mitigation: Mitigation) -> dict[str, Any]:
    """Return the tables of `MADE`."""
    terms = {term: [term] for term in mitigation.terms}
    return {
        "corpus": {"name": mitigation.corpus, "path": FOLDER, "id": "id", "duplicates": "allow"},
        "label": {"column": LABEL},
        "models": {name: name for name in MODELS},
        "identities": {"terms": {"column": TEXT, "list": terms}},
    }


def _read_mitigation(value: object, base: Path, faults: Faults) -> Mitigation:
    section = Section("[mitigation]", value, keys_of(Mitigation), faults)
    so_far = len(faults)
    default = Mitigation()
    mitigation = Mitigation(
        corpus=section.optional_text("corpus") or default.corpus,
        rows=section.whole("rows", default.rows, least=1),
        test_rows=section.whole("test_rows", default.test_rows, least=1),
        seed=section.whole("seed", default.seed),
        terms=_read_terms(section, base),
        imbalanced=_read_imbalanced(section),
        debiasing=locate(section.optional_text("debiasing"), base),
        random=locate(section.optional_text("random"), base),
        text=section.optional_text("text") or default.text,
        filter=section.optional_text("filter", multiline=True),
    )
    _check_snippets(section)
    if len(faults) == so_far:
        _check_requests(section, mitigation)
    return mitigation


def _read_terms(section: Section, base: Path) -> tuple[str, ...]:
    named = section.optional_text("terms")
    try:
        return IDENTITY_TERMS if named is None else read_terms(Path(locate(named, base) or named))
    except ConfigError as error:
        section.note(*error.faults)
        return IDENTITY_TERMS


def _read_imbalanced(section: Section) -> dict[str, float]:
    value = section.table.get("imbalanced")
    if value is None:
        return dict(IMBALANCED)
    own = Section("[mitigation.imbalanced]", value, (), section.faults)
    for term, share in own.table.items():
        if not is_number(share):
            own.refuse(
                term, "It must be the share of the comments that mention the term.", "Write, for example, 0.005."
            )
    if own.usable and not own.table:
        own.complain("", "no term is named. At least one is required. Write, for example, gay = 0.005.")
    return {str(term): float(share) for term, share in own.table.items() if is_number(share)}


def _check_snippets(section: Section) -> None:
    given = [key for key in ("debiasing", "random") if key in section.table]
    if len(given) == 1:
        section.complain(
            "", f"{given[0]} is given alone. The mitigated model and the control get comments of one kind. Name both."
        )
    for key in ("text", "filter"):
        if key in section.table and not given:
            section.refuse(key, "Without debiasing and random nothing is read.", "Name them, or remove the line.")


def _check_requests(section: Section, mitigation: Mitigation) -> None:
    """Note what the generators refuse."""
    found = mitigation.training_request.find_faults() + mitigation.test_request.find_faults()
    section.note(*(f"{section.where} {fault}" for fault in dict.fromkeys(found)))


def describe_experiment(experiment: Experiment) -> str:
    """Return the plan of a run, in words: for ``--dry-run``."""
    settings, shown = experiment.mitigation, experiment.resolved()["mitigation"]
    shares = ", ".join(f"{term} {share:.2%}" for term, share in settings.imbalanced.items())
    added = "harmless comments as the plan asks; for the control as many at random"
    if settings.snippets:
        added = f"{shown['debiasing']}; for the control {shown['random']}"
    lines = {
        "corpus": f"{settings.rows:,} comments, {len(settings.terms)} terms, of which imbalanced: {shares}",
        "added": added,
        "models": ", ".join(MODELS),
        "test set": f"{settings.test_rows:,} templated sentences, published as {settings.corpus}",
        "output": f"{experiment.resolved()['output']['path']}, corpora below {FOLDER} in it",
    }
    return lay_out(lines)
