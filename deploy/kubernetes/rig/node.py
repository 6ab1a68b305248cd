"""A whole Kubernetes node on this machine: containerd and kubelet of the rig, joined to a control plane.

Needs root, containerd, runc and the CNI plugins. Everything lies in one folder; containers, cgroups and mounts are
removed at the end. Huge pages are the caller's affair (:mod:`rig.hugetlb`), since the kubelet counts them at its start.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig import binaries
from rig.binaries import NotAvailableError
from rig.control_plane import ControlPlane
from rig.image import write_image
from rig.processes import Server, free_ports

IMAGE = "rig.local/postgresql:18"
_CNI = Path("/usr/lib/cni")
_SUBNET = "10.88.77.0/24"

#: runc without what a root that lacks CAP_SYS_RESOURCE may not do. On other machines it changes little.
_RUNC = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
for word, value in zip(words, words[1:]):
    if word in ("--bundle", "-b"):
        path, key = pathlib.Path(value, "config.json"), "process"
    elif word in ("--process", "-p") and "exec" in words:
        path, key = pathlib.Path(value), None
    else:
        continue
    config = json.loads(path.read_text())
    process = config.get(key, {{}}) if key else config
    process.pop("rlimits", None)
    process.pop("oomScoreAdj", None)
    for names in process.get("capabilities", {{}}).values():
        if "CAP_SYS_RESOURCE" in names:
            names.remove("CAP_SYS_RESOURCE")
    path.write_text(json.dumps(config))
os.execvp("{runc}", ["runc", *words])
"""

_CONTAINERD = """\
version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{folder}/runc"
        SystemdCgroup = false
"""


def require_runtime() -> None:
    """NotAvailableError where this machine cannot run a node, whatever is built."""
    if os.geteuid() != 0:
        raise NotAvailableError("a kubelet runs as root alone")
    for program in ("containerd", "ctr", "runc", "mount"):
        if shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is None:
            raise NotAvailableError(f"no {program} on PATH (Debian packages containerd and runc)")
    if not (_CNI / "ptp").exists():
        raise NotAvailableError(f"no CNI plugins in {_CNI} (Debian package containernetworking-plugins)")


def _forget_pods_of_a_killed_node() -> None:
    """Their interfaces keep the routes to addresses that the next pods get, which then nobody reaches."""
    shown = subprocess.run(
        ["ip", "-json", "route", "show", "root", _SUBNET], capture_output=True, text=True, check=False
    ).stdout
    for device in {route["dev"] for route in json.loads(shown or "[]")}:
        subprocess.run(["ip", "link", "delete", device], check=False, capture_output=True)


