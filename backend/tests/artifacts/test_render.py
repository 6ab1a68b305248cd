"""Artifacts say what the plan says, in the syntax their readers accept."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from artifacts.samples import EVERYTHING, here, instance, loaded
from artifacts.test_kinds import needs, run

from hugeplan.artifacts import Artifact, installer, render
from hugeplan.artifacts.base import flaw, with_content
from hugeplan.artifacts.bundle import bundle
from hugeplan.artifacts.engines.common import NOT_ROOT
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    Plan,
    PlanRequest,
    Pool,
    Reservations,
)
from hugeplan.planner.plan import plan


def request_of(*databases: DatabaseInstance, nodes: int = 1, **fields: object) -> PlanRequest:
    numa = tuple(NumaNode(id=i, mem_total_bytes=32 * GIB, pools=()) for i in range(nodes))
    return PlanRequest(node=NodeFacts(name="db-7", numa=numa, kernel_used_bytes=GIB), databases=databases, **fields)


def postgresql(name: str = "main", **fields: object) -> DatabaseInstance:
    settings = {"shared_buffers": "4GB", "max_connections": "100"}
    return DatabaseInstance(name=name, engine="postgresql", version="17", settings=settings, **fields)


def rendered(request: PlanRequest) -> tuple[Plan, dict[str, Artifact]]:
    found = plan(request)
    artifacts = render(found, request)
    assert len({a.kind for a in artifacts}) == len(artifacts)
    return found, {a.kind: a for a in artifacts}


class TestSysctl:
    def test_the_count_is_the_plan(self) -> None:
        found, files = rendered(request_of(postgresql()))
        assert re.search(rf"^vm\.nr_hugepages = {found.pools[0].pages}$", files["sysctl"].content, re.M)

    def test_absent_when_only_1g_is_planned(self) -> None:
        _, files = rendered(request_of(postgresql(page_bytes=GIB)))
        assert "sysctl" not in files

    def test_engines_sysctls_are_here_and_not_in_the_engines_file(self) -> None:
        db2 = DatabaseInstance(name="core", engine="db2", settings={"database_memory": "4G"}, connections=10)
        found, files = rendered(request_of(db2))
        asked = {s.name: s.value for s in found.instances[0].demand.settings if s.name.startswith("kernel.")}
        assert asked
        for name, value in asked.items():
            assert f"{name} = {value}" in files["sysctl"].content
            assert name not in files["db2_settings"].content


class TestKernelCommandLine:
    def test_one_numa_node(self) -> None:
        found, files = rendered(request_of(postgresql()))
        words = f"default_hugepagesz=2M hugepagesz=2M hugepages={found.pools[0].pages}"
        assert f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"' in files["kernel_command_line"].content

    def test_two_sizes_on_two_nodes_in_kernel_order(self) -> None:
        databases = (postgresql("a", numa_node=0), postgresql("b", numa_node=1, page_bytes=GIB))
        found, files = rendered(request_of(*databases, nodes=2))
        small, large = found.pools
        expected = f"hugepagesz=2M hugepages=0:{small.pages} hugepagesz=1G hugepages=1:{large.pages}"
        assert expected in files["kernel_command_line"].content


class TestNumaScript:
    def run(self, script: str, root: Path) -> subprocess.CompletedProcess[str]:
        text = script.replace("/sys/devices", f"{root}/sys/devices").replace("/proc/sys", f"{root}/proc/sys")
        text = here(text).replace("/usr/local/sbin", str(root))
        return subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False, cwd=root)

    def tree(self, root: Path, nodes: int) -> None:
        (root / "proc/sys/vm").mkdir(parents=True)
        for node in range(nodes):
            for size in (2048, 1048576):
                directory = root / f"sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB"
                directory.mkdir(parents=True)
                (directory / "nr_hugepages").write_text("0\n")

    def test_writes_every_count(self, tmp_path: Path) -> None:
        databases = (postgresql("a", numa_node=0), postgresql("b", numa_node=1, page_bytes=GIB))
        found, files = rendered(request_of(*databases, nodes=2))
        self.tree(tmp_path, 2)
        assert self.run(files["numa_script"].content, tmp_path).returncode == 0
        for pool in found.pools:
            directory = f"hugepages-{pool.page_bytes // 1024}kB"
            path = tmp_path / f"sys/devices/system/node/node{pool.numa_node}/hugepages" / directory / "nr_hugepages"
            assert int(path.read_text()) == pool.pages
        assert self.run(files["numa_script"].verify, tmp_path).returncode == 0

    def test_a_missing_node_is_said_and_fails(self, tmp_path: Path) -> None:
        _, files = rendered(request_of(postgresql(numa_node=1), nodes=2))
        self.tree(tmp_path, 1)
        done = self.run(files["numa_script"].content, tmp_path)
        assert done.returncode == 1
        assert "node1" in done.stderr

    def test_pages_that_a_server_holds_are_said_and_do_not_fail(self, tmp_path: Path) -> None:
        """Found: who changed the size of a running server's pages had every step of the pools end with 1."""
        _, files = rendered(request_of(postgresql()))
        self.tree(tmp_path, 1)
        script = re.sub(r"^reserve \d.*", "reserve 0 hugepages-2048kB 0", files["numa_script"].content, flags=re.M)
        # The kernel keeps what is held, as surplus; a file of the test keeps what is written.
        script = script.replace('now=$(cat "$file")', "now=798")
        surplus = tmp_path / "sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages"
        for held, code in ((798, 0), (797, 1)):
            surplus.write_text(f"{held}\n")
            done = self.run(script, tmp_path)
            assert done.returncode == code, done.stderr
            assert ("798 more than 0 pages stay until who holds them ends" in done.stderr) is (code == 0)

    def test_rollback_restores_what_stood(self, tmp_path: Path) -> None:
        request = request_of(postgresql())
        pools = (Pool(page_bytes=GIB, nr_hugepages=3, free_hugepages=3),)
        numa = (NumaNode(id=0, mem_total_bytes=32 * GIB, pools=pools),)
        request = PlanRequest(node=NodeFacts(name="n", numa=numa), databases=request.databases)
        _, files = rendered(request)
        self.tree(tmp_path, 1)
        assert "reserve 0 hugepages-1048576kB 0" in files["numa_script"].content
        path = tmp_path / "sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages"
        assert self.run(files["numa_script"].rollback, tmp_path).returncode == 1, "not installed"
        assert int(path.read_text()) == 0
        # The script that the install runs writes below the test's folder, too: this machine's pools are its own.
        own = re.sub("/(sys/devices|proc/sys)", rf"{tmp_path}/\1", files["numa_script"].content)
        script = with_content(files["numa_script"], own)
        (tmp_path / script.filename).write_text(own)
        self.run(script.install, tmp_path)
        assert int(path.read_text()) == 0
        assert self.run(script.rollback, tmp_path).returncode == 0
        assert int(path.read_text()) == 3


