"""A kube-apiserver with its etcd on loopback: validates, defaults and stores like production.

::

    with ControlPlane(folder) as cluster:
        cluster.apply(manifest_text)                        # server-side apply; kubectl's own messages on failure
        cluster.dry_run(manifest_text)                      # the same, and nothing is stored
        nodes = cluster.get("/api/v1/nodes")
        cluster.kubectl("get", "nodes,pods", "-A", "-o", "json")

Up in about two seconds, 300 MiB. The scheduler and the controllers are not started unless asked for: objects stay as
they were written, and a node is whatever a test creates.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig import binaries
from rig.processes import Server, StartError, free_ports

ADMIN_TOKEN = "rig-admin-token"  # noqa: S105 - valid on this loopback server for as long as a test runs
_ATTEMPTS = 3


class ApiError(Exception):
    """The API server refused a request: ``status`` is HTTP's, ``body`` its Status object."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.body = body


class ControlPlane:
    """etcd and kube-apiserver in ``folder``; a context manager. ``NotAvailableError`` where they are not built.

    ``address`` is the API server's: pods reach another one than loopback, and the node proxy goes from there alone.
    """

    def __init__(
        self, folder: Path, *, controllers: bool = False, scheduler: bool = False, address: str = "127.0.0.1"
    ) -> None:
        self.folder = folder
        self.address = address
        further = ["kube-controller-manager"] * controllers + ["kube-scheduler"] * scheduler
        self.programs = binaries.folder("etcd", "kube-apiserver", "kubectl", *further)
        self.kubeconfig = folder / "kubeconfig"
        self.certificate = folder / "certs" / "apiserver.crt"
        self.url = ""
        self._controllers = controllers
        self._scheduler = scheduler
        self._api_command: list[str] = []
        self.etcd: Server | None = None
        self.api: Server | None = None
        self._others: list[Server] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = self.folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n')
        for attempt in range(_ATTEMPTS):
            try:
                self._start(key, attempt)
            except StartError as error:
                # Between choosing a port and binding it another program may take it.
                self.stop()
                if attempt == _ATTEMPTS - 1 or "address already in use" not in str(error):
                    raise
            else:
                return self
        raise AssertionError("unreachable")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, key: Path, attempt: int) -> None:
        client, peer, secure = free_ports(3)
        etcd_url = f"http://127.0.0.1:{client}"
        self.url = f"https://{self.address}:{secure}"
        self.etcd = Server(
            [
                str(self.programs / "etcd"), "--data-dir", str(self.folder / f"etcd-{attempt}"), "--log-level", "warn",
                "--listen-client-urls", etcd_url, "--advertise-client-urls", etcd_url,
                "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync",
            ],
            self.folder / "etcd.log",
        )  # fmt: skip
        self.etcd.wait_until(lambda: _answers(f"{etcd_url}/health"), 30)
        self._api_command = [
            str(self.programs / "kube-apiserver"),
            f"--etcd-servers={etcd_url}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--secure-port={secure}",
            f"--bind-address={self.address}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--cert-dir={self.folder / 'certs'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Without the controllers no namespace gets its default service account, and every pod would be refused.
            *([] if self._controllers else ["--disable-admission-plugins=ServiceAccount"]),
        ]
        self.start_api()
        self._write_kubeconfig()
        if self._controllers:
            self._run_component(
                "kube-controller-manager", f"--service-account-private-key-file={key}",
                f"--root-ca-file={self.certificate}", "--use-service-account-credentials=false",
                "--leader-elect=false",
            )  # fmt: skip
        if self._scheduler:
            self._run_component("kube-scheduler", "--leader-elect=false")

    def start_api(self) -> None:
        """Start the API server: at first, and after a test has killed it. The same port, the same data."""
        self.api = Server(self._api_command, self.folder / "kube-apiserver.log")
        self.api.wait_until(self.ready, 90)

    def _run_component(self, program: str, *arguments: str) -> None:
        (port,) = free_ports(1)
        command = [
            str(self.programs / program), f"--kubeconfig={self.kubeconfig}", "--bind-address=127.0.0.1",
            f"--secure-port={port}", *arguments,
        ]  # fmt: skip
        self._others.append(Server(command, self.folder / f"{program}.log"))

    def start_controller(self, name: str) -> None:
        """Run one controller, such as ``statefulset-controller``, until the control plane stops."""
        self.programs = binaries.folder("etcd", "kube-apiserver", "kubectl", "kube-controller-manager")
        self._run_component("kube-controller-manager", f"--controllers={name}", "--leader-elect=false")

    def stop(self) -> None:
        """End what runs, the last started first."""
        for server in (*reversed(self._others), self.api, self.etcd):
            if server is not None:
                server.stop()
        self._others, self.api, self.etcd = [], None, None

    def _write_kubeconfig(self) -> None:
        self.kubeconfig.write_text(self.kubeconfig_for(ADMIN_TOKEN))
        self.kubeconfig.chmod(0o600)

    def kubeconfig_for(self, token: str) -> str:
        """A kubeconfig that presents ``token`` and verifies the server's certificate. JSON, which is YAML too."""
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "rig", "cluster": cluster}],
                "users": [{"name": "user", "user": {"token": token}}],
                "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "user"}}],
                "current-context": "rig",
            }
        )

    def ready(self) -> bool:
        """Whether /readyz answers ok."""
        if not self.certificate.exists():
            return False
        try:
            return bool(self.request("GET", "/readyz") == "ok")
        except (OSError, ApiError):
            return False

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = ADMIN_TOKEN,
        content_type: str = "application/json",
    ) -> Any:
        """One request; the decoded JSON, or text where the answer is none. ApiError for 400 and above."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": content_type},
        )
        trust = ssl.create_default_context(cafile=str(self.certificate))
        try:
            with urllib.request.urlopen(request, context=trust, timeout=30) as response:
                return _decoded(response.read(), response.headers.get_content_type())
        except urllib.error.HTTPError as error:
            with error:
                found = _decoded(error.read(), error.headers.get_content_type())
            raise ApiError(error.code, found if isinstance(found, dict) else {"message": found}) from None

    def get(self, path: str, *, token: str = ADMIN_TOKEN) -> Any:
        """GET an API path."""
        return self.request("GET", path, token=token)

    def create(self, path: str, body: Any) -> Any:
        """POST an object to its collection."""
        return self.request("POST", path, body)

    def set_status(self, path: str, status: Any) -> Any:
        """Merge into an object's status subresource, such as a node's capacity."""
        return self.request("PATCH", f"{path}/status", {"status": status}, content_type="application/merge-patch+json")

    def service_account_token(self, namespace: str, name: str, seconds: int = 3600) -> str:
        """A token of a service account, by the TokenRequest API. The server grants no less than 600 s."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token: str = self.create(path, body)["status"]["token"]
        return token

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        """Run kubectl as the administrator; its output. ApiError with kubectl's message when it fails."""
        found = subprocess.run(
            [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if check and found.returncode != 0:
            raise ApiError(found.returncode, {"message": found.stderr.strip()})
        return found.stdout

    def apply(self, manifest: str) -> str:
        """Server-side apply of YAML or JSON text, any number of documents. Unknown fields are refused."""
        return self.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", text=manifest)

    def dry_run(self, manifest: str) -> str:
        """What :meth:`apply` would do, checked by the server and not stored."""
        return self.kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-", text=manifest)

    def install_definitions(self, manifest: str) -> None:
        """Install custom resource definitions and wait until the server serves them."""
        self.apply(manifest)
        deadline = time.monotonic() + 60
        while missing := self._not_established(manifest):
            if time.monotonic() > deadline:
                raise ApiError(504, {"message": f"not established after 60 s: {', '.join(missing)}"})
            time.sleep(0.1)

    def _not_established(self, manifest: str) -> list[str]:
        """Names of definitions without the condition. ``kubectl wait`` fails where there are no conditions yet."""
        found = json.loads(self.kubectl("get", "-o", "json", "-f", "-", text=manifest))
        items = found["items"] if found["kind"] == "List" else [found]
        return [
            item["metadata"]["name"]
            for item in items
            if not any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in item.get("status", {}).get("conditions") or ()
            )
        ]


def _decoded(body: bytes, content_type: str) -> Any:
    return json.loads(body) if content_type == "application/json" else body.decode(errors="replace")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False
