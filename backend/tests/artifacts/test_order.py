"""A plan is installed step by step and taken back step by step: whenever a server starts, its pages are there.

The commands run in a shell, with programs that play the node (:mod:`artifacts.node_played`) and the installer itself.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from artifacts.node_played import Played
from support.seeds import SEEDS

from hugeplan.artifacts import Artifact, installer, render
from hugeplan.artifacts.base import INSTALLER, mark
from hugeplan.artifacts.bundle import bundle
from hugeplan.artifacts.owners import objects
from hugeplan.artifacts.provenance import Provenance, with_provenance
from hugeplan.artifacts.registry import Platform
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    Plan,
    PlanRequest,
    Policy,
    Pool,
    Reservations,
    ServerPlace,
)
from hugeplan.planner.plan import plan

SIZES = (0, 2 * MIB, GIB)
VERSIONS = {"postgresql": "17", "mysql": "8.4"}
RESERVE = "/usr/local/sbin/hugeplan-reserve"
#: Steps that start a server or write a pool.
ACTING = ("postgresql_conf", "my_cnf", "mariadb_cnf", "kernel_command_line", "numa_script", "systemd_unit")


def settings_of(engine: str, gib: int) -> dict[str, str]:
    own = {"shared_buffers": f"{gib}GB"} if engine == "postgresql" else {"innodb_buffer_pool_size": f"{gib}G"}
    return own | {"max_connections": "100"}


def request_of(
    sizes: dict[str, tuple[int, int]], pools: dict[int, int], reserve_at: str, engine: str = "postgresql"
) -> PlanRequest:
    """Servers, each with page size and GiB."""
    own = tuple(
        DatabaseInstance(name=name, engine=engine, version=VERSIONS.get(engine), runs_as=name, page_bytes=size,
                         connections=100, settings=settings_of(engine, gib))
        for name, (size, gib) in sizes.items()
    )  # fmt: skip
    of_node = tuple(Pool(page_bytes=size, nr_hugepages=count, free_hugepages=0) for size, count in pools.items())
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=96 * GIB, pools=of_node),), kernel_used_bytes=GIB)
    return PlanRequest(node=node, databases=own, reservations=Reservations(), policy=Policy(reserve_at=reserve_at))


def asked(found: Plan) -> dict[str, dict[str, int]]:
    return {
        one.name: {"size": one.page_bytes or 0, "pages": one.demand.pages if one.page_bytes else 0}
        for one in found.instances
    }


def pools_of(servers: dict[str, dict[str, int]]) -> dict[int, int]:
    return {size: sum(one["pages"] for one in servers.values() if one["size"] == size) for size in SIZES if size}


class Node(Played):
    """The node, and the commands of a plan on it."""

    def __init__(self, folder: Path, old: dict[str, tuple[int, int]], new: dict[str, tuple[int, int]], at: str,
                 units: dict[str, str | None], *, kept: bool, is_root: bool, engine: str = "postgresql",
                 placed: bool = True, platform: Platform | None = None) -> None:  # fmt: skip
        was = asked(plan(request_of(old, dict.fromkeys(SIZES[1:], 0), "boot", engine)))
        before = pools_of(was)
        request = request_of(new, before, at, engine)
        is_placed = placed and engine == "postgresql"
        running = tuple(
            ObservedDatabase(
                key=name, engine=engine, version=VERSIONS.get(engine), unit=unit and f"systemd:{unit}",
                settings_complete=True, settings=settings_of(engine, old[name][1]) | (
                    {"huge_pages": "on" if old[name][0] else "off", "huge_page_size": f"{old[name][0] // 1024}kB"}
                    if engine == "postgresql" else {"large_pages": "ON" if old[name][0] else "OFF"}),
                hugetlb_bytes=was[name]["pages"] * old[name][0],
                segments=(ObservedSegment(bytes=was[name]["pages"] * old[name][0], page_bytes=old[name][0],
                                          backing="hugetlb"),) if old[name][0] and is_root else (),
                place=ServerPlace(data_directory=str(folder / name), user="postgres") if is_placed else None,
            )
            for name, unit in units.items()
        )  # fmt: skip
        request = replace(request, sample=NodeSample(databases=running))
        self.plan = plan(request)
        files = render(self.plan, request, platform)
        if kept:
            files = with_provenance(files, Provenance("0" * 64, "n", datetime.datetime.now(datetime.UTC), None))
        self.all = {a.kind: a for a in files}
        self.steps = [a for a in files if a.recommended and a.kind.partition("-")[0] in ACTING]
        self.texts = {file.path: file.text for file in bundle("n", "", files)}
        is_ = {name: next((a.path for a in self.steps if f"{folder}/{name}/" in (a.path or "")), None) for name in old}
        if engine != "postgresql" and any(a.kind in {"my_cnf", "mariadb_cnf"} for a in self.steps):
            is_ = {name: f"{folder}/etc/my.cnf.d/zz-{name}-hugepages.cnf" for name in old}
        (folder / "etc/my.cnf.d").mkdir(parents=True)
        (folder / "etc/my.cnf").write_text(f"!includedir {folder}/etc/my.cnf.d\n")
        planned = asked(self.plan)
        pools = {str(pool.page_bytes): pool.pages for pool in self.plan.pools}
        totals = [sum(int(size) * count for size, count in of.items()) for of in (pools, before)]
        self.folder = folder
        self.of = {
            "old": was, "new": {name: {**planned[name], "file": is_[name]} for name in old}, "pools": dict(before),
            "before": {str(size): count for size, count in before.items()}, "planned": pools, "failed": [],
            "memory": max(totals), "running": {}, "insists": engine == "postgresql",
        }  # fmt: skip
        self._programs()
        self.reboot()
        self.save()
        assert not self.of["failed"]

    def _programs(self) -> None:
        own = self.folder / "bin"
        own.mkdir()
        played = ("reboot", "systemctl", "pg_ctl", "set_pages", "reserve_all", "systemd-tmpfiles")
        script = Path(__file__).with_name("node_played.py")
        texts = {name: f'exec {sys.executable} -S -I {script} {self.folder} {name} "$@"' for name in played}
        texts |= {
            "runuser": 'shift 3; exec "$@"',
            "update-grub": ":",
            "tuned-adm": ":",
            "grub-mkconfig": ": default/grub.d",
        }
        for name, text in texts.items():
            (own / name).write_text(f"#!/bin/sh\n{text}\n")
        (own / "hugeplan-file").write_text(self.moved(installer.text()))
        for path in own.iterdir():
            path.chmod(0o755)
        for name in self.of["old"]:
            (self.folder / name).mkdir()
            (self.folder / name / "postgresql.conf").touch()
            (self.folder / name / "postmaster.opts").write_text("/bin/sh\n")

    def moved(self, text: str) -> str:
        text = re.sub(r"echo (\d+) > (/sys/\S+/nr_hugepages)", r"set_pages \1 \2", text)
        text = re.sub(rf"^{RESERVE}(?= &&$|$)", f"reserve_all {RESERVE}", text, flags=re.M)
        text = text.replace(INSTALLER, "hugeplan-file").replace(RESERVE, f"{self.folder}/bin/hugeplan-reserve")
        return re.sub(r"(?<![\w$\"}./])/etc/", f"{self.folder}/etc/", text)

    def save(self) -> None:
        (self.folder / "state.json").write_text(json.dumps(self.of))

    def follow(self, file: Artifact, commands: str) -> None:
        """One step of the plan, or its way back: who runs still runs and would start again, or the text says so."""
        where = self.folder / "steps"
        where.mkdir(exist_ok=True)
        (where / file.filename).write_text(file.content)
        done = subprocess.run(
            ["/bin/sh", "-c", self.moved(commands)], cwd=where, capture_output=True, text=True, check=False, timeout=60,
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}"},
        )  # fmt: skip
        was, self.of = self.of, json.loads((self.folder / "state.json").read_text())
        told = (file.step, file.kind, commands, done.stdout, done.stderr, was, self.of)
        assert done.returncode == 0, told
        assert not self.of["failed"], told
        changes = [n for n, one in self.of["new"].items() if 0 != one["size"] != self.of["old"][n]["size"] != 0]
        for name, runs in self.of["running"].items():
            if runs is None:
                assert name in changes, told
                assert was["running"][name] is None or "In between it does not run" in commands, told
            elif runs["size"] == 0 != self.asked(name)["size"]:
                assert not self.of["insists"], told
                assert "until that its server is on base pages" in commands, told
            elif not self.finds_pages(name):
                assert name in changes, told
                assert "Until then it runs on, and would not start" in "".join(a.install for a in self.steps), told

    def ways_back(self) -> Iterator[tuple[Artifact, str]]:
        """As roll-back.sh lists them."""
        for part in self.texts["roll-back.sh"].split("\n\n# ")[1:]:
            kind = part.partition(":")[0].partition(" ")[2]
            file = next((a for a in self.steps if a.kind == kind), None)
            if file is not None:
                yield file, re.sub(r"^#   ", "", part.partition("\n")[2], flags=re.M)


def check(node: Node) -> None:
    first = json.loads((node.folder / "state.json").read_text())
    for file in node.steps:
        node.follow(file, file.install)
    assert node.of["pools"] | node.of["planned"] == node.of["pools"]
    for name, runs in node.of["running"].items():
        assert runs == {key: node.asked(name)[key] for key in ("size", "pages")}, (name, runs, node.asked(name))
    ways = [*node.ways_back()]
    assert len(ways) == len(node.steps)
    for file, commands in ways:
        node.follow(file, commands)
    assert node.of["running"] == first["running"]
    assert node.of["pools"] == {**node.of["pools"], **node.of["before"]}
    assert not [*node.folder.glob("*/conf.d/*"), *node.folder.glob("etc/my.cnf.d/*")]


@pytest.mark.parametrize("at", ["boot", "runtime"])
@pytest.mark.parametrize("unit", [None, "postgresql@17-d0.service"])
@pytest.mark.parametrize("change", [(a, b) for a in SIZES for b in SIZES], ids=str)
@pytest.mark.parametrize("gib", [2, 6])
def test_a_server_finds_its_pages_at_every_start(
    tmp_path: Path, change: tuple[int, int], gib: int, unit: str | None, at: str
) -> None:
    """Found: the way back of a change from 2M to 1G started the server before its former pool was there again."""
    if not any(change):
        pytest.skip("nothing changes")
    old, new = change
    check(Node(tmp_path, {"d0": (old, 4)}, {"d0": (new, gib)}, at, {"d0": unit}, kept=gib == 2, is_root=unit is None))


@pytest.mark.parametrize("at", ["boot", "runtime"])
@pytest.mark.parametrize("change", [(a, b) for a in SIZES for b in SIZES if a or b], ids=str)
@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
def test_so_does_one_that_only_tries(tmp_path: Path, engine: str, change: tuple[int, int], at: str) -> None:
    """Without its pages MySQL starts on base pages; it takes the default size alone."""
    if engine == "mysql" and GIB in change:
        pytest.skip("a plan has no other size for it")
    old, new = change
    own = Node(tmp_path, {engine: (old, 4)}, {engine: (new, 6)}, at, {engine: f"{engine}.service"}, kept=True,
               is_root=True, engine=engine)  # fmt: skip
    check(own)


@pytest.mark.parametrize("unit", [None, "postgresql@17-d0.service"])
@pytest.mark.parametrize("kinds", ["tuned_profile", "kernel_command_line", "tmpfiles", "numa_script systemd_unit"])
@pytest.mark.parametrize("at", ["boot", "runtime"])
@pytest.mark.parametrize("change", [(2 * MIB, GIB), (GIB, 2 * MIB)], ids=str)
def test_so_does_one_whose_pools_an_alternative_writes(
    tmp_path: Path, change: tuple[int, int], at: str, kinds: str, unit: str | None
) -> None:
    """Found: after its way back a database was down, and all commands had ended with 0."""
    old, new = change
    node = Node(tmp_path, {"d0": (old, 4)}, {"d0": (new, 4)}, at, {"d0": unit}, kept=False, is_root=True)
    first = json.loads((node.folder / "state.json").read_text())
    file = next(a for a in node.steps if a.kind == "postgresql_conf")
    row = [file, *(node.all[kind] for kind in kinds.split())]
    for a in row:
        node.follow(a, a.install)
    assert node.of["running"]["d0"] == {"size": new, "pages": node.asked("d0")["pages"]}
    for a in row[::-1]:
        node.follow(a, a.rollback)
    assert node.of["running"] == first["running"]


@pytest.mark.parametrize(("status", "stop", "ends"), [(0, 0, 0), (3, 1, 0), (0, 1, 1), (4, 0, 1), (127, 0, 1)])
def test_a_stop_that_did_not_stop_is_an_error(tmp_path: Path, status: int, stop: int, ends: int) -> None:
    """Found: where pg_ctl was not found, the server ran on and its pools were written under it."""
    node = Node(tmp_path, {"d0": (2 * MIB, 4)}, {"d0": (GIB, 4)}, "runtime", {"d0": None}, kept=False, is_root=True)
    pg_ctl = f'case " $* " in *" status "*) exit {status} ;; *" -t 86400 "*" stop "*) exit {stop} ;; esac\nexit 9\n'
    (tmp_path / "bin/pg_ctl").write_text(f"#!/bin/sh\n{pg_ctl}")
    command = node.moved(node.steps[0].install.rsplit(" &&\n", 1)[1])
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, env={"PATH": path})
    assert done.returncode == ends, done.stderr


@pytest.mark.parametrize("unit", [None, "postgresql@17-d0.service"])
def test_a_step_that_stops_a_unit_names_those_that_require_it(tmp_path: Path, unit: str | None) -> None:
    """Found: an application that requires the database was left down, and all commands had ended with 0."""
    node = Node(tmp_path, {"d0": (2 * MIB, 4)}, {"d0": (GIB, 4)}, "runtime", {"d0": unit}, kept=False, is_root=True)
    texts = node.all["postgresql_conf"].install, *(node.all[k].rollback for k in ("numa_script", "tmpfiles"))
    assert all(("# Units that require it stop with it" in text) is (unit is not None) for text in texts)


@pytest.mark.parametrize(("at", "gib", "says"), [("runtime", 4, True), ("boot", 4, False), ("runtime", 6, False)])
def test_pools_name_a_server_that_changes_its_size_without_a_file(
    tmp_path: Path, at: str, gib: int, says: bool
) -> None:
    """Found: no step stopped or restarted it, and it held its pages while the new ones were to be made."""
    node = Node(tmp_path, {"mariadb": (2 * MIB, 4)}, {"mariadb": (GIB, gib)}, at, {"mariadb": "mariadb.service"},
                kept=False, is_root=True, engine="mariadb")  # fmt: skip
    pools = [a for a in node.steps if a.kind in {"numa_script", "systemd_unit", "kernel_command_line"}]
    said = "# The pages of mariadb change their size: stop it before the pools' steps, start it after them.\n"
    assert pools
    assert all((said in text) is says for a in pools for text in (a.install, a.rollback))


def test_the_control_host_starts_no_server(tmp_path: Path) -> None:
    """Found: the playbook's step restarted a server of the host that runs Ansible, and the node's stayed down."""
    node = Node(tmp_path, {"d0": (2 * MIB, 4)}, {"d0": (GIB, 4)}, "runtime", {"d0": "postgresql@17-d0.service"},
                kept=False, is_root=True, platform=Platform.ANSIBLE)  # fmt: skip
    notes, command = node.all["ansible_playbook"].install.rsplit("\n", 1)
    assert command == "ansible-playbook hugeplan-playbook.yaml"
    assert "# After it, start on the node what step 2 stopped: systemctl restart postgresql@17-d0.service\n" in notes


@pytest.mark.parametrize(("at", "kind"), [("boot", "postgresql_conf"), ("runtime", "kernel_command_line")])
def test_a_file_is_not_written_where_its_pools_cannot_be(tmp_path: Path, at: str, kind: str) -> None:
    """Found: where GRUB reads no fragments the file stayed for a pool that no step made, and no start succeeded."""
    node = Node(tmp_path, {"d0": (2 * MIB, 4)}, {"d0": (GIB, 4)}, at, {"d0": None}, kept=False, is_root=True)
    file = node.all[kind]
    (tmp_path / "bin/grub-mkconfig").write_text("#!/bin/sh\n")
    with pytest.raises(AssertionError, match="assert 1 == 0"):
        node.follow(file, file.install)
    assert not [*tmp_path.glob("d0/conf.d/*"), *tmp_path.glob("etc/default/grub.d/*")]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("at", ["boot", "runtime"])
def test_so_do_several_that_change_at_once(tmp_path: Path, seed: int, at: str) -> None:
    rng = random.Random(f"{seed} {at}")
    for number in range(6):
        names = [f"d{index}" for index in range(rng.choice((2, 3)))]
        old, new = ({name: (rng.choice(SIZES), rng.randrange(2, 9)) for name in names} for _ in range(2))
        units = {name: rng.choice((None, f"postgresql@17-{name}.service")) for name in names}
        folder = tmp_path / str(number)
        folder.mkdir()
        node = Node(folder, old, new, at, units, kept=rng.random() < 0.5, is_root=rng.random() < 0.5)
        if node.steps:
            check(node)


def observed(unit: str, size: int, at: str, *, kubernetes: bool = False) -> dict[str, Artifact]:
    """The files of a PostgreSQL with 6 GiB of 2M pages that a plan puts on 4 GiB of this size."""
    request = request_of({"d0": (size, 4)}, {2 * MIB: 3300}, at)
    running = ObservedDatabase(key="d0", engine="postgresql", version="17", unit=unit, hugetlb_bytes=6 * GIB,
                               settings={"shared_buffers": "6GB", "huge_pages": "on"})  # fmt: skip
    own = tuple(replace(one, stateful_set="shop/db", container="db") for one in request.databases)
    held = Reservations(kubernetes=kubernetes, kube_reserved_bytes=GIB if kubernetes else None)
    request = replace(request, sample=NodeSample(databases=(running,)), databases=own, reservations=held)
    return {a.kind: a for a in render(plan(request), request)}


@pytest.mark.parametrize("at", ["boot", "runtime"])
@pytest.mark.parametrize("size", SIZES)
def test_lines_that_are_left_to_a_person_say_that_they_go_first(size: int, at: str) -> None:
    """Found: the README rebooted into the smaller pool, and a member of Patroni did not start."""
    form = observed("systemd:patroni.service", size, at)["postgresql_conf_snippet"]
    assert form.summary.startswith("Before the numbered steps: lines for")
    assert ("way back of the pools" in form.rollback) is (size == GIB)
    assert ("after the ways back of the numbered steps" in form.rollback) is (size != GIB)
    assert ("without a restart" in form.install) is (size == GIB and at == "boot")
    assert form.install.startswith("# only where this says nothing: {") is (size == GIB and at == "boot")
    assert form.install.startswith("# stop it; ") is (size == GIB and at == "runtime")


@pytest.mark.parametrize("at", ["boot", "runtime"])
@pytest.mark.parametrize("size", SIZES)
def test_a_pod_needs_no_more_than_its_node_has(size: int, at: str) -> None:
    """A pod that asks for more pages than its node has is not taken, and its StatefulSet replaces none that waits."""
    files = observed("pod:shop/db-0/db", size, at, kubernetes=True)
    steps = [a.kind for a in files.values() if a.recommended]
    own = {0: ["postgresql_conf"], 2 * MIB: ["postgresql_conf", "statefulset_patch"],
           GIB: ["statefulset_patch", "postgresql_conf"]}[size]  # fmt: skip
    assert steps[1 : len(own) + 2] == [*own, "kernel_command_line" if at == "boot" else "numa_script"]
    for said in ("Its pods wait from here", "is deleted: its StatefulSet does not replace one that is not ready"):
        assert all((said in files[kind].install) is (size == GIB) for kind in own)


@pytest.mark.parametrize(
    ("said", "folder", "comes_back"),
    [
        (None, "", None),
        ("of the plan", "", True),
        ("edited", "", None),
        ("", "", False),
        ("of another", "", False),
        ("", "/gone", None),
    ],
)
def test_the_way_back_of_pools_stops_where_a_file_cannot_be_read(
    tmp_path: Path, said: str | None, folder: str, comes_back: bool | None
) -> None:
    """Found: after the reboot, in a new login, PGDATA is not exported; the file stayed, and the node rebooted. So it
    did where somebody had edited the file.
    """
    unplaced = {"a": (2 * MIB, 2)}, {"a": (GIB, 2)}, "boot", {"a": "postgresql-17.service"}
    node = Node(tmp_path / "node", *unplaced, kept=False, is_root=True, placed=False)
    (file,) = (a for a in node.steps if a.kind == "postgresql_conf")
    (pools,) = (a for a in node.steps if a.kind == "kernel_command_line")
    data = tmp_path / "data"
    (data / "conf.d").mkdir(parents=True)
    if said:
        (data / "conf.d/a-hugepages.conf").write_text(file.content if said == "of the plan" else said)
    if said in {"of the plan", "edited"}:
        (data / f"conf.d/a-hugepages.conf.before-{mark(file.content)}").touch()
    program = tmp_path / "program"
    called = tmp_path / "called"
    program.write_text(f'#!/bin/sh\ncase $3 in run) shift 3; exec "$@" ;; esac\necho "$@" >> {called}\n')
    program.chmod(0o755)
    first, rest, _ = pools.rollback.partition(f" &&\n{INSTALLER} back-alone")
    assert rest
    first = first.replace(INSTALLER, str(program))
    environment = {"PATH": os.environ["PATH"]} | ({} if said is None else {"PGDATA": f"{data}{folder}"})
    done = subprocess.run(["/bin/sh", "-c", first], check=False, capture_output=True, env=environment)
    assert (done.returncode == 0) is (comes_back is not None), done.stderr
    assert ("back " in called.read_text() if called.exists() else False) is bool(comes_back)


@pytest.mark.parametrize(
    "edited",
    [
        "a/conf.d/a-hugepages.conf",
        "etc/systemd/system/hugeplan-hugepages.service",
        "etc/tmpfiles.d/60-hugeplan.conf",
        "a/postmaster.opts",
        "etc/my.cnf.d/zz-mariadb-hugepages.cnf",
    ],
)
def test_ways_back_leave_no_server_down_where_a_file_was_edited(tmp_path: Path, edited: str) -> None:
    """Found: it took the pages, and the file's own way back left the file as it was and the server down. So it was
    where pg_ctl would not start the server as it was, or where the file's own way back came after one that had failed.
    """
    name, engine, unit = ("mariadb", "mariadb", "mariadb.service") if "my.cnf" in edited else ("a", "postgresql", None)
    node = Node(tmp_path, {name: (2 * MIB, 4)}, {name: (GIB, 6)}, "runtime", {name: unit}, kept=True, is_root=True,
                engine=engine)  # fmt: skip
    steps = [node.steps[0], node.all["tmpfiles"]] if "tmpfiles" in edited else node.steps
    for file in steps:
        node.follow(file, file.install)
    with (tmp_path / edited).open("a") as text:
        text.write("# a comment of an operator\n")
    before = dict(node.of["running"])
    with subprocess.Popen(["/bin/sleep", "60"], cwd=tmp_path / name) as main:
        (tmp_path / name / "postmaster.pid").write_text(f"{main.pid}\n")
        with pytest.raises(AssertionError, match="assert 1 == 0"):
            node.follow(steps[-1], steps[-1].rollback)
        assert node.of["running"] == before
        assert node.finds_pages(name)
        for file in steps[-2::-1]:
            with contextlib.suppress(AssertionError):
                node.follow(file, file.rollback)
        main.kill()
    assert node.of["running"][name] is not None
    assert node.finds_pages(name)


def test_a_server_is_not_stopped_where_its_pools_cannot_be_written(tmp_path: Path) -> None:
    """Found: an upgraded Debian's /usr/local is writable by a group; the next step refused, and the server was down."""
    node = Node(tmp_path, {"a": (2 * MIB, 2)}, {"a": (GIB, 2)}, "runtime", {"a": None}, kept=True, is_root=True)
    (tmp_path / "bin").chmod(0o777)
    before = dict(node.of["running"])
    with pytest.raises(AssertionError, match="assert 1 == 0"):
        node.follow(node.steps[0], node.steps[0].install)
    assert node.of["running"] == before


