"""The site has the pages of docs alone: a link that leaves them is shown as the path that it names."""

from __future__ import annotations

import re
from typing import Any

_LEAVES = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?!\.)[^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Links to files beside docs become text; a decision's link to a page of docs stays."""

    def shown(found: re.Match[str]) -> str:
        known = files.get_file_from_path(found[2]) if page.file.src_uri.startswith("adr/") else None
        return found[0] if known is not None else f"{found[1]} (`{found[2]}`)"

    return _LEAVES.sub(shown, markdown)
