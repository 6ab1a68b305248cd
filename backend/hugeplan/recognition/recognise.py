"""Which databases a pod holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from hugeplan.formats import option_files
from hugeplan.formats.command_line import programs
from hugeplan.planner.demand import ENGINES
from hugeplan.planner.model import Confidence
from hugeplan.recognition.base import (
    NOTHING,
    ContainerEngine,
    ContainerView,
    CustomResource,
    Objects,
    Operator,
    PodView,
    Reading,
    Recognised,
    Reference,
    inside,
    label,
    text_map,
)
from hugeplan.recognition.config_files import my_cnf
from hugeplan.recognition.engines import BY_NAME, CONTAINER_ENGINES, jvm
from hugeplan.recognition.images import is_around, parse_image
from hugeplan.recognition.operators import BY_LABEL, CONTAINER_NAMES, OWN_LABELS, RESOURCES

MOST_SETTINGS: Final = 2_000
"""Of one operator's object: no engine has half as many, and each of its pods keeps them."""
_COMPUTED: Final = ": the operator computes it from the container's memory"


def may_hold_database(labels: Iterable[str], containers: Iterable[tuple[str, str, Sequence[str]]]) -> bool:
    """A quick look at a pod: False means that :func:`recognise` would find nothing, but for a JVM with large pages.

    ``containers`` are (name, image, words of the command). Most pods of a cluster end here.
    """
    if not OWN_LABELS.isdisjoint(labels):
        return True
    for name, image, words in containers:  # no generator: this is asked of every pod of a cluster
        if name in CONTAINER_NAMES or _engine_of(tuple(words), image) is not None:
            return True
    return False


def recognise(pod: PodView, objects: Objects) -> tuple[Recognised, ...]:
    """The databases of a pod: the one that its operator's labels name, else whatever its containers look like."""
    owned = _by_owner(pod)
    if owned is not None:
        operator, reference = owned
        container = _container_of(operator, pod)
        if container is not None and operator.is_server(pod):
            return (_of_operator(operator, [reference], container, pod, objects),)
    candidates = {one.name: one for name in pod.labels if name in BY_LABEL for one in BY_LABEL[name]}
    for operator in candidates.values():
        references = operator.referenced(pod)
        container = _container_of(operator, pod) if references else None
        if container is not None and _claims(operator, references, pod, objects):
            return (_of_operator(operator, references, container, pod, objects),)
    return tuple(_of_containers(pod))


def _by_owner(pod: PodView) -> tuple[Operator, Reference] | None:
    """The operator whose object controls the pod itself, without a StatefulSet between them."""
    found = RESOURCES.get((pod.owner_group or "", pod.owner_kind or ""))
    if found is None or not pod.owner_name:
        return None
    row, operator = found
    return operator, Reference(row.group, row.kind, pod.owner_name)


def _object_of(
    operator: Operator, references: Sequence[Reference], seen: Sequence[Reference], pod: PodView
) -> Reference | None:
    """The object that exists for the pod: one in the input, else the only one that its owner or labels can mean.

    A label that other charts set too names no object by itself.
    """
    if seen:
        return seen[0]
    named = operator.references is not None or not OWN_LABELS.isdisjoint(
        {name for name in operator.labels if pod.labels.get(name)}
    )
    of_group = {one for one in references if any(name.startswith(f"{one.group}/") for name in pod.labels)}
    possible = of_group or set(references)
    return next(iter(possible)) if len(possible) == 1 and (named or _by_owner(pod) is not None) else None


def _claims(operator: Operator, references: Sequence[Reference], pod: PodView, objects: Objects) -> bool:
    return operator.labels_suffice or any(objects.get(one, pod.namespace) is not None for one in references)


def _container_of(operator: Operator, pod: PodView) -> ContainerView | None:
    """The container that holds the engine: by the name that the operator gives it, else by what it looks like."""
    for container in pod.containers:
        if container.name in operator.containers:
            return container
    for container in pod.containers:
        row = engine_of(container)
        if row is not None and row.engine == operator.engine:
            return container
    return None if operator.containers else next(iter(pod.containers), None)


def _of_operator(
    operator: Operator, references: Sequence[Reference], container: ContainerView, pod: PodView, objects: Objects
) -> Recognised:
    row = BY_NAME[operator.engine]
    found = NOTHING
    seen: list[Reference] = []
    for reference in references:
        body = objects.get(reference, pod.namespace)
        if body is not None:
            seen.append(reference)
            key = (operator.name, reference, pod.namespace, *map(pod.labels.get, operator.read_labels))
            found = found.over(objects.once(key, partial(_said_by, operator, reference, body, pod)))
    own = row.read(container)
    reading = own.over(found).over(operator.defaults(pod))
    unknown = list(reading.unknown)
    if not seen:
        unknown.append(f"settings: the {operator.name} resource of this cluster is not in the input")
    resource = _object_of(operator, references, seen, pod)
    set_label = None if resource is None else RESOURCES[resource.group, resource.kind][0].set_label
    objects_seen = ", ".join(f"{one.kind} {pod.namespace}/{one.name}" for one in seen)
    source = f"label of {operator.name}" + (f" and {objects_seen}" if seen else "")
    return _recognised(
        row,
        container,
        reading,
        source=source,
        confidence=Confidence.HIGH,
        complete=bool(seen) and not reading.unknown,
        operator=operator.name,
        limits_in=_limits_in(operator, (*seen, *references)[0]),
        cluster=references[0].name,
        resource=resource,
        instance_set=set_label and label(pod, set_label),
        unknown=tuple(unknown),
    )


