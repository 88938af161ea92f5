"""The corpus of a benchmark: made when first needed, and kept under build/bench until another of the size is made."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from scripts.benchmarks.task import IDENTITY_NAMES

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
SEED = 1


def civil_corpus(rows: int) -> Path:
    """Return a civil corpus whose rows are all annotated."""
    sources = [*sorted((ROOT / "biasspark" / "synthetic").glob("*.*")), ROOT / "jobs" / "make_corpus.py"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = BUILD / f"civil-{rows}-{digest}"
    if not (folder / "_SUCCESS").exists():
        print(f"making {folder.relative_to(ROOT)}", file=sys.stderr, flush=True)
        for older in BUILD.glob(f"civil-{rows}-*"):
            shutil.rmtree(older)
        command = f"scripts/submit jobs/make_corpus.py civil --rows {rows} --seed {SEED} --unannotated 0 --out".split()
        subprocess.run([*command, folder], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return folder


def describe_corpus(corpus: Path) -> dict[str, int]:
    """Return the rows of a corpus, those with annotations, and the bytes of its files."""
    rows = ds.dataset(corpus)
    return {
        "rows": int(rows.count_rows()),
        "bytes": sum(path.stat().st_size for path in corpus.glob("*.parquet")),
        "annotated_rows": int(rows.count_rows(filter=pc.is_valid(pc.field(IDENTITY_NAMES[0])))),
    }


def read_once(corpus: Path) -> None:
    """Read all files, so that no candidate waits for the disk."""
    for path in corpus.glob("*.parquet"):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
