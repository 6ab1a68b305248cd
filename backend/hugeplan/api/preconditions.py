"""ETag and If-Match: nobody overwrites what they have not seen."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header

from hugeplan.errors import FieldProblem, PreconditionFailedError, PreconditionRequiredError

IfMatch = Annotated[str | None, Header(max_length=128, description="The ETag of the version that is being changed")]


def etag(version: int) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def require_match(if_match: str | None, current: int, what: str) -> None:
    """PreconditionRequiredError without If-Match, PreconditionFailedError where ``what`` has another version."""
    if if_match is None:
        raise PreconditionRequiredError(
            "Send the ETag of the version you read in the header If-Match.",
            [FieldProblem(field="If-Match", value=None, expected=f"an ETag such as {etag(current)}")],
        )
    tags = [tag.strip() for tag in if_match.split(",")]
    if "*" in tags or etag(current) in tags:
        return
    if not all(re.fullmatch(r'(W/)?"[^"]*"', tag) for tag in tags):
        expected = f"an ETag such as {etag(current)}"
    else:
        expected = f"{etag(current)}, the current version"
    raise PreconditionFailedError(
        f"The {what} has another version. Read it again, and repeat your change on what it says now.",
        [FieldProblem(field="If-Match", value=if_match, expected=expected)],
    )
