"""The table of engines. Adding one is a file in ``engines`` and a row here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from hugeplan.planner.demand.accesses import AccessProfile, given_accesses
from hugeplan.planner.demand.base import (
    DemandContext,
    DemandParts,
    Engine,
    Remarks,
    SettingKind,
    build_demand,
    closest_hint,
    require_page_size,
)
from hugeplan.planner.demand.engines import advice, db2, generic, jvm, mariadb, mysql, oracle, postgresql
from hugeplan.planner.demand.settings import bare, plain, underscored
from hugeplan.planner.errors import PageSizeError, PlannerError, UnknownEngineError
from hugeplan.planner.model import GIB, DatabaseInstance, Demand
from hugeplan.planner.pages import HUGE_PAGE_SIZES, page_label, usual_default_size
from hugeplan.planner.units import format_bytes

_TABLE: Final = (
    postgresql.ENGINE,
    mysql.ENGINE,
    mariadb.ENGINE,
    oracle.ENGINE,
    db2.ENGINE,
    jvm.ENGINE,
    generic.ENGINE,
    *advice.ENGINES,
)

#: Engines by name.
ENGINES: Final[Mapping[str, Engine]] = MappingProxyType({engine.name: engine for engine in _TABLE})

#: What people write between the words of a name: "SQL Server", sql_server and sql-server are one.
_BETWEEN_WORDS: Final = str.maketrans("", "", " -_")


def _plain(name: str) -> str:
    return name.strip().lower().translate(_BETWEEN_WORDS)


_BY_ANY_NAME: Final[Mapping[str, Engine]] = {
    _plain(name): engine for engine in _TABLE for name in (engine.name, engine.title, *engine.aliases)
}


def engine_named(name: str) -> Engine:
    """The engine of a name, its title or an alias, in any case and with any blanks, hyphens or underscores."""
    engine = ENGINES.get(name) or _BY_ANY_NAME.get(_plain(name))
    if engine is None:
        raise UnknownEngineError("engine", name, f"one of {', '.join(ENGINES)}{closest_hint(_plain(name), ENGINES)}")
    return engine


#: Chosen once for a data directory: a plan counts with it, and no file changes it.
FIXED: Final = frozenset({"wal_segment_size", "innodb_page_size"})


def counted_settings(instance: DatabaseInstance, *, changeable: bool = False) -> dict[str, str]:
    """The given settings that the engine's rule counts with, by the engine's spelling; a planner may give any other.

    ``changeable``: without the plan's own advice and what names what the server loads. A file changes them but `FIXED`.
    """
    rule = engine_named(instance.engine)
    counted = {one.name for one in rule.settings if one.matters} | rule.also_read
    if changeable:
        counted -= {"huge_pages", "large_pages"} | {one.name for one in rule.settings if one.kind is SettingKind.TEXT}
    given = {underscored(name): " ".join(bare(value).split()) for name, value in instance.settings.items()}
    return {name: value for name, value in given.items() if name in counted}


def differs(engine: str, name: str, planned: str, has: str | None) -> bool:
    """Whether a server's setting is another than the planned one. None is its default, which may not be known."""
    spec = next((one for one in engine_named(engine).settings if one.name == name), None)
    unit, default = (1, None) if spec is None else (spec.unit_bytes, spec.default)
    has = default if has is None else has
    return has is not None and plain(planned, unit) != plain(has, unit)


def context_with_page_size(page_bytes: int) -> DemandContext:
    """A node of the first architecture that has this page size; x86-64 where none has it."""
    for (arch, base), sizes in HUGE_PAGE_SIZES.items():
        if page_bytes == base or page_bytes in sizes:
            return DemandContext(
                arch=arch,
                base_page_bytes=base,
                huge_page_sizes_bytes=sizes,
                default_huge_page_bytes=usual_default_size(base, sizes),
            )
    return DemandContext()


#: A pool setting below this without a unit was meant in another unit: nobody has a pool of 32 blocks or bytes.
_BARE_MAX: Final = 1024


def bare_number(instance: DatabaseInstance) -> str | None:
    """What a small pool size without a unit is read as, and what was perhaps meant; None where nothing is odd."""
    engine = engine_named(instance.engine)
    own = _plain(engine.pool_setting or "")
    for name, text in instance.settings.items():
        if not _is_small_and_bare(text) or _plain(name) != own:
            continue
        size = engine.demand(instance, DemandContext().base_page_bytes, DemandContext()).pool_bytes
        meant = engine.format_size(int(_raw(text)) * GIB)
        return f"{name} = {_raw(text)} has no unit and is read as {format_bytes(size or 0)}; {meant} may be meant."
    return None


