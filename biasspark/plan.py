"""What a run would do, in words: for `--dry-run`."""

from __future__ import annotations

from collections.abc import Mapping

from biasspark.columns import ALL_ROWS
from biasspark.config import JACKKNIFE, Attribution, Config, Identities, say_count
from biasspark.tables.schemas import REJECTED_ROWS, Table


def describe_plan(config: Config, n_columns: int, tables: tuple[Table, ...]) -> str:
    """Return the plan of a run: sources, models, identities, slices, tables, and what it will cost."""
    return lay_out(_plan_night(config, n_columns, tables))


def lay_out(lines: Mapping[str, str]) -> str:
    """Return a plan, a line for each of its parts."""
    return "\n".join(f"{what + ':':<12} {text}" for what, text in lines.items())


def _plan_night(config: Config, n_columns: int, tables: tuple[Table, ...]) -> dict[str, str]:
    corpus, label, shown = config.corpus, config.label, config.resolved()  # without passwords in paths
    passes = [
        *_type_pass(config),
        "survey",
        *(["sample"] if config.ranking.bins else []),
        *(["ids"] if corpus.duplicates == "reject" else []),
        "ranking",
    ]
    passes += ["templates"] if config.templates else []
    passes += ["trials"] if config.pinned_auc and config.pinned_auc.trials else []
    passes += ["jackknife"] if config.gate and config.gate.paired else []
    scans = f"{len(passes)} ({', '.join(passes)})"
    scans += ", and 1 more if there are rejects to write" if REJECTED_ROWS in tables else ""
    moved = "8 bytes per score and 24 per mention"
    if config.ranking.engine == "windows":
        scans, moved = "4 or more", "rows x identities: this is the slow engine without Python"
    shuffled = f"1 of the corpus, {moved}"
    if config.gate and config.gate.paired:
        shuffled += "; 1 more for the jackknife, 9 bytes per score and 8 per mention, a scan for every 32 identities"
    of_the_day = f"{corpus.run_date_column} is the run date" if corpus.run_date_column else ""
    if bins := config.ranking.bins:
        shuffled = f"none of the corpus; 1 of counts: from every task, one for each of {bins:,} bins and each identity"
    return {
        "corpus": f"{corpus.name}: {corpus.table or shown['corpus']['path']} ({say_count(n_columns, 'column')})",
        "rows": " and ".join(filter(None, [corpus.filter, of_the_day])) or "all",
        "label": f"{label.column}{_rule(label.threshold, label.positive)}",
        "models": ", ".join(f"{name} = {column}" if name != column else name for name, column in config.models.items()),
        "identities": "; ".join(_sources(config.identities)),
        "slices": ", ".join([ALL_ROWS, *(f"{name}: {predicate}" for name, predicate in config.slices.items())]),
        "further": ", ".join(_further(config)) or "nothing",
        "withheld": f"groups under {say_count(config.privacy.min_group_rows, 'row')}" if config.privacy else "nothing",
        "gate": _name_rules(config),
        "engine": f"binned, approximate: {bins:,} bins" if bins else config.ranking.engine,
        "tables": f"{', '.join(table.name for table in tables)} in {config.output.catalog or shown['output']['path']}",
        "scans": scans,
        "shuffles": shuffled,
    }


def describe_attribution(config: Config, n_columns: int, tables: tuple[Table, ...]) -> str:
    """Return the plan of an attribution: features, what is searched and compared, tables, and what it will cost."""
    assert config.attribution is not None  # the job asks for it
    asked, night = config.attribution, _plan_night(config, n_columns, tables)
    passes = [*_type_pass(config), "survey", "ranking", "counts", *(["features, twice"] if asked.features else [])]
    passes += ["groupings", "crosses"] if asked.groupings else []
    passes += ["segments, twice"] if asked.segments or asked.tree or asked.slice_search else []
    passes += ["one per comparison, and one more per slice of it"] if asked.compare else []
    kept = {what: night[what] for what in ("corpus", "rows", "label", "models", "slices", "tables")}
    lines = {
        "features": ", ".join(asked.features) or "none",
        "searched": ", ".join(_searches(asked)) or "nothing",
        "crosses": ", ".join(f"{name}: {text}" for name, text in asked.groupings.items()) or "none",
        "segments": ", ".join(f"{name}: {text}" for name, text in asked.segments.items()) or "none",
        "scans": f"{len(passes) + len(asked.compare) * (1 + 1 + len(config.slices))} or more ({', '.join(passes)})",
        "shuffles": "1 of every ranked row, 9 bytes per score plus its bins; 1 more for crosses, segments, comparisons",
    }
    return lay_out(kept | lines)


