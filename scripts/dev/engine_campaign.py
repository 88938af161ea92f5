"""Measure thousands of small corpora on the embedded engine, on classic Spark and by definition; report differences.

usage: python -m scripts.dev.engine_campaign [--minutes M] [--first N] [--cases N] [--seed S] [--out results.json]
           [--answers FILE]

Each corpus is made from the seed and its number alone. Both engines read it, survey it, and pack its rows (EXAMPLES);
of every eighth corpus they compute all tables of a run. Values are compared as they are written in full: integers
exactly, doubles by their bits. If a corpus is not measured, the exit code and the keys at fault are compared.
Differences that docs/embedded.md lists, such as a row on which only one engine computes an expression that fails, are
counted as explained. The rows of Parquet without a filter are also counted by hand.

Supports docs/embedded.md#sql: both engines return the same numbers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import Corpus, Rejects, parse_measures
from biasspark.corpus.decode import states
from biasspark.corpus.eligibility import rejected_rows
from biasspark.corpus.read import read_corpus
from biasspark.errors import BiasSparkError
from biasspark.session import build_session
from biasspark.session.spark_errors import translate_corpus_errors
from biasspark.session_request import SessionRequest
from biasspark.workflows.corpus_steps import measure, survey_for_ranking
from scripts.dev.campaign_corpora import Case, count_by_hand, make_case, simpler_cases, write_case

RUN_DATE = date(2026, 1, 15)
_BATCH = 24
_SMALL = {  # what makes queries of a few rows fast; none of it changes a value
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@dataclass
class Answer:
    """The result of an engine for a corpus."""

    exit_code: int
    """As a job ends: 0 if it is measured."""
    faults: list[str] = field(default_factory=list)
    """The keys at fault, or the first words of a message without keys."""
    is_refused: bool = False
    """Whether the embedded engine refuses it as unsupported."""
    tables: dict[str, list[str]] = field(default_factory=dict)
    """Rows by table, sorted, each cell written in full."""
    message: str = ""

    @property
    def digest(self) -> str:
        """A hash of the answer, without its messages."""
        return sha256(repr((self.exit_code, self.faults, sorted(self.tables.items()))).encode()).hexdigest()[:16]


# ---- what an engine does


def answer(spark: SparkSession, case: Case, folder: str) -> Answer:
    """Read, survey and encode a corpus, and measure it if the case wants all tables."""
    try:
        return Answer(0, tables=dict(_measure(spark, case, folder)))
    except BiasSparkError as error:
        messages = [str(message) for message in getattr(error, "messages", None) or [str(error)]]
        keys = [".".join(map(str, getattr(fault, "path", ()))) for fault in getattr(error, "faults", ())]
        is_refused = any(re.search("embedded engine|run it on Spark", message) for message in messages)
        return Answer(error.exit_code, sorted(filter(None, keys)), is_refused, message="\n".join(messages)[:2000])
    except Exception as error:  # noqa: BLE001 - what no job expects is a difference, too
        return Answer(1, [type(error).__name__], message=str(error)[:2000])


def _measure(spark: SparkSession, case: Case, folder: str) -> Iterator[tuple[str, list[str]]]:
    measures = parse_measures(case.measures)
    corpus = Corpus(**({"name": "case", "path": f"{folder}/corpus"} | case.corpus))
    rows = read_corpus(spark, corpus, RUN_DATE, measures)
    with survey_for_ranking(rows, measures, corpus.id, corpus.duplicates, Rejects()) as surveyed:
        survey, encoding = surveyed.survey, surveyed.encoding
        absent = tuple(value for value, (is_there, _) in survey.positives.items() if not is_there)
        variants = {str(value): n for value, (_, n) in survey.positives.items() if n}
        facts = survey.n_rows, survey.values, survey.extremes, absent, variants
        yield "survey", [_write(each) for each in facts]
        packed = [*encoding.word_columns, *encoding.score_columns]
        examples = surveyed.examples.select(*packed, F.array(*states(encoding)).alias("states"))
        with translate_corpus_errors(surveyed.corpus, measures.expressions):
            yield "examples", _rows_of(examples)
        if not case.is_whole:
            return
        measurement = measure(surveyed)
        for table, content in measurement.tables.items():
            yield table.name, sorted(_write(list(row.values())) for row in content.to_pylist())
        yield "rejected_rows", _rows_of(rejected_rows(surveyed.corpus, measures, corpus.id, 1_000))


def _rows_of(frame: DataFrame) -> list[str]:
    return sorted(_write(list(row.values())) for row in frame.toArrow().to_pylist())


def _write(value: Any) -> str:
    """Write a value in full: a double by its bits."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value).hex()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_write(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_write, value)) + "]"
    return repr(value)