class TestTmpfiles:
    def test_each_line_writes_a_count(self) -> None:
        found, files = rendered(request_of(postgresql(), nodes=2))
        lines = [line.split() for line in files["tmpfiles"].content.splitlines() if not line.startswith("#")]
        assert [(line[0], line[2:6], int(line[6])) for line in lines if line] == [
            ("w", ["-", "-", "-", "-"], pool.pages) for pool in found.pools
        ]


class TestPod:
    def test_limit_is_whole_pages_and_covers_the_segment(self) -> None:
        request = request_of(postgresql(), reservations=Reservations(kubernetes=True))
        found, files = rendered(request)
        resources = yaml.safe_load(files["pod"].content)["resources"]
        # A memory limit that nobody asked for is not written; huge pages without a request of memory are refused.
        assert {k: v for k, v in resources["requests"].items() if k != "memory"} == resources["limits"]
        limit = int(resources["limits"]["hugepages-2Mi"].removesuffix("Mi"))
        assert limit % 2 == 0
        assert limit >= found.instances[0].demand.pages * 2
        assert "memory" in resources["requests"]

    def test_smaller_huge_pages_have_a_limit_of_their_own(self) -> None:
        mariadb = DatabaseInstance(
            name="shop", engine="mariadb", settings={"innodb_buffer_pool_size": "10G"}, page_bytes=GIB
        )
        found, files = rendered(request_of(mariadb, reservations=Reservations(kubernetes=True)))
        limits = yaml.safe_load(files["pod"].content)["resources"]["limits"]
        assert limits["hugepages-2Mi"] == "262Mi"
        assert dict(found.instances[0].demand.also_pages) == {2 * MIB: 131}

    def test_absent_without_kubernetes(self) -> None:
        _, files = rendered(request_of(postgresql()))
        assert "pod" not in files


class TestEngineSettings:
    def test_postgresql_conf(self) -> None:
        _, files = rendered(request_of(postgresql(page_bytes=GIB)))
        content = files["postgresql_conf"].content
        assert re.search(r"^huge_pages = on$", content, re.M)
        assert re.search(r"^huge_page_size = 1GB$", content, re.M)

    def test_a_sized_pool_is_written(self) -> None:
        _, files = rendered(request_of(postgresql(pool_min_bytes=GIB, pool_max_bytes=2 * GIB)))
        assert re.search(r"^shared_buffers = 2GB$", files["postgresql_conf"].content, re.M)

    def test_my_cnf(self) -> None:
        instance = DatabaseInstance(
            name="shop", engine="mysql", version="8.0", settings={"innodb_buffer_pool_size": "4G"}
        )
        _, files = rendered(request_of(instance))
        assert files["my_cnf"].content.splitlines()[2] == "[mysqld]"

    def test_two_instances_have_two_kinds(self) -> None:
        _, files = rendered(request_of(postgresql("a b"), postgresql("a-b")))
        assert {"postgresql_conf-a-b", "postgresql_conf-a-b-2"} <= set(files)


