"""Write the table of faults into the documentation: a line for each test of tests/faults, and its outcome.

    .venv/bin/python -m scripts.dev.fault_report [RESULTS.xml ...]

Without arguments, runs tests/faults with the slow ones (a quarter of an hour). With the results of `pytest --junitxml`,
runs nothing; if several have a test, the last counts. Exit code 1 if a fault was not survived.

Supports docs/faults.md: the outcome of each fault.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from scripts.dev.references import put_between

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "faults.md"
FAULTS = ROOT / "tests" / "faults"
RESULTS = ROOT / "build" / "faults.xml"
HEAD = "| fault | effect | cases | outcome |\n| --- | --- | ---: | --- |\n"


@dataclass
class Outcome:
    """The outcomes of the cases of one test."""

    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """The number of cases."""
        return self.passed + self.failed + len(self.skipped)

    def __str__(self) -> str:
        words = [f"{self.failed} NOT survived"] if self.failed else []
        words += [f"{len(self.skipped)} not run: {'; '.join(sorted(set(self.skipped)))}"] if self.skipped else []
        if self.passed:
            words.insert(0, "survived" if self.passed == self.cases else f"{self.passed} survived")
        return ", ".join(words)


def read_docstrings(folder: Path = FAULTS) -> dict[str, tuple[str, str]]:
    """Return the fault and the effect that each test describes, by its name.

    A docstring begins with both, as ``A disk runs full: readers see the earlier run.``
    """
    described = {}
    for file in sorted(folder.glob("test_*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                summary = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                fault, colon, effect = summary.partition(": ")
                if not colon or not effect.endswith("."):
                    sys.exit(f"{file.name}: the docstring of {node.name} must begin with `fault: effect.`")
                described[node.name] = (fault, effect[:1].upper() + effect[1:])
    return described


def read_results(files: Iterable[Path]) -> dict[str, Outcome]:
    """Return the outcome of each test by its name, in the order of the files."""
    cases: dict[tuple[str, str], ElementTree.Element] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            cases[case.get("classname", ""), case.get("name", "")] = case
    outcomes: dict[str, Outcome] = {}
    for (_, name), case in cases.items():
        outcome, skipped = outcomes.setdefault(name.partition("[")[0], Outcome()), case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        elif skipped is not None:
            outcome.skipped.append(skipped.get("message", ""))
        else:
            outcome.passed += 1
    return outcomes


def format_table(outcomes: Mapping[str, Outcome], described: Mapping[str, tuple[str, str]]) -> str:
    """Return the table as Markdown, without tests that no longer exist."""
    lines = (
        f"| {' | '.join(described[name])} | {outcome.cases} | {outcome} |\n"
        for name, outcome in outcomes.items()
        if name in described
    )
    return HEAD + "".join(lines)


def main() -> None:
    """Run the tests unless their results are given, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS.xml")
    files = parser.parse_args().results
    if not files:
        test = [str(ROOT / "scripts" / "test"), "--all", "-n0", "tests/faults", f"--junitxml={RESULTS}"]
        RESULTS.unlink(missing_ok=True)
        if (code := subprocess.run(test, check=False).returncode) not in (0, 1):  # 1: failures are in the table
            sys.exit(f"scripts/test ended with exit code {code} before all tests had run.")
        files = [RESULTS]
    outcomes = read_results(files)
    table = format_table(outcomes, read_docstrings())
    PAGE.write_text(put_between(PAGE.read_text("utf-8"), "faults", table, "scripts/dev/fault_report.py"), "utf-8")
    cases, failed = (sum(getattr(outcome, name) for outcome in outcomes.values()) for name in ("cases", "failed"))
    print(f"{PAGE.name}: {len(outcomes)} tests with {cases} cases, {failed} not survived.")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
