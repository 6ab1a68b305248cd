"""Names from strangers in every file: refused where a file uses them, harmless where it only shows them.

The files are read back by the programs that they are for: what a name smuggled in, such a program would say or run.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from artifacts.samples import EVERYTHING, loaded, request_of
from artifacts.test_kinds import needs, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hugeplan.artifacts import Artifact, Platform, refused, render
from hugeplan.artifacts.base import flaw
from hugeplan.artifacts.bundle import as_zip, bundle
from hugeplan.artifacts.engines.common import service_of
from hugeplan.artifacts.outside import folder_name, is_plain_host
from hugeplan.cli import main
from hugeplan.cli.terminal import tame
from hugeplan.planner.errors import PlannerError, UnknownSettingError
from hugeplan.planner.model import (
    GIB,
    DatabaseInstance,
    Meminfo,
    NodeSample,
    ObservedDatabase,
    ObservedHugetlbLimit,
    ObservedUnit,
    Plan,
    PlanRequest,
    SettingAdvice,
)
from hugeplan.planner.plan import plan

MARK = "hugeplan_was_here"
#: What each would do where it is not taken for a name.
HOSTILE = (
    "{{ lookup('pipe', 'touch hugeplan_was_here') }}",
    "{% set x = lookup('pipe', 'touch hugeplan_was_here') %}",
    "x{% endraw %}{{ lookup('pipe', 'touch hugeplan_was_here') }}{% raw %}",
    "x\u2028runcmd: [touch hugeplan_was_here]",
    "x\u2029runcmd: [touch hugeplan_was_here]",
    "x\u0085runcmd: [touch hugeplan_was_here]",
    "x\nruncmd: [touch hugeplan_was_here]",
    "x\r\nruncmd: [touch hugeplan_was_here]",
    "x\n[Service]\nExecStartPre=/usr/bin/touch hugeplan_was_here",
    "x\n...\n---\n- hosts: all",
    "x: {a: &a [*a]}",
    "!!python/object/apply:os.system ['touch hugeplan_was_here']",
    "$(touch hugeplan_was_here)",
    "`touch hugeplan_was_here`",
    "'; touch hugeplan_was_here; '",
    '"; touch hugeplan_was_here; "',
    "x; touch hugeplan_was_here #",
    "x && touch hugeplan_was_here",
    "${IFS}$HOME",
    "\\",
    "x \\",
    "%s%n%p%i%%",
    "&name",
    "x;\nDROP TABLE t;",
    "x -",
    "--flag=-rf",
    "-rf",
    "..",
    "../../../etc/cron.d/x",
    "/etc/passwd",
    "..\n",
    "a\x00b",
    "\x1b]0;title\x07\x1b[31mred",
    "\u202egnp.exe\u202c",
    "\ufeffx",
    "\U000e0001x",
    "all",
    "*",
    "!db",
    "~.*",
    "| <img src=x> | [a](javascript:b) | `c`",
    "--hugeplan\nContent-Type: text/x-shellscript\n\n#!/bin/sh\ntouch hugeplan_was_here",
    "x" * 100_000,
    "é" * 300,
    "",
    " ",
    ".",
)
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60), st.from_regex(r"\A[\x00-\x7f\u2028\u0085]{1,20}\Z"))


def named(request: PlanRequest, name: str) -> PlanRequest:
    """The request with ``name`` for each of its databases and tenants, and in what was observed of them."""
    databases = tuple(
        replace(each, name=f"{name}{i or ''}", settings={**each.settings, **_observed(each.engine, name)})
        for i, each in enumerate(request.databases)
    )
    return replace(request, databases=databases)


def _observed(engine: str, name: str) -> dict[str, str]:
    return {"listen_addresses": name} if engine == "postgresql" else {}


def planned(request: PlanRequest) -> Plan | None:
    try:
        return plan(request)
    except PlannerError:  # a setting or a name that the planner itself refuses
        return None


def all_files(request: PlanRequest) -> tuple[Artifact, ...]:
    found = planned(request)
    return () if found is None else render(found, request, force=True)


def hostile_requests(name: str) -> Iterator[PlanRequest]:
    for request in EVERYTHING:
        yield named(request, name)


def shape(value: Any) -> Any:
    """A document without its texts: what a name may not change."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


