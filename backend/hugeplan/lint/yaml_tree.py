"""YAML with the place of every value, so that a problem has a line and a fix is an edit of the text.

Comments and layout stay: nothing is dumped again. Only the structure is read; tags are not constructed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from hugeplan.documents.yaml_nodes import MAX_DEPTH, compose_all


class YamlError(ValueError):
    """The text is not YAML; the message has the line."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A value and where it stands. ``key_start``/``key_end`` are the key's offsets when it is a mapping's value."""

    node: yaml.Node
    key_start: int = 0
    key_end: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Where the key stands."""
        return self.key_start, self.key_end

    @property
    def start(self) -> int:
        """Offset of the first character."""
        return int(self.node.start_mark.index)

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return int(self.node.end_mark.index)

    @property
    def column(self) -> int:
        """Column of the first character, from 0."""
        return int(self.node.start_mark.column)

    @property
    def is_flow(self) -> bool:
        """Whether a mapping or sequence is written in braces or brackets."""
        return bool(getattr(self.node, "flow_style", False))

    @property
    def text(self) -> str | None:
        """A scalar's text, None for null and for anything else."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == "tag:yaml.org,2002:null":
            return None
        return str(self.node.value)

    @property
    def is_quoted(self) -> bool:
        """Whether a scalar is written in quotes."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.style in {"'", '"'}

    @property
    def is_text(self) -> bool:
        """Whether YAML reads the scalar as a string."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:str"

    def items(self) -> Iterator[tuple[str, Tree]]:
        """Keys and values of a mapping, in order; nothing for anything else."""
        if isinstance(self.node, yaml.MappingNode):
            for key, value in self.node.value:
                if isinstance(key, yaml.ScalarNode):
                    yield str(key.value), Tree(value, int(key.start_mark.index), int(key.end_mark.index))

    def elements(self) -> Iterator[Tree]:
        """Elements of a sequence; nothing for anything else."""
        if isinstance(self.node, yaml.SequenceNode):
            for value in self.node.value:
                yield Tree(value)

    def get(self, *path: str) -> Tree | None:
        """The value under keys, None where one is missing."""
        here: Tree | None = self
        for key in path:
            here = None if here is None else next((value for name, value in here.items() if name == key), None)
        return here

    def get_text(self, *path: str) -> str | None:
        """The scalar text under keys."""
        found = self.get(*path)
        return None if found is None else found.text

    def whole_number(self) -> int | None:
        """A scalar as a whole number, None when it is none."""
        text = self.text
        return int(text) if text is not None and text.lstrip("+-").isdecimal() and text.isascii() else None

    def duplicate_keys(self) -> Iterator[tuple[str, int]]:
        """Keys that a mapping holds twice, here and below, with the offset of the second."""
        yield from _duplicates(self, 0)


def _duplicates(tree: Tree, depth: int) -> Iterator[tuple[str, int]]:
    if depth > MAX_DEPTH:
        return
    seen = set()
    for key, value in tree.items():
        if key in seen:
            yield key, value.key_start
        seen.add(key)
        yield from _duplicates(value, depth + 1)
    for element in tree.elements():
        yield from _duplicates(element, depth + 1)


def documents(text: str) -> list[Tree]:
    """The documents of a YAML text that are not empty. Raises YamlError."""
    try:
        nodes = compose_all(text, with_aliases=True)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise YamlError(f"{where}{what}") from error
    except RecursionError as error:
        raise YamlError("nested too deeply") from error
    return [Tree(node) for node in nodes]
