"""One attempt to hand a report to the server, and what its answer means for the report."""

from __future__ import annotations

import gzip
import http
import http.client
import json
import os
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from hugeplan_agent import __version__
from hugeplan_agent.backoff import parse_retry_after
from hugeplan_agent.connection import Connection, Response, proxy_of
from hugeplan_agent.printable import printable

MIN_GZIP_BYTES = 1024
GZIP_LEVEL = 6
REPORTS = "/api/v1/reports"

# A report answered with one of these is not at fault: the address, the credential, a proxy or the hour is.
NOT_THE_REPORT = frozenset({401, 403, 404, 405, 407, 408, 421, 425, 426, 429})


class Outcome(Enum):
    """What becomes of the report."""

    DELIVERED = "delivered"
    REJECTED = "rejected"  # invalid; sending it again would not help
    FORBIDDEN = "forbidden"  # the token is missing, wrong or revoked: keep, and say so
    UNAVAILABLE = "unavailable"  # keep, and try again later
    SERVER_FAULT = "server fault"  # 500: perhaps only this report; keep it, try the others


@dataclass(frozen=True)
class Answer:
    """The outcome of one attempt, in words, with the server's document where it sent one."""

    outcome: Outcome
    detail: str
    status: int | None = None
    retry_after_seconds: float | None = None
    document: dict[str, Any] = field(default_factory=dict)


class Sender:
    """Posts documents to one server. ``token`` may be replaced between requests."""

    def __init__(self, server: str, token: str, timeout_seconds: float, ca_file: str | None = None) -> None:
        self.server = server.rstrip("/")
        self.token = token
        self.clock_offset_seconds: float | None = None
        self._takes_gzip = True
        self._connection = Connection(self.server, timeout_seconds, ca_file, proxy_of(self.server, os.environ))

    def send_report(self, body: bytes, report_id: str) -> Answer:
        """Send one report. It counts as delivered only when the answer names its id."""
        answer = self.post(REPORTS, body)
        if answer.outcome is Outcome.DELIVERED and answer.document.get("report_id") != report_id:
            return Answer(
                Outcome.UNAVAILABLE,
                f"{self.server} answered {answer.status}, but not as a hugeplan server does; is the address right?",
                answer.status,
            )
        return answer

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection until the next request."""
        self._connection.close()

    def post(self, path: str, body: bytes) -> Answer:
        """POST a JSON body; never raises for what the network or the server does."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, application/problem+json",
            "Authorization": f"Bearer {self.token}",
            "User-Agent": f"hugeplan-agent/{__version__}",
        }
        try:
            if self._takes_gzip and len(body) >= MIN_GZIP_BYTES:
                packed = gzip.compress(body, GZIP_LEVEL, mtime=0)
                response = self._connection.post(path, packed, {**headers, "Content-Encoding": "gzip"})
                if response.status == http.HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
                    # An older server: it says nothing about the report, only about the wrapping.
                    self._takes_gzip = False
                    response = self._connection.post(path, body, headers)
            else:
                response = self._connection.post(path, body, headers)
        except (http.client.HTTPException, OSError, ValueError) as error:
            reason = printable(str(error)) or type(error).__name__
            if isinstance(error, ssl.SSLCertVerificationError):
                reason += "; certificates of a CA of your own are named by --ca-file (HUGEPLAN_AGENT_CA_FILE)"
            return Answer(Outcome.UNAVAILABLE, f"{self.server} cannot be reached: {reason}")
        return self._answer(response)

    def _answer(self, response: Response) -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        now = datetime.now(timezone.utc)
        self.clock_offset_seconds = clock_offset_seconds(headers.get("date"), now)
        document = _json_object(response.body)
        if 200 <= response.status < 300:
            return Answer(Outcome.DELIVERED, f"status {response.status}", response.status, document=document)
        wait = parse_retry_after(headers.get("retry-after"), now)
        said = document.get("detail") or document.get("title") or response.reason
        detail = printable(f"status {response.status}: {said}")
        return Answer(classify(response.status), detail, response.status, wait, document)


def clock_offset_seconds(date: str | None, now: datetime) -> float | None:
    """How far the server's clock is ahead of ours, from the Date header (whole seconds); None when it says nothing."""
    try:
        moment = parsedate_to_datetime(date) if date else None
    except (TypeError, ValueError, OverflowError):
        return None
    if moment is None or moment.tzinfo is None:
        return None
    return round((moment - now).total_seconds(), 1)


def classify(status: int) -> Outcome:
    """What an answer other than 2xx means for the report."""
    if status in (401, 403):
        return Outcome.FORBIDDEN
    if 400 <= status < 500 and status not in NOT_THE_REPORT:
        return Outcome.REJECTED
    return Outcome.SERVER_FAULT if status == 500 else Outcome.UNAVAILABLE  # 3xx too: a redirected POST is no POST


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):  # what is nested too deeply is no answer of a hugeplan server
        return {}
    return document if isinstance(document, dict) else {}
