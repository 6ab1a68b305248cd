"""The commands of a guide, as a reader would copy them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path


def commands(page: Path, section: str | None = None) -> Iterator[str]:
    """Indented lines of a page in order, or of one section. A backslash at the end goes on; a comment ends a line."""
    text = page.read_text()
    if section is not None:
        text = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    whole = "\n".join(lines).replace("\\\n", " ")
    for line in whole.splitlines():
        if command := re.sub(r"\s+#\s.*$", "", line).strip():
            yield re.sub(r"\s+", " ", command)
