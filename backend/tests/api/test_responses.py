"""What every response carries: ids, security headers, log lines without secrets, metrics."""

from __future__ import annotations

import json
import logging
import platform
import re
from pathlib import Path

import httpx
import pytest
from support.reports import report
from support.service import Service

from hugeplan import __version__
from hugeplan.access.schemas import Role
from hugeplan.api.logs import JsonFormatter
from hugeplan.api.metrics import Metrics
from hugeplan.api.middleware import SECURITY_HEADERS
from hugeplan.main import create_app
from hugeplan.settings import Settings

PAGE = '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><title>hugeplan</title>'


@pytest.fixture
def ui(settings: Settings, tmp_path: Path) -> Service:
    """A service with a built interface."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "assets" / "app-1234.js").write_text("let a = 1;")
    (tmp_path.parent / "outside.txt").write_text("outside")
    return Service(create_app(settings.model_copy(update={"ui_dir": tmp_path})))


class TestRequestId:
    async def test_given_id_comes_back(self, service: Service) -> None:
        answer = await service.client().get("/healthz", headers={"X-Request-ID": "abc-1"})
        assert answer.headers["x-request-id"] == "abc-1"

    @pytest.mark.parametrize("given", ["", "a b", "x" * 65, '"', "\t"])
    async def test_other_ids_are_replaced(self, service: Service, given: str) -> None:
        answer = await service.client().get("/healthz", headers={"X-Request-ID": given})
        assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])


class TestHeaders:
    @pytest.mark.parametrize("path", ["/healthz", "/api/v1/nodes", "/api/nothing", "/api/docs", "/"])
    async def test_security_headers_are_everywhere(self, service: Service, path: str) -> None:
        answer = await service.client().get(path)
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value
        assert "default-src 'none'" in answer.headers["content-security-policy"]

    async def test_answers_of_the_api_are_not_kept(self, viewer: httpx.AsyncClient) -> None:
        assert (await viewer.get("/api/v1/nodes")).headers["cache-control"] == "no-store"


class TestLogs:
    async def test_no_line_holds_a_credential(self, service: Service, caplog: pytest.LogCaptureFixture) -> None:
        token = await service.token(Role.VIEWER)
        client = service.client(token)
        with caplog.at_level(logging.DEBUG):
            await client.get(f"/api/v1/nodes?q={token}")
            assert token not in (await client.get(f"/api/v1/nodes/{token}")).text
            assert token not in (await client.get(f"/api/{token}")).text
            await service.client().post("/api/v1/session", json={"token": token})
            await service.client("wrong-secret").get("/api/v1/nodes")
        lines = "\n".join(JsonFormatter().format(record) for record in caplog.records)
        # httpx, the test's own client, logs the address it asks for; the service must not.
        own = "\n".join(line for line in lines.splitlines() if '"logger": "httpx"' not in line)
        assert "/api/v1/nodes" in own
        assert token not in own
        assert "wrong-secret" not in own

    def test_line_is_json_with_extra_fields(self) -> None:
        record = logging.makeLogRecord({"name": "n", "levelname": "INFO", "msg": "a %s", "args": ("b",), "status": 200})
        line = json.loads(JsonFormatter().format(record))
        assert line["message"] == "a b"
        assert line["status"] == 200
        assert "\n" not in JsonFormatter().format(record)


class TestMetrics:
    async def test_requests_are_counted_by_operation(self, viewer: httpx.AsyncClient) -> None:
        path = "/api/v1/nodes/00000000-0000-0000-0000-000000000000"
        await viewer.get(path)
        body = (await viewer.get("/metrics")).text
        assert 'hugeplan_requests_total{method="GET",operation="nodes_get",status="404"}' in body
        assert "00000000-0000" not in body

    async def test_the_release_is_named(self, viewer: httpx.AsyncClient) -> None:
        body = (await viewer.get("/metrics")).text
        assert f'hugeplan_build_info{{python="{platform.python_version()}",version="{__version__}"}} 1.0' in body

    async def test_reports_are_counted(self, service: Service, viewer: httpx.AsyncClient) -> None:
        async def counted() -> dict[str, int]:
            lines = (await viewer.get("/metrics")).text.splitlines()
            found = [re.fullmatch(r'hugeplan_reports_total{result="(\w+)"} (\d+)(?:\.0)?', line) for line in lines]
            return {match[1]: int(match[2]) for match in found if match}

        agent = await service.client_as(Role.AGENT)
        document = report()
        before = await counted()
        for _ in range(3):
            await agent.post("/api/v1/reports", json=document)
        assert await counted() == {"created": before.get("created", 0) + 1, "seen": before.get("seen", 0) + 2}

    async def test_format_is_prometheus_text(self, viewer: httpx.AsyncClient) -> None:
        await viewer.get("/api/v1/nodes")
        answer = await viewer.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        sample = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+')
        for line in answer.text.strip().splitlines():
            assert line.startswith("# ") or sample.fullmatch(line), line

    def test_histogram_is_cumulative(self) -> None:
        metrics = Metrics()
        for seconds in (0.001, 0.02, 100.0):
            metrics.observe("GET", "/x", 200, seconds)
        text = metrics.render().decode()
        assert re.search(r'le="0\.005"[^}]*\} 1(\.0)?$', text, re.MULTILINE)
        assert re.search(r'le="0\.025"[^}]*\} 2(\.0)?$', text, re.MULTILINE)
        assert re.search(r'le="10\.0"[^}]*\} 2(\.0)?$', text, re.MULTILINE)
        assert re.search(r'le="\+Inf"[^}]*\} 3(\.0)?$', text, re.MULTILINE)

    async def test_unknown_paths_share_one_label(self, service: Service, viewer: httpx.AsyncClient) -> None:
        for number in range(3):
            await service.client().get(f"/api/unknown/{number}")
        assert "/api/unknown" not in (await viewer.get("/metrics")).text


class TestUserInterface:
    @pytest.mark.parametrize("path", ["/", "/nodes", "/nodes/abc/def", "/index.html", "/login"])
    async def test_pages_fall_back_to_the_index(self, ui: Service, path: str) -> None:
        answer = await ui.client().get(path)
        assert answer.status_code == 200
        assert "<title>hugeplan</title>" in answer.text
        assert answer.headers["cache-control"] == "no-cache"

    async def test_nonce_of_the_page_is_the_nonce_of_its_policy(self, ui: Service) -> None:
        first, second = [await ui.client().get("/") for _ in range(2)]
        nonce = re.search(r'content="([\w-]{20,})"', first.text)
        assert nonce is not None
        assert f"'nonce-{nonce[1]}'" in first.headers["content-security-policy"]
        assert nonce[1] not in second.text
        assert "script-src 'self';" in first.headers["content-security-policy"]

    async def test_assets_are_kept_for_long(self, ui: Service) -> None:
        answer = await ui.client().get("/assets/app-1234.js")
        assert answer.text == "let a = 1;"
        assert "immutable" in answer.headers["cache-control"]

    @pytest.mark.parametrize(
        "path", ["/assets/gone.js", "/favicon.ico", "/../outside.txt", "/%2e%2e/outside.txt", "/assets/%00.js"]
    )
    async def test_missing_files_are_404(self, ui: Service, path: str) -> None:
        answer = await ui.client().get(path)
        assert answer.status_code == 404
        assert "outside" not in answer.json()["title"]

    async def test_without_a_built_interface_the_page_is_404(self, service: Service) -> None:
        assert (await service.client().get("/")).status_code == 404


class TestDocumentation:
    @pytest.mark.parametrize("path", ["/api/docs", "/api/docs/findings.html"])
    async def test_page_loads_nothing_from_elsewhere(self, service: Service, path: str) -> None:
        client = service.client()
        page = await client.get(path)
        assert page.status_code == 200
        assert "'unsafe" not in page.headers["content-security-policy"]
        for link in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert link.startswith("/api/")
            assert (await client.get(link)).status_code == 200

    async def test_every_finding_has_its_anchor(self, service: Service) -> None:
        """The interface and the command line link there by the finding's code."""
        page = (await service.client().get("/api/docs/findings.html")).text
        assert len(set(re.findall(r'<h2 id="([a-z0-9_.-]+)">', page))) == page.count("<h2") > 200
        assert 'id="time_bomb"' in page

    async def test_other_files_are_404(self, service: Service) -> None:
        assert (await service.client().get("/api/docs/docs.py")).status_code == 404
