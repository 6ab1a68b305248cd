"""Searches in the audit log, which grows for ever: each reads a bounded part of it."""

from __future__ import annotations

import csv
import io
import uuid
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text
from support.service import Service

from hugeplan.access import audit

ADD = """
INSERT INTO audit_events (at, actor_name, action, subject_kind, subject_id, detail)
SELECT now() - number * interval '1 day', :actor, CASE WHEN number IN (20, 12, 11) THEN :rare ELSE 'usual' END,
    'plan', 'one of many', '{}'
FROM generate_series(1, 20) number
"""


async def log_of(service: Service) -> tuple[str, str]:
    """A name that made 20 changes, and what three of them did. The log keeps the lines of other tests."""
    actor, rare = f"actor {uuid.uuid4()}", f"rare {uuid.uuid4()}"
    async with service.database.write() as session:
        await session.execute(text(ADD), {"actor": actor, "rare": rare})
    return actor, rare


async def test_a_page_of_a_search_by_several_looks_at_a_bounded_number(
    service: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "LOOKED_AT", 5)
    actor, rare = await log_of(service)

    async def pages(**query: Any) -> list[int]:
        sizes, cursor = [], None
        while True:
            asked = query | ({} if cursor is None else {"cursor": cursor})
            page = (await admin.get("/api/v1/audit", params=asked)).json()
            sizes.append(len(page["items"]))
            cursor = page["next_cursor"]
            if cursor is None:
                return sizes

    assert await pages(actor=actor, action=rare) == [0, 0, 2, 1, 0]
    assert sum(await pages(actor=actor, action=rare, limit=1)) == 3
    assert await pages(actor=actor, action="nothing") == [0, 0, 0, 0, 0]
    assert await pages(actor=actor, action="nothing", limit=1) == [0, 0, 0, 0, 0]
    assert sum(await pages(actor=actor, action="usual", limit=2)) == 17
    # By one condition an index leads to its lines alone.
    assert await pages(action=rare) == [3]
    assert await pages(actor=actor) == [20]
    answer = await admin.get("/api/v1/audit.csv", params={"actor": actor, "action": rare})
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["action"] for row in found] == [rare] * 3


@pytest.mark.parametrize("by", ["subject", "actor", "action"])
async def test_a_search_by_one_reads_no_lines_of_others(service: Service, admin: httpx.AsyncClient, by: str) -> None:
    """Also one whose lines are all older than a great many of others."""
    lines: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "FROM audit_events" in statement:
            lines.append((statement, parameters))

    engine = service.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        assert (await admin.get("/api/v1/audit", params={by: "nobody's"})).json()["items"] == []
    finally:
        event.remove(engine, "before_cursor_execute", note)
    ((statement, parameters),) = lines
    async with service.database.read() as session:
        connection = await session.connection()
        for cheaper_in_a_small_table in ("enable_seqscan", "enable_bitmapscan"):
            await connection.exec_driver_sql(f"SET LOCAL {cheaper_in_a_small_table} = off")
        plan = "\n".join(row[0] for row in await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
    column = {"subject": "subject_id", "actor": "actor_name"}.get(by, by)
    assert f"ix_audit_events_{column}_at_id" in plan, plan
    assert "Sort" not in plan, plan
