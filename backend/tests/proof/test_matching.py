"""Which server is which instance: by what tells them apart, and "cannot tell" where nothing does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from artifacts.samples import request_of
from proof.test_checks import EXAMPLE

from hugeplan.planner.model import MIB, Finding, NodeSample, ObservedDatabase, ObservedUnit, OperatorObject, Plan, State
from hugeplan.planner.observation.server_owners import ServerOwners
from hugeplan.planner.plan import plan
from hugeplan.proof import Observation, verify
from hugeplan.proof.matching import match_servers
from hugeplan.proof.verdict import Outcome

M2 = 2 * MIB
BASE = plan(request_of("postgresql", nodes=1)).instances[0]
PAGES = BASE.demand.pages


def plan_of(**runs_as: str | None) -> Plan:
    """Instances with one demand; their names and the keys observed when they were planned."""
    found = plan(request_of("postgresql", nodes=1))
    pools = tuple(replace(p, pages=2 * PAGES, demand_pages=2 * PAGES, slack_pages=0) for p in found.pools)
    instances = tuple(replace(BASE, name=name, runs_as=key) for name, key in runs_as.items())
    return replace(found, pools=pools[:1], instances=instances, kubernetes=None)


def server(key: str, *, huge: bool = True, pages: int = PAGES, limit: int | None = None) -> dict[str, Any]:
    backing = {"backing": "hugetlb", "page_bytes": M2} if huge else {"backing": "base", "page_bytes": None}
    return {
        "key": key,
        "engine": "postgresql",
        "main_pid": 7,
        "huge_pages_status": "on" if huge else "off",
        "segments": [{"bytes": pages * M2, "kind": "anonymous_shared", **backing}],
        "hugetlb_limits": []
        if limit is None
        else [{"page_bytes": M2, "counter": "usage", "limit_bytes": limit, "cgroup_path": "/x"}],
    }


def observed(*servers: dict[str, Any]) -> Observation:
    pool = {"page_bytes": M2, "nr_hugepages": 2 * PAGES, "free_hugepages": 0, "surplus_hugepages": 0}
    sample = EXAMPLE["sample"] | {
        "pools": [{"numa_node": 0, **pool}],
        "global_pools": [{**pool, "resv_hugepages": 0, "nr_overcommit_hugepages": 0}],
        "databases": list(servers),
        "kubelet": None,
    }
    return Observation(EXAMPLE["inventory"], sample)


def matched(found: Plan, *servers: dict[str, Any]) -> dict[str, str | None]:
    pairs = match_servers(found, observed(*servers))
    return {name: None if one.server is None else one.server["key"] for name, one in pairs.items()}


def findings(found: Plan, *servers: dict[str, Any]) -> tuple[Outcome, dict[tuple[str, str], Finding]]:
    verdict = verify(found, observed(*servers))
    return verdict.outcome, {(f.code, f.subject): f for f in verdict.findings}


SHOP, MAIL = "postgresql@shop.service:5432", "postgresql@mail.service:5433"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("keys", "running"),
    [
        ({"a": SHOP, "b": MAIL}, {"a": SHOP, "b": MAIL}),
        # The unit changed, the port did not.
        ({"a": SHOP, "b": MAIL}, {"a": "postgresql@new.service:5432", "b": "postgresql@node:5433"}),
        # The data directory's checksum, and the pid that told equal keys apart once.
        ({"a": "postgresql@node:0a1b2c3d4e5f", "b": "postgresql@node:ffff00001111#77"},
         {"a": "postgresql@node:0a1b2c3d4e5f", "b": "postgresql@node:ffff00001111"}),
        # No tail: the unit alone.
        ({"a": "postgresql@systemd:a.service", "b": "postgresql@systemd:b.service"},
         {"a": "postgresql@systemd:a.service", "b": "postgresql@systemd:b.service"}),
        # Nothing was observed at planning: the names say it.
        ({"shop": None, "mail": None}, {"shop": SHOP, "mail": MAIL}),
        # One of them is named, the other is the only one left.
        ({"shop": None, "b": None}, {"shop": SHOP, "b": MAIL}),
    ],
)  # fmt: skip
def test_servers_with_equal_segments_are_told_apart(
    keys: dict[str, str | None], running: dict[str, str], turned: bool
) -> None:
    servers = [server(key) for key in running.values()]
    assert matched(plan_of(**keys), *(reversed(servers) if turned else servers)) == running


@pytest.mark.parametrize("turned", [False, True])
def test_the_wrong_one_is_named(turned: bool) -> None:
    servers = [server(SHOP, huge=False), server(MAIL)]
    outcome, by = findings(plan_of(a=SHOP, b=MAIL), *(reversed(servers) if turned else servers))
    assert outcome is Outcome.NOT_IN_FORCE
    assert by["verify_engine", "a"].state is State.WRONG
    assert by["verify_engine", "b"].state is State.OK


def test_the_size_tells_them_apart_where_it_fits_one_alone() -> None:
    found = plan_of(a=None, b=None)
    small = replace(BASE.demand, segment_bytes=BASE.demand.segment_bytes // 2, pages=PAGES // 2)
    found = replace(found, instances=(found.instances[0], replace(found.instances[1], demand=small)))
    one, other = server("postgresql@x:1"), server("postgresql@y:2", pages=PAGES // 2)
    assert matched(found, other, one) == {"a": "postgresql@x:1", "b": "postgresql@y:2"}
    # A server whose mappings are not known may be either.
    other["segments"] = []
    assert matched(found, one, other) == {"a": None, "b": None}


def test_what_cannot_be_told_apart_is_said_and_does_not_matter_where_both_are_right() -> None:
    outcome, by = findings(plan_of(a=None, b=None), server("postgresql@x:1"), server("postgresql@y:2"))
    assert outcome is Outcome.IN_FORCE
    for name in ("a", "b"):
        assert by["verify_engine", name].state is State.OK
        which = "do not tell which of PostgreSQL on port 1 (PID 7), PostgreSQL on port 2 (PID 7) it is"
        assert which in by["verify_engine", name].reason


def test_a_server_that_is_wrong_for_every_instance_is_wrong_whichever_it_is() -> None:
    outcome, by = findings(plan_of(a=None, b=None), server("postgresql@x:1", huge=False), server("postgresql@y:2"))
    assert outcome is Outcome.NOT_IN_FORCE
    assert by["verify_engine", "a"].reason.startswith("This is one of a, b. ")
    short = server("postgresql@x:1", limit=M2)
    outcome, by = findings(plan_of(a=None, b=None), short, server("postgresql@y:2"))
    assert outcome is Outcome.NOT_IN_FORCE
    assert by["verify_limit", "b"].state is State.WRONG


def test_more_servers_than_instances_leave_it_open() -> None:
    """One of the two is somebody else's, and nothing says which: no verdict."""
    outcome, by = findings(plan_of(a=None), server("postgresql@x:1", huge=False), server("postgresql@y:2"))
    assert outcome is Outcome.UNDECIDED
    assert by["verify_engine", "a"].state is State.UNKNOWN
    assert "Which server runs it cannot be told" in by["verify_engine", "a"].title
    outcome, _ = findings(plan_of(a=None), server("postgresql@x:1"), server("postgresql@y:2"))
    assert outcome is Outcome.IN_FORCE
    # Found on a machine with other servers: the planned one did not run yet, and theirs were called wrong.
    others = [server(f"postgresql@{n}:{n}", huge=False, pages=3 * n) for n in (1, 2)]
    outcome, _ = findings(plan_of(a=None), *others)
    assert outcome is Outcome.UNDECIDED


