"""Pods and everything with a pod template: resources, volumes and mounts of huge pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hugeplan.lint.kinds.java_in_pod import check_java
from hugeplan.lint.kinds.quantities import PREFIX, page_bytes_of
from hugeplan.lint.kinds.resources import check_resources
from hugeplan.lint.model import Context, Edit, EngineFact, LimitFact, Notes, Reading, attention, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_kubernetes_bytes

KIND: Final = "pod"
_VALIDATION: Final = "kubernetes pkg/apis/core/validation/validation.go"
_TEMPLATES: Final = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}
#: Words of an image, command or name that say which engine runs in a container.
_ENGINES: Final = (
    ("mariadb", "mariadb"),
    ("mysql", "mysql"),
    ("percona-server", "mysql"),
    ("postgres", "postgresql"),
    ("pgvector", "postgresql"),
    ("timescale", "postgresql"),
    ("spilo", "postgresql"),
    ("redis", "redis"),
    ("valkey", "redis"),
    ("oracle", "oracle"),
    ("db2", "db2"),
    ("openjdk", "jvm"),
    ("temurin", "jvm"),
    ("corretto", "jvm"),
    ("cassandra", "jvm"),
    ("elasticsearch", "jvm"),
    ("java", "jvm"),
    ("mongo", "mongodb"),
)

CLAIM: Final = wrong(
    "claim-asks-for-pages",
    "A volume claim asks for storage; huge pages are a resource of a container.",
    "kubernetes docs, Manage HugePages; pkg/apis/core/types.go VolumeResourceRequirements",
)
MEDIUM_AMBIGUOUS: Final = wrong(
    "volume-medium-ambiguous",
    "medium: HugePages without a size works only where the pod asks for one page size.",
    _VALIDATION,
)
MEDIUM_NOT_ASKED: Final = wrong(
    "volume-medium-not-asked",
    "A huge page volume needs a limit of its page size in a container of the pod.",
    _VALIDATION,
)
MEDIUM_UNKNOWN: Final = wrong(
    "volume-medium-unknown", "A huge page medium is HugePages or HugePages-<size> such as HugePages-2Mi.", _VALIDATION
)
NOT_MOUNTED: Final = attention(
    "volume-not-mounted",
    "A huge page volume that no container mounts does nothing.",
    "kubernetes docs, Manage HugePages",
)
MOUNT_WITHOUT_VOLUME: Final = wrong("mount-without-volume", "Each volumeMount names a volume of the pod.", _VALIDATION)


def detects(document: Tree) -> bool:
    """An object with a pod template, or the resources fragment of a container."""
    if document.get_text("kind") in _TEMPLATES:
        return True
    fragments = (("resources",), ("containers",), ("spec", "template", "spec", "containers"))
    return document.get("kind") is None and any(document.get(*path) is not None for path in fragments)


def read(document: Tree, context: Context, *, is_patch: bool = False) -> Reading:
    """What each container may use, and what the API server or the kubelet would refuse.

    Of a patch (``is_patch``) cpu and memory may stand in the object that it is merged into.
    """
    notes = Notes()
    kind = document.get_text("kind")
    if kind is None and document.get("resources") is not None:
        # A fragment or a patch: cpu and memory stand in what it is merged into.
        check_resources(
            document.get("resources"),
            "the container",
            notes,
            context,
            position=document.start,
            needs_cpu_or_memory=False,
        )
        return notes.reading(KIND, "container resources")
    if kind is None:
        patched = document.get("spec", "template", "spec") or document
        check_pod(patched, "the patch", notes, context, needs_cpu_or_memory=False)
        return notes.reading(KIND, "patch of a pod template")
    spec = document.get(*_TEMPLATES[kind], "spec")
    name = document.get_text("metadata", "name") or "the pod"
    if spec is not None:
        replicas = _replicas(document, kind)
        check_pod(spec, f"{kind} {name}", notes, context, replicas=replicas, needs_cpu_or_memory=not is_patch)
    _claims(document, notes)
    return notes.reading(KIND, kind)


def _replicas(document: Tree, kind: str | None) -> int | None:
    if kind == "DaemonSet":
        return 1
    if kind in {"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}:
        found = document.get("spec", "replicas")
        return 1 if found is None else found.whole_number()
    return 1


def _claims(document: Tree, notes: Notes) -> None:
    """Huge pages asked for in a StatefulSet's volumeClaimTemplates."""
    templates = document.get("spec", "volumeClaimTemplates")
    for template in () if templates is None else templates.elements():
        for part in ("requests", "limits"):
            resources = template.get("spec", "resources", part)
            for name, value in () if resources is None else resources.items():
                if name.startswith(PREFIX):
                    claim = template.get_text("metadata", "name") or "the claim"
                    said = f"The volume claim {claim} asks for {name}, which gives no pages to any container."
                    fix = f"Write {name} under the container's resources, and storage alone in the claim."
                    notes.problem(CLAIM, value.key_start, name, said, fix)


