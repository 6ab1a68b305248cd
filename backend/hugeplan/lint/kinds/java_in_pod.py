"""The JVM options of a container: environment variables that a JVM or a start script reads, command and arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hugeplan.lint.kinds.jvm import Flag, check_flags, flags_of
from hugeplan.lint.model import Context, EngineFact, Notes
from hugeplan.lint.yaml_tree import Tree

#: Options that say something about pages; a heap size alone leaves open what another file says.
_ABOUT_PAGES: Final = re.compile(r"(?i)(large|huge)_?pages?")
#: The JVM reads it last, so it wins over the command line.
_LAST: Final = "_JAVA_OPTIONS"


def check_java(container: Tree, owner: str, notes: Notes, context: Context) -> EngineFact | None:
    """Note the problems of a container's JVM options; None where they say nothing about huge pages."""
    flags = [flag for tree in _texts(container) for flag in _flags(tree)]
    if not any(_ABOUT_PAGES.search(flag.text) for flag in flags):
        return None
    inner = Notes()
    fact = check_flags(flags, inner, context, owner=owner)
    exact = all(flag.start < flag.end for flag in flags)
    notes.effects += inner.effects
    notes.facts += inner.facts
    notes.problems += inner.problems if exact else [replace(problem, edits=()) for problem in inner.problems]
    return fact


def _texts(container: Tree) -> Iterator[Tree]:
    """Scalars with options, in the order in which the JVM reads them."""
    last = []
    environment = container.get("env")
    for variable in () if environment is None else environment.elements():
        value = variable.get("value")
        if value is None:
            continue
        if variable.get_text("name") == _LAST:
            last.append(value)
        else:
            yield value
    for field in ("command", "args"):
        words = container.get(field)
        if words is not None:
            yield from words.elements()
    yield from last


def _flags(tree: Tree) -> list[Flag]:
    text = tree.text or ""
    quotes = 2 if tree.is_quoted else 0
    if tree.end - tree.start - quotes == len(text):
        flags = flags_of(text, tree.start + quotes // 2)
        return [replace(flag, is_element=flag.is_element or flag.text == text.strip()) for flag in flags]
    # Escapes or a block scalar: the place is the scalar's, and there is no span to edit.
    return [Flag(flag.text, tree.start, tree.start) for flag in flags_of(text)]
