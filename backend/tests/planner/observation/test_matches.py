"""Which running server a database of a scenario is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedUnit,
    OperatorObject,
)
from hugeplan.planner.observation import databases
from hugeplan.planner.observation.databases import match_databases


def described(name: str, shared_buffers: str) -> DatabaseInstance:
    return DatabaseInstance(name=name, engine="postgresql", settings={"shared_buffers": shared_buffers})


def running(key: str, shared_buffers: str) -> ObservedDatabase:
    return ObservedDatabase(key=key, engine="postgresql", version="17", settings={"shared_buffers": shared_buffers})


def context() -> DemandContext:
    return DemandContext.of_node(NodeFacts(name="n", arch="x86_64", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),)))


def test_the_only_one_of_its_size_is_matched() -> None:
    sizes = ["1GB", "2GB", "2GB", "3GB"]
    found = match_databases(
        [described(f"d{at}", size) for at, size in enumerate(sizes)],
        NodeSample(databases=tuple(running(f"u{at}", size) for at, size in enumerate(["3GB", "2GB", "1GB", "4GB"]))),
        context(),
    )
    assert [(match.instance, match.database.key) for match in found.matched] == [("d0", "u2"), ("d3", "u0")]


def test_each_size_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one against all others, 60 databases beside a newer sample took longer than a request may."""
    asked = []
    known = databases.pool_bytes_of

    def counted(instance: DatabaseInstance, at: DemandContext) -> int | None:
        asked.append(instance.name)
        return known(instance, at)

    monkeypatch.setattr(databases, "pool_bytes_of", counted)
    match_databases(
        [described(f"d{at}", f"{at + 1}GB") for at in range(60)],
        NodeSample(databases=tuple(running(f"u{at}", f"{at * MIB}kB") for at in range(60))),
        context(),
    )
    assert len(asked) == 120


REAL = "postgresql@systemd:postgresql.service:5432"


def found_of(
    instances: list[DatabaseInstance], databases: list[ObservedDatabase], *units: ObservedUnit
) -> tuple[dict[str, str], str]:
    found = match_databases(instances, NodeSample(databases=tuple(databases), units=units), context())
    return {match.instance: match.database.key for match in found.matched}, " ".join(found.notes)


@pytest.mark.parametrize("key", [
    "postgresql@systemd:session-3.scope:6666", "postgresql@systemd:user@1000.service/a.service:5432",
    "postgresql@cgroup:/3:5432", "postgresql@container:lxc/101:5432", "postgresql@container:abc:5432",
])  # fmt: skip
def test_a_users_server_is_matched_where_it_is_named_alone(key: str) -> None:
    """Found with a process called ``postgres -c shared_buffers=4GB``: it was planned for, and verified for good."""
    unit = ObservedUnit(key="container:abc", kind="container", name="a", cgroup_path="/user.slice/user-1000.slice/a")
    hers, real = running(key, "4GB"), running(REAL, "2GB")
    wanted = described("orders", "4GB")
    assert found_of([wanted], [hers], unit)[0] == {}
    assert f"say so with runs_as ({key}" in found_of([wanted], [hers], unit)[1]
    # What a user starts takes no plan's server away.
    for size in ("2GB", "4GB"):
        assert found_of([wanted], [real, running(key, size)], unit)[0] == {"orders": REAL}
    two = [described("orders", "2GB"), described("shop", "4GB")]
    assert found_of(two, [hers, real], unit)[0] == {"orders": REAL}
    assert found_of([replace(wanted, runs_as=key)], [hers, real], unit)[0] == {"orders": key}
    assert found_of([replace(wanted, name=key)], [hers, real], unit)[0] == {key: key}


@pytest.mark.parametrize(("unit", "is_his"), [
    ("amazon-ssm-agent.service", True), ("snap.amazon-ssm-agent.amazon-ssm-agent.service", True),
    ("tailscaled.service", True), ("a.service", True), ("mysql.service", True), ("postgres.scope", True),
    ("user@1001.service/postgresql.service", True), ("postgresql.service", False), ("edb-as-17.service", False),
    ("postgresql@17-main.service", False), ("rh-postgresql13-postgresql.service", False),
])  # fmt: skip
def test_a_server_of_a_login_user_is_his_whatever_runs_it(unit: str, is_his: bool) -> None:
    """Found in Session Manager's service, which a list of services that start users' programs did not have.

    A service that root called after its engine is root's word: a hand-made user may be any, as Oracle's 54321.
    """
    own = running(f"postgresql@systemd:{unit}:5432", "4GB")
    by_tree = replace(own, key="postgresql@node:5432", unit=f"systemd:{unit}")
    wanted = described("orders", "4GB")
    for one in (own, by_tree):
        for uid in (1001, 2**32 - 2):
            assert bool(found_of([wanted], [replace(one, owner_uid=uid)])[0]) is not is_his
        assert bool(found_of([replace(wanted, runs_as=one.key)], [replace(one, owner_uid=1001)])[0])
    is_users_own = unit.startswith("user@")
    for uid in (None, 0, 112, 999):
        assert bool(found_of([wanted], [replace(own, owner_uid=uid)])[0]) is not is_users_own
    # In a container a user id is its image's choice.
    inside = running("postgresql@container:abc:5432", "4GB")
    where = ObservedUnit(key="container:abc", kind="container", name="a", cgroup_path="/system.slice/docker-abc.scope")
    assert found_of([wanted], [replace(inside, owner_uid=1001)], where)[0] == {"orders": inside.key}


