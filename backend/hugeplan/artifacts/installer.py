"""The program that installs files and takes them back: one file of a bundle, which the commands of the others call."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

from hugeplan.artifacts.base import INSTALLER, Artifact

KIND: Final = "installer"
#: These carry the program by themselves.
_CARRY: Final = {"ansible_playbook", "cloud_config"}


@cache
def text() -> str:
    """The program, for any POSIX shell; :func:`as_user` needs bash."""
    return files("hugeplan.artifacts").joinpath("hugeplan-file").read_text()


def is_needed(artifacts: Iterable[Artifact]) -> bool:
    """Whether a command of these files calls the program."""
    return any(a.kind not in _CARRY and INSTALLER in a.install + a.verify + a.rollback for a in artifacts)


def render() -> Artifact:
    """The program as a file of a bundle."""
    return Artifact(
        kind=KIND,
        filename="hugeplan-file",
        path=INSTALLER,
        media_type="text/x-shellscript",
        content=text(),
        summary="Installs the other files and takes them back: what stood in their place is kept beside them.",
        install=f"install -m 0755 hugeplan-file {INSTALLER}",
        verify=f"test -x {INSTALLER}",
        rollback="# It stays: the ways back of other plans call it.",
        avoid_when="A tool of your own installs the files, and takes them back.",
    )