class Engine:
    """An engine in a process of its own: a process has one session."""

    def __init__(self, name: str) -> None:
        self._new_pool = partial(ProcessPoolExecutor, 1, get_context("spawn"), _start_session, (name,))
        self._pool = self._new_pool()

    def ask(self, cases: Sequence[Case], folders: Sequence[str]) -> list[Answer]:
        """Return the answer to each case, whose files are below a folder; exit code 1 if the process dies of it."""
        try:
            return self._pool.submit(_answer_all, cases, folders).result()
        except BrokenProcessPool:
            self._pool = self._new_pool()
        if len(cases) == 1:
            return [Answer(1, ["the process died"])]
        return [self.ask([case], [folder])[0] for case, folder in zip(cases, folders, strict=True)]

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


_sessions: list[SparkSession] = []


def _start_session(engine: str) -> None:
    """Start the small session of a process, and drop what it prints."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    if engine == "embedded":
        _sessions.append(build_session("campaign", request=SessionRequest(engine="embedded")))
    else:
        _sessions.append(build_session("campaign", _SMALL, SessionRequest(engine="spark", master="local[2]")))


def _answer_all(cases: Sequence[Case], folders: Sequence[str]) -> list[Answer]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(partial(answer, _sessions[0]), cases, folders))


# ---- comparison


def difference(case: Case, embedded: Answer, spark: Answer) -> str | None:
    """Return how two answers differ, in a few words; None if they are equal or explained, or refused."""
    if embedded.is_refused or _is_explained(embedded, spark):
        return None
    if embedded.exit_code != spark.exit_code:
        return f"exit {embedded.exit_code} for {spark.exit_code}"
    if embedded.faults != spark.faults:
        return f"faults {embedded.faults} for {spark.faults}"
    for name, rows in spark.tables.items():
        if embedded.tables.get(name) != rows:
            return f"table {name}"
    by_hand = count_by_hand(case) if not spark.exit_code else None
    if by_hand is not None and by_hand != spark.tables["survey"][0]:
        return "rows by hand"
    return None


def outcome_of(embedded: Answer, spark: Answer) -> str:
    """Return what two answers without an unexplained difference count as."""
    if embedded.is_refused:
        return "refused"
    return f"exit {spark.exit_code}" if embedded.digest == spark.digest else "explained"


def _is_explained(embedded: Answer, spark: Answer) -> bool:
    """Return whether a difference is one that docs/embedded.md lists.

    One engine stops at a value on which an expression fails, such as an overflow, and the other one does not need that
    value. And of several faults the embedded engine may see fewer at once.
    """
    overflows = any("overflows" in each.message for each in (embedded, spark))
    on_a_row = re.search("fails on a row|cannot be cast|divided by zero", embedded.message)
    fails_on_a_row = on_a_row and embedded.exit_code == 3 and spark.exit_code in (0, 3)
    both_stop = embedded.exit_code == spark.exit_code == 3 and set(embedded.faults) <= set(spark.faults)
    return bool(fails_on_a_row) or both_stop or bool(overflows and (embedded.exit_code or spark.exit_code))


def shrink(case: Case, differs: Callable[[Sequence[Case]], list[bool]]) -> Case:
    """Return a smaller case that still differs: fewer rows, files, columns and expressions."""
    for _ in range(6):
        candidates = list(simpler_cases(case))
        smaller = next((each for each, is_one in zip(candidates, differs(candidates), strict=True) if is_one), None)
        if smaller is None:
            return case
        case = smaller
    return case


def ask_both(engines: tuple[Engine, Engine], cases: Sequence[Case], folder: Path) -> list[tuple[Answer, Answer]]:
    """Write the corpora, and return the answers of the embedded engine and of Spark to each case.

    What the embedded engine refuses needs no second answer: it counts for both.
    """
    folders = [mkdtemp(dir=folder) for _ in cases]
    for case, of_case in zip(cases, folders, strict=True):
        write_case(case, Path(of_case))
        write_case(case, Path(of_case) / "spark", splits_bytes=False)
    embedded = engines[0].ask(cases, folders)
    asked = [n for n, answered in enumerate(embedded) if not answered.is_refused]
    of_spark = engines[1].ask([cases[n] for n in asked], [f"{folders[n]}/spark" for n in asked])
    spark = dict(zip(asked, of_spark, strict=True))
    for of_case in folders:
        rmtree(of_case)
    return [(answered, spark.get(n, answered)) for n, answered in enumerate(embedded)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=20260115)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--answers", type=Path, help="where to keep what Spark answered, for the tests")
    options = parser.parse_args()
    end, differing = time.monotonic() + 60 * options.minutes, []
    outcomes: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    kept: dict[int, str] = {}
    last = options.first + options.cases
    engines = Engine("embedded"), Engine("spark")
    with TemporaryDirectory(prefix="campaign-") as name:
        folder = Path(name)
        for start in range(options.first, last, _BATCH):
            if time.monotonic() > end:
                break
            cases = [make_case(options.seed, number) for number in range(start, min(start + _BATCH, last))]
            for case, (embedded, spark) in zip(cases, ask_both(engines, cases, folder), strict=True):
                how = difference(case, embedded, spark)
                outcomes["differs" if how else outcome_of(embedded, spark)] += 1
                if how:
                    print(f"  {case.number}: {how}", *_explain(case, embedded, spark), sep="\n    ", flush=True)
                    differing.append((case, how))
                elif embedded.is_refused:
                    refusals[_rule_of(embedded.message)] += 1
                elif embedded.digest == spark.digest:
                    kept[case.number] = spark.digest
            print(f"{outcomes.total()} cases: {dict(outcomes)}", file=sys.stderr, flush=True)

        def differ(cases: Sequence[Case]) -> list[bool]:
            answers = ask_both(engines, cases, folder)
            return [bool(difference(case, *both)) for case, both in zip(cases, answers, strict=True)]

        reported = []
        for case, how in differing[:40]:
            small = shrink(case, differ) if time.monotonic() < end + 60 else case
            reported.append({"number": case.number, "difference": how, "case": small.describe()})
    for engine in engines:
        engine.close()
    reported.sort(key=lambda each: len(str(each["case"])))
    for each in reported:
        print(json.dumps(each, ensure_ascii=False, default=str))
    if options.answers:
        text = json.dumps({"seed": options.seed, "answers": kept}, indent=1)
        options.answers.write_text(f"{text}\n", encoding="utf-8")
    if options.out:
        head = {
            "seed": options.seed,
            "first": options.first,
            "cases": outcomes.total(),
            "outcomes": dict(sorted(outcomes.items())),
            "refusals": dict(refusals.most_common()),
            "differences": reported,
        }
        options.out.write_text(json.dumps(head, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    return 1 if differing else 0


def _rule_of(message: str) -> str:
    """Return the sentence by which the embedded engine refuses, without names of files."""
    sentence = re.search(r"The embedded engine [^.]*", message)
    return re.sub(r"[:'].*", "", sentence[0] if sentence else message)


def _explain(case: Case, embedded: Answer, spark: Answer) -> Iterator[str]:
    """Yield the description of a case, and the first rows that differ."""
    yield json.dumps(case.describe(), ensure_ascii=False, default=str)[:900]
    for name, got in (("embedded", embedded), ("spark", spark)):
        if got.exit_code:
            yield f"{name}: exit {got.exit_code} {got.faults} {got.message[:300]}"
    for name, rows in spark.tables.items():
        more, fewer = (
            Counter(a) - Counter(b)
            for a, b in ((embedded.tables.get(name, []), rows), (rows, embedded.tables.get(name, [])))
        )
        if more or fewer:
            yield f"{name}: embedded {list(more)[:2]} spark {list(fewer)[:2]}"[:700]
            return


if __name__ == "__main__":
    sys.exit(main())
