"""Attribution of pandas frames on the embedded engine, in a process that has no other engine."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.harness.submitting import run_python

pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")


@pytest.mark.slow
def test_attribution_of_frames() -> None:
    done = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/embedded/attribute_frames.py")
    assert done.returncode == 0, done.stdout
