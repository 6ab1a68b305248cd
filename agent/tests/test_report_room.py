"""Nothing that a node's users write makes the agent large, or a report larger than a server takes."""

from __future__ import annotations

import importlib.util
import json
import re
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hugeplan_agent.collectors import cgroup_tree, collect_all, databases, fitting, process_table, units
from hugeplan_agent.collectors.cgroup_owners import hierarchy
from hugeplan_agent.collectors.cgroup_tree import MAX_PATH_BYTES, membership, paths
from hugeplan_agent.collectors.engines.base import Settings
from hugeplan_agent.collectors.engines.postgresql import SETTINGS
from hugeplan_agent.collectors.process_table import table_of
from hugeplan_agent.host import Host
from hugeplan_agent.report import build
from hugeplan_agent.schema import MAX_SMALL
from tests.test_foreign import LOCAL, server
from tests.test_refused import SPOOL
from tests.test_report import IDENTITY, NOW, SCHEMA

Machine = Callable[[str], Host]
MANAGER = "/user.slice/user-1000.slice/user@1000.service"
DEEP = MANAGER + "".join(f"/{letter * 250}" for letter in "abcdefghijklmn") + "/\U0001f600"


@pytest.fixture
def host(machine: Machine) -> Host:
    return machine("kubernetes-v2")


def start(host: Host, pid: int, cgroup: str, name: str = "sleep") -> Path:
    """A process of a local user that holds next to nothing."""
    place = host.path(f"proc/{pid}")
    place.mkdir()
    tail = "0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 7 2097152 100 18446744073709551615"
    (place / "stat").write_text(f"{pid} ({name}) S 1 {pid} {pid} {tail}\n")
    (place / "status").write_text(f"Name:\t{name}\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t{pid}\nRssAnon:\t4 kB\n")
    (place / "cgroup").write_text(f"0::{cgroup}\n")
    return place


def test_many_processes_in_the_longest_cgroup_take_little_and_count_for_the_one_above(host: Host) -> None:
    for pid in range(40000, 40400):
        start(host, pid, DEEP)
    host.path(f"sys/fs/cgroup{DEEP[:2000].rpartition('/')[0]}").mkdir(parents=True)
    table_of(host)
    tracemalloc.start()
    placed = units.placement(host)
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1_500_000, "each had a path of 15 KB of its own"
    assert len({id(membership(host, pid, (pid, 7))) for pid in range(40000, 40400)}) == 1
    unit = next(unit for unit in placed.units if unit.path == MANAGER)
    assert len(unit.processes) == 400


def test_a_cgroup_with_a_long_path_is_said_not_to_be_read(host: Host) -> None:
    folder = host.path(f"sys/fs/cgroup{DEEP[:1150].rpartition('/')[0]}")
    folder.mkdir(parents=True)
    tree = hierarchy(host, "memory")
    assert tree is not None
    cut: list[str] = []
    found = list(paths(host, tree, cut))
    longest = max(found, key=len)
    assert MAX_PATH_BYTES - 256 < len(longest) <= MAX_PATH_BYTES
    assert cut == [longest]


def test_of_one_account_as_many_memberships_are_kept_as_cgroups(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_tree, "MAX_OF_SHARE", 10)
    for pid in range(40000, 40040):
        start(host, pid, f"{MANAGER}/{pid}")
    start(host, 40040, "/user.slice/user-1002.slice/session-1.scope")
    found = {pid: membership(host, pid, (pid, 7))[""] for pid in range(40000, 40041)}
    assert len({found[pid] for pid in range(40000, 40040)}) == 11
    assert found[40039] == "/user.slice/user-1000.slice"
    assert found[40040] == "/user.slice/user-1002.slice/session-1.scope", "others keep theirs"
    for pid in range(40000, 40040):
        (host.path(f"proc/{pid}") / "stat").unlink()
    host.begin()
    start(host, 40050, f"{MANAGER}/40050")
    assert membership(host, 40050, (40050, 7))[""] == f"{MANAGER}/40050", "of those that have ended nothing is kept"


CRON = "/system.slice/cron.service"


