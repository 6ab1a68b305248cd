"""The server that runs is the default for everything that a flag does not name; a person can say which one it is."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from artifacts.samples import here, request_of
from hugeplan_agent import collectors
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from support.postgresql_servers import WHEEL, RealServer, programs
from support.stuck import stuck_names

from hugeplan import unprivileged
from hugeplan.artifacts import Artifact, render
from hugeplan.artifacts.base import INSTALLER, as_user
from hugeplan.artifacts.engines.common import changed_settings
from hugeplan.artifacts.engines.postgresql_conf import _Commands
from hugeplan.cli import InputError, main, node_now, plan_scenario, this_node, trial_shape
from hugeplan.cli.plan_basis import assumed_values
from hugeplan.cli.plan_scenario import parse_database
from hugeplan.cli.running_server import Basis, basis_of_running, over_running
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    PlanRequest,
    ServerPlace,
)
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.plan import plan

CONTEXT = DemandContext()
M2 = 2 * MIB


def server(port: int, pid: int, **settings: str) -> ObservedDatabase:
    return ObservedDatabase(
        key=f"postgresql@/system.slice/x.service:{port}",
        engine="postgresql",
        version="15",
        settings=settings,
        settings_complete=True,
        port=port,
        pid=pid,
        place=ServerPlace(data_directory=f"/srv/pg-{port}"),
        sources=dict.fromkeys(settings, "postgresql.conf"),
    )


BUSY = server(5432, 812, shared_buffers="1GB", max_connections="1500", huge_pages="off")
OTHER = server(5433, 900, shared_buffers="512MB", max_connections="50")


def merged(text: str, *running: ObservedDatabase) -> tuple[DatabaseInstance, Basis]:
    instances, basis = over_running([parse_database("postgresql", text)], NodeSample(databases=running), CONTEXT)
    return instances[0], basis[instances[0].name]


def test_the_page_count_of_the_issue() -> None:
    """PostgreSQL 15 with 1,500 connections needs 570 pages where the flag names shared_buffers alone; it said 543."""
    instance, basis = merged("shared_buffers=1GB", BUSY)
    assert demand_of(instance, M2, CONTEXT).pages == 570
    assert (instance.version, instance.runs_as, instance.name) == ("15", BUSY.key, "postgresql")
    assert basis.given == {"shared_buffers": "1GB"}
    assert basis.read == {"max_connections": ("1500", "postgresql.conf"), "version": ("15", "as it runs")}
    assert basis.server == "PostgreSQL on port 5432 (PID 812, data directory /srv/pg-5432)"
    assert assumed_values(instance, None, basis) == {}, "its files were all read: nothing is assumed"


def test_the_plan_of_this_node_names_what_sets_another_count_at_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found: nothing was said of a count in sysctl.conf, below which the plan's huge_pages = on did not start."""
    counts = [("/etc/sysctl.conf", None, {None: 100}), ("/etc/sysctl.d/60-hugeplan.conf", None, {None: 7})]
    monkeypatch.setattr(plan_scenario, "boot_counts", lambda *_: counts)
    found = plan_scenario._here(request_of("postgresql"))
    (said,) = (f.reason for f in found.findings if f.code == "verify_next_boot")
    assert said.startswith("/etc/sysctl.conf sets 100 pages of 2M; "), "hugeplan's own file is put aside"


def test_what_keeps_the_server_off_huge_pages_is_the_plans_to_set() -> None:
    assert "huge_pages" not in merged("shared_buffers=1GB", BUSY)[0].settings
    assert merged("shared_buffers=1GB,huge_pages=off", BUSY)[0].settings["huge_pages"] == "off"


@pytest.mark.parametrize("words", ["port=5433", "pid=900", "data_directory=/srv/pg-5433/", "shared_buffers=512MB"])
def test_one_of_several_is_chosen(words: str) -> None:
    instance, _ = merged(words, BUSY, OTHER)
    assert (instance.runs_as, instance.name) == (OTHER.key, "postgresql-5433")
    assert dict(instance.settings) == dict(OTHER.settings)


def test_without_a_choice_the_candidates_are_named() -> None:
    with pytest.raises(InputError) as refused:
        merged("shared_buffers=2GB", BUSY, OTHER)
    for needle in ("port 5432 (PID 812", "port 5433 (PID 900", "port=", "server=new"):
        assert needle in str(refused.value)
    assert "system.slice" not in str(refused.value), "a cgroup's path names no server to a person"


@pytest.mark.parametrize("words", ["port=5432,shared_buffers=2GB", "shared_buffers=2GB"])
def test_a_port_that_several_have_is_no_choice(words: str) -> None:
    """Servers in containers all have 5432: 'no such server; these run here: port 5432' helped nobody."""
    alike = replace(OTHER, port=5432)
    with pytest.raises(InputError, match="cannot be told") as refused:
        merged(words, BUSY, alike)
    assert "add pid= or data_directory=" in str(refused.value)
    with pytest.raises(InputError, match="add pid= to the option"):
        merged(words, replace(BUSY, place=None), replace(alike, place=None))
    instance, _ = merged("pid=900,shared_buffers=2GB", BUSY, alike)
    assert instance.settings["max_connections"] == "50"


