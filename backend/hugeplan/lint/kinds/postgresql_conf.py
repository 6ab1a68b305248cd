"""postgresql.conf, and the same settings in operators' custom resources."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from hugeplan.formats.postgresql_conf import Setting, settings_of
from hugeplan.lint.kinds.lines import lines_of
from hugeplan.lint.model import Context, Edit, EngineFact, Notes, Reading, Source, attention, wrong
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_postgresql_bytes, parse_postgresql_bytes

KIND: Final = "postgresql_conf"
_GUC: Final = "PostgreSQL documentation, Resource Consumption"

VALUE: Final = wrong("postgresql-huge-pages-value", "huge_pages takes on, off or try.", _GUC)
TRY: Final = attention(
    "postgresql-huge-pages-try",
    "With try, the default, the server falls back to base pages without a message when pages are short.",
    _GUC + ", huge_pages; src/backend/port/sysv_shmem.c",
)
MEMORY_TYPE: Final = wrong(
    "postgresql-shared-memory-type",
    "On Linux huge pages need shared_memory_type = mmap; with another type huge_pages "
    "= on keeps the server from starting.",
    "src/backend/port/sysv_shmem.c PGSharedMemoryCreate()",
)
PAGE_SIZE: Final = wrong(
    "postgresql-huge-page-size",
    "huge_page_size names a huge page size of the machine, or 0 for the kernel's default.",
    _GUC + ", huge_page_size",
)
UNIT: Final = wrong(
    "postgresql-unit",
    "Memory units are B, kB, MB, GB and TB, and their case counts; the server refuses others.",
    "PostgreSQL documentation, Setting Parameters",
)
OTHER_ENGINE: Final = wrong(
    "postgresql-unknown-setting",
    "A setting that PostgreSQL does not have keeps the server from starting.",
    "src/backend/utils/misc/guc.c",
)
TWICE: Final = attention(
    "postgresql-set-twice", "The last line of a setting wins.", "PostgreSQL documentation, Setting Parameters"
)
SYNTAX: Final = wrong(
    "postgresql-syntax",
    "A line is name = value: a value with a blank in it stands in single quotes, or the server does not start.",
    "PostgreSQL documentation, Setting Parameters; src/backend/utils/misc/guc-file.l",
)
FOREIGN: Final = {
    "large_pages": "huge_pages",
    "large-pages": "huge_pages",
    "hugepages": "huge_pages",
    "use_huge_pages": "huge_pages",
    "hugepage_size": "huge_page_size",
    "huge_pages_size": "huge_page_size",
    "use_large_pages": "huge_pages",
    "nr_hugepages": None,
    "vm.nr_hugepages": None,
}
#: A name with something behind it that is no one value.
_MALFORMED: Final = re.compile(
    r"^[ \t]*(?P<name>[A-Za-z_][\w.-]*)(?:[ \t]*=[ \t]*|[ \t]+)(?P<value>(?:[^# \t]+|[ \t]+(?=[^# \t]))*+)"
)
_NAMES: Final = frozenset(
    [
        "shared_buffers",
        "huge_pages",
        "huge_page_size",
        "max_connections",
        "work_mem",
        "maintenance_work_mem",
        "effective_cache_size",
        "wal_buffers",
        "listen_addresses",
        "max_wal_size",
        "min_wal_size",
        "shared_memory_type",
        "wal_level",
        "checkpoint_timeout",
        "random_page_cost",
        "port",
        "shared_preload_libraries",
        "max_worker_processes",
        "autovacuum",
        "max_locks_per_transaction",
        "log_destination",
        "data_directory",
        "hba_file",
        "dynamic_shared_memory_type",
        "unix_socket_directories",
        "temp_buffers",
        "superuser_reserved_connections",
        "max_parallel_workers",
        "max_wal_senders",
        "max_prepared_transactions",
        "log_timezone",
        "timezone",
        "include",
        "include_dir",
    ]
)
_TRUE: Final = ("on", "true", "yes", "1")
_FALSE: Final = ("off", "false", "no", "0")
_MEMORY: Final = {
    "shared_buffers": 8192,
    "wal_buffers": 8192,
    "work_mem": 1024,
    "maintenance_work_mem": 1024,
    "huge_page_size": 1024,
    "min_dynamic_shared_memory": 2**20,
}


def detects(source: Source) -> bool:
    """Lines of which most are settings that PostgreSQL has."""
    names = [setting.name.lower() for setting in settings_of(source.text)]
    names += [name for name, _, _ in _malformed(source.text)]
    own = [name for name in names if name in _NAMES or name.startswith(("huge_page", "log_", "autovacuum_", "wal_"))]
    foreign = [name for name in names if name in FOREIGN or name.replace("-", "_").startswith("innodb")]
    return (
        bool(own) and not any(n.replace("-", "_").startswith("innodb") for n in foreign) and len(own) * 2 >= len(names)
    )


def _malformed(text: str) -> list[tuple[str, int, re.Match[str]]]:
    """Lines of settings about memory that the server cannot read: name in lower case, offset of the line, parts."""
    found = []
    for line in lines_of(text):
        match = None if line.is_comment or any(settings_of(line.text)) else _MALFORMED.match(line.text)
        if match and match["name"].lower() in {*_MEMORY, *FOREIGN, "huge_pages", "shared_memory_type"}:
            found.append((match["name"].lower(), line.start, match))
    return found


def _syntax(text: str, notes: Notes) -> None:
    for name, start, match in _malformed(text):
        size = re.fullmatch(r"(\d+)[ \t]+([kKmMgGtT])i?[bB]?", match["value"])
        right = None if size is None else size[1] + {"k": "kB", "m": "MB", "g": "GB", "t": "TB"}[size[2].lower()]
        span = (start + match.start("value"), start + match.end("value"))
        edits = () if right is None else (Edit(*span, right),)
        what = f"the server cannot read {match['value']!r}" if match["value"] else "the value is missing"
        said = f"{name}: {what} and does not start."
        fix = f"Write {name} = {right}." if right else f"Write one value, such as {name} = on or 8GB."
        notes.problem(SYNTAX, start + match.start("name"), match[0].strip(), said, fix, *edits)


def read(source: Source, context: Context) -> Reading:
    """What the server will do with huge pages."""
    notes = Notes()
    _syntax(source.text, notes)
    found = list(settings_of(source.text))
    seen: dict[str, Setting] = {}
    for setting in found:
        name = setting.name.lower()
        if name in seen and seen[name].value != setting.value and (name in _MEMORY or name == "huge_pages"):
            said = f"{name} = {setting.value} replaces {seen[name].value} further up."
            notes.problem(TWICE, setting.name_span[0], name, said, "Keep one line.")
        seen[name] = setting
    check_settings(found, notes, context)
    return notes.reading(KIND, "postgresql.conf")


def check_settings(
    found: Iterable[Setting], notes: Notes, context: Context, *, version: str | None = None, owner: str | None = None
) -> EngineFact:
    """Note the problems of PostgreSQL settings from anywhere; the fact serves the check beside a pod's limit."""
    last = {setting.name.lower(): setting for setting in found}
    for name, setting in last.items():
        _foreign(name, setting, notes)
        if name in _MEMORY:
            _unit(name, setting, notes)
    mode = _mode(last.get("huge_pages"), notes)
    if mode != "off":
        _memory_type(last.get("shared_memory_type"), mode, notes)
    _page_size(last.get("huge_page_size"), notes, context)
    buffers = last.get("shared_buffers")
    size = "128MB (the default)" if buffers is None else buffers.value
    does = {
        "on": "asks for huge pages and does not start without them",
        "try": "asks for huge pages and falls back to base pages silently",
        "off": "uses base pages",
    }[mode]
    notes.effects.append(f"PostgreSQL {does}; shared_buffers is {size}")
    fact = EngineFact(
        engine="postgresql",
        version=version,
        settings=tuple((name, setting.value) for name, setting in last.items()),
        positions=tuple((name, setting.name_span[0]) for name, setting in last.items()),
        owner=owner,
    )
    notes.facts.append(fact)
    return fact


