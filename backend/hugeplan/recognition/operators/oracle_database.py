"""Oracle Database Operator: ``SingleInstanceDatabase`` with ``spec.initParams`` in MB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.images import any_version, parse_image

_GROUP: Final = ("database.oracle.com", "SingleInstanceDatabase")
_SIZES: Final = {"sgaTarget": "sga_target", "pgaAggregateTarget": "pga_aggregate_target"}


def references(pod: PodView) -> Sequence[Reference]:
    """The operator labels its pods with the resource's name; the image tells them from other applications."""
    name = label(pod, "app")
    oracle = any("/database/" in container.image for container in pod.containers)
    return [Reference(*_GROUP, name)] if name is not None and oracle else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """Initialisation parameters; 0 leaves a size to the database."""
    parameters = inside(resource, "spec", "initParams")
    settings: dict[str, str] = {}
    if isinstance(parameters, Mapping):
        for name, setting in _SIZES.items():
            if parameters.get(name):
                settings[setting] = f"{parameters[name]}M"
        if parameters.get("processes"):
            settings["processes"] = str(parameters["processes"])
    if "sga_target" in settings:
        settings["sga_max_size"] = settings["sga_target"]
    image = inside(resource, "spec", "image", "pullFrom")
    version = any_version(parse_image(image).tag) if isinstance(image, str) else None
    return Reading.of("SingleInstanceDatabase spec.initParams", settings, version=version)


OPERATOR = Operator(
    name="Oracle Database Operator",
    engine="oracle",
    labels=("app",),
    references=references,
    containers=frozenset(),
    read=read,
    resources=(_GROUP,),
    labels_suffice=False,
)
