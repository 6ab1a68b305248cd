"""Running today's parsers over stored documents: after an upgrade, in batches, while reports go on coming in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import msgspec
from sqlalchemy import delete, insert, select

from hugeplan.benchmarks.records import wins_records
from hugeplan.db.models import NodeRow, RunRow, RunWinsRow
from hugeplan.db.session import Database, WriteSession
from hugeplan.documents.decoding import decode
from hugeplan.documents.kept import unpack
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.fleet import service

BATCH = 20


@dataclass(slots=True)
class Reparsed:
    """What was done. ``unreadable`` are runs that today's parser refuses; they stay as they are."""

    nodes: int = 0
    runs: int = 0
    unreadable: int = 0


async def reparse(database: Database, say: Callable[[Reparsed], None] = lambda _: None) -> Reparsed:
    """Make wins, hardware facts and geometry anew from every stored run. Each batch of nodes is one transaction.

    It may be ended at any time and begun again: what was done stays done, and doing it twice changes nothing.
    """
    done = Reparsed()
    after = UUID(int=0)
    while True:
        async with database.write() as session:
            statement = select(NodeRow.id).where(NodeRow.id > after).order_by(NodeRow.id).limit(BATCH)
            ids = list((await session.scalars(statement)).all())
            for node_id in ids:
                await _node(session, node_id, done)
        if not ids:
            return done
        after = ids[-1]
        say(done)


async def _node(session: WriteSession, node_id: UUID, done: Reparsed) -> None:
    rows = await session.execute(select(RunRow.id, RunRow.document).where(RunRow.node_id == node_id))
    for run_id, kept in rows.all():
        try:
            document = decode(TlbbenchDocument, unpack(kept))
        except ValueError:
            done.unreadable += 1
            continue
        await session.execute(delete(RunWinsRow).where(RunWinsRow.node_id == node_id, RunWinsRow.run_id == run_id))
        wins = wins_records(document, node_id=node_id, run_id=run_id)
        if wins:
            await session.execute(insert(RunWinsRow), [msgspec.structs.asdict(found) for found in wins])
        done.runs += 1
    await service.measure_again(session, node_id)
    done.nodes += 1
