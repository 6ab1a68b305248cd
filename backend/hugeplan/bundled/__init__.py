"""What a wheel carries beside the code: ``migrations``, ``ui``, ``openapi.json``. A checkout has it elsewhere."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_CHECKOUT = _HERE.parents[2]


def bundled(name: str, in_checkout: str) -> Path:
    """The folder or file ``name`` of the wheel; ``in_checkout`` of the checkout where the code runs from one."""
    own = _HERE / name
    return own if own.exists() else _CHECKOUT / in_checkout
