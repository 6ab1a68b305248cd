"""What imports take and answer."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from hugeplan.api.schemas import JsonObject, RequestModel, ResponseModel
from hugeplan.scenario_file.unchecked import UncheckedScenario

MAX_SCENARIOS = 500


class ImportedScenario(RequestModel):
    """A node's scenario, as ``hugeplan import`` makes it on the machine that can read the source.

    One whose name or content cannot be kept is refused by itself.
    """

    name: str
    scenario: UncheckedScenario


class ScenarioImport(RequestModel):
    """Scenarios of one source. A scenario that was imported under the same name before is replaced."""

    source: Annotated[str, Field(min_length=1, max_length=500)]
    scenarios: Annotated[list[ImportedScenario], Field(min_length=1, max_length=MAX_SCENARIOS)]


class SavedScenario(ResponseModel):
    """A scenario that an import created or replaced."""

    id: UUID
    name: str
    created: bool


class RefusedScenario(ResponseModel):
    """A scenario that an import did not keep, with the first field that is wrong."""

    name: str
    reason: str


class ImportReceipt(ResponseModel):
    """What an import kept, and what it did not."""

    source: str
    scenarios: list[SavedScenario]
    refused: list[RefusedScenario]


class KubernetesImport(ResponseModel):
    """The answer for Kubernetes objects: the plan of every node, and the scenarios kept and refused when asked for.
    ``text`` is what ``hugeplan plan`` prints for the same objects.
    """

    answer: JsonObject
    text: str
    scenarios: list[SavedScenario]
    refused: list[RefusedScenario]


class PodWorkloads(ResponseModel):
    """The workloads of one node, as a scenario document spells them: ``tenants``, and ``databases`` by their engine.

    ``pods`` were taken; ``elsewhere`` are pods of other nodes by the node's name, ``waiting`` are on no node yet and
    ``ended`` hold no memory.
    """

    tenants: list[JsonObject]
    databases: list[JsonObject]
    pods: int
    elsewhere: dict[str, int]
    waiting: int
    ended: int
    notes: list[str]
