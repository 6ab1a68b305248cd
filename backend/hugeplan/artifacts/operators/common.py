"""What the patches share: the database's limits and parameters, and the commands around a patch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hugeplan.artifacts import pod
from hugeplan.artifacts.base import Artifact, Restart, all_of, object_name, slug, unique_kinds, with_pool, yaml_text
from hugeplan.artifacts.engines.common import settings_to_write
from hugeplan.artifacts.outside import is_setting_value
from hugeplan.planner.model import InstancePlan, Plan, PlanRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator's custom resource: its identity, how kubectl names it, and where limits and settings stand.

    ``spec`` builds the patch's spec from the object's name, the container's resources and the settings.
    """

    kind: str
    title: str
    api_version: str
    object_kind: str
    resource: str
    engine: str
    spec: Callable[[str, Mapping[str, Any], Mapping[str, str]], Mapping[str, Any]]
    limit_path: str
    comments: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def patches(operator: Operator, plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One patch per database of the operator's engine with a pool, on Kubernetes nodes."""
    if not request.reservations.kubernetes:
        return
    found = [(i, p) for i, p in with_pool(plan, request) if p.engine == operator.engine]
    kinds = unique_kinds(operator.kind, (planned.name for _, planned in found))
    for kind, (instance, planned) in zip(kinds, found, strict=True):
        amounts, missing = pod.resources(plan, instance, planned)
        settings = {item.name: item.value for item in settings_to_write(instance, planned)}
        # An operator's check against the limit needs the buffer pool in the object; it is in the scenario's settings.
        given = _given(instance.settings, operator.engine)
        missing += [f"{name}: left out, its value cannot be written here." for name, value in given.items()
                    if not is_setting_value(value)]  # fmt: skip
        settings = {**{name: value for name, value in given.items() if is_setting_value(value)}, **settings}
        for name in operator.left_out:
            settings.pop(name, None)
        yield _artifact(operator, kind, planned, (amounts, settings), missing)


def _given(settings: Mapping[str, str], engine: str) -> dict[str, str]:
    wanted = {"postgresql": ("shared_buffers",), "mariadb": ("innodb_buffer_pool_size",)}.get(engine, ())
    return {name: settings[name].strip().strip("'\"") for name in wanted if name in settings}


def _artifact(
    operator: Operator,
    kind: str,
    planned: InstancePlan,
    given: tuple[Mapping[str, Any], Mapping[str, str]],
    missing: list[str],
) -> Artifact:
    amounts, settings = given
    name = object_name(planned.name)
    file = f"{slug(planned.name)}-{operator.kind.replace('_', '-')}.yaml"
    document = {
        "apiVersion": operator.api_version,
        "kind": operator.object_kind,
        "metadata": {"name": name},
        "spec": operator.spec(name, amounts, settings),
    }
    limit, amount = next(iter(amounts["limits"].items()))
    query = f"kubectl get {operator.resource} {name} -o jsonpath='{operator.limit_path.format(limit=limit)}'"
    return Artifact(
        kind=kind,
        filename=file,
        media_type="application/yaml",
        content=yaml_text(
            [
                f"For the {operator.title} of {planned.name}, by server-side apply: all other fields stay as they are.",
                f"The object's name is not in the plan: {name} is the database's name in it.",
                *operator.comments,
                *missing,
            ],
            document,
        ),
        summary=f"Gives {planned.name} its huge page limit and settings through its operator.",
        install=f"kubectl get {operator.resource} {name} -o yaml > {name}-before.yaml\n"
        f"kubectl apply --server-side --force-conflicts --field-manager=hugeplan -f {file}",
        verify=all_of([f'test "$({query})" = {amount}']),
        rollback=f"kubectl replace -f {name}-before.yaml",
        restart=Restart.ENGINE,
        avoid_when=f"{planned.name} is not run by this operator.",
    )
