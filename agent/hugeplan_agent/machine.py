"""Who this node is: a stable machine id and a name for people."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from hugeplan_agent.host import Host
from hugeplan_agent.ownership import inherit

HEX_ID = re.compile(r"[0-9a-f]{32}")


def machine_id(host: Host, state_dir: Path) -> str:
    """The machine id of systemd or D-Bus, else the firmware's UUID, else one made once and kept in ``state_dir``.

    Raises OSError when an id must be made and the folder cannot be written.
    """
    for name in ("etc/machine-id", "var/lib/dbus/machine-id"):
        text = (host.read_optional(name) or "").strip().lower()
        if HEX_ID.fullmatch(text):
            return text
    firmware = (host.read_optional("sys/class/dmi/id/product_uuid") or "").strip().lower()
    if HEX_ID.fullmatch(firmware.replace("-", "")) and len(set(firmware)) > 2:  # some boards ship all zeros or all F
        return firmware
    kept = state_dir / "machine-id"
    if kept.exists():
        return kept.read_text(encoding="ascii").strip()
    made = uuid.uuid4().hex
    kept.write_text(f"{made}\n", encoding="ascii")
    inherit(kept)
    return made


def node_name(host: Host, given: str | None) -> str:
    """The name people use: what was given, else the kernel's host name, else ``unnamed``.

    Below a mounted root the file comes first: the kernel names whoever asks, there a container that is gone tomorrow.
    """
    files = ["proc/sys/kernel/hostname", "etc/hostname"]
    if host.root != Path("/"):
        files.reverse()
    names = (given or "", *((host.read_optional(file) or "") for file in files))
    return next((name.strip() for name in names if name.strip()), "unnamed")


def boot_id(host: Host) -> str | None:
    """Changes at every boot, so that a measurement is not repeated within one."""
    return host.read_optional("proc/sys/kernel/random/boot_id")