def describe_comparison(config: Config, n_columns: int, tables: tuple[Table, ...]) -> str:
    """Return the plan of a comparison: which models, by which method, tables, and what it will cost."""
    assert config.compare is not None  # the job asks for it
    asked, night = config.compare, _plan_night(config, n_columns, tables)
    method, shuffles = "paired DeLong", "2 per model: of a score, and of 8 bytes per identity, for each row"
    if asked.method == JACKKNIFE:
        by = f"{config.corpus.id}, whole clusters of {asked.cluster}" if asked.cluster else config.corpus.id
        method, shuffles = f"jackknife, {asked.groups:,} groups by {by}", "1 per model, of both scores of each row"
    rules = config.gate.of_comparisons if config.gate else ()
    first = [*_type_pass(config), "survey", "counts"]
    lines = {
        "compared": f"{', '.join(asked.models)} with {asked.baseline}",
        "gate": ", ".join(rule.name for rule in rules) or "none",
        "method": method,
        "scans": f"{len(first) + len(asked.models)} or more ({', '.join(first)}, one for each model and 32 identities)",
        "shuffles": shuffles,
    }
    kept = {what: night[what] for what in ("corpus", "rows", "label", "identities", "slices", "tables")}
    return lay_out(kept | lines)


def _type_pass(config: Config) -> list[str]:
    """Name the scan that tells numbers from texts in a CSV, where an expression asks for it."""
    return ["types"] if config.corpus.is_untyped and config.expressions else []


def _name_rules(config: Config) -> str:
    """Name the rules that the night is judged by, and those that are left to another job."""
    if config.gate is None:
        return "none"
    own, left = (
        ", ".join(rule.name for rule in rules) for rules in (config.gate.of_nights, config.gate.of_comparisons)
    )
    return (own or "none") + (f"; left to jobs/compare_models.py: {left}" if left else "")


def _searches(asked: Attribution) -> list[str]:
    """Say what is searched."""
    found = [f"trees of {', '.join(asked.targets)}, depth {asked.tree.max_depth}"] if asked.tree else []
    found += [f"{model} against {baseline}" for model, baseline in asked.compare]
    found += [f"the {asked.slice_search.most} worst slices"] if asked.slice_search else []
    pairs = asked.pairs
    return found + ([f"pairs of {pairs.positives:,} positives and {pairs.negatives:,} negatives"] if pairs else [])


def _further(config: Config) -> list[str]:
    """Say which parts the configuration turns on."""
    found = []
    if config.pinned_auc:
        trials = config.pinned_auc.trials
        found.append("pinned AUC" + (f" with {say_count(trials, 'trial')}" if trials else ""))
    if config.thresholds:
        at = config.thresholds.at
        found.append(f"rates at {', '.join(map(str, at)) if len(at) < 6 else f'{len(at):,} thresholds'}")
    if config.histograms:
        found.append(f"histograms of {say_count(config.histograms.bins, 'bin')}")
    if config.label_balance:
        by = config.label_balance.text or config.label_balance.length
        found.append(f"label balance{f' by the length of {by}' if by else ''}")
    if config.templates:
        found.append(f"mean scores by {config.templates.column}")
    if config.state:
        found.append("sorted scores kept for windows of nights")
    return found


def _rule(threshold: float | None, positive: tuple[object, ...] | None) -> str:
    if positive is not None:
        return f" is one of {', '.join(map(repr, positive))}"
    return "" if threshold is None else f" >= {threshold}"


def _sources(identities: Identities) -> list[str]:
    found = []
    if identities.columns:
        found.append(f"{say_count(len(identities.columns), 'column')} ({', '.join(identities.columns)})")
    found += [f"each value of {name}" for name in identities.categorical]
    if identities.array:
        found.append(f"each value in {identities.array}")
    if identities.predicates:
        found.append(f"{say_count(len(identities.predicates), 'predicate')} ({', '.join(identities.predicates)})")
    if identities.terms:
        names = [name for name, _ in identities.terms.terms]
        n_groups = sum(terms != (name,) for name, terms in identities.terms.terms)
        counted = [f"{say_count(n_groups, 'group')} of terms"] if n_groups else []
        counted[:0] = [say_count(len(names) - n_groups, "term")] if n_groups < len(names) else []
        found.append(f"{', '.join(counted)} in {identities.terms.column} ({', '.join(names)})")
    if identities.crossed.pairs:
        found.append(f"their pairs with {identities.crossed.min_rows:,} rows or more")
    return found
