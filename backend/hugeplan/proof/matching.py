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
one in a pod of another namespace or owner, where they say its name: whoever may create a pod chooses what is in it. A
guest of LXC where no container was planned is an instance by rules 1, 2 and 4 alone.
What is left after that stays open: the servers are candidates, and the checks say so.

A server where a user of the node gives the names (a session, a service or container of a user's own) or has programs
started (by cron, at, sshd, a batch system, a web or mail server) is an instance by rules 1 and 2 alone: port, name and
size are what anybody chooses who wants to be taken for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from hugeplan.planner.model import InstancePlan, Plan
from hugeplan.proof.observation import Observation

Server = Mapping[str, Any]
_PORT_DIGITS: Final = 5
_USERS_OF_A_POD: Final = 65536
"""User ids that a pod with users of its own gets on the node, its first a multiple of it; another pod, other ones."""
_WORDS = re.compile(r"[^a-z0-9]+")
_OF_A_USER = re.compile(
    r"systemd:(?:session-|user@|.*/|(?:[\w-]*cron|atd?[.@]|(?:open)?ssh|dropbear|tinyssh|teleport|telnet|x?inetd|rsh)"
    # Terminals and desktops; batch systems, notebooks and builds; mail's filters and web's scripts.
    r"|[\w-]*(?:getty|vnc)|xrdp|x2go|cockpit|webmin|shellinabox|ttyd|gdm|sddm|lxdm|xdm|lightdm|greetd|display-manager"
    r"|slurm|pbs|condor|sge_?execd|gridengine|lsf|jupyter|rstudio|code-server|[\w.-]*(?:runner|buildkite)|jenkins"
    r"|postfix|exim|sendmail|opensmtpd|dovecot|courier|apache2?[.@]|httpd|lighttpd|php|uwsgi|fcgi|machine-|systemd-nspawn)"
    r"|cgroup:/user\.slice/|.*#"
)
_OF_A_SERVICE = re.compile(r"\w+@systemd:[^/#]+?\.service(?=[:#]|$)")
_BY_A_RUNTIME = re.compile(r"\w+@(?:container|pod):")
_QUALIFIED = re.compile(r"[a-z0-9-]+[/.][a-z0-9]")
_OF_ONE_OWNER = re.compile(r"-\d+$|(?:-[bcdf-hj-np-tv-xz2456789]{6,10})?-[bcdf-hj-np-tv-xz2456789]{5}$")
_TAIL = re.compile(r":(\d{1,5}|[0-9a-f]{12})(?:#([0-9a-f]{12}))?(?:#\d+)?$")


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
    tail: str
    words: str
    port: int | None
    instance_id: str | None
    largest_bytes: int | None
    is_of_user: bool
    owner_uid: int | None
    pod: str | None
    """Namespace and name of its pod; empty where the report does not say them, None where it is in no pod."""

    @classmethod
    def of(cls, server: Server, paths: Mapping[object, object], pods: Mapping[object, str]) -> _Seen:
        """What tells this server apart; ``largest_bytes`` None where its segments are not known.

        ``paths``: the cgroups of the units by their keys; ``pods``: the pods of those that are in one.
        """
        key = str(server.get("key") or "")
        unit = _place_of(key)[0].partition("@")[2]
        pod = pods.get(unit, pods.get(str(server.get("unit")), "" if unit.startswith("pod:") else None))
        port = server.get("port")
        return cls(
            server=server,
            key=key,
            tail=_tail(key),
            # The engine's own name is in every key of its servers.
            words=f" {_WORDS.sub(' ', (pod or key.partition('@')[2]).lower())} ",
            port=port_of_key(key) if port is None else port,
            instance_id=server.get("instance_id") or _place_of(key)[1],
            largest_bytes=largest_segment_bytes(server) if server.get("segments") else None,
            is_of_user=_is_of_user(_place_of(key)[0], paths) or _OF_A_USER.match(str(server.get("unit"))) is not None,
            owner_uid=owner_of(server),
            pod=pod,
        )


def _is_of_user(place: str, paths: Mapping[object, object]) -> bool:
    """Whether a user of the node may have made the unit. A container's key says its name alone: its cgroup tells."""
    unit = place.partition("@")[2]
    path = str(paths.get(unit) or "/user.slice/")
    return _OF_A_USER.match(unit) is not None or (_is_by_a_runtime(place) and path.startswith("/user.slice/"))


def _is_by_a_runtime(key: str) -> bool:
    """Whether it runs in a container, where ports and settings are the choice of who is root there."""
    return _BY_A_RUNTIME.match(key) is not None


def match_servers(plan: Plan, observed: Observation) -> dict[str, Matched]:
    """Each instance of the plan, by its name."""
    found: dict[str, Matched] = {}
    listed = list(observed.listed("databases"))
    paths = {unit.get("key"): unit.get("cgroup_path") for unit in observed.listed("units")}
    units = observed.listed("units")
    pods = {unit.get("key"): _named(unit["pod"]) for unit in units if isinstance(unit.get("pod"), Mapping)}
    for engine in dict.fromkeys(instance.engine for instance in plan.instances):
        instances = [i for i in plan.instances if i.engine == engine]
        found |= _of_engine(instances, [_Seen.of(one, paths, pods) for one in listed if one.get("engine") == engine])
    return found


def _of_engine(instances: Sequence[InstancePlan], servers: Sequence[_Seen]) -> dict[str, Matched]:
    found: dict[str, Matched] = {}
    left = list(servers)
    for fits in (_has_key, _has_place, _has_pod, _has_tail, _has_name, _has_size):
        waiting = [i for i in instances if i.name not in found]
        known = left if fits in (_has_key, _has_place) else [seen for seen in left if not seen.is_of_user]
        for instance, seen in _pairs(waiting, known, fits):
            found[instance.name] = Matched(seen.server)
            left = [other for other in left if other is not seen]
    waiting = [i for i in instances if i.name not in found]
    services = {_service_of(i.runs_as or "") for i in waiting} - {None}
    out = {
        id(seen)
        for seen in left
        if seen.is_of_user
        or (waiting and all(_has_other_owner(one, seen) or _is_of_another(one, seen) for one in waiting))
    }
    of_users = tuple(
        seen.server for seen in left if id(seen) in out or len(services) > (_service_of(seen.key) in services)
    )
    left = [seen for seen in left if id(seen) not in out]
    if len(waiting) == len(left) == 1 and _may_be(waiting[0], left[0]):
        found[waiting[0].name] = Matched(left[0].server)
    else:
        found |= _undecided(waiting, left, of_users)
    return found


def _undecided(
    instances: Sequence[InstancePlan], servers: Sequence[_Seen], of_users: tuple[Server, ...]
) -> dict[str, Matched]:
    """The candidates of each instance: those that are not elsewhere. Instances with the same candidates share them."""
    by_place: dict[tuple[object, ...], list[InstancePlan]] = {}
    for instance in instances:
        key = instance.runs_as or ""
        place = (_tail(key), *_place_of(key), _pod_of(instance), instance.owner_uid)
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


def _named(pod: Mapping[str, Any]) -> str:
    return f"{pod['namespace']}/{pod['name']}" if pod.get("namespace") and pod.get("name") else ""


def _pod_of(instance: InstancePlan) -> str:
    """What the plan says of its pod: by its name where that says the namespace, as inventories write it."""
    return instance.pod or (instance.name if _QUALIFIED.match(instance.name) else "")


def _is_of_another(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server is in a pod that is not the planned one's, nor of its owner, or a guest that nobody planned."""
    planned = _pod_of(instance)
    if seen.pod is None:
        is_guest = seen.key.partition("@")[2].startswith("container:lxc/") and not instance.runs_as
        return instance.pod is not None or (is_guest and not _has_name(instance, seen))
    if not seen.pod or not planned:
        return False  # nobody said it, as the chart's agent without the Kubernetes API
    namespace, _, name = seen.pod.partition("/")
    if planned.endswith("-"):
        return not seen.pod.startswith(planned)
    # An inventory's name: NAMESPACE.POD or NAMESPACE.POD.CONTAINER.
    if f"{planned}.".startswith(f"{namespace}.{name}."):
        return False
    return seen.pod != planned and _owner(seen.pod) not in (planned, _owner(planned))


def _has_other_owner(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server runs as another user than the planned one did, so far as both are known."""
    planned, now = instance.owner_uid, seen.owner_uid
    if planned is None or now is None or planned == now:
        return False
    is_of_pods = _is_by_a_runtime(seen.key) and min(planned, now) >= _USERS_OF_A_POD
    return not is_of_pods or (planned - now) % _USERS_OF_A_POD != 0


def _owner(pod: str) -> str:
    """A pod's name without what tells the pods of one owner apart."""
    return _OF_ONE_OWNER.sub("", pod)


def _is_elsewhere(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server is another one than was planned for: it has another data directory in that unit, or port."""
    port = port_of_key(instance.runs_as or "")
    return _has_other_place(instance, seen) or (port is not None and seen.port is not None and port != seen.port)


def _may_be(instance: InstancePlan, seen: _Seen) -> bool:
    """Whether a server may be it for want of another: no place was planned for, or unit, port or data directory is it.

    A server of another unit that shows neither port nor data directory may be anybody's.
    """
    key = instance.runs_as or ""
    if not _tail(key):
        return not _has_other_place(instance, seen)
    is_near = _place_of(key)[0] == _place_of(seen.key)[0] or _has_tail(instance, seen)
    return is_near and not _is_elsewhere(instance, seen)


@lru_cache(maxsize=1024)
def _place_of(key: str) -> tuple[str, str | None]:
    """Engine and unit of a key, and the checksum of the data directory where it holds one."""
    found = _TAIL.search(key)
    if found is None:
        return key, None
    own = found[2] or (found[1] if len(found[1]) > _PORT_DIGITS else None)
    return key[: found.start()], own


def _pairs(
    instances: Sequence[InstancePlan], servers: Sequence[_Seen], fits: Callable[[InstancePlan, _Seen], bool]
) -> list[tuple[InstancePlan, _Seen]]:
    """Pairs that fit each other and nobody else."""
    own = [
        [seen for seen in servers if fits(instance, seen) and not _has_other_place(instance, seen)]
        for instance in instances
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
    unit, instance_id = _place_of(instance.runs_as or "")
    return instance_id is not None and (unit, instance_id) == (_place_of(seen.key)[0], seen.instance_id)


@lru_cache(maxsize=1024)
def _tail(key: str) -> str:
    """The port or the data directory's checksum at the end of a key; what follows ``#`` tells equal ones apart."""
    found = _TAIL.search(key)
    return "" if found is None else found[1]


def port_of_key(key: str) -> int | None:
    """The port that a server's key ends with; None where it ends with something else."""
    tail = _tail(key)
    return int(tail) if tail.isdigit() and len(tail) <= _PORT_DIGITS else None


def _is_in_other_unit(planned: str, seen: _Seen) -> bool:
    """Whether the planned server ran in a service, in which nobody but root starts one, and this one does not."""
    return _service_of(planned) not in (None, _service_of(seen.key))


@lru_cache(maxsize=1024)
def _service_of(key: str) -> str | None:
    """Engine and service of the system in a key."""
    found = _OF_A_SERVICE.match(key)
    return found and found[0]


def _has_other_place(instance: InstancePlan, seen: _Seen) -> bool:
    planned = instance.runs_as
    unit, instance_id = _place_of(planned or "")
    if _has_other_owner(instance, seen) or (unit != _place_of(seen.key)[0] and _is_of_another(instance, seen)):
        return True
    if planned and (_is_by_a_runtime(planned) != _is_by_a_runtime(seen.key) or _is_in_other_unit(planned, seen)):
        return True
    known = instance_id is not None and seen.instance_id is not None
    return known and unit == _place_of(seen.key)[0] and instance_id != seen.instance_id


def _has_pod(instance: InstancePlan, seen: _Seen) -> bool:
    return bool(seen.pod) and instance.pod == seen.pod


def _has_tail(instance: InstancePlan, seen: _Seen) -> bool:
    return bool(seen.tail) and _tail(instance.runs_as or "") == seen.tail


def _has_name(instance: InstancePlan, seen: _Seen) -> bool:
    name = _words_of(instance.name)
    return bool(name) and f" {name} " in seen.words


@lru_cache(maxsize=1024)
def _words_of(name: str) -> str:
    return _WORDS.sub(" ", name.lower()).strip()


def _has_size(instance: InstancePlan, seen: _Seen) -> bool:
    if _is_elsewhere(instance, seen):
        return False
    if seen.largest_bytes is None:
        return _may_be(instance, seen)  # not known: it may be any of these
    demand = instance.demand
    # The kernel rounds a mapping up to whole pages; on base pages it has its exact size.
    return abs(seen.largest_bytes - demand.segment_bytes) <= (demand.error_pages + 1) * demand.page_bytes


def owner_of(server: Server) -> int | None:
    """The user id that a server runs as; None where the report does not say it, or spells it as no number."""
    uid = server.get("owner_uid")
    return uid if isinstance(uid, int) else None


def largest_segment_bytes(server: Server) -> int:
    """The largest segment of a server in bytes, 0 where none is known."""
    return max((int(s.get("bytes") or 0) for s in server.get("segments") or ()), default=0)
