"""Whose a running server is: a user's of the node, a pod's, or the system's. Plans and their proof take no server by a
guess that somebody else can have made look so. A pod's key is new with each pod; its names are what it is known by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hugeplan.planner.model import DatabaseInstance, InstancePlan, NodeSample, ObservedDatabase
from hugeplan.planner.remembered import remembered

_PORT_DIGITS: Final = 5
_TAIL = re.compile(r":(\d{1,5}|[0-9a-f]{12})(?:#([0-9a-f]{12}))?(?:#\d+)?$")
_WORDS = re.compile(r"[^a-z0-9]+")
# Logins, timers, terminals and desktops; batch systems, notebooks and builds; mail's filters and web's scripts.
_OF_A_USER = re.compile(
    r"systemd:(?:session-|user@|.*/|(?:[\w-]*cron|atd?[.@]|(?:open)?ssh|dropbear|tinyssh|teleport|telnet|x?inetd|rsh)"
    r"|[\w-]*(?:getty|vnc)|xrdp|x2go|cockpit|webmin|shellinabox|ttyd|gdm|sddm|lxdm|xdm|lightdm|greetd|display-manager"
    r"|slurm|pbs|condor|sge_?execd|gridengine|lsf|jupyter|rstudio|code-server|[\w.-]*(?:runner|buildkite)|jenkins"
    r"|postfix|exim|sendmail|opensmtpd|dovecot|courier|apache2?[.@]|httpd|lighttpd|php|uwsgi|fcgi|machine-|systemd-nspawn)"
    # Sessions have systemd's slice, else elogind's number.
    r"|cgroup:/(?:user\.slice/|(?:elogind/)?c?\d+(?:/|$))|.*#"
)
_FIRST_USER: Final = 1000
_OF_ITS_ENGINE = re.compile(  # services that root called after it; agents run anybody's programs
    r"(?=\w+@(?:systemd:[^/]+\.service|cgroup:/openrc\.[^/]+)$)(?!.*agent)"
    r"(?:postgresql@.*(?:postgres|pgsql|edb-)|(?:mysql|mariadb)@.*(?:mysql|maria|percona)|oracle@.*(?:oracle|dbora)"
    r"|db2@.*db2|redis@.*(?:redis|valkey)|mongodb@.*mongo|sqlserver@.*mssql|hana@.*SAP)"
)
_BY_A_RUNTIME = re.compile(r"\w+@(?:container|pod):")
_QUALIFIED = re.compile(r"[a-z0-9-]+[/.][a-z0-9]")
_OF_ONE_OWNER = re.compile(r"-\d+$|(?:-[bcdf-hj-np-tv-xz2456789]{6,10})?-[bcdf-hj-np-tv-xz2456789]{5}$")


@dataclass(frozen=True, slots=True)
class ServerOwners:
    """Whose the servers of one report are: ``paths`` are the cgroups of its units by their keys, ``pods`` the pods of
    those that are in one, empty where the report does not say the name, ``?`` where it does not know it yet.
    """

    paths: Mapping[object, object] = field(default_factory=dict)
    pods: Mapping[object, str] = field(default_factory=dict)

    @classmethod
    def of(cls, sample: NodeSample | None) -> ServerOwners:
        """Those of a plan's observation."""
        units = (sample and sample.units) or ()
        pods = [unit for unit in units if unit.kind == "pod" or (unit.parent or "").startswith("pod:")]
        return cls({unit.key: unit.cgroup_path for unit in units}, {unit.key: pod_in(unit.name) for unit in pods})

    def is_of_user(self, key: str, unit: str | None, uid: int | None) -> bool:
        """Whether a user of the node may have made its unit, or started it in one that root did not call after it.
        A container's key says its name alone: its cgroup does. A user id in it is its image's choice."""
        place = place_of(key)[0]
        own = place.partition("@")[2]
        if any(map(_OF_A_USER.match, (own, str(unit)))):
            return True
        if is_by_a_runtime(place):
            return str(self.paths.get(own) or "/user.slice/").startswith("/user.slice/")
        return (uid or 0) >= _FIRST_USER and not _OF_ITS_ENGINE.match(place.replace("@node", f"@{unit}"))

    def pod_of(self, key: str, unit: str | None) -> str | None:
        """Namespace and name of its pod; empty where the report does not say them, None where it is in no pod."""
        own = place_of(key)[0].partition("@")[2]
        pod = self.pods.get(own, self.pods.get(unit, "" if own.startswith("pod:") else None))
        return "" if pod == "?" else pod

    def seen_in(self, key: str, unit: str | None) -> str | None:
        """Its pod, to compare: where names are asked for, or others have them, one that has none may be anybody's."""
        pod = self.pod_of(key, unit)
        return "?" if pod == "" and any(self.pods.values()) else pod

    def may_be(self, instance: DatabaseInstance, server: ObservedDatabase) -> bool:
        """Whether a server may be taken for an instance that does not name it."""
        is_another = is_of_another(instance, made_by(instance), server.key, self.seen_in(server.key, server.unit))
        return not is_another and not self.is_of_user(server.key, server.unit, server.owner_uid)


