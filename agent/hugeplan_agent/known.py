"""What a child that looks at processes knows, in a form in which its parent keeps it for the next child.

A child that is left behind takes its own copy with it. Without this one a database would lose its settings, and its key
its port, for as long as its process is left alone. Each fact is kept under the pid and the start time of its process.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping
from typing import Any

from hugeplan_agent.host import Host

READ_AGAIN = frozenset({"base page", "cgroup of process", "cpuinfo", "hugetlb limits", "kubernetes api", "memlock"})
"""Kept by collectors, and not handed on: the kernel answers for these itself, and a client is made anew."""


def known(host: Host, instead: Mapping[str, Any] | None = None) -> str:
    """All that is kept of a host but READ_AGAIN, with some tables in place of its own."""
    kept = {name: table for name, table in host.all_kept.items() if name not in READ_AGAIN} | dict(instead or {})
    return base64.b64encode(pickle.dumps(kept, pickle.HIGHEST_PROTOCOL)).decode()


def take(host: Host, text: str) -> None:
    """Keep what ``known`` said of another host; an empty text says nothing.

    Never called with what was read from others: a pickle runs what it names.
    """
    if text:
        host.all_kept.update(pickle.loads(base64.b64decode(text)))  # noqa: S301 - a child of the same parent made it
