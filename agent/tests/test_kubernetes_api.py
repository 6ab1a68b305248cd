"""Questions to an API server that is busy, forgetful or away. The real one is asked in deploy/kubernetes/tests."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hugeplan_agent.collectors import kubelet, kubernetes_node
from hugeplan_agent.host import Host
from hugeplan_agent.kubernetes_api import METADATA_ALONE, KubernetesApi, NotToldError

Answer = tuple[int, Any, Mapping[str, str]]


class ApiServer:
    """TLS on loopback; answers what ``script`` holds, and remembers what it was asked."""

    def __init__(self, certificate: Path) -> None:
        self.script: deque[Answer] = deque()
        self.asked: list[tuple[str, dict[str, list[str]], str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                token = self.headers["Authorization"].removeprefix("Bearer ")
                outer.asked.append((parts.path, parse_qs(parts.query), token, self.headers["Accept"]))
                status, body, headers = outer.script.popleft()
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def account(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("SKIP: openssl is not installed")
    key, file = tmp_path / "key.pem", tmp_path / "ca.crt"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)]
    subprocess.run([*words, *names], check=True, capture_output=True)
    (tmp_path / "both.pem").write_text(file.read_text() + key.read_text())
    (tmp_path / "token").write_text("first\n")
    return tmp_path


@pytest.fixture
def server(account: Path) -> Iterator[ApiServer]:
    made = ApiServer(account / "both.pem")
    made.thread.start()
    yield made
    made.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(server: ApiServer, account: Path, clock: Clock) -> KubernetesApi:
    environment = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.http.server_address[1]),
        "HUGEPLAN_AGENT_NODE_NAME": "n 1",
    }
    return KubernetesApi(environment, account, clock, lambda _low, high: high)


def listed(*uids: str, following: str | None = None) -> Answer:
    items = [{"metadata": {"uid": uid, "namespace": "shop", "name": f"pod-{uid}"}} for uid in uids]
    return 200, {"metadata": {"continue": following} if following else {}, "items": items}, {}


def configured(hard: str) -> Answer:
    return 200, {"kubeletconfig": {"evictionHard": {"memory.available": hard}}}, {}


def refusal(status: int, **headers: str) -> Answer:
    return status, {"kind": "Status"}, headers


def test_only_metadata_of_this_nodes_pods_is_asked_for_and_from_the_cache(
    api: KubernetesApi, server: ApiServer
) -> None:
    server.script.append(listed("a"))
    api.list_metadata("/api/v1/pods", {"fieldSelector": "spec.nodeName=n 1"})
    ((path, query, token, accept),) = server.asked
    assert (path, token, accept) == ("/api/v1/pods", "first", METADATA_ALONE)
    assert query == {"fieldSelector": ["spec.nodeName=n 1"], "limit": ["100"], "resourceVersion": ["0"]}


def test_a_list_in_parts_is_read_to_its_end(api: KubernetesApi, server: ApiServer) -> None:
    server.script.extend([listed("a", "b", following="x"), listed("c", following="y"), listed("d")])
    found = api.list_metadata("/api/v1/pods", {})
    assert [item["metadata"]["uid"] for item in found] == ["a", "b", "c", "d"]
    assert [asked[1].get("continue") for asked in server.asked] == [None, ["x"], ["y"]]
    assert all("resourceVersion" not in asked[1] for asked in server.asked[1:]), "the server refuses both together"


def test_a_list_that_has_expired_is_begun_again_once(api: KubernetesApi, server: ApiServer) -> None:
    server.script.extend([listed("a", following="x"), refusal(410), listed("a", "b")])
    assert len(api.list_metadata("/api/v1/pods", {})) == 2
    server.script.extend([listed("a", following="x"), refusal(410), listed("a", following="x"), refusal(410)])
    with pytest.raises(NotToldError, match="410"):
        api.list_metadata("/api/v1/pods", {})
    assert not server.script


def test_a_token_of_two_lines_is_not_said(api: KubernetesApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\nsecond\n")
    with pytest.raises(NotToldError, match="cannot be read: its token is not one word"):
        api.get("/x", {})


def test_a_token_that_was_renewed_meanwhile_is_read_again(api: KubernetesApi, server: ApiServer) -> None:
    server.script.append(refusal(401))
    with pytest.raises(NotToldError, match="401"):
        api.get("/x", {})
    assert len(server.asked) == 1, "the same token is not tried twice"
    reads = iter(["first", "second"])
    api._token = lambda: next(reads)  # type: ignore[method-assign] # renewed between the two reads
    server.script.extend([refusal(401), (200, {"status": {}}, {})])
    assert api.get("/x", {}) == {"status": {}}
    assert [asked[2] for asked in server.asked[1:]] == ["first", "second"]


@pytest.mark.parametrize("status", [429, 503, 500])
def test_a_server_under_load_is_left_in_peace(api: KubernetesApi, server: ApiServer, clock: Clock, status: int) -> None:
    server.script.append(refusal(status, **{"Retry-After": "30"}))
    with pytest.raises(NotToldError, match=str(status)):
        api.get("/x", {})
    clock.now += 29
    with pytest.raises(NotToldError, match="not asked again for"):
        api.get("/x", {})
    assert len(server.asked) == 1
    clock.now += 3
    server.script.append((200, {}, {}))
    assert api.get("/x", {}) == {}


def test_waits_grow_while_nobody_answers_and_end_with_an_answer(
    api: KubernetesApi, server: ApiServer, clock: Clock
) -> None:
    waits = []
    for _ in range(4):
        server.script.append(refusal(503))
        with pytest.raises(NotToldError):
            api.get("/x", {})
        waits.append(api._not_before - clock.now)
        clock.now = api._not_before
    assert waits == [1.0, 2.0, 4.0, 8.0]
    server.script.extend([(200, {}, {}), refusal(503)])
    api.get("/x", {})
    with pytest.raises(NotToldError):
        api.get("/x", {})
    assert api._not_before - clock.now == 1.0


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"items": [', b"x" * (5 << 20)])
def test_rubbish_is_one_sentence(api: KubernetesApi, server: ApiServer, body: bytes) -> None:
    server.script.append((200, body, {}))
    with pytest.raises(NotToldError, match="the API server's answer is"):
        api.get("/x", {})


UID, HASH = "6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11", "0f" * 16


def named(uid: str, namespace: str, name: str, mirrored: str | None = None) -> dict[str, Any]:
    annotations = {} if mirrored is None else {"annotations": {"kubernetes.io/config.mirror": mirrored}}
    return {"metadata": {"uid": uid, "namespace": namespace, "name": name, **annotations}}


def test_names_of_pods_and_of_static_ones_by_their_mirror() -> None:
    mirror = named("u2", "kube-system", "etcd-n1", HASH)
    found = kubernetes_node.names_of([named("u1", "shop", "pg-0"), mirror, {"metadata": None}, 3])
    assert found == {"u1": ("shop", "pg-0"), "u2": ("kube-system", "etcd-n1"), HASH: ("kube-system", "etcd-n1")}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("uid", [UID, HASH])
def test_no_annotation_gives_a_pod_the_name_of_another(uid: str, turned: bool) -> None:
    """Found with a pod of another namespace: the report called a database by its name, and the plan kept that."""
    real, evil = named(uid, "prod", "orders-0"), named("u2", "evil", "x", uid)
    assert kubernetes_node.names_of([evil, real] if turned else [real, evil])[uid] == ("prod", "orders-0")
    static = [named("u1", "prod", "orders-n1", uid), evil]
    assert uid not in kubernetes_node.names_of(reversed(static) if turned else static)
    evil["metadata"]["annotations"] = {"kubernetes.io/config.hash": uid}  # which anybody writes: no mirror
    found = kubernetes_node.names_of(reversed(static) if turned else static)
    assert found.get(uid) == (("prod", "orders-n1") if uid == HASH else None)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_has_room_for_what_annotations_may_hold(
    api: KubernetesApi, server: ApiServer, indent: int | None
) -> None:
    """Found with sixteen pods of 256 KiB: no pod of the node had a name, and another team's was planned for."""
    server.script.append((200, {"items": [named("0", "evil", "x", "0" * (256 << 10))]}, {}))
    assert len(str(api.list_metadata("/x", {}))) < 300
    items = [named(str(number), "evil", f"x{number}", HASH) for number in range(20)]
    for item in items:
        item["metadata"]["annotations"]["a"] = '{"[\u00fc\\"' + "x" * (256 << 10)
    for document in ({"items": items, "metadata": {}}, {"metadata": {}, "items": items}):
        server.script.append((200, json.dumps(document, indent=indent).encode(), {}))
        assert api.list_metadata("/x", {}) == [named(str(one), "evil", f"x{one}", HASH) for one in range(20)]