OF_A_USER = replace(
    OTHER, key="postgresql@systemd:session-3.scope:5433", unit="systemd:session-3.scope", owner_uid=1001
)


@pytest.mark.parametrize("uid", [0, 999])
def test_a_users_server_is_planned_where_it_is_named(uid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found with a process of a user's own called postgres: root planned for it, and got its commands to run."""
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    for hers in (OF_A_USER, replace(OF_A_USER, owner_uid=0), replace(OF_A_USER, owner_uid=None)):
        with pytest.raises(InputError) as refused:
            merged("shared_buffers=512MB", hers)
        for needle in (
            "port 5433 (PID 900",
            "of a user of this machine",
            "port=, pid= or data_directory=",
            "server=new",
        ):
            assert needle in str(refused.value)
        for words in ("port=5433", "pid=900", "data_directory=/srv/pg-5433"):
            assert merged(words, hers)[0].runs_as == hers.key
        assert merged("server=new,shared_buffers=512MB", hers)[0].runs_as is None
        assert merged("shared_buffers=512MB", hers, BUSY)[0].runs_as == BUSY.key


def test_who_started_a_server_himself_plans_it_without_naming_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert merged("shared_buffers=2GB", OF_A_USER)[0].runs_as == OF_A_USER.key
    with pytest.raises(InputError, match="cannot be told"):
        merged("shared_buffers=2GB", OF_A_USER, BUSY)
    assert merged("shared_buffers=512MB", OF_A_USER, BUSY)[0].runs_as == OF_A_USER.key


def test_a_choice_that_fits_none() -> None:
    with pytest.raises(InputError, match="no such server; these of PostgreSQL run here: PostgreSQL on port 5432"):
        merged("port=1", BUSY)
    with pytest.raises(InputError, match="none of PostgreSQL run here"):
        merged("port=1")
    with pytest.raises(PlannerError, match="did you mean shared_buffers"):
        merged("shared_bufers=2GB", BUSY, OTHER)


def test_a_new_server_takes_nothing_from_one_that_runs() -> None:
    instance, basis = merged("server=new,shared_buffers=1GB", BUSY)
    assert (instance.runs_as, dict(instance.settings)) == (None, {"shared_buffers": "1GB"})
    assumed = assumed_values(instance, None, basis)
    assert (assumed["max_connections"], "shared_buffers" in assumed) == ("100", False)


def test_servers_are_named_by_their_port() -> None:
    found = as_it_runs(NodeSample(databases=(BUSY, OTHER)), CONTEXT)
    assert [one.name for one in found] == ["postgresql-5432", "postgresql-5433"]
    assert basis_of_running(found, NodeSample(databases=(BUSY, OTHER)))["postgresql-5432"].server is not None
    alike = (BUSY, replace(OTHER, port=5432))
    assert [i.name for i in as_it_runs(NodeSample(databases=alike), CONTEXT)] == [
        "postgresql-pid-812",
        "postgresql-pid-900",
    ]


@pytest.mark.parametrize(
    ("names", "loaded", "changed", "mode"),
    [
        ('"$libdir/somebody_elses"', "somebody_elses", "no", "on"),
        ("somebody_elses,pg_stat_statements", "somebody_elses", "no", "try"),
        ("somebody_elses,another_ones", "another_ones", "no", "try"),
        ("somebody_elses", "", "no", "try"),
        ("somebody_elses", None, "no", "try"),
        ("somebody_elses", "somebody_elses", None, "try"),
    ],
)
def test_libraries_without_a_rule_are_measured_on_a_segment_that_has_them(
    names: str, loaded: str | None, changed: str | None, mode: str
) -> None:
    """Found: a file that names one and a server that was not restarted: 8 kB were its measure, and it did not start.
    So it did where the library was loaded, and a setting of it was raised in the file.
    """
    told = {"shared_preload_libraries": names, "loaded_libraries": loaded, "changed_since_start": changed}
    plain = demand_of(DatabaseInstance(name="x", engine="postgresql", version="15"), 4096, CONTEXT).segment_bytes
    running = ObservedDatabase(
        key="postgresql@x",
        engine="postgresql",
        version="15",
        settings={name: value for name, value in told.items() if value is not None},
        segments=(ObservedSegment(bytes=plain + 64 * MIB, backing="base_pages", page_bytes=4096),),
    )
    instance, _ = merged("shared_buffers=256MB", running)
    memory = Meminfo(mem_total_bytes=8 * GIB, mem_free_bytes=6 * GIB, anon_pages_bytes=GIB, shmem_bytes=GIB)
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=8 * GIB),))
    sample = NodeSample(memory=memory, databases=(running,), processes=())
    forced = replace(instance, page_bytes=M2)
    demand = plan(PlanRequest(node=node, databases=(forced,), sample=sample)).instances[0].demand
    assert [one.value for one in demand.settings if one.name == "huge_pages"] == [mode]
    if mode == "try":
        return
    bare = demand_of(
        DatabaseInstance(name="x", engine="postgresql", version="15", settings={"shared_buffers": "256MB"}), M2
    )
    assert demand.pages - bare.pages == 32
    assert demand.error_pages <= 1, "what is measured is no longer in the error"
    other = replace(forced, settings={**forced.settings, "shared_preload_libraries": "another_ones"})
    unknown = plan(PlanRequest(node=node, databases=(other,), sample=sample)).instances[0].demand
    assert unknown.error_pages > 1, "it belongs to the libraries that run"