@pytest.mark.parametrize("pages", [100, 5000])
def test_processes_of_any_size_are_bounded_and_those_of_others_stay(
    host: Host, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    pods = [f"/kubepods.slice/kubepods-pod{pod * 8}_0000_0000_0000_{pod * 12}.slice" for pod in "ab"]
    for pid in range(50000, 50010):  # of the same user id; the last ones in the order of /proc
        start(host, pid, pods[0])
    for pid in range(50010, 50013):  # a job of root's, beside those of users in the same service
        status = start(host, pid, CRON) / "status"
        status.write_text(status.read_text().replace("1000", "0"))
    host.begin()
    before = set(table_of(host).by_pid)
    monkeypatch.setattr(process_table, "MAX_KEPT", 100, raising=False)
    monkeypatch.setattr(process_table, "CUT_EVERY", 30, raising=False)
    resident = "2097152 100 ", f"2097152 {pages} "
    for pid in range(40000, 40400):
        stat = start(host, pid, MANAGER if pid % 2 else CRON) / "stat"
        stat.write_text(stat.read_text().replace(*resident))
    large = host.path("proc/40399/stat")
    large.write_text(large.read_text().replace(f" {pages} ", " 999999 ").replace(" 7 ", " 6 "))
    host.begin()
    table = table_of(host)
    assert before | {40399} <= set(table.by_pid)
    assert list(table.by_pid) == sorted(table.by_pid)
    assert len(table.by_pid) == 100
    assert table.left_out == len(before) + 400 - 100
    of_manager = sum(pid % 2 for pid in table.by_pid if 40000 <= pid < 40400)
    assert abs(2 * of_manager - (100 - len(before))) <= 6, "both accounts have as many, root's counted with the service"
    reason = next(one["reason"] for one in collect_all(host).results if one["name"] == "processes")
    assert f"{table.left_out} processes beyond" in reason


def test_of_one_account_what_matters_stays_and_the_oldest(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid in range(40000, 40300):
        stat = start(host, pid, MANAGER) / "stat"
        stat.write_text(stat.read_text().replace(" 7 2097152 100 ", f" {pid % 100} 2097152 {5000 * (pid >= 40200)} "))
    monkeypatch.setattr(process_table, "MAX_KEPT", 170, raising=False)
    monkeypatch.setattr(process_table, "CUT_EVERY", 10, raising=False)
    host.begin()
    kept = {pid for pid in table_of(host).by_pid if 40000 <= pid < 40300}
    assert set(range(40200, 40300)) <= kept, "the last ones, and large"
    small = {pid for pid in kept if pid < 40200}
    assert small
    assert {pid % 100 for pid in small} == set(range((len(small) + 1) // 2))


TYPES: Mapping[str, Any] = SCHEMA["$defs"]
FORMS = ("2026-11-20T12:00:00Z", "00000000-0000-4000-8000-000000000000", "a" * 64, "machine")
MANY = 20_000


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema or "oneOf" in schema:
        schema = schema["oneOf"][1] if "oneOf" in schema else TYPES[schema["$ref"].rpartition("/")[2]]
    return schema


def extremes(schema: Mapping[str, Any], beyond: int = 0) -> Iterator[Any]:
    """The least, then the most of everything that a schema accepts, one thing at a time; or what is beyond it."""
    schema = resolved(schema)
    kinds = schema.get("type")
    kind = next((one for one in kinds if one != "null"), None) if isinstance(kinds, list) else kinds
    if "const" in schema or "enum" in schema:
        yield from schema.get("enum") or [schema["const"]]
    elif kind == "string":
        is_form = [form for form in FORMS if re.search(schema.get("pattern", "$^"), form)]
        yield from is_form or ["x" * (schema.get("minLength", 0)), "x" * (schema.get("maxLength", MANY) + beyond)]
    elif kind in ("integer", "number"):
        yield from (schema.get("minimum", -(10**30)), schema.get("maximum", 10**30) + beyond)
    elif kind == "boolean":
        yield True
    elif kind == "array":
        yield [next(extremes(schema["items"]))] * (schema.get("maxItems", MANY) + beyond)
        yield from ([one] for one in extremes(schema["items"], beyond))
    else:
        yield from extreme_tables(schema, beyond)


def extreme_tables(schema: Mapping[str, Any], beyond: int) -> Iterator[dict[str, Any]]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    least = {name: next(extremes(properties.get(name, others))) for name in schema.get("required", ())}
    yield least
    for name, part in properties.items():
        yield from ({**least, name: value} for value in extremes(part, beyond))
    if others:
        yield from ({**least, "memory": value} for value in extremes(others, beyond))
        entry = next(extremes(others))
        yield {**least, **{f"n{number}": entry for number in range(schema.get("maxProperties", 50) + beyond)}}


@pytest.mark.skipif(importlib.util.find_spec("hugeplan") is None, reason="the service is not installed here")
def test_whatever_the_schema_accepts_the_service_takes() -> None:
    model = importlib.import_module("hugeplan.documents.report").Report
    refused, reports = set(), list(extremes(SCHEMA))
    for report in reports:
        try:
            model.model_validate({**report, "run": None})
        except ValueError as error:
            # What two fields have to do with each other is the collectors' own: ids that differ, powers of two.
            found = [one for one in error.errors() if one["type"] != "value_error"]  # type: ignore[attr-defined]
            refused |= {(".".join(str(part) for part in one["loc"] if part), one["msg"]) for one in found}
    assert not refused
    assert len(reports) > 500


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("name", ["unit", "database", "hugetlb_cgroup", "huge_page_mapping", "kubelet", "unit_memory"])
def test_an_entry_is_left_out_where_the_schema_refuses_it(name: str, beyond: int) -> None:
    validator = Draft202012Validator({**TYPES[name], "$defs": TYPES})
    seen = set()
    for entry in extremes(TYPES[name], beyond):
        is_valid = validator.is_valid(entry)
        seen.add(is_valid)
        assert (fitting.refusal(entry, TYPES[name], TYPES) is None) == is_valid, entry
    assert seen == ({True, False} if beyond else {True})
    assert fitting.refusal("", TYPES[name], TYPES) == ": not a object"


def test_what_a_service_would_refuse_is_left_out_alone_and_said_so(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "memory_of", lambda one: {"source": "x" if one.server.main.pid == 26001 else "rss"})
    server(host, 26001, LOCAL)
    server(host, 26002, LOCAL)
    seen = collect_all(host)
    assert {one["main_pid"] for one in seen.sample["databases"]} >= {26002, 2201}
    assert 26001 not in {one["main_pid"] for one in seen.sample["databases"]}
    reason = next(one["reason"] for one in seen.results if one["name"] == "databases")
    assert reason.startswith("1 databases are left out: memory source: not one of its words")


@pytest.mark.parametrize(
    ("program", "folder"),
    [("mysqld", "/opt/mysql-{}.2"), ("mariadbd", "/opt/mariadb-{}.2"), ("java", "/opt/jdk-{}/bin")],
)
def test_a_version_without_end_costs_no_report(host: Host, program: str, folder: str) -> None:
    place = server(host, 26001, LOCAL, program=program)
    (place / "exe").symlink_to(f"{folder.format('1' * 200)}/{program}")
    seen = collect_all(host)
    found = {one["main_pid"]: one for one in seen.sample["databases"]}
    assert (found[26001]["version"], found[26001]["version_source"]) == (None, None)
    assert 2201 in found


LONG = "lxc.payload.{}" + "\x01" * 230
WORDS = [word for name in sorted(SETTINGS) for word in ("-c", f"{name}=" + '",' * 128)]


def test_a_report_is_small_whatever_users_write_and_has_what_others_run(host: Host) -> None:
    before = collect_all(host).sample
    for number in range(300):
        place = server(host, 30000 + number, LOCAL, program="postgres", cgroup=f"{MANAGER}/{LONG.format(number)}")
        (place / "cmdline").write_text("\0".join(["postgres", *WORDS]) + "\0")
    top = host.path("sys/fs/cgroup")
    (top / "cgroup.controllers").write_text("cpu memory hugetlb\n")
    for number in range(600):
        folder = top / MANAGER[1:] / LONG.format(number)
        folder.mkdir(parents=True)
        for name, text in (("memory.stat", "anon 900000000\nshmem 0\n"), ("hugetlb.2MB.current", "2097152")):
            (folder / name).write_text(text)
    for name in ("hugetlb.2MB.current", "hugetlb.2MB.max"):
        (top / "system.slice" / name).write_text("4194304")
    host.begin()
    seen = collect_all(host)
    report = build(seen, IDENTITY, now=NOW, run=None, spool=SPOOL)
    text = json.dumps(report, separators=(",", ":"))
    assert len(text) < 2 << 20
    assert sum(map(text.count, ",[{")) < 130_000, "of which a service takes 150,000"
    for section in ("units", "databases"):
        assert {one["key"] for one in before[section]} <= {one["key"] for one in seen.sample[section]}
    assert "/system.slice" in {one["cgroup_path"] for one in seen.sample["hugetlb_cgroups"]}
    reasons = {one["name"]: one["reason"] or "" for one in seen.results}
    assert "left out for want of room" in reasons["databases"]
    assert "left out for want of room" in reasons["units"]


@pytest.mark.parametrize(("value", "is_one"), [("a\tb", True), ("\U0001f600", False), ("\x01", False), ("é", False)])
def test_a_setting_is_one_line_of_ascii(value: str, is_one: bool) -> None:
    settings = Settings(frozenset({"work_mem"}))
    settings.put("work_mem", "4MB", "a")
    settings.put("work_mem", value, "b")
    assert settings.found["work_mem"]["source"] == ("b" if is_one else "a")
    assert settings.complete is (None if is_one else False)


def test_of_many_bytes_each_owner_keeps_as_many() -> None:
    entries = [("x" * 1000, "eve", False)] * 50 + [("y" * 100, "db", None)] * 5 + [("z" * 3000, "web", None)]
    kept = fitting.within(entries, 10_000)
    assert [kept.count(text) for text in ("x" * 1000, "y" * 100, "z" * 3000)] == [6, 5, 1]
    assert fitting.within(entries, 1 << 20) == [entry for entry, *_ in entries]
    assert fitting.refusal(MAX_SMALL + 1, TYPES["number"], TYPES) is not None


def test_what_stays_is_left_out_last_but_is_no_way_to_hide_others() -> None:
    web = [(f"web{number} {'x' * 500}", f"web{number}", False) for number in range(20)]
    db = [(f"db{number} {'y' * 500}", f"web{number}", True) for number in range(12)]
    kept = fitting.within(web + db, 12 * 520)
    assert [text[:2] for text in kept] == ["db"] * 12
    eve = [(f"eve{number} {'z' * 500}", "eve", True) for number in range(100)]
    kept = fitting.within(eve + web + db[:2], 16 * 520)
    assert [sum(text.startswith(whose) for text in kept) for whose in ("eve", "web", "db")] == [1, 13, 2]


@pytest.mark.parametrize("what", ["a database", "huge pages", "a limit of huge pages"])
def test_of_many_pods_those_that_hold_a_database_or_huge_pages_stay(host: Host, what: str) -> None:
    wanted = set()
    for number in range(250):
        uid = f"{number:08x}-0000-4000-8000-000000000000"
        pod = f"/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice"
        for container in range(3):
            folder = host.path(f"sys/fs/cgroup{pod}/cri-containerd-{number:032x}{container:032x}.scope")
            folder.mkdir(parents=True)
            (folder / "memory.stat").write_text(f"anon {9000000 + 10000000 * (number < 200)}\nshmem 0\n")
            start(host, 40000 + 3 * number + container, f"{pod}/{folder.name}")
        (host.path(f"sys/fs/cgroup{pod}") / "memory.stat").write_text(
            f"anon {90000000 if number < 200 else 40000000}\nshmem 0\n"
        )
        if number >= 200:  # the smallest
            if what == "a database":
                server(host, 30000 + number, 999, program="postgres", cgroup=f"{pod}/{folder.name}")
            else:
                (folder / "hugetlb.2MB.current").write_text(f"{0 if 'limit' in what else 4194304}\n")
                (folder / "hugetlb.2MB.max").write_text("4194304\n" if "limit" in what else "max\n")
            wanted |= {pod, f"{pod}/{folder.name}"}
    if what != "a database":
        host.path("sys/fs/cgroup/cgroup.controllers").write_text("cpu memory hugetlb\n")
    host.begin()
    seen = collect_all(host)
    assert "left out for want of room" in next(one["reason"] for one in seen.results if one["name"] == "units")
    kept = {unit["cgroup_path"] for unit in seen.sample["units"]}
    assert wanted <= kept
    assert len(json.dumps(seen.sample["units"], separators=(",", ":"))) <= fitting.SHARES["units"]
