"""What a kept plan holds, and what is made of it: its document, its answers and its files.

A plan of many databases has megabytes: what reads or renders it is called in a thread (``RequestSandbox.thread``).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from hugeplan import __version__
from hugeplan.access.service import Actor
from hugeplan.api.schemas import JsonObject
from hugeplan.artifacts import Artifact, Restart, files_key, installer, outside, withheld
from hugeplan.artifacts.base import flaw, slug
from hugeplan.artifacts.bundle import as_zip, bundle, changes
from hugeplan.artifacts.provenance import Provenance, with_provenance
from hugeplan.db.models import PlanInForceRow, PlanRow
from hugeplan.documents.bounds import adapter
from hugeplan.documents.plan_digest import FORMAT, digest_of, short
from hugeplan.documents.plans import SCHEMA_VERSION, kept_fit, read_plan
from hugeplan.errors import ConflictError, NotFoundError, PlanDoesNotFitError, PlanFitUnknownError
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.verdict import Verdict
from hugeplan.scenarios import plan_difference
from hugeplan.scenarios.on_node import on_node
from hugeplan.scenarios.schemas import ArtifactChange, PlanArtifact, PlanDifference, PlanSummary, SavedPlan

_SUMMARY_COLUMNS = PlanSummary.model_fields.keys() - {"short_digest", "in_force"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan is made of: a node's newest sample, or the scenario's own node, and where the scenario is from."""

    node_id: UUID | None
    scenario: JsonObject
    scenario_id: UUID | None = None
    scenario_version: int | None = None
    fleet_plan_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """A plan with its files, its inputs and their times, before it is kept. ``plan`` is as it is stored."""

    wanted: Wanted
    headline: str
    request: JsonObject
    plan: JsonObject
    verdict: JsonObject
    artifacts: list[JsonObject]
    sampled_at: datetime | None
    run: tuple[UUID, datetime] | None


def document_of(row: PlanRow) -> JsonObject:
    """All that was kept of a plan: what its digest covers, and the digest. The same for ever."""
    document: JsonObject = {
        "format": FORMAT,
        "id": str(row.id),
        "node_id": None if row.node_id is None else str(row.node_id),
        "node": row.node_name,
        "kept_at": _text(row.created_at),
        "kept_by": row.author,
        "sampled_at": _text(row.sampled_at),
        "run_id": None if row.run_id is None else str(row.run_id),
        "run_at": _text(row.run_at),
        "model_version": row.model_version,
        "schema_version": row.schema_version,
        "scenario": row.scenario,
        "request": row.request,
        "plan": row.plan,
        "verdict": row.verdict,
        "artifacts": row.artifacts,
    }
    return document if row.digest is None else document | {"digest": row.digest}


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


def draft(made: Computed, by: Actor) -> PlanRow:
    """A computed plan as a draft that is not kept yet."""
    now, wanted = datetime.now(UTC), made.wanted
    row = PlanRow(
        id=uuid.uuid4(),
        scenario_id=wanted.scenario_id,
        scenario_version=wanted.scenario_version,
        fleet_plan_id=wanted.fleet_plan_id,
        node_id=wanted.node_id,
        node_name=made.plan["node"],
        created_at=now,
        headline=made.headline,
        schema_version=SCHEMA_VERSION,
        model_version=__version__,
        author=by.name,
        author_id=by.line_id,
        sampled_at=made.sampled_at,
        run_id=None if made.run is None else made.run[0],
        run_at=None if made.run is None else made.run[1],
        scenario=wanted.scenario,
        request=made.request,
        plan=made.plan,
        verdict=made.verdict,
        artifacts=made.artifacts,
        version=1,
        state="draft",
        state_at=now,
    )
    row.digest = digest_of(document_of(row))
    return row


