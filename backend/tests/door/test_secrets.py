"""Tokens and cookies are in no log line, no error and no address."""

from __future__ import annotations

from pathlib import Path

import httpx
from support.server import serving

from hugeplan import embedded


def test_no_secret_leaves_by_a_log_or_an_error(
    postgres: embedded.EmbeddedPostgres, template: str, tmp_path: Path
) -> None:
    postgres.ensure_database("secrets", template)
    shown: list[str] = []
    with serving(postgres.url("secrets"), tmp_path, HUGEPLAN_LOG_LEVEL="debug") as server:
        assert server.admin_token is not None
        with httpx.Client(base_url=server.url, timeout=20) as client:
            bearer = {"Authorization": f"Bearer {server.admin_token}"}
            made = client.post("/api/v1/tokens", json={"name": "v", "role": "viewer"}, headers=bearer).json()["token"]
            link = client.post("/api/v1/login-links", headers=bearer).json()["token"]
            login = client.post("/api/v1/session", json={"token": link})
            csrf = login.json()["csrf_token"]
            (cookie,) = dict(client.cookies).values()
            secrets = [server.admin_token, made, link, cookie, csrf]
            for secret in secrets:
                # Wrong places for a secret, and right ones that fail.
                shown += [
                    client.get("/api/v1/nodes", headers={"Authorization": f"Bearer x{secret}"}).text,
                    client.get("/api/v1/nodes", headers={"Authorization": f"Basic {secret}"}).text,
                    client.post("/api/v1/session", json={"token": secret + "x"}).text,
                    client.post("/api/v1/session", json={"tokens": secret, "token": 1}).text,
                    client.post("/api/v1/session", content=f'{{"token": "{secret}"').text,
                    client.get("/api/v1/nodes/none", headers=bearer).text,
                    client.delete("/api/v1/session", headers={"X-CSRF-Token": "x" + csrf}).text,
                ]
            assert login.request.url.query == b""
    log = server.log.read_text()
    assert '"path": "/api/v1/session"' in log
    for secret in secrets:
        assert secret not in log
        assert not any(secret in text for text in shown), secret
