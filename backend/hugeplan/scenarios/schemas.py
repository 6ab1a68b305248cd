"""Requests and responses about what-if inputs and plans."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from hugeplan.api.schemas import JsonObject, Name, RequestModel, ResponseModel
from hugeplan.planner.model import Finding, Plan
from hugeplan.scenario_file import ScenarioDocument


class PlanPreviewRequest(RequestModel):
    """A scenario, planned without being saved. ``node_id`` takes the node's facts from its newest report
    instead of the scenario's own ``node``.
    """

    node_id: UUID | None = None
    scenario: ScenarioDocument
    force: bool = False
    """Hand out the files of a plan that does not fit, too."""


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
    artifacts: list[PlanArtifact]
    artifacts_withheld: str | None
    """Why there are no files: the plan does not fit."""


class ScenarioWrite(RequestModel):
    """A named what-if input. The scenario document is checked in full before it is saved."""

    name: Name
    node_id: UUID | None = None
    scenario: ScenarioDocument


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


class PlanSummary(ResponseModel):
    """One saved plan of a scenario, without its content."""

    id: UUID
    scenario_id: UUID
    scenario_version: int
    node_id: UUID | None
    created_at: datetime
    headline: str


class SavedPlan(PlanSummary):
    """A plan as it was computed when it was saved, with its files."""

    plan: Plan
    artifacts: list[PlanArtifact]


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
    node_id: UUID
    observed_at: datetime | None
    outcome: Literal["in_force", "not_in_force", "undecided"]
    findings: list[Finding]
