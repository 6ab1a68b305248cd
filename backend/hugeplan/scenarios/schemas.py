"""Requests and responses about what-if inputs and plans."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import StringConstraints

from hugeplan.api.schemas import JsonObject, Name, RequestModel, ResponseModel
from hugeplan.api.unread import Unread, unread
from hugeplan.planner.model import Finding, Plan
from hugeplan.planner.verdict import Verdict
from hugeplan.scenario_file.unchecked import UncheckedScenario

JsonScalar = str | int | float | bool | None
ScenarioYaml = Annotated[str, StringConstraints(min_length=1, max_length=262_144)]


class PlanPreviewRequest(RequestModel):
    """A scenario, planned without being saved. ``node_id`` takes the node's facts from its newest report
    instead of the scenario's own ``node``.
    """

    node_id: UUID | None = None
    scenario: UncheckedScenario
    force: bool = False
    """Hand out the files of a plan that does not fit, too."""
    files: bool = True
    """Render the files that apply the plan, which is a fifth of the work: not needed while inputs still move."""


if TYPE_CHECKING:
    UnreadPreview = Unread[PlanPreviewRequest]
else:
    UnreadPreview = unread(PlanPreviewRequest)


class PlanArtifact(ResponseModel):
    """One file that applies a part of the plan, with the commands that install, verify and roll it back.

    ``recommended`` files are the path of the node's platform, in the order of ``step``; the others are behind it.
    """

    kind: str
    filename: str
    path: str | None = None
    media_type: str
    content: str
    summary: str = ""
    install: str = ""
    verify: str
    rollback: str
    restart: Literal["nothing", "engine", "kubelet", "reboot", "nodes"] = "nothing"
    avoid_when: str = ""
    recommended: bool = False
    step: int | None = None


class PlanPreview(ResponseModel):
    """A plan and its files, not saved."""

    plan: Plan
    verdict: Verdict
    artifacts: list[PlanArtifact] | None
    """Null where no files were asked for."""
    artifacts_withheld: str | None
    """Why there are no files: the plan does not fit."""


class ScenarioWrite(RequestModel):
    """A named what-if input. The scenario document is checked in full before it is saved."""

    name: Name
    node_id: UUID | None = None
    scenario: UncheckedScenario


class ScenarioSummary(ResponseModel):
    """One line of the list of saved scenarios."""

    id: UUID
    name: str
    node_id: UUID | None
    version: int
    created_at: datetime
    updated_at: datetime
    latest_plan_id: UUID | None


class Scenario(ScenarioSummary):
    """A saved scenario, spelled as it was sent. Its ``version`` is the ETag that an edit must name in If-Match."""

    scenario: JsonObject


PlanState = Literal["draft", "proposed", "approved", "in_force", "superseded"]


class PlanKeep(RequestModel):
    """A scenario whose plan is computed now and kept. ``node_id`` as in a preview."""

    node_id: UUID | None = None
    scenario: UncheckedScenario


class PlanOnNode(ResponseModel):
    """A node that is meant to follow the plan. ``answer`` is what its newest report says: ``partly`` where some of the
    planned pools are there, or more than is planned, or all and nobody could see the databases on them; ``unknown``
    before a report.

    ``wrong`` are the titles of the checks that failed. ``by`` is who put the plan in force.
    """

    node_id: UUID
    node_name: str
    answer: Literal["yes", "partly", "no", "unknown"]
    wrong: list[str]
    since: datetime
    verified_at: datetime | None
    source: Literal["hand", "verify", "label"]
    by: str


class StaleFact(ResponseModel):
    """What a newer sample changed of what the plan was computed from, in words with units."""

    what: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class PlanFilter:
    """Which plans are listed. Every part that is None matches all."""

    scenario_id: UUID | None = None
    node_id: UUID | None = None
    fleet_plan_id: UUID | None = None
    state: PlanState | None = None


class PlanSummary(ResponseModel):
    """One kept plan, without its content.

    ``digest`` is the SHA-256 of everything that was kept and ``short_digest`` what people compare; null in plans that
    were kept before there was one. ``sampled_at`` and ``run_at`` are when the node's sample and its tlbbench results
    were taken. ``version`` is the ETag that a change of state must name in If-Match. ``replaces`` is the plan that was
    in force before; ``stale`` what a newer sample changed: null or empty, nothing that decides.
    """

    id: UUID
    scenario_id: UUID | None
    scenario_version: int | None
    fleet_plan_id: UUID | None
    node_id: UUID | None
    node_name: str | None
    created_at: datetime
    headline: str
    digest: str | None
    short_digest: str | None
    sampled_at: datetime | None
    run_id: UUID | None
    run_at: datetime | None
    model_version: str | None
    author: str | None
    version: int
    state: PlanState
    state_at: datetime | None
    proposed_by: str | None
    proposed_at: datetime | None
    approved_by: str | None
    approved_at: datetime | None
    approval_ended_at: datetime | None
    replaces: UUID | None
    superseded_by: UUID | None
    stale: list[StaleFact] | None
    in_force: list[PlanOnNode]


class SavedPlan(PlanSummary):
    """A plan as it was computed when it was kept, with its files.

    ``author`` kept it with the planner of ``model_version``; ``schema_version`` is the form it is kept in. A plan
    that an older version kept is shown with unknown (null) for what that version did not compute.
    ``artifacts_withheld``: why no file is handed out, as of a node with another name now.
    """

    schema_version: int
    plan: Plan
    verdict: Verdict | None
    """Null in plans that were kept before there was one."""
    artifacts: list[PlanArtifact]
    artifacts_withheld: str | None


class PlanInputs(ResponseModel):
    """All that a saved plan was computed from: the scenario, and what the planner took, with the node's facts.

    Null for plans that were saved before inputs were kept.
    """

    plan_id: UUID
    scenario: JsonObject | None
    request: JsonObject | None


class PoolChange(ResponseModel):
    """Pages of one pool in a plan and in the plan that it is compared with."""

    numa_node: int
    page_bytes: int
    pages: int
    pages_against: int


class FindingChange(ResponseModel):
    """A finding whose state differs; null: that plan does not have it."""

    code: str
    subject: str
    title: str
    state: str | None
    state_against: str | None


class InputChange(ResponseModel):
    """An input that differs, such as ``node.numa[0].mem_total_bytes``; null: not given there."""

    path: str
    value: JsonScalar
    value_against: JsonScalar


class PlanDifference(ResponseModel):
    """``plan_id`` beside the plan ``against``. ``inputs`` is null where one was saved without its inputs."""

    plan_id: UUID
    against: UUID
    headline: str
    headline_against: str
    feasible: bool
    feasible_against: bool
    pools: list[PoolChange]
    findings: list[FindingChange]
    inputs: list[InputChange] | None


class ScenarioVersion(ResponseModel):
    """A version of a scenario as it was saved."""

    scenario_id: UUID
    version: int
    name: str
    node_id: UUID | None
    saved_at: datetime
    saved_by: str | None
    scenario: JsonObject


class ScenarioYamlImport(RequestModel):
    """A scenario as the YAML that ``hugeplan plan`` reads."""

    name: Name
    node_id: UUID | None = None
    yaml: ScenarioYaml


class PlanArtifacts(ResponseModel):
    """The files of a saved plan."""

    plan_id: UUID
    items: list[PlanArtifact]


ArtifactDisposition = Literal["inline", "attachment"]


class ArtifactChange(ResponseModel):
    """One file of a bundle that two plans do not share; ``diff`` is unified."""

    path: str
    change: Literal["added", "removed", "changed"]
    diff: str


class ArtifactChanges(ResponseModel):
    """The files of ``plan_id`` against those of the plan ``against``."""

    plan_id: UUID
    against: UUID
    items: list[ArtifactChange]


class PlanVerification(ResponseModel):
    """A saved plan against the newest report of its node: the outcome, and each check as a finding.

    ``undecided``: nothing is wrong, but something essential was not observed, such as the pages of a database.
    """

    plan_id: UUID
    digest: str | None
    node_id: UUID
    observed_at: datetime | None
    outcome: Literal["in_force", "not_in_force", "undecided"]
    findings: list[Finding]
