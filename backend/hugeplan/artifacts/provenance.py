"""The line in each file of a kept plan that says which plan it is of, so that what is installed can be told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hugeplan.artifacts.base import Artifact, mark, one_line, with_content, with_first_line
from hugeplan.documents.plan_digest import short


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which plan a file is of. ``sampled_at`` None: the plan started from no sample."""

    digest: str
    node: str
    kept_at: datetime
    sampled_at: datetime | None

    def line(self) -> str:
        """``hugeplan plan 7f3a-91c2-5d0e-b846 of db-7, kept 2026-11-24 03:44 UTC, from the sample of ...``."""
        sample = "no sample" if self.sampled_at is None else f"the sample of {_moment(self.sampled_at)}"
        kept = f"kept {_moment(self.kept_at)}, from {sample}"
        return f"hugeplan plan {short(self.digest)} of {one_line(self.node)}, {kept}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def of_one_plan(files: Sequence[Artifact]) -> list[Artifact]:
    """The files; the text of those that are known by it names the plan, for another plan may write the same else."""
    line = f"hugeplan files {mark(repr([(a.kind, a.content) for a in files]))}"
    lined = [with_content(a, with_first_line(a.content, a.media_type, line, member="_plan")) for a in files]
    return [b if mark(a.content) in a.install else a for a, b in zip(files, lined, strict=True)]


def with_provenance(artifacts: Sequence[Artifact], provenance: Provenance | None) -> tuple[Artifact, ...]:
    """The files, each with the line; as they are where the plan has no digest: it was kept before there was one."""
    if provenance is None:
        return tuple(artifacts)
    text = provenance.line()
    lined = [with_content(a, with_first_line(a.content, a.media_type, text, member="_plan")) for a in artifacts]
    # The way back of pools brings files of servers back, too.
    marks = {mark(a.content): mark(b.content) for a, b in zip(artifacts, lined, strict=True)}
    return tuple(replace(b, rollback=_replaced(b.rollback, marks)) for b in lined)


def _replaced(text: str, marks: Mapping[str, str]) -> str:
    return re.sub(r"\b[0-9a-f]{16}\b", lambda found: marks.get(found[0], found[0]), text)
