"""A patch is written for the object that makes the pods, and for no other: one per object, none by a guess."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest
import yaml
from support.kubernetes_objects import container, listing, node, pod
from support.operator_samples import SAMPLES, Sample

from hugeplan.artifacts import Artifact, render, withheld
from hugeplan.artifacts.bundle import bundle
from hugeplan.artifacts.owners import limits_field, settings_field
from hugeplan.inventory.answer import NodeAnswer, answer
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.scenario import scenario_document
from hugeplan.planner.demand import ENGINES
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    OperatorObject,
    PlanRequest,
    Reservations,
    Tenant,
)
from hugeplan.planner.plan import plan
from hugeplan.recognition.operators import RESOURCES
from hugeplan.scenario_file import load, to_request

Json = dict[str, Any]
PATCHES = {row.patch.kind for row, _ in RESOURCES.values() if row.patch is not None}
IDS = [f"{sample.operator}-{sample.resource['kind']}" for sample in SAMPLES]


def answered(*items: Json) -> NodeAnswer:
    (only,) = answer(read_kubernetes(listing(node("worker-1", memory_kib=128 * GIB // 1024), *items).encode())).nodes
    return only


def files(found: NodeAnswer) -> tuple[Artifact, ...]:
    assert found.plan is not None
    return render(found.plan, found.request, force=True)


def of_kinds(artifacts: tuple[Artifact, ...], *kinds: str) -> list[Artifact]:
    return [a for a in artifacts if any(a.kind == kind or a.kind.startswith(f"{kind}-") for kind in kinds)]


def group_of(resource: Json) -> str:
    return str(resource["apiVersion"]).partition("/")[0]


def cnpg(name: str, cluster: str = "cn", **fields: Any) -> Json:
    limits = {"memory": "16Gi"}
    server = container("postgres", "ghcr.io/cloudnative-pg/postgresql:16.4", limits=limits)
    return pod(name, "worker-1", server, namespace="db", labels={"cnpg.io/cluster": cluster}, **fields)


@pytest.mark.parametrize("with_resource", [True, False])
@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_one_patch_for_the_object_that_exists(sample: Sample, with_resource: bool) -> None:
    found = answered(sample.pod, *([sample.resource] if with_resource else []))
    if found.plan is None:  # Oracle's sizes stand in its resource alone
        assert not with_resource
        return
    artifacts = files(found)
    row, _ = RESOURCES[group_of(sample.resource), sample.resource["kind"]]
    patches = of_kinds(artifacts, *PATCHES)
    sets = of_kinds(artifacts, "statefulset_patch", "statefulset_snippet")
    if not any(one.page_bytes for one in found.plan.instances):  # type: ignore[union-attr]
        assert patches == sets == []
        return
    (database,) = found.request.databases
    if database.operator_object is None:
        assert not with_resource
        assert patches == []
        return
    assert (database.operator_object.group, database.operator_object.kind) == (row.group, row.kind)
    assert sets == []
    if row.patch is None:
        assert patches == []
        (snippet,) = of_kinds(artifacts, "pod")
        assert f"{row.kind} db/{sample.resource['metadata']['name']}" in snippet.install
        return
    (patch,) = patches
    document = yaml.safe_load(patch.content)
    assert (document["apiVersion"], document["kind"]) == (sample.resource["apiVersion"], sample.resource["kind"])
    assert document["metadata"] == {"name": sample.resource["metadata"]["name"], "namespace": "db"}
    assert patch.recommended
    assert f"{row.patch.plural}.{row.group} {sample.resource['metadata']['name']} --namespace db" in patch.install
    if row.sets:
        assert [one["name"] for one in document["spec"]["instances"]] == ["one"]
        assert '[?(@.name=="one")]' in patch.verify
    # Nothing else names an object of the cluster that does not exist.
    assert not any("statefulset" in a.install + a.verify + a.rollback for a in artifacts)


def test_two_pods_of_one_object_on_a_node_are_one_patch_that_both_can_hold() -> None:
    found = answered(cnpg("cn-1"), cnpg("cn-2"), cnpg("other-1", "other"))
    artifacts = files(found)
    patches = of_kinds(artifacts, "cloudnative_pg")
    assert sorted(yaml.safe_load(a.content)["metadata"]["name"] for a in patches) == ["cn", "other"]
    assert len({a.filename for a in patches}) == 2
    pool = sum(p.pages * p.page_bytes for p in found.plan.pools)  # type: ignore[union-attr]
    documents = [yaml.safe_load(a.content) for a in patches]
    asked = {
        one["metadata"]["name"]: int(one["spec"]["resources"]["limits"]["hugepages-2Mi"].removesuffix("Mi"))
        for one in documents
    }
    assert (2 * asked["cn"] + asked["other"]) * 2**20 <= pool


def test_the_owner_alone_tells_the_object() -> None:
    one = cnpg("cn-1")
    one["metadata"]["labels"] = {}
    one["metadata"]["ownerReferences"] = [
        {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "cn", "uid": "u", "controller": True}
    ]
    (patch,) = of_kinds(files(answered(one)), *PATCHES)
    assert yaml.safe_load(patch.content)["metadata"] == {"name": "cn", "namespace": "db"}


def test_an_edb_cluster_is_not_taken_for_one_of_cloudnative_pg() -> None:
    one = cnpg("edb-1")
    one["metadata"]["labels"] = {"k8s.enterprisedb.io/cluster": "edb"}
    (patch,) = of_kinds(files(answered(one)), *PATCHES)
    assert yaml.safe_load(patch.content)["apiVersion"] == "postgresql.k8s.enterprisedb.io/v1"


def test_a_label_that_charts_set_names_no_object_by_itself() -> None:
    """A chart's MariaDB has the labels of mariadb-operator's: its StatefulSet is what exists."""
    labels = {"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": "shop"}
    server = container("mariadb", "mariadb:11.4", args=["--innodb-buffer-pool-size=4G", "--large-pages"])
    artifacts = files(answered(pod("shop-0", "worker-1", server, labels=labels, owner=("StatefulSet", "shop"))))
    assert of_kinds(artifacts, *PATCHES) == []
    (patch,) = of_kinds(artifacts, "statefulset_patch")
    assert "statefulset shop --namespace default" in patch.install


#: Engines with a pool: their settings, and what makes them ask for pages. A default that nobody read may not hold.
ASKING: dict[str, tuple[Json, Json]] = {
    "postgresql": ({"shared_buffers": "4GB", "max_connections": "100"}, {"huge_pages": "try"}),
    "mysql": ({"innodb_buffer_pool_size": "4G"}, {"large_pages": "ON"}),
    "mariadb": ({"innodb_buffer_pool_size": "4G"}, {"large_pages": "ON"}),
    "oracle": ({"sga_max_size": "4G", "sga_target": "4G"}, {"use_large_pages": "TRUE", "memory_target": "0"}),
    "db2": ({"database_memory": "4G"}, {"db2_large_page_mem": "DB"}),
    "jvm": ({"Xmx": "4g"}, {"UseLargePages": "on", "LargePageSizeInBytes": "2m"}),
}
#: What makes the pods, by row of the operators' table: nothing that is known, a StatefulSet, an unknown operator.
MAKERS: list[Json] = [
    {},
    {"stateful_set": "db/x", "container": "x"},
    {"operator_object": OperatorObject(group="example.io", kind="Set", namespace="db", name="x")},
]
WAYS = [
    *((engine, way) for engine in ASKING for way in MAKERS),
    *(
        (operator.engine, {"operator_object": OperatorObject(group=row.group, kind=row.kind, namespace="db", name="x",
                                                             instance_set="one" if row.sets else None)})
        for row, operator in RESOURCES.values()
        if operator.engine in ASKING
    ),
]  # fmt: skip


def amounts_of(value: Any, name: str) -> list[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value[name]] if isinstance(value, dict) and isinstance(value.get(name), str) else []
    return [*own, *(found for one in inner for found in amounts_of(one, name))]


@pytest.mark.parametrize(
    ("engine", "way", "size"),
    [
        *((engine, way, {}) for engine, way in WAYS),
        *((engine, way, {"pool_min_bytes": 2 * GIB, "pool_max_bytes": 4 * GIB}) for engine, way in WAYS),
        *((engine, way, {"page_bytes": GIB}) for engine, way in WAYS if engine in {"postgresql", "jvm"}),
    ],
)
def test_no_file_lowers_memory_before_the_engine_asks_for_pages(engine: str, way: Json, size: Json) -> None:
    """Between two steps its pool is ordinary memory, and the kernel ends what has less. Once it asks, it is lowered.

    Found: a JVM within the lowered limit without -XX:+UseLargePages was killed, and so was a MariaDB of an operator.
    Found: a PostgreSQL's memory was lowered by its default huge_pages = try, which its ConfigMap, not in the input, had
    as off.
    """
    settings, switch = ASKING[engine]
    switch = {name: value for name, value in switch.items() if not (size and "Size" in name)}
    numa = (NumaNode(id=0, mem_total_bytes=64 * GIB),)
    halves = [{name: value} for name, value in switch.items()] if len(switch) > 1 else []
    for given, asks in *((settings | half, False) for half in ({}, *halves)), (settings | switch, True):
        database = DatabaseInstance(name="x", engine=engine, settings=given, pod_memory_limit_bytes=12 * GIB,
                                    pod_memory_request_bytes=12 * GIB, **way, **size)  # fmt: skip
        request = PlanRequest(node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB), databases=(database,),
                              reservations=Reservations(kubernetes=True))  # fmt: skip
        found = plan(request)
        assert found.instances[0].page_bytes
        documents = [
            (file, document)
            for file in of_kinds(render(found, request), *PATCHES, "pod", "statefulset_patch", "statefulset_snippet")
            for document in [yaml.safe_load(file.content)]
        ]
        assert documents
        for file, document in documents:
            sets_it = file.kind in PATCHES and "by hand" not in file.summary
            assert (set(amounts_of(document, "memory")) != {"12Gi"}) is ((asks and not size) or sets_it), file.kind


@pytest.mark.parametrize(("engine", "way"), [(engine, way) for engine, way in WAYS if ENGINES[engine].has_default_size])
def test_no_file_lowers_memory_by_a_size_that_nobody_read(engine: str, way: Json) -> None:
    settings, switch = ASKING[engine]
    given = {name: value for name, value in settings.items() if name not in ENGINES[engine].sized_by} | switch
    numa = (NumaNode(id=0, mem_total_bytes=64 * GIB),)
    database = DatabaseInstance(name="x", engine=engine, settings=given, pod_memory_limit_bytes=12 * GIB,
                                page_bytes=2 * MIB, unread_settings=ENGINES[engine].sized_by[:1], **way)  # fmt: skip
    request = PlanRequest(node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB), databases=(database,),
                          reservations=Reservations(kubernetes=True))  # fmt: skip
    found = render(plan(request), request, force=True)
    own = of_kinds(found, *PATCHES, "pod", "statefulset_patch", "statefulset_snippet")
    assert own
    for file in own:
        assert set(amounts_of(yaml.safe_load(file.content), "memory")) == {"12Gi"}, file.kind
        assert f"memory: stays as it is until the input says {ENGINES[engine].sized_by[0]}; then" in file.content


def configured(*more: Json) -> NodeAnswer:
    """A StatefulSet's PostgreSQL whose postgresql.conf is a ConfigMap's."""
    server = container("db", "postgres:17", args=["-c", "config_file=/etc/pg/postgresql.conf", "-c",
                                                  "shared_buffers=4GB"], limits={"memory": "12Gi"})  # fmt: skip
    server["volumeMounts"] = [{"name": "conf", "mountPath": "/etc/pg"}]
    one = pod("pg-0", "worker-1", server, owner=("StatefulSet", "pg"))
    one["spec"]["volumes"] = [{"name": "conf", "configMap": {"name": "pg-conf"}}]
    return answered(one, *more)


@pytest.mark.parametrize(
    ("conf", "stays"), [(None, True), ("huge_pages = off", True), ("huge_pages = on", False), ("", True)]
)
def test_a_setting_in_a_config_map_that_is_not_in_the_input_lowers_nothing(conf: str | None, *, stays: bool) -> None:
    own = {"kind": "ConfigMap", "metadata": {"name": "pg-conf", "namespace": "default"}}
    maps = [] if conf is None else [own | {"data": {"postgresql.conf": conf}}]
    found = configured(*maps)
    patches = of_kinds(files(found), "statefulset_patch")
    if conf == "huge_pages = off":  # no page is planned, so there is nothing to patch
        assert patches == []
        return
    (patch,) = patches
    assert (set(amounts_of(yaml.safe_load(patch.content), "memory")) == {"12Gi"}) is stays
    assert ("memory: stays as it is until the input says huge_pages = try or on; then "
            in patch.content) is stays  # fmt: skip


def test_what_has_its_pages_already_is_not_said_to_wait() -> None:
    database = DatabaseInstance(name="x", engine="postgresql", settings=ASKING["postgresql"][0], stateful_set="db/x",
                                pod_memory_limit_bytes=4 * GIB, pod_hugepages_limit_bytes=8 * GIB,
                                container="x")  # fmt: skip
    numa = (NumaNode(id=0, mem_total_bytes=64 * GIB),)
    request = PlanRequest(node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB), databases=(database,),
                          reservations=Reservations(kubernetes=True))  # fmt: skip
    (patch,) = of_kinds(render(plan(request), request), "statefulset_patch")
    assert "stays" not in patch.content


def test_no_pod_waits_because_its_request_is_lowered_later_than_its_pool_is_made() -> None:
    """Found: a request of 10Gi stayed on a node that offers 6.66 GiB beside the pool, and no step ever lowered it."""
    withheld_because = []
    for switch, memory in ([], "10Gi"), (["--large-pages"], "10Gi"), ([], "3Gi"):
        args = [f"--innodb-buffer-pool-size={'8G' if memory == '10Gi' else '1G'}", *switch]
        server = container("mariadb", "mariadb:11.4", args=args, limits={"memory": memory})
        objects = listing(node("n", memory_kib=16 * GIB // 1024),
                          pod("db-0", "n", server, owner=("StatefulSet", "db")))  # fmt: skip
        (found,) = answer(read_kubernetes(objects.encode())).nodes
        assert found.plan is not None
        assert found.plan.fits
        withheld_because.append(withheld(found.plan, found.request) or "")
        assert (render(found.plan, found.request) == ()) is bool(withheld_because[-1])
    assert "The memory request of db-0 stays until the input says large_pages = ON, and" in withheld_because[0]
    assert "starts without a pool, a JVM with ZGC only where no page is free)" in withheld_because[0]
    assert withheld_because[1:] == ["", ""]


@pytest.mark.parametrize(("own", "beside", "waits"), [(10, None, True), (5, 3, True), (5, 1, False)])
def test_a_limit_without_a_request_is_the_request(own: int, beside: int | None, *, waits: bool) -> None:
    """Kubernetes makes it the pod's. Found: such a pod counted as asking for nothing, and waited for ever."""
    database = DatabaseInstance(name="x", engine="mariadb", settings={"innodb_buffer_pool_size": "8G"},
                                pod_memory_limit_bytes=own * GIB)  # fmt: skip
    tenants = () if beside is None else (Tenant(name="app", limit_bytes=beside * GIB),)
    numa = (NumaNode(id=0, mem_total_bytes=16 * GIB),)
    request = PlanRequest(node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB), databases=(database,),
                          tenants=tenants, reservations=Reservations(kubernetes=True))  # fmt: skip
    found = plan(request)
    assert found.fits
    assert found.instances[0].page_bytes
    assert ("The memory request of x stays" in (withheld(found, request) or "")) is waits