def test_fewer_servers_than_instances_leave_it_open() -> None:
    outcome, by = findings(plan_of(a=None, b=None), server("postgresql@x:1"))
    assert outcome is Outcome.UNDECIDED
    assert {by["verify_engine", name].state for name in ("a", "b")} == {State.UNKNOWN}


SAME = "postgresql@node:5432"
ONE, TWO = "0a1b2c3d4e5f", "ffff00001111"


def placed(key: str, instance_id: str | None, **what: Any) -> dict[str, Any]:
    return server(key, **what) | {"instance_id": instance_id}


def test_servers_of_one_unit_and_port_are_told_apart_by_their_data_directories() -> None:
    """Found with three servers on sockets of their own: a key by order of PID named another one after a restart."""
    found = plan_of(a=f"{SAME}#{ONE}", b=f"{SAME}#{TWO}")
    both = [placed(f"{SAME}#{TWO}", TWO), placed(f"{SAME}#{ONE}", ONE)]
    assert matched(found, *both) == {"a": f"{SAME}#{ONE}", "b": f"{SAME}#{TWO}"}
    # Alone it has the short key: the other one does not run, although the size fits.
    assert matched(found, placed(SAME, TWO)) == {"a": None, "b": SAME}
    assert findings(found, placed(SAME, TWO))[1]["verify_engine", "a"].title == "PostgreSQL on port 5432 is not running"
    # It moved to another port.
    assert matched(found, placed("postgresql@node:6000", ONE)) == {"a": "postgresql@node:6000", "b": None}


