"""Verifying costs in proportion to what is verified: a report with many servers holds nobody up."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from proof.test_matching import BASE, M2, observed, plan_of, server

from hugeplan.planner.model import Plan
from hugeplan.proof import Observation, verify
from hugeplan.proof.checks import engines, judging
from hugeplan.proof.holders import Holder, Holders

MIB64 = 64 * 2**20


def many(count: int, *, differ: bool, huge: bool) -> tuple[Plan, Observation]:
    """A plan of ``count`` instances beside twice as many servers, none of which can be told apart."""
    plan = plan_of(**{f"d{i}": None for i in range(count)})
    if differ:
        changed = tuple(
            replace(one, demand=replace(BASE.demand, pages=BASE.demand.pages + i))
            for i, one in enumerate(plan.instances)
        )
        plan = replace(plan, instances=changed)
    servers: list[dict[str, Any]] = [
        {**server(f"postgresql@u{i}", huge=huge, limit=MIB64 + (i * M2 if differ else 0)), "main_pid": i}
        for i in range(2 * count)
    ]
    return plan, observed(*servers)


def with_limits(seen: Observation, count: int) -> Observation:
    """The same servers, each with so many different limits, all of them short."""
    servers = [
        {
            **one,
            "hugetlb_limits": [
                {"page_bytes": M2, "counter": "usage", "limit_bytes": (count - k) * M2, "cgroup_path": f"/{at}/{k}"}
                for k in range(count)
            ],
        }
        for at, one in enumerate(seen.sample["databases"])
    ]
    return Observation(seen.inventory, {**seen.sample, "databases": servers})


def seconds(found: tuple[Plan, Observation]) -> float:
    plan, seen = found
    best = 9e9
    for _ in range(4):
        begun = time.process_time()
        verify(plan, Observation(seen.inventory, seen.sample))
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("huge", [True, False])
@pytest.mark.parametrize("differ", [True, False])
def test_servers_that_cannot_be_told_apart_cost_a_few_times_those_that_can(differ: bool, huge: bool) -> None:
    plan, seen = many(64, differ=differ, huge=huge)
    instances = tuple(replace(one, runs_as=f"postgresql@u{i}") for i, one in enumerate(plan.instances))
    clear, unclear = seconds((replace(plan, instances=instances), seen)), seconds((plan, seen))
    # Judging each instance with each server, and each rival with it, cost more than 100 times as much.
    assert unclear < 15 * clear, f"{clear:.4f} s and {unclear:.4f} s"


def test_servers_whose_keys_are_all_new_cost_in_proportion() -> None:
    """Rules that look at pairs end at a bound: each report of such a node took 0.3 s of everybody's time."""

    def report(count: int) -> tuple[Plan, Observation]:
        plan, _ = many(count, differ=True, huge=False)
        keys = (f"postgresql@systemd:u.service:{6000 + i}" for i in range(count))
        instances = tuple(replace(one, runs_as=key) for one, key in zip(plan.instances, keys, strict=True))
        servers = [server(f"postgresql@systemd:u.service:{i:012x}", huge=False) | {"main_pid": i} for i in range(count)]
        return replace(plan, instances=instances), observed(*servers)

    few, many_more = seconds(report(60)), seconds(report(250))
    assert many_more < 8 * few, f"{few:.4f} s and {many_more:.4f} s"


