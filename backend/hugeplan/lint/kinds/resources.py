"""The resources of one container, and of everything shaped like it in operators' custom resources."""

from __future__ import annotations

from typing import Final

from hugeplan.lint.kinds.quantities import Quantity, bytes_or_none, check_memory, read_quantities
from hugeplan.lint.model import Context, Edit, LimitFact, Notes, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.pages import counted_pages
from hugeplan.planner.units import format_bytes

_VALIDATION: Final = "kubernetes pkg/apis/core/validation/validation.go ValidateResourceRequirements()"

UNEQUAL: Final = wrong(
    "resource-request-differs",
    "A huge page request must equal its limit: huge pages cannot be overcommitted.",
    _VALIDATION,
)
NO_LIMIT: Final = wrong(
    "resource-request-without-limit", "A huge page request needs a limit of the same size.", _VALIDATION
)
ALONE: Final = wrong(
    "resource-pages-alone", "A container with huge pages must also ask for cpu or memory.", _VALIDATION
)


def check_resources(
    resources: Tree | None,
    name: str,
    notes: Notes,
    context: Context,
    *,
    engine: str | None = None,
    replicas: int | None = 1,
    position: int = 0,
    needs_cpu_or_memory: bool = True,
    is_whole_pod: bool = False,
    tries_pages_first: bool = False,
) -> LimitFact:
    """Note problems of a ``resources`` mapping; the fact says what the container may use."""
    limits_tree = None if resources is None else resources.get("limits")
    requests_tree = None if resources is None else resources.get("requests")
    limits = read_quantities(limits_tree, notes, context)
    requests = read_quantities(requests_tree, notes, context)
    for part in (limits_tree, requests_tree):
        memory = None if part is None else part.get("memory")
        check_memory(memory, "memory", notes, "the API server refuses the object")
    _pairs(limits, requests, limits_tree, notes)
    if (limits or requests) and needs_cpu_or_memory:
        _alone(limits, requests, limits_tree, requests_tree, notes)
    granted: dict[int, int] = {}
    places: dict[int, tuple[Edit, ...]] = {}
    for quantity in limits.values():
        if quantity.page_bytes is not None and quantity.bytes is not None:
            granted[quantity.page_bytes] = quantity.bytes
            places[quantity.page_bytes] = _places(quantity, requests)
    if granted:
        parts = [
            f"{counted_pages(size and count // size, size)} ({format_bytes(count)})" for size, count in granted.items()
        ]
        notes.effects.append(f"{name} may use {', '.join(parts)}")
    fact = LimitFact(
        name=name,
        hugepages=tuple(granted.items()),
        memory_bytes=bytes_or_none(None if limits_tree is None else limits_tree.get("memory")),
        position=position if resources is None else resources.start,
        engine=engine,
        replicas=replicas,
        quantities=tuple(places.items()),
        is_whole_pod=is_whole_pod,
        tries_pages_first=tries_pages_first,
        only_requested=tuple(
            (one.page_bytes, one.bytes, one.tree.key_start)
            for name, one in requests.items()
            if name not in limits and one.page_bytes and one.bytes
        ),
    )
    notes.facts.append(fact)
    return fact


def _places(quantity: Quantity, requests: dict[str, Quantity]) -> tuple[Edit, ...]:
    """Where the text holds a quantity: its limit and, where there is one, its request. The text is put in later."""
    found = [Edit(quantity.tree.start, quantity.tree.end, "")]
    if quantity.name in requests:
        request = requests[quantity.name].tree
        found.append(Edit(request.start, request.end, ""))
    return tuple(found)


def _pairs(limits: dict[str, Quantity], requests: dict[str, Quantity], limits_tree: Tree | None, notes: Notes) -> None:
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            edits: tuple[Edit, ...] = ()
            first = None if limits_tree is None else next(limits_tree.items(), None)
            if first is not None and limits_tree is not None and not limits_tree.is_flow:
                at = first[1].key_start
                edits = (Edit(at, at, f"{name}: {request.tree.text}\n{' ' * limits_tree.column}"),)
            said = f"{name} is requested, but has no limit: the API server refuses it."
            fix = f"Write {name}: {request.tree.text} under limits."
            notes.problem(NO_LIMIT, request.tree.key_start, name, said, fix, *edits)
        elif limit.bytes is not None and request.bytes is not None and limit.bytes != request.bytes:
            text = limit.tree.text if limit.bytes > request.bytes else request.tree.text
            low = request if limit.bytes > request.bytes else limit
            notes.problem(
                UNEQUAL,
                request.tree.start,
                f"{name}: {request.tree.text}",
                f"{name}: the request {request.tree.text} is not the limit {limit.tree.text}: "
                "the API server refuses it.",
                f"Write {text} in both.",
                Edit(low.tree.start, low.tree.end, str(text)),
            )


def _alone(
    limits: dict[str, Quantity],
    requests: dict[str, Quantity],
    limits_tree: Tree | None,
    requests_tree: Tree | None,
    notes: Notes,
) -> None:
    for tree in (limits_tree, requests_tree):
        if tree is not None and (tree.get("memory") is not None or tree.get("cpu") is not None):
            return
    first = next(iter((limits or requests).values()))
    said = "Neither cpu nor memory is asked for beside the huge pages: HugePages require cpu or memory."
    fix = "Write a memory limit for everything that does not lie in huge pages."
    notes.problem(ALONE, first.tree.key_start, first.name, said, fix)
