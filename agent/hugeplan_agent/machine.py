"""Who this node is: a stable machine id and a name for people."""

from __future__ import annotations

import errno
import re
import uuid
from pathlib import Path

from hugeplan_agent.errors import AgentError
from hugeplan_agent.host import Host
from hugeplan_agent.whole_files import read_file, replace_file

HEX_ID = re.compile(r"[0-9a-f]{32}")
KEPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{3,127}")
"""What the server takes."""
NO_FILE = (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.EFBIG)


def machine_id(host: Host, state_dir: Path) -> str:
    """The machine id of systemd or D-Bus, else the firmware's UUID, else one made once and kept in ``state_dir``.

    Raises AgentError when an id must be made and the folder cannot be written.
    """
    for name in ("etc/machine-id", "var/lib/dbus/machine-id"):
        text = (host.read_optional(name) or "").strip().lower()
        if HEX_ID.fullmatch(text):
            return text
    firmware = (host.read_optional("sys/class/dmi/id/product_uuid") or "").strip().lower()
    if HEX_ID.fullmatch(firmware.replace("-", "")) and len(set(firmware)) > 2:  # some boards ship all zeros or all F
        return firmware
    kept = state_dir / "machine-id"
    try:
        found = read_file(kept).decode("ascii", errors="replace").strip()
        if KEPT_ID.fullmatch(found):
            return found
    except OSError as error:
        if error.errno not in NO_FILE:  # an id that is there and cannot be read stays this machine's
            raise AgentError(f"{kept} cannot be read: {error.strerror}") from error
    made = uuid.uuid4().hex
    try:
        replace_file(kept, f"{made}\n".encode("ascii"))
    except OSError as error:
        raise AgentError(f"{kept} cannot be written: {error.strerror}") from error
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