def test_a_second_server_on_the_port_leaves_it_open_until_the_size_tells() -> None:
    found = plan_of(a=SAME)
    alike = [placed(f"{SAME}#{ONE}", ONE), placed(f"{SAME}#{TWO}", TWO, huge=False)]
    assert matched(found, *alike) == {"a": None}
    assert findings(found, *alike)[1]["verify_engine", "a"].state is State.UNKNOWN
    assert matched(found, alike[0], placed(f"{SAME}#{TWO}", TWO, pages=3 * PAGES)) == {"a": f"{SAME}#{ONE}"}


def test_a_data_directory_says_nothing_of_another_unit() -> None:
    """Each container has the same folder, and a new one has a new unit."""
    found = plan_of(a=f"postgresql@pod-1:{ONE}")
    assert matched(found, placed(f"postgresql@pod-2:{ONE}", ONE)) == {"a": f"postgresql@pod-2:{ONE}"}
    # Nothing is equal but the size.
    assert matched(found, placed(f"postgresql@pod-2:{TWO}", TWO)) == {"a": f"postgresql@pod-2:{TWO}"}
    assert matched(found, placed(f"postgresql@pod-2:{TWO}", TWO, pages=3 * PAGES)) == {"a": None}
    assert matched(found, placed(f"postgresql@pod-1:{TWO}", TWO)) == {"a": None}


def test_a_server_that_only_starts_is_not_taken_for_one_that_stopped() -> None:
    """Found beside another suite: its server had neither port nor mappings yet, and was called the planned one."""
    starting = server("postgresql@other.scope") | {"segments": [], "port": None}
    assert matched(plan_of(a=SAME), starting) == {"a": None}
    assert findings(plan_of(a=SAME), starting)[1]["verify_engine", "a"].state is State.UNKNOWN
    # In its own unit it may be nobody else.
    assert matched(plan_of(a=SAME), starting | {"key": "postgresql@node"}) == {"a": "postgresql@node"}


def test_the_size_is_no_reason_to_take_a_server_on_another_port() -> None:
    """Found where the planned server did not run: another one of its size did, on another port."""
    others = [server("postgresql@y:6000", huge=False), server("postgresql@z:6001", pages=3 * PAGES)]
    assert matched(plan_of(a="postgresql@x:5432"), *others) == {"a": None}


def test_replicas_with_new_units_are_candidates_for_each_other() -> None:
    found = plan_of(a="postgresql@pod-a:5432", b="postgresql@pod-b:5432")
    new = [server(f"postgresql@pod-{unit}:5432") for unit in "cd"]
    assert findings(found, *new)[0] is Outcome.IN_FORCE
    new[0] = server("postgresql@pod-c:5432", huge=False)
    assert findings(found, *new)[0] is Outcome.NOT_IN_FORCE


REAL, HERS = "postgresql@systemd:postgresql@17-main.service:5432", "postgresql@container:lxc/a:5432"
OF_USERS = (
    "container:lxc/a", "container:lxc/a#0a1b2c3d4e5f", "systemd:user@1000.service/a.service", "systemd:session-3.scope",
    "cgroup:/alice/a#0a1b2c3d4e5f", "systemd:cron.service", "systemd:crond.service", "systemd:anacron.service",
    "systemd:cron-alice-0.service", "systemd:atd.service", "systemd:ssh@1-10.0.0.1:22-10.0.0.2:1.service",
    "systemd:sshd.service", "systemd:serial-getty@ttyS0.service", "systemd:slurmd.service",
    "systemd:php8.4-fpm.service", "cgroup:/3", "cgroup:/c2", "cgroup:/elogind/c2", "cgroup:/user.slice/a",
)  # fmt: skip


