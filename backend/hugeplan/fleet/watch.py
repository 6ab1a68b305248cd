"""Nodes that stopped reporting: a finding and an event, opened by whichever replica looks first.

The next report of the node closes both, as it does with every finding that no longer holds. Made-up nodes never report,
so they are left alone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import text

from hugeplan.db.alone import alone
from hugeplan.db.session import Database
from hugeplan.events.records import Event, write_events
from hugeplan.fleet.findings.base import attention
from hugeplan.fleet.ingest.node_update import KeptFinding
from hugeplan.fleet.selector import STALE_AFTER

CODE: Final = "node_stale"
"""Has the node stopped reporting?"""
LOOK_SECONDS: Final = 60.0
_BATCH: Final = 25
"""Nodes that are locked at once: their reports wait meanwhile."""

_SILENT: Final = """
SELECT n.id, n.name, n.last_report_at FROM nodes n
WHERE n.last_report_at < :before AND NOT n.synthetic AND n.id > :after
    AND NOT EXISTS (SELECT FROM node_findings f WHERE f.node_id = n.id AND f.code = :code)
ORDER BY n.id LIMIT :limit FOR UPDATE OF n SKIP LOCKED
"""
_OPEN: Final = (
    "INSERT INTO node_findings (node_id, code, subject, state, title, since)"
    " VALUES (:node_id, :code, :subject, :state, :title, :since) ON CONFLICT DO NOTHING",
    "UPDATE node_states SET findings = findings || CAST(:finding AS jsonb) WHERE node_id = :node_id",
    "UPDATE nodes SET findings_attention = findings_attention + 1 WHERE id = :node_id",
)


async def mark_stale(database: Database, now: datetime) -> int:
    """Open the finding of every node that became silent. How many; few nodes are one transaction."""
    values = {"before": now - STALE_AFTER, "code": CODE, "limit": _BATCH, "after": UUID(int=0)}
    opened, many = 0, _BATCH
    while many == _BATCH:
        found, many = await _mark(database, now, values)
        opened += found
    return opened


async def _mark(database: Database, now: datetime, values: dict[str, Any]) -> tuple[int, int]:
    """How many of the next batch became silent, and how many were looked at. ``values`` go on to the one after it."""
    async with database.write() as session:
        rows = (await session.execute(text(_SILENT), values)).all()
        events: list[Event] = []
        for node_id, name, last_report_at in rows:
            found = attention(
                CODE,
                name,
                "The node stopped reporting",
                f"Its last report came at {last_report_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC.",
                "See whether the machine runs. Read the agent's log: journalctl -u hugeplan-agent, or kubectl logs of"
                " its pod. Where the server refuses its token, see hugeplan enrolment list.",
            )
            kept = KeptFinding(**msgspec.structs.asdict(found), since=now)
            fields = msgspec.structs.asdict(kept) | {
                "node_id": node_id,
                "finding": msgspec.json.encode([kept]).decode(),
            }
            with alone(name):
                async with session.begin_nested():
                    for statement in _OPEN:
                        await session.execute(text(statement), fields)
                events.append(
                    Event(at=now, kind="finding_opened", node_id=node_id, node_name=name, code=CODE, subject=name,
                          state=kept.state, text=kept.title)
                )  # fmt: skip
        write_events(session, events)
    if rows:
        values["after"] = rows[-1][0]
    return len(events), len(rows)


async def watch(database: Database) -> None:
    """Open the finding of every node that became silent."""
    await mark_stale(database, datetime.now(UTC))