@pytest.mark.parametrize(
    ("version", "is_locked"),
    [("5.7.44", True), ("8.0.20", True), ("8.0.25-15", True), ("8.0.26", False), ("8.0", False), ("8.1.0", False)],
)
def test_a_mysql_that_maps_by_shmget_is_given_locked_memory(version: str, is_locked: bool) -> None:
    """The linter's word for every release before 8.0.26; the planner's was for 5.7 alone."""
    settings = {"innodb_buffer_pool_size": "4G"}
    database = DatabaseInstance(name="shop", engine="mysql", version=version, settings=settings, page_bytes=2 * MIB)
    found, files = rendered(request_of(database))
    assert ({"limits_d", "memlock_dropin"} <= set(files)) is is_locked
    assert ("memlock_too_low" in {one.code for one in found.findings}) is is_locked
    assert ("vm.hugetlb_shm_group" in files["sysctl"].content) is is_locked


@pytest.mark.parametrize("name", ["x\nvm.nr_hugepages = 1", "$(reboot)", "`id`"])
def test_names_stay_inside_comments(name: str) -> None:
    numa = (NumaNode(id=0, mem_total_bytes=32 * GIB),)
    request = PlanRequest(node=NodeFacts(name="n", numa=numa), databases=(postgresql(name),))
    _, files = rendered(request)
    assert files
    for artifact in files.values():
        if artifact.kind == "installer":  # no word of the plan's
            continue
        if artifact.media_type in {"application/yaml", "application/json", "text/cloud-config"}:
            assert loaded(artifact.content)  # the name is a value in there, not syntax
            continue
        for line in artifact.content.splitlines():
            if "reboot)" in line or "`id`" in line or "= 1" in line.split("#")[0]:
                assert line.startswith("#")


def test_a_process_of_any_user_answers_for_no_server_of_a_host() -> None:
    """Found with `exec -a mariadbd sleep` of a user, whose pages were what the verify line asked for. Root's check read
    the file that a server named into arguments, and root's client a library of the server's, or gave it a password.
    """
    alone = request_of(DatabaseInstance(name="a", engine="mysql", settings={"innodb_buffer_pool_size": "9G"}))
    files = [
        file for own in (alone, *EVERYTHING) if not own.reservations.kubernetes for file in rendered(own)[1].values()
    ]
    assert {"jvm_options", "my_cnf", "prometheus_rules"} <= {file.kind for file in files}
    others = re.compile(r"pidof|pid_file|\$\(cat (?!/sys/)|^promtool|\b(mariadb|mysql|redis-cli) +-|^psql|\(psql", re.M)
    for file in files:
        for text in (file.install, file.verify, file.rollback):
            assert not others.search(text)
            if re.search(r"^[^#]*(sqlplus|db2set|sh .*db2\.sh|before-hugeplan)", text, re.M):
                assert text.startswith(NOT_ROOT)
    assert [file.kind for file in files if flaw(file)] == []


def test_kept_files_for_a_node_are_of_this_releases_renderer() -> None:
    """Found: a check of old had root ask a server, and each list of such texts was one short."""
    for own in EVERYTHING:
        files = list(rendered(own)[1].values())
        assert installer.outdated(files) is None
        assert installer.outdated([with_content(file, f"{file.content}# of a plan\n") for file in files]) is None
        on_node = [file for file in files if (file.path or "").startswith("/")]
        old = [replace(file, content=file.content.replace("cd /", "cd .")) for file in files]
        for kept in (old, [file for file in files if file.kind != installer.KIND]):
            assert (installer.outdated(kept) is None) == (not on_node)