def check_pod(
    spec: Tree,
    owner: str,
    notes: Notes,
    context: Context,
    *,
    replicas: int | None = 1,
    needs_cpu_or_memory: bool = True,
) -> None:
    """Containers, then volumes."""
    before = len(notes.facts)
    lasting = spec.get("containers")
    lasting_at = -1 if lasting is None else lasting.start
    for container in _containers(spec):
        name = container.get_text("name") or "container"
        engine = engine_of(container)
        check_resources(
            container.get("resources"),
            f"{owner}, container {name}",
            notes,
            context,
            engine=engine,
            replicas=replicas,
            position=container.start,
            needs_cpu_or_memory=needs_cpu_or_memory,
            tries_pages_first=engine == "postgresql" and lasting_at <= container.start and _is_server(container, owner),
        )
        fact = _engine_arguments(container, engine, f"{owner}, container {name}")
        if fact is not None:
            notes.facts.append(fact)
        check_java(container, f"{owner}, container {name}", notes, context)
    pod_level = spec.get("resources")
    if pod_level is not None:
        check_resources(
            pod_level,
            f"{owner}, all containers",
            notes,
            context,
            replicas=replicas,
            position=pod_level.start,
            is_whole_pod=True,
        )
    sizes = {size for f in notes.facts[before:] if isinstance(f, LimitFact) for size, count in f.hugepages if count}
    _volumes(spec, sizes, notes)


def _containers(spec: Tree) -> Iterator[Tree]:
    for field in ("initContainers", "containers"):
        sequence = spec.get(field)
        if sequence is not None:
            yield from sequence.elements()


#: Programs with the database's name that are its clients.
_CLIENTS: Final = re.compile(r"exporter|backup|dump|bouncer|pgpool|client|restore|migrat|wait|barman|pgadmin")


def _is_server(container: Tree, owner: str) -> bool:
    """Whether a container with the database's image runs the server, not a job or a client with the same image."""
    words = [container.get_text("image") or "", container.get_text("name") or ""]
    command = container.get("command")
    started = [] if command is None else [element.text or "" for element in command.elements()]
    runs = not started or any("postgres" in word or "entrypoint" in word for word in started)
    is_job = owner.startswith(("Job ", "CronJob "))
    return runs and not is_job and not any(_CLIENTS.search(word.lower()) for word in words)


def engine_of(container: Tree) -> str | None:
    """The engine by the container's image, then its command, then its name."""
    words = [container.get_text("image") or ""]
    for field in ("command", "args"):
        sequence = container.get(field)
        if sequence is not None:
            words += [element.text or "" for element in sequence.elements()]
    words.append(container.get_text("name") or "")
    for text in words:
        last = text.lower().rsplit("/", 1)[-1]
        for word, engine in _ENGINES:
            if word in last and "exporter" not in last:
                return engine
    return None


