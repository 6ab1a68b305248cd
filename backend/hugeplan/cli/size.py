"""``hugeplan size ENGINE``: the huge pages that one database engine needs with given settings."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from typing import Final

from hugeplan.planner.demand import (
    ENGINES,
    DemandContext,
    Engine,
    PageChoice,
    context_with_page_size,
    demand_of,
    engine_named,
)
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import DatabaseInstance, Demand
from hugeplan.planner.pages import (
    base_page_sizes,
    canonical_architecture,
    counted_pages,
    huge_page_sizes,
    page_label,
    usual_default_size,
)
from hugeplan.planner.units import format_bytes, format_iec_bytes, parse_iec_bytes, parse_page_size, parse_whole_number

_NO_HUGE_PAGES: Final = frozenset({"base", "none"})
EPILOG: Final = """\
examples:
  hugeplan size postgresql --version 18 --set shared_buffers=8GB --set max_connections=200 --page-size 2M
  hugeplan size mysql --version 8.0 --set innodb_buffer_pool_size=64G --set innodb_buffer_pool_instances=8 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``size``."""
    parser.add_argument("engine", help=f"one of {', '.join(ENGINES)}")
    parser.add_argument(
        "--version", dest="engine_version", metavar="V", help="the engine's version, such as 18 or 8.0.36"
    )
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE", help="a setting; may be repeated"
    )
    parser.add_argument("--page-size", metavar="SIZE", help="2M, 1G, ...; base for no huge pages (default: the node's)")
    parser.add_argument("--default-page-size", metavar="SIZE", help="the kernel's default huge page size")
    parser.add_argument("--arch", help="x86_64, aarch64, ppc64le, riscv64 or s390x")
    parser.add_argument(
        "--base-page-size", metavar="SIZE", help="the kernel's base page size (default: 4K or the first)"
    )
    parser.add_argument("--connections", metavar="N", help="connections, where they differ from the setting")
    parser.add_argument("--cpus", metavar="N", help="logical processors, for defaults that depend on them")
    parser.add_argument(
        "--memory", metavar="SIZE", help="the node's memory such as 64GiB, for defaults that depend on it"
    )
    parser.add_argument("--list-settings", action="store_true", help="list the engine's settings that change memory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the demand; PlannerErrors go to the caller, which prints them as one line."""
    engine = engine_named(arguments.engine)
    if arguments.list_settings:
        print(_settings_text(engine))
        return 0
    context = _context(arguments)
    instance = DatabaseInstance(
        name=engine.name,
        engine=engine.name,
        version=arguments.engine_version,
        settings=parse_assignments(arguments.settings),
        connections=_optional_count(arguments.connections, "--connections", 0, 10_000_000),
    )
    page_bytes = _page_bytes(arguments.page_size, context, engine, instance)
    demand = demand_of(instance, page_bytes, context)
    print(json.dumps(demand_document(demand), indent=2) if arguments.json else _text(engine, demand))
    return 0