@pytest.mark.parametrize("asks", ["pools", "servers"])
def test_who_holds_pages_is_counted_once_for_all_that_are_short(asks: str) -> None:
    def report(asking: int, processes: int) -> tuple[Plan, Observation]:
        servers, pools = (asking // 16, 1) if asks == "servers" else (1, asking)
        plan, seen = many(servers, differ=False, huge=False)
        instances = tuple(replace(one, runs_as=f"postgresql@u{i}") for i, one in enumerate(plan.instances))
        demand, (one,) = BASE.demand.pages, plan_of(d=None).pools[:1]
        short = tuple(replace(one, numa_node=node, pages=8) for node in range(pools))
        lowered = [{"numa_node": n, "page_bytes": M2, "nr_hugepages": 9, "surplus_hugepages": 9} for n in range(pools)]
        held = {"hugetlb_bytes": M2, "huge_page_mappings": [{"page_bytes": M2}], "name": "p"}
        more = {
            "pools": lowered,
            "global_pools": [{"page_bytes": M2, "nr_hugepages": demand, "free_hugepages": 0, "resv_hugepages": 0}],
            "databases": [{**one, "hugetlb_limits": []} for one in seen.sample["databases"]],
            "processes": [{**held, "pid": pid} for pid in range(processes)],
        }
        return replace(plan, instances=instances, pools=short), Observation(seen.inventory, {**seen.sample, **more})

    both, one, other = report(4000, 8000), report(4000, 8), report(16, 8000)
    assert any("and 7995 more" in finding.reason for finding in verify(*both).findings)
    together = seconds(both)
    assert together < 2 * (seconds(one) + seconds(other)), f"{together:.3f} s"


def test_what_is_said_names_the_first_of_many() -> None:
    plan, seen = many(100, differ=False, huge=True)
    longest = max(len(finding.reason) for finding in verify(plan, seen).findings)
    assert longest < 2_000
    assert any("and 192 more" in finding.reason for finding in verify(plan, seen).findings)


def test_many_equal_instances_are_still_judged() -> None:
    """Thirty equal pods on thirty equal servers: whichever is which, all are right."""
    plan = plan_of(**{f"d{i}": None for i in range(30)})
    seen = observed(*(server(f"postgresql@u{i}") for i in range(30)))
    states = {finding.state.value for finding in verify(plan, seen).findings if finding.code == "verify_engine"}
    assert states == {"ok"}


def test_many_servers_of_one_key_are_told_in_time() -> None:
    """Each was compared with each, for every server that is short: a report cost 0.34 s."""
    found = tuple(Holder("MySQL", 1, 2**21, is_server=True, key="one") for _ in range(2_000))
    everyone = Holders(everyone=found, pages=2_000, all_known=True, of_server={"one": found})
    start = time.process_time()
    for _ in range(20):
        assert everyone.said(besides=found) == ""
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("huge", [True, False])
def test_equal_databases_are_judged_once_for_each_server(huge: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each database asked anew for each server, and each server judged all of its limits: 0.2 s of everybody's time."""
    plan, seen = many(128, differ=False, huge=huge)
    done: Counter[str] = Counter()
    for name in ("Claim", "_backing", "demand_key"):
        counted(name, done, monkeypatch)
    found = verify(plan, with_limits(seen, 40))
    assert sum(finding.code == engines.LIMIT for finding in found.findings) == 128
    servers, instances = 2 * 128, 128
    assert done["Claim"] <= 2 * servers
    assert done["_backing"] <= 2 * servers
    assert done["demand_key"] <= 8 * (servers + instances)


def counted(name: str, done: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the calls of what the checks of servers call by this name."""
    where = judging if hasattr(judging, name) and name != "called" else engines
    real = getattr(where, name)

    def called(*arguments: Any, **named: Any) -> Any:
        done[name] += 1
        return real(*arguments, **named)

    monkeypatch.setattr(where, name, called)


def test_of_many_short_limits_of_a_server_the_shortest_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, seen = many(8, differ=False, huge=False)
    instances = tuple(replace(one, runs_as=f"postgresql@u{i}") for i, one in enumerate(plan.instances))
    done: Counter[str] = Counter()
    counted("Claim", done, monkeypatch)
    found = verify(replace(plan, instances=instances), with_limits(seen, 60)).findings
    said = [finding.reason for finding in found if finding.code == engines.LIMIT and finding.subject == "d0"]
    assert all(f"its limit allows {pages:,}:" in reason for pages, reason in zip((4, 3, 2, 1), said, strict=True))
    assert done["Claim"] <= 8 * (engines.MOST_LIMITS + 1)


def test_servers_that_are_nobodys_are_named_for_each_database_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 256 servers eight are said, and each database that does not run spelled all of them."""
    plan, seen = many(128, differ=False, huge=False)
    instances = tuple(replace(one, owner_uid=500) for one in plan.instances)
    servers = [
        {**one, "key": f"postgresql@systemd:user@{at}.service/x", "owner_uid": 2000 + at}
        for at, one in enumerate(seen.sample["databases"])
    ]
    done: Counter[str] = Counter()
    counted("called", done, monkeypatch)
    observed_now = Observation(seen.inventory, {**seen.sample, "databases": servers})
    found = verify(replace(plan, instances=instances), observed_now).findings
    reasons = [finding.reason for finding in found if finding.code == engines.BACKING]
    assert len(reasons) == 128
    assert all("of uid 2007 and 248 more: a user" in reason and "ran as uid 500" in reason for reason in reasons)
    assert done["called"] <= 128 * engines.NAMES_SAID


def test_free_blocks_are_counted_once_for_all_pools() -> None:
    def report(sizes: int) -> tuple[Plan, Observation]:
        plan, seen = many(1, differ=False, huge=False)
        pools = tuple(replace(plan.pools[0], page_bytes=M2 << size, pages=99) for size in range(sizes))
        short = [{"numa_node": 0, "page_bytes": one.page_bytes, "nr_hugepages": 1} for one in pools]
        zones = [{"numa_node": 0, "zone": "n", "free_blocks": [1] * 32}] * 4_000
        return replace(plan, pools=pools), Observation(
            seen.inventory, {**seen.sample, "pools": short, "buddyinfo": zones}
        )

    one, many_more = seconds(report(1)), seconds(report(16))
    assert many_more < 4 * one, f"{one:.4f} s and {many_more:.4f} s"


def test_a_number_of_more_than_64_bits_tells_servers_apart() -> None:
    plan, seen = many(3, differ=False, huge=True)
    servers = [{**one, "memlock_limit_bytes": 2**70} for one in seen.sample["databases"]]
    observed_now = Observation(seen.inventory, {**seen.sample, "databases": servers})
    assert verify(plan, observed_now).findings == verify(plan, seen).findings
