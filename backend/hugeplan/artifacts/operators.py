"""Patches of operators' objects: one per object that is known to make the pods of a database, as the table says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hugeplan.artifacts import pod
from hugeplan.artifacts.base import Artifact, Restart, all_of, slug, unique_kinds, with_pool, yaml_text
from hugeplan.artifacts.engines.common import settings_to_write
from hugeplan.artifacts.order import with_change
from hugeplan.artifacts.outside import is_setting_value
from hugeplan.artifacts.owners import Needs, made_once, saved_once
from hugeplan.planner.model import OperatorObject, Plan, PlanRequest
from hugeplan.recognition.base import CustomResource
from hugeplan.recognition.operators import RESOURCES, Owner, patched

#: A server's section of an option file, by engine.
_SECTIONS: Final = {"mariadb": "mariadb", "mysql": "mysqld"}


def renderers() -> dict[str, Callable[..., Iterable[Artifact]]]:
    """A renderer per kind of patch."""
    kinds = dict.fromkeys(row.patch.kind for row, _ in RESOURCES.values() if row.patch is not None)
    return {kind: _renderer(kind) for kind in kinds}


def _renderer(kind: str) -> Callable[..., Iterable[Artifact]]:
    return lambda plan, request, of_objects: _patches(kind, plan, request, of_objects)


def _patches(kind: str, plan: Plan, request: PlanRequest, of_objects: Mapping[Owner, Needs]) -> Iterable[Artifact]:
    """One patch per object (or instance set of it) with a pool on this node, however many of its pods run here."""
    if not request.reservations.kubernetes:
        return
    pairs = [(patched(instance), planned) for instance, planned in with_pool(plan, request)]
    found = [one for one, _ in pairs]
    targets = [*dict.fromkeys(one[0] for one in found if one is not None and one[2].kind == kind)]
    names = ["-".join(filter(None, (one.namespace, one.name, one.instance_set))) for one in targets]
    for own_kind, name, target in zip(unique_kinds(kind, names), names, targets, strict=True):
        own = of_objects[target]
        planned = next(planned for one, planned in pairs if one is not None and one[0] == target)
        patch = with_change(_of_object(own_kind, name, target, own), planned, request)
        yield made_once(patch, plan.node, own)


def _of_object(kind: str, name: str, target: OperatorObject, own: Needs) -> Artifact:
    instance, planned = own.largest
    row, operator = RESOURCES[target.group, target.kind]
    engine = operator.engine
    amounts, missing = pod.resources(own, sets=not row.option_file)
    settings = {item.name: item.value for item in settings_to_write(instance, planned)}
    # An operator's check against the limit needs the buffer pool in the object; it is in the scenario's settings.
    given = _given(instance.settings, engine)
    missing += [f"{name}: left out, its value cannot be written here." for name, value in given.items()
                if not is_setting_value(value)]  # fmt: skip
    settings = {**{name: value for name, value in given.items() if is_setting_value(value)}, **settings}
    by_hand = _by_hand(row, target, engine, settings) if row.option_file and settings else ()
    spec = _spec(row, target.instance_set, amounts, {} if row.option_file else settings)
    limit = next(iter(amounts["limits"].items()))
    return _artifact(row, kind, name, target, spec=spec, limit=limit, notes=(*missing, *by_hand), by_hand=by_hand)


def _by_hand(row: CustomResource, target: OperatorObject, engine: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    """A field that is a whole option file is edited by a person: a patch would drop its other lines."""
    return (
        f"Then edit spec.{'.'.join(row.option_file)} of {target.words}, or the ConfigMap that it names in place of it;",
        "the field is one text, which a patch would replace: keep its other lines.",
        f"Set below [{_SECTIONS[engine]}]:",
        *(f"{key} = {value}" for key, value in settings.items()),
    )


def _spec(
    row: CustomResource, name: str | None, resources: Mapping[str, Any], settings: Mapping[str, str]
) -> dict[str, Any]:
    """The fields of the object that change: resources, in a set where the object has sets, and settings."""
    spec: dict[str, Any] = {}
    limits = _nested(row.resources or (), dict(resources))
    _merge(spec, _nested(row.sets, [{"name": name, **limits}]) if row.sets else limits)
    if settings:
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
    kind: str,
    slug_of: str,
    target: OperatorObject,
    *,
    spec: Mapping[str, Any],
    limit: tuple[str, str],
    notes: tuple[str, ...],
    by_hand: tuple[str, ...],
) -> Artifact:
    patch = row.patch
    assert patch is not None  # only objects with one come here
    name = target.name
    file = f"{slug(slug_of)}-{patch.kind.replace('_', '-')}.yaml"
    document = {
        "apiVersion": f"{row.group}/{patch.version}",
        "kind": row.kind,
        "metadata": {"name": name, "namespace": target.namespace},
        "spec": spec,
    }
    of_object = f"{patch.plural}.{row.group} {name} --namespace {target.namespace}"
    path = (row.limits_in or "").replace("[]", f'[?(@.name=="{target.instance_set}")]')
    query = f"kubectl get {of_object} -o jsonpath='{{.{path}.limits.{limit[0]}}}'"
    title = patch.title or row.title
    # One owner of fields per instance set: an apply takes away what its owner wrote before and leaves out now.
    # Likewise where the option file is no part of the patch any more: the former owner wrote it.
    manager = "-".join(filter(None, ("hugeplan", target.instance_set, "resources" if row.option_file else None)))
    apply = f"kubectl apply --server-side --force-conflicts --field-manager={manager}"
    more = " (its option file is edited by hand)" if by_hand else " and settings"
    names = target.namespace, name, target.instance_set, f"{patch.plural}.{row.group}"
    save, before = saved_once(f"kubectl get {of_object}", document, *names, nulls=False)
    return Artifact(
        kind=kind,
        filename=file,
        media_type="application/yaml",
        content=yaml_text(
            [
                f"For the {title} {target.namespace}/{name}, by server-side apply: all other fields stay as they are.",
                *patch.comments,
                *notes,
            ],
            document,
        ),
        summary=f"Gives {target.words} its huge page limit{more}; its operator makes its pods anew.",
        # Without the object the first command fails, and the last would make one. The annotation goes, because kubectl
        # takes its fields over for whoever applies next, and drops all that our file does not hold.
        install=f"{save}kubectl annotate {of_object} kubectl.kubernetes.io/last-applied-configuration- &&\n"
        + f"{apply} -f {file}"
        + "".join(f"\n# {line}" for line in by_hand),
        verify=all_of([f'test "$({query})" = {limit[1]}']),
        rollback=f"{apply} -f {before} && rm {before}",
        restart=Restart.ENGINE,
        avoid_when=f"{target.words} is not there any more: the patch would make a new one.",
    )