def _raw(text: object) -> str:
    return str(text).strip().strip("'").strip()


def _is_small_and_bare(text: object) -> bool:
    raw = _raw(text)
    return len(raw) <= len(str(_BARE_MAX)) and raw.isdecimal() and 0 < int(raw) < _BARE_MAX


def demand_of(instance: DatabaseInstance, page_bytes: int, context: DemandContext | None = None) -> Demand:
    """What one instance needs when its memory is mapped with pages of ``page_bytes``.

    ``page_bytes`` is a huge page size of the node, or its base page size for no huge pages at all. Without a
    context the node is of an architecture that has the page size, x86-64 first. Errors are PlannerErrors that name
    the engine, the version or the setting.
    """
    where = context if context is not None else context_with_page_size(page_bytes)
    engine = engine_named(instance.engine)
    require_page_size(page_bytes, where)
    if instance.connections is not None and instance.connections < 0:
        raise PlannerError("connections", instance.connections, "0 or more")
    if instance.engine != engine.name:
        instance = replace(instance, engine=engine.name)
    if lacks_size(engine, instance):
        return _without_size(instance, engine, page_bytes)
    try:
        found = engine.demand(instance, page_bytes, where)
    except PlannerError as error:
        raise _with_unit(error, engine) from error
    note = bare_number(instance)
    return found if note is None else replace(found, notes=(note, *found.notes))


def require_named_size(instance: DatabaseInstance, possible: Collection[int]) -> int | None:
    """The page size in bytes that an instance's own settings name; None where they leave it open.

    PageSizeError where it is none of the possible ones.
    """
    engine = engine_named(instance.engine)
    named = engine.named_size(instance)
    if named is not None and named not in possible:
        labels = ", ".join(page_label(size) for size in sorted(possible)) or "none"
        expected = f"a size that node, policy and page_size allow: {labels}"
        raise PageSizeError(f"settings.{engine.size_setting}", page_label(named), expected)
    return named


def as_found(instance: DatabaseInstance, context: DemandContext) -> tuple[DatabaseInstance, str | None]:
    """A server that was found, as its node can have it, and why it is not planned as it is set; None where it is.

    Who sets a server may be another one than who plans its node. One whose settings name a page size that the node
    lacks takes base pages, or another size where its engine tries one.
    """
    sizes = context.huge_page_sizes_bytes
    try:
        require_named_size(instance, sizes)
    except PageSizeError as error:
        engine = engine_named(instance.engine)
        name = error.field.removeprefix("settings.")
        said = f"{name} names pages of {error.value}, which its node does not have, so it is planned "
        if set(sizes).isdisjoint(engine.pool_use(instance, context).page_sizes_bytes):
            return replace(instance, page_bytes=0), f"{said}on base pages"
        settings = {key: value for key, value in instance.settings.items() if key != name}
        return replace(instance, settings=settings), f"{said}without it"
    except PlannerError:
        pass  # the plan names the setting
    return instance, None


def is_sized(engine: Engine, instance: DatabaseInstance) -> bool:
    """Whether the instance's own settings say how much memory it takes."""
    given = {_plain(name) for name in instance.settings}
    return any(_plain(name) in given for name in engine.sized_by)


def lacks_size(engine: Engine, instance: DatabaseInstance) -> bool:
    """Whether nobody read how large the instance is, and its engine has no default that could stand in for it."""
    return not engine.has_default_size and bool(instance.unread_settings) and not is_sized(engine, instance)


def _without_size(instance: DatabaseInstance, engine: Engine, page_bytes: int) -> Demand:
    """What is planned for a database that lacks a size: nothing."""
    note = f"Its size is not known: {engine.sized_by[0]} was not read. No page is planned for it."
    parts = DemandParts(
        segments=(), default_version=None, buffer_pool_bytes=None, remarks=Remarks(notes=(note,)), wants_pool=False
    )
    return build_demand(instance, page_bytes, parts)


def _with_unit(error: PlannerError, engine: Engine) -> PlannerError:
    """The error of a pool size without a unit, with the size that was perhaps meant."""
    own = error.field.removeprefix("settings.")
    if not _is_small_and_bare(error.value) or _plain(own) != _plain(engine.pool_setting or ""):
        return error
    meant = engine.format_size(int(_raw(error.value)) * GIB)
    return type(error)(error.field, error.value, f"{error.expected}; did you mean {meant}?")


def access_profile(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """The accesses of one operation of an instance: the user-supplied count, else the engine's rule."""
    given = instance.workload.cold_touches_per_operation
    if given is not None:
        return given_accesses(instance, demand, given)
    return engine_named(instance.engine).accesses(instance, demand)
