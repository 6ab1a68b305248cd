"""Patches of operators' objects: one per database that an operator may run, as the table of operators says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hugeplan.artifacts import pod
from hugeplan.artifacts.base import (
    Artifact,
    Renderer,
    Restart,
    all_of,
    object_name,
    slug,
    unique_kinds,
    with_pool,
    yaml_text,
)
from hugeplan.artifacts.engines.common import settings_to_write
from hugeplan.artifacts.outside import is_setting_value
from hugeplan.planner.model import InstancePlan, Plan, PlanRequest
from hugeplan.recognition.base import CustomResource, Patch
from hugeplan.recognition.operators import RESOURCES

#: A server's section of an option file, by engine.
_SECTIONS: Final = {"mariadb": "mariadb", "mysql": "mysqld"}


def renderers() -> dict[str, Renderer]:
    """A renderer per kind of patch."""
    return {
        row.patch.kind: _renderer(row, row.patch, operator.engine)
        for row, operator in RESOURCES.values()
        if row.patch is not None
    }


def _renderer(row: CustomResource, patch: Patch, engine: str) -> Renderer:
    return lambda plan, request: _patches(row, patch, engine, plan, request)


def _patches(row: CustomResource, patch: Patch, engine: str, plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One patch per database of the operator's engine with a pool, on Kubernetes nodes."""
    if not request.reservations.kubernetes:
        return
    found = [(i, p) for i, p in with_pool(plan, request) if p.engine == engine]
    kinds = unique_kinds(patch.kind, (planned.name for _, planned in found))
    for kind, (instance, planned) in zip(kinds, found, strict=True):
        amounts, missing = pod.resources(plan, instance, planned)
        settings = {item.name: item.value for item in settings_to_write(instance, planned)}
        # An operator's check against the limit needs the buffer pool in the object; it is in the scenario's settings.
        given = _given(instance.settings, engine)
        missing += [f"{name}: left out, its value cannot be written here." for name, value in given.items()
                    if not is_setting_value(value)]  # fmt: skip
        settings = {**{name: value for name, value in given.items() if is_setting_value(value)}, **settings}
        spec = _spec(row, engine, object_name(planned.name), amounts, settings)
        limit = next(iter(amounts["limits"].items()))
        yield _artifact(row, patch, kind, planned=planned, spec=spec, limit=limit, missing=missing)


def _spec(
    row: CustomResource, engine: str, name: str, resources: Mapping[str, Any], settings: Mapping[str, str]
) -> dict[str, Any]:
    """The fields of the object that change: resources, in a set where the object has sets, and settings."""
    spec: dict[str, Any] = {}
    limits = _nested(row.resources or (), dict(resources))
    _merge(spec, _nested(row.sets, [{"name": name, **limits}]) if row.sets else limits)
    if row.option_file:
        lines = [f"[{_SECTIONS[engine]}]", *(f"{key} = {value}" for key, value in settings.items()), ""]
        _merge(spec, _nested(row.option_file, "\n".join(lines)))
    else:
        _merge(spec, _nested(row.parameters, dict(settings)))
    return spec


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """``{path[0]: {path[1]: ... value}}``."""
    for step in reversed(path):
        value = {step: value}
    return dict(value)


def _merge(spec: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name, value in other.items():
        if name in spec:
            _merge(spec[name], value)
        else:
            spec[name] = value


def _given(settings: Mapping[str, str], engine: str) -> dict[str, str]:
    wanted = {"postgresql": ("shared_buffers",), "mariadb": ("innodb_buffer_pool_size",)}.get(engine, ())
    return {name: settings[name].strip().strip("'\"") for name in wanted if name in settings}


def _artifact(
    row: CustomResource,
    patch: Patch,
    kind: str,
    *,
    planned: InstancePlan,
    spec: Mapping[str, Any],
    limit: tuple[str, str],
    missing: list[str],
) -> Artifact:
    name = object_name(planned.name)
    file = f"{slug(planned.name)}-{patch.kind.replace('_', '-')}.yaml"
    document = {
        "apiVersion": f"{row.group}/{patch.version}",
        "kind": row.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    resource = f"{patch.plural}.{row.group}"
    path = (row.limits_in or "").replace("[]", "[0]")
    query = f"kubectl get {resource} {name} -o jsonpath='{{.{path}.limits.{limit[0]}}}'"
    title = patch.title or row.title
    return Artifact(
        kind=kind,
        filename=file,
        media_type="application/yaml",
        content=yaml_text(
            [
                f"For the {title} of {planned.name}, by server-side apply: all other fields stay as they are.",
                f"The object's name is not in the plan: {name} is the database's name in it.",
                *patch.comments,
                *missing,
            ],
            document,
        ),
        summary=f"Gives {planned.name} its huge page limit and settings through its operator.",
        install=f"kubectl get {resource} {name} -o yaml > {name}-before.yaml\n"
        f"kubectl apply --server-side --force-conflicts --field-manager=hugeplan -f {file}",
        verify=all_of([f'test "$({query})" = {limit[1]}']),
        rollback=f"kubectl replace -f {name}-before.yaml",
        restart=Restart.ENGINE,
        avoid_when=f"{planned.name} is not run by this operator.",
    )
