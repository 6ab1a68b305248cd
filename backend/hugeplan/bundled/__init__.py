"""Folders that a wheel carries beside the code: ``migrations`` and ``ui``. A checkout has them elsewhere."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_CHECKOUT = _HERE.parents[2]


def bundled(name: str, in_checkout: str) -> Path:
    """The folder ``name`` that came with the wheel; ``in_checkout`` of the checkout where the code runs from one."""
    own = _HERE / name
    return own if own.is_dir() else _CHECKOUT / in_checkout
