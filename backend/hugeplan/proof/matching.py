"""Which running server is which instance of the plan? What tells them apart, surest first; never a guess.

1. The key that was observed when the plan was made: engine, unit (cgroup), and port or data directory.
2. The same port or data directory, where the unit changed meanwhile.
3. The instance's name as a word of exactly one server's key.
4. The size of the segment, where it fits one server alone and no other instance fits that one.
5. The only one left of its engine, for the only server left of it.

What is left after that stays open: the servers are candidates, and the checks say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hugeplan.planner.model import InstancePlan, Plan
from hugeplan.proof.observation import Observation

Server = Mapping[str, Any]
_PORT_DIGITS: Final = 5
_WORDS = re.compile(r"[^a-z0-9]+")
_TAIL = re.compile(r":(\d{1,5}|[0-9a-f]{12})(?:#\d+)?$")


@dataclass(frozen=True, slots=True)
class Matched:
    """The server of an instance, or the servers that it may be. Neither: none of its engine runs, or none is left.

    ``rivals`` are the instances that share these candidates, in the order of the plan, this one included.
    """

    server: Server | None = None
    candidates: tuple[Server, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def possible(self) -> tuple[Server, ...]:
        """Every server that it may be."""
        return self.candidates if self.server is None else (self.server,)


def match_servers(plan: Plan, observed: Observation) -> dict[str, Matched]:
    """Each instance of the plan, by its name."""
    found: dict[str, Matched] = {}
    listed = list(observed.listed("databases"))
    for engine in dict.fromkeys(instance.engine for instance in plan.instances):
        instances = [i for i in plan.instances if i.engine == engine]
        found |= _of_engine(instances, [server for server in listed if server.get("engine") == engine])
    return found


def _of_engine(instances: Sequence[InstancePlan], servers: Sequence[Server]) -> dict[str, Matched]:
    found: dict[str, Matched] = {}
    left = list(servers)
    for fits in (_has_key, _has_tail, _has_name, _has_size):
        waiting = [i for i in instances if i.name not in found]
        for instance, server in _pairs(waiting, left, fits):
            found[instance.name] = Matched(server)
            left.remove(server)
    waiting = [i for i in instances if i.name not in found]
    if len(waiting) == len(left) == 1 and not _is_elsewhere(waiting[0], left[0]):
        found[waiting[0].name] = Matched(left[0])
    else:
        possible = {i.name: tuple(server for server in left if not _is_elsewhere(i, server)) for i in waiting}
        for instance in waiting:
            own = possible[instance.name]
            rivals = tuple(i.name for i in waiting if set(map(_key, possible[i.name])) & set(map(_key, own)))
            found[instance.name] = Matched(candidates=own, rivals=rivals)
    return found


def _is_elsewhere(instance: InstancePlan, server: Server) -> bool:
    """Whether a server listens on another port than the one that was planned for: then it is another server."""
    planned, real = port_of_key(instance.runs_as or ""), server.get("port")
    real = port_of_key(_key(server)) if real is None else real
    return planned is not None and real is not None and planned != real


def _pairs(
    instances: Sequence[InstancePlan], servers: Sequence[Server], fits: Callable[[InstancePlan, Server], bool]
) -> list[tuple[InstancePlan, Server]]:
    """Pairs that fit each other and nobody else."""
    pairs = []
    for instance in instances:
        own = [server for server in servers if fits(instance, server)]
        if len(own) == 1 and sum(fits(other, own[0]) for other in instances) == 1:
            pairs.append((instance, own[0]))
    return pairs


def _key(server: Server) -> str:
    return str(server.get("key") or "")


def _has_key(instance: InstancePlan, server: Server) -> bool:
    return instance.runs_as is not None and _key(server) == instance.runs_as


def _tail(key: str) -> str:
    """The port or the data directory's checksum at the end of a key; a pid behind ``#`` is of one run only."""
    found = _TAIL.search(key)
    return "" if found is None else found[1]


def port_of_key(key: str) -> int | None:
    """The port that a server's key ends with; None where it ends with something else."""
    tail = _tail(key)
    return int(tail) if tail.isdigit() and len(tail) <= _PORT_DIGITS else None


def _has_tail(instance: InstancePlan, server: Server) -> bool:
    tail = _tail(instance.runs_as or "")
    return bool(tail) and tail == _tail(_key(server))


def _has_name(instance: InstancePlan, server: Server) -> bool:
    name = _WORDS.sub(" ", instance.name.lower()).strip()
    # The engine's own name is in every key of its servers.
    words = _WORDS.sub(" ", _key(server).lower().partition("@")[2])
    return bool(name) and f" {name} " in f" {words} "


def _has_size(instance: InstancePlan, server: Server) -> bool:
    demand = instance.demand
    if not server.get("segments"):
        return True  # not known: it may be any of them
    # The kernel rounds a mapping up to whole pages; on base pages it has its exact size.
    near = (demand.error_pages + 1) * demand.page_bytes
    return abs(largest_segment_bytes(server) - demand.segment_bytes) <= near


def largest_segment_bytes(server: Server) -> int:
    """The largest segment of a server in bytes, 0 where none is known."""
    return max((int(s.get("bytes") or 0) for s in server.get("segments") or ()), default=0)