@pytest.mark.parametrize("unit", OF_USERS)
@pytest.mark.parametrize("planned", [None, REAL])
def test_a_user_who_gives_his_server_name_port_and_size_decides_nothing(planned: str | None, unit: str) -> None:
    """Found with 8 MiB in a container named as the instance: in force, while the planned server was on base pages."""
    found, free = plan_of(a=planned), {"free_hugepages": 2 * PAGES}
    for pages, huge in ((PAGES, True), (PAGES, False), (4, True), (4, False)):
        hers = server(f"postgresql@{unit}:5432", huge=huge, pages=pages)
        for others in ([server(REAL)], [server(REAL, huge=False)], []):
            alone, both = (said(found, *seen, **free) for seen in (others, [*others, hers]))
            assert both == alone
            text = " ".join(f"{one.reason} {one.fix}" for one in verify(found, observed(*others, hers)).findings)
            assert others or "PostgreSQL on port 5432 (PID 7): a user of the node may have made it look so," in text
    hers = server(f"postgresql@{unit}:5432")
    # Without a memory controller no key has a unit, and systemd's tree tells.
    assert matched(plan_of(a=None), server("postgresql@node:1") | {"unit": "systemd:user@1000.service"}) == {"a": None}
    # Its key in the plan is the planner's word.
    assert matched(plan_of(a=str(hers["key"])), server(REAL), hers) == {"a": hers["key"]}


@pytest.mark.parametrize("unit", ["systemd:a.service", "systemd:x.scope", "node", "systemd:postgresql@17-main.scope"])
def test_a_server_in_another_unit_is_none_that_was_planned_in_a_service(unit: str) -> None:
    """Found with a job of cron's: port, name and size were the planned ones, and the plan was in force."""
    found = plan_of(a=REAL)
    for pages, huge in ((PAGES, True), (PAGES, False), (4, True)):
        other = server(f"postgresql@{unit}:5432", huge=huge, pages=pages)
        assert said(found, other) == said(found)
        assert said(found, other, server(REAL, huge=False)) == said(found, server(REAL, huge=False))
        text = " ".join(one.reason for one in verify(found, observed(other)).findings)
        assert "PostgreSQL on port 5432 (PID 7): a user of the node may have made it look so, or it runs in" in text
    for tail in (":6000", f":{ONE}", f":5432#{ONE}", f":5432#{TWO}", "#77", ""):
        key = REAL.removesuffix(":5432") + tail
        assert matched(plan_of(a=key), server(f"postgresql@{unit}{tail}")) == {"a": None}


@pytest.mark.parametrize("unit", ["cgroup:/3", "cgroup:/openrc.cron", "cgroup:/given/a", "node"])
def test_a_server_in_another_top_cgroup_is_none_that_was_planned_in_one(unit: str) -> None:
    """Without systemd a service is OpenRC's cgroup; found with a session of elogind's, on the same port: in force."""
    key = "postgresql@cgroup:/openrc.postgresql:5432"
    found, other = plan_of(a=key), server(f"postgresql@{unit}:5432")
    assert said(found, other) == said(found)
    assert matched(found, other, server(f"{key}#{ONE}")) == {"a": f"{key}#{ONE}"}
    assert matched(found, server("postgresql@cgroup:/openrc.postgresql/below:5432"))["a"]


def test_a_tenants_container_is_no_service_of_the_node() -> None:
    """Root made the container; who is root in it chooses port and size."""
    for planned, running in ((REAL, HERS), (HERS, REAL)):
        for found in (plan_of(x=planned), plan_of(a=planned)):
            seen = observed(server(running))
            seen.sample["units"] = [{"key": "container:lxc/a", "cgroup_path": "/lxc.payload.a"}]
            assert not match_servers(found, seen)[found.instances[0].name].possible


