"""my.cnf of MySQL, Percona Server and MariaDB."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Final

from hugeplan.formats import option_files
from hugeplan.formats.option_files import Option
from hugeplan.lint.model import Context, Edit, EngineFact, Notes, Reading, Source, attention, wrong
from hugeplan.planner.demand.engines.mysql import DEFAULT_VERSION, TABLE, InnodbPool, chunk_pages, pool_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import MIB
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes, format_mysql_bytes, parse_mysql_bytes

KIND: Final = "my_cnf"
_MANUAL: Final = "MySQL 8.4 Reference Manual, Large Page Support"
_OURS: Final = r"mysqld|mariadb|mysql|client|server|galera"

SECTION: Final = wrong(
    "mycnf-section",
    "The server reads [mysqld], [server] and [mariadb]; what is elsewhere is for clients.",
    "MySQL Reference Manual, Using Option Files",
)
SWITCH: Final = wrong("mycnf-large-pages-value", "large_pages takes ON or OFF.", _MANUAL)
OFF: Final = attention("mycnf-large-pages-off", "Without large_pages=ON InnoDB uses base pages.", _MANUAL)
UNKNOWN: Final = wrong(
    "mycnf-unknown-setting",
    "A variable that the server does not know keeps it from starting.",
    "MySQL Reference Manual, Server Options",
)
UNIT: Final = wrong(
    "mycnf-unit",
    "Sizes take K, M, G, T, P or E without B; anything else keeps the server from starting.",
    "MySQL Reference Manual, Using Options to Set Program Variables",
)
READ_ONLY: Final = wrong("mycnf-large-page-size", "large_page_size only reports a size: it cannot be set.", _MANUAL)
CHUNK: Final = wrong(
    "mycnf-chunk-wastes-pages",
    "MySQL maps each chunk with the default huge page size and rounds it up on its own: "
    "a chunk below the page wastes the rest.",
    _MANUAL + "; storage/innobase/include/detail/ut/large_page_alloc.h",
)
PASS_THROUGH: Final = {
    "hugepages": "large_pages",
    "huge_pages": "large_pages",
    "use_large_pages": "large_pages",
    "large_page": "large_pages",
    "shared_buffers": None,
}
#: A section that one server of several reads: ``--defaults-group-suffix`` of its unit.
_OF_ONE: Final = re.compile(r"(?:mysqld|mariadbd?|server)[@.].")
_ON: Final = ("1", "on", "true", "yes")
_OFF: Final = ("0", "off", "false", "no")
#: The server's words in front of a switch that turn it off.
_OFF_BY_NAME: Final = ("skip_large_pages", "disable_large_pages")
_CHUNK: Final = "innodb_buffer_pool_chunk_size"
_WASTE: Final = 1.28
"""Pages of a pool's chunks by its bytes: a fourth too many, and 3 % of descriptors."""
#: What the size of a chunk follows from.
_OF_POOL: Final = ("innodb_buffer_pool_size", _CHUNK, "innodb_buffer_pool_instances", "innodb_page_size")
_SIZES: Final = (
    "innodb_buffer_pool_size",
    "innodb_buffer_pool_chunk_size",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
    "innodb_log_buffer_size",
)


def detects(source: Source) -> bool:
    """An option file with a MySQL or MariaDB section, or InnoDB settings."""
    named = {name for name in option_files.sections(source.text) if re.match(_OURS, name)}
    names = [option.name for option in option_files.options(source.text)]
    return bool(named) or (
        "shared_buffers" not in names and any(n.startswith("innodb_") or n == "large_pages" for n in names)
    )


def read(source: Source, context: Context) -> Reading:
    """What the server will do with large pages."""
    notes = Notes()
    check_my_cnf(source.text, 0, notes, context)
    return notes.reading(KIND, "my.cnf")


