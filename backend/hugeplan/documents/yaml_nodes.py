"""YAML of strangers as nodes: bounded in depth and number before it is composed, and in what its aliases stand for.

A text of 366 characters can mean more nodes than a machine has memory, and a line of brackets takes a reader that
recurses down with it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 60
MAX_NODES: Final = 50_000
MAX_DIRECTIVES: Final = 100
MOST_BITS: Final = 64
"""Of a whole number: one of more than 4,300 digits has no text."""
_DIRECTIVE: Final = re.compile("(?<![^\n\r\x85\u2028\u2029\ufeff])%")
_TAG: Final = "tag:yaml.org,2002:"
_NUMBERS: Final = f"{_TAG}int", f"{_TAG}float"
LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where it is there: ten times as fast, and it does not recurse."""


class YamlBoundsError(yaml.MarkedYAMLError):  # type: ignore[misc]
    """The text is too deep, or has too many nodes or a value that its tag does not have; it has the place."""


class PlainLoader(LOADER):  # type: ignore[misc]  # chosen at run time
    """Keys are text as it is written: many whole numbers have one hash, and each would be compared with all.

    Numbers of base 60 (``1:30``) are text, as in YAML 1.2: PyYAML takes the square of their length.
    """

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node without one."""
        tag = super().resolve(kind, value, implicit)
        return f"{_TAG}str" if tag in _NUMBERS and ":" in value else tag

    def construct_number(self, node: Any) -> Any:
        """A number, a whole one of at most MOST_BITS. ValueError for others, and for base 60 that a tag asks for."""
        text = self.construct_scalar(node)
        construct = self.construct_yaml_int if node.tag == _NUMBERS[0] else self.construct_yaml_float
        if ":" in text or (isinstance(found := construct(node), int) and found.bit_length() > MOST_BITS):
            raise ValueError(text)
        return found

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """A mapping whose keys are text."""
        if isinstance(node, yaml.MappingNode):
            self.flatten_mapping(node)
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise _beyond("a text as the key", key.start_mark)
                key.tag = f"{_TAG}str"
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """A value; PyYAML raises what it comes upon for ``!!int "-"`` and ``!!timestamp abc``."""
        try:
            return super().construct_object(node, deep=deep)
        except (yaml.YAMLError, MemoryError):
            raise
        except Exception as error:
            raise _beyond("a value of its tag", node.start_mark) from error


for _number in _NUMBERS:
    PlainLoader.add_constructor(_number, PlainLoader.construct_number)


def compose_all(text: str, *, with_aliases: bool) -> list[yaml.Node]:
    """The documents of a text. yaml.YAMLError when it is no YAML, YamlBoundsError when it is past the bounds."""
    _refuse_unbounded(text, with_aliases=with_aliases)
    documents = [node for node in yaml.compose_all(text, Loader=PlainLoader) if node is not None]
    if with_aliases:
        sizes: dict[int, int] = {}
        for node in documents:
            if _expanded(node, sizes, 0) > MAX_NODES:
                raise _beyond(f"aliases that stand for at most {MAX_NODES} nodes", node.start_mark)
    return documents


def load(text: str) -> Any:
    """The plain value of one document without aliases."""
    _refuse_unbounded(text, with_aliases=False)
    return yaml.load(text, Loader=PlainLoader)  # noqa: S506 - a safe loader


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
    """The events of a text. YamlBoundsError where it is too deep or has many directives, which are one event: how long
    such texts take grows as their square.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-16" if text[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} else "utf-8")
    if beyond := next(islice(_DIRECTIVE.finditer(text), MAX_DIRECTIVES, None), None):
        mark = yaml.Mark("", beyond.start(), text.count("\n", 0, beyond.start()), 0, None, None)
        raise _beyond(f"at most {MAX_DIRECTIVES} lines that begin with %", mark)
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
