"""What the API server says of this node: capacity and allocatable, as its kubelet reported them.

Asked only inside a pod that has a service account token, which the chart gives with ``agent.kubernetesApi``. The answer
may come from the API server's cache (``resourceVersion=0``), so that many agents cost it little.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_SECONDS = 5
MAX_ANSWER_BYTES = 4 << 20
TOLD = re.compile(r"memory|hugepages-\w+")
QUANTITY = re.compile(r"(\d+)([KMGTPE]i|[kMGTPE]?)")
POWERS = "KMGTPE"


class NotToldError(Exception):
    """The API server did not answer the question; the text says why."""


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
    """Memory and huge pages of a node's capacity or allocatable, in bytes; None when there are none."""
    if not isinstance(table, dict):
        return None
    read = {name: quantity_bytes(value) for name, value in table.items() if TOLD.fullmatch(str(name))}
    return {name: value for name, value in read.items() if value is not None} or None


def is_offered(environment: Mapping[str, str], account: Path = ACCOUNT) -> bool:
    """Whether this process runs in a pod that may ask the API server for its node."""
    wanted = ("KUBERNETES_SERVICE_HOST", "HUGEPLAN_AGENT_NODE_NAME")
    return all(environment.get(name) for name in wanted) and (account / "token").is_file()


def node_status(environment: Mapping[str, str], account: Path = ACCOUNT) -> dict[str, Any]:
    """``status`` of this node's object. The token is read each time, as its file is renewed. Raises NotToldError."""
    try:
        token = (account / "token").read_text().strip()
        context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    except (OSError, ValueError) as error:
        raise NotToldError(f"the service account cannot be read: {error}") from error
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = int(environment.get("KUBERNETES_SERVICE_PORT") or 443)
    name = quote(environment["HUGEPLAN_AGENT_NODE_NAME"], safe="")
    connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=context)
    try:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        connection.request("GET", f"/api/v1/nodes/{name}?resourceVersion=0", headers=headers)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise NotToldError(f"the API server answers {answer.status} {answer.reason}")
        status = json.loads(answer.read(MAX_ANSWER_BYTES))["status"]
    except (OSError, http.client.HTTPException) as error:
        raise NotToldError(f"the API server cannot be reached: {error or type(error).__name__}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NotToldError("the API server's answer is no node") from error
    finally:
        connection.close()
    return status if isinstance(status, dict) else {}
