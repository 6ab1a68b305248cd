"""Lint for the API. It reads what anybody may have written, so the service has it done in the sandbox."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hugeplan.api.schemas import ByteCount, PageBytes, RequestModel, ResponseModel
from hugeplan.errors import FieldProblem, InvalidInputError
from hugeplan.lint import Context, Source, lint
from hugeplan.lint.output import as_json
from hugeplan.planner.memory.kernel_parameters import kernel_version
from hugeplan.planner.pages import base_page_sizes, huge_page_sizes

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
    """The verdict on all files, with the numbers of broken rules."""

    files: list[LintedFile]
    wrong: int
    attention: int


CHECK_FILES = "hugeplan.linting.service:check_files"


def check_files(body: bytes) -> bytes:
    """The LintReport on the files of a LintRequest, both as JSON."""
    request = LintRequest.model_validate_json(body)
    total = sum(len(file.text) for file in request.files)
    if total > MAX_CHARACTERS:
        raise _invalid("files", str(total), f"at most {MAX_CHARACTERS} characters in all files together")
    reports = lint([Source(file.name, file.text) for file in request.files], _context(request))
    return LintReport.model_validate(as_json(reports)).model_dump_json().encode()


def _context(request: LintRequest) -> Context:
    base = request.base_page_bytes or base_page_sizes(request.arch)[0]
    if base not in base_page_sizes(request.arch):
        allowed = ", ".join(str(size) for size in base_page_sizes(request.arch))
        raise _invalid("base_page_bytes", str(base), f"{allowed} on {request.arch}")
    sizes = huge_page_sizes(request.arch, base)
    default = request.default_page_bytes
    if default is not None and default not in sizes:
        raise _invalid("default_page_bytes", str(default), f"one of {', '.join(str(size) for size in sizes)}")
    return Context(
        kernel=kernel_version(request.kernel),
        arch=request.arch,
        base_page_bytes=base,
        numa_nodes=None if request.numa_nodes is None else tuple(sorted(set(request.numa_nodes))),
        mem_total_bytes=request.mem_total_bytes,
        default_page_bytes=default,
    )


def _invalid(field: str, value: str, expected: str) -> InvalidInputError:
    problem = FieldProblem(field=field, value=value, expected=expected)
    return InvalidInputError(f"{field} is not valid; expected {expected}.", errors=[problem])
