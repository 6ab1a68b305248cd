"""Each operator's pods are recognised with the settings of its custom resource."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from support.kubernetes_objects import container, listing, node, pod
from support.operator_samples import SAMPLES, Sample

from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.model import FoundDatabase
from hugeplan.planner.model import Confidence
from hugeplan.recognition import OPERATORS
from hugeplan.recognition.base import ContainerView, Objects, PodView
from hugeplan.recognition.config_files import my_cnf

IDS = [f"{sample.operator}-{sample.resource['kind']}" for sample in SAMPLES]


def found_in(*items: dict[str, object]) -> tuple[FoundDatabase, ...]:
    """The databases of one node with these objects."""
    data = listing(node("worker-1"), *items).encode()
    (only,) = read_kubernetes(data).nodes
    return only.databases


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_pod_with_its_resource(sample: Sample) -> None:
    (found,) = found_in(sample.pod, sample.resource)
    recognised = found.recognised
    assert (recognised.operator, recognised.engine, recognised.version) == (
        sample.operator,
        sample.engine,
        sample.version,
    )
    assert dict(recognised.settings) == sample.settings
    assert set(recognised.sources) == set(sample.settings)
    assert recognised.confidence is Confidence.HIGH
    assert recognised.cluster


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_the_resource_may_come_after_or_before_its_pods(sample: Sample) -> None:
    assert found_in(sample.resource, sample.pod) == found_in(sample.pod, sample.resource)


def test_labels_that_many_pods_carry_need_the_resource() -> None:
    sample = next(one for one in SAMPLES if one.operator == "Oracle Database Operator")
    (found,) = found_in(sample.pod)
    assert (found.recognised.operator, found.recognised.engine) == (None, "oracle")


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.engine != "oracle"], ids=lambda one: one.operator)
def test_without_its_resource_the_settings_are_said_to_be_unknown(sample: Sample) -> None:
    (found,) = found_in(sample.pod)
    assert found.recognised.operator == sample.operator
    assert not found.recognised.complete
    assert any("is not in the input" in text for text in found.recognised.unknown)


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_resource_of_another_namespace_is_another_cluster(sample: Sample) -> None:
    elsewhere = json.loads(json.dumps(sample.resource))
    elsewhere["metadata"]["namespace"] = "other"
    (found,) = found_in(sample.pod, elsewhere)
    assert found.recognised.operator is None or not found.recognised.complete


def test_every_operator_has_a_sample() -> None:
    without_settings = {"StackGres", "Elastic Cloud on Kubernetes"}  # their settings lie elsewhere
    assert {operator.name for operator in OPERATORS} - without_settings == {sample.operator for sample in SAMPLES}


def test_spilo_sizes_shared_buffers_from_the_memory_limit() -> None:
    sample = next(one for one in SAMPLES if one.operator.startswith("Zalando"))
    resource = json.loads(json.dumps(sample.resource))
    del resource["spec"]["postgresql"]["parameters"]
    (found,) = found_in(sample.pod, resource)
    # 500 MiB / 5, and a connection per 30 MiB but at least 100: configure_spilo.py.
    assert found.instance.settings["shared_buffers"] == "100MB"
    assert found.instance.settings["max_connections"] == "100"


def test_helpers_of_a_cluster_are_no_servers() -> None:
    pooler = pod(
        "orders-pooler-1",
        "worker-1",
        container("pgbouncer", "ghcr.io/cloudnative-pg/pgbouncer:1.23.0"),
        labels={"cnpg.io/poolerName": "orders-pooler", "cnpg.io/cluster": "orders"},
    )
    sentinel = pod(
        "rfs-cache-1",
        "worker-1",
        container("sentinel", "redis:7.2.4-alpine", command=["redis-server", "/redis/sentinel.conf", "--sentinel"]),
        labels={
            "redisfailovers.databases.spotahome.com/name": "cache",
            "app.kubernetes.io/component": "sentinel",
        },
    )
    router = pod(
        "books-router-1",
        "worker-1",
        container("router", "container-registry.oracle.com/mysql/community-router:9.1.0"),
        labels={"component": "mysqlrouter", "mysql.oracle.com/cluster": "books"},
    )
    exporter = pod("exporter", "worker-1", container("exporter", "quay.io/prometheuscommunity/postgres-exporter:v0.15"))
    assert found_in(pooler, sentinel, router, exporter) == ()


def test_an_object_is_read_once_for_all_of_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    recognise = import_module("hugeplan.recognition.recognise")  # the package's name is the function's
    read: list[str] = []

    def counted(text: str) -> tuple[dict[str, str], bool]:
        read.append(text)
        return my_cnf(text)

    monkeypatch.setattr(recognise, "my_cnf", counted)
    for lines, said in ((10, 11), (recognise.MOST_SETTINGS, 0)):
        text = "[mariadb]\ninnodb_buffer_pool_size=1G\n" + "".join(f"a{n}=1\n" for n in range(lines))
        objects = Objects()
        objects.add("k8s.mariadb.com", "MariaDB", "t", "m", {"kind": "MariaDB", "spec": {"myCnf": text}})
        labels = {"k8s.mariadb.com/mariadb": "m", "app.kubernetes.io/name": "mariadb"}
        for number in range(3):
            held = (ContainerView(name="mariadb", image="mariadb:11"),)
            view = PodView(namespace="t", name=f"m-{number}", labels=labels, containers=held)
            (found,) = recognise.recognise(view, objects)
            assert len(found.settings) == said
            assert found.complete == (said > 0)
            assert ("none of them is read" in " ".join(found.unknown)) == (said == 0)
    assert len(read) == 2
