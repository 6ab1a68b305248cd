"""Kustomizations: each patch that is written inside is read as the object it patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hugeplan.lint.kinds import pod
from hugeplan.lint.model import Context, Notes, Reading
from hugeplan.lint.yaml_tree import Tree, YamlError, documents

KIND: Final = "kustomization"


def detects(document: Tree) -> bool:
    """A Kustomization or a Component with a patch inside."""
    return document.get_text("kind") in {"Kustomization", "Component"} and any(True for _ in _patches(document))


def _patches(document: Tree) -> Iterator[Tree]:
    for field in ("patches", "patchesStrategicMerge", "patchesJson6902"):
        listed = document.get(field)
        for entry in () if listed is None else listed.elements():
            patch = entry.get("patch") or entry
            if patch.text is not None and "\n" in patch.text:
                yield patch


def read(document: Tree, context: Context) -> Reading:
    """The patches' problems, at the line of the patch and without edits: its lines are indented here."""
    notes = Notes()
    for patch in _patches(document):
        try:
            inner = documents(patch.text or "")
        except YamlError:
            notes.effects.append("a patch is not YAML, so it is not checked")
            continue
        for tree in inner:
            if pod.detects(tree):
                # No facts: positions and limits are of a part of an object.
                notes.take(replace(pod.read(tree, context, is_patch=True), facts=()), patch.start)
    return notes.reading(KIND, document.get_text("kind") or "Kustomization")