def test_a_set_that_is_not_known_is_not_made() -> None:
    sample = next(one for one in SAMPLES if one.operator == "Crunchy PGO")
    one = json.loads(json.dumps(sample.pod))
    del one["metadata"]["labels"]["postgres-operator.crunchydata.com/instance-set"]
    artifacts = files(answered(one, sample.resource))
    assert of_kinds(artifacts, *PATCHES, "statefulset_patch", "statefulset_snippet") == []
    (snippet,) = of_kinds(artifacts, "pod")
    assert "spec.instances[].resources of PostgresCluster db/hippo" in snippet.install


class TestUnknownOwner:
    @pytest.fixture
    def request_of_nobody(self) -> PlanRequest:
        database = DatabaseInstance(
            name="orders", engine="postgresql", version="17",
            settings={"shared_buffers": "4GB", "max_connections": "100"},
        )  # fmt: skip
        numa = (NumaNode(id=0, mem_total_bytes=64 * GIB),)
        return PlanRequest(
            node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB), databases=(database,),
            reservations=Reservations(kubernetes=True),
        )  # fmt: skip

    def test_no_operators_file_and_a_form_that_cannot_be_applied(self, request_of_nobody: PlanRequest) -> None:
        artifacts = render(plan(request_of_nobody), request_of_nobody)
        assert of_kinds(artifacts, *PATCHES, "statefulset_patch") == []
        (form,) = of_kinds(artifacts, "statefulset_snippet")
        assert not form.recommended
        (named,) = yaml.safe_load(form.content)["spec"]["template"]["spec"]["containers"]
        assert named["name"] == "CONTAINER_NAME"
        for line in form.install.splitlines():
            assert line.startswith("#   ")
            words = shlex.split(line[1:])
            assert words[words.index("statefulset") + 1 :][:3] == ["STATEFULSET_NAME", "--namespace", "NAMESPACE"]

    def test_a_container_is_not_named_by_a_guess(self, request_of_nobody: PlanRequest) -> None:
        """Found: its name was taken for the database's."""
        (database,) = request_of_nobody.databases
        known = replace(request_of_nobody, databases=(replace(database, stateful_set="shop/pg"),))
        artifacts = render(plan(known), known)
        assert of_kinds(artifacts, "statefulset_patch") == []
        (form,) = of_kinds(artifacts, "statefulset_snippet")
        (named,) = yaml.safe_load(form.content)["spec"]["template"]["spec"]["containers"]
        assert named["name"] == "CONTAINER_NAME"
        assert "\n#   kubectl patch statefulset pg --namespace shop " in form.install
        assert all(line.startswith("#") for text in (form.install, form.verify, form.rollback)
                   for line in text.splitlines())  # fmt: skip

    def test_the_readme_says_so(self, request_of_nobody: PlanRequest) -> None:
        found = plan(request_of_nobody)
        written = bundle("n", found.headline, render(found, request_of_nobody))
        (readme,) = [file.text for file in written if file.path == "README.md"]
        assert "What makes the pods of orders is not known" in readme.partition("## Recommended")[0]
        assert "alternatives/statefulset_snippet/" in readme.partition("## Recommended")[0]

    def test_a_name_that_kubernetes_does_not_have_keeps_the_files_back(self, request_of_nobody: PlanRequest) -> None:
        bad = OperatorObject(group="postgresql.cnpg.io", kind="Cluster", namespace="db", name="$(reboot)")
        (database,) = request_of_nobody.databases
        request = replace(request_of_nobody, databases=(replace(database, operator_object=bad),))
        assert render(plan(request), request) == ()


