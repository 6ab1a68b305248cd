"""Settings that exclude huge pages give no pool and the sentence why; requests that no server would start with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.planner.demand import DemandContext, demand_of, differs, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    State,
    Workload,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.units import parse_fraction

NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB)

EXCLUDING = [
    ("postgresql", {"shared_buffers": "8GB", "huge_pages": "off"}, "huge_pages = off"),
    ("postgresql", {"shared_buffers": "8GB", "shared_memory_type": "sysv"}, "shared_memory_type = sysv"),
    ("oracle", {"memory_target": "8G"}, "memory_target"),
    ("oracle", {"sga_target": "8G", "memory_target": "10G"}, "memory_target"),
    ("oracle", {"sga_target": "8G", "memory_target": "0", "memory_max_target": "10G"}, "memory_max_target"),
    ("oracle", {"sga_target": "8G", "use_large_pages": "FALSE"}, "use_large_pages = FALSE"),
    ("mysql", {"innodb_buffer_pool_size": "8G", "large_pages": "OFF"}, "large_pages = OFF"),
    ("mariadb", {"innodb_buffer_pool_size": "8G", "large_pages": "0"}, "large_pages = OFF"),
    ("jvm", {"Xmx": "8g", "-XX:-UseLargePages": ""}, "-XX:-UseLargePages"),
]


def planned(instance: DatabaseInstance, **fields: object) -> Plan:
    return plan(PlanRequest(node=NODE, databases=(instance,), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(("engine", "settings", "sentence"), EXCLUDING)
def test_excluding_settings_give_no_pool_and_say_why(engine: str, settings: dict[str, str], sentence: str) -> None:
    if engine == "jvm":
        settings = {"Xmx": "8g", "UseLargePages": "off"}
    # The weight makes a pool worth having, were it possible.
    found = planned(DatabaseInstance(name="db", engine=engine, settings=settings, weight=50.0))
    assert sum(pool.pages for pool in found.pools) == 0
    assert found.instances[0].page_bytes is None
    assert sentence in found.instances[0].why


@pytest.mark.parametrize(("engine", "settings", "sentence"), EXCLUDING[:1] + EXCLUDING[5:6])
def test_a_page_size_asked_for_by_name_is_planned_all_the_same(
    engine: str, settings: dict[str, str], sentence: str
) -> None:
    found = planned(DatabaseInstance(name="db", engine=engine, settings=settings, page_bytes=2 << 20))
    assert sum(pool.pages for pool in found.pools) > 4000
    assert sentence not in found.instances[0].why


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
@pytest.mark.parametrize(
    ("name", "given", "advised"), [("large_pages", "1", ["OFF"]), ("large_pages", "0", []), ("", "", [])]
)
def test_a_server_that_takes_pages_unasked_is_told_not_to(
    engine: str, name: str, given: str, advised: list[str]
) -> None:
    """Planned on base pages with large_pages = ON it takes those of a PostgreSQL that does not start without."""
    settings = {"innodb_buffer_pool_size": "8G"} | ({name: given} if name else {})
    (found,) = planned(DatabaseInstance(name="db", engine=engine, settings=settings, page_bytes=0)).instances
    assert [a.value for a in found.demand.settings if a.name == "large_pages"] == advised
    (chosen,) = planned(DatabaseInstance(name="db", engine=engine, settings=settings, page_bytes=2 << 20)).instances
    assert [a.value for a in chosen.demand.settings if a.name == "large_pages"] == ["ON"]


SIZED = {
    "postgresql": {"shared_buffers": "4GB"},
    "mysql": {"innodb_buffer_pool_size": "4G"},
    "mariadb": {"innodb_buffer_pool_size": "4G"},
    "oracle": {"sga_target": "4G"},
    "db2": {"database_memory": "4G"},
    "jvm": {"Xmx": "4g"},
}


@pytest.mark.parametrize("engine", sorted(SIZED))
@pytest.mark.parametrize("page_bytes", [2 << 20, 1 << 30])
def test_what_the_plans_file_writes_is_what_it_counts(engine: str, page_bytes: int) -> None:
    """MariaDB's wrote key_buffer_size = 8M beside a count with its default of 128M: the plan was never in force."""
    database = DatabaseInstance(name="db", engine=engine, settings=SIZED[engine], page_bytes=page_bytes)
    (found,) = planned(database).instances
    known = {spec.name for spec in engine_named(engine).settings}
    written = {item.name: item.value for item in found.demand.settings if item.name in known}
    followed = replace(database, settings={**database.settings, **written})
    context = DemandContext.of_node(NODE)
    assert demand_of(followed, page_bytes, context).pages == demand_of(database, page_bytes, context).pages


def test_an_unset_switch_is_not_off() -> None:
    """MySQL's large_pages is OFF by default: the plan advises to set it and reserves pages."""
    found = planned(
        DatabaseInstance(name="db", engine="mysql", settings={"innodb_buffer_pool_size": "8G"}, weight=50.0)
    )
    assert sum(pool.pages for pool in found.pools) > 4000
    assert any(a.name == "large_pages" and a.value == "ON" for a in found.instances[0].demand.settings)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_connections": "3"}, "max_connections"),
        ({"max_connections": "12", "reserved_connections": "9"}, "max_connections"),
    ],
)
def test_connections_that_the_reserved_ones_use_up_are_refused(settings: dict[str, str], field: str) -> None:
    with pytest.raises(PlannerError, match=field) as error:
        planned(DatabaseInstance(name="db", engine="postgresql", settings=settings))
    assert "superuser_reserved_connections" in str(error.value)


