"""What a command says of a URL where something else than hugeplan answers."""

from __future__ import annotations

import socket
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import ModuleType

import pytest
from hugeplan_agent import connection
from support.http_server import answering

from hugeplan import here
from hugeplan.cli import InputError
from hugeplan.cli.service_client import ServiceClient
from hugeplan.inventory.model import InventoryError
from hugeplan.inventory.prometheus.client import PrometheusClient

JSON = "application/json"


@pytest.mark.parametrize(
    ("status", "media_type", "body", "said"),
    [
        (200, "text/html", "<html>a proxy's page</html>", "HTTP 200: not an answer of hugeplan"),
        (502, "text/html", "<html>Bad gateway</html>", "HTTP 502: not an answer of hugeplan"),
        (422, JSON, "[1]", "HTTP 422: not an answer of hugeplan"),
        (422, JSON, '{"title": "Odd", "errors": ["words"]}', "HTTP 422: Odd"),
        (422, JSON, '{"title": "Odd", "errors": {"a": 1}}', "HTTP 422: Odd"),
        (422, JSON, '{"title": "Odd", "errors": [{"field": "f", "expected": "e"}]}', "HTTP 422: Odd (f: expected e)"),
    ],
)
def test_odd_answers_are_one_sentence(
    status: int, media_type: str, body: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    with answering(Odd) as address, pytest.raises(InputError) as problem:
        list(ServiceClient(f"http://{address}", option="--to").items("trials"))
    assert str(problem.value) == f"--to http://{address}: {said}"


@pytest.mark.parametrize("token", ["SECRET\nx", "SECRET x", "SECRETé", "a\x0bSECRET", "SECRET\rx"])
def test_no_error_says_a_token(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUGEPLAN_TOKEN", token)
    with pytest.raises(InputError, match="the token is not one word") as by_service:
        ServiceClient("http://127.0.0.1:1", option="--to").ask("trials")
    with pytest.raises(InventoryError, match="the token is not one word") as by_prometheus:
        PrometheusClient("http://127.0.0.1:1", token)
    assert "SECRET" not in f"{by_service.value} {by_prometheus.value}"


class _Trials(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"items": [], "next_cursor": null}'
        self.send_response(200 if self.path.startswith("/api/v1/trials") else 404)
        self.send_header("content-type", JSON)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def test_no_proxy_gets_what_is_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests have a bearer token."""
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with answering(_Trials) as address:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        for host in ("127.0.0.1", "127.1", "0.0.0.0"):  # noqa: S104 - asked, not bound
            url = f"http://{host}:{address.rpartition(':')[2]}"
            assert not list(ServiceClient(url, option="--to").items("trials"))
        with PrometheusClient(f"http://{address}") as client, pytest.raises(InventoryError, match="HTTP 501"):
            client.now()


HERE = """127.0.0.1 127.1 2130706433 0x7f.1 0177.0.0.1 0 0.0.0.0 :: ::1 ::1%lo ::ffff:127.0.0.1 ::ffff:0.0.0.0
\uff11\uff12\uff17.1 localhost LocalHost. a.localhost a.localhost. localhost.localdomain Node-7.Example.org
node-7.example.org. node-7 ip6-localhost IP6-loopback ipv6-localhost localhost4 localhost6 localhost4.localdomain4
localhost6.localdomain6 localhost4.localdomain db.corp alias."""


@pytest.mark.parametrize("module", [here, connection])
def test_this_machine_is_known_however_it_is_spelled(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A proxy of the environment had the token of who spelled it otherwise."""
    hosts, is_here = tmp_path / "hosts", module.is_here
    monkeypatch.setattr(module, "_HOSTS", hosts)
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7.example.org")
    assert not is_here("db.corp")
    hosts.write_bytes(b"127.0.1.1 DB.corp alias.\n::1 db.corp #far\nx lost\n127.0.0.1 two\n10.0.0.1 two far \xff\n")
    assert [host for host in HERE.split() if not is_here(host)] == []
    far = "10.0.0.1 128.1 fe80::1 ::ffff:10.0.0.1 example.org node-7.example.com xlocalhost localhost.example.org"
    far += " two lost localhost5 localhost4.example.org"
    assert [host for host in [*far.split(), "", ".", "a..b", "x" * 70, "a\0b"] if is_here(host)] == []


def test_a_private_ca_is_believed_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    made = ["openssl", *words.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with answering(_Trials, context) as address:
        client = ServiceClient(f"https://localhost:{address.rpartition(':')[2]}", option="--to")
        with pytest.raises(InputError, match="CERTIFICATE_VERIFY_FAILED"):
            list(client.items("trials"))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert not list(client.items("trials"))


@pytest.mark.parametrize("proxy", ["socks5://u:hidden@h:1", "ftp://u:hidden@h:1", ":::", "http://u:hid den@h:port"])
def test_a_proxy_that_is_none_is_one_sentence(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(InputError, match=r"--to http://h\.example: what HTTP_PROXY, .* is of no use"):
        ServiceClient("http://h.example", option="--to").ask("trials")
    with pytest.raises(InventoryError, match=r"http://h\.example: what HTTP_PROXY, .* is of no use"):
        PrometheusClient("http://h.example")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1:port", "ho st"])
def test_a_password_in_a_url_is_not_said(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    for user in ("user:hidden@", "user:hidden/hidden@", "hidden@hidden@", "user:hidden\uff20"):
        with pytest.raises(InputError, match=f"--to http://{host}: ") as problem:
            ServiceClient(f"http://{user}{host}", option="--to").ask("trials")
        assert "hidden" not in str(problem.value)
        with pytest.raises(InventoryError) as refused, PrometheusClient(f"http://{user}{host}") as client:
            client.now()
        assert "hidden" not in str(refused.value)
