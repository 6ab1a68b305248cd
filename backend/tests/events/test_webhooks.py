"""Webhooks against a real receiver: signed, tried again after a refusal, each event once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from support.reports import report
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.events.delivery import deliver_once


class Receiver(ThreadingHTTPServer):
    """A receiver that refuses the first ``refusals`` requests and keeps the rest."""

    def __init__(self) -> None:
        self.refusals = 0
        self.kept: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.refusals:
            self.server.refusals -= 1
            self.send_response(503)
        else:
            self.server.kept.append((dict(self.headers), body))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def deliver(service: Service, *, now: bool = False) -> None:
    """One round; ``now`` makes everything due."""
    if now:
        async with service.database.write() as session:
            await session.execute(text("UPDATE webhook_deliveries SET next_attempt_at = now()"))
    async with httpx.AsyncClient(trust_env=False) as client:
        await deliver_once(service.database, client)


async def test_an_event_is_signed_tried_again_and_delivered_once(
    service: Service, admin: httpx.AsyncClient, receiver: Receiver
) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    body = {"name": "pager", "url": url, "kinds": ["node_added"]}
    secret = (await admin.post("/api/v1/webhooks", json=body)).json()["secret"]
    receiver.refusals = 10**6
    agent = await service.client_as(Role.AGENT)
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    async with asyncio.timeout(20):
        while True:  # the service itself may be the one who tries first
            await deliver(service, now=True)
            (listed,) = (await admin.get("/api/v1/webhooks")).json()["items"]
            if listed["last_error"] is not None:
                break
    assert (listed["pending"], listed["last_error"]) == (1, "answered 503")
    assert "secret" not in listed
    receiver.refusals = 0
    for _ in range(3):
        await deliver(service, now=True)
    ((headers, sent),) = receiver.kept
    assert json.loads(sent)["kind"] == "node_added"
    seconds, digest = (part.partition("=")[2] for part in headers["Hugeplan-Signature"].split(","))
    assert digest == hmac.new(secret.encode(), f"{seconds}.".encode() + sent, hashlib.sha256).hexdigest()
    (listed,) = (await admin.get("/api/v1/webhooks")).json()["items"]
    assert (listed["pending"], listed["failed"]) == (0, 0)
    assert (await admin.delete(f"/api/v1/webhooks/{listed['id']}")).status_code == 204


async def test_slack_gets_text(service: Service, admin: httpx.AsyncClient, receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    await admin.post("/api/v1/webhooks", json={"name": "chat", "url": url, "format": "slack", "kinds": ["node_added"]})
    agent = await service.client_as(Role.AGENT)
    await agent.post("/api/v1/reports", json=report())
    for _ in range(2):
        await deliver(service, now=True)
    ((_, sent),) = receiver.kept
    assert json.loads(sent) == {"text": "db-7: Reported for the first time."}


async def test_no_transaction_is_open_while_a_receiver_answers(service: Service, admin: httpx.AsyncClient) -> None:
    await admin.post("/api/v1/webhooks", json={"name": "slow", "url": "http://127.0.0.1:1/", "kinds": ["node_added"]})
    agent = await service.client_as(Role.AGENT)
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    held: list[int] = []

    async def receive(_: httpx.Request) -> httpx.Response:
        locks = (
            "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
            " WHERE c.relname = 'webhook_deliveries' AND l.pid <> pg_backend_pid()"
        )
        async with service.database.read() as session:
            held.append(int(await session.scalar(text(locks)) or 0))
        return httpx.Response(200)

    async with httpx.AsyncClient(transport=httpx.MockTransport(receive)) as client, asyncio.timeout(20):
        # The service itself may hold a lock for a moment; what is held while the receiver answers is held each time.
        while 0 not in held and len(held) < 10:
            async with service.database.write() as session:
                again = "UPDATE webhook_deliveries SET next_attempt_at = now(), finished_at = NULL"
                await session.execute(text(again))
            await deliver_once(service.database, client)
    assert 0 in held
