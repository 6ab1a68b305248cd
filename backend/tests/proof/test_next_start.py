"""What a server asks for at its next start, and what one that grows may still take, are part of what is in force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from artifacts.samples import request_of
from proof.test_checks import M2, good, server_of

from hugeplan.planner.model import MIB, DatabaseInstance, Plan, PoolPlan, State
from hugeplan.planner.plan import plan
from hugeplan.proof import Observation, Verdict, verify
from hugeplan.proof.causes import Cause

AS_PLANNED = {"shared_buffers": "4GB", "max_connections": "100", "huge_pages": "on"}


def verdict_of(found: Plan, report: dict[str, Any], settings: dict[str, str] | None = None) -> Verdict:
    if settings is not None:
        server_of(report)["settings"] = {name: {"value": v, "source": "own.conf"} for name, v in settings.items()}
        server_of(report)["settings_complete"] = True
    return verify(found, Observation(report["inventory"], report["sample"]))


@pytest.mark.parametrize(
    ("settings", "cause", "said"),
    [
        ({"wal_buffers": "1GB"}, Cause.OTHER, "wal_buffers = -1, its server has 1GB (own.conf)"),
        ({"max_prepared_transactions": "20000"}, Cause.OTHER, "max_prepared_transactions = 0, its server has 20000"),
        ({"max_worker_processes": "4000"}, Cause.OTHER, "At its next start it asks for"),
        (
            {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.max": "100000"},
            Cause.OTHER,
            "statements.max = its default",
        ),
        ({"huge_pages": "off"}, Cause.NOT_RESTARTED, "Its configuration says huge_pages = off (own.conf)"),
        ({"huge_page_size": "1GB"}, Cause.OTHER, "At its next start it asks for 0 pages of 2M"),
        ({"shared_memory_type": "sysv"}, Cause.OTHER, "At its next start it asks for 0 pages of 2M"),
        ({"shared_buffers": "5GB"}, Cause.OTHER, "shared_buffers = 4GB, its server has 5GB"),
        ({"shared_buffers": "3GB"}, Cause.NOT_RESTARTED, "shared_buffers = 4GB, its server has 3GB"),
        (
            {"shared_buffers": "3GB", "shared_preload_libraries": "pg_prewarm,auto_explain"},
            Cause.NOT_RESTARTED,
            "The plan counts with shared_buffers = 4GB, its server has 3GB (own.conf).",
        ),
        ({"wal_buffers": "16MB", "huge_page_size": "2MB"}, Cause.IN_FORCE, ""),
        ({"shared_buffers": "4294967296B", "work_mem": "1GB"}, Cause.IN_FORCE, ""),
        ({"shared_buffers": "0x80000"}, Cause.IN_FORCE, ""),
    ],
)
def test_a_setting_that_was_counted_at_its_default_is_looked_at(
    settings: dict[str, str], cause: Cause, said: str
) -> None:
    """Found: "in force" beside wal_buffers = 1GB, appended to its file: PostgreSQL did not start again."""
    verdict = verdict_of(*good(), AS_PLANNED | settings)
    text = " ".join(f"{f.title} {f.reason}" for f in verdict.findings if f.code == "verify_settings")
    assert (verdict.cause, said in text, bool(text)) == (cause, True, bool(said))


@pytest.mark.parametrize(
    ("now", "mapped_mib", "said"),
    [
        ({}, 0, ""),
        ({"shared_buffers": "3GB"}, 0, "The plan counts with shared_buffers = 4GB, its server has 3GB (own.conf)."),
        ({"shared_buffers": "5GB"}, 0, "asks for 2,6"),
        ({}, 1024, ""),  # it still maps what it did before the plan's file was installed
        ({"shared_preload_libraries": ""}, 0, "asks for "),
    ],
)
def test_bytes_of_a_library_that_no_rule_knows_are_those_of_the_plan(
    now: dict[str, str], mapped_mib: int, said: str
) -> None:
    """Found: 540 pages asked for, where 278 were planned and asked for: the running segment was of older settings."""
    settings = AS_PLANNED | {"shared_preload_libraries": "pg_trgm"}
    found, report = of_engine("postgresql", version="17", settings=settings, extension_bytes=60 * MIB)
    server_of(report)["segments"][0]["bytes"] += mapped_mib * MIB
    verdict = verdict_of(found, report, settings | now)
    text = " ".join(f"{f.title} {f.reason}" for f in verdict.findings if f.code == "verify_settings")
    assert (said in text, bool(text)) == (True, bool(said)), text


@pytest.mark.parametrize(
    ("planned", "now", "cause", "named"),
    [
        ("", "timescaledb", Cause.NOT_OBSERVED, "timescaledb"),
        ("", "citus, pg_prewarm,pg_cron", Cause.NOT_OBSERVED, "citus, pg_cron"),
        ("pg_trgm", "pg_trgm,timescaledb", Cause.NOT_OBSERVED, "timescaledb"),
        ("pg_trgm", "timescaledb", Cause.NOT_OBSERVED, "timescaledb"),
        ("pg_trgm,pg_prewarm", 'pg_prewarm, "$libdir/pg_trgm"', Cause.IN_FORCE, ""),
        ("", "pg_prewarm,auto_explain", Cause.IN_FORCE, ""),
        ("pg_trgm", "pg_trgm,pg_stat_statements", Cause.OTHER, ""),
        ("pg_trgm", "pg_trgm", Cause.NOT_OBSERVED, "pg_trgm"),  # in its file, and not loaded
    ],
)
@pytest.mark.parametrize("extension_bytes", [60 * MIB, None])
def test_a_library_that_no_rule_knows_is_one_of_the_plans(
    planned: str, now: str, cause: Cause, named: str, extension_bytes: int | None
) -> None:
    """Found: "in force" where timescaledb came after the plan: with huge_pages = on the server may not start again."""
    libraries = {"shared_preload_libraries": planned} if planned else {}
    settings = AS_PLANNED | libraries
    found, report = of_engine("postgresql", version="17", settings=settings, extension_bytes=extension_bytes)
    loaded = {"loaded_libraries": ""} if named == planned else {}
    verdict = verdict_of(found, report, AS_PLANNED | {"shared_preload_libraries": now} | loaded)
    said = [f"{one.title} {one.reason}" for one in verdict.findings if one.code == "verify_settings" and named]
    if extension_bytes is not None or cause is not Cause.OTHER:  # else its pages are within the error
        assert verdict.cause is cause
    assert len(said) == bool(named)
    assert all(f"shared_preload_libraries names {named}," in one and "is not known" in one for one in said)


def test_where_it_asks_for_no_huge_pages_a_new_library_makes_no_difference() -> None:
    found, report = of_engine("postgresql", version="17", settings=AS_PLANNED)
    now = AS_PLANNED | {"shared_preload_libraries": "timescaledb", "huge_pages": "off"}
    assert verdict_of(found, report, now).cause is Cause.NOT_RESTARTED


def test_a_plan_that_did_not_keep_its_libraries_is_judged_without_them() -> None:
    settings = AS_PLANNED | {"shared_preload_libraries": "pg_trgm"}
    found, report = of_engine("postgresql", version="17", settings=settings, extension_bytes=60 * MIB)
    (one,) = found.instances
    kept = {name: said for name, said in (one.counted_settings or {}).items() if name != "shared_preload_libraries"}
    found = replace(found, instances=(replace(one, counted_settings=kept),))
    assert verdict_of(found, report, settings).cause is Cause.IN_FORCE


def test_a_log_of_larger_files_is_counted_as_it_was_planned() -> None:
    """No report says wal_segment_size, which is chosen once: its buffers follow it."""
    found, report = good()
    (before,) = request_of("postgresql", nodes=1).databases
    settings = {**before.settings, "wal_segment_size": "256MB"}
    planned = plan(replace(request_of("postgresql", nodes=1), databases=(replace(before, settings=settings),)))
    pages = planned.instances[0].demand.pages
    assert pages > found.instances[0].demand.pages
    server_of(report)["segments"][0]["bytes"] = pages * M2
    found = replace(found, instances=planned.instances)
    assert verdict_of(found, report, AS_PLANNED).cause is Cause.IN_FORCE


def test_a_server_that_maps_more_than_planned_is_not_in_force() -> None:
    """Found: 648 pages mapped, 140 planned, beside an old pool: in force, and after the boot it did not start."""
    found, report = good()
    server_of(report)["segments"][0]["bytes"] += 30 * M2
    verdict = verdict_of(found, report)
    assert verdict.cause is Cause.OTHER
    assert [f.title[:8] for f in verdict.findings if f.code == "verify_engine"] == ["It maps "]


@pytest.mark.parametrize(("settings", "cause"), [({}, Cause.NOT_RESTARTED), ({"large_pages": "ON"}, Cause.IN_FORCE)])
def test_huge_pages_that_are_off_by_default_are_off(settings: dict[str, str], cause: Cause) -> None:
    found, report = of_engine("mariadb", version="11.4", settings={"innodb_buffer_pool_size": "1G"})
    assert verdict_of(found, report, {"innodb_buffer_pool_size": "1073741824"} | settings).cause is cause


def of_engine(engine: str, **fields: Any) -> tuple[Plan, dict[str, Any]]:
    """A plan of one instance in a pool of its demand, and the report of its server on all of its pages."""
    _, report = good()
    request = request_of("postgresql", nodes=1)
    one = DatabaseInstance(name=engine, engine=engine, page_bytes=M2, **fields)
    found = plan(replace(request, databases=(one,)))
    pages = found.instances[0].demand.pages
    pool = PoolPlan(numa_node=0, page_bytes=M2, demand_pages=pages, slack_pages=0, pages=pages, present_pages=0)
    report["sample"]["pools"][0]["nr_hugepages"] = report["sample"]["global_pools"][0]["nr_hugepages"] = pages
    server_of(report).update(engine=engine, key=f"{engine}@x", version=fields["version"])
    server_of(report)["segments"][0]["bytes"] = pages * M2
    return replace(found, pools=(pool,), kubernetes=None), report


ZGC = {"Xmx": "1024m", "Xms": "64m", "UseZGC": "true", "UseLargePages": "true"}


@pytest.mark.parametrize(
    ("settings", "idle", "state", "cause"),
    [
        (ZGC, 480, State.OK, Cause.IN_FORCE),
        (ZGC, 400, State.WRONG, Cause.HELD),
        (ZGC, None, State.UNKNOWN, Cause.NOT_OBSERVED),
        (ZGC | {"Xmx": "2048m"}, 480, State.OK, Cause.OTHER),
        ({**ZGC, "UseZGC": "false", "UseG1GC": "true"}, 480, State.UNKNOWN, Cause.OTHER),
    ],
)
def test_a_collector_that_maps_as_it_grows_is_judged_by_what_it_may_still_take(
    settings: dict[str, str], idle: int | None, state: State, cause: Cause
) -> None:
    """Found: of a ZGC whose Xms is below Xmx, "its settings are not the plan's" right after the plan was applied."""
    found, report = of_engine("jvm", version="25", settings=ZGC)
    pages = found.instances[0].demand.pages
    server_of(report)["segments"][0]["bytes"] = (pages - 480) * M2
    report["sample"]["global_pools"][0]["free_hugepages"] = idle
    verdict = verdict_of(found, report, settings)
    assert [f.state for f in verdict.findings if f.code == "verify_engine"] == [state]
    assert verdict.cause is cause
