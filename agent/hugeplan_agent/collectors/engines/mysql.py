"""MySQL, Percona Server and MariaDB: one process with threads; option files in sections, then the command line."""

from __future__ import annotations

import json
import re

from hugeplan_agent.collectors.engines import versions
from hugeplan_agent.collectors.engines.base import (
    MAX_FILES,
    MAX_VALUE_CHARACTERS,
    TRUTH,
    Engine,
    Facts,
    Server,
    Settings,
    lines_of,
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
MIN_ABBREVIATION = 4
DEFAULT_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/local/mysql/etc/my.cnf", "/usr/etc/my.cnf")
SECTION = re.compile(r"\[([^\]]+)\]")
BEFORE_COMMENT = re.compile(r"""(?:\\.|'(?:\\.|[^'\\])*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)|[^'"#\\]|\\$)*""")
"""What stands before a ``#`` that is not quoted or escaped (mysys/my_default.cc, find_end_comment)."""
_MARIADB_VERSION = versions.Constant(
    b"-MariaDB", re.compile(rb"\0(1\d\.\d{1,2}\.\d{1,3})(?:-\d{1,3})?-MariaDB[^\0]{0,64}\0")
)
"""The constant that the server answers to ``SELECT VERSION()``; ``-16`` is MariaDB Enterprise's own count."""
_MYSQL_SERIES = versions.Constant(b"\0mysqld-", re.compile(rb"\0mysqld-(\d{1,2}\.\d{1,2})\0"))
"""The name of the section that this series alone reads (MYSQL_BASE_VERSION, mysql_version.h)."""
SWITCHES = frozenset({"large_pages", "super_large_pages", "innodb_dedicated_server", "innodb_numa_interleave"})

WITH_VALUE = (
    SETTINGS | {"port", "datadir", "defaults_file", "defaults_extra_file", "defaults_group_suffix"}
) - SWITCHES


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
    name = _whole_name(name)
    if value is None:
        return (name, "on") if name in SWITCHES else None
    text = value.strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        text = text[1:-1]
    return name, TRUTH.get(text.lower(), text) if name in SWITCHES else text


def _whole_name(name: str) -> str:
    """The setting that an abbreviation means. The server takes one only where it fits no other of its options.

    Options of a plugin, InnoDB and Aria among them, have to be written out.
    """
    if name in WITH_VALUE or name in SWITCHES:
        return name
    meant = [known for known in WITH_VALUE if known.startswith(name) and not known.startswith(("innodb", "aria"))]
    return meant[0] if len(meant) == 1 and len(name) >= MIN_ABBREVIATION else name


def option_of(line: str) -> tuple[str, str] | None:
    """The option of a line of a file. ``#`` outside quotes ends it, ``;`` only begins a comment line."""
    line = line.strip()
    if not line or line[0] in "#;!":
        return None
    match = BEFORE_COMMENT.match(line)
    name, equals, value = (match[0] if match else line).partition("=")
    return read_option(name, value if equals else None)


def sections_of(engine: str, version: str | None, suffix: str) -> re.Pattern[str]:
    """Sections that the server reads, each also with the suffix of ``--defaults-group-suffix``.

    A section with a version is for that series alone (``mysqld-8.4``, ``mariadb-10.11``); without a known version all
    of them are taken.
    """
    series = r"[\d.]+" if version is None else re.escape(".".join(version.split(".")[:2]))
    names = ["mysqld", "server", f"mysqld-{series}"]
    if engine == "mariadb":
        names += ["mariadb", "mariadbd", f"mariadb-{series}", f"mariadbd-{series}", "galera"]
    # The server compares in any case (typelib.c find_type).
    return re.compile(f"(?:{'|'.join(names)})(?:{re.escape(suffix)})?", re.ASCII | re.IGNORECASE)


def _read_file(
    server: Server,
    settings: Settings,
    path: str,
    wanted: re.Pattern[str],
    left: list[int],
    *,
    must_exist: bool = False,
) -> None:
    if not settings.has_room(left):
        return
    text = server.try_read(path, settings, must_exist=must_exist)
    applies = False
    for line in lines_of(text or "", settings):
        if line.startswith("!includedir"):
            folder = line[11:].strip()
            for name in server.included(folder, lambda name: name.endswith(".cnf"), settings, left):
                _read_file(server, settings, f"{folder}/{name}", wanted, left)
        elif line.startswith("!include"):
            _read_file(server, settings, line[8:].strip(), wanted, left)
        elif match := SECTION.match(line):
            applies = wanted.fullmatch(match[1].rstrip()) is not None
        elif applies:
            option = option_of(line)
            if option:
                settings.put(*option, path.rpartition("/")[2][:64])


def _read_persisted(server: Server, settings: Settings, folder: str) -> None:
    """What SET PERSIST wrote: mysqld-auto.cnf, JSON, read after the option files."""
    text = server.try_read(f"{folder}/mysqld-auto.cnf", settings)
    if text is None:
        return
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        settings.missing("mysqld-auto.cnf: not JSON")
        return

    waiting = [("", document)]
    while waiting:  # tables in tables, as deep as somebody likes
        name, part = waiting.pop()
        if isinstance(part, dict) and isinstance(part.get("Value"), str):
            settings.put(canonical(name), part["Value"], "mysqld-auto.cnf")
        elif isinstance(part, dict):
            waiting.extend(reversed(part.items()))


def command_line(arguments: list[str]) -> dict[str, str]:
    """Options of a command line by canonical name: ``--name=value``, ``--name value`` or a bare switch."""
    found = {}
    for place, word in enumerate(arguments):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        following = arguments[place + 1] if place + 1 < len(arguments) else "--"
        # Only an option that must have a value takes the next word.
        if not equals and canonical(name) in WITH_VALUE and not following.startswith("--"):
            equals, value = "=", following
        option = read_option(name, value if equals else None)
        if option:
            found[option[0]] = option[1]
    return found


def version_of(server: Server, engine: str, folder: str | None) -> versions.Known:
    """From the running program, its image, its path, or what it noted in its data folder."""
    path = re.search(r"(?:mysql|mariadb|percona)[a-z-]{0,64}[-/](\d+\.\d+(?:\.\d+)?)", server.executable or "")
    in_path: versions.Known = (path[1], "executable path") if path else versions.UNKNOWN
    if engine == "mariadb":
        program = versions.of_program(server, _MARIADB_VERSION)
        image = versions.of_image(server, ["MARIADB_VERSION"])
        data = versions.of_data(server, folder, ["mariadb_upgrade_info", "mysql_upgrade_info"])
        return versions.first(program, in_path, image, data)
    image = versions.of_image(server, ["MYSQL_VERSION", "PERCONA_VERSION", "PS_VERSION"])
    data = versions.of_data(server, folder, ["mysql_upgrade_history", "mysql_upgrade_info"])
    # Its series alone; the image and the folder may know the release of it.
    series = versions.of_program(server, _MYSQL_SERIES)
    exact = versions.first(in_path, image, data)
    is_same = series[0] is None or (exact[0] or "").split(".")[:2] == series[0].split(".")
    return exact if exact[0] is not None and is_same else series


def _option_files(server: Server, settings: Settings, given: dict[str, str]) -> list[tuple[str, bool]]:
    """The files in the order in which the server reads them, and whether each must exist."""
    if "--no-defaults" in server.arguments:
        return []
    variables = server.environment(["MYSQL_HOME", "HOME"])
    named = {name: given.get(name) for name in ("defaults_file", "defaults_extra_file")}
    for name, path in named.items():
        if path and not path.startswith("/"):
            named[name] = server.named_at_start(path)
            if named[name] is None:
                settings.missing("its option file is named from a folder that is not known")
                return []
    if named["defaults_file"]:
        return [(named["defaults_file"], True)]
    files = [(path, False) for path in DEFAULT_FILES]
    if variables.get("MYSQL_HOME"):
        files.append((f"{variables['MYSQL_HOME']}/my.cnf", False))
    if named["defaults_extra_file"]:
        files.append((named["defaults_extra_file"], True))
    if variables.get("HOME"):
        files.append((f"{variables['HOME']}/.my.cnf", False))
    return files


def describe(server: Server, engine: str) -> Facts:
    settings = Settings(SETTINGS | {"port", "datadir"}, complete=True)
    given = command_line(server.arguments[1:])
    # It changes into its data folder at its start, so its working folder is where that is.
    version, source = version_of(server, engine, given.get("datadir") if server.folder() is None else ".")
    suffix = given.get("defaults_group_suffix") or server.environment(["MYSQL_GROUP_SUFFIX"]).get("MYSQL_GROUP_SUFFIX")
    if len(suffix or "") > MAX_VALUE_CHARACTERS:
        settings.missing(f"its group suffix is longer than {MAX_VALUE_CHARACTERS} characters")
        suffix = None
    wanted, left = sections_of(engine, version, suffix or ""), [MAX_FILES]
    for path, must_exist in _option_files(server, settings, given):
        _read_file(server, settings, path, wanted, left, must_exist=must_exist)
    folder = given.get("datadir") or settings.value("datadir") or server.folder()
    if folder and engine == "mysql" and server.folder() is not None:
        _read_persisted(server, settings, folder if folder.startswith("/") and folder != server.folder() else ".")
    for name, value in given.items():
        earlier = settings.found.get(name, {})
        if earlier.get("source") == "mysqld-auto.cnf" and earlier["value"] != value:
            settings.missing(f"{name}: command line and mysqld-auto.cnf disagree; only the server knows which holds")
        settings.put(name, value, "command line")
    if server.folder() is None:
        settings.missing("this user may not look into its file system")
    port = port_number(settings.value("port"))
    settings.found.pop("port", None)
    settings.found.pop("datadir", None)
    return Facts(settings, version=version, version_source=source, port=port, instance=folder)


ENGINE = Engine("mysql", frozenset({"mysqld", "mysqld-debug"}), lambda server: describe(server, "mysql"))