@pytest.mark.parametrize(("mode", "thp", "is_kept"), [("always", 0, True), ("always", 1, False), ("madvise", 1, True)])
def test_thp_is_kept_away_from_a_redis_by_itself_or_by_the_node(
    tmp_path: Path, mode: str, thp: int, *, is_kept: bool
) -> None:
    (tmp_path / "mode").write_text("always [madvise] never\n" if mode == "madvise" else "[always] madvise never\n")
    status = tmp_path / "status"
    kubernetes = Reservations(kubernetes=True)
    own = DatabaseInstance(name="r", engine="redis", settings={"maxmemory": "1gb"}, stateful_set="n/r", container="r")
    for request in (request_of(own), request_of(own, reservations=kubernetes)):
        verify = rendered(request)[1]["redis_conf"].verify
        verify = shlex.split(verify)[-1] if request.reservations.kubernetes else verify
        verify = re.sub(r"/sys/\S+ /proc/.*status\b", f"{tmp_path}/mode {status}", verify)
        for text in (f"Name:\tsh\nTHP_enabled:\t{1 - thp}\nName:\tredis-server\nTHP_enabled:\t{thp}\n", None):
            if text is None:
                status.unlink()
            else:
                status.write_text(text if request.reservations.kubernetes else text[text.index("Name:\tredis") :])
            assert (subprocess.run(["/bin/sh", "-c", verify], check=False).returncode == 0) is (
                is_kept and text is not None
            )


def test_no_pool_no_files() -> None:
    assert rendered(request_of())[1] == {}


@pytest.mark.parametrize(
    ("engine", "settings", "has_file"),
    [
        ("postgresql", {"shared_buffers": "8GB", "huge_pages": "off"}, False),
        ("postgresql", {"shared_buffers": "8GB", "huge_pages": "on"}, False),
        ("postgresql", {"shared_buffers": "8GB", "huge_pages": "try"}, True),
        ("postgresql", {"shared_buffers": "8GB"}, True),
        ("mysql", {"innodb_buffer_pool_size": "8G", "large_pages": "1"}, False),
        ("mysql", {"innodb_buffer_pool_size": "8G"}, True),
    ],
)
def test_an_engine_has_a_file_only_where_a_setting_changes(
    engine: str, settings: dict[str, str], has_file: bool
) -> None:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB)
    request = PlanRequest(node=node, databases=(DatabaseInstance(name="db", engine=engine, settings=settings),))
    kinds = {item.kind for item in render(plan(request), request)}
    assert bool(kinds & {"postgresql_conf", "my_cnf"}) is has_file


@pytest.mark.parametrize(
    ("engine", "kind", "asks", "size"),
    [
        ("postgresql", "postgresql_conf", {"huge_pages": "on"}, "shared_buffers"),
        ("mysql", "my_cnf", {"large-pages": "1"}, "innodb_buffer_pool_size"),
        ("mariadb", "mariadb_cnf", {"large_pages": "ON"}, "innodb_buffer_pool_size"),
    ],
)
@pytest.mark.parametrize("is_complete", [True, None])
def test_a_changed_setting_of_a_server_on_huge_pages_is_written(
    engine: str, kind: str, asks: dict[str, str], size: str, is_complete: bool | None
) -> None:
    """Its pool shrank to what the plan counts, no file said so, and the server did not start: E1 of 2026-11-30."""
    caches = {"key_buffer_size": "8M"} if engine == "mariadb" else {}

    def content(now: dict[str, str], planned: dict[str, str]) -> str | None:
        server = ObservedDatabase(key="s", engine=engine, settings=caches | now, settings_complete=is_complete)
        database = DatabaseInstance(
            name="db", engine=engine, runs_as="s", page_bytes=2 * MIB, settings=caches | now | planned
        )
        file = rendered(request_of(database, sample=NodeSample(databases=(server,))))[1].get(kind)
        return None if file is None else file.content

    unit = "MB" if engine == "postgresql" else "M"
    for other in (f"100{unit}", f"400{unit}"):
        found = content({**asks, size: f"200{unit}"}, {size: other})
        assert found is not None
        assert re.search(rf"^{size} = '?{other}'?$", found, re.M)
        assert "_pages = o" in found.lower(), "the file takes the place of an earlier one, which said so"
    assert content({**asks, size: f"200{unit}"}, {}) is None
    # Asked for by the plan's words alone, the server has another value.
    assert content({**dict.fromkeys(asks, "off"), size: f"200{unit}"}, asks) is not None


