"""PostgreSQL: a postmaster and its children share one segment; settings stand in files and on the command line."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import PurePosixPath

from hugeplan_agent.collectors.engines.base import (
    CWD,
    MAX_FILES,
    Engine,
    Facts,
    Server,
    Settings,
    lines_of,
    port_number,
)
from hugeplan_agent.collectors.process_table import Process

SETTINGS = frozenset(
    [
        "autovacuum_max_workers",
        "autovacuum_work_mem",
        "autovacuum_worker_slots",
        "commit_timestamp_buffers",
        "effective_cache_size",
        "hash_mem_multiplier",
        "hot_standby",
        "huge_page_size",
        "huge_pages",
        "io_combine_limit",
        "io_max_combine_limit",
        "io_max_concurrency",
        "io_method",
        "io_workers",
        "maintenance_work_mem",
        "max_active_replication_origins",
        "max_connections",
        "max_locks_per_transaction",
        "max_logical_replication_workers",
        "max_parallel_workers",
        "max_parallel_workers_per_gather",
        "max_pred_locks_per_transaction",
        "max_prepared_transactions",
        "max_replication_slots",
        "max_wal_senders",
        "max_worker_processes",
        "min_dynamic_shared_memory",
        "multixact_member_buffers",
        "multixact_offset_buffers",
        "notify_buffers",
        "old_snapshot_threshold",
        "pg_stat_statements.max",
        "reserved_connections",
        "serializable_buffers",
        "shared_buffers",
        "shared_memory_type",
        "shared_preload_libraries",
        "subtransaction_buffers",
        "superuser_reserved_connections",
        "temp_buffers",
        "track_activity_query_size",
        "transaction_buffers",
        "wal_buffers",
        "work_mem",
    ]
)
SWITCHES = {"B": "shared_buffers", "N": "max_connections", "p": "port", "S": "work_mem"}
"""One-letter options of postgres(1) that name a setting; without a unit both count as the setting itself does."""

FLAGS_WITH_VALUE = "BCDdfkNprStvW"
LINE = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:\s*=\s*|\s+)(?P<value>'(?:[^'\\]|''|\\.)*'|[^\s#'=][^\s#']*)")
"""``name = value``; the equals sign may be missing (guc-file.l)."""

AUXILIARY = re.compile(
    r"postgres: (?:[^ ]+: )?(?:checkpointer|background writer|walwriter|autovacuum|stats collector|logical replication"
    r"|archiver|startup|walreceiver|walsender|wal ?summarizer|slotsync|io worker|parallel worker|logger|bgworker)"
)


def unquote(text: str) -> str:
    """A value of postgresql.conf without its quotes."""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'").replace("\\'", "'")
    return text


def parse_lines(text: str, settings: Settings) -> Iterator[tuple[str, str]]:
    """Names in lower case and values of a configuration file, in its order, includes among them."""
    for line in lines_of(text, settings):
        match = LINE.match(line)
        if match:
            yield match["name"].lower(), unquote(match["value"])


def parse_arguments(arguments: list[str]) -> tuple[dict[str, str], str | None]:
    """Settings of a command line (``-c``, ``--name=``, one-letter options), and the folder of ``-D``."""
    settings: dict[str, str] = {}
    folder: str | None = None
    words = iter(arguments)
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if equals:
                settings[name.replace("-", "_").lower()] = value
        elif len(word) > 1 and word[0] == "-" and word[1] in FLAGS_WITH_VALUE + "c":
            value = word[2:] or next(words, "")
            if word[1] == "D":
                folder = value
            elif word[1] == "c":
                name, _, text = value.partition("=")
                settings[name.strip().replace("-", "_").lower()] = text.strip()
            elif word[1] in SWITCHES:
                settings[SWITCHES[word[1]]] = value
    return settings, folder


def describe(server: Server) -> Facts:
    settings = Settings(SETTINGS | {"port"}, complete=True)
    given, started_in = parse_arguments(server.arguments[1:])
    named = started_in or server.environment(["PGDATA"]).get("PGDATA")
    # The postmaster changes into its data folder (ChangeToDataDir), so its working folder is the safest answer.
    folder = server.folder() or named
    data = folder if server.folder() is None else "."
    config = _config_file(server, given.get("config_file"), named, folder, data)
    if folder is None:
        settings.missing("its data folder is not known to this user")
    elif config is None:
        settings.missing("its configuration file is named from a folder that is not known")
        _read_file(server, settings, f"{data}/postgresql.auto.conf", must_exist=False, left=[1])
    else:
        _read_file(server, settings, config, must_exist=True, left=[MAX_FILES])
        _read_file(server, settings, f"{data}/postgresql.auto.conf", must_exist=False, left=[1])
    for name, value in given.items():
        settings.put(name, value, "command line")
    if named_ones := settings.value("shared_preload_libraries"):
        _put_loaded(server, settings, named_ones)
        changed, opts = server.changed, f"{data}/postmaster.opts"  # which it writes once it has read its files
        is_read = settings.complete and server.try_read(opts, Settings(frozenset())) is not None
        if is_read and changed <= server.host.found_written <= time.time():
            settings.found["changed_since_start"] = {"value": "no", "source": "postmaster.opts"}
    facts = Facts(settings, port=port_number(settings.value("port")), instance=folder)
    settings.found.pop("port", None)
    if folder is not None:
        # Lines 4 and 5 of the lock file: the port that it listens on, whichever source named it, and the folder of its
        # socket (miscinit.c).
        lock = (server.try_read(f"{data}/postmaster.pid", Settings(frozenset())) or "").splitlines()
        if len(lock) > 4 and lock[0].strip().isdigit():
            facts.listens_on, socket = port_number(lock[3]), lock[4].strip()
            facts.socket_folder = str(PurePosixPath(folder, socket)) if socket[:1] not in ("", "@") else socket or None
        # Commands begin in another folder.
        facts.config_file = config and str(PurePosixPath(folder, config.removeprefix(f"{CWD}/")))
        version = server.try_read(f"{data}/PG_VERSION", Settings(frozenset()))
        if version and re.fullmatch(r"[\d.]{1,8}", version.strip()):
            facts.version, facts.version_source = version.strip(), "PG_VERSION"
    return facts


def _put_loaded(server: Server, settings: Settings, named: str) -> None:
    """Those of the named libraries that it runs with: a file may name others for its next start."""
    mapped = server.mapped_libraries()
    names = (name.strip().strip('"').rpartition("/")[2].removesuffix(".so") for name in named.split(","))
    if mapped is not None:
        loaded = ",".join(name for name in names if name in mapped)
        settings.found["loaded_libraries"] = {"value": loaded, "source": "maps"}


def count_clients(server: Server) -> int:
    """Children that serve a client."""
    return sum(_serves_client(server, process) for process in server.members if process is not server.main)


def _config_file(
    server: Server, given: str | None, named: str | None, folder: str | None, data: str | None
) -> str | None:
    """The file that it read at its start; None where its name was relative to a folder that is not known.

    ``-D`` names the folder of the file, which may name another one for the data (SelectConfigFiles, guc.c). Relative
    names are from the folder in which the server was started, which is PWD's where a shell started it. A demo's server
    names its working folder.
    """
    if given is None and named in (None, CWD):
        return f"{data}/postgresql.conf"
    path = given if given is not None else f"{named}/postgresql.conf"
    if path.startswith("/"):
        return path
    words = path.removeprefix("./")
    own = f"{data}/postgresql.conf" if f"{folder}/postgresql.conf".endswith(f"/{words}") else None
    return server.named_at_start(path) or own


def _read_file(server: Server, settings: Settings, path: str, *, must_exist: bool, left: list[int]) -> None:
    """One file and what it includes, in the order in which the server reads them."""
    if not settings.has_room(left):
        return
    text = server.try_read(path, settings, must_exist=must_exist)
    here, _, file_name = path.rpartition("/")
    for name, value in parse_lines(text or "", settings):
        below = value if value.startswith("/") else f"{here}/{value}"
        if name in ("include", "include_if_exists"):
            _read_file(server, settings, below, must_exist=name == "include", left=left)
        elif name == "include_dir":
            for child in server.included(below, _is_included, settings, left):
                _read_file(server, settings, f"{below}/{child}", must_exist=False, left=left)
        else:
            settings.put(name, value, file_name[:64])


def _is_included(name: str) -> bool:
    return name.endswith(".conf") and not name.startswith(".")


def _serves_client(server: Server, process: Process) -> bool:
    """Whether a child serves a client: its title names a user and a database instead of a duty."""
    kept = server.host.kept("postgresql clients")
    if process.key not in kept:
        if len(kept) > 16384:
            kept.clear()
        title = (server.host.read_record(f"proc/{process.pid}/cmdline") or "").replace("\0", " ")
        if process.pid in server.host.left_alone:
            return False  # for now
        kept[process.key] = title.startswith("postgres: ") and AUXILIARY.match(title) is None
    return bool(kept[process.key])


ENGINE = Engine(
    "postgresql",
    frozenset({"postgres", "postmaster", "edb-postgres"}),
    describe,
    has_child_processes=True,
    shares_segment=True,
    count_clients=count_clients,
)
