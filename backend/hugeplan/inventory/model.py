"""What every source of an inventory answers: nodes with their databases, workloads, and what the source cannot tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from hugeplan.planner.model import DatabaseInstance, NodeFacts, NodeSample, Reservations, Tenant
from hugeplan.recognition import Recognised

MAX_NOTES = 50
NOTE_WIDTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDatabase:
    """A database where it runs.

    ``instance`` is what the plan takes. ``huge_pages_limit_bytes`` is the container's limit by page size: empty means
    that the container has none, None that the source does not say. ``hugetlbfs_mounts`` are the page sizes of mounted
    HugePages volumes. ``node`` is None for a pod that is not scheduled. ``beside_request_bytes`` is what the scheduler
    counts for the rest of its pod: sidecars, other containers and the pod's overhead. ``limits_are_the_pods``: its pod
    has huge page limits of its own, which no patch of a container changes.
    """

    instance: DatabaseInstance
    recognised: Recognised
    namespace: str
    workload: str
    node: str | None
    owner_kind: str | None = None
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None
    beside_request_bytes: int | None = None
    huge_pages_limit_bytes: Mapping[int, int] | None = None
    limits_are_the_pods: bool = False
    hugetlbfs_mounts: tuple[int, ...] = ()
    volume_bytes: int | None = None
    not_scheduled_because: str | None = None

    @property
    def subject(self) -> str:
        """``namespace/name``, as messages name it."""
        return f"{self.namespace}/{self.workload}" if self.namespace else self.workload


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePageUser:
    """A workload that may take huge pages: its limit in bytes by page size, and whether it mounts hugetlbfs."""

    subject: str
    owner_kind: str | None
    limit_bytes: Mapping[int, int]
    hugetlbfs_mounts: tuple[int, ...]
    is_database: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNode:
    """A node as a source describes it. ``unknown`` are facts that the source cannot tell, one sentence each.

    ``hugetlb_pool_bytes`` is what the kubelet counted at its start, by page size; None where the source does not say.
    ``pods_are_known`` is False where the source has no pod at all, of any node: then none here says nothing.
    ``requested_bytes`` is the sum of memory requests, ``allocatable_bytes`` what the scheduler may give out.
    """

    facts: NodeFacts
    reservations: Reservations
    databases: tuple[FoundDatabase, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    huge_page_users: tuple[HugePageUser, ...] = ()
    pods: int = 0
    pods_are_known: bool = True
    pods_without_memory_request: int = 0
    requested_bytes: int | None = None
    allocatable_bytes: int | None = None
    hugetlb_pool_bytes: Mapping[int, int] | None = None
    kubelet_version: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    machine_id: str | None = None
    sample: NodeSample | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a source holds. ``notes`` are objects that could not be read and other oddities, one sentence each.

    ``not_planned`` are databases that run and are in no node's plan: no file may change the objects of their pods.
    """

    source: str
    nodes: tuple[FoundNode, ...]
    not_scheduled: tuple[FoundDatabase, ...] = ()
    not_planned: tuple[FoundDatabase, ...] = ()
    pods: int = 0
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class InventoryError(Exception):
    """The input cannot be read; the message is one line that says where and what is expected."""


@contextmanager
def alone(what: str, notes: list[str]) -> Iterator[None]:
    """What nobody foresaw of one pod or node ends nobody else's plan: the note says ``what`` it cost, and why."""
    try:
        yield
    except Exception as error:
        if len(notes) < MAX_NOTES:
            kind = "" if isinstance(error, InventoryError) else f"internal error: {type(error).__name__}: "
            notes.append(f"{what}: {kind}{error}"[:NOTE_WIDTH])
