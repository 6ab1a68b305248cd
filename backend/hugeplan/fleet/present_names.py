"""How nodes are called now, for what keeps the name that they had: a plan, a row of a fleet plan."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select

from hugeplan.db.models import NodeRow
from hugeplan.db.session import ReadSession
from hugeplan.planner.host_names import is_one_host


async def names_of(session: ReadSession, node_ids: Collection[UUID]) -> dict[UUID, str]:
    """The names of nodes by id, without those that are gone."""
    found = await session.execute(select(NodeRow.id, NodeRow.name).where(NodeRow.id.in_(node_ids)))
    return {row[0]: row[1] for row in found}


async def other_name(session: ReadSession, node_id: UUID, was: str) -> str | None:
    """What a node is called now, where that is not what it was called.

    Where the node is gone its name is nobody's, unless another machine has it.
    """
    now = (await names_of(session, [node_id])).get(node_id)
    if now is None:
        return "another machine's" if await _is_taken(session, was) else None
    return None if now == was else now


async def _is_taken(session: ReadSession, name: str) -> bool:
    """Whether some node's name is one of this host, with the domain or without."""
    whole, lower = name.lower(), func.lower(NodeRow.name)
    has_domain = (func.split_part(lower, ".", 1) == whole) & (func.strpos(NodeRow.name, " ") == 0)
    alike: list[ColumnElement[bool]] = [lower.in_({whole, whole.partition(".")[0]})]
    if not whole.isdecimal():  # else all addresses of a network begin so
        alike.append(has_domain)
    found = await session.scalars(select(NodeRow.name).where(or_(*alike)).limit(8))
    return any(is_one_host(name, other) for other in found)


def departure(was: str, now: str | None) -> str | None:
    """Why no node is called so any more that was: how it is called now (None: it is gone). None where it still is."""
    return "gone" if now is None else None if now == was else f"now {now}"


def called_otherwise(was: str | None, now: str) -> str:
    """What is said of a plan whose node has another name now: what it names may be another machine."""
    return f"The node of this plan was called {was}, and its name is {now} now. Plan it again."
