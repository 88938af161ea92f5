"""Where processes listen, as Linux tells it under /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

PROC = Path("/proc")
LISTEN = "0A"


def find_descendants(ancestor: int) -> set[int]:
    """Give the process of that id, its children, theirs, and so on."""
    parents = dict(find_parents())
    found = {ancestor}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def find_parents() -> Iterator[tuple[int, int]]:
    """Give the id of every process, and of its parent."""
    for entry in PROC.glob("[0-9]*"):
        try:
            yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it has ended


def open_files(pid: int) -> set[str]:
    """Give what a process has open: paths, and sockets as socket:[number]."""
    found = set()
    try:
        for entry in (PROC / str(pid) / "fd").iterdir():
            found.add(os.readlink(entry))
    except OSError:
        pass  # it has ended, or has closed it
    return found


def find_listening(pids: Iterable[int]) -> set[IPv4Address | IPv6Address]:
    """Give the addresses on which these processes listen; skips the test where the system does not tell."""
    if not (PROC / "net" / "tcp").exists():
        pytest.skip("only Linux tells who listens")
    sockets = {name for pid in pids for name in open_files(pid)}
    tables = (PROC / "net" / kind for kind in ("tcp", "tcp6"))
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {read_address(row[1]) for row in rows if row[3] == LISTEN and f"socket:[{row[9]}]" in sockets}


def read_address(field: str) -> IPv4Address | IPv6Address:
    """Read an address as the kernel writes it: words of four bytes, each in the machine's order."""
    words = bytes.fromhex(field.partition(":")[0])
    address = ip_address(b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4)))
    return getattr(address, "ipv4_mapped", None) or address