def test_the_file_sets_what_the_plan_counts_with_and_the_server_does_not_have() -> None:
    instance, _ = merged("port=5433,shared_buffers=2GB", BUSY, OTHER)
    assert [(one.name, one.value) for one in changed_settings(instance, OTHER)] == [("shared_buffers", "2GB")]


def test_a_value_that_the_rule_cannot_read_is_said() -> None:
    """It was left out without a word, beside "Everything else is at its defaults there"."""
    odd = replace(BUSY, settings={"shared_buffers": "1GB", "max_connections": "many", "huge_pages": "off"})
    instance, basis = merged("shared_buffers=1GB", odd)
    assert basis.not_understood == {"max_connections": ("many", "postgresql.conf")}
    assert "max_connections" not in instance.settings
    assert merged("shared_buffers=1GB,max_connections=1500", odd)[1].not_understood == {}


def test_version_and_connections_of_an_option_stand_under_given() -> None:
    basis = merged("version=16,connections=900", BUSY)[1]
    assert (basis.given["version"], basis.given["connections"]) == ("16 (15 runs)", "900")
    assert "version" not in basis.read
    assert merged("version=15.4", BUSY)[1].given["version"] == "15.4"


def test_two_options_for_one_server_are_refused_in_a_persons_words() -> None:
    both = [parse_database("postgresql", text) for text in ("port=5433", "pid=900,shared_buffers=2GB")]
    with pytest.raises(InputError, match="two options name one server: PostgreSQL on port 5433") as refused:
        over_running(both, NodeSample(databases=(BUSY, OTHER)), CONTEXT)
    assert "slice" not in str(refused.value)
    with pytest.raises(PlannerError, match="each setting once"):
        merged("port=5433,shared_buffers=1GB,shared_buffers=2GB", BUSY, OTHER)


def test_a_folder_may_be_named_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    linked = replace(OTHER, place=ServerPlace(data_directory=str(tmp_path / "data")))
    assert merged(f"data_directory={tmp_path / 'link'}", BUSY, linked)[0].runs_as == OTHER.key


@pytest.mark.parametrize("name", ["da\x1b[2Jta", "da\ata", "da\u2028ta", "da\nta"])
def test_a_folder_that_a_terminal_does_not_show_as_it_is_has_no_place(tmp_path: Path, name: str) -> None:
    """No command names it, and a plan of the other servers is made all the same."""
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/root").symlink_to(tmp_path)
    for folder, is_here in (("data", True), (name, False)):
        (tmp_path / folder).mkdir()
        assert this_node._is_here(Host(tmp_path), "proc/1/root", f"/{folder}", os.geteuid()) is is_here


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root gives files away")
def test_what_root_will_run_lies_where_nobody_else_can_put_another_program(tmp_path: Path) -> None:
    """The commands of a plan lead through the folder of the server's programs, and are typed by an administrator."""
    host = Host(tmp_path)
    program = tmp_path / "usr/lib/bin/postgres"
    program.parent.mkdir(parents=True)
    program.touch()
    tmp_path.chmod(0o755)
    own = {0, os.geteuid()}
    assert this_node._changeable(host, "/usr/lib/bin/postgres", own) is None
    (tmp_path / "home").symlink_to("usr")  # whoever made it may point it elsewhere
    assert f"{tmp_path / 'home'} (owner 0, mode l" in str(this_node._changeable(host, "/home/lib/bin/postgres", own))
    with pytest.raises(FileNotFoundError):
        this_node._changeable(host, "/usr/lib/bin/absent", own)
    for path in (program, program.parent, tmp_path / "usr"):
        os.chown(path, 65534, -1)
        assert f"{path} (owner 65534, mode " in str(this_node._changeable(host, "/usr/lib/bin/postgres", own))
        assert this_node._changeable(host, "/usr/lib/bin/postgres", {0, 65534}) is None
        assert this_node._programs_of(host, "/usr/lib/bin/postgres", 65534)[0] == "/usr/lib/bin"
        assert this_node._programs_of(host, "/usr/lib/bin/postgres", 1000)[0] is None
        os.chown(path, 0, -1)
    (tmp_path / "usr").chmod(0o775)
    found = f"{tmp_path / 'usr'} (owner 0, mode drwxrwxr-x)"
    assert this_node._changeable(host, "/usr/lib/bin/postgres", own) == found
    (tmp_path / "usr").chmod(0o1777)  # as /tmp: what is in it stays its owner's
    assert this_node._changeable(host, "/usr/lib/bin/postgres", own) is None
    program.parent.chmod(0o1777)  # but others may put their psql beside this program
    assert this_node._changeable(host, "/usr/lib/bin/postgres", own) is not None


