"""The commands of README.md and docs/, run one after another as by a reader who has cloned the project.

Those of most pages take what docs/getting-started.md makes, over 1.8 million comments.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.civil import CivilRequest
from tests.harness.documents import ROOT, Code, blocks_of, files_of, output_of, read_lines
from tests.harness.running_jobs import ask
from tests.harness.submitting import clean_environment, make_cluster, make_python, standalone
from tests.harness.yarn import yarn

COPIED = ("biasspark", "conf", "jobs", "scripts", "docs", "tests")
README, START = "README.md", "docs/getting-started.md"
FIRST = ["docs/configuration.md", "docs/performance.md"]
"""Pages of which the commands find all that they take in a clone."""

EARLIER = (START, "CONTRIBUTING.md", *FIRST)
LATER = [page for page in dict.fromkeys(block.page for block in blocks_of("sh", "")) if page not in EARLIER]
NOT_HERE = re.compile("unresolved dependency|packages cannot be had|could not be had|No matching distribution found")
"""What is said where the jars of a table format, or packages, cannot be had."""

PUBLISHED = "https://github.com/conversationai/unintended-ml-bias-analysis"
COMMIT, SCORES = "6a62fab", "unintended_ml_bias/model_card/intersectional_madlibs_scored.csv"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project without what runs have left in it, and a corpus for civil.toml."""
    folder = tmp_path_factory.mktemp("clone")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for file in (ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "LICENSE", *ROOT.glob("requirements*.lock")):
        shutil.copy(file, folder)
    write_comments(folder / "data" / "civil")
    return folder


@pytest.fixture(scope="module")
def demo(clone: Path) -> Path:
    """The clone with what the first commands make."""
    run_page(START, clone)
    return clone


def write_comments(folder: Path) -> None:
    """Write comments with the columns of the configuration in the documents."""
    comments = make_table(CivilRequest(rows=20_000, seed=1))
    folder.mkdir(parents=True)
    pq.write_table(comments.append_column("lang", pa.array(["en"] * len(comments))), folder / "part.parquet")


@pytest.fixture
def published_scores(tmp_path: Path, shared_data: Path) -> dict[str, str]:
    """Have git find, in place of the authors' repository, one that has their scores under the name of their commit."""
    scores = pq.read_table(shared_data / "madlibs_scored" / "madlibs_scored.parquet")
    toxicity = ["toxic" if label else "nontoxic" for label in scores["label"].to_pylist()]
    names = {"TOXICITY@6": scores["toxicity_6"], "TOXICITY@1": scores["toxicity_1"]}
    columns = {"template": scores["template"], "toxicity": toxicity, "phrase": scores["phrase"], **names}
    repository = tmp_path / "published"
    (repository / SCORES).parent.mkdir(parents=True)
    pa.csv.write_csv(pa.table(columns), repository / SCORES)
    author = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Scores"), ("tag", COMMIT)):
        subprocess.run(["git", *words], cwd=repository, check=True)
    setting = {"COUNT": "1", "KEY_0": f"url.{repository}.insteadOf", "VALUE_0": PUBLISHED}
    return {f"GIT_CONFIG_{name}": value for name, value in setting.items()}


def run_line(line: str, clone: Path, **environment: str) -> str:
    """Run a command, see that it ends as its comment says, else well, and give what it printed."""
    # The environment is not the copy's own and knows the project's place: the copy's package comes before it.
    usual = clean_environment(PYTHONPATH=str(clone), PATH=f"{clone}/.venv/bin:{os.environ['PATH']}")
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=clone,
        env=usual | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode and NOT_HERE.search(done.stdout):
        pytest.skip(f"what this takes cannot be had here: no registry answers {line}")
    expected = re.search(r"# .*exit code (\d+)", line)
    assert done.returncode == int(expected[1] if expected else 0), f"{line}\n{done.stdout}"
    return done.stdout


def run_block(block: Code, clone: Path, **environment: str) -> str:
    """Run the commands of a block, and give what they printed."""
    for name, text in files_of(block).items():
        (clone / name).write_text(text, "utf-8")
    lines = [line for line in read_lines(block) if not line.startswith("scripts/test")]  # which runs this
    return "".join(run_line(line, clone, **environment) for line in lines)


def run_page(page: str, clone: Path, **environment: str) -> None:
    """Run the commands of a page, and see that they print what it says."""
    for block in (block for block in blocks_of("sh", "") if block.page == page):
        printed = run_block(block, clone, **environment)
        there = {line.rstrip() for line in printed.splitlines()}
        assert [line for line in output_of(block) if line not in there] == [], printed


