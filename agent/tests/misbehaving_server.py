"""A real HTTP server on loopback that answers reports as it is told: well, badly, late or not at all."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Behaviour:
    """One answer. ``drop`` closes the connection unanswered; ``hold`` waits for ``release`` before answering."""

    status: int = 201
    body: Mapping[str, Any] | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    hold: bool = False


def problem(status: int, title: str, detail: str) -> Behaviour:
    return Behaviour(
        status,
        {"type": "https://hugeplan.dev/problems/x", "title": title, "status": status, "detail": detail},
        {"Content-Type": PROBLEM},
    )


class MisbehavingServer:
    """``script`` holds the next answers; when it is empty every report is accepted, as the real server does."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.script: deque[Behaviour] = deque()
        self.stored: dict[str, dict[str, Any]] = {}
        self.attempts: list[str] = []
        self.tokens: list[str | None] = []
        self.bodies: list[dict[str, Any]] = []
        self.encodings: list[str] = []
        self.paths: list[str] = []
        self.proxy_credentials: list[str | None] = []
        self.connections: set[tuple[str, int]] = set()
        self.refuses_gzip = False
        self.away = False  # every connection is closed unanswered
        self.created: dict[str, int] = {}
        self.on_arrival: Callable[[dict[str, Any]], object] = lambda _: None
        self.arrived = threading.Condition()
        self.release = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> MisbehavingServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def wait_for_attempts(self, count: int, timeout_seconds: float = 20.0) -> None:
        """Block until so many requests have come in."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.attempts) >= count, timeout_seconds), self.attempts

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections are kept, as a real server keeps them

            def do_POST(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                """Keep the test output quiet."""

        return Handler

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        encoding = request.headers.get("Content-Encoding", "identity")
        with self.arrived:
            self.encodings.append(encoding)
            self.paths.append(request.path)
            self.proxy_credentials.append(request.headers.get("Proxy-Authorization"))
            self.connections.add(request.client_address)
        if encoding == "gzip" and self.refuses_gzip:
            self._send(request, problem(415, "Unsupported media type", "Send the body uncompressed."))
            return
        document = json.loads(gzip.decompress(body) if encoding == "gzip" else body)
        behaviour = self.script.popleft() if self.script else None
        with self.arrived:
            self.bodies.append(document)
            self.attempts.append(document.get("report_id", request.path))
            self.tokens.append(request.headers.get("Authorization"))
            self.arrived.notify_all()
        self.on_arrival(document)
        if self.away:
            behaviour = Behaviour(drop=True)
        if behaviour is not None and behaviour.hold:
            self.release.wait(30)
        if behaviour is not None and behaviour.drop:
            request.connection.shutdown(socket.SHUT_RDWR)
            request.close_connection = True
            return
        if behaviour is None or (behaviour.status < 300 and behaviour.body is None):
            behaviour = self._store(document)
        self._send(request, behaviour)

    def _send(self, request: BaseHTTPRequestHandler, behaviour: Behaviour) -> None:
        body = behaviour.body if isinstance(behaviour.body, bytes) else json.dumps(behaviour.body or {}).encode()
        request.send_response(behaviour.status)
        for name, value in {"Content-Type": "application/json", **behaviour.headers}.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _store(self, document: dict[str, Any]) -> Behaviour:
        report_id = document.get("report_id")
        if report_id is None:
            return Behaviour(201, {"token": "hp_agent_secret"})
        created = report_id not in self.stored
        self.stored[report_id] = document
        self.created[report_id] = self.created.get(report_id, 0) + created
        return Behaviour(
            201 if created else 200,
            {"report_id": report_id, "node_id": "n", "created": created, "run_id": None},
        )
