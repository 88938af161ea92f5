"""The README's table of what was survived: what each test of tests/faults says that it does, and how it went."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
FAULTS = ROOT / "tests" / "faults"
BEGIN, END = "<!-- survived: written by scripts/survived -->", "<!-- /survived -->"
HEAD = "| what happens | what comes of it | cases | outcome |\n| --- | --- | ---: | --- |\n"


@dataclass
class Outcome:
    """What became of the cases of one test."""

    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many there are."""
        return self.passed + self.failed + len(self.skipped)

    def __str__(self) -> str:
        """Say it in a word where all cases went alike."""
        words = [f"{self.failed} NOT survived"] if self.failed else []
        words += [f"{len(self.skipped)} not tried: {'; '.join(sorted(set(self.skipped)))}"] if self.skipped else []
        if self.passed:
            words.insert(0, "survived" if self.passed == self.cases else f"{self.passed} survived")
        return ", ".join(words)


def read_sayings(folder: Path = FAULTS) -> dict[str, tuple[str, str]]:
    """Give for each test, by name, what happens in it and what comes of that, as the start of its docstring says.

    ``A disk runs full: readers see the night before.`` is both, on either side of the first colon.
    """
    found = {}
    for file in sorted(folder.glob("test_*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                said = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                happens, colon, comes = said.partition(": ")
                if not colon or not comes.endswith("."):
                    sys.exit(f"{file.name}: {node.name} does not say, as `what happens: what comes of it.`")
                found[node.name] = (happens, comes[:1].upper() + comes[1:])
    return found


def read_results(files: Iterable[Path]) -> dict[str, Outcome]:
    """Give the outcome of each test, by its name, in the order of the files."""
    cases: dict[tuple[str, str], ElementTree.Element] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            cases[case.get("classname", ""), case.get("name", "")] = case
    found: dict[str, Outcome] = {}
    for (_, name), case in cases.items():
        note_case(found.setdefault(name.partition("[")[0], Outcome()), case)
    return found


def note_case(outcome: Outcome, case: ElementTree.Element) -> None:
    """Count a case where it belongs."""
    skipped = case.find("skipped")
    if case.find("failure") is not None or case.find("error") is not None:
        outcome.failed += 1
    elif skipped is not None:
        outcome.skipped.append(skipped.get("message", ""))
    else:
        outcome.passed += 1


def format_outcomes(found: Mapping[str, Outcome], sayings: Mapping[str, tuple[str, str]]) -> str:
    """Lay the outcomes out as a table of Markdown."""
    lines = (
        f"| {' | '.join(sayings[name])} | {outcome.cases} | {outcome} |\n"
        for name, outcome in found.items()
        if name in sayings  # a kept result may be that of a test that is gone
    )
    return HEAD + "".join(lines)


def put_between(text: str, table: str) -> str:
    """Put a table in place of what stands between the two comments."""
    pattern = f"(?<={re.escape(BEGIN)}\n).*(?={re.escape(END)})"
    changed, count = re.subn(pattern, lambda _: table, text, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"{README.name}: it lacks the comments {BEGIN} and {END}, or has them twice.")
    return changed


def main() -> None:
    """Write the table, and fail where anything was not survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS.xml")
    found = read_results(parser.parse_args().results)
    README.write_text(put_between(README.read_text("utf-8"), format_outcomes(found, read_sayings())), "utf-8")
    cases = sum(outcome.cases for outcome in found.values())
    failed = sum(outcome.failed for outcome in found.values())
    print(f"{README.name}: {len(found)} tests of {cases} cases, {failed} not survived.")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