@pytest.mark.parametrize("bound", ["MAX_LIST_BYTES", "MAX_ANSWER_BYTES", "MAX_PAGES"])
def test_a_list_has_an_end(api: KubernetesApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(f"hugeplan_agent.kubernetes_api.{bound}", 1)
    server.script.extend([listed(*map(str, range(101)), following="x"), listed(*["x" * 70_000] * 3)])
    with pytest.raises(NotToldError, match="the list"):
        api.list_metadata("/x", {})


@pytest.mark.parametrize(
    "body", [b"", b'{"items": [', b'{"items": [{"a": 1}]', b'{"items": [{]}', b'{"items": [\xff]}', b"[]"]
)
def test_rubbish_in_a_list_is_one_sentence(api: KubernetesApi, server: ApiServer, body: bytes) -> None:
    server.script.append((200, body, {}))
    with pytest.raises(NotToldError, match="the API server's answer is"):
        api.list_metadata("/x", {})
    server.script.append((200, {"items": None}, {}))
    assert api.list_metadata("/x", {}) == []


def test_pods_are_listed_when_a_new_one_appears_and_not_more_often(
    api: KubernetesApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = Host(tmp_path)
    host.kept("kubernetes api")["client"] = api
    now = [5000.0]
    monkeypatch.setattr("hugeplan_agent.collectors.kubernetes_node.time.monotonic", lambda: now[0])
    server.script.append(listed("a"))
    assert kubernetes_node.pod_names(host, {}, {"a"}) == {"a": ("shop", "pod-a")}
    now[0] += 3600
    assert kubernetes_node.pod_names(host, {}, {"a"}), "nothing new: nothing is asked"
    server.script.append(listed("a", "b"))
    assert kubernetes_node.pod_names(host, {}, {"a", "b"})["b"] == ("shop", "pod-b")
    now[0] += 30
    kubernetes_node.pod_names(host, {}, {"c"})
    assert len(server.asked) == 2, "a minute has not passed"
    now[0] += 31
    server.script.append(refusal(403))
    assert kubernetes_node.pod_names(host, {}, {"c"})["a"], "what was known stays"
    assert "403" in (kubernetes_node.pods_note(host) or "")


def test_the_kubelets_configuration_is_asked_for_again_when_a_new_kubelet_runs(
    api: KubernetesApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A restart is how a drop-in comes into force: ten minutes of the previous configuration would be wrong."""
    host = Host(tmp_path)
    host.kept("kubernetes api")["client"] = api
    now = [5000.0]
    monkeypatch.setattr("hugeplan_agent.collectors.kubelet.time.monotonic", lambda: now[0])
    server.script += [configured("100Mi"), configured("200Mi"), configured("300Mi")]

    def hard(*running: int) -> str:
        told = kubelet._configuration_of_api(host, (running[0], running[1]), [])
        assert told is not None
        return str(told["evictionHard"]["memory.available"])

    assert hard(1, 10) == hard(1, 10) == "100Mi"
    assert hard(2, 20) == "200Mi"
    now[0] += kubernetes_node.CONFIGZ_SECONDS
    assert hard(2, 20) == "300Mi"
    assert len(server.asked) == 3