@pytest.mark.parametrize("programs_owner", [0, 65534])
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("runuser"), reason="SKIP: root pastes, with runuser")
def test_pasted_commands_reach_only_what_the_servers_user_may_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], programs_owner: int
) -> None:
    """Whatever that user puts in place of the server's folders once the plan is made."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = RealServer(programs(WHEEL), port)
    roots, bare = tmp_path / "roots", {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    try:
        own = made.folder / "own"
        shutil.copytree(made.bin.parent, own, symlinks=True)
        for path in (own, *own.rglob("*")):
            os.chown(path, programs_owner, -1, follow_symlinks=False)
        made.bin = own / "bin"
        shutil.move(made.data / "postgresql.conf", made.folder)  # as Debian: beside the data
        os.chown(made.folder / "postgresql.conf", 65534, -1)
        options = f"-p {port} -k {made.folder} -c config_file={made.folder}/postgresql.conf"
        assert made.control("-o", options, "start") == 0, made.log
        before = {"huge_pages": "off", "shared_buffers": "96MB", "work_mem": "3MB"}
        assert {made.sql(f"alter system set {name} = '{value}'") for name, value in before.items()} == {"ALTER SYSTEM"}
        assert made.control("restart") == 0, made.log
        main(f"plan --node this --json --force --postgresql port={port},page_size=2M,shared_buffers=80MB".split())
        file = next(a for a in json.loads(capsys.readouterr().out)["artifacts"] if a["kind"] == "postgresql_conf")
        (tmp_path / file["filename"]).write_text(file["content"])

        def paste(commands: str) -> int:
            with (tmp_path / "out").open("w") as out:  # the server keeps it open
                words = ["/bin/sh", "-ec", here(commands)]
                return subprocess.run(words, check=False, cwd=tmp_path, stdout=out, stderr=out, env=bare).returncode

        install, _, restart = file["install"].rpartition(" &&\n")  # which would fail without pages
        assert "check first" not in install
        assert [paste(install) for _ in "12"] == [0, 0], (tmp_path / "out").read_text()
        wanted = "select setting from pg_file_settings where sourcefile ~ 'hugepages.conf$' and name = 'huge_pages'"
        assert made.sql(wanted) == "on"
        assert file["rollback"].splitlines()[-2] == f"{restart} &&"
        assert paste(file["rollback"]) == 0, (tmp_path / "out").read_text()
        assert not list(made.folder.glob("conf.d/*"))
        # What ALTER SYSTEM had set before is in force again, and all else that it has set.
        assert {name: made.sql(f"show {name}") for name in before} == before
        kept = Path("/proc", (made.data / "postmaster.pid").read_text().split()[0], "fd")
        assert tmp_path / "out" not in {each.readlink() for each in kept.iterdir()}
        made.control("stop", "-m", "immediate")
        made.folder.rename(made.folder.with_suffix(".old"))
        for folder in (roots, roots / "data", roots / "conf.d"):
            folder.mkdir()
        for name in ("postgresql.conf", "data/postgresql.conf"):
            (roots / name).touch()
        made.folder.symlink_to(roots)
        tmp_path.chmod(0o755)
        for line in f"{file['install']}\n{file['rollback']}".splitlines():
            paste(line.removesuffix(" &&"))
        assert [path.stat().st_size for path in roots.rglob("*") if path.is_file()] == [0, 0]
    finally:
        if made.folder.is_symlink():
            made.folder.unlink()
            made.folder.with_suffix(".old").rename(made.folder)
        made.close()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("script"), reason="SKIP: root pastes, in a terminal")
def test_a_servers_user_gets_nothing_of_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could type commands into a terminal. No variables, no keys, nor a way past a folder that is closed to it."""
    monkeypatch.setenv("A_SECRET", "root's")
    (tmp_path / "closed/bundle").mkdir(parents=True)
    command = here(f"{as_user('nobody')} run sh -c 'env; pwd; grep roots /proc/keys; exit 0'")
    seen = subprocess.run(
        ["/bin/sh", "-c", command], check=True, capture_output=True, text=True, cwd=tmp_path / "closed/bundle",
        preexec_fn=lambda: ctypes.CDLL(None).syscall(unprivileged._KEYCTL, 1, b"roots"),
    )  # fmt: skip
    assert (re.findall("A_SECRET|closed|roots", seen.stdout), seen.stdout[-3:]) == ([], "\n/\n")
    for command, opens in (("runuser -u nobody --", True), (here(f"{as_user('nobody')} run"), False)):
        words = ["/usr/bin/script", "-qec", f"{command} sh -c ': < /dev/tty'", "/dev/null"]
        assert (subprocess.run(words, check=False, stdin=subprocess.DEVNULL).returncode == 0) is opens


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
def test_a_pasted_command_hands_no_terminal_on_and_fails_as_its_program_does(tmp_path: Path, shell: str) -> None:
    """A descriptor of root's terminal is as good as the terminal; what fails must be seen to."""
    if os.geteuid() != 0 or not all(map(shutil.which, (shell, "runuser"))):
        pytest.skip(f"SKIP: root pastes into {shell}, with runuser")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    program = tmp_path / "pg_ctl"
    program.write_text("#!/bin/sh\nls -l /proc/$$/fd | sed s/^/it.has/ >&2\necho on\nexit 7\n")
    program.chmod(0o755)
    place = ServerPlace(data_directory="/d", uid=65534, user="nobody", programs_directory=str(tmp_path))
    commands = _Commands.of(replace(OTHER, place=place))
    assert commands.service is None
    short = f"{commands.user} run {program}"
    ours, theirs = os.openpty()
    flags = {"bash": ["--norc", "-i"], "dash": ["-i"], "zsh": ["-fi"]}[shell]
    with subprocess.Popen(
        [str(shutil.which("setsid")), "-c", shell, *flags], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    ):
        os.close(theirs)
        for command in (commands.restart, short, f'test "$({short})" = on'):
            os.write(ours, f"{here(command)}\necho its.status=$((10 + $?))\n".encode())
        os.write(ours, b"exit\n")
        said = b""
        with contextlib.suppress(OSError):  # what a terminal reads once nobody has it
            while part := os.read(ours, 4096):
                said += part
    os.close(ours)
    text = said.decode()
    assert re.findall(r"its.status=(\d+)", text) == ["17", "17", "10"], text
    kept = re.findall(r"it.has.* (\d+) -> (\S+)", text)
    assert [target for number, target in kept if number == "0"] == ["/dev/null"] * 3, text
    assert [pair for pair in kept if "/pts/" in pair[1] or "tty" in pair[1]] == []
    assert len([pair for pair in kept if pair[0] in "12"]) == 6, "what it says, also beside its answer, is seen"


