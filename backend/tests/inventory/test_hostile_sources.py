"""Sources that somebody else wrote: whatever they hold, the answer is an inventory or one sentence, and comes soon."""

from __future__ import annotations

import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.http_server import answering
from support.kubernetes_objects import node, postgres

from hugeplan.documents import yaml_nodes
from hugeplan.inventory.ansible import read_ansible
from hugeplan.inventory.answer import answer
from hugeplan.inventory.answer import request_of as inventory_request
from hugeplan.inventory.csv_table import read_csv
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.kubernetes.yaml_objects import json_of_yaml
from hugeplan.inventory.model import Inventory, InventoryError
from hugeplan.inventory.prometheus import read_prometheus
from hugeplan.inventory.scenario import scenario_document
from hugeplan.inventory.text import inventory_text
from hugeplan.planner.fleet import plan_node
from hugeplan.planner.model import PlanRequest, Policy
from hugeplan.scenario_file.errors import ScenarioFileError
from hugeplan.scenario_file.yaml_lines import parse_text
from hugeplan.scenarios.work import Question, request_of

HEAD = "host,memory,used,engine,version,database,settings\n"
GROWTH = 24.0
"""Of a table eight times as long: a linear reader takes 8 times as long, one that compares all rows 64 times."""
LEAST_SECONDS = 0.05


def told(read: Callable[[], Inventory]) -> str:
    """The answer, or the sentence."""
    try:
        return inventory_text(answer(read()))
    except InventoryError as error:
        return str(error)


