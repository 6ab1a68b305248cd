"""The digest of a kept plan: SHA-256 over one canonical JSON text of everything that was kept.

Canonical: keys sorted, no space, UTF-8, numbers as Python writes them. The digest is in the document as its member
``digest``, which it does not cover; it covers the files without the line that names it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from hugeplan.documents.bounds import JsonObject

FORMAT: Final = "hugeplan.plan/1"
"""Names the members of the document."""
SHORT_DIGITS: Final = 16
"""Hexadecimal digits of the short form, 64 bits: of 8 digits a document that reads the same is made within minutes."""


def canonical(document: JsonObject) -> bytes:
    """The one text of a document."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def digest_of(document: JsonObject) -> str:
    """The digest of a plan's document, 64 hexadecimal digits."""
    return hashlib.sha256(canonical({name: value for name, value in document.items() if name != "digest"})).hexdigest()


def short(digest: str) -> str:
    """What people compare: ``7f3a-91c2-5d0e-b846``."""
    return "-".join(digest[at : at + 4] for at in range(0, SHORT_DIGITS, 4))


def is_unchanged(document: Any) -> bool | None:
    """Whether a document is what was kept. None where it is no document of a kept plan, so that nobody can tell."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    try:
        return bool(digest_of(document) == document.get("digest"))
    except (ValueError, RecursionError):  # without a canonical text, as with half a pair: none was kept
        return False
