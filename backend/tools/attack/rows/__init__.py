"""The attacks, by theme: every module of this folder has a tuple ``ROWS``."""

from __future__ import annotations

import importlib
import pkgutil

from tools.attack.rig import Attack


def all_rows() -> list[Attack]:
    """Every attack, in the order of modules and of their rows."""
    found: list[Attack] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda each: each.name):
        rows: tuple[Attack, ...] = importlib.import_module(f"{__name__}.{module.name}").ROWS
        found += rows
    names = [attack.name for attack in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two attacks have the name {', '.join(sorted(twice))}")
    return found