class Node:
    """A node named ``name``; a context manager. NotAvailableError where this machine cannot run one."""

    def __init__(self, cluster: ControlPlane, folder: Path, name: str, postgresql: Path, **configuration: Any) -> None:
        require_runtime()
        self.kubelet_program = binaries.folder("kubelet") / "kubelet"
        self.cluster, self.folder, self.name = cluster, folder, name
        self.configuration: Mapping[str, Any] = configuration
        #: Files that end with .conf here come after the configuration, in the order of their names.
        self.drop_ins = folder / "kubelet.conf.d"
        self._postgresql = postgresql
        self._snapshotter = "native"
        self.kubelet_port = 0
        self._containerd: Server | None = None
        self._kubelet: Server | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        _forget_pods_of_a_killed_node()
        runc = shutil.which("runc", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
        (self.folder / "runc").write_text(_RUNC.format(python=sys.executable, runc=runc))
        (self.folder / "runc").chmod(0o755)
        self.drop_ins.mkdir(exist_ok=True)
        (self.folder / "cni").mkdir(exist_ok=True)
        (self.folder / "cni" / "10-rig.conflist").write_text(json.dumps(self._network()))
        self._snapshotter = "overlayfs" if _has_overlay(self.folder) else "native"
        (self.folder / "containerd.toml").write_text(
            _CONTAINERD.format(folder=self.folder, image=IMAGE, cni=_CNI, snapshotter=self._snapshotter)
        )
        self._containerd = Server(
            ["containerd", "--config", str(self.folder / "containerd.toml")], self.folder / "containerd.log"
        )
        self._containerd.wait_until(lambda: self._ctr("version", check=False) == 0, 60)
        write_image(self.folder / "image.tar", IMAGE, self._postgresql)
        self.load_images(self.folder / "image.tar")
        self.start_kubelet()

    def load_images(self, archive: Path) -> None:
        """Images of an archive as ``docker save`` or ``podman save`` writes it."""
        self._ctr("-n", "k8s.io", "images", "import", "--snapshotter", self._snapshotter, str(archive))

    def name_images(self, names: Mapping[str, str]) -> None:
        """Give images that are here another name, so that nobody pulls them."""
        for name, other in names.items():
            self._ctr("-n", "k8s.io", "images", "tag", name, other)

    def _network(self) -> dict[str, Any]:
        ranges = {"ranges": [[{"subnet": _SUBNET}]], "routes": [{"dst": "0.0.0.0/0"}]}
        return {
            "cniVersion": "0.4.0",
            "name": "rig",
            "plugins": [
                # Each pod's traffic is routed by the host, so kube-proxy's rules see it without br_netfilter.
                {"type": "ptp", "ipMasq": False,
                 "ipam": {"type": "host-local", **ranges, "dataDir": str(self.folder / "ipam")}},
            ],
        }  # fmt: skip

    def _ctr(self, *words: str, check: bool = True) -> int:
        done = subprocess.run(
            ["ctr", "--address", str(self.folder / "containerd.sock"), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.returncode

    def start_kubelet(self) -> None:
        """Start the kubelet and wait until its node is Ready. It counts the huge pages now, and never again."""
        port, health = free_ports(2)
        self.kubelet_port = port
        socket = f"unix://{self.folder}/containerd.sock"
        configuration = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.cluster.address,
            "port": port,
            "healthzPort": health,
            "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": socket,
            "imageServiceEndpoint": socket,
            "podLogsDir": str(self.folder / "pod-logs"),
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "2s",
            # On a disk that is nearly full the kubelet would remove images that no registry has.
            "imageGCHighThresholdPercent": 100,
            **self.configuration,
        }
        (self.folder / "kubelet.json").write_text(json.dumps(configuration))
        started = time.time()
        own_address = () if self.cluster.address == "127.0.0.1" else (f"--node-ip={self.cluster.address}",)
        self._kubelet = Server(
            [
                str(self.kubelet_program), f"--config={self.folder / 'kubelet.json'}",
                f"--config-dir={self.drop_ins}",
                f"--kubeconfig={self.cluster.kubeconfig}", f"--hostname-override={self.name}",
                f"--root-dir={self.folder / 'kubelet'}", f"--cert-dir={self.folder / 'kubelet-pki'}",
                *own_address,
            ],
            self.folder / "kubelet.log",
        )  # fmt: skip
        self._kubelet.wait_until(lambda: self._is_ready_since(started), 120)

    def stop_kubelet(self) -> None:
        """End the kubelet; its pods go on."""
        if self._kubelet is not None:
            self._kubelet.stop()
            self._kubelet = None

    def restart_kubelet(self) -> None:
        """What an administrator does after changing the pools."""
        self.stop_kubelet()
        self.start_kubelet()

    def _is_ready_since(self, started: float) -> bool:
        """Ready, reported after ``started``: the API server still holds the previous kubelet's words."""
        nodes = {one["metadata"]["name"]: one for one in self.cluster.get("/api/v1/nodes")["items"]}
        conditions = nodes.get(self.name, {}).get("status", {}).get("conditions") or ()
        ready = next((one for one in conditions if one["type"] == "Ready"), None)
        if ready is None or ready["status"] != "True":
            return False
        beat = time.mktime(time.strptime(ready["lastHeartbeatTime"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        # Heartbeats are whole seconds: one in the second of the start may be the previous kubelet's.
        return beat > int(started)

    def status(self) -> dict[str, Any]:
        """The node's status as the API server has it."""
        found: dict[str, Any] = self.cluster.get(f"/api/v1/nodes/{self.name}")["status"]
        return found

    def configz(self) -> dict[str, Any]:
        """The configuration that the kubelet runs with, from itself."""
        with self.ask("/configz") as response:
            found: dict[str, Any] = json.load(response)["kubeletconfig"]
        return found

    def ask(self, path: str) -> http.client.HTTPResponse:
        """The kubelet's own answer to a GET."""
        # Its certificate is its own and new with every start; this is loopback.
        trust = ssl._create_unverified_context()  # noqa: S323
        url = f"https://{self.cluster.address}:{self.kubelet_port}{path}"
        answer: http.client.HTTPResponse = urllib.request.urlopen(url, context=trust, timeout=30)
        return answer

    def wait_for(self, what: str, ready: Callable[[], bool], seconds: float = 90) -> None:
        """Return once ``ready`` says so; the kubelet's last words otherwise."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s:\n{self.last_words()}"
            time.sleep(0.2)

    def last_words(self) -> str:
        """What the containers printed, then the end of the kubelet's log."""
        logs = sorted((self.folder / "pod-logs").rglob("*.log"))
        printed = [line for path in logs for line in path.read_text(errors="replace").splitlines()[-10:]]
        return "\n".join([*printed, "" if self._kubelet is None else self._kubelet.last_lines(10)])

    def _stop(self) -> None:
        if self.cluster.api is not None and self._kubelet is not None:
            self.cluster.kubectl(
                "delete", "pods", "-A", "--grace-period=0", "--force",
                f"--field-selector=spec.nodeName={self.name}", check=False,
            )  # fmt: skip
        self.stop_kubelet()
        if self._containerd is not None:
            self._remove_containers()
            self._containerd.stop()
            self._containerd = None
        for mount in sorted(_mounts_under(self.folder), key=len, reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
        _remove_groups()

    def _remove_containers(self) -> None:
        address = str(self.folder / "containerd.sock")
        listed = subprocess.run(
            ["ctr", "--address", address, "-n", "k8s.io", "tasks", "list", "-q"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        for task in listed.stdout.split():
            self._ctr("-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", task, check=False)
        deadline = time.monotonic() + 20
        for task in listed.stdout.split():
            while self._ctr("-n", "k8s.io", "tasks", "delete", task, check=False) and time.monotonic() < deadline:
                time.sleep(0.1)


def _has_overlay(folder: Path) -> bool:
    """Whether overlayfs can be mounted on this file system; an overlay itself carries none."""
    places = {name: folder / f"overlay-{name}" for name in ("lower", "upper", "work", "merged")}
    for place in places.values():
        place.mkdir(exist_ok=True)
    options = f"lowerdir={places['lower']},upperdir={places['upper']},workdir={places['work']}"
    command = ["mount", "-t", "overlay", "overlay", "-o", options, str(places["merged"])]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        return False
    subprocess.run(["umount", str(places["merged"])], check=False, capture_output=True)
    return True


def _mounts_under(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [place for line in lines if (place := line.split()[1]).startswith(f"{folder}/")]


def _remove_groups() -> None:
    """The cgroups that the kubelet made; empty ones alone can be removed."""
    for top in (*Path("/sys/fs/cgroup").glob("*/kubepods"), Path("/sys/fs/cgroup/kubepods")):
        if not top.is_dir():
            continue
        groups = sorted((path for path in top.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
        for group in (*groups, top):
            try:
                group.rmdir()
            except OSError:
                continue