def owned(found: Plan, *uids: int | None) -> Plan:
    pairs = zip(found.instances, uids, strict=True)
    return replace(found, instances=tuple(replace(one, owner_uid=uid) for one, uid in pairs))


@pytest.mark.parametrize(
    "key",
    [REAL, "postgresql@node:5432", f"postgresql@node:{ONE}", "postgresql@a.service", "postgresql@systemd:a.scope:6000"],
)
@pytest.mark.parametrize("is_planned", [False, True])
def test_a_server_of_another_user_is_none_that_was_planned(key: str, is_planned: bool) -> None:
    """Found with a process of a user's own in the planned unit, with its port and size: the plan was in force."""
    found, mine, hers = plan_of(a=key if is_planned else None), {"owner_uid": 112}, {"owner_uid": 113}
    for pages, huge in ((PAGES, True), (PAGES, False), (4, True)):
        like = server(key, huge=huge, pages=pages)
        # Of the plan or of the server it is not known, as with older ones: judged by all else.
        for one, uid in ((like | hers, None), (like, 112), (like | {"owner_uid": "1001"}, 112), (like | mine, 112)):
            assert said(owned(found, uid), one) == said(found, like)
        planned = owned(found, 112)
        for uid in (113, 2**32 - 2):  # the last: of whoever made what says it too dear to be read
            assert said(planned, like | {"owner_uid": uid})[2:] == said(planned)[2:]
        text = " ".join(f"{one.reason} {one.fix}" for one in verify(planned, observed(like | hers)).findings)
        assert "(PID 7) of uid 113: a user" in text, text
        assert "The planned server ran as uid 112." in text, text
        for own in (True, False):
            real = server(f"{key}#112", huge=own) | mine
            assert said(planned, like | {"key": f"{key}#113"} | hers, real) == said(planned, real)


@pytest.mark.parametrize("planned", [None, "postgresql@node:5432", "postgresql@systemd:a.scope:5432"])
def test_a_login_users_server_decides_nothing_whatever_runs_it(planned: str | None) -> None:
    """Found in Session Manager's service: in force, while the planned server was not started."""
    found = plan_of(a=planned)
    hers = server("postgresql@systemd:amazon-ssm-agent.service:5432") | {"owner_uid": 1001}
    assert said(found, hers) == said(found)
    assert said(found, hers, server(str(planned or REAL), huge=False)) == said(
        found, server(str(planned or REAL), huge=False)
    )
    own = server(REAL) | {"owner_uid": 1001}
    assert matched(plan_of(a=None), own) == matched(plan_of(a=REAL), own) == {"a": REAL}
    assert matched(plan_of(a=str(hers["key"])), hers) == {"a": hers["key"]}


def test_owners_tell_instances_apart_that_nothing_else_tells_apart() -> None:
    found = owned(plan_of(x=None, y=None), 112, 113)
    first, second = (server(f"postgresql@{unit}") | {"owner_uid": uid} for unit, uid in (("p", 113), ("q", 112)))
    assert matched(found, first, second) == {"x": "postgresql@q", "y": "postgresql@p"}
    assert matched(found, second | {"key": "postgresql@p"}) == {"x": "postgresql@p", "y": None}
    third = server("postgresql@p") | {"owner_uid": 114}
    assert not any(one.possible for one in match_servers(found, observed(third)).values())
    # Of one of them it is not known: that one may be anybody's.
    assert match_servers(owned(found, 112, None), observed(third, second))["x"].possible == (second,)


@pytest.mark.parametrize(("unit", "is_it"), [("container:b0b0", True), ("systemd:a.service", False)])
def test_a_pod_that_was_made_anew_has_a_range_of_users_of_its_own(unit: str, is_it: bool) -> None:
    """With hostUsers: false a kubelet gives each pod 65,536 user ids; the same one in it is another on the node."""
    planned, now = f"postgresql@{unit.replace('b0b0', 'a0a0')}:5432", server(f"postgresql@{unit}:5432")
    uid, other = 7 * 65536 + 999, 3 * 65536 + 999
    for owner, expected in ((uid, True), (other, is_it), (other + 1, False), (999, False)):
        seen = observed(now | {"owner_uid": owner})
        seen.sample["units"] = [{"key": unit, "cgroup_path": f"/kubepods.slice/{unit}"}]
        one = match_servers(owned(plan_of(a=planned), uid), seen)["a"]
        assert (one.server is not None) is expected