def lines_that_count(text: str) -> list[str]:
    """The lines of a file with comments, without them: what every reader of such a file sees, and none of the names."""
    return [line for line in text.splitlines() if not line.startswith(("#", "--"))]


def check_files(harmless: tuple[Artifact, ...], hostile: tuple[Artifact, ...]) -> None:
    """The hostile files say what the harmless ones say: only comments, names and values in quotes differ."""
    assert [a.path is None for a in harmless] == [a.path is None for a in hostile]
    for mild, wild in zip(harmless, hostile, strict=True):
        assert flaw(wild) is None
        if "yaml" in mild.media_type or mild.media_type == "text/cloud-config":
            assert shape(loaded(mild.content)) == shape(loaded(wild.content)), wild.kind
        elif mild.media_type == "application/json":
            assert shape(json.loads(mild.content)) == shape(json.loads(wild.content))
        elif mild.media_type == "application/toml":
            assert tomllib.loads(mild.content) == tomllib.loads(wild.content)
        else:
            assert lines_that_count(mild.content) == lines_that_count(wild.content), wild.kind


PLAIN = [all_files(named(request, "plain")) for request in EVERYTHING]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS)
def test_no_name_of_a_database_changes_what_a_file_says(name: str) -> None:
    for harmless, request in zip(PLAIN, hostile_requests(name), strict=True):
        files = all_files(request)
        if files:
            check_files(harmless, files)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_every_known_trick_in_a_databases_name(name: str) -> None:
    rendered_any = False
    for harmless, request in zip(PLAIN, hostile_requests(name), strict=True):
        files = all_files(request)
        rendered_any = rendered_any or bool(files)
        if files:
            check_files(harmless, files)
    assert rendered_any or name in {"", " "}


#: Settings that engines have and that change no page: what the server runs, reads or loads with them is a planner's.
RUNS = {
    "postgresql": {"archive_mode": "on", "archive_command": "touch x", "session_preload_libraries": "/srv/x",
                   "shared_preload_libraries": "/srv/pgaudit", "myapp.x": "$(touch x)", "data_directory": "/srv/x"},
    "mysql": {"init_file": "/srv/x.sql", "plugin-dir": "/srv/x", "innodb_page_size": "16K"},
    "mariadb": {"INIT-FILE": "/srv/x.sql", "plugin_dir": "/srv/x", "innodb_page_size": "16K"},
}  # fmt: skip


def running(request: PlanRequest, more: Callable[[DatabaseInstance], dict[str, str]]) -> PlanRequest:
    """The request over servers that run with its settings; ``more``: what the scenario says beside them."""
    servers = tuple(
        ObservedDatabase(key=str(i), engine=d.engine, version=d.version, settings=dict(d.settings))
        for i, d in enumerate(request.databases)
    )
    memory = Meminfo(
        mem_total_bytes=128 * GIB, mem_free_bytes=100 * GIB, mem_available_bytes=100 * GIB, anon_pages_bytes=GIB,
        shmem_bytes=GIB, page_tables_bytes=GIB // 1024,
    )  # fmt: skip
    databases = tuple(
        replace(d, runs_as=str(i), settings={**d.settings, **more(d)}) for i, d in enumerate(request.databases)
    )
    return replace(request, databases=databases, sample=NodeSample(memory=memory, databases=servers, processes=()))


#: Ends a line for whoever reads it; what follows would be a line of its own.
BREAK = f"\n{MARK} a\r\n{MARK} b\x0b{MARK} c\u2028{MARK} d\u0085{MARK} e"
#: Units of servers of every kind, where a report may say any text.
UNITS = (
    "systemd:{}.service", "systemd:mysqld@{}.service", "systemd:postgresql@{}.service", "systemd:{}patroni.service",
    "systemd:a/{}.service", "container:{}", "cgroup:/{}", "{}",
)  # fmt: skip
#: The planner's own words, and names that have no file at all where they are not what they should be.
NOT_TEXTS = {"engine", "arch", "provider", "reserve_at", "stateful_set", "container", "operator_object", "node"}


