"""Database servers in constructed trees: settings, secrets, mappings, limits."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hugeplan_agent.collectors import collect_all, engines, mappings, servers
from hugeplan_agent.collectors.engines import jvm, mysql, oracle, postgresql
from hugeplan_agent.collectors.engines.base import Settings
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host

KIB, MIB, GIB = 1024, 1024**2, 1024**3
Machine = Callable[[str], Host]


def databases(host: Host) -> dict[str, dict[str, Any]]:
    return {one["engine"]: one for one in collect_all(host).sample["databases"]}


def values(database: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: (one["value"], one["source"]) for name, one in database["settings"].items()}


class TestPostgresql:
    @pytest.fixture
    def server(self, machine: Machine) -> dict[str, Any]:
        return databases(machine("kubernetes-v2"))["postgresql"]

    def test_settings_in_the_order_in_which_the_server_reads_them(self, server: dict[str, Any]) -> None:
        assert values(server) == {
            "shared_buffers": ("1GB", "command line"),
            "max_connections": ("150", "command line"),
            "huge_pages": ("try", "postgresql.conf"),
            "work_mem": ("32MB", "postgresql.auto.conf"),
            "max_wal_senders": ("5", "postgresql.auto.conf"),
            "effective_cache_size": ("4GB", "10-memory.conf"),
        }
        assert (server["version"], server["version_source"], server["port"]) == ("17", "PG_VERSION", 5433)
        assert server["settings_complete"] is True

    def test_processes_and_clients(self, server: dict[str, Any]) -> None:
        assert (server["main_pid"], server["process_count"], server["client_count"]) == (5001, 5, 2)

    @pytest.mark.parametrize(
        ("ids", "mapped", "uid"),
        [
            ("1000\t999\t998\t997", None, 999),  # as what it runs, not who started it
            ("0\t0\t0\t0", "         0          0 4294967295", 0),
            ("1000\t4294967294\t0\t0", None, 4294967294),
            ("12345\t0\t0\t0", None, 12345),  # but of root's set-uid programs, which anybody may start
            # In a user namespace numbers are not the node's, and most users have one number.
            ("999\t999\t999\t999", "         0     100000      65536", None),
            ("1000", None, None),
            (None, None, None),
        ],
    )
    def test_whose_it_is(self, machine: Machine, ids: str | None, mapped: str | None, uid: int | None) -> None:
        host = machine("kubernetes-v2")
        status = host.path("proc/5001/status")
        status.write_text(status.read_text() + ("" if ids is None else f"Uid:\t{ids}\n"))
        if mapped is not None:
            host.path("proc/self").mkdir(exist_ok=True)
            host.path("proc/self/uid_map").write_text(f"{mapped}\n")
        assert databases(host)["postgresql"]["owner_uid"] == uid

    def test_the_segment_and_what_backs_it(self, server: dict[str, Any]) -> None:
        assert server["segments"][0] == {
            "bytes": 543 * 2 * MIB, "backing": "hugetlb", "page_bytes": 2 * MIB, "kind": "anonymous_shared",
        }  # fmt: skip
        assert (server["huge_pages_status"], server["huge_pages_status_source"]) == ("on", "maps")

    def test_memory_of_all_processes(self, server: dict[str, Any]) -> None:
        memory = server["memory"]
        assert memory["source"] == "rss"
        assert memory["private_bytes"] == (9_000 + 4 * 8_000) * KIB
        assert memory["shared_bytes"] == 61_000 * KIB, "what several touched is not added up"
        assert memory["hugetlb_bytes"] == 204_800 * KIB
        assert memory["page_tables_bytes"] == (420 + 4 * 300) * KIB

    def test_the_limit_that_acts_is_the_pods_not_the_containers(self, server: dict[str, Any]) -> None:
        two_mib = [one for one in server["hugetlb_limits"] if one["page_bytes"] == 2 * MIB]
        assert [(one["counter"], one["limit_bytes"], one["usage_bytes"]) for one in two_mib] == [
            ("usage", GIB, 200 * MIB)
        ]
        assert two_mib[0]["cgroup_path"].endswith("pod6f0f6c1e_5a0e_4b5e_9a3e_0d5f3c7a9b11.slice")

    def test_on_base_pages_the_status_is_off(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        maps = host.path("proc/5001/maps")
        maps.write_text(maps.read_text().replace("/anon_hugepage", "/dev/zero"))
        assert databases(host)["postgresql"]["huge_pages_status"] == "off"

    def test_without_a_look_into_it_counters_tell(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        host.path("proc/5001/maps").unlink()
        server = databases(host)["postgresql"]
        assert (server["huge_pages_status"], server["huge_pages_status_source"]) == ("on", "status")
        assert server["segments"] == []

    def test_a_file_that_may_not_be_read_makes_the_settings_incomplete(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        host.path("proc/5001/root/home/postgres/pgdata/postgresql.conf").unlink()
        server = databases(host)["postgresql"]
        assert server["settings_complete"] is False
        assert "postgresql.conf: does not exist" in server["settings_note"]
        assert values(server)["shared_buffers"] == ("1GB", "command line")

    @pytest.mark.parametrize(
        ("words", "variables"),
        [
            ("-D /etc/pg", {}),
            ("-D /etc/pg/", {}),
            ("", {"PGDATA": "/etc/pg"}),
            ("-D etc/pg", {"PWD": "/"}),
            ("-D /home/postgres/pgdata -c config_file=/etc/pg/postgresql.conf", {}),
            ("--config-file=pg/postgresql.conf", {"PWD": "/etc"}),
        ],
    )
    def test_the_file_is_the_one_that_the_server_was_started_with(
        self, machine: Machine, words: str, variables: dict[str, str]
    ) -> None:
        """-D names the folder of the file; the data may lie elsewhere, with the file of initdb still in it."""
        server = databases(started(machine("kubernetes-v2"), words, variables))["postgresql"]
        assert server["settings_complete"] is True, server["settings_note"]
        assert values(server) == {"max_connections": ("600", "postgresql.conf"), "work_mem": ("7MB", "x.conf")}

    @pytest.mark.parametrize("words", ["-D elsewhere", "-c config_file=pg/postgresql.conf"])
    def test_a_name_relative_to_a_folder_that_is_not_known_says_so(self, machine: Machine, words: str) -> None:
        server = databases(started(machine("kubernetes-v2"), words, {}))["postgresql"]
        assert server["settings_complete"] is False
        assert "a folder that is not known" in server["settings_note"]

    @pytest.mark.parametrize("folder", ["postgres/pgdata", "/proc/self/cwd"])
    def test_another_name_of_its_data_folder(self, folder: str, machine: Machine) -> None:
        """The second is what a demo's server is given."""
        server = databases(started(machine("kubernetes-v2"), f"-D {folder}", {}))["postgresql"]
        assert server["settings_complete"] is True
        assert values(server)["huge_pages"] == ("try", "postgresql.conf")

    def test_the_libraries_that_it_runs_with(self, machine: Machine) -> None:
        """A file names those of the next start."""
        host = machine("kubernetes-v2")
        with host.path("proc/5001/maps").open("a") as maps:
            maps.write("7f0000000000-7f0000001000 r-xp 00000000 08:01 9 /usr/lib/postgresql/lib/citus.so (deleted)\n")
        words = '-c shared_preload_libraries="$libdir/citus",pg_cron,pg_citus'
        server = databases(started(host, words, {}))["postgresql"]
        assert values(server)["loaded_libraries"] == ("citus", "maps")
        data = host.path("proc/5001/root/home/postgres/pgdata")
        (data / "more").mkdir()
        (data / "more/x.conf").touch()
        with (data / "postgresql.conf").open("a") as file:
            file.write("include_if_exists 'gone.conf'\ninclude 'more/x.conf'\n")

        def says() -> tuple[str, str] | None:
            return values(databases(Host(host.root))["postgresql"]).get("changed_since_start")

        assert says() is None
        for name, change in (("", "touch gone.conf; rm gone.conf"), ("more", "mv more old; mv old more"),
                             ("postgresql.conf", "touch postgresql.conf")):  # fmt: skip
            (data / "postmaster.opts").touch()
            stamp = max(path.stat().st_ctime for path in (data, *data.rglob("*")))
            os.utime(data / "postmaster.opts", (0, stamp))
            assert says() == ("no", "postmaster.opts")
            while (data / name).stat().st_ctime <= stamp:
                subprocess.run(["/bin/sh", "-c", change], cwd=data, check=True)
            assert says() is None, name
        host.path("proc/5001/maps").unlink()
        assert "loaded_libraries" not in values(databases(Host(host.root))["postgresql"])

    def test_a_file_that_includes_itself_ends(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        file = host.path("proc/5001/root/home/postgres/pgdata/postgresql.conf")
        file.write_text("include 'postgresql.conf'\nwork_mem = 9MB\n")
        assert databases(host)["postgresql"]["settings_complete"] is False


def started(host: Host, words: str, variables: dict[str, str]) -> Host:
    """The server of the tree as if it was started with these words; /etc/pg has files of its own."""
    host.path("proc/5001/cmdline").write_text("\0".join(["postgres", *words.split()]) + "\0")
    host.path("proc/5001/environ").write_text("".join(f"{name}={value}\0" for name, value in variables.items()))
    folder = host.path("proc/5001/root/etc/pg")
    folder.mkdir(parents=True)
    (folder / "postgresql.conf").write_text("data_directory = '/home/postgres/pgdata'\nmax_connections = 600\n")
    with (folder / "postgresql.conf").open("a") as file:
        file.write("include 'x.conf'\n")
    (folder / "x.conf").write_text("work_mem = 7MB\n")
    host.path("proc/5001/root/home/postgres/pgdata/postgresql.auto.conf").unlink(missing_ok=True)
    return host


def _mysql(
    host: Host, arguments: str, variables: dict[str, str], files: dict[str, bytes], program: str = "mysqld"
) -> None:
    """Lay out the machine's MySQL otherwise; the file ``exe`` is the program that runs."""
    place = host.path("proc/2201")
    (place / "cmdline").write_text("\0".join([f"/usr/sbin/{program}", *arguments.split()]) + "\0")
    (place / "environ").write_text("".join(f"{name}={value}\0" for name, value in variables.items()))
    (place / "stat").write_text((place / "stat").read_text().replace("(mysqld)", f"({program})"))
    (place / "exe").unlink()
    own = host.path(f"programs/{program}")
    (place / "exe").symlink_to(own)
    if "exe" in files:
        own.parent.mkdir()
        own.write_bytes(files["exe"])
    for name, content in files.items():
        if name != "exe":
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)


