"""The report document against its JSON Schema."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import hugeplan_agent
from hugeplan_agent import report_schema
from hugeplan_agent.collectors import COLLECTORS, Collected, collect_all
from hugeplan_agent.errors import CollectError, NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.report import Identity, build
from hugeplan_agent.schema import BYTES
from tests.factories import make_spool

PUBLISHED = (Path(hugeplan_agent.__file__).parent / "report.schema.json").read_text()
SCHEMA = json.loads(PUBLISHED)
MACHINES = ("xeon-two-sockets", "arm64-64k", "riscv-bare", "zen5-guest", "kubernetes-v1", "kubernetes-v2")
VALIDATOR = Draft202012Validator(SCHEMA)
NOW = datetime(2026, 11, 20, 12, 0, 0, 500_000, tzinfo=timezone.utc)
IDENTITY = Identity("0123456789abcdef0123456789abcdef", "db-7", synthetic=True)
Machine = Callable[[str], Host]


@pytest.fixture
def report(machine: Machine, tmp_path: Path) -> dict[str, Any]:
    return make(machine("xeon-two-sockets"), tmp_path)


def make(host: Host, folder: Path, run: dict[str, Any] | None = None) -> dict[str, Any]:
    return build(collect_all(host), IDENTITY, now=NOW, run=run, spool=make_spool(folder / "spool").summary())


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_published_schema_is_what_the_collectors_declare() -> None:
    assert report_schema.text(report_schema.document()) + "\n" == PUBLISHED, "run: make schemas"


def test_every_type_that_the_schema_refers_to_is_declared_and_used() -> None:
    assert set(re.findall(r'"\$ref": "#/\$defs/(\w+)"', PUBLISHED)) == set(SCHEMA["$defs"])


@pytest.mark.parametrize("part", ["inventory", "sample", "definitions"])
def test_two_collectors_cannot_declare_one_entry(part: str) -> None:
    two = {name: Collector(absent, **{part: {"uptime_bytes": BYTES}}) for name in ("uptime", "boot_time")}
    with pytest.raises(ValueError, match="the collector boot_time declares uptime_bytes, which is declared already"):
        report_schema.document(two)


def test_no_collector_can_declare_what_the_frame_declares() -> None:
    with pytest.raises(ValueError, match="the collector clock declares taken_at"):
        report_schema.document({"clock": Collector(absent, sample={"taken_at": BYTES})})


def absent(_: Host) -> Fragment:
    raise NoData("no such thing here")


@pytest.mark.parametrize("name", MACHINES)
def test_collectors_fill_only_what_they_declare(machine: Machine, name: str) -> None:
    """The schema allows fields that it does not know, so only this finds an entry that nobody described."""
    host = machine(name)
    filled = 0
    for title, collector in COLLECTORS.items():
        try:
            fragment = collector.collect(host)
        except NoData:
            continue
        filled += 1
        assert fragment.inventory.keys() <= collector.inventory.keys(), title
        assert fragment.sample.keys() <= collector.sample.keys(), title
    assert filled


@pytest.mark.parametrize("name", MACHINES)
def test_reports_of_all_machines_fit_the_schema(machine: Machine, tmp_path: Path, name: str) -> None:
    VALIDATOR.validate(make(machine(name), tmp_path))


def test_the_documented_example_fits_the_schema() -> None:
    example = json.loads((Path(__file__).parents[2] / "docs" / "report.example.json").read_text())
    VALIDATOR.validate(example)
    assert example["synthetic"], "examples are labelled"


def test_the_report_of_this_machine_fits_the_schema(tmp_path: Path) -> None:
    VALIDATOR.validate(make(Host("/"), tmp_path))


def test_moments_are_utc_with_milliseconds(report: dict[str, Any]) -> None:
    assert report["created_at"] == "2026-11-20T12:00:00.500Z"
    assert report["sample"]["taken_at"] == "2026-11-20T12:00:00.500Z"


def test_every_report_has_its_own_id(machine: Machine, tmp_path: Path) -> None:
    host = machine("riscv-bare")
    assert make(host, tmp_path)["report_id"] != make(host, tmp_path)["report_id"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("report_id",), "1"),
        (("machine_id",), ""),
        (("created_at",), "yesterday"),
        (("sample", "memory", "mem_total_bytes"), 0),
        (("sample", "memory", "mem_free_bytes"), -1),
        (("sample", "memory", "mem_free_bytes"), "7"),
        (("sample", "pools", 0, "nr_hugepages"), None),
        (("sample", "pools", 0, "page_bytes"), 1),
        (("inventory", "architecture"), None),
        (("collectors", 0, "status"), "fine"),
        (("run",), {"schema_version": 2}),
        (("spool", "pending"), -1),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_the_schema_refuses_nonsense(report: dict[str, Any], path: tuple[str | int, ...], value: object) -> None:
    broken = copy.deepcopy(report)
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert list(VALIDATOR.iter_errors(broken))


def test_unknown_memory_is_an_error_not_a_report(machine: Machine, tmp_path: Path) -> None:
    host = machine("riscv-bare")
    host.path("proc/meminfo").unlink()
    with pytest.raises(CollectError, match=r"memory is unknown.*proc/meminfo does not exist"):
        make(host, tmp_path)


def test_an_unknown_processor_is_an_error_not_a_report(machine: Machine) -> None:
    collected = collect_all(machine("riscv-bare"))
    collected.inventory.pop("architecture")
    with pytest.raises(CollectError, match="processor is unknown"):
        build(collected, IDENTITY, now=NOW, run=None, spool={})


def test_the_benchmark_names_the_hypervisor_where_files_do_not(machine: Machine, tmp_path: Path) -> None:
    run = {"schema_version": 1, "environment": {"hypervisor": {"present": True, "name": "KVM"}}}
    guest = make(machine("zen5-guest"), tmp_path, run)
    assert (guest["inventory"]["virtualised"], guest["inventory"]["hypervisor"]) == (True, "KVM")
    unknown = make(machine("arm64-64k"), tmp_path, run)
    assert (unknown["inventory"]["virtualised"], unknown["inventory"]["hypervisor"]) == (True, "KVM")
    metal = make(machine("xeon-two-sockets"), tmp_path, run)
    assert (metal["inventory"]["virtualised"], metal["inventory"]["hypervisor"]) == (False, None)


def test_collected_starts_empty() -> None:
    assert Collected() == Collected({}, {}, [])
