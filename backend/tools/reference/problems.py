"""docs/problems.md, generated from the table of problems."""

from __future__ import annotations

import inspect

from hugeplan.api.problems import HTTP_PROBLEM_TYPES, INTERNAL, PROBLEM_TYPES, TYPE_BASE, ProblemType

_HEADER = """\
# Problems

Every error of the API is a problem document (RFC 9457, `application/problem+json`): `type`, `title`, `status`,
`detail`, `instance`, `request_id`, and `errors` where fields are wrong, each with `field`, `value` and `expected`.
Match on `type`: it never changes its meaning. `detail` is for people and may change. `request_id` finds the line in
the service's log.

This page is generated from `backend/hugeplan/api/problems.py`; a test fails when it is stale:

    make schemas

| type | status | title | when |
|---|---|---|---|
"""


def render() -> str:
    """The page."""
    rows: dict[ProblemType, str] = {
        kind: (inspect.getdoc(error) or "").replace("\n", " ").replace("``", "`")
        for error, kind in PROBLEM_TYPES.items()
    }
    for kind in HTTP_PROBLEM_TYPES.values():
        rows.setdefault(kind, "The address or the method is not one of the API's.")
    rows[INTERNAL] = "A fault in the service. Nothing was stored."
    lines = [
        f"| `{TYPE_BASE}{kind.slug}` | {kind.status} | {kind.title} | {when} |"
        for kind, when in sorted(rows.items(), key=lambda row: (row[0].status, row[0].slug))
    ]
    return _HEADER + "\n".join(lines) + "\n"
