"""Which databases a pod holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from hugeplan.planner.model import Confidence
from hugeplan.recognition.base import (
    NOTHING,
    ContainerEngine,
    ContainerView,
    Objects,
    Operator,
    PodView,
    Reading,
    Recognised,
    Reference,
)
from hugeplan.recognition.command_line import programs
from hugeplan.recognition.engines import BY_NAME, CONTAINER_ENGINES, jvm
from hugeplan.recognition.images import is_around, parse_image
from hugeplan.recognition.operators import BY_LABEL, CONTAINER_NAMES, OPERATORS, OWN_LABELS


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
    for place in sorted({place for name in pod.labels if name in BY_LABEL for place in BY_LABEL[name]}):
        operator = OPERATORS[place]
        references = operator.references(pod)
        container = _container_of(operator, pod) if references else None
        if container is not None and _claims(operator, references, pod, objects):
            return (_of_operator(operator, references, container, pod, objects),)
    return tuple(_of_containers(pod))


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
    found, named = NOTHING, None
    seen: list[str] = []
    for reference in references:
        named = named or reference.name
        resource = objects.get(reference, pod.namespace)
        if resource is not None:
            seen.append(f"{reference.kind} {pod.namespace}/{reference.name}")
            found = found.over(operator.read(resource, pod))
    own = row.read(container)
    reading = own.over(found).over(operator.defaults(pod))
    unknown = list(reading.unknown)
    if not seen:
        unknown.append(f"settings: the {operator.name} resource of this cluster is not in the input")
    source = f"label of {operator.name}" + (f" and {', '.join(seen)}" if seen else "")
    return _recognised(
        row,
        container,
        reading,
        source=source,
        confidence=Confidence.HIGH,
        complete=bool(seen) and not reading.unknown,
        operator=operator.name,
        limits_in=_limits_in(operator, named),
        cluster=named,
        unknown=tuple(unknown),
    )


def _limits_in(operator: Operator, cluster: str | None) -> str | None:
    """The field in words: an edit of the pod itself is undone by the operator."""
    if operator.limits_in is None:
        return None
    kind = operator.resources[0][1] if operator.resources else "resource"
    name = f" {cluster}" if cluster else ""
    return f"{operator.limits_in} of {kind}{name} ({operator.name})"


def _of_containers(pod: PodView) -> Iterator[Recognised]:
    for container in pod.containers:
        row = engine_of(container)
        if row is None:
            continue
        started = not row.programs.isdisjoint(programs(container.words))
        reading = row.read(container)
        unknown = list(reading.unknown)
        if row.main_setting is not None and row.main_setting not in reading.settings:
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
) -> Recognised:
    image = parse_image(container.image)
    version = reading.version or row.version_of_image(image.name, image.tag or "")
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
