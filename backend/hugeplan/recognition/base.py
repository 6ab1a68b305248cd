"""What recognition reads and what it says, for every engine and operator.

Input is a container of a pod as the API server describes it, and :class:`Objects`, the other objects of the same
input (ConfigMaps and custom resources). Output is a :class:`Recognised` database: what the plan can be fed with, and
where each value was read. Nothing is guessed: a setting that the input does not hold is absent, and ``unknown`` says
so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hugeplan.planner.model import Confidence
from hugeplan.recognition.images import Image, leading_version

#: Names of Kubernetes' ``valueFrom`` variables have no value in a pod specification.
EnvironmentValue = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedFile:
    """A file that a ConfigMap puts into a container: its full path and its text."""

    path: str
    text: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """A container of a pod. Sizes in bytes; ``huge_pages_limit_bytes`` by page size."""

    name: str
    image: str
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, EnvironmentValue] = field(default_factory=dict)
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None
    huge_pages_limit_bytes: Mapping[int, int] = field(default_factory=dict)
    files: Sequence[MountedFile] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Command and arguments as one list."""
        return (*self.command, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod: where it runs, its labels, and its containers."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    containers: tuple[ContainerView, ...]
    owner_kind: str | None = None
    owner_name: str | None = None
    owner_group: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A custom resource by group, kind and name; it lies in the pod's namespace."""

    group: str
    kind: str
    name: str


class Objects:
    """Custom resources of the input, by group, kind, namespace and name; the version is left out."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str, str], Mapping[str, Any]] = {}
        self._readings: dict[Hashable, Reading] = {}

    def add(self, group: str, kind: str, namespace: str, name: str, resource: Mapping[str, Any]) -> None:
        """Keep one resource. The last one of a name counts."""
        self._resources[group, kind, namespace, name] = resource

    def get(self, reference: Reference, namespace: str) -> Mapping[str, Any] | None:
        """The resource, or None when the input does not hold it."""
        return self._resources.get((reference.group, reference.kind, namespace, reference.name))

    def once(self, key: Hashable, read: Callable[[], Reading]) -> Reading:
        """What ``read`` finds under a key, read once: an object has a megabyte and may say it of thousands of pods."""
        if key not in self._readings:
            self._readings[key] = read()
        return self._readings[key]

    def __len__(self) -> int:
        return len(self._resources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one place says of an engine: settings as the engine spells them, each with where it was read."""

    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        source: str,
        settings: Mapping[str, str],
        *,
        version: str | None = None,
        unknown: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Reading:
        """A reading whose settings all come from one place."""
        return cls(
            version=version,
            settings=dict(settings),
            sources=dict.fromkeys(settings, source),
            unknown=unknown,
            notes=notes,
        )

    def over(self, weaker: Reading) -> Reading:
        """This reading where it says something, else the weaker one."""
        return Reading(
            version=self.version or weaker.version,
            settings={**weaker.settings, **self.settings},
            sources={**weaker.sources, **self.sources},
            unknown=(*self.unknown, *weaker.unknown),
            notes=(*self.notes, *weaker.notes),
        )


NOTHING: Final = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """A database in a container.

    ``engine`` is a name of the planner's registry. ``source`` says what gave it away; ``sources`` says, per setting,
    where its value was read. ``confidence`` is high where an operator's label or a server's command says so, medium
    for a known image, low for a name alone. ``complete`` is False when more settings lie where the input cannot see.
    ``limits_in``: where the operator takes the container's limits from; None where that is the pod's own template.
    ``resource`` is the operator's object that exists for the pod, None where the input does not tell which one it is;
    ``instance_set`` is the pod's set in it.
    """

    engine: str
    container: str
    version: str | None
    settings: Mapping[str, str]
    sources: Mapping[str, str]
    source: str
    confidence: Confidence
    complete: bool
    operator: str | None = None
    limits_in: str | None = None
    cluster: str | None = None
    resource: Reference | None = None
    instance_set: str | None = None
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEngine:
    """A row of the table of engines: how a container of it looks, and how its settings are read.

    ``programs`` are the base names of the server's program. ``images`` are image names without registry and tag.
    ``read`` gets the container and answers what its command, environment and files say. ``is_server`` tells, from the
    words of the command, a server from another use of the same image.
    """

    engine: str
    programs: frozenset[str]
    images: frozenset[str]
    read: Callable[[ContainerView], Reading]
    main_setting: str | None
    version_of_image: Callable[[Image], str | None] = lambda image: leading_version(image.tag)
    is_server: Callable[[Sequence[str]], bool] = lambda _: True


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """How a custom resource is patched: the artifact's kind, the API's version, kubectl's plural, and what to heed."""

    kind: str
    version: str
    plural: str
    comments: tuple[str, ...] = ()
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """Where an operator's object holds what decides about huge pages; paths begin below ``spec``.

    ``sets`` is a list of instance sets, each with its own ``resources``; a pod's label ``set_label`` names its set.
    ``labels``: only pods with one of these are of this object, where an operator has more than one. Settings stand as a
    map in ``parameters`` or as a whole my.cnf in ``option_file``. ``version`` and ``image`` say which server it is.
    With ``texts_only`` the definition takes parameters as strings alone; with ``known_resources_only`` the operator
    drops resources whose names it does not know. ``resources`` None: the linter passes the object over, because its
    limits stand elsewhere; ``limits_words`` and ``settings_words`` say where, for a person who writes them.
    """

    group: str
    kind: str
    title: str = ""
    sets: tuple[str, ...] = ()
    set_label: str | None = None
    labels: tuple[str, ...] = ()
    resources: tuple[str, ...] | None = None
    parameters: tuple[str, ...] = ()
    option_file: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    image: tuple[str, ...] = ()
    replicas: tuple[str, ...] = ()
    limits_words: str | None = None
    settings_words: str | None = None
    texts_only: bool = False
    known_resources_only: bool = False
    patch: Patch | None = None

    @property
    def limits_in(self) -> str | None:
        """The field that the container's limits come from; None where that is not known."""
        if self.limits_words is not None:
            return self.limits_words
        sets = f"{'.'.join(self.sets)}[]" if self.sets else ""
        return None if self.resources is None else ".".join(part for part in ("spec", sets, *self.resources) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator: how its pods are recognised, how its objects are read, linted and patched.

    The first of ``labels`` that a pod has is the name of the object; pods without any are not the operator's.
    ``is_server`` tells the engine's pods from the others with the label. Operators whose names are found in another way
    have ``references``, which is empty where the pod is not the operator's. ``containers`` are the names of the
    engine's container. ``read`` is for objects whose settings stand in no one field; it looks at no more of the pod
    than ``read_labels``. Without ``labels_suffice`` the
    labels are too common to tell: the pod is the operator's only with its object. ``switches_huge_pages``: it sets
    huge_pages to off in a pod without a huge page limit. ``computes`` is a setting that it works out of the container's
    memory where the object has none.
    """

    name: str
    engine: str
    labels: tuple[str, ...]
    resources: tuple[CustomResource, ...]
    containers: frozenset[str] = frozenset()
    is_server: Callable[[PodView], bool] = lambda _: True
    references: Callable[[PodView], Sequence[Reference]] | None = None
    read: Callable[[Mapping[str, Any], PodView], Reading] | None = None
    read_labels: tuple[str, ...] = ()
    defaults: Callable[[PodView], Reading] = lambda _: NOTHING
    labels_suffice: bool = True
    switches_huge_pages: bool = False
    computes: str | None = None

    def referenced(self, pod: PodView) -> Sequence[Reference]:
        """The custom resources that may describe the pod; none where the pod is not the operator's."""
        if self.references is not None:
            return self.references(pod)
        name = label(pod, *self.labels)
        if name is None or not self.is_server(pod):
            return ()
        return [
            Reference(row.group, row.kind, name)
            for row in self.resources
            if not row.labels or label(pod, *row.labels) is not None
        ]


def inside(resource: Mapping[str, Any] | None, *path: str) -> Any:
    """``resource[path[0]][path[1]]...``, or None where a step is missing or is not an object."""
    found: Any = resource
    for step in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(step)
    return found


def text_map(value: Any) -> dict[str, str]:
    """An object's scalar entries as text, as a configuration file would say them; other entries are left out."""
    if not isinstance(value, Mapping):
        return {}
    return {str(name): scalar_text(one) for name, one in value.items() if isinstance(one, str | int | float | bool)}


def scalar_text(value: str | int | float | bool) -> str:
    """``true`` of JSON is ``on`` in a configuration file."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def label(pod: PodView, *names: str) -> str | None:
    """The first of these labels that the pod has."""
    return next((pod.labels[name] for name in names if pod.labels.get(name)), None)
