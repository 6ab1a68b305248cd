"""Reports as large as a body may be: what an agent's token, or whoever is root on a node, can send."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import MACHINE_ID, Attack, Target, expect

LISTS = [[[number] for number in range(36_000)]] * 2
PROCESS = {"pid": 1, "name": "p", "rss_bytes": 1 << 30}
EXTRA: dict[str, Any] = {
    "72,000 unknown lists": {"x": LISTS},
    "140,000 unknown members": {"x": [{f"k{part}{number}": 0 for number in range(70_000)} for part in "ab"]},
    "a NUL behind 72,000 lists": {"x": LISTS, "z": "\0"},
    "seven texts of a megabyte": {"x": [f"{number}" * 999_000 for number in range(7)]},
    "140,000 labels": {"labels": {f"k{number}": "v" for number in range(99_000)}},
    "8,000 processes": {"sample": {"processes": [PROCESS] * 8_000}},
    "90,000 empty curves": {"run": {"sections": [{"curves": [{}] * 90_000}]}},
}


def _report(extra: dict[str, Any], running: Target) -> str:
    now = datetime.now(UTC).isoformat()
    body: dict[str, Any] = {
        "schema_version": 1, "report_id": str(uuid.uuid4()), "machine_id": MACHINE_ID, "node_name": "db-1",
        "created_at": now, "agent_version": "0",
        "inventory": {"architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [2 << 20]},
        "sample": {"taken_at": now, "memory": {"mem_total_bytes": 1 << 36}, **extra.get("sample", {})},
        **{name: value for name, value in extra.items() if name != "sample"},
    }  # fmt: skip
    return expect(running.ask(Role.AGENT, "POST", "/reports", json=body), 200, 201, 413, 422, 429)


ROWS = tuple(Attack(f"report: {name}", partial(_report, extra)) for name, extra in EXTRA.items())
