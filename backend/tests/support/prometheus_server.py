"""A stand-in for Prometheus that answers each expression with recorded series."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from support.http_server import answering

Lines = list[tuple[str, dict[str, str], float]]


def selects(expression: str, name: str) -> bool:
    """Whether an expression's metric is this one; what it filters by is in the recorded series already."""
    pattern = re.search(r'__name__=~"([^"]+)"', expression)
    return re.fullmatch(pattern[1], name) is not None if pattern else re.split("[{ ]", expression)[0] == name


@contextmanager
def serving(lines: Lines, asked: list[str]) -> Iterator[str]:
    """The URL of a server; ``asked`` gets each expression."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            expression = body["query"][0]
            asked.append(expression)
            if expression == "time()":
                result: list[Any] = [time.time(), str(time.time())]
            else:
                result = [
                    {"metric": {"__name__": name, **labels}, "value": [time.time(), str(value)]}
                    for name, labels, value in lines
                    if selects(expression, name)
                ]
            answer = json.dumps({"status": "success", "data": {"result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with answering(Handler) as address:
        yield f"http://{address}"