@pytest.mark.slow
@pytest.mark.parametrize("page", FIRST)
def test_a_page_runs_in_a_clone(page: str, clone: Path) -> None:
    run_page(page, clone)


@pytest.mark.slow
def test_the_first_commands_run(demo: Path) -> None:
    assert (demo / "build" / "demo" / "report.html").is_file()
    assert ask(demo / "warehouse", "SELECT identity FROM latest_bias_metrics WHERE bpsn_auc IS NOT NULL LIMIT 1")
    [query] = [block.text for block in blocks_of("sql") if block.page == START]
    identity, old, new, *_ = ask(demo / "build" / "demo" / "warehouse", query)[0]
    assert (identity, round(old, 3), round(new, 3)) == ("black", 0.823, 0.740)  # as the page says


@pytest.mark.slow
@pytest.mark.parametrize("page", LATER)
def test_a_page_runs_after_the_first_commands(page: str, demo: Path, request: pytest.FixtureRequest) -> None:
    run_page(page, demo, **(request.getfixturevalue("published_scores") if page == "docs/tutorial.md" else {}))


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks_of("sh", "slow"), ids=str)
def test_a_block_that_takes_long_runs_in_a_clone(block: Code, clone: Path) -> None:
    run_block(block, clone)


@pytest.mark.slow
def test_the_readme_installs_and_runs_without_java(clone: Path, tmp_path: Path) -> None:
    """In an environment of its own: the demo with its report, and the corpus of the example."""
    [block] = [block for block in blocks_of("sh", "apart") if block.page == README]
    [example] = [block for block in blocks_of("python") if block.page == README]
    run_block(block, clone, PATH="/usr/bin:/bin", PYTHONPATH="", JAVA_HOME=str(tmp_path / "none"))
    assert "<svg" in (clone / "biasspark-demo" / "report.html").read_text("utf-8")
    (tmp_path / "example.py").write_text(example.text, "utf-8")
    printed = run_line(f"env/bin/python {tmp_path}/example.py", clone, PYTHONPATH="", JAVA_HOME=str(tmp_path / "none"))
    assert [line for line in output_of(example) if line.rstrip() not in printed] == []


@pytest.mark.slow
def test_the_project_installs_for_spark(clone: Path, tmp_path: Path) -> None:
    """Into an environment that has nothing but pip, and from there spark-submit runs the job."""
    [block] = [block for block in blocks_of("sh", "apart") if block.page == START]
    venv.create(tmp_path / "own", with_pip=True)
    place = tmp_path / "own" / "bin"
    run_block(block, clone, PATH=f"{place}:/usr/bin:/bin", PYTHONPATH="")
    assert ask(clone / "warehouse", "SELECT identity FROM latest_bias_metrics WHERE bpsn_auc IS NOT NULL LIMIT 1")


@pytest.mark.slow
def test_commands_for_clusters_run_on_clusters(clone: Path, tmp_path: Path) -> None:
    """All that YARN's machines know of biasspark is the zip, and those of a standalone cluster the archive."""
    packaging, *_ = [block for block in blocks_of("sh", "") if block.page == "docs/platforms.md"]
    [submitting] = [block for block in blocks_of("sh", "apart") if block.page == "docs/platforms.md"]
    run_block(packaging, clone)
    on_yarn, unpack, alone = read_lines(submitting)
    warehouse = tmp_path / "warehouse"
    config = files_of(submitting)["civil.toml"].replace('path = "data/civil"', f'path = "{clone}/data/civil"')
    (clone / "civil.toml").write_text(config.replace('path = "warehouse"', f'path = "{warehouse}"'), "utf-8")
    cluster = make_cluster(tmp_path)
    path = f"{make_python(tmp_path / 'bare').parent}:{cluster.home / 'bin'}:/usr/bin:/bin"
    environment = {"PATH": path, "PYTHONPATH": "", "SPARK_HOME": str(cluster.home)}
    with yarn(cluster, tmp_path / "yarn") as found:
        run_line(on_yarn, clone, **environment, **found)
        printed = run_line(f"{on_yarn} --set label.column=nothing  # exit code 1", clone, **environment, **found)
    assert "exited with status 3" in printed
    query = "SELECT identity, bpsn_auc FROM latest_bias_metrics WHERE bpsn_auc IS NOT NULL ORDER BY ALL"
    rows = ask(warehouse, query)
    assert rows
    shutil.rmtree(warehouse)
    with standalone(cluster.home, tmp_path) as master:
        for line in (unpack, alone):
            run_line(line.replace("spark://head:7077", master.address), clone, **environment)
    assert ask(warehouse, query) == rows
