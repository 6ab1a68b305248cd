"""How large the heap of a JVM is: Xmx, or a share of the memory that it sees (Arguments::set_heap_size).

Read from the MaxHeapSize that real JVMs 17 and 25 print for each of these flags, and from src/hotspot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from hugeplan.planner.demand.base import DemandContext
from hugeplan.planner.demand.settings import Value, integer
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance
from hugeplan.planner.units import format_bytes

#: Flags that change the heap in a way that is not counted: beside them the size must be given.
NOT_COUNTED: Final = (
    "MaxRAMFraction", "MinRAMFraction", "InitialRAMFraction", "DefaultMaxRAMFraction", "AggressiveHeap",
    "ErgoHeapSizeLimit", "ObjectAlignmentInBytes", "HeapBaseMinAddress",
)  # fmt: skip
_OF_MEMORY: Final = ("MaxRAM", "MaxRAMPercentage", "MinRAMPercentage", "InitialRAMPercentage")
_AT_START: Final = ("Xms", "InitialHeapSize", "MinHeapSize")
_MAX_RAM_BYTES: Final = 128 * GIB
_LEAST_BYTES: Final = 96 * MIB * 13 // 10  # MaxHeapSize of a JVM of 64 bits before memory is looked at
_COMPRESSED_BYTES: Final = 30 * GIB  # of 32 GiB, less HeapBaseMinAddress, less the alignment
_ONE_RULE_SINCE: Final = 17  # a flag of memory lifts the bound of compressed pointers since 13 (JDK-8222252)


class Heap(NamedTuple):
    """The largest heap in bytes, and where it comes from; None where it is given."""

    bytes: int
    basis: str | None


def heap_of(
    instance: DatabaseInstance, values: Mapping[str, Value], context: DemandContext, major: int, collector: str
) -> Heap:
    """The largest heap. PlannerError where neither the settings nor the memory that it sees tell it."""
    given = max(integer(values, name, 0) for name in ("Xmx", "MaxHeapSize"))  # which is the last is not known here
    if given:
        return Heap(given, None)
    for name in NOT_COUNTED:
        if str(values.get(name, "false")).lower() not in {"false", "off"}:  # what -XX:- says, and the default
            raise PlannerError(f"settings.{name}", values[name], "Xmx beside it")
    memory, whose = _memory_seen(instance, values, context)
    flags = [name for name in _OF_MEMORY if name in values]
    counted = memory if flags else min(memory, _MAX_RAM_BYTES)
    whose = whose if counted == memory else f"{format_bytes(counted)}, which count of {whose}"
    share = float(values.get("MaxRAMPercentage", 25))
    least = float(values.get("MinRAMPercentage", 50))
    size = int(counted * least / 100)
    if size < _LEAST_BYTES:
        share = least
    else:
        size = max(int(counted * share / 100), _LEAST_BYTES)
    basis = f"{'a quarter' if share == 25 else f'{share:g} %'} of {whose}"
    basis = f"the least, more than {basis}" if size == _LEAST_BYTES else basis
    most = _COMPRESSED_BYTES - (32 * MIB if collector in {"G1", "Shenandoah"} else 2 * MIB)
    asked = values.get("UseCompressedOops")
    if flags and asked is None and major < _ONE_RULE_SINCE and (size > most or memory > _MAX_RAM_BYTES):
        raise PlannerError(f"settings.{flags[0]}", values[flags[0]], f"Xmx beside it in JVM {major}")
    if size > most and (not flags if asked is None else asked):
        size, basis = most, f"what compressed pointers reach, less than {basis}"
    start = max(integer(values, name, 0) for name in _AT_START)
    return Heap(start, "as large as at its start") if start > size else Heap(size, basis)


def _memory_seen(instance: DatabaseInstance, values: Mapping[str, Value], context: DemandContext) -> tuple[int, str]:
    """The memory that the JVM sees in bytes, and whose it is."""
    given = values.get("MaxRAM")
    if given is not None:
        return int(given), f"MaxRAM, {format_bytes(int(given))}"
    node = context.mem_total_bytes
    limit = context.memory_of(instance) if values.get("UseContainerSupport", True) else node
    if limit is None:
        raise PlannerError(
            "settings.Xmx", "", "a heap size such as 8g, or the node's memory (its quarter is the default)"
        )
    if node is None or limit < node:
        return limit, f"its memory limit of {format_bytes(limit)}"
    return node, f"the node's {format_bytes(node)}"
