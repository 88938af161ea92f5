"""A small corpus with everything in it that is easily got wrong, and what its rows mean, told without the product."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.tables.schemas import Table
from tests.oracle.further import Labels, Row, Scores
from tests.oracle.pairs import State, cross_all

SCHEMA = (
    "id INT, target DOUBLE, s1 DOUBLE, s2 FLOAT, s3 DOUBLE, c1 DOUBLE, c2 BOOLEAN, nobody DOUBLE, everybody DOUBLE, "
    "cat STRING, groups ARRAY<STRING>, text STRING, k INT, length INT, template STRING"
)
COLUMNS = [field.split()[0] for field in SCHEMA.split(", ")]
MODELS = {"tied": "s1", "narrow": "s2", "logit": "s3"}
SLICES = {"odd": "k % 2 = 1", "nowhere": "k > 100"}
TERMS = {"gay": ["gay", "lesbian"], "african american": ["african american"], "african": ["african"]}
WORDS = ("gay", "lesbian", "african", "american", "African-American", "Gay", "gays", "x", "the", "é", "🙂")
MIN_ROWS = 55
THRESHOLDS = (-20.0, 0.0, 0.3, 0.5, 0.7, 1.0, 20.0)
"""Some are scores of many rows; 0.3 and 0.7 are not what their float32 are; the first and the last part nothing."""

IDENTITIES: dict[str, Any] = {
    "columns": ["c1", "c2", "nobody", "everybody"],
    "categorical": ["cat"],
    "array": "groups",
    "predicates": {"big": "k > 5"},
    "terms": {"column": "text", "list": TERMS},
    "crossed": {"pairs": True, "min_rows": MIN_ROWS},
}


def measures(unannotated: str = "exclude", **changes: Any) -> dict[str, Any]:
    """What a public function is asked for."""
    wanted = {
        "models": MODELS,
        "label": "target",
        "label_threshold": 0.5,
        "identities": IDENTITIES | {"unannotated": unannotated},
        "slices": SLICES,
    }
    return wanted | changes


def make_rows(n_rows: int = 240, seed: int = 11) -> list[tuple[Any, ...]]:
    """Ties, both zeros, labels and scores that are none, and annotations unknown by row, by source and by identity."""
    rng = random.Random(seed)

    def fraction() -> float | None:
        return rng.choice([None, 0.0, 0.0, 0.3, 0.5, 0.8])

    rows: list[tuple[Any, ...]] = []
    for number in range(n_rows):
        annotated = rng.random() < 0.7
        positive = rng.random() < 0.35
        tenth = min(max(round(rng.gauss(0.65 if positive else 0.4, 0.25), 1), 0.0), 1.0)
        text = " ".join(rng.choices(WORDS, k=rng.choice([1, 1, 3, 6, 12]))) if rng.random() < 0.9 else None
        rows.append(
            (
                number,
                rng.choice([0.5, 0.9] if positive else [0.0, 0.2])
                if rng.random() < 0.9
                else rng.choice([None, math.nan]),
                rng.choice([None, math.nan, math.inf, -0.0, *[tenth] * 36]),
                None if rng.random() < 0.05 else tenth if rng.random() < 0.5 else rng.random(),
                rng.choice([math.nan, *[round(4 * rng.gauss(positive, 2)) / 4, rng.gauss(positive, 3)] * 10]),
                fraction() if annotated else None,
                rng.choice([None, True, False, False]) if annotated else None,
                0.0 if annotated else None,
                1.0 if annotated else None,
                rng.choice(["a", "b c", None]),
                rng.choice([None, ["u"], ["u", "v", "u"], [], [None, "v"]]),
                text,
                rng.randint(0, 9),
                rng.choice([None, 0, 19, 20, 59, 60, 1619, 4859, 4860, 9999]),
                rng.choice([None, "", "t1", "t1", "t2 {x}", f"rare {number // 40}"]),
            )
        )
    return rows + _rows_that_count_for_nothing(n_rows)


def _rows_that_count_for_nothing(first: int) -> list[tuple[Any, ...]]:
    """Rejected rows whose scores lie beyond all others, and a positive and a negative in a bucket with no other."""
    no_label = (first, None, 0.5, 0.5, 99.0, 0.8, True, 0.0, 1.0, "a", ["u"], "gay", 9, 60, "t1")
    no_score = (first + 1, 0.9, None, math.nan, None, 0.8, True, 0.0, 1.0, "a", ["u"], "gay", 9, 60, "unscored")
    negatives = [
        (first + 2 + n, 0.0, 0.5, 0.5, 0.5, 0.8, False, 0.0, 1.0, "a", [], "gay " + "y" * (196 + n), 0, 540, "t1")
        for n in range(3)
    ]
    return [no_label, no_score, *negatives]


def frame_of(spark: SparkSession, rows: Sequence[tuple[Any, ...]], partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(list(rows), SCHEMA).repartition(partitions)


def shuffled(rows: Sequence[tuple[Any, ...]], seed: int = 3) -> list[tuple[Any, ...]]:
    return random.Random(seed).sample(list(rows), len(rows))


@dataclass(frozen=True)
class Case:
    """The rows of one slice that count for one model, and the state of each identity on them: 1, 0 or NaN."""

    model: str
    slice: str
    score: Scores
    label: Labels
    identities: Mapping[str, Scores]
    template: list[str | None]

    @property
    def key(self) -> Row:
        return {"model": self.model, "slice": self.slice}

    @property
    def singles(self) -> dict[str, Scores]:
        return {name: inside for name, inside in self.identities.items() if not is_crossed(name)}


def is_crossed(identity: str) -> bool:
    return " & " in identity


class Meaning:
    """What the rows mean, as the specification says."""

    def __init__(self, rows: Sequence[tuple[Any, ...]], unannotated: str = "exclude") -> None:
        self.rows = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        self.background = unannotated == "background"

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]

    @cached_property
    def label(self) -> list[bool | None]:
        return [None if is_none(target) else target >= 0.5 for target in self.column("target")]

    def score(self, model: str) -> Scores:
        kind = np.float32 if model == "narrow" else np.float64
        found = np.array([math.nan if is_none(score) else score for score in self.column(MODELS[model])], kind)
        return np.where(np.isinf(found), kind(math.nan), found)

    @cached_property
    def slices(self) -> dict[str, Labels]:
        k = np.array(self.column("k"))
        return {"all": k >= 0, "odd": k % 2 == 1, "nowhere": k > 100}

    @cached_property
    def identities(self) -> dict[str, Scores]:
        """1 in the identity, 0 outside, NaN where it is unknown; crossed pairs that have enough rows."""
        singles = [self._states(row) for row in self.rows]
        names = list(singles[0])
        names += [f"{one} & {other}" for place, one in enumerate(names) for other in names[place + 1 :]]
        every = [cross_all(tuple(states.values())) for states in singles]
        columns = zip(names, zip(*every, strict=True), strict=True)
        found = {
            name: np.array([math.nan if state is None else float(state) for state in states])
            for name, states in columns
        }
        return {
            name: inside for name, inside in found.items() if not is_crossed(name) or (inside == 1).sum() >= MIN_ROWS
        }

    def _states(self, row: Row) -> dict[str, State]:
        def known(value: object, state: bool) -> State:
            return (False if self.background else None) if value is None else state

        found = {name: known(row[name], bool(row[name] and row[name] >= 0.5)) for name in IDENTITIES["columns"]}
        found |= {f"cat={value}": known(row["cat"], row["cat"] == value) for value in ("a", "b c")}
        found |= {value: known(row["groups"], value in (row["groups"] or [])) for value in ("u", "v")}
        found["big"] = row["k"] > 5
        for name, terms in TERMS.items():
            words = re.compile(rf"(?<!\w)({'|'.join(terms)})(?!\w)", re.IGNORECASE)
            found[name] = known(row["text"], bool(words.search(row["text"] or "")))
        return found

    def cases(self) -> Iterator[Case]:
        known = np.array([label is not None for label in self.label])
        for model in MODELS:
            score = self.score(model)
            for name, inside in self.slices.items():
                chosen = np.flatnonzero(known & inside & ~np.isnan(score))
                yield Case(
                    model,
                    name,
                    score[chosen],
                    np.array([self.label[row] for row in chosen], bool),
                    {identity: states[chosen] for identity, states in self.identities.items()},
                    [self.rows[row]["template"] for row in chosen],
                )


def is_none(value: float | None) -> bool:
    return value is None or math.isnan(value)


def assert_rows(found: Iterable[Any], wanted: Iterable[Row], table: Table, unforetold: Set[str] = frozenset()) -> None:
    """Assert that the rows are these, whatever their order: doubles within 1e-12, everything else as it is.

    Columns that are `unforetold` may hold anything. What is exact is its own bound, and the worst is a contender.
    """
    by_key = {tuple(row[name] for name in table.key_columns): row.asDict() for row in found}
    expected = {tuple(row[name] for name in table.key_columns): row for row in wanted}
    assert by_key.keys() == expected.keys()
    assert expected
    for place, row in expected.items():
        assert tuple(by_key[place]) == table.value_columns
        bounds = {name for name in table.value_columns if name.endswith(("_at_least", "_at_most", "_contenders"))}
        assert by_key[place].keys() == row.keys() | unforetold | bounds
        assert_exact(by_key[place], place)
        for name, value in row.items():
            assert_value(by_key[place][name], value, (*place, name))


def assert_exact(row: Row, where: tuple[Any, ...]) -> None:
    """Assert that the bounds of every value are the value itself."""
    for name, value in row.items():
        if name.endswith(("_at_least", "_at_most")):
            assert value == row[name.removesuffix("_at_least").removesuffix("_at_most")], (*where, name)
        elif name.endswith("_contenders"):
            worst = row[name.replace("_contenders", "_identity")]
            assert worst in value if worst else value is None, (*where, name)


def assert_value(found: object, wanted: object, where: tuple[Any, ...]) -> None:
    if isinstance(found, float):
        assert not math.isnan(found), where
        assert found != 0 or math.copysign(1.0, found) == 1.0, where
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12), where
    else:
        assert (type(found), found) == (type(wanted), wanted), where


def in_order(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The rows with every bit of them, in an order that does not depend on how they came."""
    return sorted(map(tuple, rows), key=repr)
