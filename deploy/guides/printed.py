"""What a guide prints: the commands of a Markdown page, in order, each as a reader would type it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDES = (
    "README.md",
    "docs/agent.md",
    "docs/install-air-gapped.md",
    "docs/install-bare-metal.md",
    "docs/install-compose.md",
    "docs/install-kubernetes.md",
)


@dataclass(frozen=True)
class Block:
    """A block of code: its page, the heading above it, its language ("" for a shell) and its text."""

    page: str
    section: str
    language: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """All blocks of code of a page, fenced or indented, also within lists."""
    found, section, heading = [], "", False
    for token in MarkdownIt().parse((REPOSITORY / page).read_text(encoding="utf-8")):
        if token.type == "heading_open":
            heading = True
        elif token.type == "inline" and heading:
            section, heading = token.content, False
        elif token.type in {"fence", "code_block"}:
            assert token.map is not None
            found.append(Block(page, section, token.info.strip(), token.map[0] + 1, token.content))
    return found


def commands(block: Block) -> list[str]:
    """The commands of a block of shell: a line each, or several where a shell would ask for more."""
    found: list[str] = []
    pending = ""
    for line in block.text.splitlines():
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        pending += line + "\n"
        if _is_whole(pending):
            found.append(pending.rstrip())
            pending = ""
    assert not pending, f"{block.place}: a command does not end: {pending}"
    return found


def printed(page: str) -> list[tuple[Block, str]]:
    """Every command of a page with its block."""
    return [
        (block, command)
        for block in blocks(page)
        if block.language in {"", "sh", "bash"}
        for command in commands(block)
    ]


def _is_whole(text: str) -> bool:
    """Whether a shell would run this, and not wait for another line."""
    if text.rstrip("\n").endswith("\\"):
        return False
    read = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
    # Of a here-document without its end bash only warns.
    return read.returncode == 0 and "here-document" not in read.stderr