TABLES: dict[str, Callable[[int], str]] = {
    "databases of one host": lambda n: HEAD + "a,64Gi,,postgresql,17,,shared_buffers=1MB\n" * (n // 4),
    "names that meet": lambda n: HEAD + "".join(f"a,64Gi,,postgresql,17,postgresql-{i},\n" for i in range(n // 4)),
    "hosts": lambda n: HEAD + "".join(f"h{i},64Gi,,,,,\n" for i in range(n)),
    "settings of one row": lambda n: HEAD + 'a,64Gi,,postgresql,17,,"' + ";".join(f"s{i}=1" for i in range(n)) + '"\n',
    "columns": lambda n: ",".join(f"c{i}" for i in range(n)) + "\n",
    "quotes": lambda n: HEAD + '"' * n,
    "quotes within a cell": lambda n: (
        HEAD + 'a,64Gi,,postgresql,"17","b",\na,64Gi,,postgresql,17,' + '"' * (n // 40) + "x,\n"
    ),
    "quoted separators": lambda n: ',"' * n + "\n",
    "spaces": lambda n: HEAD + "a,64Gi" + " " * n + ",,,,,\n",
    "newlines": lambda n: HEAD + "\n" * n,
    "NULs": lambda n: HEAD + "\0" * n,
}


@pytest.mark.parametrize("what", TABLES)
def test_eight_times_a_table_takes_eight_times_the_time(what: str) -> None:
    assert_linear(lambda text: read_csv(text, "t"), TABLES[what])


def test_facts_that_are_cut_take_a_time_that_grows_as_the_file_does() -> None:
    cut = "h | SUCCESS => {\n" * 8
    assert_linear(lambda text: read_ansible(Path("t"), lambda _: text.encode()), lambda n: cut * n)


def assert_linear(read: Callable[[str], object], made: Callable[[int], str]) -> None:
    taken = []
    gc.disable()  # it looks at what all tests before have left, the oftener the more is made here
    try:
        for text in map(made, (1_000, 8_000)):
            best = float("inf")
            for _ in range(3):
                begun = time.process_time()
                with suppress(InventoryError, ScenarioFileError, yaml.YAMLError):
                    read(text)
                best = min(best, time.process_time() - begun)
            taken.append(best)
    finally:
        gc.enable()
    assert taken[1] < max(LEAST_SECONDS, GROWTH * taken[0]), taken


ONE_HASH = 2**61 - 1
YAMLS: dict[str, Callable[[int], str]] = {
    "directives": lambda n: "".join(f"%TAG !{i:x}! tag:,1:\n" for i in range(n)) + "---\na: 1\n",
    "other breaks": lambda n: "\ufeff" + "".join(f"%TAG !{i:x}! tag:,1:\u2028" for i in range(n)) + "--- a\n",
    "directives of many documents": lambda n: "".join(f"%TAG !{i:x}! tag:,1:\n--- a\n...\n" for i in range(n)),
    "whole numbers": lambda n: "\n".join(f"{hex(i * ONE_HASH)}: " for i in range(n)),
    "a set": lambda n: "!!set\n" + "\n".join(f"? {hex(i * ONE_HASH)}" for i in range(n)),
    "merged": lambda n: "!!merge x: {" + ",".join(f"{hex(i * ONE_HASH)}: 1" for i in range(n)) + "}",
    "numbers in mappings": lambda n: "\n".join(f"? !!int {{=: {hex(i * ONE_HASH)}}}\n: " for i in range(n)),
    "floats": lambda n: "\n".join(f"{float(i * ONE_HASH):.1f}: " for i in range(n)),
    "tags": lambda n: "\n".join(f"- !<tag:{i}> a" for i in range(n)),
    "anchors": lambda n: "\n".join(f"- &a{i} a" for i in range(n)),
    "base 60": lambda n: "a: 1" + ":1" * 10 * n,
    "base 60 by its tag": lambda n: "a: !!int '1" + ":1" * 10 * n + "'",
    "base 60 in a mapping": lambda n: "a: !!int {!!value =: '1" + ":1" * 10 * n + "'}",
}


@pytest.mark.parametrize("what", YAMLS)
@pytest.mark.parametrize("reader", ["kubectl", "load", "compose", "scenario"])
def test_eight_times_a_yaml_takes_eight_times_the_time(what: str, reader: str) -> None:
    readers: dict[str, Callable[[str], object]] = {
        "kubectl": lambda text: json_of_yaml(text.encode(), "y"),
        "load": yaml_nodes.load,
        "compose": lambda text: yaml_nodes.compose_all(text, with_aliases=True),
        "scenario": lambda text: parse_text(text, "s"),
    }
    assert_linear(readers[reader], YAMLS[what])


def test_a_scenario_of_directives_is_one_sentence_with_a_line() -> None:
    with pytest.raises(ScenarioFileError, match=r"^s:101: .*; expected at most 100 lines that begin with %$"):
        parse_text(YAMLS["directives"](200), "s")
    for word in ("!!timestamp abc", '!!int ""', "!!bool x"):
        with suppress(ScenarioFileError):
            parse_text(f"a: {word}", "s")


def test_keys_of_yaml_are_text_and_few_directives_are_read() -> None:
    text = "%YAML 1.1\n%TAG !x! tag:x:\n---\n0x10: 1\nnull: 2\nyes: {1.5: %a}\n".replace("%a", "'\n\n%'")
    assert yaml_nodes.load(text) == {"0x10": 1, "null": 2, "yes": {"1.5": "\n%"}}
    for data in (text.encode(), text.encode("utf-16")):
        assert json.loads(json_of_yaml(data, "y")) == yaml_nodes.load(text)


@pytest.mark.parametrize("text", ["!!timestamp abc", '!!int ""', '!!float ""', '!!int "-"', "!!bool x", "? [a]\n  : b"])
def test_what_a_tag_says_wrongly_is_one_sentence(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError):
        yaml_nodes.load(f"a: 1\nb:\n  {text}")
    with pytest.raises(InventoryError, match="y is not valid YAML in line 3: expected "):
        json_of_yaml(f"a: 1\nb:\n  {text}".encode(), "y")


@pytest.mark.parametrize("separator", [",", ";", "\t", ", "])
def test_the_head_line_says_what_separates(separator: str) -> None:
    head, row = (
        ("host", "memory", "engine", "settings"),
        ("a", "64Gi", "postgresql", '"shared_buffers=1GB;work_mem=4MB"'),
    )
    (node,) = read_csv("\n".join(map(separator.join, (head, row))), "t").nodes
    assert node.databases[0].instance.settings == {"shared_buffers": "1GB", "work_mem": "4MB"}


def test_yaml_that_is_deep_is_refused_and_base_60_is_text() -> None:
    with pytest.raises(InventoryError, match="at most 60 levels"):
        json_of_yaml(b"a: " + b"[" * 61 + b"]" * 61, "y")
    many = b"1:" * 1_000 + b"1"
    assert json.loads(json_of_yaml(b"a: %b\nb: 1:30.5\nc: 1.5\nd: 0x10\n" % many, "y")) == {
        "a": many.decode(), "b": "1:30.5", "c": 1.5, "d": 16,
    }  # fmt: skip
    for text in ("1:30", "1:30.5", "1" + ":1" * 300 + ".5"):
        assert yaml_nodes.load(f"a: {text}") == parse_text(f"a: {text}", "s")[0] == {"a": text}
        with pytest.raises(yaml_nodes.YamlBoundsError):
            yaml_nodes.load(f"a: !!float '{text}'")


def test_no_error_of_a_constructor_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ArithmeticError, TypeError, RuntimeError):
        monkeypatch.setitem(yaml_nodes.PlainLoader.yaml_constructors, "tag:yaml.org,2002:null", Mock(side_effect=error))
        with pytest.raises(yaml_nodes.YamlBoundsError):
            yaml_nodes.load("a: ~")


def pod(namespace: str, name: str, containers: list[Any], node: str | None = "n", **metadata: Any) -> Any:
    spec = {"containers": containers, "volumes": [{"name": "v", "configMap": {"name": "m"}}], "nodeName": node}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}


def container(name: str, image: str = "postgres:17", **more: Any) -> Any:
    return {"name": name, "image": image, **more}


def objects(*items: Any) -> bytes:
    status = {"capacity": {"memory": "64Gi", "cpu": "8"}, "allocatable": {"memory": "60Gi"}}
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": status}
    return json.dumps({"kind": "List", "items": [node, *items]}).encode()


MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/etc/mysql"}], "envFrom": [{"configMapRef": {"name": "m"}}]}


def multiplied(variables: int, containers: int) -> Any:
    """A pod whose containers each name all that a variable and a ConfigMap of it hold."""
    words = ["-c", "shared_buffers=" + "$(A)" * variables, *(["-c", "work_mem=$(A)"] * variables)]
    own = {"args": words, "env": [{"name": "A", "value": "1" * 30 * variables}], **MOUNTED}
    text = {"my.cnf": "[mysqld]\n" + "".join(f"a{number}=1\n" for number in range(10 * variables))}
    return (
        pod("t", "p", [container(f"c{number}", "mysql:8" if number % 2 else "postgres:17", **own)
                       for number in range(containers)]),
        {"kind": "ConfigMap", "metadata": {"name": "m", "namespace": "t"}, "data": text},
    )  # fmt: skip


@pytest.mark.parametrize("many", [{"variables": 8_000, "containers": 1}, {"variables": 100, "containers": 1_000}])
def test_what_one_object_says_is_not_multiplied_by_what_another_says(many: dict[str, int]) -> None:
    data = objects(*multiplied(**many))
    begun = time.process_time()
    tracemalloc.start()
    found = read_kubernetes(data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.nodes[0].databases) == min(64, many["containers"])
    assert most < 64 * 2**20
    assert time.process_time() - begun < 10


JAVA = ("JAVA_OPTS", "JVM_OPTS", "KAFKA_OPTS", "HEAP_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
HUGE = {"resources": {"limits": {f"hugepages-{size}Mi": "1Gi" for size in range(1, 3_000)}}}
OF_KEY = [{"name": name, "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a"}}} for name in JAVA]
ITEMS = [{"key": f"{number}", "path": "a"} for number in range(3_000)]
LARGE: dict[str, list[Any]] = {
    "variables of one key": [
        pod("t", "p", [container(f"c{number}", "kafka:3", env=OF_KEY) for number in range(60)]),
        {
            "kind": "ConfigMap",
            "metadata": {"name": "m", "namespace": "t"},
            "data": {"a": " ".join(f"-XX:A{number}=1" for number in range(9_000))},
        },
    ],
    "sizes of pages": [
        pod("t", "p", [container("c", **HUGE), *(container(f"c{number}") for number in range(2_000))]),
    ],
    "mounts of items": [
        {
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "t"},
            "spec": {
                "nodeName": "n",
                "volumes": [
                    {"name": "v", "configMap": {"name": "m", "items": ITEMS}},
                    {"name": "h", "emptyDir": {"medium": "HugePages"}},
                ],
                "containers": [
                    container("c", volumeMounts=[{"name": name, "mountPath": "/"} for name in "vh" * 3_000], **HUGE)
                ],
            },
        },
        {"kind": "ConfigMap", "metadata": {"name": "m", "namespace": "t"}, "data": {f"{i}": "" for i in range(3_000)}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
def test_parts_of_one_pod_are_not_multiplied_by_each_other(what: str) -> None:
    begun = time.process_time()
    assert read_kubernetes(objects(*LARGE[what])).nodes[0].databases
    assert time.process_time() - begun < 2.5


def test_what_no_engine_reads_counts_for_nothing() -> None:
    """A bundle of certificates is mounted by each pod of a namespace."""
    bundle = {"kind": "ConfigMap", "metadata": {"name": "m", "namespace": "shop"}, "data": {"ca.crt": "A" * 220_000}}
    own = {
        "kind": "ConfigMap",
        "metadata": {"name": "z", "namespace": "shop"},
        "data": {"a.conf": "shared_buffers=1GB"},
    }
    mounts = [{"name": "v", "mountPath": "/etc/ca"}]
    apps = [pod("shop", f"a{number}", [container("c", "app", volumeMounts=mounts)]) for number in range(100)]
    bases = [pod("shop", f"b{number}", [container("c", volumeMounts=mounts)]) for number in range(100)]
    last = pod("shop", "db", [container("c", volumeMounts=[*mounts, {"name": "w", "mountPath": "/etc/pg"}])])
    last["spec"]["volumes"].append({"name": "w", "configMap": {"name": "z"}})
    found = read_kubernetes(objects(bundle, own, *apps, *bases, last)).nodes[0].databases
    assert found[-1].recognised.settings == {"shared_buffers": "1GB"}


def test_a_pod_whose_object_nobody_foresaw_keeps_its_memory() -> None:
    odd = {
        "kind": "CassandraDatacenter",
        "apiVersion": "cassandra.datastax.com/v1beta1",
        "metadata": {"name": "o", "namespace": "t"},
        "spec": {"config": {"jvm-x": {"additional-jvm-opts": 5}}},
    }
    labels = {"labels": {"cassandra.datastax.com/datacenter": "o"}}
    asked = {"resources": {"limits": {"memory": "50Gi", "hugepages-2Mi": "1Gi"}}}
    found = read_kubernetes(
        objects(odd, pod("t", "p", [container("cassandra", **asked)], **labels), pod("shop", "db", [container("c")]))
    )
    assert [one.workload for one in found.nodes[0].databases] == ["db"]
    (tenant,) = found.nodes[0].tenants
    assert (tenant.name, tenant.request_bytes, tenant.limit_bytes) == ("t/p (settings not read)", 50 << 30, 50 << 30)
    (user,) = found.nodes[0].huge_page_users
    assert (user.limit_bytes, user.is_database) == ({2 << 20: 1 << 30}, False)
    said = "pod t/p counts as a workload, settings not read: internal error"
    assert [note for note in found.notes if note.startswith(said)] != []


def test_a_namespace_that_takes_more_of_its_config_maps_than_is_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hugeplan.inventory.kubernetes.config_maps._MOST_FILES", 1_000)
    maps = [
        {
            "kind": "ConfigMap",
            "metadata": {"name": "m", "namespace": namespace},
            "data": {"my.cnf": f"[mysqld]\n{text}"},
        }
        for namespace, text in (("t", "max_connections=7\n" * 40), ("shop", "max_connections=7\n"))
    ]
    pods = [pod(namespace, f"p{number}", [container("c", "mysql:8", **MOUNTED)]) for namespace in ("t", "shop")
            for number in range(2)]  # fmt: skip
    found = read_kubernetes(objects(*pods, *maps))
    read = {(one.namespace, one.workload): dict(one.recognised.settings) for one in found.nodes[0].databases}
    assert [read["shop", name] for name in ("p0", "p1")] == [{"max_connections": "7"}] * 2
    assert read["t", "p1"] == {}
    assert [text for text in found.unknown if "namespace t" in text] != []
    assert [text for text in found.unknown if "namespace shop" in text] == []


OWNED = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "app", "uid": "u",
                              "controller": True}]}  # fmt: skip
