"""The configuration of the mitigation experiment: the table [mitigation], and other tables of the main job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from biasspark.config import Config, Corpus, Terms, kinds
from biasspark.config.declaration import Kind, Section, Spot, declarations, setting
from biasspark.config.reader import Reader
from biasspark.config.toml_file import apply_overrides, read_toml
from biasspark.errors import ABSENT, Fault, Setting, redact
from biasspark.synthetic.imbalanced import IMBALANCED, ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

JOB = "mitigation_experiment"
MODELS = BASELINE, CONTROL, MITIGATED = "baseline", "control", "mitigated"
FOLDER = "mitigation"
TEXT, LABEL, TEMPLATE = "comment_text", "label", "template"
MADE = ("corpus", "label", "models", "identities")
"""The tables of a configuration that the experiment fills in itself."""

_SHARE = kinds.number(0, 1)


def _read_terms(spot: Spot) -> Any:
    """Read a file of terms, as ``[identities.terms]`` does, or a list of terms. Terms of groups count one by one."""
    if isinstance(spot.value, list | tuple):
        return kinds.list_of(nonempty=True).read(spot)
    groups = declarations(Terms)["file"].kind.read(spot)
    return groups if groups is ABSENT else tuple(dict.fromkeys(term for terms in groups.values() for term in terms))


def _read_imbalanced(spot: Spot) -> Any:
    """Read the shares of terms, of which there is at least one."""
    shares = kinds.named("an identity term", _SHARE).read(spot)
    if not shares and spot.sound():
        spot.complain("no term is named. At least one is required.")
    return shares


@dataclass(frozen=True, kw_only=True)
class Mitigation(Section):
    """The corpora of the mitigation experiment, and the files to read in place of generated comments."""

    corpus: str = setting("mitigation", kinds.string())
    """The name of the scored test set in the tables."""
    rows: int = setting(127_820, kinds.whole(1))
    """Comments of the training corpus."""
    test_rows: int = setting(50_000, kinds.whole(1))
    """Sentences of the test set."""
    seed: int = setting(1, kinds.whole())
    """The seed of the training corpus and of the test set."""
    terms: tuple[str, ...] = setting(IDENTITY_TERMS, Kind("text, or list of text", _read_terms))
    """A file of identity terms, one per line, or a list of them. By default the fifty of `conf/identity_terms.txt`."""
    imbalanced: dict[str, float] = setting(
        IMBALANCED, Kind("table of numbers", _read_imbalanced), example={"gay": 0.005}
    )
    """The imbalanced terms, and the share of the comments that mention each."""
    debiasing: str | None = setting(None, kinds.string(is_path=True))
    """A Parquet file of harmless comments to add for the mitigated model. Give this and `random`, or neither: then
    comments are generated, those of the mitigated model as the plan asks."""
    random: str | None = setting(None, kinds.string(is_path=True))
    """A Parquet file of harmless comments to add for the control."""
    text: str = setting(TEXT, kinds.string(), example="comment")
    """The column of the comments in these files."""
    filter: str | None = setting(None, kinds.string(multiline=True))
    """A Spark SQL predicate that chooses rows of these files."""

    @property
    def training_request(self) -> ImbalancedRequest:
        """The training corpus."""
        return ImbalancedRequest(self.rows, self.seed, tuple(self.imbalanced.items()), self.terms)

    @property
    def test_request(self) -> MadlibsRequest:
        """The test set."""
        return MadlibsRequest(self.test_rows, self.seed, self.terms)

    @property
    def files(self) -> dict[str, Corpus]:
        """The files to read, by the model that they are for; empty if comments are generated."""
        paths = {CONTROL: self.random, MITIGATED: self.debiasing}
        return {model: Corpus(name=model, path=path, filter=self.filter) for model, path in paths.items() if path}

    def check(self, written: Spot) -> None:
        """Note the faults of the files, and those that the generators find."""
        given = [key for key in ("debiasing", "random") if key in written]
        if len(given) == 1:
            what = f"{given[0]} is given alone. The mitigated model and the control get comments of one kind."
            written.complain(what, "Name both.")
        for key in ("text", "filter"):
            if key in written and not given:
                rule = "Without debiasing and random nothing is read."
                written[key].refuse(rule, "Name them, or remove the line.")
        if written.sound():
            for fault in dict.fromkeys((*self.training_request.list_faults(), *self.test_request.list_faults())):
                key, _, what = fault.partition(": ")
                written[key].complain(what, "")


@dataclass(frozen=True, kw_only=True)
class Experiment(Config):
    """The configuration of the experiment, and of the main job that measures the three models."""

    mitigation: Mitigation = setting(Mitigation(), kinds.table(Mitigation))

    def resolved(self) -> dict[str, Any]:
        """Return every table and key, as ``Config.resolved``, without passwords."""
        tables = super().resolved()
        files = {key: redact(path) for key in ("debiasing", "random") if (path := tables["mitigation"].get(key))}
        return tables | {"mitigation": tables["mitigation"] | files}

    def check(self, written: Spot) -> None:
        """Note the faults of tables that do not fit each other, and of an output that is no folder."""
        super().check(written)
        if self.output.catalog and not self.output.path:
            rule = "The corpora are written into a folder, next to the tables."
            fix = ("Write, for example, ", Setting(("output", "path"), "build/mitigation/warehouse"), ".")
            written["output"]["catalog"].refuse(rule, fix)

    def resolve(self) -> Self:
        """Return the configuration with the folder of the corpora."""
        config = super().resolve()
        return replace(config, corpus=replace(config.corpus, path=f"{config.output.path}/{FOLDER}"))


def load_experiment(path: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read the configuration of an experiment: ``[mitigation]`` and the tables of the main job except those of `MADE`.

    Overrides are as for ``biasspark.config.load_config``. Raises ConfigError with every fault, or only that the file
    cannot be read or is not TOML.
    """
    tables, faults = apply_overrides(read_toml(Path(path)), overrides)
    return parse_experiment(tables, Path(path).parent, faults)


