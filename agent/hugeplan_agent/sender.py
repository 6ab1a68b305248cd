"""One attempt to hand a report to the server, and what its answer means for the report."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from hugeplan_agent import __version__
from hugeplan_agent.backoff import parse_retry_after

MAX_ANSWER_BYTES = 256 * 1024
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


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, or carry the token to another host."""

    def redirect_request(self, *_arguments: Any, **_keywords: Any) -> None:
        return None


class Sender:
    """Posts documents to one server with one token."""

    def __init__(self, server: str, token: str, timeout_seconds: float, ca_file: str | None = None) -> None:
        self.server = server.rstrip("/")
        self._token = token
        self._timeout_seconds = timeout_seconds
        context = ssl.create_default_context(cafile=ca_file)
        # A proxy of the environment leads out of the machine, never back into it.
        proxies = [urllib.request.ProxyHandler({})] if is_loopback(self.server) else []
        self._opener = urllib.request.build_opener(
            _NoRedirect(), urllib.request.HTTPSHandler(context=context), *proxies
        )

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

    def post(self, path: str, body: bytes) -> Answer:
        """POST a JSON body; never raises for what the network or the server does."""
        request = urllib.request.Request(  # noqa: S310 - the configuration admits only http and https
            self.server + path,
            data=body,
            method="POST",
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json, application/problem+json",
                "Authorization": f"Bearer {self._token}",
                "User-Agent": f"hugeplan-agent/{__version__}",
            },
        )
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as response:
                document = _json_object(response.read(MAX_ANSWER_BYTES))
                return Answer(Outcome.DELIVERED, f"status {response.status}", response.status, document=document)
        except urllib.error.HTTPError as error:
            with error:
                return self._refusal(error)
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            return Answer(Outcome.UNAVAILABLE, f"{self.server} cannot be reached: {reason}")

    def _refusal(self, error: urllib.error.HTTPError) -> Answer:
        try:
            document = _json_object(error.read(MAX_ANSWER_BYTES))
        except (http.client.HTTPException, OSError):
            document = {}
        wait = parse_retry_after(error.headers.get("Retry-After"), datetime.now(timezone.utc))
        detail = f"status {error.code}: {document.get('detail') or document.get('title') or error.reason}"
        return Answer(classify(error.code), detail, error.code, wait, document)


def is_loopback(server: str) -> bool:
    """Whether an address names this machine."""
    host = urllib.parse.urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def classify(status: int) -> Outcome:
    """What an answer other than 2xx means for the report."""
    if status in (401, 403):
        return Outcome.FORBIDDEN
    if 400 <= status < 500 and status not in NOT_THE_REPORT:
        return Outcome.REJECTED
    return Outcome.SERVER_FAULT if status == 500 else Outcome.UNAVAILABLE


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