def mode_of(settings: dict[str, str]) -> str:
    """huge_pages as on, off or try; what the server would refuse counts as try, its default."""
    text = settings.get("huge_pages", "try").lower()
    return "on" if text in _TRUE else "off" if text in _FALSE else "try"


def _mode(setting: Setting | None, notes: Notes) -> str:
    if setting is None:
        return "try"
    text = setting.value.lower()
    if text in _TRUE:
        return "on"
    if text in _FALSE:
        return "off"
    if text == "try":
        said = "The server may run on base pages and nothing says so."
        fix = "Write huge_pages = on in production."
        notes.problem(TRY, setting.name_span[0], "huge_pages = try", said, fix)  # without a pool, "on" starts nothing
        return "try"
    notes.rewrite(
        VALUE,
        setting.value_span,
        f"huge_pages = {setting.value}",
        f"{setting.value!r} is refused, and the server does not start.",
        _as(setting, "on"),
        fix="Write huge_pages = on.",
    )
    return "try"


def _as(setting: Setting, value: str) -> str:
    return f"'{value}'" if setting.quoted else value


#: All settings of PostgreSQL whose names begin with huge; the last one can only be shown.
_HUGE: Final = ("huge_pages", "huge_page_size", "huge_pages_status")


def _foreign(name: str, setting: Setting, notes: Notes) -> None:
    is_invented = name.startswith("huge") and "." not in name and name not in _HUGE[:2]
    if name in FOREIGN or name.replace("-", "_").startswith("innodb_") or is_invented:
        right = FOREIGN.get(name)
        if right is None and is_invented:
            right = next(iter(difflib.get_close_matches(name, _HUGE[:2], n=1, cutoff=0.7)), None)
            right = None if name == _HUGE[2] else right
        said = f"PostgreSQL has no setting {setting.name}."
        notes.rewrite(OTHER_ENGINE, setting.name_span, setting.name, said, right, otherwise="Leave it out.")


