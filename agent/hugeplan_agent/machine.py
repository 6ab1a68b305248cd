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
    """The name people use: what was given, else the kernel's host name, else ``unnamed``."""
    name = given or host.read_optional("proc/sys/kernel/hostname") or host.read_optional("etc/hostname") or ""
    return name.strip() or "unnamed"


def boot_id(host: Host) -> str | None:
    """Changes at every boot, so that a measurement is not repeated within one."""
    return host.read_optional("proc/sys/kernel/random/boot_id")
