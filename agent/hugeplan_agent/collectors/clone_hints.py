"""Two machines with one machine id (a cloned disk image) differ here. Only hashes leave the node."""

from __future__ import annotations

import hashlib
import re

from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import about, array, optional, record, ref

DMI = "sys/class/dmi/id"
DMI_FILES = ("product_uuid", "product_serial", "board_serial")
DEVICES = "sys/class/net"
ADDRESS = re.compile(r"(?:[0-9a-f]{2}:)+[0-9a-f]{2}")
PERMANENT = "0"
"""addr_assign_type of an address that the hardware brought. Source: Documentation/ABI/testing/sysfs-class-net."""


def digest(machine_id: str, kind: str, value: str) -> str:
    """SHA-256 keyed by the machine id: comparable among reports of one id, useless for finding other machines."""
    return hashlib.sha256(f"hugeplan {kind} {machine_id} {value}".encode()).hexdigest()


def hardware_addresses(host: Host) -> list[str] | None:
    """Permanent addresses of physical network devices (those with a bus behind them); None without the folder."""
    try:
        names = host.names(DEVICES)
    except NoData:
        return None
    found = set()
    for name in names:
        if not host.path(f"{DEVICES}/{name}/device").exists():
            continue
        address = (host.read_optional(f"{DEVICES}/{name}/address") or "").strip().lower()
        is_permanent = (host.read_optional(f"{DEVICES}/{name}/addr_assign_type") or PERMANENT).strip() == PERMANENT
        if is_permanent and ADDRESS.fullmatch(address) and set(address) - set("0:"):
            found.add(address)
    return sorted(found)


def collect(host: Host) -> Fragment:
    key = (host.read_optional("etc/machine-id") or "").strip()
    firmware = [(host.read_optional(f"{DMI}/{name}") or "").strip() for name in DMI_FILES]
    addresses = hardware_addresses(host)
    if not any(firmware) and not addresses:
        raise NoData("no firmware id and no hardware address is readable")
    hints = {
        "dmi_sha256": digest(key, "dmi", "\n".join(firmware)) if any(firmware) else None,
        "mac_sha256": None if addresses is None else sorted(digest(key, "mac", address) for address in addresses),
    }
    note = None if all(firmware) else f"not readable: {', '.join(n for n, v in zip(DMI_FILES, firmware) if not v)}"
    return Fragment({"clone_hints": hints}, note=note)


COLLECTOR = Collector(
    collect,
    inventory={"clone_hints": ref("clone_hints")},
    definitions={
        "clone_hints": about(
            record(
                {
                    "dmi_sha256": about(
                        ref("sha256"), "Of the firmware's product_uuid, product_serial and board_serial, where readable"
                    ),
                    "mac_sha256": about(
                        optional(array(ref("sha256"), 64)),
                        "Of each permanent address of a physical network device, sorted",
                    ),
                }
            ),
            "Two machines with one machine_id differ here. SHA-256 of machine_id and the value; the value"
            " itself does not leave the node",
        ),
        "sha256": {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
    },
)