def test_the_way_back_of_pools_brings_the_lines_back_that_an_earlier_one_left(tmp_path: Path) -> None:
    """Found: killed between the two, it rebooted without the lines of postgresql.auto.conf."""
    node = Node(tmp_path, {"a": (2 * MIB, 2)}, {"a": (GIB, 2)}, "boot", {"a": None}, kept=True, is_root=True)
    for file in node.steps:
        node.follow(file, file.install)
    own, pools = node.steps
    auto, path = tmp_path / "a/postgresql.auto.conf", Path(own.path or "")
    kept = path.with_name(f"{path.name}.auto-{mark(own.content)}")
    kept.write_text("work_mem = '8MB'\n")
    back = own.rollback[own.rollback.index(f"\n{INSTALLER} as postgres back") :].partition(" &&\n")[0]
    node.follow(own, back)
    assert not path.exists()
    node.follow(pools, pools.rollback)
    assert auto.read_text() == "work_mem = '8MB'\n"
    assert not kept.exists()


@pytest.mark.parametrize(
    ("first", "old", "new", "order"),
    [
        (None, (2 * MIB, 8), (2 * MIB, 4), ("# before the", "# after the", "before")),
        (None, (2 * MIB, 4), (2 * MIB, 8), ("# first the", "# before the", "after")),
        (None, (2 * MIB, 4), (GIB, 4), ("# before the", "# after the", "before")),
        ((2 * MIB, 9), (2 * MIB, 4), (2 * MIB, 8), ("# first the", "# before the", "after")),
    ],
)
def test_a_patch_for_pods_on_several_nodes_has_one_order_with_their_pools(
    first: tuple[int, int] | None, old: tuple[int, int], new: tuple[int, int], order: tuple[str, str, str]
) -> None:
    """Found: it said that their pools come first, also where they shrink below what the pods ask for. Then the first
    node's answer stood for all.
    """
    pairs = [in_a_set("n1", first or old, new), in_a_set("n2", old, new)]
    patch, other = (
        next(a for a in render(*pair, of_objects=objects(pairs)) if a.kind == "statefulset_patch") for pair in pairs
    )
    assert f"{order[0]} pools of n2\n" in patch.install
    assert f"{order[1]} pools of n2 " in patch.rollback
    assert other.install.endswith(f"# from the folder of n1, once for all nodes, {order[2]} the pools of this one")
    assert "Start the program" not in other.rollback
    files = [[a.kind for a in render(*pair, of_objects=objects(pairs)) if a.recommended] for pair in pairs]
    for kinds, comes_first in zip(files, (bool(first) or order[2] == "before", order[2] == "before"), strict=True):
        assert (kinds.index("statefulset_patch") < kinds.index("kernel_command_line")) is comes_first


def in_a_set(node: str, old: tuple[int, int], new: tuple[int, int]) -> tuple[Plan, PlanRequest]:
    """A node on which a pod of a StatefulSet runs, that runs on several."""
    was = asked(plan(request_of({"d": old}, dict.fromkeys(SIZES[1:], 0), "boot")))
    request = request_of({"d": new}, pools_of(was), "boot")
    running = ObservedDatabase(
        key="d", engine="postgresql", version="17", unit="pod:shop/db-0/db",
        hugetlb_bytes=was["d"]["pages"] * old[0], settings=settings_of("postgresql", old[1]) | {"huge_pages": "on"},
    )  # fmt: skip
    pods = tuple(replace(one, stateful_set="shop/db", container="db") for one in request.databases)
    request = replace(
        request, node=replace(request.node, name=node), sample=NodeSample(databases=(running,)), databases=pods,
        reservations=Reservations(kubernetes=True, kube_reserved_bytes=GIB),
    )  # fmt: skip
    return plan(request), request
