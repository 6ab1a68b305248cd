"""YAML with container resources in it but no kind: values of a Helm chart, variables of a template.

Which object a mapping ends in is for the chart to say, so only the resources themselves are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hugeplan.documents.yaml_nodes import MAX_DEPTH
from hugeplan.lint.kinds.quantities import PREFIX
from hugeplan.lint.kinds.resources import check_resources
from hugeplan.lint.model import Context, Notes, Reading
from hugeplan.lint.yaml_tree import Tree

KIND: Final = "values"


def detects(document: Tree) -> bool:
    """An object without a kind that holds ``resources`` with huge pages somewhere."""
    return document.get("kind") is None and next(_resources(document, ""), None) is not None


def read(document: Tree, context: Context) -> Reading:
    """Requests against limits, names and whole pages of each ``resources``."""
    notes = Notes()
    for path, resources in _resources(document, ""):
        # A chart may take cpu and memory from other values.
        check_resources(resources, path, notes, context, needs_cpu_or_memory=False)
    return notes.reading(KIND, "values with container resources")


def _resources(tree: Tree, path: str, depth: int = 0) -> Iterator[tuple[str, Tree]]:
    """``primary.resources`` and the like, with limits or requests of huge pages."""
    if depth > MAX_DEPTH:
        return
    for name, value in tree.items():
        here = f"{path}.{name}" if path else name
        parts = [value.get("limits"), value.get("requests")]
        if any(key.startswith(PREFIX) for part in parts if part is not None for key, _ in part.items()):
            yield here, value
        else:
            yield from _resources(value, here, depth + 1)
    for index, element in enumerate(tree.elements()):
        yield from _resources(element, f"{path}[{index}]", depth + 1)
