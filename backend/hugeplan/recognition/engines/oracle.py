"""Oracle Database in a container: the images' INIT_SGA_SIZE and INIT_PGA_SIZE, in MB."""

from __future__ import annotations

from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading
from hugeplan.recognition.images import any_version

_VARIABLES = {"INIT_SGA_SIZE": "sga_target", "INIT_PGA_SIZE": "pga_aggregate_target", "INIT_PROCESSES": "processes"}


def read(container: ContainerView) -> Reading:
    """The image's variables; the server parameter file lies in the volume, where the input cannot see."""
    settings = {}
    for name, setting in _VARIABLES.items():
        value = container.environment.get(name)
        if value is not None:
            settings[setting] = f"{value}M" if value.isdigit() and setting != "processes" else value
    if "sga_target" in settings:
        settings["sga_max_size"] = settings["sga_target"]
    return Reading.of("environment", settings)


ENGINE = ContainerEngine(
    engine="oracle",
    programs=frozenset({"runOracle.sh"}),
    images=frozenset({"oracle-xe", "oracle-free", "oracle-database", "oracledb", "database-enterprise"}),
    read=read,
    version_of_image=lambda image: any_version(image.tag),
    main_setting="sga_target",
)
