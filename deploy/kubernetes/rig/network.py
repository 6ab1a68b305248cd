"""A cluster's network on one machine: an address that pods reach, kube-proxy, and a stand-in for the cluster's DNS.

kube-proxy is the real one. The DNS server here stands in for CoreDNS: it answers for services from the API server, and
for nothing else.
"""

from __future__ import annotations

import shutil
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig import binaries
from rig.binaries import NotAvailableError
from rig.control_plane import ApiError, ControlPlane
from rig.processes import Server, free_ports

#: Of this machine alone: a bridge without ports. The API server proxies to no loopback address.
ADDRESS = "10.88.78.1"
_LINK = "hugeplanrig1"
_DOMAIN = "cluster.local"
_A = 1
_NO_SUCH_NAME = 3
_HEADER = struct.Struct("!6H")


@contextmanager
def address() -> Iterator[str]:
    """An IPv4 address of this machine that is no loopback address, until the block ends."""
    if shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin") is None:
        raise NotAvailableError("no iptables, which kube-proxy uses (Debian package iptables)")
    for words in (("add", _LINK, "type", "bridge"), ("set", _LINK, "up")):
        done = subprocess.run(["ip", "link", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0 and "exists" not in done.stderr:
            raise NotAvailableError(f"no bridge can be made: {done.stderr.strip()}")
    subprocess.run(["ip", "address", "replace", f"{ADDRESS}/32", "dev", _LINK], check=True)
    try:
        yield ADDRESS
    finally:
        subprocess.run(["ip", "link", "delete", _LINK], check=False, capture_output=True)


@contextmanager
def kube_proxy(cluster: ControlPlane, folder: Path, node: str) -> Iterator[Server]:
    """The kube-proxy of a node, and none of its rules afterwards."""
    program = binaries.folder("kube-proxy") / "kube-proxy"
    health, metrics = free_ports(2)
    server = Server(
        [
            str(program), f"--kubeconfig={cluster.kubeconfig}", f"--hostname-override={node}", "--proxy-mode=iptables",
            f"--healthz-bind-address=127.0.0.1:{health}", f"--metrics-bind-address=127.0.0.1:{metrics}",
            # This machine's own settings stay as they are.
            "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
            "--iptables-localhost-nodeports=false", "--iptables-min-sync-period=100ms",
        ],
        folder / "kube-proxy.log",
    )  # fmt: skip
    try:
        yield server
    finally:
        server.stop()
        subprocess.run([str(program), "--cleanup"], check=False, capture_output=True)


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        question, reply = self.request
        server = self.server
        assert isinstance(server, _Dns)
        reply.sendto(server.answer(question), self.client_address)


class _Dns(socketserver.ThreadingUDPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, cluster: ControlPlane, place: tuple[str, int]) -> None:
        super().__init__(place, _Handler)
        self._cluster = cluster

    def answer(self, question: bytes) -> bytes:
        """One answer (RFC 1035): addresses of a service, nothing for another type, else no such name."""
        labels, end = [], _HEADER.size
        while size := question[end]:
            labels.append(question[end + 1 : end + 1 + size].decode(errors="replace"))
            end += 1 + size
        asked = question[_HEADER.size : end + 5]
        (kind,) = struct.unpack_from("!H", question, end + 1)
        found = self.addresses(".".join(labels).lower())
        records = b"".join(
            struct.pack("!HHHIH", 0xC00C, _A, 1, 1, 4) + socket.inet_aton(one) for one in found or () if kind == _A
        )
        code = _NO_SUCH_NAME if found is None else 0
        count = len(records) // 16
        return question[:2] + struct.pack("!5H", 0x8580 | code, 1, count, 0, 0) + asked + records

    def addresses(self, name: str) -> list[str] | None:
        """Of a service: its cluster address, or without one the addresses of its ready pods. None: no such service."""
        words = name.removesuffix(f".svc.{_DOMAIN}").split(".")
        if len(words) != 2 or not name.endswith(f".svc.{_DOMAIN}"):
            return None
        service, namespace = words
        path = f"/api/v1/namespaces/{namespace}"
        try:
            found: dict[str, Any] = self._cluster.get(f"{path}/services/{service}")
            if found["spec"].get("clusterIP") not in {None, "", "None"}:
                return [found["spec"]["clusterIP"]]
            endpoints = self._cluster.get(f"{path}/endpoints/{service}")
        except ApiError:
            return None
        return [one["ip"] for part in endpoints.get("subsets", ()) for one in part.get("addresses", ())]


@contextmanager
def dns(cluster: ControlPlane, place: str = ADDRESS) -> Iterator[None]:
    """A name server on port 53 of an address of this machine, for names of services."""
    try:
        server = _Dns(cluster, (place, 53))
    except OSError as error:
        raise NotAvailableError(f"no name server can listen on {place}: {error.strerror}") from error
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