def broken(value: Any, at: str = "") -> Any:
    """``value`` with a line break in every text of it."""
    if type(value) is str:
        return f"{value[: len(value) // 2]}{BREAK}{value[len(value) // 2 :]}"
    if isinstance(value, tuple):
        return tuple(broken(item, at) for item in value)
    if isinstance(value, Mapping):
        return {key if at == "settings" else broken(key): broken(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type | SettingAdvice):
        names = [each.name for each in fields(value) if each.name not in NOT_TEXTS]
        return replace(value, **{name: broken(getattr(value, name), name) for name in names})
    if isinstance(value, SettingAdvice):  # its name and value are refused
        return replace(value, reason=broken(value.reason))
    return value


def began_by(text: str) -> list[str]:
    """The lines that a report began, also those that stand behind a comment's mark or in a list."""
    return [line for line in text.splitlines() if line.lstrip(" #-*|>\t").startswith(MARK)]


def seen(request: PlanRequest, unit: str, *, source: str = "postgresql.conf") -> PlanRequest:
    """The request over servers of this unit that have one setting less, which a file changes."""
    found = running(request, lambda _: {})
    assert found.sample is not None
    assert found.sample.databases is not None
    limits = (ObservedHugetlbLimit(page_bytes=2**21, counter="usage", limit_bytes=GIB, cgroup_path="/a"),)
    servers = tuple(
        replace(
            one, unit=unit, port=5432, settings=dict([*one.settings.items()][1:]),
            sources=dict.fromkeys([*one.settings, "huge_pages", "large_pages"], source),
            hugetlb_limits=limits,
        )
        for one in found.sample.databases
    )  # fmt: skip
    units = (ObservedUnit(key=unit, kind="service", name="x", cgroup_path="/x"),)
    return replace(found, sample=replace(found.sample, databases=servers, units=units))


@pytest.mark.parametrize("source", ["postgresql.conf", "postgresql.auto.conf", "command line"])
@pytest.mark.parametrize("unit", UNITS)
def test_no_text_of_a_report_begins_a_line_of_a_file_or_a_command(unit: str, source: str) -> None:
    """Over all kinds, in the files, the commands, README.md and the scripts."""
    for request in EVERYTHING:
        own = seen(request, unit.format("own"), source=source)
        found = planned(own)
        if found is None:
            continue
        hostile = replace(own, sample=broken(own.sample), databases=broken(own.databases), tenants=broken(own.tenants))
        alone = [seen(request, unit.format(f"x{text}"), source=source) for text in (f"\n{MARK}\n#", BREAK)]
        for result, asked in (*((found, each) for each in alone), (broken(found), hostile)):
            files = render(result, asked, force=True)
            assert files
            texts = [text for one in files for text in asdict(one).values() if isinstance(text, str)]
            texts += [one.text for one in bundle(result.node, result.headline, files)]
            assert [line for text in texts for line in began_by(text)] == []


def test_the_lines_that_a_report_began_are_found() -> None:
    """The proof above can fail."""
    for text in (f"# a{BREAK}", f"    # a\n    {MARK}", f"a\n#   {MARK}"):
        assert began_by(text)


@pytest.mark.parametrize(
    ("unit", "service"),
    [
        ("systemd:mysql@a\\x2db.service", "mysql@a\\x2db.service"), ("systemd:a:b_c-1.service", "a:b_c-1.service"),
        ("systemd:a\nb.service", None), ("systemd:a b.service", None), ("systemd:é.service", None),
        ("systemd:a'b.service", None), ("systemd:user@1000.service", None), ("systemd:a/b.service", None),
        ("systemd:.service", None), ("systemd:" + "a" * 300 + ".service", None), ("systemd:a.service\n", None),
    ],
)  # fmt: skip
def test_a_unit_has_a_name_that_systemd_gives(unit: str, service: str | None) -> None:
    assert service_of(unit) == service


AS_IT_RUNS = [all_files(running(request, lambda _: {})) for request in EVERYTHING]


def test_a_file_sets_nothing_but_what_its_plan_counts_with() -> None:
    """Of every kind, for every engine: else a planner says what the server's user, or root, runs."""
    kinds = set()
    for harmless, request in zip(AS_IT_RUNS, EVERYTHING, strict=True):
        files = all_files(running(request, lambda one: RUNS.get(one.engine, {})))
        check_files(harmless, files)
        kinds |= {a.kind.split("-")[0] for a in files}
    assert {"postgresql_conf", "my_cnf", "mariadb_cnf"} <= kinds


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, st.sampled_from(["{}", "x.{}", "{}.x", "{} = 'touch x' #.x", "shared_buffers = 1\n{}", "{}.x = 1 #"]))
def test_no_name_of_a_setting_changes_what_a_file_says(text: str, form: str) -> None:
    name = form.replace("{}", text)
    for harmless, request in zip(AS_IT_RUNS, EVERYTHING, strict=True):
        for engine in {one.engine for one in request.databases}:
            own = running(request, lambda one, engine=engine: {name: "1"} if one.engine == engine else {})
            files = all_files(own)
            if files:
                check_files(harmless, files)