def test_a_scenario_keeps_the_object() -> None:
    found = answered(cnpg("cn-1"))
    request = to_request(load(json.dumps(scenario_document(found.node))))
    assert request.databases[0].operator_object == found.request.databases[0].operator_object is not None


def test_a_pod_without_a_memory_limit_gets_none() -> None:
    one = cnpg("cn-1")
    one["spec"]["containers"][0]["resources"] = {}
    (patch,) = of_kinds(files(answered(one)), *PATCHES)
    resources = yaml.safe_load(patch.content)["spec"]["resources"]
    assert "memory" not in resources["limits"]
    assert "memory" in resources["requests"]  # huge pages alone are refused


def owned(kind: str, group: str, **labels: str) -> Json:
    server = container("mysql", "docker.io/library/mysql:8.4", limits={"memory": "8Gi"})
    server["args"] = ["mysqld", "--innodb-buffer-pool-size=4G"]
    found = pod("my-mysql-0", "worker-1", server, namespace="db", labels=labels)
    reference = {"apiVersion": f"{group}/v1", "kind": kind, "name": "my-mysql", "uid": "1", "controller": True}
    found["metadata"]["ownerReferences"] = [reference]
    return found


KUBEBLOCKS = {"app.kubernetes.io/managed-by": "kubeblocks", "app.kubernetes.io/instance": "my"}