def pod_in(name: str) -> str:
    """The pod in the name of a unit: ``NAMESPACE/POD``, ``pod UID``, or ``pod? UID`` where names are asked for."""
    if name.startswith("pod? "):
        return "?"
    return "/".join(name.split("/")[:2]) if "/" in name and not name.startswith("pod ") else ""


@remembered(1024)
def place_of(key: str) -> tuple[str, str | None]:
    """Engine and unit of a key, and the checksum of the data directory where it holds one."""
    found = _TAIL.search(key)
    own = found and (found[2] or (found[1] if len(found[1]) > _PORT_DIGITS else None))
    return key[: found.start()] if found else key, own


@remembered(1024)
def tail_of(key: str) -> str:
    """The port or the data directory's checksum at the end of a key; what follows ``#`` tells equal ones apart."""
    found = _TAIL.search(key)
    return "" if found is None else found[1]


def port_of_key(key: str) -> int | None:
    """The port that a server's key ends with; None where it ends with something else."""
    tail = tail_of(key)
    return int(tail) if tail.isdigit() and len(tail) <= _PORT_DIGITS else None


def is_by_a_runtime(key: str) -> bool:
    """Whether it runs in a container, where ports and settings are the choice of who is root there."""
    return _BY_A_RUNTIME.match(key) is not None


def has_name(name: str, key: str, pod: str | None) -> bool:
    """Whether an instance's name is among the words of a server; the engine's own name is in every key."""
    return bool(_words(name)) and f" {_words(name)} " in f" {_words(pod or key.partition('@')[2])} "


@remembered(1024)
def _words(text: str) -> str:
    return _WORDS.sub(" ", text.lower()).strip()


def planned_pod(name: str, pod: str | None) -> str:
    """The pod of an instance or its owner, else what its name means, as inventories write it: with its namespace."""
    return pod or (name if _QUALIFIED.match(name) else "")


def is_of_another(instance: DatabaseInstance | InstancePlan, made: str | None, key: str, pod: str | None) -> bool:
    """Whether it is in a pod other than the planned one ``made`` and its owner's, in any pod where none was planned, or
    in a guest that nobody named."""
    if pod is None:
        is_guest = key.partition("@")[2].startswith("container:lxc/") and not instance.runs_as
        return made is not None or (is_guest and not has_name(instance.name, key, pod))
    planned = planned_pod(instance.name, made)
    if not pod:
        return False  # nobody said it, as the chart's agent without the Kubernetes API
    # An inventory's name: NAMESPACE.POD or NAMESPACE.POD.CONTAINER.
    if planned.endswith("-") or f"{planned}.".startswith(f"{pod.replace('/', '.', 1)}."):
        return planned.endswith("-") and not pod.startswith(planned)
    return pod != planned and _owner(pod) not in (planned, _owner(planned))


def _owner(pod: str) -> str:
    """A pod's name without what tells the pods of one owner apart."""
    return _OF_ONE_OWNER.sub("", pod)


def made_by(instance: DatabaseInstance) -> str | None:
    """Its StatefulSet, or how the names of an operator's pods begin."""
    owner = instance.operator_object
    return instance.stateful_set or (None if owner is None else f"{owner.namespace}/{owner.name}-")
