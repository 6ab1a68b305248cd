"""Inventory from a table of hosts: one row per database, or per host without one.

Columns by name, in any order and case: ``host`` and ``memory`` are needed; ``arch``, ``numa_nodes``, ``used``,
``engine``, ``version``, ``database``, ``settings`` (``name=value`` separated by semicolons), ``nr_hugepages``,
``huge_page_size``. An empty cell is unknown. Rows of one host share its memory: its databases are
part of ``used``.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from hugeplan.inventory.instances import database_instance, within_most
from hugeplan.inventory.model import FoundDatabase, FoundNode, Inventory, InventoryError
from hugeplan.planner.demand import DemandContext, Engine, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import EVERYTHING_IN_USE, Confidence, NodeFacts, NumaNode, Pool, Reservations, Tenant, named
from hugeplan.planner.pages import base_page_sizes, canonical_architecture, kernel_page_sizes, usual_default_size
from hugeplan.planner.units import (
    format_bytes,
    parse_iec_bytes,
    parse_kubernetes_bytes,
    parse_page_size,
    parse_whole_number,
)
from hugeplan.recognition import Recognised

COLUMNS: Final = (
    "host", "memory", "arch", "numa_nodes", "used", "engine", "version", "database", "settings", "nr_hugepages",
    "huge_page_size",
)  # fmt: skip
_NEEDED: Final = ("host", "memory")
_UNKNOWN: Final = ("translation hardware: not in the table, so gains are ranges over all known processors",)

Row = Mapping[str, str]


def read_csv(text: str, name: str) -> Inventory:
    """The inventory of a table. InventoryError names the line, the column, the value and what is expected."""
    text = text.lstrip("\ufeff")
    head = text.lstrip().partition("\n")[0]
    # csv.Sniffer takes time with the fourth power of the quotes in a cell. Of as many the first, the comma.
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=head.count), skipinitialspace=True)
    try:
        rows = [
            (reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise InventoryError(f"{name}: line {reader.line_num}: {error}") from error
    if not rows:
        raise InventoryError(f"{name} is empty; expected a table with the columns {', '.join(COLUMNS)}")
    header = [cell.lower().replace(" ", "_") for cell in rows[0][1]]
    for column in header:
        if column not in COLUMNS:
            raise InventoryError(f"{name}: line 1: {column!r} is no column; expected some of {', '.join(COLUMNS)}")
    missing = [column for column in _NEEDED if column not in header]
    if missing or len(set(header)) != len(header):
        what = f"the column {missing[0]} is missing" if missing else "a column is there twice"
        raise InventoryError(f"{name}: line 1: {what}")
    nodes: dict[str, FoundNode] = {}
    databases: dict[str, dict[str, FoundDatabase]] = defaultdict(dict)
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            raise InventoryError(f"{name}: line {line}: {len(cells)} cells, expected {len(header)}")
        row = {column: cell for column, cell in zip(header, cells, strict=True) if cell}
        try:
            _take(row, nodes, databases)
        except PlannerError as error:
            raise InventoryError(f"{name}: line {line}: {error}") from error
    if not nodes:
        raise InventoryError(f"{name}: no rows under the header")
    whole = (replace(nodes[key], databases=tuple(databases[key].values())) for key in sorted(nodes))
    found = tuple(_told_apart(within_most(node)[0]) for node in whole)
    return Inventory(source=f"table {name}", nodes=found, unknown=_UNKNOWN)


def _take(row: Row, nodes: dict[str, FoundNode], databases: dict[str, dict[str, FoundDatabase]]) -> None:
    host = row.get("host")
    if host is None:
        raise PlannerError("host", "", "a name")
    if host not in nodes:
        nodes[host] = _node(host, row)
    if "engine" in row:
        found = _database(host, row, databases[host])
        databases[host][found.instance.name] = found


def _told_apart(node: FoundNode) -> FoundNode:
    """A host whose memory in use holds its databases: what their settings come to is taken out of it.

    Where they come to more than that, some of them do not run there yet: how much is theirs is unknown and stays in.
    """
    used = sum(tenant.request_bytes or 0 for tenant in node.tenants)
    if not used or not node.databases:
        return node
    context = DemandContext.of_node(node.facts)
    theirs = 0
    for database in node.databases:
        try:
            theirs += demand_of(database.instance, node.facts.base_page_bytes, context).segment_bytes
        except PlannerError:
            return node  # the plan names the setting, and that the memory in use may hold this database
    if theirs > used:
        return node
    if any(database.instance.unread_settings for database in node.databases):
        return node
    names = named((database.instance.name for database in node.databases), " and ")
    rest = Tenant(name="everything else in use", kind="service", request_bytes=used - theirs)
    said = f"what {names} hold of the {format_bytes(used)} in use: {format_bytes(theirs)} by their settings is assumed"
    return replace(node, tenants=(rest,), unknown=(*node.unknown, said))


def _size(row: Row, column: str) -> int:
    text = row.get(column, "")
    if text.endswith("i"):
        return parse_kubernetes_bytes(text, column)
    return parse_iec_bytes(text, column)


def _node(host: str, row: Row) -> FoundNode:
    total = _size(row, "memory")
    arch = canonical_architecture(row.get("arch", "x86_64"), "arch")
    unknown = [] if "arch" in row else ["architecture: not in the table, x86_64 is assumed"]
    base = base_page_sizes(arch)[0]
    sizes = kernel_page_sizes(arch, base)
    count = parse_whole_number(row["numa_nodes"], 1, 64, "numa_nodes") if "numa_nodes" in row else 1
    if "numa_nodes" not in row:
        unknown.append("NUMA nodes: not in the table, so the plan is for the host as a whole")
    size = parse_page_size(row["huge_page_size"], "huge_page_size") if "huge_page_size" in row else None
    default = usual_default_size(base, sizes) if size is None else size
    pools: tuple[Pool, ...] | None = None
    if "nr_hugepages" in row and count == 1:
        pages = parse_whole_number(row["nr_hugepages"], 0, 2**40, "nr_hugepages")
        pools = (Pool(page_bytes=default, nr_hugepages=pages),)
    else:
        unknown.append("pools")
    tenants: tuple[Tenant, ...] = ()
    if "used" in row:
        tenants = (Tenant(name=EVERYTHING_IN_USE, kind="service", request_bytes=_size(row, "used")),)
    else:
        unknown.append("memory in use")
    return FoundNode(
        facts=NodeFacts(
            name=host,
            arch=arch,
            base_page_bytes=base,
            huge_page_sizes_bytes=sizes,
            default_huge_page_bytes=default,
            numa=tuple(
                NumaNode(id=i, mem_total_bytes=total // count + (i < total % count), pools=pools) for i in range(count)
            ),
        ),
        reservations=Reservations(),
        tenants=tenants,
        unknown=tuple(unknown),
    )


def _size_unknown(engine: Engine, settings: Mapping[str, str]) -> tuple[str, ...]:
    """An empty cell is unknown: without a size in the settings, the database's own is."""
    if not engine.sized_by or not settings.keys().isdisjoint(engine.sized_by):
        return ()
    return (f"{engine.sized_by[0]}: not in the table, the engine's default is taken",)


def _database(host: str, row: Row, taken: Collection[str]) -> FoundDatabase:
    engine = engine_named(row["engine"]).name
    settings: dict[str, str] = {}
    for part in row.get("settings", "").split(";"):
        setting, separator, value = part.partition("=")
        if not part.strip():
            continue
        if not separator:
            raise PlannerError("settings", part, "name=value, separated by semicolons")
        settings[setting.strip()] = value.strip()
    recognised = Recognised(
        engine=engine,
        container="",
        version=row.get("version"),
        settings=settings,
        sources=dict.fromkeys(settings, "table"),
        source="table",
        confidence=Confidence.HIGH,
        complete=True,
        unknown=_size_unknown(engine_named(engine), settings),
    )
    name = row.get("database", engine)
    while name in taken:
        name = f"{name}-{len(taken) + 1}"
    instance, refused = database_instance(name, recognised, None, None)
    return FoundDatabase(
        instance=instance,
        recognised=replace(recognised, unknown=(*recognised.unknown, *refused)),
        namespace="",
        workload=f"{host}/{name}",
        node=host,
    )