def test_an_unknown_operation_is_refused_with_a_hint() -> None:
    workload = Workload(operation_class="key_lookups")
    with pytest.raises(PlannerError, match="did you mean key_lookup") as error:
        planned(DatabaseInstance(name="db", engine="postgresql", workload=workload))
    assert "databases[0].workload.operation_class" in str(error.value)


@pytest.mark.parametrize(("slack", "hint"), [(1.0, "0.01"), (5.0, "0.05"), (0.51, "0.0051")])
def test_slack_above_a_half_is_a_mistyped_percentage(slack: float, hint: str) -> None:
    with pytest.raises(PlannerError, match=r"slack_fraction") as error:
        planned(DatabaseInstance(name="db", engine="postgresql"), policy=Policy(slack_fraction=slack))
    assert f"did you mean {hint}?" in str(error.value)


@pytest.mark.parametrize(("text", "meant"), [("8G", "8GB"), ("512m", "512MB"), ("64K", "64kB"), ("1.5t", "1.5TB")])
def test_postgresqls_units_are_suggested(text: str, meant: str) -> None:
    with pytest.raises(PlannerError, match=f"did you mean {meant}"):
        planned(DatabaseInstance(name="db", engine="postgresql", settings={"shared_buffers": text}))


def test_transaction_buffers_end_at_what_the_server_uses() -> None:
    def segment(blocks: int) -> int:
        settings = {"shared_buffers": "8GB", "transaction_buffers": str(blocks)}
        found = planned(DatabaseInstance(name="db", engine="postgresql", version="18", settings=settings))
        return found.instances[0].demand.segment_bytes

    assert segment(65_536) > segment(32_768)
    assert segment(131_072) == segment(65_536)


@pytest.mark.parametrize(
    ("engine", "settings", "page_bytes", "why"),
    [
        ("oracle", {"sga_target": "9G", "use_large_pages": "ONLY"}, 0, "The plan gives it none"),
        ("oracle", {"sga_target": "9G", "use_large_pages": "ONLY", "memory_target": "12G"}, None, "memory_target"),
        ("oracle", {"sga_target": "90G", "use_large_pages": "ONLY"}, None, "no memory for all that the plan holds"),
        ("oracle", {"sga_target": "90G", "use_large_pages": "ONLY"}, 2 << 20, "no memory for all that the plan holds"),
        ("postgresql", {"shared_buffers": "9GB", "huge_pages": "on"}, 0, "The plan gives it none"),
    ],
)
def test_an_engine_that_insists_on_huge_pages_and_gets_none_will_not_start(
    engine: str, settings: dict[str, str], page_bytes: int | None, why: str
) -> None:
    found = planned(DatabaseInstance(name="db", engine=engine, settings=settings, page_bytes=page_bytes))
    (finding,) = [f for f in found.findings if f.code == "will_not_start"]
    assert finding.state is State.WRONG
    assert "It will not start" in finding.title
    assert why in finding.reason
    easier = {"huge_pages": "try"} if engine == "postgresql" else {"use_large_pages": "TRUE"}
    relaxed = planned(DatabaseInstance(name="db", engine=engine, settings=settings | easier, page_bytes=page_bytes))
    assert not [f for f in relaxed.findings if f.code == "will_not_start"]


@pytest.mark.parametrize(("written", "hint"), [("200%", "did you mean 0.02"), ("7", "did you mean 0.07"), ("-1", "")])
def test_a_share_above_one_is_refused_with_a_hint(written: str, hint: str) -> None:
    with pytest.raises(PlannerError, match="from 0 to 1") as error:
        parse_fraction(written, "policy.slack")
    assert hint in str(error.value)
    assert ("did you mean" in str(error.value)) is bool(hint)


@pytest.mark.parametrize(
    ("written", "name"),
    [("pgsql", "postgresql"), ("Percona Server", "mysql"), ("percona-server", "mysql"), ("SQL Server", "sqlserver"),
     ("SAP HANA", "hana"), ("sap_hana", "hana"), ("Oracle Database", "oracle"), ("MARIA_DB", "mariadb")],
)  # fmt: skip
def test_names_with_blanks_and_hyphens_are_the_same_engine(written: str, name: str) -> None:
    assert engine_named(written).name == name


@pytest.mark.parametrize(
    ("name", "planned", "has", "is_another"),
    [
        ("shared_buffers", "1.5GB", "1536MB", False),
        ("shared_buffers", "8GB", "1048576", False),
        ("shared_buffers", "8GB", "8GB", False),
        ("shared_buffers", "8GB", "8192kB", True),
        ("min_dynamic_shared_memory", "0", "0MB", False),
        ("hot_standby", "on", "t", False),
        ("hot_standby", "on", "0", True),
        ("max_connections", "100", None, False),
        ("max_connections", "80", "60", True),
    ],
)
def test_one_value_in_two_spellings_is_one(name: str, planned: str, has: str | None, *, is_another: bool) -> None:
    assert differs("postgresql", name, planned, has) is is_another
