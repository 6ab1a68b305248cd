"""What a command says of a URL where something else than hugeplan answers."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

import pytest
from support.http_server import answering

from hugeplan.cli import InputError
from hugeplan.cli.service_client import ServiceClient

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
