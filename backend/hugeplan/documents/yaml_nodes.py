"""YAML of strangers as nodes: bounded in depth and number before it is composed, and in what its aliases stand for.

A text of 366 characters can mean more nodes than a machine has memory, and a line of brackets takes a reader that
recurses down with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 60
MAX_NODES: Final = 50_000
LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where it is there: ten times as fast, and it does not recurse."""


class YamlBoundsError(yaml.MarkedYAMLError):  # type: ignore[misc]
    """The text is too deep or has too many nodes; it has the place."""


def compose_all(text: str, *, with_aliases: bool) -> list[yaml.Node]:
    """The documents of a text. yaml.YAMLError when it is no YAML, YamlBoundsError when it is past the bounds."""
    _refuse_unbounded(text, with_aliases=with_aliases)
    documents = [node for node in yaml.compose_all(text, Loader=LOADER) if node is not None]
    if with_aliases:
        sizes: dict[int, int] = {}
        for node in documents:
            if _expanded(node, sizes, 0) > MAX_NODES:
                raise _beyond(f"aliases that stand for at most {MAX_NODES} nodes", node.start_mark)
    return documents


def load(text: str) -> Any:
    """The plain value of one document without aliases."""
    _refuse_unbounded(text, with_aliases=False)
    return yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader


def _refuse_unbounded(text: str, *, with_aliases: bool) -> None:
    nodes = 0
    for event in shallow_events(text):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if not with_aliases and event.anchor:
                raise _beyond(f"plain values, not the anchor or alias {event.anchor}", event.start_mark)
            if nodes > MAX_NODES:
                raise _beyond(f"at most {MAX_NODES} values", event.start_mark)


def shallow_events(text: str | bytes) -> Iterator[Any]:
    """The events of a text. YamlBoundsError where it is too deep: how long deep texts take grows as their square."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _beyond(f"at most {MAX_DEPTH} levels", event.start_mark)
        yield event


def _beyond(expected: str, mark: Any) -> YamlBoundsError:
    return YamlBoundsError(problem=f"expected {expected}", problem_mark=mark)


def _expanded(node: yaml.Node, sizes: dict[int, int], depth: int) -> int:
    """How many nodes a reader sees that follows every alias. An alias within itself has no end."""
    if depth > 2 * MAX_DEPTH:
        return MAX_NODES + 1
    known = sizes.get(id(node))
    if known is not None:
        return known
    total = 1
    if isinstance(node, yaml.SequenceNode):
        total += sum(_expanded(item, sizes, depth + 1) for item in node.value)
    elif isinstance(node, yaml.MappingNode):
        total += sum(_expanded(part, sizes, depth + 1) for pair in node.value for part in pair)
    sizes[id(node)] = total
    return total