def said(found: Plan, *servers: dict[str, Any], **pool: int) -> tuple[Any, ...]:
    seen = observed(*servers)
    seen.sample["global_pools"][0].update(pool)
    verdict = verify(found, seen)
    states = [(one.code, one.subject, one.state, one.title) for one in verdict.findings]
    return verdict.outcome, verdict.cause, states


def test_the_cgroup_tells_a_users_container_from_one_of_a_runtime() -> None:
    folders = {"/lxc.payload.a": HERS, "/user.slice/user-1000.slice/user@1000.service/lxc.payload.a": None}
    for path, key in folders.items():
        seen = observed(server(HERS), server("postgresql@x:1"))
        seen.sample["units"] = [{"key": "container:lxc/a", "cgroup_path": path}]
        one = match_servers(plan_of(a=None), seen)["a"].server
        assert (one and one["key"]) == (key or "postgresql@x:1")


A_POD, B_POD = "postgresql@pod:11111111-1111-1111-1111-111111111111:5432", "postgresql@container:b0b0:5432"
SET = "prod/pg"


def in_pods(found: Plan, *servers: tuple[dict[str, Any], str | None]) -> tuple[Outcome, str | None]:
    """The verdict, and the key of the first instance's server: each server with namespace and name of its pod."""
    seen = observed(*(one for one, _ in servers))
    pods = [(one["key"].split("@")[1].removesuffix(":5432"), *(pod or "").partition("/")[::2]) for one, pod in servers]
    seen.sample["units"] = [
        {
            "key": unit,
            "name": f"pod{space * (not name)} {unit}",
            "cgroup_path": f"/kubepods.slice/{unit}",
            "pod": {"namespace": name and space, "name": name or None},
        }
        for unit, space, name in pods
    ]
    one = match_servers(found, seen)[found.instances[0].name].server
    return verify(found, seen).outcome, one and one["key"]


@pytest.mark.parametrize(
    ("name", "pod", "own"),
    [
        ("prod/pg-0", None, "prod/pg-0"),
        ("prod.pg-0", None, "prod/pg-0"),
        ("prod.pg-0.postgres", None, "prod/pg-0"),
        ("pg-0", SET, "prod/pg-0"),
        ("orders", SET, "prod/pg-3"),
        ("orders", "prod/pg-0", "prod/pg-0"),
        ("orders", "prod/pg-7d4b9c6f5-x2k7b", "prod/pg-7d4b9c6f5-zzzzz"),
        ("orders", "prod/pg-", "prod/pg-instance1-abcd-0"),
    ],
)
@pytest.mark.parametrize("theirs", ["evil/pg-0", "evil/x-0", "prod/x-0", "evil/prod-pg-0"])
@pytest.mark.parametrize("planned", [None, "postgresql@pod:99999999-1111-1111-1111-111111111111:5432"])
def test_a_pod_of_another_namespace_or_owner_decides_nothing(
    name: str, pod: str | None, own: str, theirs: str, planned: str | None
) -> None:
    """Found with a tenant's pod of the planned size: in force while the planned one was on base pages, or not there."""
    found = plan_of(a=planned)
    found = replace(found, instances=(replace(found.instances[0], name=name, pod=pod),))
    for huge, pages in ((True, PAGES), (False, PAGES), (True, 4)):
        hers = server(B_POD, huge=huge, pages=pages), theirs
        assert in_pods(found, hers) == (Outcome.UNDECIDED, None)
        assert in_pods(found, (server(A_POD), own), hers) == (Outcome.IN_FORCE, A_POD)
        for small in (PAGES, 4):
            assert in_pods(found, (server(A_POD, huge=False, pages=small), own), hers) == (Outcome.NOT_IN_FORCE, A_POD)
    # Where nobody says the names of pods, a pod that was made anew is found by port and size, as it always was.
    assert in_pods(found, (server(B_POD), None)) == (Outcome.IN_FORCE, B_POD)
    # A service of the node is no pod.
    assert pod is None or in_pods(found, (server(REAL), None))[0] is Outcome.UNDECIDED


