"""What an earlier plan may have left on a node that writes counts at boot: one file speaks, the others step aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hugeplan.artifacts import kernel_command_line, numa_files, sysctl, systemd_unit
from hugeplan.artifacts.base import Artifact, mark

_UPDATE: Final = kernel_command_line.UPDATE
#: kind -> its file, and commands before it goes, by which it goes and after it came back.
_WRITERS: Final = {
    "kernel_command_line": (kernel_command_line.PATH, "", f"rm {{path}}; {_UPDATE}", _UPDATE),
    # What engines ask for stays.
    "sysctl": (sysctl.PATH, "", "grep -v hugepages {path} > {path}.part; mv {path}.part {path}", ""),
    "tmpfiles": (numa_files.TMPFILES_PATH, "", "rm {path}", ""),
    "systemd_unit": (
        systemd_unit.PATH,
        f"systemctl disable {systemd_unit.NAME}; ",
        "rm {path}",
        f"systemctl daemon-reload; systemctl enable {systemd_unit.NAME}",
    ),
}


_REBOOT: Final = " &&\nreboot"


def alone(artifact: Artifact) -> tuple[str, Artifact]:
    """Commands that put the files of all other kinds aside, under a name of this file's own; and the file that writes
    the counts at boot, with these commands and those that put them back.
    """
    away, back, paths = [], [], []
    for other, (path, before, goes, returned) in _WRITERS.items():
        if other == artifact.kind:
            continue
        kept = f"{path}.before-{mark(artifact.content)}"
        gone = f"{{ test -e {kept} || ln {path} {kept}; }} && {{ {goes.format(path=path)}; }}"
        away.append(f"if grep -qs hugepages {path}; then {before}{gone}; fi")
        # An empty one: its plan was rolled back since.
        come = f"if test -s {kept}; then mv {kept} {path}; {returned or ':'}; else rm -f {kept} {path}; fi"
        back.append(f"{{ if test -e {kept} && ! grep -qs hugepages {path}; then {come}; fi; :; }} &&\n")
        paths.append(path)
    # They go when this one is in its place: what ends before that leaves what reserved the pages so far.
    install, reboots, _ = artifact.install.partition(_REBOOT)
    install += " &&\n{\n" + "\n".join(away) + "\n}" + reboots
    if artifact.kind == "kernel_command_line":
        install = kernel_command_line.where_read(install)
    rollback = artifact.rollback.replace(" &&\n", f" {' '.join(paths)} &&\n{''.join(back)}", 1)
    return "\n".join(away), replace(artifact, install=install, rollback=rollback)
