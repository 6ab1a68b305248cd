"""Lint for the API. It reads what anybody may have written, so the service has it done in the sandbox."""

from __future__ import annotations

import pickle

from hugeplan.api.unread import Unread
from hugeplan.errors import FieldProblem, InvalidInputError
from hugeplan.lint import Context, Source, lint
from hugeplan.lint.output import as_json, as_text
from hugeplan.linting.schemas import MAX_CHARACTERS, LintReport, LintRequest
from hugeplan.planner.memory.kernel_parameters import kernel_version
from hugeplan.planner.pages import base_page_sizes, huge_page_sizes


def check_files(payload: bytes) -> bytes:
    """The LintReport, as JSON, on the files of a LintRequest that nobody has parsed."""
    body: Unread[LintRequest] = pickle.loads(payload)  # noqa: S301 - the service wrote it
    request = body.read(LintRequest)
    total = sum(len(file.text) for file in request.files)
    if total > MAX_CHARACTERS:
        raise _invalid("files", str(total), f"at most {MAX_CHARACTERS} characters in all files together")
    reports = lint([Source(file.name, file.text) for file in request.files], _context(request))
    return LintReport.model_validate(as_json(reports) | {"text": as_text(reports)}).model_dump_json().encode()


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
