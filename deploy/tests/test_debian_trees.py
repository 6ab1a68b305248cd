"""A tree that cannot be made is a failure with its reason where root and debootstrap are: it hides no test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import container_rig
import nspawn_rig
from clone_images import built_images

SAYS = "#!/bin/sh\necho 'I: retrieving'; echo 'E: Failed getting release file' >&2; exit 1\n"


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A debootstrap that reaches no archive; its cache is empty."""
    if os.geteuid() != 0:
        pytest.skip("SKIP: only root makes trees")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/debootstrap"
    program.write_text(SAYS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path


def test_of_machines(failing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        nspawn_rig._require()
    except nspawn_rig.NotAvailableError as error:
        pytest.skip(f"SKIP: {error}")
    monkeypatch.setattr(nspawn_rig, "CACHE", failing / "cache")
    with pytest.raises(AssertionError, match=r"debootstrap of trixie ended with status 1: .*Failed getting release"):
        nspawn_rig.made(nspawn_rig.CLEAN)


def test_of_base_images(failing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as ``built_images`` tells of an engine that is not there, which its users skip for."""
    monkeypatch.setattr(container_rig, "CACHE", failing)
    engine = container_rig.Engine("podman", ("false",), ("false",), {}, stand_ins=True)
    monkeypatch.setattr("clone_images.find_engine", lambda **_: container_rig._make_stand_ins(engine))
    with (
        pytest.raises(AssertionError, match=r"debootstrap of trixie ended with status 1: .*Failed getting release"),
        built_images(failing / "clone"),
    ):
        pytest.fail("no image can be there")