@pytest.mark.parametrize(
    ("engine", "kind", "size", "own", "other"),
    [
        ("postgresql", "postgresql_conf", "shared_buffers", "db-hugepages.conf", "postgresql.auto.conf"),
        ("mysql", "my_cnf", "innodb_buffer_pool_size", "zz-db-hugepages.cnf", "command line"),
        ("mariadb", "mariadb_cnf", "innodb-buffer-pool-size", "zz-db-hugepages.cnf", "60-mine.cnf"),
    ],
)
def test_a_second_file_has_what_the_first_one_set(engine: str, kind: str, size: str, own: str, other: str) -> None:
    """It took the first one's place without it: the server asked for its old size of a pool that was too small."""
    asks = "huge_pages" if engine == "postgresql" else "large_pages"

    def lines(source: str | None, planned: str, now: str = "on") -> list[str]:
        unit = "MB" if engine == "postgresql" else "M"
        settings = {asks: now, size: f"200{unit}", "max_connections": "60"}
        sources = dict.fromkeys(settings, "a file") | ({} if source is None else {size: source})
        if source is None:
            del sources[size]
        server = ObservedDatabase(key="s", engine=engine, settings=settings, settings_complete=True, sources=sources)
        settings = settings | {"max_connections": planned, asks: "on"}
        database = DatabaseInstance(name="db", engine=engine, runs_as="s", page_bytes=2 * MIB, settings=settings)
        file = rendered(request_of(database, sample=NodeSample(databases=(server,))))[1].get(kind)
        text = "" if file is None else file.content.replace("-", "_").replace("'", "")
        return re.findall(r"^(\w+ = \d+)", text, re.M)

    name = size.replace("-", "_")
    for source in (own, own.replace("db", "shop"), f"{'x' * 50}-hugepages.conf"[:64], None):
        assert set(lines(source, "80")) >= {f"{name} = 200", "max_connections = 80"}
        assert lines(source, "60") == [], "the first file stays, and is right"
        assert f"{name} = 200" in lines(source, "60", now="off")
    assert f"{name} = 200" not in lines(other, "80"), "that file stays, too"


@pytest.mark.parametrize(("engine", "size"), [("postgresql", "shared_buffers"), ("mysql", "innodb_buffer_pool_size")])
@pytest.mark.parametrize(("source", "is_a_step"), [("command line", False), ("a file", True)])
def test_what_the_command_line_has_no_step_changes(engine: str, size: str, source: str, *, is_a_step: bool) -> None:
    """Found: PostgreSQL started with its command line's shared_buffers, of a pool for the file's, and ended."""
    asks = "huge_pages" if engine == "postgresql" else "large_pages"
    now = {asks: "on", size: "192MB" if engine == "postgresql" else "192M"}
    server = ObservedDatabase(
        key="s", engine=engine, settings=now, sources=dict.fromkeys(now, "a file") | {size: source}
    )
    settings = {name: value.replace("192", "128") for name, value in now.items()}
    database = DatabaseInstance(name="db", engine=engine, runs_as="s", page_bytes=2 * MIB, settings=settings)
    files = rendered(request_of(database, sample=NodeSample(databases=(server,))))[1].values()
    own = next(file for file in files if f"{size} = " in file.content.replace("-", "_"))
    assert own.recommended is (own.path is not None) is is_a_step
    assert (f"command line has {size}" in own.summary.replace("-", "_")) is not is_a_step


def test_what_the_planner_sized_is_written_once() -> None:
    settings = {"shared_buffers": "512MB", "huge_pages": "on"}
    server = ObservedDatabase(key="s", engine="postgresql", settings=settings)
    database = replace(postgresql(pool_min_bytes=GIB, pool_max_bytes=2 * GIB, runs_as="s"), settings=settings)
    content = rendered(request_of(database, sample=NodeSample(databases=(server,))))[1]["postgresql_conf"].content
    assert re.findall(r"^shared_buffers = .*$", content, re.M) == ["shared_buffers = '2GB'"]


def test_who_gives_pages_back_does_it_first() -> None:
    """A PostgreSQL that insists on pages does not start while a server that was planned on base pages holds them."""
    side = DatabaseInstance(
        name="side", engine="mariadb", page_bytes=0, settings={"innodb_buffer_pool_size": "4G", "large_pages": "ON"}
    )
    request = request_of(postgresql(), side)
    steps = {item.kind: item.step or 0 for item in render(plan(request), request) if item.recommended}
    assert steps["mariadb_cnf"] < steps["kernel_command_line"] < steps["postgresql_conf"]