ODD_PODS: dict[str, list[Any]] = {
    "names that meet": [pod("t", "t.a.z", [container("c")]), pod("t", "a", [container(name) for name in "xyz"])],
    "a workload while it changes": [
        pod("web", f"app-{size}", [container("c", "nginx", resources={"requests": {"memory": size}})], **OWNED)
        for size in ("1Gi", "2Gi")
    ],
    "a long name": [pod("web", "a" * 253, [container("c"), container("d", "nginx")])],
    "long names that begin alike": [pod(f"{'n' * 60}{number}", "a" * 253, [container("c")]) for number in range(2)],
    "an owner that is no name": [
        pod(
            "t",
            "p",
            [container("c")],
            ownerReferences=[
                {"apiVersion": f"{group}/v1", "kind": kind, "name": "a" * 300 + "\n", "uid": "u", "controller": True}
            ],
        )
        for group, kind in (("apps", "StatefulSet"), ("a.example", "Odd Kind"))
    ],
    "a long name with pages": [pod("t", "a" * 240, [container("c", "nginx", **HUGE)])],
    "a limit beyond all": [pod("t", "p", [container("c", "nginx", resources={"limits": {"memory": str(2**63 - 1)}})])],
    "more databases than a plan takes": [
        pod("t", f"p{number}", [container(f"c{index}") for index in range(60)]) for number in range(5)
    ],
    "a request beyond all": [pod("t", "p", [container("c", "nginx", resources={"requests": {"memory": "8Ei"}})])],
    "pages beyond all": [pod("t", "p", [container("c", "nginx", resources={"limits": {"hugepages-2Mi": "8E"}})])],
    "a part of a page": [pod("t", "p", [container("c", "nginx", resources={"limits": {"hugepages-2Mi": "1"}})])],
    "no size": [pod("t", "p", [container("c", resources={"requests": {"memory": size}})]) for size in ("-1", "1e30")],
    "a limit below the request": [
        pod("t", f"p{number}", [container("c", resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}})])
        for number in range(300)
    ],
    "pages that no node has": [
        pod("t", f"p{size}", [container("c", args=["-c", f"huge_page_size={size}"])]) for size in ("3GB", "99kB")
    ],
    "buffers beyond all": [pod("t", "p", [container("c", args=["-c", "shared_buffers=8000TB"])])],
    "no name": [pod("t", "", [container("c")]), pod("t", "\x1b\n", [container("c")])],
    "more pages than a plan has databases": [
        pod(
            "t",
            f"p{number}",
            [container("c", "nginx", resources={"limits": {"memory": "1Mi", "hugepages-2Mi": "2Mi"}})],
        )
        for number in range(400)
    ],
    "settings of digits": [
        pod("t", f"p{prefix}", [container("c", args=["-c", f"{setting}={prefix}{'7' * 5_000}"])])
        for prefix in ("0x", "0", "1", "-")
        for setting in ("shared_buffers", "max_connections", "work_mem")
    ],
}


