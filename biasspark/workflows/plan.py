"""What ``--dry-run`` prints: what a run reads, computes and writes, and each pass over the corpus that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from biasspark.columns import ALL_ROWS
from biasspark.config import Config, Identities
from biasspark.tables.schemas import Table
from biasspark.text import format_count


class Pass(NamedTuple):
    """A scan of the corpus, and what it shuffles between machines: nothing if the text is empty."""

    name: str
    shuffled: str = ""

    def __str__(self) -> str:
        return f"{self.name} (shuffles {self.shuffled})" if self.shuffled else self.name


class Plan(NamedTuple):
    """What a workflow declares of a run before it starts: what is computed, by the name of its line, and the passes.

    ``tables`` are those of the parts that are configured; None where all of the job's may be written.
    """

    parts: Mapping[str, str]
    passes: Iterable[Pass]
    tables: Iterable[Table] | None = None
    warnings: Iterable[str] = ()


def describe_plan(plan: Plan, config: Config, n_columns: int, tables: Iterable[Table]) -> str:
    """Return a plan as aligned lines: the input, what is computed, the tables, and the passes over the corpus."""
    corpus, label, shown = config.corpus, config.label, config.resolved()  # without passwords in paths
    run_date = f"{corpus.run_date_column} is the run date" if corpus.run_date_column else ""
    types = [Pass("read the types of the columns")] if corpus.is_untyped and config.expressions else []
    lines = {
        "corpus": f"{corpus.name}: {corpus.table or shown['corpus']['path']} ({format_count(n_columns, 'column')})",
        "rows": " and ".join(filter(None, [corpus.filter, run_date])) or "all",
        "label": f"{label.column}{_describe_rule(label.threshold, label.positive)}",
        "models": ", ".join(f"{name} = {column}" if name != column else name for name, column in config.models.items())
        or "none",
        "slices": ", ".join([ALL_ROWS, *(f"{name}: {predicate}" for name, predicate in config.slices.items())]),
        **plan.parts,
        "tables": f"{', '.join(table.name for table in tables)} in {config.output.catalog or shown['output']['path']}",
        "passes": f"\n{'':12} ".join(map(str, [*types, *plan.passes])),
    }
    return "\n".join(f"{name + ':':<12} {text}" for name, text in lines.items())


def describe_identities(identities: Identities) -> str:
    """Return where identities come from, each source with its columns or names."""
    sources = []
    if identities.columns:
        sources.append(f"{format_count(len(identities.columns), 'column')} ({', '.join(identities.columns)})")
    sources += [f"each value of {name}" for name in identities.categorical]
    if identities.array:
        sources.append(f"each value in {identities.array}")
    if identities.predicates:
        names = ", ".join(identities.predicates)
        sources.append(f"{format_count(len(identities.predicates), 'predicate')} ({names})")
    if identities.terms:
        words = list(identities.terms.list)
        n_groups = sum(terms != (name,) for name, terms in identities.terms.list.items())
        counts = [format_count(len(words) - n_groups, "term")] if n_groups < len(words) else []
        counts += [f"{format_count(n_groups, 'group')} of terms"] if n_groups else []
        sources.append(f"{', '.join(counts)} in {identities.terms.column} ({', '.join(words)})")
    if identities.crossed.pairs:
        sources.append(f"their pairs with {identities.crossed.min_rows:,} rows or more")
    return "; ".join(sources)


def passes_for_ids(config: Config) -> list[Pass]:
    """Return the pass that finds repeated ids, if they are rejected."""
    return [Pass("find repeated ids", "the ids")] if config.corpus.duplicates == "reject" else []


def _describe_rule(threshold: float | None, positive: tuple[object, ...] | None) -> str:
    if positive is not None:
        return f" is one of {', '.join(map(repr, positive))}"
    return "" if threshold is None else f" >= {threshold}"
