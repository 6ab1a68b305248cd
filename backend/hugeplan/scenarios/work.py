"""What the sandbox does with scenarios: read them, check them, plan them. It needs no database.

Payloads come from the service and are pickled; what goes back is JSON. The one exception is a plan that does not fit
yet: its process hands it to the next one through the service, which does not look into it.
"""

from __future__ import annotations

import json
import pickle
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from pydantic import ValidationError

from hugeplan.api.unread import Unread
from hugeplan.artifacts import refused, render, withheld
from hugeplan.artifacts.base import yaml_text
from hugeplan.db.alone import alone
from hugeplan.documents.bounds import Name, adapter
from hugeplan.documents.plans import dump_plan, require_small
from hugeplan.errors import FieldProblem, from_validation, invalid_input, shown
from hugeplan.hardware.catalogue import complete
from hugeplan.planner.check import require_bounded
from hugeplan.planner.memory.kubernetes import observed_reservations
from hugeplan.planner.model import NodeFacts, NodeSample, Plan, PlanRequest, Tenant
from hugeplan.planner.other_node import planned, with_other_node
from hugeplan.planner.plan import plan
from hugeplan.planner.verdict import Verdict, verdict
from hugeplan.sandbox.orders import Limits
from hugeplan.scenario_file import ScenarioFileError, load, to_request
from hugeplan.scenario_file.unchecked import checked
from hugeplan.scenario_file.yaml_lines import parse_text
from hugeplan.scenarios.schemas import PlanArtifact, PlanPreview, PlanPreviewRequest
from hugeplan.signals import TimeOverError, ended_at

CHECK = f"{__name__}:check"
CHECK_EACH = f"{__name__}:check_each"
READ_YAML = f"{__name__}:read_yaml"
WRITE_YAML = f"{__name__}:write_yaml"
COMPUTE = f"{__name__}:compute"
FINISH = f"{__name__}:finish"

MOST_OTHER_CELLS = 500
"""Of the ledger of another node: some are planned within half of what one plan may take."""

_USED = struct.Struct(">d")
DONE, UNFINISHED = b"\0", b"\1"
_SMALL = {
    "node": {"memory": "64GiB"},
    "databases": [{"name": "a", "engine": "postgresql", "settings": {"shared_buffers": "8GB"}}],
}


@dataclass(frozen=True, slots=True)
class Question:
    """A scenario as it was sent, and the facts of the stored node it is for; None: its own.

    ``scenario`` may be the body of a preview, as it came.
    """

    scenario: Any
    facts: NodeFacts | None = None
    sample: NodeSample | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """Which files a plan is answered with. ``keep``: the answer is for the database, with all that led to it."""

    are_wanted: bool = True
    force: bool = False
    """Those of a plan that does not fit, too."""
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A plan that does not fit, before other nodes were tried."""

    found: Plan
    request: PlanRequest
    files: Files = field(default_factory=Files)


def prepare() -> None:
    """Load what the planner loads when it first needs it, and fill what it remembers; called before the first fork."""
    import highspy  # noqa: PLC0415 - the service itself needs none of it

    del highspy
    compute(pickle.dumps((Question(_SMALL), Files(keep=True))))


def request_of(question: Question) -> PlanRequest:
    """What ``plan()`` takes. An error names the field, PlannerError where the plan would take minutes."""
    document = checked(question.scenario)
    if question.facts is None:
        request = to_request(document, from_catalogue=complete)
    else:
        request = to_request(document, question.facts, sample=question.sample)
    require_bounded(request)
    return request


def check(payload: bytes) -> bytes:
    """Refuse a scenario that could not be planned; nothing for one that can."""
    request_of(pickle.loads(payload))  # noqa: S301 - the service wrote it
    return b""


def check_each(payload: bytes) -> bytes:
    """Why each of several scenarios, by their names, could not be kept; null for those that can. JSON, in their order.

    They are of different machines: what is wrong with one is said of that one.
    """
    return msgspec.json.encode([_why_not(*one) for one in pickle.loads(payload)])  # noqa: S301 - the service wrote it


def _why_not(name: str, scenario: Any) -> str | None:
    with alone(name) as tried:
        try:
            adapter(Name).validate_python(name)
        except ValidationError as error:
            raise from_validation(error, "name") from error
        request_of(Question(scenario))
    return tried.why


def read_yaml(payload: bytes) -> bytes:
    """The document that a YAML text spells, as JSON; InvalidInputError names the line that is wrong."""
    text, facts, sample = pickle.loads(payload)  # noqa: S301 - the service wrote it
    try:
        load(text)
        spelled, _ = parse_text(text, "yaml")
    except ScenarioFileError as error:
        raise invalid_input(
            [
                FieldProblem(
                    field="yaml" if problem.line is None else f"yaml, line {problem.line}",
                    value=shown(problem.value),
                    expected=f"{problem.field or 'document'}: {problem.expected}",
                )
                for problem in error.problems
            ]
        ) from error
    request_of(Question(spelled, facts, sample))
    return json.dumps(spelled, default=str).encode()


def write_yaml(payload: bytes) -> bytes:
    """A scenario's document as YAML. Where half a megabyte is written, the service would answer nobody meanwhile."""
    return yaml_text((), pickle.loads(payload)).encode()  # noqa: S301 - the service wrote it


