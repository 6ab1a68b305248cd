"""The service's OpenAPI document as it is committed; ``test_generated`` proves that it is what the code generates now.

Tests that read it need no application of their own, whose document takes seconds to make.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "openapi.json"


@cache
def committed_document() -> dict[str, Any]:
    """The document. Nobody may change it."""
    document: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return document