def summary_of(row: PlanRow, nodes: Sequence[tuple[PlanInForceRow, str]]) -> PlanSummary:
    """A plan without its content, with the nodes where it is in force."""
    values = {name: getattr(row, name) for name in _SUMMARY_COLUMNS}
    values["short_digest"] = None if row.digest is None else short(row.digest)
    values["in_force"] = [on_node(in_force, name) for in_force, name in nodes]
    return PlanSummary.model_validate(values)


def _artifacts(row: PlanRow) -> list[PlanArtifact]:
    """The stored files, each with the line that names the plan's digest."""
    return [PlanArtifact.model_validate(asdict(artifact)) for artifact in _rendered(row)]


class Answer(NamedTuple):
    """A ``SavedPlan`` as JSON, and what its headers and the audit log say."""

    id: UUID
    version: int
    digest: str | None
    content: bytes


def saved_plan(row: PlanRow, nodes: Sequence[tuple[PlanInForceRow, str]] = (), withheld: str | None = None) -> Answer:
    """A plan as it is answered, with the nodes where it is in force; without its files where they are ``withheld``.

    ConflictError when it was saved by a version with another form of plans.
    """
    plan_as_saved = _plan_of(row)
    if plan_as_saved.feasible and withheld is None:
        withheld = _unsound(row)
    found = SavedPlan(
        **summary_of(row, nodes).model_dump(),
        schema_version=row.schema_version,
        plan=plan_as_saved,
        verdict=None if row.verdict is None else adapter(Verdict).validate_python(row.verdict),
        artifacts=_artifacts(row) if plan_as_saved.feasible and withheld is None else [],
        artifacts_withheld=withheld,
    )
    return Answer(row.id, row.version, row.digest, found.model_dump_json().encode())


def _plan_of(row: PlanRow) -> Plan:
    return plan_as_kept(row.id, row.plan, row.schema_version)


def plan_as_kept(plan_id: UUID, plan: JsonObject, version: int) -> Plan:
    """A kept plan, read. ConflictError when it was saved by a version with another form of plans."""
    try:
        return read_plan(plan, version)
    except ValueError as error:
        raise ConflictError(
            "This plan was saved by another version of hugeplan, which this one cannot read. Its files are still "
            f"at /api/v1/plans/{plan_id}/artifacts; for the rest, plan the scenario again."
        ) from error


def _require_fit(row: PlanRow, *, force: bool) -> None:
    """PlanDoesNotFitError for a plan that does not fit, PlanFitUnknownError where that is not known and nobody approved
    the plan all the same; neither where the caller insists.
    """
    fits, has_room = kept_fit(row.plan), row.plan.get("feasible", True)
    if not force and not fits and not (has_room and row.approved_at and not row.approval_ended_at):
        refusal = PlanDoesNotFitError if fits is False else PlanFitUnknownError
        raise refusal(f"{row.headline} {withheld(_plan_of(row))}")
    _require_sound(row)


def _unsound(row: PlanRow) -> str | None:
    """Why no door hands a plan's files out, by force or not; an older version may have rendered and kept some."""
    # A plan of another version's form has its files alone.
    node, databases = row.plan.get("node"), (row.request or {}).get("databases")
    found = None if node is None else outside.refused_names(str(node), databases or ())
    files = _rendered(row)
    flaws = (installer.outdated(files), *map(flaw, files))
    return found or next((f"{flaw}; plan the scenario again." for flaw in flaws if flaw is not None), None)


def _require_sound(row: PlanRow) -> None:
    """ConflictError for files that are :func:`_unsound`."""
    found = _unsound(row)
    if found is not None:
        raise ConflictError(found)


def files_of(row: PlanRow, *, force: bool) -> list[PlanArtifact]:
    """The files of a saved plan. PlanDoesNotFitError for one that does not fit, unless ``force``."""
    _require_fit(row, force=force)
    return _artifacts(row)


