"""What the linter takes and answers over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hugeplan.api.schemas import ByteCount, PageBytes, RequestModel, ResponseModel
from hugeplan.api.unread import Unread, unread

MAX_FILES = 40
MAX_CHARACTERS = 200_000


class LintFile(RequestModel):
    """One file: the name to show, and its text."""

    name: str = Field(min_length=1, max_length=300)
    text: str = Field(max_length=MAX_CHARACTERS)


class LintRequest(RequestModel):
    """Files that belong together, and what is known of the machine they are for. Null is unknown."""

    files: list[LintFile] = Field(min_length=1, max_length=MAX_FILES)
    kernel: str | None = Field(
        default=None, max_length=100, pattern=r"^\d{1,3}\.\d{1,3}", description="such as 6.1 or 5.14.0-427.el9"
    )
    arch: Literal["x86_64", "aarch64", "ppc64le", "riscv64", "s390x"] = "x86_64"
    base_page_bytes: PageBytes | None = None
    default_page_bytes: PageBytes | None = None
    numa_nodes: list[Annotated[int, Field(ge=0, le=4095)]] | None = Field(default=None, min_length=1, max_length=1024)
    mem_total_bytes: ByteCount | None = None


if TYPE_CHECKING:
    UnreadFiles = Unread[LintRequest]
else:
    UnreadFiles = unread(LintRequest)


class LintPart(ResponseModel):
    """A part of a file: its kind and what it will really do."""

    kind: str
    title: str
    effects: list[str]


class LintProblem(ResponseModel):
    """One broken rule: where, what, the rule with its source, the fix. ``line`` counts from 1."""

    rule: str
    severity: Literal["wrong", "attention"]
    line: int
    subject: str
    message: str
    sentence: str
    source: str
    fix: str
    fixable: bool


class LintedFile(ResponseModel):
    """The verdict on one file. ``unreadable``: why it could not be checked; ``fixed_text``: null when unchanged."""

    name: str
    unreadable: str | None
    parts: list[LintPart]
    problems: list[LintProblem]
    fixed_text: str | None


class LintReport(ResponseModel):
    """The verdict on all files, with the numbers of broken rules. ``text`` is what ``hugeplan lint`` prints."""

    files: list[LintedFile]
    wrong: int
    attention: int
    text: str