@pytest.mark.parametrize(
    "name", ["ssl_passphrase_command = 'touch x' #.x", ".", "a.", ".b", "a..b", "a.b\nc", "1a.b", "a.b c", "é.x"]
)
def test_what_is_no_settings_name_is_refused(name: str) -> None:
    request = request_of("postgresql")
    with pytest.raises(UnknownSettingError):
        plan(running(request, lambda _: {name: "1"}))
    assert planned(running(request, lambda _: {"a.b": "1", "a.b$2": "x"})) is not None


@pytest.mark.parametrize("value", [" '2GB' ", "2GB"])
def test_a_changed_setting_is_written_as_the_engine_spells_it(value: str) -> None:
    own = running(request_of("postgresql"), lambda _: {"SHARED_BUFFERS": value, "pg_stat_statements.max": "7000"})
    text = next(a.content for a in all_files(own) if a.kind == "postgresql_conf")
    assert {"shared_buffers = '2GB'", "pg_stat_statements.max = '7000'"} <= set(lines_that_count(text))


def test_a_group_lists_hosts_and_nothing_else() -> None:
    request = request_of("postgresql")
    found = plan(request)
    names = [*HOSTILE, "-oProxyCommand=x", "10.0.0.5", "db-7", "db-8"]
    files = {f.path: f.text for f in bundle("db-7", found.headline, render(found, request), group=names)}
    assert files["nodes.txt"] == "db-7\ndb-8\n"
    readme = files["README.md"]
    assert f"{len(HOSTILE) + 2} of the {len(names)} nodes are left out of `nodes.txt`" in readme
    assert all(line.isprintable() for line in readme.split("\n"))
    assert "<img" not in readme.replace("\\<img", "")
    assert "left out" not in bundle("db-7", "", render(found, request), group=["db-7", "db-8"])[0].text


NOT_HOSTS = [name for name in HOSTILE if name != "all"]


@pytest.mark.parametrize("name", NOT_HOSTS, ids=range(len(NOT_HOSTS)))
def test_a_nodes_name_that_is_no_hosts_name_has_no_file_and_a_sentence(name: str) -> None:
    for request in EVERYTHING:
        own = replace(request, node=replace(request.node, name=name))
        found = planned(own)
        if found is None:
            continue
        assert render(found, own, force=True) == ()
        why = refused(found, own)
        assert why is not None
        assert why.isprintable()
        assert len(why) < 400


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_a_host_name_is_one_word_in_every_language(name: str) -> None:
    if is_plain_host(name):
        assert name.isascii()
        assert not set(name) & set(" \t\n'\"`$\\{}[]()<>|&;:,!*?~#%=@/^+")
        assert name[0].isalnum()
        assert ".." not in name


@pytest.mark.parametrize("field", ["stateful_set", "container"])
@pytest.mark.parametrize("name", [*NOT_HOSTS, "a/b/c", "UPPER", "a_b"], ids=range(len(NOT_HOSTS) + 3))
def test_a_kubernetes_name_that_is_none_has_no_file_and_a_sentence(field: str, name: str) -> None:
    request = request_of("postgresql", kubernetes=True)
    own = replace(request, databases=tuple(replace(each, **{field: name}) for each in request.databases))
    found = plan(own)
    assert render(found, own) == ()
    assert refused(found, own) is not None


NO_ONES = """all ungrouped localhost LocalHost 127.0.0.1 localhost.localdomain 0 0.0 2130706433 0x7f000001 127.1 x.1
017700000001 localhost.x Ip6-localhost ip6-loopback ipv6-localhost localhost4 localhost6.localdomain6 a.localhost
loopback ip6-allnodes ip6-allrouters ipv6-localnet ip6-mcastprefix 169.254.1.2 224.0.0.1 host.docker.internal"""


