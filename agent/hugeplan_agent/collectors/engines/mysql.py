"""MySQL, Percona Server and MariaDB: one process with threads; option files in sections, then the command line."""

from __future__ import annotations

import json
import re

from hugeplan_agent.collectors.engines.base import (
    MAX_FILES,
    TRUTH,
    Engine,
    Facts,
    Server,
    Settings,
    port_number,
)

SETTINGS = frozenset(
    [
        "aria_pagecache_buffer_size",
        "innodb_buffer_pool_chunk_size",
        "innodb_buffer_pool_instances",
        "innodb_buffer_pool_size",
        "innodb_buffer_pool_size_auto_min",
        "innodb_buffer_pool_size_max",
        "innodb_dedicated_server",
        "innodb_flush_method",
        "innodb_log_buffer_size",
        "innodb_numa_interleave",
        "innodb_page_size",
        "join_buffer_size",
        "key_buffer_size",
        "key_cache_block_size",
        "large_pages",
        "max_connections",
        "max_heap_table_size",
        "performance_schema",
        "query_cache_size",
        "read_buffer_size",
        "read_rnd_buffer_size",
        "sort_buffer_size",
        "super_large_pages",
        "table_open_cache",
        "temptable_max_ram",
        "thread_cache_size",
        "thread_handling",
        "thread_stack",
        "tmp_table_size",
        "tokudb_cache_size",
    ]
)
DEFAULT_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/local/mysql/etc/my.cnf", "/usr/etc/my.cnf")
SECTION = re.compile(r"\[([^\]]+)\]")
BEFORE_COMMENT = re.compile(r"""(?:\\.|'(?:\\.|[^'\\])*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)|[^'"#\\]|\\$)*""")
"""What stands before a ``#`` that is not quoted or escaped (mysys/my_default.cc, find_end_comment)."""
SWITCHES = frozenset({"large_pages", "super_large_pages", "innodb_dedicated_server", "innodb_numa_interleave"})


def canonical(name: str) -> str:
    """Hyphens and underscores are the same, and ``loose-`` only forgives."""
    name = name.strip().replace("-", "_").lower()
    return name[6:] if name.startswith("loose_") else name


def read_option(name: str, value: str | None) -> tuple[str, str] | None:
    """An option as a setting; ``skip_`` and ``disable_`` switch one off. None for one without a value."""
    name = canonical(name)
    for prefix in ("skip_", "disable_"):
        if name.startswith(prefix) and name[len(prefix) :] in SWITCHES:
            return name[len(prefix) :], "off"
    if name.startswith("enable_") and name[7:] in SWITCHES:
        return name[7:], "on"
    if value is None:
        return (name, "on") if name in SWITCHES else None
    text = value.strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        text = text[1:-1]
    return name, TRUTH.get(text.lower(), text) if name in SWITCHES else text


def option_of(line: str) -> tuple[str, str] | None:
    """The option of a line of a file. ``#`` outside quotes ends it, ``;`` only begins a comment line."""
    line = line.strip()
    if not line or line[0] in "#;!":
        return None
    match = BEFORE_COMMENT.match(line)
    name, equals, value = (match[0] if match else line).partition("=")
    return read_option(name, value if equals else None)


def sections_of(engine: str) -> re.Pattern[str]:
    """Sections that the server reads; those with a version apply to that version and are taken too."""
    names = r"mysqld|server|mysqld-[\d.]+" + (r"|mariadb|mariadbd|mariadb-[\d.]+" if engine == "mariadb" else "")
    return re.compile(names)


def _read_file(server: Server, settings: Settings, path: str, wanted: re.Pattern[str], left: list[int]) -> None:
    if left[0] <= 0:
        settings.missing("more configuration files than are read")
        return
    left[0] -= 1
    text = server.try_read(path, settings)
    applies = False
    for line in map(str.strip, (text or "").splitlines()):
        if line.startswith("!includedir"):
            folder = line[11:].strip()
            for name in _included(server, settings, folder):
                _read_file(server, settings, f"{folder}/{name}", wanted, left)
        elif line.startswith("!include"):
            _read_file(server, settings, line[8:].strip(), wanted, left)
        elif match := SECTION.match(line):
            applies = wanted.fullmatch(match[1].strip()) is not None
        elif applies:
            option = option_of(line)
            if option:
                settings.put(*option, path.rpartition("/")[2][:64])


def _included(server: Server, settings: Settings, folder: str) -> list[str]:
    try:
        return [name for name in server.names(folder) if name.endswith(".cnf")]
    except OSError as error:
        settings.missing(f"{folder.rpartition('/')[2]}: {(error.strerror or 'not readable').lower()}")
        return []


def _read_persisted(server: Server, settings: Settings, folder: str) -> None:
    """What SET PERSIST wrote: mysqld-auto.cnf, JSON, read after the option files."""
    text = server.try_read(f"{folder}/mysqld-auto.cnf", settings)
    if text is None:
        return
    try:
        document = json.loads(text)
    except ValueError:
        settings.missing("mysqld-auto.cnf: not JSON")
        return

    def walk(part: object) -> None:
        if not isinstance(part, dict):
            return
        for name, value in part.items():
            if isinstance(value, dict) and isinstance(value.get("Value"), str):
                settings.put(canonical(name), value["Value"], "mysqld-auto.cnf")
            else:
                walk(value)

    walk(document)


def command_line(arguments: list[str]) -> dict[str, str]:
    """Options of a command line by canonical name: ``--name=value`` or a bare switch."""
    found = {}
    for word in arguments:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            option = read_option(name, value if equals else None)
            if option:
                found[option[0]] = option[1]
    return found


def version_of(executable: str | None) -> tuple[str | None, str | None]:
    """A version in the executable's path, such as /opt/mysql-8.0.36/bin/mysqld."""
    match = re.search(r"(?:mysql|mariadb|percona)[a-z-]*[-/](\d+\.\d+(?:\.\d+)?)", executable or "")
    return (match[1], "executable path") if match else (None, None)


def describe(server: Server, engine: str) -> Facts:
    settings = Settings(SETTINGS | {"port", "datadir"}, complete=True)
    given = command_line(server.arguments[1:])
    wanted, left = sections_of(engine), [MAX_FILES]
    only = given.get("defaults_file")
    if "--no-defaults" not in server.arguments:
        for path in [only] if only else [*DEFAULT_FILES, *filter(None, [given.get("defaults_extra_file")])]:
            _read_file(server, settings, path, wanted, left)
    folder = given.get("datadir") or settings.value("datadir") or server.folder()
    if folder and engine == "mysql" and server.folder() is not None:
        _read_persisted(server, settings, folder)
    for name, value in given.items():
        earlier = settings.found.get(name, {})
        if earlier.get("source") == "mysqld-auto.cnf" and earlier["value"] != value:
            settings.missing(f"{name}: command line and mysqld-auto.cnf disagree; only the server knows which holds")
        settings.put(name, value, "command line")
    if server.folder() is None:
        settings.missing("this user may not look into its file system")
    version, source = version_of(server.executable)
    port = port_number(settings.value("port"))
    settings.found.pop("port", None)
    settings.found.pop("datadir", None)
    return Facts(settings, version=version, version_source=source, port=port, instance=folder)


ENGINE = Engine("mysql", frozenset({"mysqld", "mysqld-debug"}), lambda server: describe(server, "mysql"))
