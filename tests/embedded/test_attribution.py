"""Attribution of pandas frames on the embedded engine, in a process that has no other engine."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.harness.submitting import clean_environment

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")


@pytest.mark.slow
def test_attribution_of_frames() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/embedded/attribute_frames.py"]
    environment = clean_environment(PYTHONPATH=str(ROOT))
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
