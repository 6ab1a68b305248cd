"""A scenario file loads as written, and a wrong one says line, field and what was expected."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, NodeFacts, NumaNode
from hugeplan.scenario_file import (
    FieldProblem,
    ScenarioDocument,
    ScenarioFileError,
    line_of,
    load,
    to_request,
)
from tools.reference import schemas

REPOSITORY = Path(__file__).parents[3]

GOOD = """\
schema_version: 1
node:
  name: db-7
  memory: 64GiB
  kernel_used: 1Gi
reservations: {kubernetes: true, provider: gke, system_reserved: 1Gi}
tenants:
  - {name: app, count: 4, request: 6Gi, limit: 8G}
databases:
  - name: main
    engine: postgresql
    version: 17
    settings: {shared_buffers: 8GB, max_connections: 200, huge_pages: on}
    page_size: 2MiB
policy: {slack: 2%, risk: 0.005, page_sizes: [2M, 1GiB]}
"""


def problem_of(text: str) -> str:
    with pytest.raises(ScenarioFileError) as caught:
        load(text, "s.yaml")
    return str(caught.value)


def refusal(text: str) -> tuple[FieldProblem, ...] | None:
    """The problems of a text; None when it loads. Anything but a ScenarioFileError is a failure of the test."""
    try:
        load(text)
    except ScenarioFileError as error:
        return error.problems
    return None


@pytest.mark.parametrize("number", ["0x" + "f" * 4000, "0b" + "1" * 20_000, "0x1" + "0" * 16])
def test_a_whole_number_has_64_bits(number: str) -> None:
    assert "a plain value" in problem_of(GOOD.replace("64GiB", number))


class TestGood:
    def test_units_as_people_write_them(self) -> None:
        request = to_request(load(GOOD))
        assert request.node.mem_total_bytes == 64 * GIB
        assert request.node.kernel_used_bytes == GIB
        assert request.tenants[0].request_bytes == 6 * GIB
        assert request.tenants[0].limit_bytes == 8 * 10**9
        assert request.databases[0].page_bytes == 2 * MIB
        assert request.policy.slack_fraction == 0.02
        assert request.policy.risk == 0.005
        assert request.policy.allowed_page_bytes == (2 * MIB, GIB)

    def test_engine_text_is_kept_verbatim(self) -> None:
        database = to_request(load(GOOD)).databases[0]
        assert database.version == "17"
        assert dict(database.settings) == {"shared_buffers": "8GB", "max_connections": "200", "huge_pages": "on"}

    def test_version_8_10_is_not_a_number(self) -> None:
        text = "node: {memory: 1GiB}\ndatabases: [{name: m, engine: mysql, version: 8.10}]"
        assert load(text).databases[0].version == "8.10"

    def test_json_with_tabs_is_the_same_document(self) -> None:
        document = load(GOOD)
        text = json.dumps(document.model_dump(mode="json"), indent="\t")
        assert load(text, "s.json") == document

    def test_a_document_survives_its_own_json(self) -> None:
        document = load(GOOD)
        assert ScenarioDocument.model_validate_json(document.model_dump_json()) == document

    def test_arm64_defaults(self) -> None:
        node = to_request(load("node: {arch: arm64, base_page_size: 64KiB, memory: 256GiB}")).node
        assert node.huge_page_sizes_bytes == (2 * MIB, 512 * MIB, 16 * GIB)
        assert node.default_huge_page_bytes == 512 * MIB


class TestWrong:
    @pytest.mark.parametrize(
        ("text", "line", "field", "expected"),
        [
            ("node:\n  memory: 64GB\n", 2, "node.memory", "64GiB"),
            ("node:\n  memori: 1GiB\n", 2, "node.memori", "did you mean memory?"),
            ("node: {memory: 1GiB}\ndatabses: []\n", 2, "databses", "did you mean databases?"),
            ("tenants:\n- name: a\n  count: x\n", 3, "tenants[0].count", "a whole number"),
            ("tenants:\n- name: a\n  count: -1\n", 3, "tenants[0].count", "at least 0"),
            ("databases:\n- name: a\n", 2, "databases[0].engine", "required"),
            ("databases:\n- name: a\n  engine: postgresql\n  page_size: 3M\n", 4, "databases[0].page_size", "2MiB"),
            ("policy:\n  slack: 300%\n", 2, "policy.slack", "1% or 0.01"),
            ("policy:\n  reserve_at: noon\n", 2, "policy.reserve_at", "'boot' or 'runtime'"),
            ("node:\n  memory: 1GiB\n  memory: 2GiB\n", 3, "node.memory", "each key once"),
            ("schema_version: 2\n", 1, "schema_version", "1"),
        ],
    )
    def test_line_field_and_expectation(self, text: str, line: int, field: str, expected: str) -> None:
        message = problem_of(text)
        assert message.startswith(f"s.yaml:{line}: {field}: ")
        assert expected in message

    def test_every_problem_is_listed(self) -> None:
        assert problem_of("node: {memory: x, cpus: 0}\nx: 1").count("s.yaml:") == 3

    def test_broken_yaml_has_its_line(self) -> None:
        assert problem_of("node:\n  memory: [1\n").startswith("s.yaml:3:")

    def test_broken_json_has_its_line(self) -> None:
        assert problem_of('{"node":\n {"memory": }}').startswith("s.yaml:2:")

    @pytest.mark.parametrize("text", ["", "[]", "42", "a: &x 1\nb: *x", "{" * 5000, "- " * 3000])
    def test_odd_documents_are_refused(self, text: str) -> None:
        assert problem_of(text)

    @given(st.text(max_size=200))
    @settings(max_examples=200)
    def test_any_text_loads_or_says_why(self, text: str) -> None:
        assert refusal(text) != ()

    @given(st.dictionaries(st.sampled_from(["node", "tenants", "databases", "policy"]), st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from(["name", "memory", "engine", "settings", "count", "history", "x"]), inner, max_size=4),
        max_leaves=8)))  # fmt: skip
    def test_any_json_loads_or_says_why(self, value: dict[str, object]) -> None:
        problems = refusal(json.dumps(value))
        assert problems is None or all(problem.expected for problem in problems)


class TestContradictions:
    @pytest.mark.parametrize(
        ("text", "field"),
        [
            ("databases: []", "node"),
            ("node: {name: a}", "node.memory"),
            ("node: {memory: 0}", "node.memory"),
            ("node: {memory: 1GiB, kernel_used: 2GiB}", "node.kernel_used"),
            ("node: {memory: 1GiB, arch: vax}", "node.arch"),
            ("node: {memory: 1GiB, base_page_size: 16KiB}", "node.base_page_size"),
            ("node: {memory: 1GiB, huge_page_sizes: [16MiB]}", "node.huge_page_sizes[0]"),
            ("node: {memory: 1GiB, default_huge_page_size: 16MiB}", "node.default_huge_page_size"),
            ("node: {memory: 1GiB, numa_nodes: [{id: 0, memory: 2GiB}]}", "node.memory"),
            ("node: {numa_nodes: [{id: 0, memory: 2GiB}, {id: 0, memory: 2GiB}]}", "node.numa_nodes[1].id"),
            (
                "node: {numa_nodes: [{id: 0, memory: 2GiB, pools: [{page_size: 2M, nr_hugepages: 1, free: 2}]}]}",
                "node.numa_nodes[0].pools[0].free",
            ),
            ("node: {memory: 1GiB}\ntenants: [{name: a, numa_node: 1}]", "tenants[0].numa_node"),
            ("node: {memory: 1GiB}\ntenants: [{name: a, request: 2Gi, limit: 1Gi}]", "tenants[0].limit"),
            ("node: {memory: 1GiB}\ntenants: [{name: a}, {name: a}]", "tenants[1].name"),
            (
                "node: {memory: 1GiB}\ntenants: [{name: a, history: {times: [1], used: []}}]",
                "tenants[0].history.used",
            ),
            (
                "node: {memory: 1GiB}\ndatabases: [{name: a, engine: x, pool_range: {min: 2GiB, max: 1GiB}}]",
                "databases[0].pool_range.max",
            ),
            ("node: {memory: 1GiB, hardware: {run: a.json}}", "node.hardware.run"),
        ],
    )
    def test_names_the_field(self, text: str, field: str) -> None:
        with pytest.raises(PlannerError) as caught:
            to_request(load(text))
        assert caught.value.field == field
        assert line_of(field, text) is not None

    def test_stored_and_inline_facts_are_one_too_many(self) -> None:
        facts = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=GIB),))
        with pytest.raises(PlannerError, match="not both"):
            to_request(load(GOOD), facts)
        assert to_request(load("tenants: []"), facts).node is facts


class TestSchema:
    def test_accepts_what_the_loader_accepts(self) -> None:
        value = {
            "node": {"memory": "64GiB"},
            "tenants": [{"name": "a", "request": "512Mi"}],
            "databases": [{"name": "m", "engine": "postgresql", "settings": {"max_connections": 9}}],
            "policy": {"slack": "1%"},
        }  # fmt: skip
        jsonschema.validate(value, json.loads(schemas.scenario()))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"node": {"memory": "64GB"}}, json.loads(schemas.scenario()))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"nodes": {}}, json.loads(schemas.scenario()))
