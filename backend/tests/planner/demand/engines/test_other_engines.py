"""Oracle, Db2, generic segments, the engines without a pool, and the laws of the registry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.demand import ENGINES, DemandContext, PageChoice, demand_of, engine_named
from hugeplan.planner.demand.engines import db2, oracle
from hugeplan.planner.errors import (
    PlannerError,
    SettingValueError,
    UnitError,
    UnknownEngineError,
    UnknownSettingError,
    UnknownVersionError,
)
from hugeplan.planner.model import GIB, KIB, MIB, DatabaseInstance, Demand

POWER = DemandContext(
    arch="ppc64le",
    base_page_bytes=64 * KIB,
    huge_page_sizes_bytes=(2 * MIB, 16 * MIB, GIB, 16 * GIB),
    default_huge_page_bytes=16 * MIB,
)


def demand(
    engine: str,
    page_bytes: int = 2 * MIB,
    context: DemandContext | None = None,
    version: str | None = None,
    **values: object,
) -> Demand:
    given_settings = {name: str(value) for name, value in values.items()}
    instance = DatabaseInstance(name="x", engine=engine, version=version, settings=given_settings)
    return demand_of(instance, page_bytes, context or DemandContext())


class TestOracle:
    def test_two_segments_script_and_exact(self) -> None:
        segments = (21476933632, 21476933632)
        assert oracle.script_pages(segments, 2 * MIB) == 20485

    def test_script_refuses_below_100_mb_and_skips_small_segments(self) -> None:
        assert oracle.script_pages((MIB,), 2 * MIB) is None
        assert oracle.script_pages((MIB, 200 * MIB), 2 * MIB) == 102

    def test_150_gb_alert_log(self) -> None:
        assert demand("oracle", sga_target="150G").pages == 76801

    @pytest.mark.parametrize(
        ("sga", "granule"),
        [
            (GIB, 4),
            (GIB + 1, 16),
            (8 * GIB, 16),
            (16 * GIB, 32),
            (32 * GIB, 64),
            (64 * GIB, 128),
            (128 * GIB, 256),
            (129 * GIB, 512),
        ],
    )
    def test_granules(self, sga: int, granule: int) -> None:
        assert oracle.granule_bytes(sga) == granule * MIB

    def test_memlock_of_64_gib(self) -> None:
        assert oracle.memlock_kilobytes(64 * GIB) == 60397977
        assert oracle.memlock_kilobytes(64 * GIB, huge_pages=False) == 3145728

    def test_aix_regions_of_4_gib(self) -> None:
        assert oracle.aix_large_page_regions(4 * GIB) == 256

    def test_advice(self) -> None:
        advice = {
            s.name: s.value
            for s in demand("oracle", context=DemandContext(mem_total_bytes=64 * GIB), sga_target="8G").settings
        }
        assert advice["use_large_pages"] == "ONLY"
        assert advice["memory_target"] == "0"
        assert advice["memlock"] == "60397977"

    def test_the_fixed_segment_leaves_the_rest_of_its_page_empty(self) -> None:
        found = demand("oracle", GIB, DemandContext(default_huge_page_bytes=GIB), sga_target="8G")
        assert found.pages == 9
        assert found.waste_bytes == GIB - 2 * MIB

    @pytest.mark.parametrize("version", ["19c", "19", "19.3.0.0", "23ai", "21C", "11.2.0.4"])
    def test_releases_by_the_names_they_are_sold_under(self, version: str) -> None:
        found = demand("oracle", version=version, sga_target="8G")
        assert found.pages == 4097
        assert found.version == version

    def test_automatic_memory_management_has_no_sga(self) -> None:
        with pytest.raises(SettingValueError, match="sga_target"):
            demand("oracle")
        assert demand("oracle", memory_target="4G").segment_bytes >= 4 * GIB
        assert any("no huge page" in note for note in demand("oracle", memory_target="4G", sga_target="2G").notes)

    def test_pga_is_ordinary_memory(self) -> None:
        result = demand("oracle", sga_target="8G", pga_aggregate_target="3G", processes=300)
        assert (result.private_fixed_bytes, result.connections, result.process_per_connection) == (3 * GIB, 300, True)


class TestDb2:
    def test_a_bare_number_counts_4_kb_pages(self) -> None:
        assert demand("db2", database_memory="2097152").pool_bytes == 8 * GIB
        assert demand("db2", database_memory="8G").pages == 4096

    @pytest.mark.parametrize(("page_bytes", "pages"), [(64 * KIB, 524288), (16 * MIB, 2048), (16 * GIB, 2)])
    def test_power_page_sizes(self, page_bytes: int, pages: int) -> None:
        assert demand("db2", page_bytes, POWER, database_memory="32G").pages == pages

    def test_aix_commands(self) -> None:
        result = demand("db2", 16 * MIB, POWER, database_memory="4G", platform="aix")
        assert any("lgpg_regions=256 -o lgpg_size=16777216" in note for note in result.notes)
        huge = demand("db2", 16 * GIB, POWER, database_memory="32G", platform="aix")
        assert {s.name: s.value for s in huge.settings}["DB2_LARGE_PAGE_MEM"] == "DB:16GB"

    @pytest.mark.parametrize("value", ["AUTOMATIC", "computed"])
    def test_automatic_memory_is_refused(self, value: str) -> None:
        with pytest.raises(SettingValueError, match="database_memory"):
            demand("db2", database_memory=value)

    def test_a_digit_that_is_no_number_is_refused(self) -> None:
        with pytest.raises(UnitError, match="database_memory"):
            demand("db2", database_memory="²")

    def test_memory_must_be_given(self) -> None:
        with pytest.raises(SettingValueError, match="database_memory"):
            demand("db2")

    def test_sysctls_are_for_linux_only(self) -> None:
        machine = DemandContext(mem_total_bytes=64 * GIB)
        linux = {a.name: a.value for a in demand("db2", context=machine, database_memory="8G").settings}
        assert {name: value for name, value in linux.items() if name.startswith("kernel.")} == {
            "kernel.shmmni": str(256 * 64),
            "kernel.msgmni": "32768",
        }
        aix = demand("db2", context=machine, database_memory="8G", platform="aix").settings
        assert [a.name for a in aix] == ["DB2_LARGE_PAGE_MEM", "DATABASE_MEMORY"]

    @pytest.mark.parametrize(
        ("gib", "shmmni", "msgmni"), [(8, 4096, 32_000), (31, 7936, 32_000), (999, 32_768, 32_768)]
    )
    def test_sysctls_are_what_the_kernel_takes_and_never_lower_its_own(
        self, gib: int, shmmni: int, msgmni: int
    ) -> None:
        machine = DemandContext(mem_total_bytes=gib * GIB)
        linux = {a.name: a.value for a in demand("db2", context=machine, database_memory="4G").settings}
        assert (linux["kernel.shmmni"], linux["kernel.msgmni"]) == (str(shmmni), str(msgmni))

    def test_linux_ipc_minimums(self) -> None:
        least = db2.linux_ipc_minimums(64 * GIB)
        assert (least.shmmni, least.semmni, least.msgmni) == (16384, 16384, 65536)
        assert (least.shmmax_bytes, least.shmall_pages) == (64 * GIB, 2 * 64 * GIB // 4096)


class TestGeneric:
    def test_each_segment_is_rounded_on_its_own(self) -> None:
        result = demand("generic", GIB, segment_size="1500MiB", segments=3)
        assert (result.pages, result.waste_bytes) == (6, 6 * GIB - 3 * 1500 * MIB)

    def test_a_size_is_needed(self) -> None:
        with pytest.raises(SettingValueError, match="segment_size"):
            demand("generic")

    def test_processes_are_said(self) -> None:
        assert demand("generic", segment_size="1GiB", process_per_connection="on").process_per_connection


class TestNoPool:
    @pytest.mark.parametrize(
        ("engine", "version", "name", "value"),
        [
            ("hana", None, "transparent_hugepage/enabled", "madvise"),
            ("redis", None, "disable-thp", "yes"),
            ("mongodb", "8.0", "transparent_hugepage/enabled", "always"),
            ("mongodb", "7.0", "transparent_hugepage/enabled", "never"),
            ("sqlserver", None, "transparent_hugepage/enabled", "always"),
        ],
    )
    def test_the_right_answer_is_no_pool(self, engine: str, version: str | None, name: str, value: str) -> None:
        result = demand(engine, version=version)
        assert (result.wants_pool, result.pages, result.segment_bytes) == (False, 0, 0)
        assert {setting.name: setting.value for setting in result.settings}[name] == value

    @pytest.mark.parametrize(
        ("engine", "setting", "value", "expected"),
        [
            ("redis", "maxmemory", "4gb", 4 * GIB),
            ("mongodb", "wiredTigerCacheSizeGB", "1.5", 3 * GIB // 2),
            ("sqlserver", "memorylimitmb", "8192", 8 * GIB),
            ("hana", "global_allocation_limit", "16384", 16 * GIB),
        ],
    )
    def test_memory_is_ordinary_memory(self, engine: str, setting: str, value: str, expected: int) -> None:
        assert demand(engine, **{setting: value}).private_fixed_bytes == expected

    def test_memory_defaults_follow_the_node_or_are_unknown(self) -> None:
        node = DemandContext(mem_total_bytes=128 * GIB)
        assert demand("mongodb", context=node).private_fixed_bytes == 127 * GIB // 2
        assert demand("sqlserver", context=node).private_fixed_bytes == 128 * GIB * 8 // 10
        assert demand("hana", context=node).private_fixed_bytes == 64 * GIB * 9 // 10 + 64 * GIB * 97 // 100
        assert demand("redis", context=node).private_fixed_bytes is None
        assert demand("mongodb").private_fixed_bytes is None
        pod = DatabaseInstance(name="x", engine="mongodb", pod_memory_limit_bytes=5 * GIB)
        assert demand_of(pod, 2 * MIB, node).private_fixed_bytes == 2 * GIB
        assert demand_of(replace(pod, engine="sqlserver"), 2 * MIB, node).private_fixed_bytes == 4 * GIB


#: The least settings that each engine needs.
LEAST = {
    "oracle": {"sga_target": "8G"},
    "db2": {"database_memory": "8G"},
    "jvm": {"Xmx": "8g"},
    "generic": {"segment_size": "8GiB"},
}


class TestRegistry:
    def test_every_engine_is_there(self) -> None:
        servers = {"postgresql", "mysql", "mariadb", "oracle", "db2", "jvm", "generic"}
        without_a_pool = {"hana", "redis", "mongodb", "sqlserver"}
        assert set(ENGINES) >= servers | without_a_pool

    @pytest.mark.parametrize(
        ("alias", "name"), [("Postgres", "postgresql"), ("percona", "mysql"), ("java", "jvm"), ("mssql", "sqlserver")]
    )
    def test_aliases(self, alias: str, name: str) -> None:
        assert engine_named(alias).name == name

    def test_an_unknown_engine_is_named(self) -> None:
        with pytest.raises(UnknownEngineError, match="did you mean postgresql"):
            engine_named("postgresq")

    @pytest.mark.parametrize("name", sorted(ENGINES))
    @pytest.mark.parametrize("page_bytes", [4 * KIB, 2 * MIB, GIB])
    def test_every_engine_holds_its_promises(self, name: str, page_bytes: int) -> None:
        result = demand(name, page_bytes, **LEAST.get(name, {}))
        assert result.engine == name
        assert result.page_bytes == page_bytes
        assert result.pages == sum(segment.pages for segment in result.segments)
        assert result.pages * page_bytes == result.segment_bytes + result.waste_bytes
        assert result.waste_bytes >= 0
        assert result.wants_pool is (ENGINES[name].page_choice is not PageChoice.NONE)
        assert all(note.endswith(".") for note in result.notes)
        for segment in result.segments:
            assert segment.explanation.formula
            assert segment.explanation.reference

    @pytest.mark.parametrize("name", sorted(ENGINES))
    def test_every_engine_names_an_unknown_setting(self, name: str) -> None:
        with pytest.raises(UnknownSettingError, match="no_such_setting"):
            demand(name, **LEAST.get(name, {}), no_such_setting="1")

    @pytest.mark.parametrize("name", sorted(set(ENGINES) - {"generic"}))
    def test_every_engine_names_an_unknown_version(self, name: str) -> None:
        with pytest.raises(UnknownVersionError, match="no-version"):
            demand(name, version="no-version", **LEAST.get(name, {}))

    @pytest.mark.parametrize("name", sorted(ENGINES))
    def test_defaults_of_the_settings_table_are_accepted(self, name: str) -> None:
        engine = ENGINES[name]
        defaults = {
            spec.name: spec.default
            for spec in engine.settings
            if spec.default is not None
            and (not spec.versions or engine.versions[0] in spec.versions)
            and spec.name not in LEAST.get(name, {})
        }
        assert demand(name, **defaults, **LEAST.get(name, {})).pages >= 0

    @settings(deadline=None, max_examples=150)
    @given(st.sampled_from(sorted(ENGINES)), st.data(), st.text(max_size=12))
    def test_any_value_is_an_answer_or_a_planner_error(self, name: str, data: st.DataObject, text: str) -> None:
        spec = data.draw(st.sampled_from(ENGINES[name].settings))
        try:
            result = demand(name, **{**LEAST.get(name, {}), spec.name: text})
        except PlannerError as error:
            assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right; only the error has a shape
        else:
            assert result.pages >= 0

    def test_negative_connections_are_refused(self) -> None:
        with pytest.raises(PlannerError, match="connections"):
            demand_of(DatabaseInstance(name="x", engine="postgresql", connections=-1), 2 * MIB)

    def test_sizes_are_checked(self) -> None:
        with pytest.raises(UnitError, match="Xmx"):
            demand("jvm", Xmx="8 gigabytes")
