"""The commands of README.md and docs/, run one after another as by a reader who has cloned the project.

Those of most pages take what the README's commands make, over 1.8 million comments, and run with the slow tests alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from biasspark.synthetic.blocks import make_table
from biasspark.synthetic.civil_rows import CivilShape
from tests.documents import ROOT, blocks_of, files_of, output_of, read_lines
from tests.running_jobs import ask

COPIED = ("biasspark", "conf", "jobs", "scripts", "docs")
README = "README.md"
FIRST = ["docs/configuration.md", "docs/performance.md"]
"""Pages of which the commands find all that they take in a clone."""

LATER = [page for page in dict.fromkeys(block.page for block in blocks_of("sh", "")) if page not in (README, *FIRST)]
NOT_HERE = re.compile("unresolved dependency")
"""What is said where the jars of a table format cannot be had."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project without what runs have left in it, and a corpus for civil.toml."""
    folder = tmp_path_factory.mktemp("clone")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for lock in ROOT.glob("requirements*.lock"):
        shutil.copy(lock, folder)
    write_comments(folder / "data" / "civil")
    return folder


@pytest.fixture(scope="module")
def demo(clone: Path) -> Path:
    """The clone with what the README's commands make."""
    run_page(README, clone)
    return clone


def write_comments(folder: Path) -> None:
    """Write comments of every day of a January, with the columns of the configuration in the documents."""
    comments = make_table(CivilShape(rows=20_000, seed=1))
    days = pa.array([f"2026-01-{row % 31 + 1:02}" for row in range(len(comments))]).cast(pa.date32())
    comments = comments.set_column(comments.schema.get_field_index("created_date"), "created_date", days)
    folder.mkdir(parents=True)
    pq.write_table(comments.append_column("lang", pa.array(["en"] * len(comments))), folder / "part.parquet")


@pytest.fixture(scope="module")
def published_scores(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """The scores of the tutorial as their authors published them."""
    scores = pq.read_table(shared_data / "madlibs_scored" / "madlibs_scored.parquet")
    toxicity = ["toxic" if label else "nontoxic" for label in scores["label"].to_pylist()]
    names = {"TOXICITY@6": scores["toxicity_6"], "TOXICITY@1": scores["toxicity_1"]}
    columns = {"template": scores["template"], "toxicity": toxicity, "phrase": scores["phrase"], **names}
    folder = tmp_path_factory.mktemp("data")
    pa.csv.write_csv(pa.table(columns), folder / "madlibs.csv")
    return folder


def run_line(line: str, clone: Path, data: Path | None = None) -> str:
    """Run a command, see that it ends as its comment says, else well, and give what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    # The environment is not the copy's own and knows the project's place: the copy's package comes before it.
    environment |= {"DATA": str(data), "PYTHONPATH": str(clone)}
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode and NOT_HERE.search(done.stdout):
        pytest.skip("the jars of conf/lake-*.conf cannot be had here: no repository of Maven answers")
    said = re.search(r"# .*exit code (\d+)", line)
    assert done.returncode == int(said[1] if said else 0), f"{line}\n{done.stdout}"
    return done.stdout


def run_page(page: str, clone: Path, data: Path | None = None) -> None:
    """Run the commands of a page, and see that they print what it says, there and on other pages."""
    said: set[str] = set()
    for block in (block for block in blocks_of("sh", "") if block.page == page):
        for name, text in files_of(block).items():
            (clone / name).write_text(text, "utf-8")
        lines = [line for line in read_lines(block) if not line.startswith("scripts/test")]  # which runs this
        printed = "".join(run_line(line, clone, data) for line in lines)
        there = {line.rstrip() for line in printed.splitlines()}
        assert [line for line in output_of(block) if line not in there] == [], printed
        said |= there
    elsewhere = [block for block in blocks_of("text", "printed in") if block.says == page]
    assert [line for block in elsewhere for line in block.text.splitlines() if line.rstrip() not in said] == []


@pytest.mark.parametrize("page", FIRST)
def test_a_page_runs_in_a_clone(page: str, clone: Path) -> None:
    run_page(page, clone)


@pytest.mark.slow
def test_the_readme_runs(demo: Path) -> None:
    assert (demo / "build" / "demo" / "report.html").is_file()
    assert ask(demo / "warehouse", "SELECT identity FROM latest_bias_metrics WHERE bpsn_auc IS NOT NULL LIMIT 1")
    [query] = [block.text for block in blocks_of("sql") if block.page == README]
    identity, old, new, *_ = ask(demo / "build" / "demo" / "warehouse", query)[0]
    assert (identity, round(old, 3), round(new, 3)) == ("black", 0.823, 0.740)  # as the page says


@pytest.mark.slow
@pytest.mark.parametrize("page", LATER)
def test_a_page_runs_after_the_readme(page: str, demo: Path, request: pytest.FixtureRequest) -> None:
    run_page(page, demo, request.getfixturevalue("published_scores") if page == "docs/tutorial.md" else None)