def parse_experiment(tables: Mapping[str, Any], base: Path, faults: Sequence[Fault] = ()) -> Experiment:
    """Check a configuration of an experiment that was read already: see `load_experiment`."""
    reader = Reader(base)
    # Read alone first, since it fills in other tables. Its faults come out below.
    mitigation = reader.section(Mitigation, Spot(("mitigation",), tables.get("mitigation") or {}, "", reader))
    reader.faults.clear()
    reader.faults.extend(faults)
    for name in [name for name in MADE if name in tables]:
        what = "it is given. The experiment makes its own corpora and models."
        reader.faults.append(Fault((name,), ABSENT, what, "Remove the table."))
    made = {
        "corpus": {"name": mitigation.corpus, "path": FOLDER, "id": "id", "duplicates": "allow"},
        "label": {"column": LABEL},
        "models": {name: name for name in MODELS},
        "identities": {"terms": {"column": TEXT, "list": {term: [term] for term in mitigation.terms}}},
    }
    return reader.read(Experiment, {**tables, **made})


def describe_experiment(experiment: Experiment) -> str:
    """Return the plan of an experiment, for ``--dry-run``."""
    settings, shown = experiment.mitigation, experiment.resolved()["mitigation"]
    shares = ", ".join(f"{term} {share:.2%}" for term, share in settings.imbalanced.items())
    added = "harmless comments as the plan asks; for the control as many at random"
    if settings.files:
        added = f"{shown['debiasing']}; for the control {shown['random']}"
    lines = {
        "corpus": f"{settings.rows:,} comments, {len(settings.terms)} terms, of which imbalanced: {shares}",
        "added": added,
        "models": ", ".join(MODELS),
        "test set": f"{settings.test_rows:,} templated sentences, published as {settings.corpus}",
        "output": f"{experiment.resolved()['output']['path']}, corpora in its folder {FOLDER}",
    }
    return "\n".join(f"{name + ':':<12} {text}" for name, text in lines.items())
