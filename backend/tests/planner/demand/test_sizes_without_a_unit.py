"""A small size without a unit is refused with what was perhaps meant, or taken with a word."""

from __future__ import annotations

import pytest

from hugeplan.planner.demand import demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, NodeFacts, NumaNode, PlanRequest, State
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import load

NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),))


def database(engine: str, setting: str, value: str) -> DatabaseInstance:
    return DatabaseInstance(name="db", engine=engine, settings={setting: value})


@pytest.mark.parametrize("value", ["16", "32", "100", "1023", " 32 ", "'32'"])
def test_blocks_of_postgresql_are_taken_with_a_word(value: str) -> None:
    instance = database("postgresql", "shared_buffers", value)
    said = f"{value.strip().strip(chr(39))}GB may be meant"
    assert said in " ".join(demand_of(instance, 2 * MIB).notes).replace("1TB", "1024GB")
    found = plan(PlanRequest(node=NODE, databases=(instance,)))
    finding = next(f for f in found.findings if f.code == "size_without_unit")
    assert finding.state is State.ATTENTION
    assert said in finding.reason


@pytest.mark.parametrize(
    ("engine", "setting", "meant"),
    [
        ("postgresql", "shared_buffers", "6GB"),
        ("mysql", "innodb_buffer_pool_size", "6G"),
        ("mariadb", "innodb-buffer-pool-size", "6G"),
        ("oracle", "sga_target", "6G"),
        ("db2", "database_memory", "6G"),
        ("jvm", "-Xmx", "6G"),
        ("generic", "segment_size", "6GiB"),
    ],
)
def test_six_bytes_are_refused(engine: str, setting: str, meant: str) -> None:
    with pytest.raises(PlannerError, match=f"did you mean {meant}"):
        demand_of(database(engine, setting, "6"), 2 * MIB)


@pytest.mark.parametrize(
    ("engine", "setting", "value"),
    [
        ("postgresql", "shared_buffers", "16384"),
        ("postgresql", "shared_buffers", "32GB"),
        ("mysql", "innodb_buffer_pool_size", str(8 * GIB)),
        ("jvm", "Xmx", "6g"),
    ],
)
def test_sizes_as_engines_print_them_are_taken_without_a_word(engine: str, setting: str, value: str) -> None:
    instance = database(engine, setting, value)
    assert not any("has no unit" in note for note in demand_of(instance, 2 * MIB).notes)
    found = plan(PlanRequest(node=NODE, databases=(instance,)))
    assert [f.state for f in found.findings if f.code == "size_without_unit"] == [State.OK]


@pytest.mark.parametrize("value", ["6", "64", "'6'"])
@pytest.mark.parametrize(
    "text",
    [
        "node: {{memory: {0}}}",
        "node: {{memory: 64GiB}}\npolicy: {{free_margin: {0}}}",
        "node: {{memory: 64GiB}}\ndatabases: [{{name: a, engine: mysql, pool_range: {{min: {0}, max: 8GiB}}}}]",
    ],
)
def test_a_scenario_has_no_memory_of_six_bytes(text: str, value: str) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        load(text.format(value))


def test_a_typed_request_of_six_is_refused_and_bytes_are_taken() -> None:
    text = "node: {{memory: 64GiB}}\ntenants: [{{name: a, request: {0}}}]"
    with pytest.raises(ValueError, match="did you mean 6GiB"):
        load(text.format("'6'"))
    assert load(text.format(6 * GIB)).tenants[0].request == 6 * GIB
