"""The processor and the machine around it: names and numbers as the kernel prints them, hypervisor, base page size."""

from __future__ import annotations

import os
import platform
import re
import time
from typing import Any

from hugeplan_agent.collectors.keyvalue import count_cpu_list
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import NUMBER, PAGE_BYTES, TEXT, record

HYPERVISOR_OF_VENDOR = (
    # DMI system vendor, word in the product name ("" = any), the hypervisor's name.
    ("QEMU", "", "KVM"),
    ("VMware, Inc.", "", "VMware"),
    ("Xen", "", "Xen"),
    ("Microsoft Corporation", "Virtual Machine", "Hyper-V"),
    ("Google", "Google Compute Engine", "KVM"),
    ("DigitalOcean", "", "KVM"),
)


def parse_cpuinfo(text: str) -> dict[str, str]:
    """The first processor's entries of /proc/cpuinfo, keys in lower case; machine-wide entries included."""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            entries.setdefault(key.strip().lower(), value.strip())
    return entries


def _number(text: str | None) -> int | None:
    try:
        return int(text, 0) if text else None
    except ValueError:
        return None


def processor(entries: dict[str, str]) -> dict[str, Any]:
    """Vendor, numbers and brand. Family and model are x86 words; Arm and POWER leave them null."""
    is_x86 = "cpu family" in entries
    brand = entries.get("model name") or entries.get("cpu") or entries.get("uarch")
    return {
        "vendor": entries.get("vendor_id") or entries.get("cpu implementer"),
        "family": _number(entries.get("cpu family")),
        "model": _number(entries.get("model")) if is_x86 else None,
        "stepping": _number(entries.get("stepping")),
        "brand": brand,
        "part": entries.get("cpu part"),
        "revision": entries.get("revision"),
    }


def virtualised(host: Host, entries: dict[str, str]) -> bool | None:
    """True in a guest, False on x86 whose processor shows no hypervisor bit, None where nothing says."""
    if host.read_optional("sys/hypervisor/type") or host.path("proc/device-tree/hypervisor").exists():
        return True
    if "flags" in entries:
        return "hypervisor" in entries["flags"].split()
    return None


def hypervisor_name(host: Host) -> str | None:
    """The hypervisor's name where the firmware or the kernel tells it."""
    kind = host.read_optional("sys/hypervisor/type")
    if kind:
        return kind.strip().capitalize()
    vendor = (host.read_optional("sys/class/dmi/id/sys_vendor") or "").strip()
    product = (host.read_optional("sys/class/dmi/id/product_name") or "").strip()
    for known, word, name in HYPERVISOR_OF_VENDOR:
        if vendor == known and word in product:
            return name
    return None


def base_page_bytes(host: Host) -> int:
    """The kernel's base page. The tree's own smaps decides, since a captured machine may differ from this one."""
    kept = host.kept("base page")
    if "bytes" not in kept:
        match = re.search(r"^KernelPageSize:\s+(\d+) kB$", host.read_optional("proc/self/smaps") or "", re.MULTILINE)
        kept["bytes"] = int(match[1]) * 1024 if match else os.sysconf("SC_PAGE_SIZE")
    return int(kept["bytes"])


def online_cpus(host: Host) -> int | None:
    text = host.read_optional("sys/devices/system/cpu/online")
    try:
        return count_cpu_list(text) if text else None
    except ValueError:
        return None


REREAD_SECONDS = 3600.0
"""Reading /proc/cpuinfo wakes every processor of a large machine to ask for its frequency."""


def cpuinfo(host: Host) -> dict[str, str]:
    """The first processor's entries, read again each hour."""
    kept = host.kept("cpuinfo")
    if not kept or time.monotonic() - kept["read at"] > REREAD_SECONDS:
        kept.update({"entries": parse_cpuinfo(host.read("proc/cpuinfo")), "read at": time.monotonic()})
    entries: dict[str, str] = kept["entries"]
    return entries


def collect(host: Host) -> Fragment:
    entries = cpuinfo(host)
    inside = virtualised(host, entries)
    return Fragment(
        {
            "architecture": (host.read_optional("proc/sys/kernel/arch") or platform.machine()).strip(),
            "cpu": {**processor(entries), "online": online_cpus(host)},
            "virtualised": inside,
            "hypervisor": hypervisor_name(host) if inside else None,
            "base_page_bytes": base_page_bytes(host),
        }
    )


COLLECTOR = Collector(
    collect,
    inventory={
        "architecture": {"type": "string", "minLength": 1, "maxLength": 64},
        "cpu": record(
            {
                "vendor": TEXT,
                "family": NUMBER,
                "model": NUMBER,
                "stepping": NUMBER,
                "brand": TEXT,
                "part": TEXT,
                "revision": TEXT,
                "online": NUMBER,
            }
        ),
        "virtualised": {"type": ["boolean", "null"]},
        "hypervisor": TEXT,
        "base_page_bytes": PAGE_BYTES,
    },
)
