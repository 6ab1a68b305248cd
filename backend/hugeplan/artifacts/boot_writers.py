"""What an earlier plan may have left on a node that writes counts at boot: one file speaks, the others step aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hugeplan.artifacts import kernel_command_line
from hugeplan.artifacts.base import INSTALLER, Artifact, mark

_REBOOT: Final = " &&\nreboot"


def alone(artifact: Artifact, path: str) -> tuple[str, Artifact]:
    """The command that puts the counts of all other kinds aside; and the file at ``path``, whose own commands do so,
    and put them back.
    """
    file = f"{mark(artifact.content)} {path}"
    away = f"{INSTALLER} alone {file}"
    # They go when this one is in its place: what ends before that leaves what reserved the pages so far.
    install, reboots, _ = artifact.install.partition(_REBOOT)
    install += f" &&\n{away}" + reboots
    if artifact.kind == "kernel_command_line":
        install = kernel_command_line.where_read(install)
    rollback = artifact.rollback.replace(f"{INSTALLER} back {file}", f"{INSTALLER} back-alone {file}")
    return away, replace(artifact, install=install, rollback=rollback)
