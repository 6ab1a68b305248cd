"""What a finding about today's state may look at. The plan's own findings are the planner's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hugeplan.inventory.model import FoundDatabase, FoundNode
from hugeplan.planner.model import Demand, Finding, Source, State, Term
from hugeplan.recognition.base import Recognised


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseNow:
    """A database as it is set today: its demand at the page size that it would take, None where none fits.

    ``wants_pages`` is whether it asks for huge pages at all; ``refuses_start`` whether it stops on a shortage.
    """

    found: FoundDatabase
    demand: Demand | None
    wants_pages: bool
    refuses_start: bool

    @property
    def needed_bytes(self) -> int:
        """Bytes of huge pages that its segment takes."""
        return 0 if self.demand is None else self.demand.pages * self.demand.page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNow:
    """A node with its databases as they are set today."""

    node: FoundNode
    databases: Sequence[DatabaseNow]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.facts.name

    @property
    def pool_bytes(self) -> Mapping[int, int]:
        """Bytes in pools by page size, without empty ones."""
        return {size: held for size, held in (self.node.pool_bytes or {}).items() if held}

    def limited_bytes(self, page_bytes: int) -> int:
        """The sum of the pods' limits at a page size."""
        return sum(user.limit_bytes.get(page_bytes, 0) for user in self.node.huge_page_users)


def limits_stand(recognised: Recognised) -> str:
    """Where the container's limits are written, so that nothing undoes the edit: ``of container db, in ...``."""
    where = f", in {recognised.limits_in}" if recognised.limits_in else ""
    return f"of container {recognised.container}{where}"


Check = Callable[[NodeNow], Iterable[Finding]]


def finding(
    code: str,
    state: State,
    subject: str,
    title: str,
    reason: str,
    *,
    fix: str | None = None,
    **evidence: object,
) -> Finding:
    """A finding whose evidence is what the source says."""
    terms = tuple(Term(name.replace("_", " "), str(value), Source.GIVEN) for name, value in evidence.items())
    return Finding(code=code, state=state, subject=subject, title=title, reason=reason, fix=fix, evidence=terms)
