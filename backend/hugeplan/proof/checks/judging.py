"""What is said of an instance where several servers may be it: what holds for each of them, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from hugeplan.planner.demand import ENGINES
from hugeplan.planner.demand.settings import plain
from hugeplan.planner.findings.base import unknown
from hugeplan.planner.model import Finding, InstancePlan, State
from hugeplan.proof.holders import called
from hugeplan.proof.matching import Matched, Server

MAX_DIFFERENT_PAIRS = 256
"""Different demands times different servers that are judged where it cannot be told which is which."""
NAMES_SAID = 8
"""Of many servers or instances, the first."""
_JUDGED_BY = ("huge_pages_status", "segments", "version", "memlock_limit_bytes", "memlock_limited")


@dataclass(frozen=True, slots=True)
class Judge:
    """One check of an instance on a server: its code, what it finds, and the state of that alone, which is cheaper."""

    code: str
    found: Callable[[InstancePlan, Server], Finding]
    state: Callable[[InstancePlan, Server], State]

    @classmethod
    def by(cls, code: str, found: Callable[[InstancePlan, Server], Finding]) -> Judge:
        """One whose state is no cheaper than what it finds."""
        return cls(code, found, lambda instance, server: found(instance, server).state)


class Group:
    """The instances that share candidates, and what is the same for all of them, worked out once.

    A judgement depends on what an instance demands and on what a server has, not on their names: a hundred equal
    databases on equal servers are judged once. ``is_clear`` is False where so many different ones meet that judging
    each with each takes too long.
    """

    def __init__(self, matched: Matched, rivals: Sequence[InstancePlan]) -> None:
        self.matched, self.rivals = matched, rivals
        different: dict[Hashable, Server] = {}
        for server in matched.candidates:
            different.setdefault(_class_of(server), server)
        self._servers = tuple(different.values())
        self._demands = {demand_key(one): one for one in rivals}
        self.is_clear = len(self._demands) * len(self._servers) <= MAX_DIFFERENT_PAIRS
        self._state: dict[Hashable, State] = {}
        self._states: dict[Hashable, frozenset[State]] = {}
        self._found: dict[Hashable, Finding] = {}
        self._bad: dict[str, Server | None] = {}

    @cached_property
    def names_of_candidates(self) -> str:
        """The servers, the first of many."""
        return first_of(sorted(called(server) for server in self.matched.candidates))

    @cached_property
    def names_of_rivals(self) -> str:
        """The instances, the first of many."""
        return first_of([rival.name for rival in self.rivals])

    def found(self, judge: Judge, instance: InstancePlan, server: Server) -> Finding:
        """What ``judge`` says of the instance if it is this server."""
        key = (judge.code, demand_key(instance), id(server))
        if key not in self._found:
            self._found[key] = judge.found(instance, server)
        return replace(self._found[key], subject=instance.name)

    def states(self, judge: Judge, instance: InstancePlan) -> frozenset[State]:
        """All that ``judge`` says of the instance, whichever of the candidates it is."""
        demand = demand_key(instance)
        key = (judge.code, demand)
        if key not in self._states:
            self._states[key] = frozenset(self._state_of(judge, demand, server) for server in self._servers)
        return self._states[key]

    def _state_of(self, judge: Judge, demand: Hashable, server: Server) -> State:
        key = (judge.code, demand, id(server))
        if key not in self._state:
            self._state[key] = judge.state(self._demands[demand], server)
        return self._state[key]

    def bad_server(self, judge: Judge) -> Server | None:
        """A server that is wrong whichever of the instances it is."""
        if judge.code not in self._bad:
            has_pools = all(one.page_bytes is not None for one in self._demands.values())
            wrong_for_all = (
                server
                for server in self._servers
                if all(self._state_of(judge, demand, server) is State.WRONG for demand in self._demands)
            )
            self._bad[judge.code] = next(wrong_for_all, None) if has_pools else None
        return self._bad[judge.code]


def demand_key(instance: InstancePlan) -> Hashable:
    """All of an instance that a judgement depends on but its name."""
    demand = instance.demand
    pages = (demand.pages, demand.error_pages, demand.segment_bytes, demand.also_pages)
    return (instance.engine, instance.page_bytes, demand.version, *pages)


def _class_of(server: Server) -> Hashable:
    """All of a server that a judgement's state depends on: not who it is, nor where."""
    limits = server.get("hugetlb_limits")
    if limits is not None:
        limits = [
            (
                one.get("page_bytes"), one.get("counter"), one.get("limit_bytes"), one.get("usage_bytes"),
                "kubepods" in str(one.get("cgroup_path")),
            )
            for one in limits
        ]  # fmt: skip
    found = (limits, grows(server), *(server.get(name) for name in _JUDGED_BY))
    try:
        return msgspec.json.encode(found)
    except (OverflowError, TypeError, ValueError):  # a number of more than 64 bits; this takes thrice as long
        return repr(found)


def grows(server: Server) -> bool:
    """Whether a server maps no more of its size, which its settings tell, than it has needed yet."""
    switch = ENGINES[server["engine"]].maps_as_it_grows if server.get("engine") in ENGINES else None
    said = (server.get("settings") or {}).get(switch) or {}
    return bool(server.get("settings_complete")) and plain(str(said.get("value"))) == "on"


def first_of(names: Sequence[str], count: int | None = None) -> str:
    """The first of ``count`` names, of which more need not be there than are said."""
    count = len(names) if count is None else count
    rest = f" and {count - NAMES_SAID} more" if count > NAMES_SAID else ""
    return ", ".join(names[:NAMES_SAID]) + rest


def judged(judge: Judge, instance: InstancePlan, group: Group) -> Finding:
    """The verdict on its server; where several may be it, what holds for each of them, else unknown."""
    matched, rivals = group.matched, group.rivals
    if matched.server is not None:
        return judge.found(instance, matched.server)
    candidates = matched.candidates
    apart = f"Port, data directory, unit, name and segment size do not tell which of {group.names_of_candidates} it is."
    if group.is_clear:
        # As many instances as servers, or more: each server is one of them, so what is wrong for all of them is wrong.
        bad = group.bad_server(judge) if len(candidates) <= len(rivals) else None
        if bad is not None:
            worst = group.found(judge, instance, bad)
            return replace(worst, reason=f"This is one of {group.names_of_rivals}. {worst.reason} {apart}")
        # With more servers than instances, all of them may be somebody else's: then only what is right for each is
        # said.
        states = group.states(judge, instance)
        sure = len(candidates) == len(rivals) or (states == {State.OK} and len(candidates) > len(rivals))
        if sure and len(states) == 1:
            found = group.found(judge, instance, candidates[0])
            return replace(found, reason=f"{found.reason} The same holds for each server that it may be. {apart}")
    return unknown(
        judge.code, instance.name, "Which server runs it cannot be told", apart,
        "Plan again with its port=, pid= or data_directory= (hugeplan plan --node this), or with runs_as.",
    )  # fmt: skip
