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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from scripts.dev.references import put_between

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "faults.md"
FAULTS = ROOT / "tests" / "faults"
RESULTS = ROOT / "build" / "faults.xml"
PASSED, FAILED = "passed", "failed"
HEAD = "| fault | effect | cases | outcome |\n| --- | --- | ---: | --- |\n"


def read_docstrings() -> dict[str, tuple[str, str]]:
    """Return the fault and the effect that each test describes, by its name.

    A docstring begins with both, as ``A disk runs full: readers see the earlier run.``
    """
    described = {}
    for file in sorted(FAULTS.glob("test_*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                summary = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                fault, colon, effect = summary.partition(": ")
                if not colon or not effect.endswith("."):
                    sys.exit(f"{file.name}: the docstring of {node.name} must begin with `fault: effect.`")
                described[node.name] = (fault, effect[:1].upper() + effect[1:])
    return described


def read_results(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return by test, in the order of the files, the outcome of each of its cases; of a skipped one the reason."""
    cases: dict[tuple[str, str], ElementTree.Element] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            cases[case.get("classname", ""), case.get("name", "")] = case
    outcomes: dict[str, list[str]] = {}
    for (_, name), case in cases.items():
        skipped, has_failed = case.find("skipped"), any(case.find(tag) is not None for tag in ("failure", "error"))
        outcome = FAILED if has_failed else PASSED if skipped is None else skipped.get("message", "")
        outcomes.setdefault(name.partition("[")[0], []).append(outcome)
    return outcomes


def describe(outcomes: Sequence[str]) -> str:
    """Describe the outcomes of a test, for a cell of a table."""
    passed, failed = (outcomes.count(outcome) for outcome in (PASSED, FAILED))
    skipped = [outcome for outcome in outcomes if outcome not in (PASSED, FAILED)]
    words = ["survived" if passed == len(outcomes) else f"{passed} survived"] if passed else []
    words += [f"{failed} NOT survived"] if failed else []
    words += [f"{len(skipped)} not run: {'; '.join(sorted(set(skipped)))}"] if skipped else []
    return ", ".join(words).replace("|", r"\|")


def format_table(outcomes: Mapping[str, Sequence[str]], described: Mapping[str, tuple[str, str]]) -> str:
    """Return the table as Markdown, without tests that no longer exist."""
    lines = (
        f"| {' | '.join(described[name])} | {len(cases)} | {describe(cases)} |\n"
        for name, cases in outcomes.items()
        if name in described
    )
    return HEAD + "".join(lines)


def main() -> None:
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
    cases = [outcome for of_test in outcomes.values() for outcome in of_test]
    failed = cases.count(FAILED)
    print(f"{PAGE.name}: {len(outcomes)} tests with {len(cases)} cases, {failed} not survived.")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
