"""Reading what ``hugeplan plan --json`` or the service wrote: a plan, and where it is there the request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from hugeplan.artifacts import Artifact
from hugeplan.artifacts.provenance import Provenance, with_provenance
from hugeplan.cli import InputError
from hugeplan.cli.files import read_json
from hugeplan.documents import plans
from hugeplan.documents.bounds import adapter
from hugeplan.documents.plan_digest import FORMAT, is_unchanged, short
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.printable import one_line


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan on disk. ``artifacts`` are the files stored in it, ``digest`` what the service kept it under.

    ``request`` is None in answers of the service; its documents (``document.json``) have both.
    """

    plan: Plan
    request: PlanRequest | None
    artifacts: tuple[Artifact, ...]
    digest: str | None = None

    @property
    def name(self) -> str:
        """``plan 7f3a-91c2-5d0e-b846 of db-7``; without the digest where the plan was not kept by a service."""
        digest = "" if self.digest is None else f" {short(self.digest)}"
        return f"plan{digest} of {one_line(self.plan.node, 80)}"

    @property
    def headline(self) -> str:
        """The plan's, with the digest where there is one."""
        return self.plan.headline if self.digest is None else f"plan {short(self.digest)}: {self.plan.headline}"


def read_plan(path: str, option: str = "") -> PlanDocument:
    """The document at ``path``, ``-`` for standard input. InputError, in one line, for anything else."""
    document = read_json(path, "JSON", option)
    if not isinstance(document, dict) or not isinstance(document.get("plan"), dict):
        raise InputError(f"{path}: not a plan; write one with hugeplan plan ... --json > plan.json")
    unchanged = is_unchanged(document)
    if unchanged is None:  # a name stands for what was looked at alone
        document.pop("digest", None)
    elif not unchanged:
        raise InputError(f"{path}: it is not what was kept: its content and its digest differ; download it again")
    try:
        artifacts = tuple(adapter(Artifact).validate_python(item) for item in document.get("artifacts") or ())
        return PlanDocument(
            plan=plans.read_plan(document["plan"], document.get("schema_version", 1)),
            request=None
            if document.get("request") is None
            else adapter(PlanRequest).validate_python(document["request"]),
            artifacts=with_provenance(artifacts, _provenance(document)),
            digest=document.get("digest"),
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: not a plan of this version: {field}: {first['msg']}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: not a plan of this version: {error}") from error


def _provenance(document: dict[str, Any]) -> Provenance | None:
    """Which plan the files are of, in a document of the service; its answers have the line in the files already."""
    if document.get("format") != FORMAT:
        return None
    sampled_at = document["sampled_at"]
    return Provenance(
        digest=document["digest"],
        node=str(document["node"]),
        kept_at=datetime.fromisoformat(document["kept_at"]),
        sampled_at=None if sampled_at is None else datetime.fromisoformat(sampled_at),
    )
