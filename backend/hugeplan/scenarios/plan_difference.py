"""What differs between two saved plans: pools, the ledger's sums, findings, and the inputs that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any, Final

from hugeplan.api.schemas import JsonObject
from hugeplan.planner.model import Plan
from hugeplan.scenarios.schemas import FindingChange, InputChange, PoolChange

MAX_INPUT_CHANGES: Final = 500


def pool_changes(old: Plan, new: Plan) -> list[PoolChange]:
    """Pools whose number of pages differs; a pool that only one of them has counts zero pages in the other."""
    before = {(pool.numa_node, pool.page_bytes): pool.pages for pool in old.pools}
    after = {(pool.numa_node, pool.page_bytes): pool.pages for pool in new.pools}
    return [
        PoolChange(
            numa_node=numa_node,
            page_bytes=size,
            pages=after.get((numa_node, size), 0),
            pages_against=before.get((numa_node, size), 0),
        )
        for numa_node, size in sorted(before.keys() | after.keys())
        if after.get((numa_node, size), 0) != before.get((numa_node, size), 0)
    ]


def finding_changes(old: Plan, new: Plan) -> list[FindingChange]:
    """Findings whose state differs, by code and subject."""
    before = {(finding.code, finding.subject): finding for finding in old.findings}
    after = {(finding.code, finding.subject): finding for finding in new.findings}
    found = []
    for key in sorted(before.keys() | after.keys()):
        state = after[key].state.value if key in after else None
        against = before[key].state.value if key in before else None
        if state != against:
            title = (after.get(key) or before[key]).title
            found.append(FindingChange(code=key[0], subject=key[1], title=title, state=state, state_against=against))
    return found


def input_changes(old: JsonObject | None, new: JsonObject | None) -> list[InputChange] | None:
    """Inputs that differ, as paths with both values. None where one plan was saved without its inputs."""
    if old is None or new is None:
        return None
    return [
        InputChange(path=path, value=value, value_against=against)
        for path, value, against in islice(_changed(old, new, ""), MAX_INPUT_CHANGES)
    ]


def _changed(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The leaves that differ, with their new and old values; what is equal is not gone into."""
    if old == new:
        return
    if isinstance(old, Mapping | None) and isinstance(new, Mapping | None):
        before, after = old or {}, new or {}
        for key in sorted(before.keys() | after.keys()):
            yield from _changed(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(old, list | None) and isinstance(new, list | None):
        for index, (against, value) in enumerate(zip_longest(old or (), new or ())):
            yield from _changed(against, value, f"{path}[{index}]")
    elif isinstance(old, Mapping | list) or isinstance(new, Mapping | list):
        yield from _changed(old, None, path)
        yield from _changed(None, new, path)
    else:
        yield path, new, old