def test_a_service_is_restarted_only_where_it_is_the_systems() -> None:
    """Anybody's own manager has units of any name."""
    for unit, restart in (
        ("systemd:postgresql@16-main.service", "systemctl restart postgresql@16-main.service"),
        ("systemd:user@1001.service/postgresql.service", f"{as_user('eve')} run env PGPORT=5433 pg_ctl -D "),
    ):
        place = ServerPlace(data_directory="/d", uid=1001, user="eve")
        for known in (place, None):
            expected = restart if known else restart.replace("eve", "postgres").replace("env PGPORT=5433 ", "")
            assert _Commands.of(replace(OTHER, unit=unit, place=known)).restart.startswith(expected)
    nameless = _Commands.of(replace(OTHER, place=ServerPlace(data_directory="/d", uid=1001, refused="/d$(cmd)")))
    assert nameless.user == f"{INSTALLER} as uid:1001"
    assert nameless.note == "# check first: '/d$(cmd)'", "some shells have no comments"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("runuser"), reason="SKIP: root pastes, with runuser")
def test_the_steps_of_two_servers_reach_each_its_own(tmp_path: Path) -> None:
    """All pasted into one shell, which has a PGDATA and a PGPORT of one of them."""
    given = {"main": "40MB", "side": "24MB"}
    databases = tuple(
        DatabaseInstance(name=name, engine="postgresql", page_bytes=0, settings={"shared_buffers": value,
                         "max_connections": "20", "huge_pages": "on"})
        for name, value in given.items()
    )  # fmt: skip
    request = request_of("postgresql")
    request = replace(request, databases=databases)
    files = {a.kind: a for a in render(plan(request), request)}
    servers: dict[str, RealServer] = {}
    try:
        for name, value in given.items():
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                servers[name] = made = RealServer(programs(WHEEL), free.getsockname()[1])
            (made.data / "conf.d").mkdir()  # a folder that is read already, and lines after it, which are read last
            os.chown(made.data / "conf.d", made.user.pw_uid, -1)
            made.configure({"include_dir": "conf.d"})
            settings = {"unix_socket_directories": str(made.folder), "port": str(made.port), "shared_buffers": value}
            made.configure(settings | {"max_connections": "20", "listen_addresses": "", "huge_pages": "try"})
            with (made.data / "postgresql.conf").open("a") as file:
                file.write("huge_pages = try")  # as some programs append, without an end of line
            assert made.control("start") == 0, made.log
        main_server, side = servers.values()
        bare = {
            "PATH": f"{side.bin}:{os.environ['PATH']}", "PGDATA": str(main_server.data), "PGPORT": str(main_server.port)
        }  # fmt: skip

        def paste(kind: str, part: str, **known: str) -> int:
            own = getattr(files[f"postgresql_conf-{kind}"], part).replace("as postgres ", "as nobody ")
            with (tmp_path / "out").open("w") as out:
                words = ["/bin/sh", "-c", here(own)]
                done = subprocess.run(words, check=False, cwd=tmp_path, stdout=out, stderr=out, env=bare | known)
            return done.returncode

        for name in given:
            file = files[f"postgresql_conf-{name}"]
            (tmp_path / file.filename).write_text(file.content)
            assert paste(name, "install") != 0, "which server is not said"
            assert f"PGDATA_{name.upper()}: export it" in (tmp_path / "out").read_text()
        known = {f"PGDATA_{name.upper()}": str(server.data) for name, server in servers.items()}
        assert paste("side", "verify", **known) != 0
        assert [paste("side", "install", **known) for _ in "12"] == [0, 0], (tmp_path / "out").read_text()
        assert (side.data / "postgresql.conf").read_text().count("\ninclude_if_exists") == 1
        assert [paste(name, "verify", **known) == 0 for name in given] == [False, True]
        assert [server.sql("show huge_pages") for server in servers.values()] == ["try", "off"]
        assert not list(main_server.data.glob("conf.d/*"))
        side.control("stop", "-m", "immediate")  # its file of that name still says a port
        (side.data / "postmaster.pid").write_text((main_server.data / "postmaster.pid").read_text())
        assert paste("side", "verify", **known) != 0, "another server answers"
        (side.data / "postmaster.pid").unlink()
        assert paste("side", "rollback", **known) == 0, (tmp_path / "out").read_text()
        assert not list(side.data.glob("conf.d/*"))
    finally:
        for server in servers.values():
            server.close()


