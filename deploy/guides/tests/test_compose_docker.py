"""docs/install-compose.md with a real Docker engine and Compose 2; with podman the suite `containers` does the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from clone_images import built_images
from compose_service import Service, walk_the_guide
from container_rig import RigError
from docker_engine import docker_engine


def test_the_guide_with_docker(tmp_path: Path) -> None:
    try:
        with docker_engine(tmp_path) as engine:
            (tmp_path / "clone").mkdir()
            with built_images(tmp_path / "clone", engine=engine) as built:
                if isinstance(built, str):
                    pytest.skip(f"SKIP: {built}")
                print(
                    engine.run("version", "--format", "{{.Server.Version}}").stdout,
                    engine.compose_run("version").stdout,
                )
                walk_the_guide(Service(built), tmp_path / "typed")
    except RigError as error:
        pytest.skip(f"SKIP: {error}")