class TestOthers:
    def test_mysql_reads_sections_includes_persisted_settings_and_its_command_line(self, machine: Machine) -> None:
        server = databases(machine("kubernetes-v2"))["mysql"]
        assert values(server) == {
            "innodb_buffer_pool_size": ("2G", "command line"),
            "innodb_buffer_pool_instances": ("4", "x.cnf"),
            "innodb_log_buffer_size": ("67108864", "mysqld-auto.cnf"),
            "large_pages": ("on", "command line"),
            "max_connections": ("500", "mysqld-auto.cnf"),
        }
        assert (server["port"], server["unit"]) == (3307, "systemd:mysql.service")
        assert server["huge_pages_status"] == "off", "2.6 GiB of it lie on base pages"

    @pytest.mark.parametrize(
        ("arguments", "variables", "files", "read"),
        [
            # A section of another series, and one with the suffix that an instance unit gives.
            ("", {}, {"exe": b"x\0mysqld-8.4\0y"}, {"key_buffer_size": "84M"}),
            ("--defaults-group-suffix=.two", {}, {}, {"join_buffer_size": "2M"}),
            ("", {"MYSQL_GROUP_SUFFIX": ".two"}, {}, {"join_buffer_size": "2M"}),
            # The value of an option may be the next word; an abbreviation that the server took is one setting's.
            ("--key_buffer_size 7M --skip-name-resolve x", {}, {}, {"key_buffer_size": "7M"}),
            ("--table_open=77", {}, {}, {"table_open_cache": "77"}),
            ("", {"MYSQL_HOME": "/home/my"}, {"root/home/my/my.cnf": b"[server]\ntmp_table_size=3M\n"},
             {"tmp_table_size": "3M"}),
        ],
    )  # fmt: skip
    def test_mysql_reads_what_its_server_reads(
        self, machine: Machine, arguments: str, variables: dict[str, str], files: dict[str, bytes], read: dict[str, str]
    ) -> None:
        host = machine("kubernetes-v2")
        _mysql(host, arguments, variables, files)
        with host.path("proc/2201/root/etc/mysql/my.cnf").open("a") as file:
            file.write("[MYSQLD-8.4]\nkey_buffer_size=84M\n[mysqld.two]\njoin_buffer_size=2M\n[mysqld-5.7]\n")
            file.write("sort_buffer_size=57M\n" if "exe" in files else "")
        found = {name: value for name, (value, _) in values(databases(host)["mysql"]).items()}
        assert found.items() >= read.items()
        assert ("sort_buffer_size" in found) is False, "its section is another series'"
        if not arguments + "".join(variables):
            assert "join_buffer_size" not in found

    def test_an_option_file_whose_folder_is_not_known_is_not_taken_for_none(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        _mysql(host, "--defaults-file=my.cnf", {"PWD": "/nowhere"}, {})
        server = databases(host)["mysql"]
        assert server["settings_complete"] is False
        assert "from a folder that is not known" in server["settings_note"]

    @pytest.mark.parametrize(
        ("program", "variables", "files", "known"),
        [
            ("mysqld", {}, {"exe": b"a\0mysqld-8.0\0b"}, ("8.0", "executable")),
            ("mysqld", {"MYSQL_VERSION": "8.4.3-1.el9"}, {}, ("8.4.3", "MYSQL_VERSION")),
            ("mysqld", {}, {"root/var/lib/mysql/mysql_upgrade_history": b'{"file_format":"1","upgrade_history":'
             b'[{"version":"8.0.36"},{"version":"8.4.2"}]}'}, ("8.4.2", "mysql_upgrade_history")),
            ("mysqld", {}, {"root/var/lib/mysql/mysql_upgrade_history": b"[]"}, (None, None)),
            # What it upgraded to once is not what runs now.
            ("mysqld", {}, {"exe": b"\0mysqld-9.1\0", "root/var/lib/mysql/mysql_upgrade_info": b"8.0.36"},
             ("9.1", "executable")),
            ("mysqld", {"MYSQL_VERSION": "innovation"}, {}, (None, None)),
            ("mariadbd", {}, {"exe": b"e.g. 10.1.1-MariaDB-x\0" + b"z" * 2**20 + b"\00010.11.19-MariaDB\0"},
             ("10.11.19", "executable")),
            ("mariadbd", {}, {"exe": b"\00010.6.16-11-MariaDB-enterprise\0"}, ("10.6.16", "executable")),
            ("mariadbd", {"MARIADB_VERSION": "1:11.4.2+maria~ubu2404"}, {}, ("11.4.2", "MARIADB_VERSION")),
            ("mariadbd", {}, {"root/var/lib/mysql/mariadb_upgrade_info": b"11.4.2-MariaDB"},
             ("11.4.2", "mariadb_upgrade_info")),
        ],
    )  # fmt: skip
    def test_the_version_that_runs(
        self,
        machine: Machine,
        program: str,
        variables: dict[str, str],
        files: dict[str, bytes],
        known: tuple[str | None, str | None],
    ) -> None:
        host = machine("kubernetes-v2")
        _mysql(host, "", variables, files, program)
        server = databases(host)["mysql" if program == "mysqld" else "mariadb"]
        assert (server["version"], server["version_source"]) == known

    def test_the_version_of_a_java_runtime_is_its_own_files(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        pid = databases(host)["jvm"]["main_pid"]
        program = host.read_link(f"proc/{pid}/exe") or ""
        folder = host.path(f"proc/{pid}/root{program.rpartition('/bin/')[0]}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="1.8.0_402"\n')
        server = databases(Host(host.root))["jvm"]
        assert (server["version"], server["version_source"]) == ("8.0", "release")

    def test_two_sources_of_which_only_the_server_knows_the_winner(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        file = host.path("proc/2201/root/var/lib/mysql/mysqld-auto.cnf")
        file.write_text('{"a": {"innodb_buffer_pool_size": {"Value": "7"}}}')
        server = databases(host)["mysql"]
        assert server["settings_complete"] is False
        assert "innodb_buffer_pool_size" in server["settings_note"]

    def test_jvm_flags_of_the_command_line_and_of_variables(self, machine: Machine) -> None:
        server = databases(machine("kubernetes-v2"))["jvm"]
        assert values(server) == {
            "Xmx": ("3g", "command line"),
            "Xms": ("3g", "command line"),
            "UseLargePages": ("true", "command line"),
            "UseG1GC": ("true", "command line"),
            "MaxDirectMemorySize": ("1g", "JAVA_TOOL_OPTIONS"),
        }
        assert (server["product"], server["version"]) == ("kafka", "21")
        assert (server["huge_pages_status"], server["segments"][0]["bytes"]) == ("off", 3 * GIB)

    @pytest.mark.parametrize(
        ("words", "complete"),
        [
            ("-XX:+UseLargePages -XX:MaxRAMPercentage=75", True),
            ("-XX:MaxRAMFraction=2", False),
            ("-XX:+AggressiveHeap", False),
            ("-XX:+AggressiveHeap -Xmx3g", True),
        ],
    )
    def test_a_flag_that_sizes_the_heap_as_no_plan_counts_it(
        self, machine: Machine, words: str, complete: bool
    ) -> None:
        host = machine("kubernetes-v2")
        file = host.path(f"proc/{databases(host)['jvm']['main_pid']}/cmdline")
        file.write_bytes(f"java {words} kafka.Kafka".replace(" ", "\0").encode() + b"\0")
        server = databases(Host(host.root))["jvm"]
        assert server["settings_complete"] is complete
        assert complete or "is not counted: give it -Xmx" in server["settings_note"]

    def test_jvm_flags_of_a_file_that_a_variable_names_are_not_read(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        file = host.path(f"proc/{databases(host)['jvm']['main_pid']}/environ")
        file.write_bytes(b"JDK_JAVA_OPTIONS=@/etc/java/a.options\0")
        assert databases(Host(host.root))["jvm"]["settings_complete"] is False

    def test_a_limit_of_nothing_is_a_limit(self, machine: Machine) -> None:
        limits = databases(machine("kubernetes-v2"))["jvm"]["hugetlb_limits"]
        assert [(one["counter"], one["limit_bytes"]) for one in limits if one["page_bytes"] == 2 * MIB] == [
            ("reservation", 0),
            ("usage", 0),
        ]

    def test_version_1_reads_the_same(self, machine: Machine) -> None:
        found = databases(machine("kubernetes-v1"))
        server = found["postgresql"]
        assert [(one["counter"], one["limit_bytes"]) for one in server["hugetlb_limits"]] == [
            ("reservation", 0),
            ("usage", 0),
        ]
        assert (server["huge_pages_status"], server["huge_pages_status_source"]) == ("off", "status")
        assert found["redis"]["port"] == 6380

    def test_processes_name_their_database_and_unit(self, machine: Machine) -> None:
        sample = collect_all(machine("kubernetes-v2")).sample
        keys = {one["key"] for one in sample["databases"]}
        units = {one["key"] for one in sample["units"]}
        assert {one["database"] for one in sample["processes"]} - {None} == keys
        assert {one["unit"] for one in sample["processes"]} <= units
        assert {key for unit in sample["units"] for key in unit["databases"]} == keys


def test_only_whitelisted_words_leave_the_node(machine: Machine) -> None:
    """The tree is full of them: arguments, environments, configuration files, the kernel command line, addresses."""
    host = machine("kubernetes-v2")
    text = json.dumps(vars(collect_all(host)))
    for secret in ("hunter2", "s3cret", "secret", "alice", "bob", "10.1.2.3", "10.0.0.9", "02:11:22", "EC2F1234"):
        assert secret not in text, secret
    assert "/home/postgres" not in text, "nor do paths of data"


class TestReadingWhatOthersWrote:
    def test_links_stay_inside(self, machine: Machine) -> None:
        host = machine("kubernetes-v1")
        root = host.path("proc/700/root")
        root.mkdir(parents=True)
        (root / "link").symlink_to("/etc/machine-id")
        (root / "up").symlink_to("../../../etc/machine-id")
        (root / "etc").mkdir()
        for name in ("link", "up"):
            with pytest.raises(NoData):
                host.read_inside("proc/700/root", f"/{name}")
        (root / "etc/machine-id").write_text("mine\n")
        assert host.read_inside("proc/700/root", "/link") == "mine\n"
        assert host.read_inside("proc/700/root", "/up") == "mine\n"

    def test_a_pipe_does_not_make_the_agent_wait(self, machine: Machine) -> None:
        host = machine("kubernetes-v1")
        root = host.path("proc/700/root")
        root.mkdir(parents=True)
        os.mkfifo(root / "postgresql.conf")
        with pytest.raises(NoData, match="not a regular file"):
            host.read_inside("proc/700/root", "postgresql.conf")

    def test_a_loop_of_links_ends(self, machine: Machine) -> None:
        host = machine("kubernetes-v1")
        root = host.path("proc/700/root")
        root.mkdir(parents=True)
        (root / "a").symlink_to("b")
        (root / "b").symlink_to("a")
        with pytest.raises(NoData, match="too many symbolic links"):
            host.read_inside("proc/700/root", "a")


def test_a_child_that_has_ended_leaves_the_memory_of_the_others_known(machine: Machine) -> None:
    host = machine("kubernetes-v2")
    status = host.path("proc/5002/status")
    status.write_text("".join(line for line in status.read_text().splitlines(keepends=True) if "Rss" not in line))
    memory = databases(host)["postgresql"]["memory"]
    assert memory["private_bytes"] == (9_000 + 3 * 8_000) * KIB


def _fails(*_: object) -> Any:
    raise AttributeError("a way that nobody has seen")


@pytest.mark.parametrize("part", ["describe", "count_clients", "group"])
def test_a_reader_that_fails_costs_its_own_engine_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    host = machine("kubernetes-v2")
    usual = databases(host)
    change: dict[str, Any] = {part: _fails}
    broken = [replace(one, **change) if one.name == "postgresql" else one for one in engines.ENGINES]
    monkeypatch.setattr(servers, "ENGINES", broken)
    collected = collect_all(Host(host.root))
    found = {one["engine"]: one for one in collected.sample["databases"]}
    of_postgresql = found.pop("postgresql", None)
    assert len(found) > 0
    assert found == {name: one for name, one in usual.items() if name != "postgresql"}
    note = next(one["reason"] for one in collected.results if one["name"] == "databases")
    if of_postgresql is None:
        assert "servers of postgresql could not be found: AttributeError" in note
    else:
        assert "it could not be read: AttributeError" in of_postgresql["settings_note"]
        assert of_postgresql["settings_complete"] is False


def test_postgresql_lines() -> None:
    text = "a = 'it''s' # c\nB=1\n  c   2MB\n#d = 4\nbroken =\ne.f = 'x # y'\n"
    assert list(postgresql.parse_lines(text, Settings(frozenset()))) == [
        ("a", "it's"),
        ("b", "1"),
        ("c", "2MB"),
        ("e.f", "x # y"),
    ]


def test_postgresql_arguments() -> None:
    words = ["-D", "/data", "-B", "16384", "-N200", "-c", "work-mem=4MB", "--huge-pages=on", "-i", "-p5433"]
    assert postgresql.parse_arguments(words) == (
        {
            "shared_buffers": "16384", "max_connections": "200", "work_mem": "4MB", "huge_pages": "on",
            "port": "5433",
        },
        "/data",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("large-pages", None, ("large_pages", "on")),
        ("large_pages", "1", ("large_pages", "on")),
        ("skip-large-pages", None, ("large_pages", "off")),
        ("loose-innodb_buffer_pool_size", " 8G ", ("innodb_buffer_pool_size", "8G")),
        ("innodb_buffer_pool_size", None, None),
    ],
)
def test_mysql_options(name: str, value: str | None, read: tuple[str, str] | None) -> None:
    assert mysql.read_option(name, value) == read


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("-Xmx8g", ("Xmx", "8g")),
        ("-XX:+UseLargePages", ("UseLargePages", "true")),
        ("-XX:-UseLargePages", ("UseLargePages", "false")),
        ("-XX:MaxHeapSize=8g", ("MaxHeapSize", "8g")),
        ("-mx8g", ("Xmx", "8g")),  # an old spelling that java takes still
        ("-XX:MaxRAMPercentage=75.0", ("MaxRAMPercentage", "75.0")),
        ("-XX:MinRAMPercentage=75", ("MinRAMPercentage", "75")),
        ("-XX:+AggressiveHeap", ("AggressiveHeap", "true")),
        ("-XX:OnOutOfMemoryError=curl secret", None),
        ("-Dpassword=secret", None),
        ("-Xmx", None),
    ],
)
def test_jvm_flags(word: str, read: tuple[str, str] | None) -> None:
    assert jvm.read_flag(word) == read


def test_oracle_sids_and_parameters() -> None:
    assert oracle.sid_of("ora_pmon_ORCL\0") == "ORCL"
    assert oracle.sid_of("oracleORCL (LOCAL=NO)") == "ORCL"
    assert oracle.sid_of("oracle-exporter") is None
    assert oracle.parse_parameters("*.sga_target=8G\n# x\norcl1.use_large_pages='ONLY'\n", Settings(frozenset())) == [
        ("sga_target", "8G"),
        ("use_large_pages", "ONLY"),
    ]


class TestMappings:
    def test_system_v_segments_need_the_page_size_of_smaps(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        line = "7f0000000000-7f0040000000 rw-s 00000000 00:0f 5 /SYSV00000000 (deleted)\n"
        host.path("proc/5001/maps").write_text(line)
        host.path("proc/5001/smaps").write_text(f"{line}Size: 1048576 kB\nKernelPageSize:     2048 kB\n")
        found, _ = mappings.read(host, 5001, 4096, [2 * MIB, GIB])
        assert found is not None
        assert mappings.segments(mappings.largest(found, True), False) == [
            {"bytes": GIB, "backing": "hugetlb", "page_bytes": 2 * MIB, "kind": "sysv"}
        ]

    def test_partly_huge(self) -> None:
        found = [
            {"bytes": 4, "backing": "hugetlb", "page_bytes": 2 * MIB, "kind": "sysv"},
            {"bytes": 2, "backing": "base_pages", "page_bytes": 4096, "kind": "sysv"},
        ]
        assert mappings.status(found, True) == "partial"
        assert mappings.status(found[1:], True) == "off"
        assert mappings.status([], True) is None

    def test_each_page_of_a_pool_counts(self) -> None:
        """MariaDB's logs and a JVM's card tables are small, and would be pages of somebody unknown."""
        pool = b"rw-p 00000000 00:11 7   /anon_hugepage (deleted)"
        lines = [
            b"7f0000000000-7f0000200000 " + pool,
            b"7f0001000000-7f0002000000 " + pool,
            b"7f0010000000-7f0011000000 rw-p 0 0:0 0",
        ]
        found = mappings.largest(mappings.parse_maps(lines, 4096, [2 * MIB]), False)
        assert [(one.bytes, one.page_bytes) for one in found] == [(16 * MIB, 2 * MIB), (2 * MIB, 2 * MIB)]

    def test_each_page_of_a_file_counts_once(self, machine: Machine) -> None:
        """ZGC maps its heap three times, and in small pieces once it has run for a while."""
        host, pieces = machine("kubernetes-v2"), random.Random(3).sample(range(512), 512)
        line = "{:x}-{:x} rw-s {:08x} 00:11 9 /memfd:java_heap.hugetlb (deleted)\n"
        views = [
            line.format(view + 4 * MIB * at, view + 4 * MIB * at + 2 * MIB, 2 * MIB * piece)
            for view in (1 << 42, 1 << 43, 1 << 44)
            for at, piece in enumerate(pieces[view >> 44 :])
        ]
        host.path("proc/5001/maps").write_text("".join(views))
        host.path("proc/5001/smaps").write_text("".join(f"{one}KernelPageSize: 2048 kB\n" for one in views))
        found, count = mappings.read(host, 5001, 4096, [2 * MIB, GIB])
        assert mappings.segments(mappings.largest(found or [], False), False) == [
            {"bytes": GIB, "backing": "hugetlb", "page_bytes": 2 * MIB, "kind": "file"}
        ]
        assert count < 1.6 * host.path("proc/5001/maps").stat().st_size, "one line tells the size of all"

    def test_pages_beyond_the_largest_mappings_count(self) -> None:
        kinds = [(4, "rw-p", "/anon_hugepage"), (8, "rw-s", "/dev/zero")] * 200
        lines = [
            f"{at << 30:x}-{(at << 30) + size * MIB:x} {access} 0 00:01 {at} {name}".encode()
            for at, (size, access, name) in enumerate(kinds)
        ]
        found = mappings.largest(mappings.parse_maps(lines, 4096, [2 * MIB]), False)
        assert [one.bytes for one in found] == [8 * MIB] * 60 + [800 * MIB]
        assert found[-1].is_hugetlb


@pytest.mark.parametrize(
    ("status", "policy", "nodes"),
    [
        (None, None, None),
        ("0-3", None, [0, 1, 2, 3]),
        ("0,2-3", "default", [0, 2, 3]),  # a cpuset: AllowedMemoryNodes, a container's cpuset.mems
        ("1", "default", [1]),
        ("0-1", "bind:1", [1]),  # numactl --membind, systemd's NUMAPolicy
        ("0-1", "bind=static:1", [1]),
        ("0-3", "bind=static|balancing:0,2", [0, 2]),
        ("0-1", "membind:1", [1]),
        ("0-1", "prefer:1", [0, 1]),  # takes pages of others, too
        ("0-1", "interleave:1", [0, 1]),
        ("0", "bind:1", [0]),  # not read where there is one
        ("1-2", "bind:3", None),
    ],
)
def test_the_numa_nodes_that_it_may_allocate_from(
    machine: Machine, status: str | None, policy: str | None, nodes: list[int] | None
) -> None:
    """Half of the pages of a PostgreSQL bound to node 1 were planned elsewhere, and it did not start."""
    host = machine("kubernetes-v2")
    if status is not None:
        file = host.path("proc/5001/status")
        file.write_text(f"{file.read_text()}Mems_allowed:\t00000000,00000003\nMems_allowed_list:\t{status}\n")
    if policy is not None:
        pool = f"7f0000000000 {policy} file=/anon_hugepage\\040(deleted) huge dirty=100 N1=100 kernelpagesize_kB=2048"
        host.path("proc/5001/numa_maps").write_text(f"555501000000 bind:0 heap anon=9\n{pool}\n7f8000000000 default\n")
    assert databases(host)["postgresql"]["allowed_numa_nodes"] == nodes