@pytest.mark.parametrize("name", NO_ONES.split())
def test_a_playbook_never_means_all_hosts_or_the_machine_it_runs_on(name: str) -> None:
    request = request_of("postgresql", name=name)
    found = plan(request)
    assert "ansible_playbook" not in {a.kind for a in render(found, request)}
    with pytest.raises(PlannerError, match=r"node\.name"):
        render(found, request, Platform.ANSIBLE)


def playbook(name: str, database: str = "main", **fields: Any) -> str:
    request = named(request_of("postgresql", name=name, **fields), database)
    return next(a.content for a in render(plan(request), request) if a.kind == "ansible_playbook")


@pytest.mark.parametrize("reserve_at", ["boot", "runtime"])
def test_ansible_lists_the_one_host_and_runs_nothing(tmp_path: Path, reserve_at: str) -> None:
    program = needs("ansible-playbook")
    path = tmp_path / "playbook.yaml"
    path.write_text(playbook("db-7", HOSTILE[0], reserve_at=reserve_at))
    done = run(program, "--list-hosts", "-i", "db-7,db-8,db-9", str(path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hosts (1):" in done.stdout
    assert "db-8" not in done.stdout
    assert not (tmp_path / MARK).exists()


def test_ansible_changes_no_other_host_of_a_group_with_the_nodes_name(tmp_path: Path) -> None:
    """A node that calls itself like a group of the inventory is not the whole group."""
    program = needs("ansible-playbook")
    path = tmp_path / "playbook.yaml"
    path.write_text(playbook("databases").replace("become: true", "become: false"))
    hosts = tmp_path / "inventory.ini"
    hosts.write_text(f"[databases]\nother ansible_connection=local ansible_python_interpreter={sys.executable}\n")
    done = run(program, "--check", "-i", str(hosts), str(path), cwd=tmp_path)
    assert done.returncode != 0
    assert "Only the planned hosts" in done.stdout
    assert "Kernel command line" not in done.stdout


def test_ansible_copies_a_text_with_braces_as_it_is(tmp_path: Path) -> None:
    """``!unsafe`` is what keeps templating away, whatever a later renderer puts into a copied file."""
    program = needs("ansible-playbook")
    text = playbook("db-7").replace("Other such", "{{ lookup('pipe', 'touch hugeplan_was_here') }} Other such")
    documents = loaded(text)
    copied = next(t for t in documents[0][0]["tasks"] if t["name"] == "Kernel command line")["ansible.builtin.copy"]
    assert "{{" in copied["content"]
    start = text.index("- name: Kernel command line")
    end = text.index("- name: Write GRUB")
    own = f"- hosts: db-7\n  gather_facts: false\n  connection: local\n  tasks:\n  {text[start:end].strip()}\n"
    own = own.replace("/etc/default/grub.d/60-hugeplan.cfg", str(tmp_path / "copied"), 1)
    path = tmp_path / "one.yaml"
    path.write_text(own)
    # Ansible's own search for a Python takes the first name on PATH, which need not be one that starts.
    done = run(program, "-i", "db-7,", "-e", f"ansible_python_interpreter={sys.executable}", str(path), cwd=tmp_path)
    assert not (tmp_path / MARK).exists()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "{{ lookup" in (tmp_path / "copied").read_text()


@pytest.mark.parametrize("name", HOSTILE[:10], ids=range(10))
def test_cloud_init_sees_three_keys(tmp_path: Path, name: str) -> None:
    program = needs("cloud-init")
    request = named(request_of("postgresql"), name)
    text = next(a.content for a in render(plan(request), request) if a.kind == "cloud_config")
    assert set(yaml.safe_load(text)) == {"write_files", "runcmd", "power_state"}
    path = tmp_path / "user-data.yaml"
    path.write_text(text)
    done = run(program, "schema", "--config-file", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


STUBBED = (
    "kubectl", "oc", "systemctl", "systemd-tmpfiles", "sysctl", "install", "rm", "reboot", "psql", "pg_ctl", "postgres",
    "mysql", "mariadb", "sqlplus", "db2set", "db2", "db2stop", "db2start", "redis-cli", "tuned-adm", "kernel-install",
    "update-grub", "grub2-mkconfig", "apiclient", "gcloud", "az", "cloud-init", "promtool", "mv", "cp", "tee", "kill",
    "pidof", "cat", "sed", "shutdown", "nsenter", "ansible-playbook", "ulimit", "grep", "tr", "awk", "uname", "test",
)  # fmt: skip


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in STUBBED:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    # What a name would run.
    (folder / "touch").write_text(f'#!/bin/sh\n: > {tmp_path}/"$1"\n')
    (folder / "touch").chmod(0o755)
    return folder


@pytest.mark.parametrize("name", HOSTILE[:30], ids=range(30))
def test_no_command_runs_a_part_of_a_name(tmp_path: Path, stubs: Path, name: str) -> None:
    """Every verify and every script of a bundle runs in bash, with every program but the shell a stub."""
    bash = needs("bash")
    work = tmp_path / "work"
    work.mkdir()
    for request in hostile_requests(name):
        found = planned(request)
        if found is None:
            continue
        files = render(found, request)
        scripts = [f.text for f in bundle(found.node, found.headline, files) if f.path.endswith(".sh")]
        # Each in a shell of its own, so that an exit ends no other; redirections go nowhere, which -r sees to.
        texts = [*(a.verify for a in files), *scripts]
        own = "\n".join(f"(\n{text}\n)" for text in texts)
        own = own.replace("/sys/", f"{work}/none/sys/").replace("/proc/", f"{work}/none/proc/")
        words, own_path = [bash, "-r", "-c", own], {"PATH": str(stubs)}
        subprocess.run(words, cwd=work, env=own_path, capture_output=True, check=False, timeout=60)
        every = "\n".join(f"(\n:\n{text}\n)" for a in files for text in (a.verify, a.install, a.rollback))
        checked = run(bash, "-n", "-c", every)
        assert checked.returncode == 0, checked.stderr
    assert not (tmp_path / MARK).exists()
    assert not list(work.rglob(MARK))


def test_systemd_reads_one_start_of_the_unit(tmp_path: Path) -> None:
    program = needs("systemd-analyze")
    for name in HOSTILE[:12]:
        request = named(request_of("oracle", reserve_at="runtime"), name)
        files = {a.kind: a for a in render(plan(request), request)}
        unit = tmp_path / files["systemd_unit"].filename
        unit.write_text(files["systemd_unit"].content.replace("/usr/local/sbin/hugeplan-reserve", "/bin/true"))
        done = run(program, "verify", str(unit))
        assert [line for line in done.stderr.splitlines() if unit.name in line] == []
        assert MARK not in "\n".join(lines_that_count(unit.read_text()))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_bundle_stays_in_its_folder(name: str) -> None:
    for request in hostile_requests(name):
        found = planned(request)
        if found is None:
            continue
        files = bundle(found.node, found.headline, render(found, request))
        with zipfile.ZipFile(io.BytesIO(as_zip(files))) as archive:
            names = archive.namelist()
        assert len(set(names)) == len(names)
        for each in names:
            assert all(part not in {"", ".", ".."} for part in each.split("/")), each
            assert each.isascii()
            assert all(len(part) < 255 for part in each.split("/"))
        readme = next(f.text for f in files if f.path == "README.md")
        assert all(line.isprintable() for line in readme.split("\n"))
        assert "<img" not in readme.replace("\\<img", "")


@pytest.mark.parametrize(
    "changed",
    [
        {"filename": "../../etc/cron.d/x"}, {"filename": "/etc/passwd"}, {"filename": "..", }, {"filename": "a/b"},
        {"filename": ""}, {"filename": "a\nb"}, {"kind": "../x"}, {"kind": "a/b"}, {"content": "a\u2028b"},
        {"content": "a\u0085b"}, {"verify": "true\x1b[2J"}, {"path": "/etc/\u202ex"}, {"install": "x\x00y"},
        {"summary": "a\nb"}, {"avoid_when": "a\nb"}, {"path": "/etc/x\ny"}, {"media_type": "text/plain\nx"},
    ],
)  # fmt: skip
def test_a_file_of_a_plan_document_is_asked_too(tmp_path: Path, changed: dict[str, str], capsys: Any) -> None:
    """``hugeplan artifacts`` writes the files that a document of the service holds: whoever made the document."""
    request = request_of("postgresql")
    found = plan(request)
    first, *rest = render(found, request)
    artifacts = [replace(first, **changed), *rest]
    with pytest.raises(PlannerError, match="artifacts"):
        bundle(found.node, found.headline, artifacts)
    document = tmp_path / "plan.json"
    document.write_text(json.dumps({"plan": asdict(found), "artifacts": [asdict(a) for a in artifacts]}))
    out = tmp_path / "inner" / "out"
    assert main(["artifacts", str(document), "--out", str(out)]) == 2
    assert not out.exists()
    assert capsys.readouterr().err.replace("\n", "").isprintable()


def test_a_folder_of_a_node_is_a_folder() -> None:
    taken: set[str] = set()
    for name in HOSTILE:
        found = folder_name(name, taken)
        assert found not in {"", ".", ".."}
        assert "/" not in found
        assert found.isascii()
        assert len(found) < 130
    assert len(taken) == len(HOSTILE)


def test_no_name_takes_the_folder_of_another() -> None:
    """Nodes are written in the order of their names, and a stranger may say any."""
    honest = ["db-1", "db-1.corp.example", "DB-1", "db_1", "db-1-2", "db-1-3"]
    odd = [".db-1", "db 1", "-db-1", "db/1", "db-1.", "..", "node "]
    alone = [folder_name(name, set()) for name in (*honest, *odd)]
    assert alone[: len(honest)] == honest
    for names in (odd, [*odd, *odd], [*alone[len(honest) :], *odd]):
        taken: set[str] = set()
        for name in names:
            folder_name(name, taken)
        assert [folder_name(name, taken) for name in honest] == honest
        assert len(taken) == len(names) + len(honest)
    taken = set(alone[len(honest) :])
    assert folder_name(alone[-1], taken) != alone[-1]


def test_many_hosts_of_one_name_get_folders_in_a_time_that_grows_as_they_do() -> None:
    taken: set[str] = set()
    begun = time.process_time()
    for _ in range(4_000):
        folder_name("db-1", taken)
    assert len(taken) == 4_000
    assert time.process_time() - begun < 2.0, "each looked at all of those before it"


def test_no_terminal_code_reaches_the_terminal(tmp_path: Path, capsys: Any) -> None:
    """Node, pods and databases of an inventory with names that are terminal codes, through commands that print."""
    code = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e"
    items = [
        {"kind": "Node", "metadata": {"name": f"n{code}"},
         "status": {"capacity": {"memory": "32Gi", "cpu": "4", "hugepages-2Mi": "2Gi"},
                    "allocatable": {"memory": "29Gi", "hugepages-2Mi": "2Gi"}}},
        {"kind": "Pod", "metadata": {"name": f"p{code}", "namespace": "d"},
         "spec": {"nodeName": f"n{code}", "containers": [{
             "name": f"c{code}", "image": "postgres:17", "args": ["-c", "shared_buffers=4GB"],
             "resources": {"limits": {"hugepages-2Mi": "1Gi", "memory": "1Gi"}}}]},
         "status": {"phase": "Running"}},
    ]  # fmt: skip
    source = tmp_path / "objects.json"
    source.write_text(json.dumps({"kind": "List", "items": items}))
    out = tmp_path / "out"
    for words in (
        ["plan", str(source)], ["plan", str(source), "--verbose"], ["plan", str(source), "--json"],
        ["plan", str(source), "--artifacts", str(out)], ["import", "kubernetes", str(source), "--all"],
        ["import", "kubernetes", str(source), "--all", "--out", str(out)], ["lint", str(source)],
        ["plan", f"{tmp_path}/{code}"],
    ):  # fmt: skip
        main(words)
        shown = capsys.readouterr()
        for line in (shown.out + shown.err).split("\n"):
            assert line.replace("\t", " ").isprintable(), (words, line[:200])
        assert shown.out + shown.err
    assert all(p.name.isascii() for p in out.rglob("*"))


def test_json_on_standard_output_keeps_its_characters() -> None:
    text = 'é\u2028\x9b\U000e0001\u202e"\\'
    assert json.loads(tame(json.dumps(text, ensure_ascii=False))) == text


def test_the_shells_of_this_test_run_what_a_name_would_run(tmp_path: Path, stubs: Path) -> None:
    """The proof above can fail: the same stub makes the mark when it is run."""
    subprocess.run([needs("bash"), "-r", "-c", f"$(touch {MARK})"], cwd=tmp_path, env={"PATH": str(stubs)}, check=False)
    assert (tmp_path / MARK).exists()