def check_my_cnf(
    text: str, offset: int, notes: Notes, context: Context, *, owner: str | None = None, engine: str | None = None
) -> EngineFact:
    """Note the problems of an option file's text that stands ``offset`` characters into the source."""
    last: dict[str, Option] = {}
    is_mariadb = (
        engine == "mariadb" or bool(re.search(r"^[ \t]*+\[(mariadb|mariadbd|galera)", text, re.M)) or "aria_" in text
    )
    for pair in option_files.options(text):
        name = pair.name
        if not _relevant(name):
            continue
        of_one = _OF_ONE.match(pair.section or "") is not None
        if not pair.is_of_server and name not in PASS_THROUGH and not of_one:
            notes.problem(
                SECTION,
                offset + pair.key_start,
                text[pair.line_start : pair.line_end].strip(),
                f"{pair.key} is in [{pair.section}], which the server does not read.",
                "Move it to [mysqld].",
                *_moved(text, pair, offset),
            )
            continue
        _one(name, pair, text, offset, notes)
        last[name] = last.get(name, pair) if of_one else pair
    switches = [last[name] for name in ("large_pages", *_OFF_BY_NAME) if name in last]
    large = max(switches, key=lambda pair: pair.line_start, default=None)
    on = (
        large is not None
        and large.name not in _OFF_BY_NAME
        and (large.value is None or large.value.strip().lower() in _ON)
    )
    if large is not None and _switches_off(large):
        notes.problem(
            OFF,
            offset + large.key_start,
            text[large.line_start : large.line_end].strip(),
            "InnoDB uses base pages.",
            "Write large_pages=ON.",
            Edit(offset + large.line_start, offset + large.line_end, "large_pages=ON"),
        )
    server = "MariaDB" if is_mariadb else "MySQL"
    pool = last.get("innodb_buffer_pool_size")
    size = "the default" if pool is None or pool.value is None else pool.value
    notes.effects.append(
        f"{server} {'asks for huge pages' if on else 'uses base pages'}; innodb_buffer_pool_size is {size}"
    )
    if on and not is_mariadb:
        notes.effects.append(
            "MySQL takes pages of the kernel's default size only, and falls back to base pages chunk by chunk"
        )
        _chunk(last, offset, notes, context)
    fact = EngineFact(
        engine="mariadb" if is_mariadb else "mysql",
        settings=tuple((name, (pair.value or "ON").strip()) for name, pair in last.items()),
        positions=tuple((name, offset + pair.key_start) for name, pair in last.items()),
        owner=owner,
    )
    notes.facts.append(fact)
    return fact


def _switches_off(pair: Option) -> bool:
    """Whether this line, where no later one replaces it, switches large pages off."""
    return pair.name in _OFF_BY_NAME or (pair.value is not None and pair.value.strip().lower() in _OFF)


def _relevant(name: str) -> bool:
    return (
        name in PASS_THROUGH
        or name in _SIZES
        or "large_page" in name
        or name.startswith(("innodb_buffer_pool", "innodb_page_size", "vm.", "max_connections"))
    )


@lru_cache(1)
def _header(text: str) -> re.Match[str] | None:
    """The first header of a section that a server reads; asked of one text for each of its problems."""
    return re.search(r"^[ \t]*+\[(?:mysqld|mariadb|mariadbd|server)\][^\n]*+\n", text, re.M)


def _moved(text: str, pair: Option, offset: int) -> tuple[Edit, ...]:
    """The line taken out and put behind the server section's header, where there is one."""
    header, line = _header(text), f"{text[pair.line_start : pair.line_end]}\n"
    end = pair.line_end + (text[pair.line_end : pair.line_end + 1] == "\n")
    at, new = (len(text), f"\n[mysqld]\n{line}") if header is None else (header.end(), line)
    return (Edit(offset + pair.line_start, offset + end, ""), Edit(offset + at, offset + at, new))


