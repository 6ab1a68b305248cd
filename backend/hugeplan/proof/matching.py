"""Which running server is which instance of the plan? What tells them apart, surest first; never a guess.

1. The key that was observed when the plan was made: engine, unit (cgroup), and port or data directory.
2. The same data directory in the same unit, where the port changed meanwhile.
3. The pod of the same namespace and name; then the same port or data directory, where the unit changed meanwhile,
   unless a service was planned for.
4. The instance's name as a word of exactly one server's key.
5. The size of the segment, where it fits one server alone and no other instance fits that one; not on another port.
6. The only one left of its engine, for the only server left of it, unless a place was planned for and its unit is new.

A server of the same unit with another data directory is another server, whatever else fits; so is one in a container
where the planned one was in none, or the other way round, and one in another unit than the service of the planned one.
So is one of another user id, where report and plan say it: nobody starts a server as another user without root. So is
one in a pod of another namespace or owner, or in any pod where none was planned, where names of pods are told or asked
for: whoever may create one chooses what is in it. A guest of LXC where no container was planned is one by rules 1, 2
and 4 alone.
What is left after that stays open: the servers are candidates, and the checks say so.

A server where a user of the node gives the names (a session, a service or container of a user's own), has programs
started (by cron, at, sshd, a batch system, a web or mail server) or is who it runs as (a uid from 1000 on, outside of
containers and of services called after the engine) is an instance by rules 1 and 2 alone: port, name and size are what
anybody chooses who wants to be taken for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from hugeplan.planner.model import InstancePlan, Plan
from hugeplan.planner.observation import server_owners
from hugeplan.planner.observation.server_owners import place_of, planned_pod, port_of_key, tail_of
from hugeplan.proof.observation import Observation

Server = Mapping[str, Any]
_USERS_OF_A_POD: Final = 65536
"""User ids that a pod with users of its own gets on the node, its first a multiple of it; another pod, other ones."""
_OF_A_UNIT = re.compile(r"\w+@(?:systemd:[^/#]+?\.service(?=[:#]|$)|cgroup:/[^/:#]+)")


@dataclass(frozen=True, slots=True)
class Matched:
    """The server of an instance, or the servers that it may be. Neither: none of its engine runs, or none is left.

    ``rivals`` are the instances that share these candidates, in the order of the plan, this one included.
    ``of_users``: servers of its engine that are left out, as users may have made them look like it, or in another unit
    or of another user than was planned for.
    """

    server: Server | None = None
    candidates: tuple[Server, ...] = ()
    rivals: tuple[str, ...] = ()
    of_users: tuple[Server, ...] = ()

    @property
    def possible(self) -> tuple[Server, ...]:
        """Every server that it may be."""
        return self.candidates if self.server is None else (self.server,)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """A server with what it is known by, read once: it is compared with every instance of its engine."""

    server: Server
    key: str
    port: int | None
    instance_id: str | None
    largest_bytes: int | None
    is_of_user: bool
    owner_uid: int | None
    pod: str | None
    """Namespace and name of its pod; empty where the report does not say them, None where it is in no pod."""

    @classmethod
    def of(cls, server: Server, owners: server_owners.ServerOwners) -> _Seen:
        """What tells this server apart; ``largest_bytes`` None where its segments are not known."""
        key, own_unit = str(server.get("key") or ""), str(server.get("unit"))
        pod, port = owners.seen_in(key, own_unit), server.get("port")
        return cls(
            server=server,
            key=key,
            port=port_of_key(key) if port is None else port,
            instance_id=server.get("instance_id") or place_of(key)[1],
            largest_bytes=largest_segment_bytes(server) if server.get("segments") else None,
            is_of_user=owners.is_of_user(key, own_unit, owner_of(server)),
            owner_uid=owner_of(server),
            pod=pod,
        )


def match_servers(plan: Plan, observed: Observation) -> dict[str, Matched]:
    """Each instance of the plan, by its name."""
    found: dict[str, Matched] = {}
    listed, units = list(observed.listed("databases")), list(observed.listed("units"))
    pods = {unit.get("key"): _named(unit) for unit in units if isinstance(unit.get("pod"), Mapping)}
    owners = server_owners.ServerOwners({unit.get("key"): unit.get("cgroup_path") for unit in units}, pods)
    for engine in dict.fromkeys(instance.engine for instance in plan.instances):
        instances = [i for i in plan.instances if i.engine == engine]
        found |= _of_engine(instances, [_Seen.of(one, owners) for one in listed if one.get("engine") == engine])
    return found


def _of_engine(instances: Sequence[InstancePlan], servers: Sequence[_Seen]) -> dict[str, Matched]:
    found: dict[str, Matched] = {}
    left = list(servers)
    for rule, planned, now in _RULES:
        waiting = [i for i in instances if i.name not in found]
        known = left if rule in _OF_ANYBODY else [seen for seen in left if not seen.is_of_user]
        if rule in _OF_EACH_PAIR and len(waiting) * len(known) > MOST_PAIRS:
            continue
        by_value: dict[object, list[_Seen]] = {}
        for seen in known:
            by_value.setdefault(now(seen), []).append(seen)
        pairs = _pairs(waiting, [by_value.get(planned(one), []) for one in waiting], rule)
        found |= {instance.name: Matched(seen.server) for instance, seen in pairs}
        taken = {id(seen) for _, seen in pairs}
        left = [seen for seen in left if id(seen) not in taken]
    waiting = [i for i in instances if i.name not in found]
    services = {_unit_of(i.runs_as or "") for i in waiting} - {None}
    is_bounded = len(waiting) * len(left) <= MOST_PAIRS
    out = {
        id(seen)
        for seen in left
        if seen.is_of_user or (waiting and is_bounded and all(_is_apart(one, seen) for one in waiting))
    }
    of_users = tuple(
        seen.server for seen in left if id(seen) in out or len(services) > (_unit_of(seen.key) in services)
    )
    left = [seen for seen in left if id(seen) not in out]
    if len(waiting) == len(left) == 1 and _may_be(waiting[0], left[0]):
        found[waiting[0].name] = Matched(left[0].server)
    elif is_bounded:
        found |= _undecided(waiting, left, of_users)
    else:  # each may be any of them
        names = tuple(one.name for one in waiting)
        found |= dict.fromkeys(names, Matched(None, tuple(seen.server for seen in left), names, of_users))
    return found


def _undecided(
    instances: Sequence[InstancePlan], servers: Sequence[_Seen], of_users: tuple[Server, ...]
) -> dict[str, Matched]:
    """The candidates of each instance: those that are not elsewhere. Instances with the same candidates share them."""
    by_place: dict[tuple[object, ...], list[InstancePlan]] = {}
    for instance in instances:
        key = instance.runs_as or ""
        place = tail_of(key), *place_of(key), planned_pod(instance.name, instance.pod), instance.owner_uid
        by_place.setdefault(place, []).append(instance)
    sharing: dict[tuple[_Seen, ...], list[str]] = {}
    for own in by_place.values():
        possible = tuple(seen for seen in servers if _may_be(own[0], seen))
        sharing.setdefault(possible, []).extend(instance.name for instance in own)
    found: dict[str, Matched] = {}
    for possible, names in sharing.items():
        near = {name for other, theirs in sharing.items() if not {*other}.isdisjoint(possible) for name in theirs}
        rivals = tuple(instance.name for instance in instances if instance.name in near)
        matched = Matched(candidates=tuple(seen.server for seen in possible), rivals=rivals, of_users=of_users)
        found |= dict.fromkeys(names, matched)
    return found


def _named(unit: Mapping[str, Any]) -> str:
    pod = unit["pod"]
    both = pod.get("namespace") and pod.get("name")
    return f"{pod['namespace']}/{pod['name']}" if both else server_owners.pod_in(str(unit.get("name")))


def _is_apart(instance: InstancePlan, seen: _Seen) -> bool:
    is_another = server_owners.is_of_another(instance, instance.pod, seen.key, seen.pod)
    return is_another or _has_other_owner(instance, seen)


def _has_other_owner(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server runs as another user than the planned one did, so far as both are known."""
    planned, now = instance.owner_uid, seen.owner_uid
    if planned is None or now is None or planned == now:
        return False
    is_of_pods = server_owners.is_by_a_runtime(seen.key) and min(planned, now) >= _USERS_OF_A_POD
    return not is_of_pods or (planned - now) % _USERS_OF_A_POD != 0