def _engine_arguments(container: Tree, engine: str | None, owner: str) -> EngineFact | None:
    """Settings on the command line: ``-c shared_buffers=1GB``, ``--large-pages``, ``-XX:+UseLargePages``."""
    if engine not in {"postgresql", "mysql", "mariadb"}:
        return None
    texts: list[tuple[str, int]] = []
    for field in ("command", "args"):
        sequence = container.get(field)
        if sequence is not None:
            texts += [(word, element.start) for element in sequence.elements() for word in (element.text or "").split()]
    settings: list[tuple[str, str]] = []
    positions: list[tuple[str, int]] = []
    for text, position in texts:
        found = re.fullmatch(r"(?:-c)?(?:--)?([a-zA-Z_][\w.-]*)=(.*)", text)
        if found:
            name = found[1].replace("-", "_")
            settings.append((name, found[2].strip("'\"")))
            positions.append((name.lower(), position))
        elif text in {"--large-pages", "--skip-large-pages"}:
            settings.append(("large_pages", "ON" if text == "--large-pages" else "OFF"))
            positions.append(("large_pages", position))
    if not settings:
        return None
    return EngineFact(engine=engine, settings=tuple(settings), positions=tuple(positions), owner=owner)


def _volumes(spec: Tree, sizes: set[int], notes: Notes) -> None:
    volumes = spec.get("volumes")
    names = set()
    mounted = {
        mount.get_text("name")
        for container in _containers(spec)
        for mount in (container.get("volumeMounts") or container).elements()
    }
    for volume in () if volumes is None else volumes.elements():
        name = volume.get_text("name")
        names.add(name)
        medium = volume.get("emptyDir", "medium")
        if medium is None or not (medium.text or "").lower().startswith("huge"):
            continue
        _medium(medium, sizes, notes)
        if name not in mounted:
            said = f"No container mounts the volume {name}."
            fix = "Add a volumeMount, or leave the volume out: MAP_HUGETLB needs none."
            notes.problem(NOT_MOUNTED, volume.start, name or "", said, fix)
    _mounts(spec, names, notes)


def _medium(medium: Tree, sizes: set[int], notes: Notes) -> None:
    text = medium.text or ""
    written = ", ".join(kubernetes_resource_name(size) for size in sorted(sizes)) or "none"
    only = next(iter(sizes)) if len(sizes) == 1 else None
    edits = () if only is None else (Edit(medium.start, medium.end, f"HugePages-{format_kubernetes_bytes(only)}"),)
    if text == "HugePages":
        if len(sizes) > 1:
            said = f"The pod asks for several sizes: {written}."
            fix = "Write one volume per size with medium: HugePages-2Mi and so on."
            notes.problem(MEDIUM_AMBIGUOUS, medium.start, text, said, fix)
        elif not sizes:
            said = "No container has a huge page limit, so the pod is refused."
            fix = "Add limits such as hugepages-2Mi to the container."
            notes.problem(MEDIUM_NOT_ASKED, medium.start, text, said, fix)
        return
    size = page_bytes_of("hugepages-" + text.removeprefix("HugePages-")) if text.startswith("HugePages-") else None
    if size is None:
        said = f"{text} is not a medium."
        fix = f"Write {edits[0].text}." if edits else "Write HugePages-2Mi or HugePages-1Gi."
        notes.problem(MEDIUM_UNKNOWN, medium.start, text, said, fix, *edits)
    elif size not in sizes:
        said = f"No container has a limit for {text.removeprefix('HugePages-')} (limits: {written})."
        fix = f"Write {edits[0].text}." if edits else "Add the limit, or name the size that the container asks for."
        notes.problem(MEDIUM_NOT_ASKED, medium.start, text, said, fix, *edits)


def _mounts(spec: Tree, names: set[str | None], notes: Notes) -> None:
    for container in _containers(spec):
        mounts = container.get("volumeMounts")
        for mount in () if mounts is None else mounts.elements():
            name = mount.get_text("name") or ""
            if "huge" in name.lower() and name not in names:
                said = f"The pod has no volume {name}."
                fix = f"Add a volume {name} with emptyDir and medium: HugePages-2Mi."
                notes.problem(MOUNT_WITHOUT_VOLUME, mount.start, name, said, fix)