def test_a_socket_of_another_user_answers_for_no_server(tmp_path: Path) -> None:
    """Found: the planned server was down, and whoever bound its socket in /tmp answered verify.sh."""
    folders = {"socket_directory": str(tmp_path), "programs_directory": str(programs(WHEEL))}
    own = _Commands.of(replace(OTHER, place=ServerPlace(data_directory="/d", uid=1001, user="daemon", **folders)))
    with socket.socket(socket.AF_UNIX) as others:
        others.bind(f"{tmp_path}/.s.PGSQL.{OTHER.port}")
        others.listen()
        words = ["/bin/sh", "-c", own.psql.partition(" run ")[2] + " 'SHOW huge_pages'"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, "requirepeer specifies" in done.stderr) == (2, True), done.stderr
    assert 'PGREQUIREPEER="$(id -un)"' in _Commands.of(replace(OTHER, place=None)).psql


def test_a_service_of_debian_names_its_folders() -> None:
    known = replace(OTHER, place=None, sources={"huge_pages": "postgresql.auto.conf"})
    own = (DatabaseInstance(name="db", engine="postgresql", runs_as=known.key, settings={"shared_buffers": "1GB"}),)
    for unit, folder in (
        ("systemd:postgresql@16-main.service", "/etc/postgresql/16/main"), ("systemd:postgresql-16.service", "$PGDATA"),
    ):  # fmt: skip
        sample = NodeSample(databases=(replace(known, unit=unit),))
        request = replace(request_of("postgresql"), databases=own, sample=sample)
        file = next(a for a in render(plan(request), request) if a.kind == "postgresql_conf")
        assert file.path == f"{folder}/conf.d/db-hugepages.conf"
        assert f"systemctl restart {unit.removeprefix('systemd:')}" in file.install.splitlines()
        assert f"systemctl restart {unit.removeprefix('systemd:')} &&" in file.rollback.splitlines()
        assert "pg_ctl" not in file.install + file.rollback
        assert ("--cluster 16/main" in file.verify) is ("${PGDATA:?export it}" not in file.install) is ("@" in unit)


OWN = (DatabaseInstance(name="db", engine="postgresql", runs_as=OTHER.key, settings={"shared_buffers": "1GB"}),)


def files_of(unit: str, place: ServerPlace | None) -> dict[str, Artifact]:
    sample = NodeSample(databases=(replace(OTHER, place=place, unit=unit),))
    request = replace(request_of("postgresql"), databases=OWN, sample=sample)
    return {a.kind: a for a in render(plan(request), request)}


@pytest.mark.parametrize("place", [None, ServerPlace(data_directory="/d", uid=1001, user="eve")])
def test_a_service_of_any_name_restarts_its_server(place: ServerPlace | None) -> None:
    """A server that pg_ctl starts is none of its service: systemd takes that for failed."""
    for unit, is_plain in (("rh-postgresql13-postgresql", True), ("16-postgresql", True), ("orders-db", False),
                           ("timescaledb", False), ("cron", False)):  # fmt: skip
        file = files_of(f"systemd:{unit}.service", place)["postgresql_conf"]
        for text, at in ((file.install, -1), (file.rollback, -2)):
            assert text.splitlines()[at].removesuffix(" &&") == f"systemctl restart {unit}.service"
            assert "pg_ctl" not in text
        assert ("MainPID" not in file.install.partition(" put ")[0]) is is_plain


def test_a_service_of_another_program_is_not_restarted(tmp_path: Path) -> None:
    """What a crontab or a supervisor started is not its service's: no file is written, and a person is told.

    Found with the service's main process written into the user's own postmaster.pid: root restarted that service.
    """
    own = _Commands(data=shlex.quote(str(tmp_path)), user=str(tmp_path / "as"), service="cron.service")
    (tmp_path / "as").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tmp_path / "as").chmod(0o755)
    words = ["/bin/sh", "-c", own.may_restart[0]]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with contextlib.ExitStack() as ends:
        for place, uid, is_right in ((tmp_path, None, True), (Path("/"), None, False), (tmp_path, 1234, False)):
            main = subprocess.Popen(["/bin/sleep", "60"], cwd=place)
            ends.callback(main.wait)
            ends.callback(main.kill)
            (tmp_path / "postmaster.pid").write_text(f"{main.pid}\n/d\n")
            for name, answer in (("systemctl", main.pid), ("id", uid or os.geteuid())):
                (tmp_path / name).write_text(f"#!/bin/sh\necho {answer}\n")
                (tmp_path / name).chmod(0o755)
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
            assert (done.returncode == 0) is is_right, (place, uid)
            assert ("cron.service is not this server's alone" in done.stderr) is not is_right
        (tmp_path / "systemctl").write_text("#!/bin/sh\necho 0\n")  # no main process
        assert subprocess.run(words, capture_output=True, check=False, env=env).returncode != 0
        # One that is stopped, as where its pages are not there yet, interrupts nobody when it starts.
        (tmp_path / "systemctl").write_text('#!/bin/sh\ntest "$1" = show && echo 0\n')
        assert subprocess.run(words, capture_output=True, check=False, env=env).returncode == 0