def _said_by(operator: Operator, reference: Reference, body: Mapping[str, Any], pod: PodView) -> Reading:
    found = operator.read(body, pod) if operator.read else _read(operator, reference, body)
    if len(found.settings) <= MOST_SETTINGS:
        return found
    why = f"settings: {reference.kind} {reference.name} has more than {MOST_SETTINGS:,}, so none of them is read"
    return Reading(version=found.version, unknown=(*found.unknown, why))


def _read(operator: Operator, reference: Reference, resource: Mapping[str, Any]) -> Reading:
    """An object whose settings and version stand where the operator's table says."""
    row, _ = RESOURCES[reference.group, reference.kind]
    spec = resource.get("spec")
    field = row.option_file or row.parameters
    value = inside(spec, *field) if field else None
    settings = text_map(value)
    if row.option_file and isinstance(value, str):
        settings = my_cnf(value)[0]
    elif operator.engine == "mysql":
        settings = {option_files.variable(name): text for name, text in settings.items()}
    computed = operator.computes
    unknown = () if computed is None or computed in settings else (f"{computed}{_COMPUTED}",)
    source = f"{row.kind} {'.'.join(('spec', *field))}"
    return Reading.of(source, settings, version=_version_in(operator, row, spec), unknown=unknown)


def _version_in(operator: Operator, row: CustomResource, spec: Any) -> str | None:
    """The version of the object's image, else the one that it names."""
    text = inside(spec, *row.image) if row.image else None
    image = parse_image(text) if isinstance(text, str) else None
    found = None if image is None else BY_NAME[operator.engine].version_of_image(image)
    named = inside(spec, *row.version) if row.version else None
    return found or (None if named is None else str(named))


def _limits_in(operator: Operator, reference: Reference) -> str | None:
    """The field in words: an edit of the pod itself is undone by the operator."""
    limits_in = RESOURCES[reference.group, reference.kind][0].limits_in
    return None if limits_in is None else f"{limits_in} of {reference.kind} {reference.name} ({operator.name})"


def _of_containers(pod: PodView) -> Iterator[Recognised]:
    for container in pod.containers:
        row = engine_of(container)
        if row is None:
            continue
        programs_started = set(programs(container.words))
        started = not row.programs.isdisjoint(programs_started)
        reading = row.read(container)
        unknown = list(reading.unknown)
        # A script that starts the JVM gives it an Xmx of its own, which goes before a share.
        told = (row.main_setting, ENGINES[row.engine].shared_by if "java" in programs_started else None)
        if row.main_setting is not None and reading.settings.keys().isdisjoint(told):
            unknown.append(f"{row.main_setting}: not in the input, the engine's default is taken")
        yield _recognised(
            row,
            container,
            reading,
            source=f"command {container.words[0]}" if started else f"image {parse_image(container.image).name}",
            confidence=Confidence.HIGH if started else Confidence.MEDIUM,
            complete=bool(reading.settings) and not reading.unknown,
            operator=None,
            cluster=None,
            unknown=tuple(unknown),
        )


def _recognised(
    row: ContainerEngine,
    container: ContainerView,
    reading: Reading,
    *,
    source: str,
    confidence: Confidence,
    complete: bool,
    operator: str | None,
    cluster: str | None,
    unknown: tuple[str, ...],
    limits_in: str | None = None,
    resource: Reference | None = None,
    instance_set: str | None = None,
) -> Recognised:
    image = parse_image(container.image)
    version = reading.version or row.version_of_image(image)
    return Recognised(
        engine=row.engine,
        container=container.name,
        version=version,
        settings=reading.settings,
        sources=reading.sources,
        source=source,
        confidence=confidence,
        complete=complete,
        limits_in=limits_in,
        operator=operator,
        cluster=cluster,
        resource=resource,
        instance_set=instance_set,
        unknown=unknown if version or row.engine == "jvm" else (*unknown, "version: the image's tag does not say it"),
        notes=reading.notes,
    )


def engine_of(container: ContainerView) -> ContainerEngine | None:
    """The engine that a container holds: its command decides, then its image's name."""
    row = _engine_of(container.words, container.image)
    if row is None and jvm.asks_for_large_pages(container):
        return jvm.ENGINE
    return row


@lru_cache(maxsize=16384)
def _engine_of(words: tuple[str, ...], reference: str) -> ContainerEngine | None:
    started = frozenset(programs(words)) if words else frozenset()
    image = parse_image(reference)
    around = is_around(image)
    for row in CONTAINER_ENGINES:
        if not row.programs.isdisjoint(started) and not around and row.is_server(words):
            # MariaDB's images also start a program named mysqld.
            return BY_NAME["mariadb"] if row.engine == "mysql" and "mariadb" in image.name else row
    if around:
        return None
    for row in CONTAINER_ENGINES:
        if image.name in row.images:
            return row if row.is_server(words) else None
    return _by_path(image.path, image.name)


def _by_path(path: str, name: str) -> ContainerEngine | None:
    """Registries that name the engine in the path: Oracle's ``/database/enterprise``, Microsoft's ``/mssql/server``."""
    if path.endswith("/database") and name in {"enterprise", "express", "free", "standard"}:
        return BY_NAME["oracle"]
    if path.endswith(("gvenzl", "/mssql")):
        return BY_NAME["oracle"] if path.endswith("gvenzl") else BY_NAME["sqlserver"]
    if path.endswith(("/mysql", "mysql")) and name in {"community-server", "enterprise-server"}:
        return BY_NAME["mysql"]
    return None