@pytest.mark.parametrize("what", ODD_PODS)
def test_one_odd_pod_leaves_its_nodes_plan_and_scenario(what: str) -> None:
    found = read_kubernetes(objects(*ODD_PODS[what], pod("shop", "db-0", [container("postgres")])))
    (planned,) = answer(found).nodes
    assert "db-0" in {one.instance.name for one in found.nodes[0].databases}
    assert planned.not_planned_because is None
    assert planned.fits is not False or len(ODD_PODS[what]) > 3
    request = request_of(Question(scenario_document(found.nodes[0])))
    assert plan_node(request).why_not is None
    assert "No node needs huge pages" not in inventory_text(answer(found))


def test_pages_of_databases_that_are_left_out_stay_theirs() -> None:
    own = {"resources": {"limits": {"memory": "1Mi", "hugepages-2Mi": "20Mi"}}}
    pods = [pod("t", f"p{number}", [container("c", **own)]) for number in range(300)]
    (found,) = read_kubernetes(objects(*pods)).nodes
    request = inventory_request(found, Policy())
    assert len(request.databases) <= 256
    held = sum(one.pod_hugepages_limit_bytes or 0 for one in request.databases)
    assert held == 300 * 20 * 2**20
    (said,) = [text for text in found.unknown if text.startswith("databases ")]
    assert said.startswith("databases t/p254, t/p255, t/p256, t/p257, t/p258 and 41 more: ")


