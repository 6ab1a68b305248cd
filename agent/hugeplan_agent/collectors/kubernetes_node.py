"""What the API server says of this node: capacity, allocatable, the kubelet's configuration, the names of its pods.

Asked only inside a pod that has a service account token, which the chart gives with ``agent.kubernetesApi``. How it is
asked, and why nothing is watched, is in :mod:`hugeplan_agent.kubernetes_api` and ADR 0023.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hugeplan_agent.host import Host
from hugeplan_agent.kubernetes_api import ACCOUNT, MIRRORED, KubernetesApi, NotToldError, is_offered
from hugeplan_agent.schema import MAX_BYTES

__all__ = ["ACCOUNT", "NotToldError", "api_of", "configz", "is_offered", "node_status", "pod_names", "resources"]

MAX_RESOURCES = 64
TOLD = re.compile(r"memory|hugepages-\w{1,32}")
QUANTITY = re.compile(r"(\d{1,30})([KMGTPE]i|[kMGTPE]?)")
POWERS = "KMGTPE"
#: Pods are listed when a pod appears that has no name yet, and no more often than this.
PODS_SECONDS = 60.0
#: The kubelet reads its configuration when it starts; a drop-in or a restart shows after this.
CONFIGZ_SECONDS = 600.0
HASH = re.compile(r"[0-9a-f]{32}")


def quantity_bytes(text: object) -> int | None:
    """A whole quantity such as ``2Gi`` or ``65536000Ki``; None for what is none (k8s.io/apimachinery resource)."""
    match = QUANTITY.fullmatch(str(text))
    if match is None:
        return None
    suffix = match[2]
    base = 1024 if suffix.endswith("i") else 1000
    power = POWERS.index(suffix[0].upper()) + 1 if suffix else 0
    return int(match[1]) * int(base**power)


def resources(table: object) -> dict[str, int] | None:
    """Memory and huge pages of a node's capacity or allocatable, in bytes; None when there are none.

    Of the first names that a report has room for, with amounts that a machine may have.
    """
    if not isinstance(table, dict):
        return None
    names = [name for name in table if TOLD.fullmatch(str(name))][:MAX_RESOURCES]
    read = {name: quantity_bytes(table[name]) for name in names}
    return {name: value for name, value in read.items() if value is not None and value <= MAX_BYTES} or None


def api_of(host: Host, environment: Mapping[str, str]) -> KubernetesApi:
    """One client for all observations, so that it remembers when it was told to wait."""
    kept = host.kept("kubernetes api")
    if "client" not in kept:
        kept["client"] = KubernetesApi(environment)
    client: KubernetesApi = kept["client"]
    return client


def node_status(api: KubernetesApi) -> dict[str, Any]:
    """``status`` of this node's object, from the API server's cache. Raises NotToldError."""
    status = api.get(f"/api/v1/nodes/{quote(api.node_name, safe='')}", {"resourceVersion": "0"}).get("status")
    if not isinstance(status, dict):
        raise NotToldError("the API server's answer is no node")
    return status


def configz(api: KubernetesApi) -> dict[str, Any]:
    """The configuration that the kubelet runs with. Needs ``get`` on nodes/proxy. Raises NotToldError."""
    found = api.get(f"/api/v1/nodes/{quote(api.node_name, safe='')}/proxy/configz", {}).get("kubeletconfig")
    if not isinstance(found, dict):
        raise NotToldError("the kubelet's answer is no configuration")
    return found


def names_of(items: Iterable[Any]) -> dict[str, tuple[str, str]]:
    """uid -> namespace and name. A static pod's cgroup has the hash of its file, which its mirror carries.

    Whoever creates a pod may write that annotation, too, though the kubelet deletes a mirror of no static pod of its
    own: it is no listed pod's uid, and of several that say it none is it.
    """
    names: dict[str, tuple[str, str]] = {}
    mirrors: dict[str, set[tuple[str, str]]] = {}
    for item in items:
        meta = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(meta, dict):
            continue
        name = (str(meta.get("namespace") or "default"), str(meta.get("name") or ""))
        annotations = meta.get("annotations")
        mirrored = annotations.get(MIRRORED) if isinstance(annotations, dict) else None
        uid = meta.get("uid")
        if isinstance(uid, str) and name[1]:
            names[uid] = name
        if isinstance(mirrored, str) and HASH.fullmatch(mirrored) and name[1]:
            mirrors.setdefault(mirrored, set()).add(name)
    return {**{one: min(said) for one, said in mirrors.items() if len(said) == 1}, **names}


@dataclass
class _Kept:
    """The last list of pods, and when it was read or tried."""

    names: dict[str, tuple[str, str]]
    tried_at: float


def pod_names(host: Host, environment: Mapping[str, str], wanted: Collection[str]) -> dict[str, tuple[str, str]]:
    """Namespace and name of this node's pods by uid; what was known before while the API server does not tell."""
    kept = host.kept("kubernetes pods")
    last: _Kept | None = kept.get("last")
    now = time.monotonic()
    if last is None:
        last = kept["last"] = _Kept({}, now - PODS_SECONDS)
    if now - last.tried_at >= PODS_SECONDS and any(uid not in last.names for uid in wanted):
        last.tried_at = now
        try:
            api = api_of(host, environment)
            last.names = names_of(
                api.list_metadata("/api/v1/pods", {"fieldSelector": f"spec.nodeName={api.node_name}"})
            )
        except NotToldError as error:
            kept["refused"] = str(error)
        else:
            kept.pop("refused", None)
    return last.names


def pods_note(host: Host) -> str | None:
    """Why pods have no names, when the API server was asked and did not tell."""
    refused = host.kept("kubernetes pods").get("refused")
    return None if refused is None else f"names of pods: {refused}"