def _is_elsewhere(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server is another one than was planned for: it has another data directory in that unit, or port."""
    port = port_of_key(instance.runs_as or "")
    return _has_other_place(instance, seen) or (port is not None and seen.port is not None and port != seen.port)


def _may_be(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server may be it for want of another: no place was planned for, or unit, port or data directory is it.

    A server of another unit that shows neither port nor data directory may be anybody's.
    """
    key = instance.runs_as or ""
    if not tail_of(key):
        return not _has_other_place(instance, seen)
    is_near = place_of(key)[0] == place_of(seen.key)[0] or _has_tail(instance, seen)
    return is_near and not _is_elsewhere(instance, seen)


def _pairs(
    instances: Sequence[InstancePlan], near: Sequence[Sequence[_Seen]], fits: Callable[[InstancePlan, _Seen], bool]
) -> list[tuple[InstancePlan, _Seen]]:
    """Pairs that fit each other and nobody else; ``near``: of each instance those that may."""
    own = [
        [seen for seen in servers if fits(instance, seen) and not _has_other_place(instance, seen)]
        for instance, servers in zip(instances, near, strict=True)
    ]
    claims = Counter(id(seen) for fitting in own for seen in fitting)
    return [
        (instance, fitting[0])
        for instance, fitting in zip(instances, own, strict=True)
        if len(fitting) == 1 and claims[id(fitting[0])] == 1
    ]


def _has_key(instance: InstancePlan, seen: _Seen) -> bool:
    return instance.runs_as is not None and seen.key == instance.runs_as


def _has_place(instance: InstancePlan, seen: _Seen) -> bool:
    unit, instance_id = place_of(instance.runs_as or "")
    return instance_id is not None and (unit, instance_id) == (place_of(seen.key)[0], seen.instance_id)


@lru_cache(maxsize=1024)
def _unit_of(key: str) -> str | None:
    """Engine and unit of a key in which root alone starts a server: a service; without systemd the top cgroup."""
    found = _OF_A_UNIT.match(key)
    return found and found[0]


def _has_other_place(instance: InstancePlan, seen: _Seen) -> bool:
    planned = instance.runs_as
    unit, instance_id = place_of(planned or "")
    if _has_other_owner(instance, seen) or (unit != place_of(seen.key)[0] and _is_apart(instance, seen)):
        return True
    is_inside = server_owners.is_by_a_runtime
    if planned and (is_inside(planned) != is_inside(seen.key) or _unit_of(planned) not in (None, _unit_of(seen.key))):
        return True
    known = instance_id is not None and seen.instance_id is not None
    return known and unit == place_of(seen.key)[0] and instance_id != seen.instance_id


def _has_pod(instance: InstancePlan, seen: _Seen) -> bool:
    return bool(seen.pod) and instance.pod == seen.pod


def _has_tail(instance: InstancePlan, seen: _Seen) -> bool:
    return tail_of(instance.runs_as or "") == tail_of(seen.key) != ""


def _has_name(instance: InstancePlan, seen: _Seen) -> bool:
    return server_owners.has_name(instance.name, seen.key, seen.pod)


def _has_size(instance: InstancePlan, seen: _Seen) -> bool:
    if _is_elsewhere(instance, seen):
        return False
    if seen.largest_bytes is None:
        return _may_be(instance, seen)  # not known: it may be any of these
    demand = instance.demand
    # The kernel rounds a mapping up to whole pages; on base pages it has its exact size.
    return abs(seen.largest_bytes - demand.segment_bytes) <= (demand.error_pages + 1) * demand.page_bytes


_Rule = tuple[Callable[[InstancePlan, _Seen], bool], Callable[[InstancePlan], object], Callable[[_Seen], object]]
#: A rule, and what an instance and a server that fit have in common: those without it are not compared.
_RULES: Final[tuple[_Rule, ...]] = (
    (_has_key, lambda one: one.runs_as, lambda seen: seen.key),
    (_has_place, lambda one: place_of(one.runs_as or ""), lambda seen: (place_of(seen.key)[0], seen.instance_id)),
    (_has_pod, lambda one: one.pod or 0, lambda seen: seen.pod),
    (_has_tail, lambda one: tail_of(one.runs_as or "") or 0, lambda seen: tail_of(seen.key)),
    (_has_name, lambda _: None, lambda _: None),
    (_has_size, lambda _: None, lambda _: None),
)
_OF_ANYBODY: Final = (_has_key, _has_place)
_OF_EACH_PAIR: Final = (_has_name, _has_size)
MOST_PAIRS: Final = 4096
"""Instances times servers of an engine that are compared one by one. Of more, which a node with 64 databases has where
all their keys are new, each may be any."""


def owner_of(server: Server) -> int | None:
    """The user id that a server runs as; None where the report does not say it, or spells it as no number."""
    uid = server.get("owner_uid")
    return uid if isinstance(uid, int) else None


def largest_segment_bytes(server: Server) -> int:
    """The largest segment of a server in bytes, 0 where none is known."""
    return max((int(s.get("bytes") or 0) for s in server.get("segments") or ()), default=0)