@pytest.mark.parametrize("source", ["kubernetes", "csv"])
def test_of_a_node_as_many_databases_are_planned_as_a_plan_takes(source: str) -> None:
    if source == "csv":
        found = read_csv(TABLES["databases of one host"](4 * 600), "t")
    else:
        found = read_kubernetes(objects(*(pod("t", f"p{number}", [container("c")]) for number in range(600))))
    assert len(found.nodes[0].databases) == 256
    begun = time.process_time()
    assert answer(found).nodes[0].plan is not None
    assert time.process_time() - begun < 5
    assert "and 339 more: more than the 256 that a plan takes" in " ".join(found.nodes[0].unknown)


def test_what_nobody_foresaw_of_one_node_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_csv(HEAD + "a,64Gi,,postgresql,17,,\nb,64Gi,,postgresql,17,,\n", "t")

    def fails_for_a(request: PlanRequest) -> Any:
        if request.node.name == "a":
            raise ValueError("odd")
        return plan_node(request)

    monkeypatch.setattr("hugeplan.inventory.answer.plan_node", fails_for_a)
    first, second = answer(found).nodes
    assert first.not_planned_because == "internal error: ValueError: odd"
    assert second.plan is not None


FACTS: dict[str, Any] = {
    "deep": "[" * 100_000,
    "deep and whole": '{"ansible_facts": {"ansible_memtotal_mb": 1, "x": ' + "[" * 900 + "]" * 900 + "}}",
    "deep in the module's output": 'h | SUCCESS => {"a": ' + "[" * 100_000,
    "a long number": '{"ansible_memtotal_mb": ' + "9" * 5_000 + "}",
    "more memory than there is": '{"ansible_memtotal_mb": ' + "9" * 300 + "}",
    "a truth for a size": '{"ansible_memtotal_mb": true}',
    "more processors than there are": '{"ansible_memtotal_mb": 1024, "ansible_processor_vcpus": 1' + "0" * 300 + "}",
    "used more than there is": '{"ansible_memtotal_mb": 1024, "ansible_memory_mb": {"nocache": {"used": 1'
    + "0" * 200
    + "}}}",
    "lists for words": json.dumps({"ansible_memtotal_mb": 1024, "ansible_nodename": [1], "ansible_kernel": [2]}),
    "no object": "[1, 2]",
    "NaN": '{"ansible_memtotal_mb": NaN}',
    "a name of terminal codes": json.dumps({"ansible_memtotal_mb": 1024, "ansible_nodename": "\x1b]0;x\x07\u202e"}),
    "a kernel of digits": json.dumps({"ansible_memtotal_mb": 1024, "ansible_kernel": "+" + "1" * 5_000 + "k"}),
    "hosts without facts": json.dumps({f"h{number}": {} for number in range(5_000)}),
    "a line without an end": "h" * 500_000,
}