@pytest.mark.parametrize(
    ("words", "given", "is_right"),
    [
        ('"-D" "/d" "-d" "1" "-c" "log_directory=log"', "PGPORT=5432", True),
        ('"-D" "/d"', "PGPORT=6000", True),  # as of this plan's commands
        ('"-D" "/d"', "PGPORT=6001", False), ('"-D" "/d"', "LD_LIBRARY_PATH=/l", False),
        ('"-D" "/d" "-D" "data"', "TZ=UTC", False), ('"-D."', "TZ=UTC", False),
        ('"-D" "/proc/self/cwd"', "TZ=UTC", False), ('"-D" "/d" "--config-file=own.conf"', "TZ=UTC", False),
        ('"-D" "/d" "-c" "Config_File=own.conf"', "TZ=UTC", False), ('"-iD" "data"', "TZ=UTC", False),
        ('"-D" "/d" "-c" "DateStyle=ISO"', "LD_LIBRARY_PATH=", True), ('"-D" "/d" "-c" "a=1\n2"', "TZ=UTC", False),
        (None, "TZ=UTC", False), ('"-D" "/d" "-c" "search_path="$user", public"', "TZ=UTC", False),
        ('"-D" "/d" "-c" "search_path="a" "', "TZ=UTC", False), ('"-D" "/d" "-c" "ident_file=" ""', "TZ=UTC", True),
        ("", "PGDATA=/conf", False), ('"-c" "config_file=/c"', "PGDATA=/conf", False), ("", "PGDATA=HERE/", True),
        ('"-D" "/d"', "PGDATA=/conf", True), ('"-D" "/dev/fd/7"', "TZ=UTC", False), ('"-c" "a=\\"', "TZ=UTC", False),
        ('/gone "-D" "/d"', "TZ=UTC", False),
    ],
)  # fmt: skip
def test_what_pg_ctl_would_start_otherwise_is_not_restarted(
    tmp_path: Path, words: str | None, given: str, *, is_right: bool
) -> None:
    """Found: pg_ctl -D data start, as initdb says it: the step ended with the server down. PGPORT: on another port."""
    own = _Commands(shlex.quote(str(tmp_path)), user=f"{tmp_path}/as", programs="env PGPORT=6000 ", is_named=True)
    (tmp_path / "as").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tmp_path / "as").chmod(0o755)
    if words is not None:
        (tmp_path / "postmaster.opts").write_text(f"/bin/sh {words}".strip() + "\n")
    given = given.replace("HERE", str(tmp_path))
    with subprocess.Popen(["/bin/sleep", "60"], env=dict([given.split("=")]), cwd=tmp_path) as main:
        (tmp_path / "postmaster.pid").write_text(f"{main.pid}\n/d\n")
        done = subprocess.run(["/bin/sh", "-c", here(own.may_restart[0])], capture_output=True, text=True, check=False)
        main.kill()
    assert (done.returncode == 0, bool(done.stderr)) == (is_right, not is_right), done.stderr