def pod(uid: str, name: str) -> ObservedUnit:
    return ObservedUnit(key=f"pod:{uid}", kind="pod", name=name, cgroup_path=f"/kubepods/pod{uid}")


def test_a_stateful_set_is_matched_with_pods_of_its_own() -> None:
    """Found with a pod of another namespace's user, the only one that ran: verify never took the real one then."""
    owner = OperatorObject(group="g", kind="Cluster", namespace="prod", name="pg")
    evil, real = running("postgresql@pod:1:5432", "4GB"), running("postgresql@pod:2:5432", "2GB")
    units = (pod("1", "evil/pg-0"), pod("2", "prod/pg-0"))
    for wanted in (replace(described("a", "4GB"), stateful_set="prod/pg"), described("prod.pg-0", "4GB"),
                   replace(described("a", "4GB"), operator_object=owner)):  # fmt: skip
        assert found_of([wanted], [evil], *units)[0] == {}
        assert found_of([wanted], [evil, real], *units)[0] == {wanted.name: real.key}
        # Where the report does not name the pods, the only one is taken, as before.
        assert found_of([wanted], [evil], pod("1", "pod 1"))[0] == {wanted.name: evil.key}
        assert found_of([replace(wanted, runs_as=evil.key)], [evil, real], *units)[0] == {wanted.name: evil.key}
    two = [replace(described(name, "4GB"), stateful_set=f"prod/{name}") for name in ("pg", "shop")]
    both = [running("postgresql@pod:3:5432", "4GB"), running(real.key, "4GB")]
    assert found_of(two, both, *units, pod("3", "prod/shop-0"))[0] == {"pg": real.key, "shop": both[0].key}
    # A service of the node is no pod.
    assert found_of([two[0]], [running(REAL, "4GB")])[0] == {}


def test_a_pod_is_taken_for_an_instance_that_names_no_pod_by_runs_as_alone() -> None:
    """Found with another team's pod: half of its memory was not counted, and the plan fitted where it did not."""
    theirs, wanted = running("postgresql@pod:1:5432", "4GB"), described("orders", "4GB")
    for name in ("team-b/pg-0", "team-b/orders-0"):
        matched, notes = found_of([wanted], [theirs], pod("1", name))
        assert matched == {}
        assert f"say so with runs_as ({theirs.key}: PostgreSQL in {name})" in notes
    assert found_of([replace(wanted, runs_as=theirs.key)], [theirs], pod("1", "team-b/pg-0"))[0]
    assert found_of([wanted], [theirs], pod("1", "pod 1"))[0], "no names of pods, as without the Kubernetes API"


def test_a_pod_without_a_name_yet_is_nobodys_where_names_are_asked_for() -> None:
    """Found with a pod that was made after the last list of pods, and with an API server that told no name."""
    new = running("postgresql@pod:1:5432", "4GB")
    for units in ((pod("1", "pod 1"), pod("2", "shop/web-0")), (pod("1", "pod? 1"),)):
        for wanted in (described("orders", "4GB"), replace(described("a", "4GB"), stateful_set="prod/pg")):
            assert found_of([wanted], [new], *units)[0] == {}
            assert found_of([replace(wanted, runs_as=new.key)], [new], *units)[0] == {wanted.name: new.key}


def test_a_guest_is_matched_by_a_name_that_is_in_its_own() -> None:
    guest = running("postgresql@container:lxc/orders:5432", "4GB")
    unit = ObservedUnit(key="container:lxc/orders", kind="container", name="orders", cgroup_path="/lxc.payload.orders")
    assert found_of([described("orders", "4GB")], [guest], unit)[0] == {"orders": guest.key}
    assert found_of([described("shop", "4GB")], [guest], unit)[0] == {}
