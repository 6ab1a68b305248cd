"""ConfigMaps and Secrets: each engine file among their data is read as that file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hugeplan.lint.kinds import jvm, my_cnf, postgresql_conf, redis_conf
from hugeplan.lint.model import Context, Notes, Reading, Source
from hugeplan.lint.yaml_tree import Tree

KIND: Final = "config_map"
_ENGINE_FILES: Final[tuple[tuple[Callable[[Source], bool], Callable[[Source, Context], Reading]], ...]] = (
    (my_cnf.detects, my_cnf.read),
    (postgresql_conf.detects, postgresql_conf.read),
    (redis_conf.detects, redis_conf.read),
    (jvm.detects, jvm.read),
)


def read(document: Tree, context: Context) -> Reading:
    """The engine files inside. Their problems have no edits: the lines are indented here."""
    notes = Notes()
    for field in ("data", "stringData"):
        data = document.get(field)
        for name, tree in () if data is None else data.items():
            inner = Source(name, tree.text or "")
            for detects_file, read_file in _ENGINE_FILES:
                if detects_file(inner):
                    found = read_file(inner, context)
                    notes.take(replace(found, effects=tuple(f"{name}: {one}" for one in found.effects)), tree.start)
                    break
    return notes.reading(KIND, document.get_text("kind") or "ConfigMap")