@pytest.mark.parametrize("what", FACTS)
def test_facts_of_any_kind_are_an_answer_or_a_sentence(tmp_path: Path, what: str) -> None:
    file = tmp_path / "facts"
    file.write_text(FACTS[what])
    begun = time.process_time()
    found = told(lambda: read_ansible(file))
    assert time.process_time() - begun < 5
    assert all(letter.isprintable() or letter == "\n" for letter in found)


OBJECTS: dict[str, Any] = {
    "a quantity of digits": {"memory": "9" * 5_000 + "Gi"},
    "an exponent": {"memory": "1e999999999"},
    "a negative one": {"memory": "-1Gi", "hugepages-2Mi": "-5Gi"},
    "fractions": {"memory": "0." + "1" * 4_000 + "Gi"},
    "sizes without end": {"memory": "64Gi", **{f"hugepages-{number}Ki": "1Gi" for number in range(5_000)}},
    "a size of digits": {"memory": "64Gi", "hugepages-" + "9" * 4_000 + "Gi": "1Gi"},
    "no texts": {"memory": ["64Gi"], "cpu": {}},
}


@pytest.mark.parametrize("what", OBJECTS)
def test_quantities_of_any_kind_are_an_answer_or_a_sentence(what: str) -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"capacity": OBJECTS[what]}}
    found = told(lambda: read_kubernetes(json.dumps({"kind": "List", "items": [node]}).encode()))
    assert found