class TestSeveralServersOfOneHost:
    """Each reads [mysqld], and each MariaDB [mariadb]: a file there sets all their pools."""

    @staticmethod
    def files(*units: str, engine: str = "mariadb", prefix: str = "systemd:", **fields: object) -> dict[str, Artifact]:
        names = [f"db{number}" for number in range(len(units))]
        settings = {"innodb_buffer_pool_size": "1G", "large_pages": "OFF"}
        running = tuple(
            ObservedDatabase(key=name, engine=engine, unit=prefix + unit, settings=settings)
            for name, unit in zip(names, units, strict=True)
        )
        databases = tuple(
            DatabaseInstance(
                name=f"of {name}",
                engine=engine,
                runs_as=name,
                page_bytes=2 * MIB,
                settings={"innodb_buffer_pool_size": "1G"},
            )
            for name in names
        )
        request = request_of(*databases, sample=NodeSample(databases=running), **fields)
        return rendered(request)[1]

    @pytest.mark.parametrize("engine", ["mysql", "mariadb"])
    def test_what_no_unit_names_is_left_to_a_person(self, engine: str) -> None:
        files = self.files("a.service", "b.service", engine=engine)
        kind = {"mysql": "my_cnf", "mariadb": "mariadb_cnf"}[engine]
        assert not any(name.startswith(f"{kind}-") for name in files)
        for name in ("of-db0", "of-db1"):
            form = files[f"{kind}_snippet-{name}"]
            assert (form.path, form.recommended) == (None, False)
            assert form.install.startswith("#")
            assert "OWN_SECTION]\n" in form.content
        readme = next(f.text for f in bundle("db-7", "", tuple(files.values())) if f.path == "README.md")
        assert f"alternatives/{kind}_snippet-of-db0/" in readme.partition("## Recommended")[0]

    def test_who_gives_pages_back_does_it_before_the_steps(self) -> None:
        settings = {"innodb_buffer_pool_size": "4G", "large_pages": "ON"}
        two = (DatabaseInstance(name=name, engine="mysql", page_bytes=0, settings=settings) for name in "ab")
        files = rendered(request_of(postgresql(), *two))[1]
        assert files["my_cnf_snippet-a"].summary.startswith("Before the numbered steps: ")

    def test_an_observed_neighbour_counts(self) -> None:
        request = request_of(DatabaseInstance(name="new", engine="mariadb", settings={"innodb_buffer_pool_size": "1G"}))
        other = NodeSample(databases=(ObservedDatabase(key="o", engine="mysql"),))
        assert "mariadb_cnf" in rendered(request)[1]
        assert "mariadb_cnf_snippet" in rendered(replace(request, sample=other))[1]

    def test_a_unit_of_a_template_has_a_section_of_its_own(self, tmp_path: Path) -> None:
        files = self.files("mariadb@one.service", "mariadb@two.service", "mariadb@a\\x2db.service")
        assert "mariadb_cnf_snippet-of-db2" in files
        for kind, name in (("mariadb_cnf-of-db0", "one"), ("mariadb_cnf-of-db1", "two")):
            file = files[kind]
            assert file.recommended
            assert f"\n[mariadb.{name}]\n" in file.content
            assert file.install.endswith(f"systemctl restart mariadb@{name}")
            assert f"MainPID --value mariadb@{name})" in file.verify
        assert (
            "\n[mysqld@one]\n" in self.files("mysqld@one.service", "b.service", engine="mysql")["my_cnf-of-db0"].content
        )
        program = needs("mariadbd")
        option_file = tmp_path / "my.cnf"
        option_file.write_text("\n".join(f.content for kind, f in files.items() if kind.startswith("mariadb_cnf")))
        option_file.chmod(0o644)
        for suffix, asked in ((".one", 1), (".two", 1), (".b", 0), ("", 0)):
            done = run(
                program, f"--defaults-file={option_file}", f"--defaults-group-suffix={suffix}", "--print-defaults"
            )
            assert done.stdout.count("--large_pages=ON") == asked


def test_a_lone_server_is_restarted_by_its_own_service() -> None:
    """Another one of its engine may be installed beside it, which a restart would start."""
    for unit, section, service in (
        ("mariadb@main", "mariadb.main", "mariadb@main"),
        ("mariadb@a\\x2db", "mariadb", "'mariadb@a\\x2db'"),
        ("mysql", "mariadb", "mysql"),
    ):
        file = TestSeveralServersOfOneHost.files(f"{unit}.service")["mariadb_cnf"]
        assert f"\n[{section}]\n" in file.content
        assert file.install.endswith(f"systemctl restart {service}")
        assert f"systemctl restart {service} &&" in file.rollback.splitlines()
        assert f"MainPID --value {service})" in file.verify


@pytest.mark.parametrize(
    "unit",
    ["systemd:rh-mariadb105-mariadb.service", "systemd:orders-db.service", "systemd:galera.service",
     "systemd:mysql@bootstrap.service", "systemd:user@1001.service/mariadb.service", "container:lxc/db",
     "systemd:session-3.scope"],
)  # fmt: skip
def test_a_server_of_a_unit_of_any_other_name_is_restarted_by_no_other(unit: str) -> None:
    """Which files it reads is not known: the usual folder may be another server's, which the restart would start."""
    for engine, kind in (("mariadb", "mariadb_cnf_snippet"), ("mysql", "my_cnf_snippet")):
        files = TestSeveralServersOfOneHost.files(unit, engine=engine, prefix="")
        assert kind.replace("_snippet", "") not in files
        form = files[kind]
        assert (form.path, form.recommended) == (None, False)
        assert all(text.startswith("#") for text in (form.install, form.verify, form.rollback))
        assert "OWN_SECTION]\n" in form.content
        service = unit.removeprefix("systemd:") if unit.endswith(".service") and "/" not in unit else None
        for text in (form.install, form.rollback):
            assert text.partition("systemctl restart ")[2] == (service or "")