@pytest.mark.parametrize(
    ("shown", "is_right"),
    [
        ("Environment=PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj PGDATA={data}/", True),
        ("ExecStart={{ path=/usr/bin/postgres ; argv[]=/usr/bin/postgres -D {data} ; ignore_errors=no }}", True),
        ("Environment=PGDATA={data}-other", False),
    ],
)
def test_the_unit_of_a_stopped_server_names_its_folder(tmp_path: Path, shown: str, *, is_right: bool) -> None:
    """Found: the server did not start, its own earlier step had taken the pages, and no later step took its file."""
    guard = _Commands.of(replace(OTHER, place=None, unit="systemd:postgresql-17.service")).guards[1]
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "as").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (tmp_path / "systemctl").write_text(
        f"#!/bin/sh\ntest $1 = show || exit 3\ncat <<'X'\n{shown.format(data=data)}\nX\n"
    )
    for name in ("as", "systemctl"):
        (tmp_path / name).chmod(0o755)
    commands = guard.replace("/usr/local/sbin/hugeplan-file as", str(tmp_path / "as"))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PGDATA": str(data)}
    for pid in (None, "999999999"):  # it was stopped, or it ended with its machine
        if pid is not None:
            (data / "postmaster.pid").write_text(f"{pid}\n")
        done = subprocess.run(["/bin/sh", "-c", commands], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is is_right, done.stderr
        assert ("postgresql-17.service does not run the server of" in done.stderr) is not is_right
    # While the service runs, its server says itself whose it is.
    (tmp_path / "systemctl").write_text("#!/bin/sh\nexit 0\n")
    assert subprocess.run(["/bin/sh", "-c", commands], env=env, capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize("place", [None, ServerPlace(data_directory="/d", uid=1001, user="eve")])
def test_a_server_that_no_service_of_the_system_starts_is_left_to_a_person(place: ServerPlace | None) -> None:
    for unit in ("systemd:patroni.service", "systemd:patroni@a.service", "container:lxc/$(id)",
                 "systemd:user@1001.service/postgresql.service"):  # fmt: skip
        files = files_of(unit, place)
        assert "postgresql_conf" not in files
        form = files["postgresql_conf_snippet"]
        assert (form.path, form.recommended) == (None, False)
        for text in (form.install, form.verify, form.rollback):
            assert text.startswith("# ")
            assert "\n" not in text
            assert "pg_ctl" not in text
        assert ("patronictl" in form.install) is ("patroni.yml" in form.install) is ("patroni" in unit)
        assert ("'container:lxc/$(id)'" in form.install) is unit.startswith("container")
        assert "huge_pages = " in form.content


def test_a_link_of_a_container_makes_no_folder_of_the_nodes(tmp_path: Path) -> None:
    """It is followed in the container, where it leads to the container's own."""
    (tmp_path / "data").mkdir()
    (tmp_path / "proc/9/root").mkdir(parents=True)
    (tmp_path / "proc/9/root/data").symlink_to(tmp_path / "data")
    assert not this_node._is_here(Host(tmp_path), "proc/9/root", "/data", os.geteuid())


def test_a_trial_says_whose_programs_it_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring another PostgreSQL instead would answer a question that nobody asked."""
    strange = replace(OTHER, place=ServerPlace(data_directory="/d", programs_refused="/home/m/postgres (owner 1001)"))
    running = [strange]
    monkeypatch.setattr(trial_shape, "observe", lambda: (None, NodeSample(databases=tuple(running))))
    refused = r"/home/m/postgres \(owner 1001\) can be changed by another user\. .* --bin-dir"
    name = trial_shape._running("postgresql")[0][OTHER.key]
    for more in ({}, {"instance": name}):
        asked = argparse.Namespace(**{"plan": None, "instance": None, "bin_dir": None} | more)
        with pytest.raises(InputError, match=refused):
            trial_shape.wanted(asked, "postgresql")
        asked.bin_dir = "/given"
        assert trial_shape.wanted(asked, "postgresql").programs == Path("/given")
    running.append(replace(BUSY, place=ServerPlace(data_directory="/e", programs_directory="/usr/lib/bin")))
    asked = argparse.Namespace(plan=None, instance=None, bin_dir=None)
    assert trial_shape.wanted(asked, "postgresql").programs == Path("/usr/lib/bin")  # a stranger stops no trial


@pytest.mark.parametrize("place", [{"programs_directory": "/usr/bin"}, {"programs_refused": "/home/m (owner 1001)"}])
@pytest.mark.parametrize(("uid", "is_own"), [(0, False), (1002, False), (1001, True)])
def test_a_users_program_called_after_an_engine_is_no_server_to_measure_like(
    place: dict[str, str], uid: int, is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/usr/bin/sleep, called mariadbd: no trial began, for want of a mariadbd in /usr/bin."""
    hers = replace(OF_A_USER, owner_uid=1001, place=ServerPlace(data_directory="/d", **place))
    running = [hers]
    monkeypatch.setattr(trial_shape, "observe", lambda: (None, NodeSample(databases=tuple(running))))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    asked = argparse.Namespace(plan=None, instance=None, bin_dir=None)
    if not is_own:
        assert trial_shape.wanted(asked, "postgresql").programs is None
        running.append(replace(BUSY, place=ServerPlace(data_directory="/e", programs_directory="/usr/lib/bin")))
        assert trial_shape.wanted(asked, "postgresql").programs == Path("/usr/lib/bin")
    elif "programs_refused" in place:
        with pytest.raises(InputError, match="not taken"):
            trial_shape.wanted(asked, "postgresql")
    else:
        assert trial_shape.wanted(asked, "postgresql").programs == Path("/usr/bin")


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root gives files away")
def test_a_folder_of_somebody_else_is_no_servers_place(tmp_path: Path) -> None:
    host = Host(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/root").symlink_to(tmp_path)
    os.chown(folder, 65534, -1)
    assert this_node._is_here(host, "proc/7/root", "/data", 65534)
    assert not this_node._is_here(host, "proc/7/root", "/data", 1000)
    os.chown(folder, 0, -1)
    assert not this_node._is_here(host, "proc/7/root", "/data", 65534)


def test_a_node_whose_databases_cannot_be_read_is_not_one_without_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Host) -> Fragment:
        raise RecursionError("a file of one of them")

    failing = replace(collectors.COLLECTORS["databases"], collect=fails)
    monkeypatch.setitem(cast("dict[str, Collector]", collectors.COLLECTORS), "databases", failing)
    with pytest.raises(InputError, match="databases of this node could not be read"):
        this_node.observe()


def test_a_process_that_does_not_answer_holds_no_command_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck_names(tmp_path, monkeypatch).add(f"proc/{os.getpid()}/smaps_rollup")
    assert this_node.observe()[1].processes
    found = {one["pid"]: one for one in node_now.observe().listed("processes")}
    assert found[os.getpid()]["pss_bytes"] is None
    assert any(one["pss_bytes"] for one in found.values())