def parse_assignments(pairs: list[str]) -> dict[str, str]:
    """``name=value`` pairs as a mapping; the last of a name given twice wins, as in a configuration file."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise PlannerError("--set", pair, "NAME=VALUE, such as shared_buffers=8GB")
        settings[name.strip()] = value.strip()
    return settings


def _optional_count(text: str | None, field: str, low: int, high: int) -> int | None:
    return None if text is None else parse_whole_number(text, low, high, field)


def _context(arguments: argparse.Namespace) -> DemandContext:
    """The node asked about. Without ``--arch`` it is of an architecture that has the page size, x86-64 first."""
    page_bytes = _page_size(arguments.page_size)
    if arguments.arch is None and arguments.base_page_size is None:
        context = context_with_page_size(page_bytes or DemandContext().default_huge_page_bytes)
    else:
        arch = canonical_architecture(arguments.arch or "x86_64", "--arch")
        base = base_page_sizes(arch)[0]
        if arguments.base_page_size is not None:
            base = parse_page_size(arguments.base_page_size, "--base-page-size")
        sizes = huge_page_sizes(arch, base)
        context = DemandContext(
            arch=arch,
            base_page_bytes=base,
            huge_page_sizes_bytes=sizes,
            default_huge_page_bytes=usual_default_size(base, sizes),
        )
    default = context.default_huge_page_bytes
    if arguments.default_page_size is not None:
        default = parse_page_size(arguments.default_page_size, "--default-page-size")
        if default not in context.huge_page_sizes_bytes:
            labels = ", ".join(page_label(size) for size in context.huge_page_sizes_bytes)
            raise PlannerError("--default-page-size", page_label(default), labels)
    return replace(
        context,
        default_huge_page_bytes=default,
        cpus=_optional_count(arguments.cpus, "--cpus", 1, 65536),
        mem_total_bytes=None if arguments.memory is None else parse_iec_bytes(arguments.memory, "--memory"),
    )


def _page_size(text: str | None) -> int | None:
    """Bytes of ``--page-size``; None where it is not given, or where no huge pages are asked for."""
    if text is None or text.strip().lower() in _NO_HUGE_PAGES:
        return None
    return parse_page_size(text, "--page-size")


def _page_bytes(text: str | None, context: DemandContext, engine: Engine, instance: DatabaseInstance) -> int:
    """``--page-size``, else the size that the engine's own settings name (huge_page_size), else the default size."""
    if text is not None and text.strip().lower() in _NO_HUGE_PAGES:
        return context.base_page_bytes
    named = _page_size(text)
    if named is not None or engine.page_choice is not PageChoice.NAMED:
        return named or context.default_huge_page_bytes
    return next(iter(engine.pool_use(instance, context).page_sizes_bytes), context.default_huge_page_bytes)


def demand_document(demand: Demand) -> dict[str, object]:
    """The demand as plain data; the keys that scripts rely on come first."""
    first = ("engine", "version", "segment_bytes", "page_bytes", "pages", "error_pages", "notes")
    everything = asdict(demand)
    head = {"enough_pages": demand.pages + demand.error_pages if demand.wants_pool else 0}
    return head | {key: everything[key] for key in first} | {k: v for k, v in everything.items() if k not in first}


def _text(engine: Engine, demand: Demand) -> str:
    lines = [f"{engine.title} {demand.version or ''}".strip()]
    if not demand.wants_pool:
        lines.append("  No huge page pool is needed for this engine.")
    else:
        enough = demand.pages + demand.error_pages
        reserved = format_iec_bytes(enough * demand.page_bytes)
        lines.append(f"  {counted_pages(enough, demand.page_bytes)} = {reserved}: always enough")
        if demand.error_pages:
            lines.append(f"  the rule's count is {demand.pages}, give or take {demand.error_pages}")
        lines += [
            f"  shared memory {format_bytes(demand.segment_bytes)} ({demand.segment_bytes} bytes),"
            f" {format_bytes(demand.waste_bytes)} left unused by rounding",
        ]
        for segment in demand.segments:
            lines.append(
                f"  {segment.count} x {segment.name}: {format_bytes(segment.segment_bytes)} each,"
                f" {counted_pages(segment.pages, demand.page_bytes)}"
            )
    for setting in demand.settings:
        written = f"{setting.name} = {setting.value}" if setting.value else setting.name
        lines.append(f"  set {written}: {setting.reason}")
    for fit in demand.fits:
        lines.append(
            f"  {fit.direction} {fit.setting} to {fit.value}: {format_bytes(fit.waste_before_bytes)} unused becomes"
            f" {format_bytes(fit.waste_after_bytes)}. {fit.reason}"
        )
    lines += [f"  note: {note}" for note in demand.notes]
    return "\n".join(lines)


def _settings_text(engine: Engine) -> str:
    width = max((len(spec.name) for spec in engine.settings), default=0)
    return "\n".join(
        f"{spec.name:<{width}}  {spec.summary}{f' Default {spec.default}.' if spec.default else ''}"
        for spec in engine.settings
    )