@pytest.mark.parametrize(
    ("server", "words"),
    [
        # An operator without a row, and one that is known by its label alone, on either kind that makes its pods.
        (owned("InstanceSet", "workloads.example.io"), "InstanceSet db/my-mysql"),
        (owned("InstanceSet", "workloads.kubeblocks.io", **KUBEBLOCKS), "Cluster db/my"),
        (owned("StatefulSet", "apps", **KUBEBLOCKS), "Cluster db/my"),
        # Kubernetes' own StatefulSet has the same kind and is another one.
        (owned("StatefulSet", "apps.kruise.io"), "StatefulSet db/my-mysql"),
    ],
)
def test_pods_of_an_unknown_operator_get_an_instruction_and_no_command(server: Json, words: str) -> None:
    """Found: `kubectl rollout restart statefulset/POD` for a StatefulSet that does not exist, and a form for one."""
    found = files(answered(server))
    assert not of_kinds(found, "statefulset_patch", "statefulset_snippet", *PATCHES)
    for kind, field in (("pod", f"the resources of the database container of {words}"), ("my_cnf", words)):
        (file,) = of_kinds(found, kind)
        assert field in file.install
        assert all(line.startswith("#") for line in file.install.splitlines()), file.install


def test_the_statefulset_that_kubernetes_makes_is_patched() -> None:
    (patch,) = of_kinds(files(answered(owned("StatefulSet", "apps"))), "statefulset_patch")
    assert "kubectl patch statefulset my-mysql --namespace db" in patch.install


