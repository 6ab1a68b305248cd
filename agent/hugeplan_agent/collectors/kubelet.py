"""The kubelet of the node: when it started, how it is configured, what it thinks the node has.

The kubelet reads the pools when it starts and never again, so its start time tells whether it can know a pool.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from hugeplan_agent.collectors import kubernetes_node
from hugeplan_agent.collectors.boot import boot_seconds, moment
from hugeplan_agent.collectors.cgroup_tree import MAX_DEPTH, main_path, parse_membership
from hugeplan_agent.collectors.engines.base import MAX_FILES, option_pairs
from hugeplan_agent.collectors.process_table import Process, clock_ticks_per_second, need_status, table_of
from hugeplan_agent.collectors.servers import arguments_of
from hugeplan_agent.collectors.simple_yaml import parse
from hugeplan_agent.collectors.unit_names import name_of
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import KNOWN_BYTES, MOMENT, NUMBER, TEXT, about, optional, record, ref

DEFAULT_FOLDER = "/var/lib/kubelet"
DEFAULT_CONFIG = "/var/lib/kubelet/config.yaml"
MAX_CONFIG_BYTES = 256 * 1024
"""Of all its files. One has a few kilobytes, but whoever calls a program kubelet names them, in every observation."""
FIELDS = (
    "cgroupDriver",
    "cgroupsPerQOS",
    "cpuManagerPolicy",
    "enforceNodeAllocatable",
    "evictionHard",
    "evictionSoft",
    "failCgroupV1",
    "failSwapOn",
    "kubeReserved",
    "maxPods",
    "memoryManagerPolicy",
    "memorySwap",
    "mergeDefaultEvictionSettings",
    "reservedMemory",
    "reservedSystemCPUs",
    "systemReserved",
    "topologyManagerPolicy",
    "topologyManagerScope",
)
"""Fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that decide on memory. Nothing else is taken."""

FLAGS = {
    "cgroup-driver": "cgroupDriver",
    "cpu-manager-policy": "cpuManagerPolicy",
    "enforce-node-allocatable": "enforceNodeAllocatable",
    "eviction-hard": "evictionHard",
    "eviction-soft": "evictionSoft",
    "kube-reserved": "kubeReserved",
    "max-pods": "maxPods",
    "memory-manager-policy": "memoryManagerPolicy",
    "reserved-memory": "reservedMemory",
    "system-reserved": "systemReserved",
    "topology-manager-policy": "topologyManagerPolicy",
}

HOLD_A_KUBELET = frozenset({"hyperkube", "k0s", "k3s", "kubelite", "rke2"})
NOBODY = str(2**32 - 1)
"""The login of what the system started."""


def read_config(text: str) -> dict[str, Any] | None:
    """The fields on the list from a KubeletConfiguration; None when the text is not one."""
    document = parse(text)
    if not isinstance(document, dict) or document.get("kind") not in (None, "KubeletConfiguration"):
        return None
    return {name: document[name] for name in FIELDS if document.get(name) is not None}


def merged(config: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """A configuration with a drop-in over it: tables are merged key by key, all else is replaced.

    Source: pkg/kubelet/kubeletconfig, the JSON merge patch (RFC 7386) of files of --config-dir in the order of names.
    """
    both = dict(config)
    for name, value in later.items():
        old = both.get(name)
        both[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return both


def config_of_flags(pairs: list[tuple[str, str | None]]) -> dict[str, Any]:
    """The same fields from the command line, whose flags win over the file."""
    return {FLAGS[name]: value for name, value in pairs if name in FLAGS and value is not None}


def parse_memory_state(text: str) -> dict[str, int] | None:
    """Capacity by resource from the memory manager's checkpoint; None unless its policy is Static.

    ``machineState`` holds, per NUMA node and resource, the total memory. Source: pkg/kubelet/cm/memorymanager/state.
    """
    try:
        state = json.loads(text)
        if state.get("policyName") != "Static":
            return None
        sums: dict[str, int] = {}
        for node in state["machineState"].values():
            for resource, table in node["memoryMap"].items():
                sums[resource] = sums.get(resource, 0) + int(table["total"])
        return kubernetes_node.resources(sums)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def started_at(host: Host, process: Process) -> str | None:
    """When a process started, from its ticks since boot; good to about a second."""
    boot = boot_seconds(host)
    if boot is None or process.start_time_ticks is None:
        return None
    return moment(boot + process.start_time_ticks / clock_ticks_per_second())


def _is_the_nodes(host: Host, process: Process) -> bool:
    """Anybody may call a program so. The node's is root's, and lives where PID 1 does: a node may be a container.

    Those of RKE1 and Talos are in a container, with the node's folder of pods: who may mount that one owns the node.
    """
    if process.user not in {0, None} or process.is_below or _is_a_persons(host, process.pid):
        return False
    # sudo waits as root under the name of a link to it. Whoever may not look into others is not told what runs.
    program = (host.read_link(f"proc/{process.pid}/exe") or "kubelet").removesuffix(" (deleted)").rpartition("/")[2]
    if "kubelet" not in program and program not in HOLD_A_KUBELET:
        return False
    if not _containers_of(host, process.pid) <= _containers_of(host, 1):
        return host.is_same_inside(f"proc/{process.pid}/root", DEFAULT_FOLDER)
    try:
        own, first = (host.state(f"proc/{pid}/root") for pid in (process.pid, 1))
    except OSError:  # this user may not look
        return True
    return os.path.samestat(own, first)


def _is_a_persons(host: Host, pid: int) -> bool:
    """Whether somebody who logged in started a process, though not the node, which may be a container."""
    who = [(_login_of(host, one), _is_in_session(host, one)) for one in (pid, 1)]
    return who[0] != who[1] and who[0] != (NOBODY, False)


def _login_of(host: Host, pid: int) -> str:
    """The user id that logged in, which no change of users changes. A kernel without audit has none."""
    return host.read_optional(f"proc/{pid}/loginuid") or NOBODY


def _is_in_session(host: Host, pid: int) -> bool:
    path = main_path(parse_membership(host.read_optional(f"proc/{pid}/cgroup") or ""))
    return path.lstrip("/.").startswith("user.slice/")


def _containers_of(host: Host, pid: int) -> set[str]:
    """The pods and containers that a process is in, by its cgroups."""
    found = set()
    for path in parse_membership(host.read_optional(f"proc/{pid}/cgroup") or "").values():
        parts = path.split("/")
        named = (name_of("/".join(parts[:end])) for end in range(2, min(len(parts), MAX_DEPTH) + 1))
        found |= {name.key for name in named if name is not None and name.kind in ("pod", "container")}
    return found


def collect(host: Host) -> Fragment:
    called = [process for process in table_of(host).by_pid.values() if process.name == "kubelet"]
    found = [process for process in called if _is_the_nodes(host, need_status(host, process))]
    if not found:
        note = f"{len(called)} processes called kubelet are not the node's" if called else None
        return Fragment(sample={"kubelet": None}, note=note)
    process = min(found, key=lambda one: one.pid)
    pairs = option_pairs(arguments_of(host, process.pid)[1:])
    options = dict(pairs)
    notes: list[str] = []
    config, source = None, None
    path = options.get("config") or DEFAULT_CONFIG
    text = _read(host, process, path, notes)
    if text is not None and len(text) > MAX_CONFIG_BYTES:
        notes.append(f"its configuration file has more than the {MAX_CONFIG_BYTES} bytes that are read")
    elif text is not None:
        config, source = read_config(text), "file"
        if config is None:
            notes.append("its configuration file is not understood")
    dropped = _drop_ins(host, process, options.get("config-dir"), notes)
    for fields in dropped:
        config = merged(config or {}, fields)
    if dropped:
        source = f"{source}, config-dir" if source else "config-dir"
    flags = config_of_flags(pairs)
    if flags:
        config, source = {**(config or {}), **flags}, f"{source}, command line" if source else "command line"
    state = _read(host, process, f"{options.get('root-dir') or DEFAULT_FOLDER}/memory_manager_state", [])
    capacity = parse_memory_state(state) if state else None
    known: dict[str, Any] = {
        "version": None,
        "capacity": capacity,
        "allocatable": None,
        "resources_source": "memory_manager_state" if capacity else None,
    }
    if kubernetes_node.is_offered(os.environ):
        known.update(_from_api(host, notes))
        told = _configuration_of_api(host, (process.pid, process.start_time_ticks), notes)
        if told is not None:
            config, source = told, "api"
    return Fragment(
        sample={
            "kubelet": {
                "pid": process.pid,
                "started_at": started_at(host, process),
                **known,
                "config": config,
                "config_source": source,
            }
        },
        note="; ".join(notes) or None,
    )


def _from_api(host: Host, notes: list[str]) -> dict[str, Any]:
    """Capacity, allocatable and version from the API server; nothing when it does not tell."""
    try:
        status = kubernetes_node.node_status(kubernetes_node.api_of(host, os.environ))
    except kubernetes_node.NotToldError as error:
        notes.append(str(error)[:200])
        return {}
    capacity = kubernetes_node.resources(status.get("capacity"))
    if capacity is None:
        return {}
    version = (status.get("nodeInfo") or {}).get("kubeletVersion")
    allocatable = kubernetes_node.resources(status.get("allocatable"))
    return {"version": version, "capacity": capacity, "allocatable": allocatable, "resources_source": "api"}


def _configuration_of_api(host: Host, running: tuple[int, int | None], notes: list[str]) -> dict[str, Any] | None:
    """The configuration that the kubelet runs with, all files and flags merged; None when it is not told.

    ``running`` tells one kubelet from the next: a new one has read its configuration anew and is asked at once.
    """
    kept = host.kept("kubelet configz")
    now = time.monotonic()
    is_new = kept.get("kubelet") != running
    if is_new or now - kept["asked_at"] >= kubernetes_node.CONFIGZ_SECONDS:
        kept["asked_at"], kept["kubelet"] = now, running
        try:
            found = kubernetes_node.configz(kubernetes_node.api_of(host, os.environ))
        except kubernetes_node.NotToldError as error:
            kept["refused"] = f"configz: {error}"[:200]
            if error.status is not None:  # told that it may not; an outage leaves what was read before
                kept.pop("found", None)
        else:
            kept["found"] = {name: found[name] for name in FIELDS if found.get(name) is not None}
            kept.pop("refused", None)
    if "refused" in kept:
        notes.append(kept["refused"])
    told: dict[str, Any] | None = kept.get("found")
    return told


def _drop_ins(host: Host, process: Process, folder: str | None, notes: list[str]) -> list[dict[str, Any]]:
    """The fields of each file of ``--config-dir`` that ends with .conf, in the order of names, as far as is read."""
    if folder is None:
        return []
    top = f"proc/{process.pid}/root"
    try:
        names = host.names_inside(top, folder) or host.names_inside("", folder)
    except NoData:
        return []
    except OSError as error:
        notes.append(f"{folder}: {(error.strerror or 'not readable').lower()}")
        return []
    found, count = [], 0
    names = [name for name in names if name.endswith(".conf")]
    for place, name in enumerate(names):
        text = _read(host, process, f"{folder}/{name}", notes)
        count += len(text or "")
        if place >= MAX_FILES or count > MAX_CONFIG_BYTES:
            notes.insert(0, f"{len(names) - place} of {len(names)} files of its config-dir are too much to read")
            break
        config = None if text is None else read_config(text)
        if config is not None:
            found.append(config)
        elif text is not None:
            notes.append(f"{name} is not understood")
    return found


def _read(host: Host, process: Process, path: str, notes: list[str]) -> str | None:
    """A file of the kubelet's, as it sees it, else at the same place on the node."""
    for top in (f"proc/{process.pid}/root", ""):
        try:
            return host.read_inside(top, path)
        except NoData:
            continue
        except OSError as error:
            notes.append(f"{path.rpartition('/')[2]}: {(error.strerror or 'not readable').lower()}")
            break
    return None


COLLECTOR = Collector(
    collect,
    sample={"kubelet": about(optional(ref("kubelet")), "null: no kubelet runs here")},
    definitions={
        "kubelet": record(
            {
                "pid": NUMBER,
                "started_at": optional(MOMENT),
                "version": TEXT,
                "capacity": about(
                    ref("resources"),
                    "node.status.capacity in bytes by resource name (memory, hugepages-2Mi, ...); null: not known"
                    " without the API",
                ),
                "allocatable": ref("resources"),
                "resources_source": {"enum": ["api", "memory_manager_state", None]},
                "config": about(
                    {"type": ["object", "null"]},
                    "Fields of KubeletConfiguration by their own names: memory, reservation, eviction and manager"
                    " policies only",
                ),
                "config_source": about(
                    {"type": ["string", "null"], "maxLength": 64},
                    "file, config-dir, command line, api: those that were merged, later ones win",
                ),
            }
        ),
        "resources": {"type": ["object", "null"], "additionalProperties": KNOWN_BYTES, "maxProperties": 256},
    },
)