def file_of(row: PlanRow, kind: str, *, filename: str | None, force: bool) -> PlanArtifact:
    """One file of a saved plan, by its kind; the first of several unless ``filename`` names one.

    NotFoundError where there is none, PlanDoesNotFitError for a plan that does not fit, unless ``force``.
    """
    artifacts = files_of(row, force=force)
    for artifact in artifacts:
        if artifact.kind == kind and filename in {None, artifact.filename}:
            return artifact
    named = "" if filename is None else f" in a file {filename!r}"
    kinds = ", ".join(f"{artifact.kind} ({artifact.filename})" for artifact in artifacts) or "none"
    raise NotFoundError(f"This plan has no artifact {kind!r}{named}; it has: {kinds}.")


def zip_of(row: PlanRow, *, force: bool, group: Sequence[str] = ()) -> tuple[str, bytes]:
    """File name and bytes of the bundle of a saved plan. ConflictError when the plan has no files."""
    _require_fit(row, force=force)
    node = str(row.plan["node"])
    name = f"hugeplan-{row.id}.zip" if row.digest is None else f"hugeplan-{slug(node)}-{short(row.digest)}.zip"
    return name, _zip(node, row.headline, _rendered(row), provenance=_provenance(row), group=group)


def _rendered(row: PlanRow) -> list[Artifact]:
    """The stored files, each with the line that names the plan's digest."""
    return list(with_provenance(_stored(row.artifacts), _provenance(row)))


def _stored(artifacts: Sequence[JsonObject]) -> list[Artifact]:
    fields = (PlanArtifact.model_validate(artifact).model_dump() for artifact in artifacts)
    return [Artifact(**{**i, "restart": Restart(i["restart"])}) for i in fields]


def _provenance(row: PlanRow) -> Provenance | None:
    if row.digest is None:
        return None
    return Provenance(row.digest, str(row.node_name), row.created_at, row.sampled_at)


def zip_for_group(found: Computed | PlanRow, group: Sequence[str]) -> bytes:
    """The bundle of a plan, kept or not. ConflictError when it has no files, PlanFitUnknownError."""
    if isinstance(found, PlanRow):
        return zip_of(found, force=False, group=group)[1]
    if not kept_fit(found.plan):
        raise PlanFitUnknownError(found.headline)
    return _zip(found.plan["node"], found.headline, _stored(found.artifacts), provenance=None, group=group)


def _zip(
    node: str, headline: str, artifacts: Sequence[Artifact], *, provenance: Provenance | None, group: Sequence[str]
) -> bytes:
    if not artifacts:
        raise ConflictError("This plan changes nothing, so there is no file to apply.")
    return as_zip(bundle(node, headline, artifacts, provenance=provenance, group=group))


def files_key_of(found: Computed | PlanRow) -> str | None:
    """What tells the files of a plan of this version's form apart from those of other nodes."""
    request = msgspec.convert(found.request, PlanRequest, str_keys=True)
    return files_key(read_plan(found.plan, SCHEMA_VERSION), request)


def changed_files(old: PlanRow, new: PlanRow) -> list[ArtifactChange]:
    """What applying a plan changes in the files of another one."""
    for row in (new, old):
        _require_sound(row)
    found = changes(
        bundle(str(old.plan["node"]), old.headline, _rendered(old), provenance=_provenance(old)),
        bundle(str(new.plan["node"]), new.headline, _rendered(new), provenance=_provenance(new)),
    )
    return [ArtifactChange(path=item.path, change=item.change, diff=item.diff) for item in found]


def difference(row: PlanRow, row_against: PlanRow) -> PlanDifference:
    """A saved plan beside another one: what is planned differently, and which inputs led to it."""
    new, old = _plan_of(row), _plan_of(row_against)
    return PlanDifference(
        plan_id=row.id,
        against=row_against.id,
        headline=new.headline,
        headline_against=old.headline,
        feasible=new.feasible,
        feasible_against=old.feasible,
        pools=plan_difference.pool_changes(old, new),
        findings=plan_difference.finding_changes(old, new),
        inputs=plan_difference.input_changes(row_against.request, row.request),
    )
