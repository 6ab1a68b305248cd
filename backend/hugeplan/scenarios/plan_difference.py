"""What differs between two saved plans: pools, the ledger's sums, findings, and the inputs that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    before, after = dict(_leaves(old)), dict(_leaves(new))
    changed = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    return [
        InputChange(path=path, value=after.get(path), value_against=before.get(path))
        for path in changed[:MAX_INPUT_CHANGES]
    ]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _leaves(member, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _leaves(member, f"{path}[{index}]")
    else:
        yield path, value