def limits_of_rest(unfinished: bytes) -> Limits:
    """What is left for the second piece of a plan: both together stay within what one request may take."""
    (used,) = _USED.unpack_from(unfinished, 1)
    return Limits(used_seconds=used)


def compute(payload: bytes) -> bytes:
    """The plan of a question with its files; UNFINISHED and the plan where it does not fit: others may be named."""
    begun = time.process_time()
    question, files = pickle.loads(payload)  # noqa: S301 - the service wrote it
    if isinstance(question.scenario, Unread):
        body = question.scenario.read(PlanPreviewRequest)
        question, files = replace(question, scenario=body.scenario), Files(body.files, force=body.force)
    request = request_of(question)
    found = plan(request)
    if found.shortfall is not None:
        kept = pickle.dumps(Unfinished(found, request, files))
        return UNFINISHED + _USED.pack(time.process_time() - begun) + kept
    return DONE + _answer(found, request, files)


def finish(payload: bytes) -> bytes:
    """The answer for an unfinished plan, with the node on which one of its databases fits.

    The search ends when half of the time that is left is gone: the rest is for the answer, which is there in any case.
    """
    begun = time.process_time()
    kept, nodes = pickle.loads(payload)  # noqa: S301 - the service wrote it
    unfinished: Unfinished = pickle.loads(kept[1 + _USED.size :])  # noqa: S301 - compute() wrote it
    request = unfinished.request
    others = [
        PlanRequest(node=facts, reservations=observed_reservations(sample), policy=request.policy, sample=sample)
        for facts, sample in nodes
        if facts.arch == request.node.arch
    ]
    limits = limits_of_rest(kept)
    until = begun + (limits.cpu_seconds - limits.used_seconds) / 2
    found = unfinished.found
    with suppress(TimeOverError, MemoryError), ended_at(until):
        others = [other for other in others if _is_bounded(other)]
        found = with_other_node(found, request, others, lambda: time.process_time() < until, _planned)
    return DONE + _answer(found, request, unfinished.files)


def _is_bounded(other: PlanRequest) -> bool:
    """Whether another node, with one database more, is planned quickly."""
    with alone(other.node.name):
        require_bounded(replace(other, tenants=(Tenant(name="moved"),)), MOST_OTHER_CELLS)
        return True
    return False


def _planned(request: PlanRequest) -> Plan | None:
    """None also where something is odd about a node: who asks about another one gets an answer."""
    with alone(request.node.name, MemoryError):
        return planned(request)
    return None


def _answer(found: Plan, request: PlanRequest, files: Files) -> bytes:
    artifacts = None
    if files.are_wanted:
        artifacts = [PlanArtifact.model_validate(one) for one in render(found, request, force=files.force)]
    why_not = refused(found, request) or (None if files.force else withheld(found, request))
    if files.keep:
        kept = {
            "headline": found.headline,
            "request": adapter(PlanRequest).dump_python(request, mode="json"),
            "plan": dump_plan(found),
            "verdict": adapter(Verdict).dump_python(verdict(found, request), mode="json"),
            "artifacts": [artifact.model_dump(mode="json") for artifact in artifacts or []],
        }
        return require_small(msgspec.json.encode(kept))
    return require_small(
        PlanPreview(plan=found, verdict=verdict(found, request), artifacts=artifacts, artifacts_withheld=why_not)
        .model_dump_json()
        .encode()
    )