@pytest.mark.parametrize(("name", "pod"), [("orders", None), ("orders", SET), ("prod.pg-0", None), ("pg", None)])
@pytest.mark.parametrize("planned", [None, "postgresql@pod:99999999-1111-1111-1111-111111111111:5432"])
def test_a_pod_that_nobody_named_decides_nothing_where_the_report_names_pods(
    name: str, pod: str | None, planned: str | None
) -> None:
    """Found with a pod that was made within the minute before the report: in force by a stranger's."""
    found = plan_of(a=planned)
    found = replace(found, instances=(replace(found.instances[0], name=name, pod=pod),))
    other, new = (server("redis@pod:2:6379") | {"engine": "redis"}, "shop/web-0"), server(B_POD)
    assert in_pods(found, (new, None), other) == (Outcome.UNDECIDED, None)
    assert in_pods(found, (new, None))[1] == B_POD, "nobody says the names"
    assert in_pods(found, (new, "?")) == (Outcome.UNDECIDED, None), "the API server did not tell them"
    if pod is None and "." not in name:  # it named no pod: whose is any of them?
        assert in_pods(found, (new, "team-b/pg-0")) == (Outcome.UNDECIDED, None)
    by_key = replace(found, instances=(replace(found.instances[0], runs_as=B_POD),))
    assert in_pods(by_key, (new, None), other)[1] == in_pods(by_key, (new, "team-b/x-0"))[1] == B_POD


def test_the_plan_says_in_which_pod_an_instance_is() -> None:
    unit = ObservedUnit(key="pod:1", kind="pod", name="prod/pg-0")
    inner = ObservedUnit(key="container:2", kind="container", name="prod/pg-0/postgres", parent="pod:1")
    units = (unit, inner, replace(unit, key="pod:3", name="pod 3"), replace(inner, name="a/b", key="c:4", parent=None))
    sample = NodeSample(units=units)
    owners = ServerOwners.of(sample)
    assert owners.pods == {"pod:1": "prod/pg-0", "container:2": "prod/pg-0", "pod:3": ""}
    request = request_of("postgresql", nodes=1)
    for what, pod in (({"stateful_set": SET}, SET), ({"operator_object": OperatorObject(
        group="g", kind="Cluster", namespace="prod", name="pg")}, "prod/pg-")):  # fmt: skip
        asked = replace(request, databases=(replace(request.databases[0], **what),))
        assert plan(asked).instances[0].pod == pod
    assert owners.pod_of("postgresql@container:2:5432", None) == "prod/pg-0"


def test_the_plan_says_whose_server_an_instance_is() -> None:
    request = request_of("postgresql", nodes=1)
    assert plan(request).instances[0].owner_uid is None
    for uid in (None, 0, 112):
        sample = NodeSample(databases=(ObservedDatabase(key=REAL, engine="postgresql", owner_uid=uid),))
        for key, expected in ((REAL, uid), (None, None)):
            databases = (replace(request.databases[0], runs_as=key),)
            asked = replace(request, databases=databases, sample=sample)
            assert plan(asked).instances[0].owner_uid == expected


def test_a_guest_of_the_planned_size_is_not_taken_where_no_container_was_planned() -> None:
    seen = observed(server("postgresql@container:lxc/101:6000"), server(REAL, huge=False, pages=4))
    seen.sample["units"] = [{"key": "container:lxc/101", "cgroup_path": "/lxc.payload.101"}]
    assert verify(plan_of(a=None), seen).outcome is Outcome.NOT_IN_FORCE
    seen.sample["databases"] = [server("postgresql@container:lxc/101:6000", huge=False), server(REAL)]
    assert verify(plan_of(a=None), seen).outcome is Outcome.IN_FORCE


def test_pods_of_one_owner_are_told_apart_by_their_own_names() -> None:
    found = plan_of(a=None, b=None)
    pods = {"a": "prod/pg-0", "b": "prod/pg-1"}
    found = replace(found, instances=tuple(replace(one, pod=pods[one.name]) for one in found.instances))
    both = ((server(B_POD), "prod/pg-1"), (server(A_POD), "prod/pg-0"))
    assert in_pods(found, *both) == (Outcome.IN_FORCE, A_POD)
