"""What an earlier plan may have left on a node that writes counts at boot: one file speaks, the others step aside."""

from __future__ import annotations

from typing import Final

from hugeplan.artifacts import kernel_command_line, numa_files, sysctl, systemd_unit
from hugeplan.artifacts.base import mark

#: kind -> its file, and commands before it goes, after it went and after it came back.
_WRITERS: Final = {
    "kernel_command_line": (kernel_command_line.PATH, "", kernel_command_line.UPDATE, kernel_command_line.UPDATE),
    # What engines ask for stays.
    "sysctl": (sysctl.PATH, "", "grep -v hugepages {kept} > {path}", ""),
    "tmpfiles": (numa_files.TMPFILES_PATH, "", "", ""),
    "systemd_unit": (
        systemd_unit.PATH,
        f"systemctl disable {systemd_unit.NAME}",
        "",
        f"systemctl daemon-reload; systemctl enable {systemd_unit.NAME}",
    ),
}


def others_aside(kind: str, content: str) -> tuple[str, str]:
    """Commands that put the files of all other kinds aside, under a name of this file's own, and those that put them
    back.
    """
    away, back = [], []
    for path, before, after, returned in (row for other, row in _WRITERS.items() if other != kind):
        kept = f"{path}.before-{mark(content)}"
        gone = [before, f"mv {path} {kept}", after.format(kept=kept, path=path)]
        come = [f"mv {kept} {path}", returned]
        away.append(f"if grep -qs hugepages {path}; then {'; '.join(filter(None, gone))}; fi")
        back.append(f"if test -e {kept}; then {'; '.join(filter(None, come))}; fi")
    return "\n".join(away), "\n".join(back)
