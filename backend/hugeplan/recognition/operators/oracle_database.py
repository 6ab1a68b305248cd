"""Oracle Database Operator: ``SingleInstanceDatabase`` with ``spec.initParams`` in MB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reading, inside
from hugeplan.recognition.images import any_version, parse_image

_SIZES: Final = {"sgaTarget": "sga_target", "pgaAggregateTarget": "pga_aggregate_target"}


def read(resource: Mapping[str, Any], _: PodView) -> Reading:
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
    is_server=lambda pod: any("/database/" in container.image for container in pod.containers),
    read=read,
    resources=(CustomResource(group="database.oracle.com", kind="SingleInstanceDatabase"),),
    labels_suffice=False,
)
