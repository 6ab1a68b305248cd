"""What a node says of its databases costs no more where the numbers are the largest that are read."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from hugeplan.planner.demand import ENGINES, DemandContext, demand_of
from hugeplan.planner.demand.base import SettingKind, SettingSpec
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, KIB, MIB, DatabaseInstance, NodeFacts, NumaNode, PlanRequest
from hugeplan.planner.plan import plan

BASE = 4 * KIB
HUGE = (2 * MIB, GIB, 16 * GIB)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block fails past so much processor time, also one that would not end."""

    def end(*_: object) -> None:
        pytest.fail(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def instance_of(engine: str, settings: dict[str, str]) -> DatabaseInstance:
    return DatabaseInstance(name="x", engine=engine, settings=settings)


def is_refused(engine: str, settings: dict[str, str]) -> str | None:
    """The field that is refused; None where the engine plans with all."""
    try:
        demand_of(instance_of(engine, settings), BASE)
    except PlannerError as error:
        return error.field.removeprefix("settings.")
    return None


def spelled(engine: str, spec: SettingSpec, bound: int) -> str:
    """A number as the engine reads it: some count in units of their own."""
    for text in (f"{bound}B", f"{bound}", f"{bound // 1024}k", f"{bound // 4096}", "8191P", "1P", "1T"):
        if is_refused(engine, {spec.name: text}) != spec.name:
            return text
    return ""


def extremes(engine: str) -> Iterator[dict[str, str]]:
    """All numbers at their largest, then each at its smallest in turn; what is refused beside others is left out."""
    specs = [spec for spec in ENGINES[engine].settings if spec.kind in (SettingKind.BYTES, SettingKind.INTEGER)]
    largest = {s.name: spelled(engine, s, 2**63 - 1 if s.maximum is None else s.maximum) for s in specs}
    smallest = {s.name: spelled(engine, s, s.minimum or 1) for s in specs}
    sizes = ENGINES[engine].sized_by
    for low in (None, *(s.name for s in specs if s.matters or s.name in sizes)):
        settings = largest if low is None else largest | {low: smallest[low]}
        settings = {name: text for name, text in settings.items() if text}
        while (field := is_refused(engine, settings)) in settings:
            del settings[field or ""]
        yield settings


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_largest_settings_take_no_longer_than_others(engine: str) -> None:
    """MySQL stepped down from its chunk by one MiB at a time: a report ended every plan of the fleet."""
    for settings in list(extremes(engine))[:40]:
        instance = instance_of(engine, settings)
        for page_bytes in HUGE:
            context = DemandContext(huge_page_sizes_bytes=HUGE, default_huge_page_bytes=page_bytes)
            with within(0.1), suppress(PlannerError):
                demand_of(instance, page_bytes, context)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_node_with_the_largest_settings_is_planned_like_others(engine: str) -> None:
    for settings in list(extremes(engine))[:12]:
        node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), huge_page_sizes_bytes=HUGE)
        with within(1.5), suppress(PlannerError):
            plan(PlanRequest(node=node, databases=(instance_of(engine, settings),)))