def test_a_second_plan_of_another_page_size_takes_the_pages_of_the_first_away() -> None:
    """Found: a pod asked for both, of which its node had one; and the first way back knew one of them alone."""
    container = {"name": "postgresql", "image": "i", "resources": {"limits": {"memory": "10Gi"}}}
    held: Any = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "postgresql"},
                 "spec": {"template": {"spec": {"containers": [container]}}}}  # fmt: skip
    for size, own in ((2 * MIB, "hugepages-2Mi"), (GIB, "hugepages-1Gi")):
        database = postgresql(page_bytes=size, stateful_set="hugeplan/postgresql", container="postgresql")
        request = request_of(database, reservations=Reservations(kubernetes=True))
        file = rendered(request)[1]["statefulset_patch"]
        words = ("patch", "--local", "-f", "-", "--type", "strategic", "-o", "json", "--patch", file.content)
        done = subprocess.run(
            [needs("kubectl"), *words], input=json.dumps(held), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        held = json.loads(done.stdout)
        resources = held["spec"]["template"]["spec"]["containers"][0]["resources"]
        for part in ("requests", "limits"):
            assert [name for name in resources[part] if name.startswith("hugepages")] == [own]
        for name in ("hugepages-2Mi", "hugepages-1Gi"):
            assert f'"limits" "{name}"}}}}' in file.install, "what it had of both comes back"


def test_each_jvm_of_a_host_is_asked_itself() -> None:
    """Found: the newest java of one user answered for both."""
    two = [DatabaseInstance(name=name, engine="jvm", settings={"Xmx": "1G"}) for name in ("a", "b-c")]
    for databases, words in ((two, ["JVM_PID_A:?", "JVM_PID_B_C:?"]), (two[:1], ["pgrep -n -x -u"])):
        files = [a for a in rendered(request_of(*databases))[1].values() if a.kind.startswith("jvm_options")]
        for file, word in zip(files, words, strict=True):
            assert word in file.verify


@pytest.mark.parametrize("engine", ["oracle", "db2", "generic"])
def test_the_unit_of_a_server_is_not_guessed_from_its_engine(engine: str) -> None:
    """Found: the drop-in of one Db2 was of db2.service, which it restarts, whatever that runs."""
    file = rendered(request_of(instance(engine)))[1]["memlock_dropin"]
    assert file.path is None
    lines = "\n".join((file.install, file.verify, file.rollback)).splitlines()
    assert [line for line in lines if not line.startswith("#")] == []
    assert "systemctl restart UNIT.service" in file.install


def test_each_oracle_has_a_way_back_of_its_own() -> None:
    """Instances of one home share its folder; the file that a running one uses is not written anew (ORA-32002)."""
    own, other = (
        rendered(request_of(DatabaseInstance(name="one", engine="oracle", settings={"sga_max_size": size})))[1][
            "oracle_parameters"
        ]
        for size in ("4G", "5G")
    )
    (kept,) = re.findall(r"before-hugeplan-@-\w+\.ora", own.content)
    assert kept not in other.content, "a second plan keeps the first one's way back"
    words = ["/bin/sh", "-c", own.rollback.partition(" &&\n")[2].partition("| sqlplus")[0]]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    # What cannot be read ends it while the instance runs; what is stopped starts again whatever comes.
    assert said[:2] == ["WHENEVER SQLERROR EXIT FAILURE", f"CREATE SPFILE='{kept}.read' FROM PFILE='{kept}';"]
    assert said[2:4] == ["WHENEVER SQLERROR CONTINUE", "SHUTDOWN IMMEDIATE"]
    assert said[4:] == [f"CREATE SPFILE FROM PFILE='{kept}';", "STARTUP"]


def test_oracles_parameters_of_before_are_kept_once() -> None:
    """Oracle overwrites a PFILE: a second paste kept the plan's own parameters as those of before."""
    own = DatabaseInstance(name="one", engine="oracle", settings={"sga_max_size": "4G"})
    file = rendered(request_of(own))[1]["oracle_parameters"]
    lines = [line for line in file.content.splitlines() if not line.startswith("--")]
    assert lines[0] == "WHENEVER SQLERROR EXIT FAILURE"
    block = " ".join(lines[: lines.index("/")])
    found = re.fullmatch(
        r".* SELECT MAX\(update_comment\) INTO marks FROM v\$spparameter WHERE name = 'use_large_pages';"
        r" +IF INSTR\(NVL\(marks, '-'\), '(\w{16})'\) = 0 THEN"
        r" +EXECUTE IMMEDIATE 'CREATE PFILE=''before-hugeplan-@-(\w{16})\.ora'' FROM SPFILE';"
        r" +marks := SUBSTR\('hugeplan (\w{16}) ' \|\| REPLACE\(marks, CHR\(39\)\), 1, 200\); +END IF;"
        r" +EXECUTE IMMEDIATE 'ALTER SYSTEM SET use_large_pages = ONLY COMMENT = ''' \|\| marks"
        r" \|\| ''' SCOPE = SPFILE'; END;",
        block,
    )
    assert found is not None, block
    assert len(set(found.groups())) == 1
    rest = lines[lines.index("/") + 1 :]
    assert not [line for line in rest if "use_large_pages" in line or "CREATE" in line]
    # A parameter that was not set is no failure (ORA-32010); all else ends the file.
    may_fail = rest.index("ALTER SYSTEM RESET memory_max_target SCOPE = SPFILE;")
    assert rest[may_fail - 1 : may_fail + 2 : 2] == ["WHENEVER SQLERROR CONTINUE", "WHENEVER SQLERROR EXIT FAILURE"]
    assert rest.count("WHENEVER SQLERROR CONTINUE") == 1


def redis_files(*units: str | None) -> dict[str, Artifact]:
    """Redis servers on the ports from 6379 on; None runs nowhere yet."""
    seen = [f"redis@systemd:{unit}:{6379 + at}" if unit else None for at, unit in enumerate(units)]
    running = tuple(
        ObservedDatabase(key=key, engine="redis", unit=key.partition("@")[2].rpartition(":")[0], port=int(key[-4:]))
        for key in seen
        if key
    )
    databases = [
        DatabaseInstance(name=f"r{at}", engine="redis", runs_as=key, settings={"maxmemory": "1gb"})
        for at, key in enumerate(seen)
    ]
    return rendered(request_of(*databases, sample=NodeSample(databases=running)))[1]


def test_a_redis_of_another_service_does_not_restart_the_usual_one() -> None:
    """The file of a user's server, or of a second one, wrote into the first one's file and restarted that."""
    for unit, service in (("redis.service", "redis"), ("redis-server.service", "redis-server")):
        files = redis_files("queue.service", unit)
        usual, form = files["redis_conf-r1"], files["redis_conf_snippet-r0"]
        for text, at in ((usual.install, -1), (usual.rollback, -2)):
            assert text.splitlines()[at].removesuffix(" &&") == f"systemctl restart {service}"
        assert f"MainPID --value {service})/status" in usual.verify
        assert "systemctl restart queue.service" in form.install
    for unit in ("session-3.scope", "queue.service", "redis-server@b.service", "user@1000.service/redis.service"):
        form = redis_files(unit)["redis_conf_snippet"]
        assert (form.path, form.recommended) == (None, False)
        for text in (form.install, form.verify, form.rollback):
            assert text.startswith("#")
            assert "\n" not in text
        assert "disable-thp yes" in form.content


def test_redis_servers_of_unknown_services_are_left_to_a_person() -> None:
    """Two of them cannot both be the usual one."""
    assert redis_files(None)["redis_conf"].install.endswith("systemctl restart redis")
    assert {kind for kind in redis_files(None, None) if kind.startswith("redis")} == {
        "redis_conf_snippet-r0", "redis_conf_snippet-r1",
    }  # fmt: skip
    assert "redis_conf_snippet-r0" in redis_files(None, "redis.service")


@pytest.mark.parametrize(("engine", "kind", "unit"), [
    ("mysql", "my_cnf", "systemd:mysql.service"), ("jvm", "jvm_options", "systemd:app.service"),
    ("redis", "redis_conf", "systemd:redis.service"), ("postgresql", "postgresql_conf", "systemd:pg.service"),
])  # fmt: skip
def test_a_users_server_does_not_change_the_file_of_the_planned_one(engine: str, kind: str, unit: str) -> None:
    settings = {"mysql": {"innodb_buffer_pool_size": "1G"}, "jvm": {"Xmx": "1g"}, "redis": {"maxmemory": "1gb"},
                "postgresql": {"shared_buffers": "4GB"}}  # fmt: skip
    own = ObservedDatabase(key="own", engine=engine, unit=unit, owner_uid=112)
    hers = ObservedDatabase(key="hers", engine=engine, unit="systemd:session-3.scope", owner_uid=1001)
    one = DatabaseInstance(name="db", engine=engine, runs_as="own", settings=settings[engine])

    def file(*running: ObservedDatabase) -> Artifact | None:
        return rendered(request_of(one, sample=NodeSample(databases=running)))[1].get(kind)

    assert file(own, hers) == file(own) is not None
    # With the planned server's own rights it reads the same files.
    for other in (replace(hers, owner_uid=112), replace(hers, owner_uid=None), replace(hers, unit="systemd:b.service")):
        assert (file(own, other) == file(own)) is (engine == "redis")
