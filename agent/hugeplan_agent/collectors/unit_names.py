"""What a cgroup's path says about the unit of work in it. Pure functions.

Sources: the kubelet's cgroup names (pkg/kubelet/cm/pod_container_manager_linux.go, cgroup_manager_linux.go), systemd's
(systemd.slice(5), systemd.scope(5)), and those of containerd, CRI-O, Docker and Podman.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

POD = re.compile(r"(?:[\w-]*-)?pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})(?:\.slice)?")
CONTAINER_SCOPE = re.compile(r"(cri-containerd|crio|docker|libpod|nerdctl|containerd)-([0-9a-f]{64})\.scope")
BARE_ID = re.compile(r"[0-9a-f]{64}")
LXC = re.compile(r"lxc(?:\.payload)?[./](.+)")
RUNTIMES = {
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "docker": "docker",
    "libpod": "podman",
}
MAX_KEY = 512
HELPERS = re.compile(r"crio-conmon-.*|libpod-conmon-.*|libpod_parent")


@dataclass(frozen=True)
class UnitName:
    """What one cgroup is: its kind, the key of its unit, and how people call it."""

    kind: str
    key: str
    name: str
    pod_uid: str | None = None
    qos_class: str | None = None
    container_id: str | None = None
    runtime: str | None = None


def name_of(path: str) -> UnitName | None:
    """The unit in the cgroup at ``path``; None for folders that only hold others (slices, kubepods)."""
    *above, last = [part for part in path.split("/") if part] or [""]
    # A kubelet with a --cgroup-root (kind's has /kubelet) puts the root's name before it where systemd makes cgroups.
    in_kubernetes = any(part.startswith("kubepods") or "-kubepods" in part for part in [*above, last])
    if in_kubernetes and (match := POD.fullmatch(last)):
        uid = match[1].replace("_", "-")  # systemd reads a hyphen as a step down
        return UnitName("pod", f"pod:{uid}", f"pod {uid}", pod_uid=uid, qos_class=_qos(path))
    if HELPERS.fullmatch(last):
        return None
    return _container_name(above, last, in_kubernetes) or _systemd_name(above, last)


def share_of(path: str) -> str:
    """The part of a path that whoever runs below it cannot change without root: an account's slice, a pod, a container,
    a service, else two levels. What a user makes below a cgroup that was given to it is in one share."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    most = 8 if path.lstrip("/.").startswith("kube") else 2  # Kubernetes nests its own folders
    heads = ["/".join(parts[: end + 1]) for end in range(len(parts[:most]))]
    return next((head for head in heads if name_of(head) is not None), heads[-1] if heads else "")


def _container_name(above: list[str], last: str, in_kubernetes: bool) -> UnitName | None:
    if match := CONTAINER_SCOPE.fullmatch(last):
        return _container(match[2], RUNTIMES[match[1]])
    if BARE_ID.fullmatch(last):
        return _container(last, _runtime_of(above, in_kubernetes))
    if match := LXC.fullmatch("/".join([*above[-1:], last]) if above[-1:] == ["lxc"] else last):
        return UnitName("container", f"container:lxc/{match[1]}", match[1], runtime="lxc")
    return None


def _systemd_name(above: list[str], last: str) -> UnitName | None:
    # The system's units lie in slices alone. One below something else (a user's service, a cgroup that was given to
    # somebody) may have any name.
    below = [part for part in above if not part.endswith(".slice")]
    key = f"systemd:{'/'.join([*below, last])}"[:MAX_KEY]
    if last.endswith(".service"):
        return UnitName("systemd_service", key, last)
    return UnitName("systemd_scope", key, last) if last.endswith(".scope") else None


def _container(container_id: str, runtime: str | None) -> UnitName:
    return UnitName(
        "container",
        f"container:{container_id}",
        f"container {container_id[:12]}",
        container_id=container_id,
        runtime=runtime,
    )


def _qos(path: str) -> str:
    """Guaranteed pods lie directly below kubepods."""
    if "besteffort" in path:
        return "BestEffort"
    return "Burstable" if "burstable" in path else "Guaranteed"


def _runtime_of(above: list[str], in_kubernetes: bool) -> str | None:
    if "docker" in above:
        return "docker"
    if any(part.startswith("libpod") for part in above):
        return "podman"
    return None if in_kubernetes or not above else {"containerd": "containerd", "default": "containerd"}.get(above[-1])