ODD_VALUES = st.sampled_from(
    ["NaN", "+Inf", "-1", "0", "1e300", "1e18", "17179869184", "0.5", "", "x", None, [], {}, True, 5, "9" * 400]
)
NAMES = st.sampled_from(
    [
        "__name__", "instance", "node", "nodename", "machine", "release", "resource", "namespace", "pod", "container",
        "image", "image_spec", "internal_ip", "cluster", "job", "exported_pod", "kernel_version", "cpu",
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "", "n", "m:9100", "[::1]:9", "x86_64", "\u00b2", "0", "memory", "hugepages_2Mi",
        "hugepages_" + "9" * 400 + "Gi", "hugepages_", "postgres:17", "\x1b[2J", "../..", "node_memory_MemTotal_bytes",
        "node_memory_numa_MemTotal",
        "node_memory_HugePages_Total", "node_memory_Hugepagesize_bytes", "pg_settings_shared_buffers_bytes",
        "mysql_global_variables_large_pages", None, 7, ["x"], {"y": 1},
    ]
)  # fmt: skip
SERIES = st.fixed_dictionaries(
    {"metric": st.dictionaries(NAMES, WORDS, max_size=8) | WORDS},
    optional={
        "value": st.tuples(ODD_VALUES, ODD_VALUES),
        "values": st.lists(st.tuples(ODD_VALUES, ODD_VALUES), max_size=4) | WORDS,
    },
)


@settings(max_examples=30)  # each has a server of its own
@given(st.lists(SERIES | WORDS, max_size=12), st.integers(0, 2**32))
def test_any_answer_of_prometheus_is_an_answer_or_a_sentence(results: list[Any], seed: int) -> None:
    chance = random.Random(seed)

    class Stub(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            found = [1.0, "1764000000"] if asked["query"] == ["time()"] else chance.sample(results, len(results))
            body = json.dumps({"status": "success", "data": {"result": found}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with answering(Stub) as at:
        found = told(lambda: read_prometheus(f"http://{at}"))
    assert all(letter.isprintable() or letter == "\n" for letter in found)


@pytest.mark.parametrize("levels", [1_500, 100_000])
def test_an_object_that_is_nested_without_end_takes_nothing_from_the_others(levels: int) -> None:
    nested = '{"a": "}\\"", "b": [' * levels + "1" + "]}" * levels
    odd = (
        '{"apiVersion": "mongodbcommunity.mongodb.com/v1", "kind": "MongoDBCommunity", "metadata": {"name": "m"},'
        f' "spec": {{"additionalMongodConfig": {nested}}}}}'
    )
    whole = [json.dumps(one) for one in (node("n"), postgres("db-0", "n", {"shared_buffers": "1GB"}))]
    for text in (f'{{"kind": "List", "items": [{",".join([odd, *whole])}]}}', " ".join([whole[0], odd, whole[1]])):
        found = read_kubernetes(text.encode())
        assert [len(one.databases) for one in found.nodes] == [1]
        assert "nested more than 200 levels deep" in " ".join(found.notes)
    began = time.process_time()
    with suppress(InventoryError):
        read_kubernetes(('{"a":' * 1_500 + '\\"' * 200_000).encode())
    assert time.process_time() - began < 2.0


def test_what_nobody_foresaw_of_moving_a_database_leaves_the_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise ValueError("odd")

    monkeypatch.setattr("hugeplan.inventory.answer.with_other_node", fails)
    found = read_csv(HEAD + "a,1Gi,,postgresql,17,,shared_buffers=8GB\nb,64Gi,,postgresql,17,,\n", "t")
    answered = answer(found)
    assert [node.fits for node in answered.nodes] == [False, None]
    assert "a: no other node was looked for: internal error: ValueError: odd" in inventory_text(answered)


def test_a_node_of_which_not_even_the_question_is_known_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_for_a(found: Any, *_: object) -> Any:
        if found.facts.name == "a":
            raise ValueError("odd")
        return inventory_request(found, Policy())

    monkeypatch.setattr("hugeplan.inventory.answer.request_of", fails_for_a)
    first, second = answer(read_csv(HEAD + "a,64Gi,,redis,,,\nb,64Gi,,postgresql,17,,\n", "t")).nodes
    assert first.not_planned_because == "internal error: ValueError: odd"
    assert second.plan is not None