def _unit(name: str, setting: Setting, notes: Notes) -> None:
    if setting.value == "-1":
        return
    try:
        parse_postgresql_bytes(setting.value, _MEMORY[name], name)
    except PlannerError:
        found = re.fullmatch(r"(\d+)\s*([kKmMgGtT])(?:i?[bB])?", setting.value)
        unit = {"k": "kB", "m": "MB", "g": "GB", "t": "TB"}
        right = None if found is None else f"{found[1]}{unit[found[2].lower()]}"
        said, fix = (
            f"{name} = {setting.value}: the server does not start with this unit.",
            right or "a size such as 8GB",
        )
        text = None if right is None else _as(setting, right)
        notes.rewrite(UNIT, setting.value_span, f"{name} = {setting.value}", said, text, fix=f"Write {fix}.")


def _memory_type(setting: Setting | None, mode: str, notes: Notes) -> None:
    if setting is not None and setting.value.lower() != "mmap":
        what = "the server does not start" if mode == "on" else "the server uses base pages"
        notes.rewrite(
            MEMORY_TYPE,
            setting.value_span,
            f"shared_memory_type = {setting.value}",
            f"With huge_pages = {mode} and shared_memory_type = {setting.value} {what}.",
            _as(setting, "mmap"),
            fix="Write shared_memory_type = mmap.",
        )


def _page_size(setting: Setting | None, notes: Notes, context: Context) -> None:
    if setting is None:
        return
    try:
        size = parse_postgresql_bytes(setting.value, 1024, "huge_page_size")
    except PlannerError:
        return  # the unit is a problem already
    if size and size not in context.sizes:
        sizes = ", ".join(format_postgresql_bytes(s) for s in context.sizes)
        said = f"{page_label(size)} is not a huge page size of {context.arch}."
        fix = f"Use one of {sizes}, or 0."
        notes.problem(PAGE_SIZE, setting.value_span[0], f"huge_page_size = {setting.value}", said, fix)
