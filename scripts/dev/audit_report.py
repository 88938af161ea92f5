"""Print the report of pip-audit: ``audit_report.py REPORT``, a file of JSON. Exit code 1: a vulnerability.

Used by scripts/check --all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def describe_audit(packages: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Return a line for each vulnerability and a summary, and whether there is no vulnerability.

    A package that the advisories do not know counts as not audited, although pip-audit reports no fault.
    """
    audited = [package for package in packages if "skip_reason" not in package]
    lines = [
        f"{package['name']} {package['version']}: {fault['id']}. "
        f"Fixed in {', '.join(fault['fix_versions']) or 'no version yet'}."
        for package in audited
        for fault in package["vulns"]
    ]
    if not audited:
        return f"not audited: the index has advisories of none of the {len(packages)} locked packages", True
    lines.append(f"audited: {len(audited)} of {len(packages)} locked packages, {len(lines) or 'no'} vulnerabilities")
    return "\n".join(lines), len(lines) == 1


if __name__ == "__main__":
    text, is_clean = describe_audit(json.loads(Path(sys.argv[1]).read_text("utf-8"))["dependencies"])
    print(text)
    sys.exit(not is_clean)
