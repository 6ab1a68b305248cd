"""mariadb-operator: MariaDB, with the settings as an option file in myCnf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hugeplan.artifacts.base import Artifact
from hugeplan.artifacts.operators.common import Operator, patches
from hugeplan.planner.model import Plan, PlanRequest


def _spec(_: str, resources: Mapping[str, Any], settings: Mapping[str, str]) -> Mapping[str, Any]:
    lines = ["[mariadb]", *(f"{name} = {value}" for name, value in settings.items()), ""]
    return {"resources": dict(resources), "myCnf": "\n".join(lines)}


OPERATOR = Operator(
    kind="mariadb_operator",
    title="MariaDB object",
    api_version="k8s.mariadb.com/v1alpha1",
    object_kind="MariaDB",
    resource="mariadbs.k8s.mariadb.com",
    engine="mariadb",
    spec=_spec,
    limit_path="{{.spec.resources.limits.{limit}}}",
    comments=("myCnf replaces the whole option file: keep your other lines.",),
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One patch per MariaDB."""
    return patches(OPERATOR, plan, request)