@pytest.mark.parametrize(
    ("kind", "limits", "settings"),
    [
        ("InnoDBCluster", "spec.podSpec.containers, resources of the one named mysql,", "spec.mycnf"),
        ("PerconaXtraDBCluster", "spec.pxc.resources", "spec.pxc.configuration"),
        ("PerconaServerMySQL", "spec.mysql.resources", "spec.mysql.configuration"),
        ("MysqlCluster", "spec.podSpec.resources", "spec.mysqlConf"),
        ("SGCluster", "spec.hugePages of the SGInstanceProfile", "of the SGPostgresConfig"),
    ],
)
def test_an_object_without_a_patch_says_its_fields(kind: str, limits: str, settings: str) -> None:
    group = next(group for group, name in RESOURCES if name == kind)
    target = OperatorObject(group=group, kind=kind, namespace="db", name="x")
    assert limits in limits_field(target)
    assert settings in settings_field(target)
    assert limits_field(target).endswith(f"of {kind} db/x")


def leaves(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [leaf for one in inner for leaf in leaves(one)]


@pytest.mark.parametrize("with_resource", [True, False])
@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_no_patch_replaces_a_text_with_other_lines(sample: Sample, with_resource: bool) -> None:
    """Followed literally, a patch that held a whole option file dropped the user's other lines."""
    found = answered(sample.pod, *([sample.resource] if with_resource else []))
    row, _ = RESOURCES[group_of(sample.resource), sample.resource["kind"]]
    for file in [] if found.plan is None else of_kinds(files(found), *PATCHES):
        document = yaml.safe_load(file.content)
        assert not [leaf for leaf in leaves(document) if "\n" in str(leaf)]
        if row.option_file:
            said = file.install.partition("# Then edit ")[2]
            assert f"spec.{'.'.join(row.option_file)}" in said
            assert "# large_pages = ON" in said.splitlines()
            assert "# large_pages = ON" in file.content.splitlines()
            assert row.option_file[0] not in document["spec"]
