"""Say in words what pip-audit found: ``audit_report.py REPORT``, its report as JSON. Exit code 1: a vulnerability."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def describe_audit(packages: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Give what is to be said of the audited packages, and whether none of them is known to be vulnerable.

    A package that the advisories do not know counts as not audited, however content pip-audit is with it.
    """
    looked_up = [package for package in packages if "skip_reason" not in package]
    lines = [
        f"{package['name']} {package['version']}: {fault['id']}. "
        f"Mended in {', '.join(fault['fix_versions']) or 'no version yet'}."
        for package in looked_up
        for fault in package["vulns"]
    ]
    if not looked_up:
        return f"not audited: the index has advisories of none of the {len(packages)} locked packages", True
    lines.append(f"audited: {len(looked_up)} of {len(packages)} locked packages, {len(lines) or 'no'} vulnerabilities")
    return "\n".join(lines), len(lines) == 1


if __name__ == "__main__":
    text, is_clean = describe_audit(json.loads(Path(sys.argv[1]).read_text("utf-8"))["dependencies"])
    print(text)
    sys.exit(not is_clean)
