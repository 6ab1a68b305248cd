"""What is made of an outside name and stands in a place of many names is one node's, or one database's, alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hugeplan.artifacts import Artifact
from hugeplan.artifacts.base import object_name, slug
from hugeplan.planner.model import PlanRequest
from tests.artifacts.samples import instance, rendered, request_of

PROVIDERS = (None, "aks", "eks", "gke")
#: Names of other hosts than prod-db, and of one another.
NODES = ("prod-db", "prod_db", "prod.db", "prod-db.example.com", "prod-db-example-com", "prod--db", f"{'x' * 60}a",
         f"{'x' * 60}b")  # fmt: skip
HOSTS = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,70}[A-Za-z0-9])?", fullmatch=True)


def on_cluster(provider: str | None, node: str) -> dict[str, Artifact]:
    asked = request_of("postgresql", kubernetes=True)
    reservations = replace(asked.reservations, provider=provider)
    return rendered(
        replace(asked, node=replace(asked.node, name=node, thp_enabled="always"), reservations=reservations)
    )[1]


def shared_names(files: dict[str, Artifact]) -> set[str]:
    """The names by which a node's files are known where other nodes' are, too: of objects, and in the ways back."""
    found = set()
    for kind, file in files.items():
        if kind in {"aks_daemonset", "machine_config", "openshift_tuned", "performance_profile", "node_feature_rule",
                    "karpenter_node_overlay"}:  # fmt: skip
            document = yaml.safe_load(file.content)
            found.add(f"{kind} {document['metadata']['name']}")
            labels = document["spec"].get("selector", {}).get("matchLabels") or document["metadata"].get("labels")
            found |= {f"{kind} labels {sorted(labels.items())}"} if labels else set()
        if kind in {"prometheus_rules", "gke_system_config", "aks_node_config", "terraform_gke"}:
            found |= {f"{kind} {name}" for name in re.findall(r"(?:delete|--name) ([^-\s]\S*)", file.rollback)}
        if kind == "prometheus_rules":
            found |= {f"path {file.path}", f"group {yaml.safe_load(file.content)['groups'][0]['name']}"}
        if kind == "terraform_gke":
            found.update(re.findall(r"resource \S+ \S+", file.content))
    return found


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_two_nodes_share_an_object(provider: str | None) -> None:
    """Found: prod_db's MachineConfig replaced prod-db's, and the DaemonSet of the second AKS node the first's."""
    of_nodes = [shared_names(on_cluster(provider, node)) for node in NODES]
    assert all(len(names) == len(of_nodes[0]) >= 2 for names in of_nodes)
    for at, names in enumerate(of_nodes):
        for other in of_nodes[:at]:
            assert not names & other


def test_a_way_back_takes_its_own_object_away() -> None:
    for provider in PROVIDERS:
        for kind, file in on_cluster(provider, "prod_db").items():
            if kind in {"aks_daemonset", "machine_config", "openshift_tuned", "node_feature_rule",
                        "karpenter_node_overlay"}:  # fmt: skip
                name = yaml.safe_load(file.content)["metadata"]["name"]
                assert re.search(rf" {re.escape(name)}$", file.rollback.splitlines()[0]), kind


def test_a_rule_labels_its_own_node_alone() -> None:
    """Found: the rule of a node with few pages gave its count to every node with more."""
    (rule,) = yaml.safe_load(on_cluster(None, "db-1")["node_feature_rule"].content)["spec"]["rules"]
    names = [match["matchExpressions"] for match in rule["matchFeatures"] if match["feature"] == "system.name"]
    assert names == [{"nodename": {"op": "In", "value": ["db-1"]}}]


@settings(max_examples=300, deadline=None)
@given(HOSTS, HOSTS)
def test_other_hosts_have_other_names(one: str, other: str) -> None:
    assume(one.lower() != other.lower())
    for longest in (40, 59):
        names = object_name(one, longest=longest), object_name(other, longest=longest)
        assert names[0] != names[1]
        assert all(re.fullmatch(rf"[a-z0-9]([a-z0-9-]{{0,{longest - 2}}}[a-z0-9])?", name) for name in names)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=70), st.data())
def test_no_two_texts_share_a_name(one: str, data: st.DataObject) -> None:
    for kept in ("", "_"):
        name = slug(one, kept=kept)
        other = data.draw(st.sampled_from([name, one.lower(), one.replace("_", "-"), one.replace(".", "-"), one + "-"]))
        assert (slug(other, kept=kept) == name) is (other == one)


def test_an_ordinary_name_stays() -> None:
    assert object_name("Worker-1") == object_name("worker-1") == "hugeplan-worker-1"
    assert re.fullmatch(r"hugeplan-ip-10-0-1-2-ec2-internal-[0-9a-f]{16}", object_name("ip-10-0-1-2.ec2.internal"))
    assert slug("orders_db") == "orders_db"


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb", "redis", "jvm", "oracle", "db2"])
def test_no_two_databases_of_a_node_share_a_file(engine: str) -> None:
    """Found: the files of pg.a and of pg-a were one in the folder that both servers read."""
    asked: PlanRequest = request_of(engine, kubernetes=False)
    names = ("pg-a", "pg.a", "pg_a", "PG-A", "pg a")
    found = [rendered(replace(asked, databases=(instance(engine, name=name),)))[1].values() for name in names]
    files = [{file.filename for file in each if "pg-a" in file.filename or "pg_a" in file.filename} for each in found]
    assert all(files)
    assert len(set.union(*files)) == sum(len(each) for each in files)