def _one(name: str, pair: Option, text: str, offset: int, notes: Notes) -> None:
    at = offset + pair.key_start
    value = pair.value
    line = text[pair.line_start : pair.line_end].strip()
    span = (offset + pair.value_start, offset + pair.value_end)
    if name in PASS_THROUGH or name.startswith("vm."):
        right = PASS_THROUGH.get(name)
        edits = (
            ()
            if right is None
            else (Edit(at, at + len(pair.key), right), *((Edit(*span, "ON"),) if pair.value is not None else ()))
        )
        said = f"The server has no variable {pair.key} and does not start."
        notes.problem(UNKNOWN, at, pair.key, said, f"Write {right}=ON." if right else "Leave it out.", *edits)
    elif name == "large_page_size":
        said = "large_page_size is read-only: the server does not start."
        fix = "Leave it out; default_hugepagesz= on the kernel command line decides."
        notes.problem(
            READ_ONLY, at, pair.key, said, fix, Edit(offset + pair.line_start, offset + pair.line_end, f"# {line}")
        )
    elif name == "large_pages" and value is not None and value.lower() not in (*_ON, *_OFF):
        notes.rewrite(SWITCH, span, f"large_pages={value}", f"{value!r} is refused.", "ON", fix="Write large_pages=ON.")
    elif name in _SIZES and value is not None:
        try:
            parse_mysql_bytes(value, name)
        except PlannerError:
            found = re.fullmatch(r"(\d+)\s*([kKmMgGtT])i?[bB]?", value)
            right = None if found is None else f"{found[1]}{found[2].upper()}"
            said = f"{name}={value}: the server does not start with this value."
            notes.rewrite(UNIT, span, f"{name}={value}", said, right, otherwise="Write a size such as 8G.")


def _chunk(last: dict[str, Option], offset: int, notes: Notes, context: Context) -> None:
    """Chunks that waste a fifth of their pages or more, in pages of the kernel's default size."""
    size = context.default_page_bytes or context.pmd_bytes
    given = {name: (pair.value or "").strip() for name, pair in last.items() if name in _OF_POOL}
    try:
        pool = pool_of(TABLE.read(given), DEFAULT_VERSION, None)
    except PlannerError:
        return
    used, pair = _taken(pool, size), last.get(_CHUNK)
    if used <= pool.buffer_pool_bytes * _WASTE:
        return
    at = offset + (pair or last.get("innodb_buffer_pool_size") or next(iter(last.values()))).key_start
    said = f"Each chunk of {format_bytes(pool.chunk_bytes)} takes {format_bytes(used // pool.chunks)} in pages"
    better = format_mysql_bytes(max(size // MIB * 1000 // 1024, 128) * MIB)
    helps = _helps(given, better, size, context.mem_total_bytes or math.inf)
    edits = (Edit(offset + pair.value_start, offset + pair.value_end, better),) if pair is not None and helps else ()
    fix = (
        f"Write {_CHUNK}={better}: chunk, descriptors and metadata then fill whole pages. The pool grows by an eighth "
        "at most, to whole chunks in every instance."
        if helps
        else f"Choose fewer innodb_buffer_pool_instances, or another pool, in whole chunks of {better} per instance."
    )
    subject = f"{_CHUNK}={format_mysql_bytes(pool.chunk_bytes)}"
    notes.problem(CHUNK, at, subject, f"{said} of {page_label(size)}.", fix, *edits)


def _taken(pool: InnodbPool, size: int) -> int:
    return pool.chunks * chunk_pages(pool.chunk_bytes, pool.page_size_bytes, size) * size


def _helps(given: Mapping[str, str], chunk: str, size: int, memory: float) -> bool:
    """Whether chunks take fewer pages and leave the pool's size, whatever the release and the processors are."""
    for version, cpus in product((DEFAULT_VERSION, "8.0"), range(4, 257, 4)):
        was, now = (pool_of(TABLE.read(each), version, cpus) for each in (given, {**given, _CHUNK: chunk}))
        grows = now.buffer_pool_bytes > min(was.buffer_pool_bytes * 1.125, max(memory, was.buffer_pool_bytes))
        if grows or _taken(now, size) > min(_taken(was, size), now.buffer_pool_bytes * _WASTE):
            return False
    return True
