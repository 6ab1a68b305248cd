"""Asks a hugeplan service over HTTP, for the commands that have a service's URL."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx

from hugeplan.cli import InputError
from hugeplan.cli.files import read_text
from hugeplan.documents.trial import TrialDocument
from hugeplan.http_answer import Answer, client_of, shown_url, whole_answer

SECONDS: Final = 120.0
MOST_BYTES: Final = 16 * 2**20
LIST_SECONDS: Final = 600.0
LIST_MOST_BYTES: Final = 128 * 2**20
_TRIES: Final = 5
_LONGEST_WAIT: Final = 60  # seconds


class RefusedError(InputError):
    """What was sent is too much at a time, or is not what the service takes."""


class ServiceClient:
    """A service at a URL that ``option`` names. Every request that is refused or fails is an InputError in one line."""

    def __init__(self, url: str, *, option: str, token_file: str | None = None) -> None:
        self._url, self._shown = url, f"{option} {shown_url(url)}"
        self._headers = {"authorization": f"Bearer {_token(option, token_file)}", "content-type": "application/json"}

    def ask(self, path: str, body: bytes | None = None, parameters: dict[str, str] | None = None) -> Answer:
        """The answer: to a POST where there is a body, else to a GET. Where it says when to, it is asked again."""
        url, method = f"{self._url.rstrip('/')}/api/v1/{path}", "GET" if body is None else "POST"
        for left in reversed(range(_TRIES)):
            try:
                with client_of(url, self._headers, SECONDS) as client:
                    sent = {"content": body, "params": parameters}
                    answer = whole_answer(client, method, url, seconds=SECONDS, most_bytes=MOST_BYTES, **sent)
            except httpx.InvalidURL as error:  # whose words may be a part of the password
                raise InputError(f"{self._shown}: not a valid URL; expected one such as https://host:8000") from error
            except httpx.HTTPError as error:
                raise InputError(f"{self._shown}: {error or type(error).__name__}") from error
            wait = answer.headers.get("retry-after", "") if answer.status in {429, 503} else ""
            if not left or not re.fullmatch("[0-9]{1,4}", wait) or int(wait) > _LONGEST_WAIT:
                break
            time.sleep(int(wait))
        if 200 <= answer.status < 300 and answer.headers.get("content-type", "").startswith("application/json"):
            return answer
        kind = RefusedError if answer.status in {413, 422} else InputError
        raise kind(f"{self._shown}: HTTP {answer.status}: {_detail(answer)[:2000]}")

    def items(self, path: str) -> Iterator[dict[str, Any]]:
        """What a list holds, from all of its pages; for a block that is ``understood``."""
        parameters, left, end = {"limit": "500"}, LIST_MOST_BYTES, time.monotonic() + LIST_SECONDS
        while left > 0 and time.monotonic() < end:
            content = self.ask(path, parameters=parameters).content
            page, left = json.loads(content), left - len(content)
            yield from page["items"]
            if (cursor := page["next_cursor"]) is None:
                return
            if not isinstance(cursor, str) or cursor == parameters.get("cursor"):
                raise TypeError(cursor)
            parameters = {"limit": "500", "cursor": cursor}
        limits = f"{LIST_MOST_BYTES} bytes and {LIST_SECONDS:g} s"
        raise InputError(f"{self._shown}: a list without end; expected at most {limits}")

    @contextmanager
    def understood(self) -> Iterator[None]:
        """InputError where what was answered is not of the types that the block reads."""
        try:
            yield
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InputError(f"{self._shown}: not an answer of hugeplan") from error


def post(url: str, document: TrialDocument, token_file: str | None) -> str:
    """Send a trial; what the service answered, in one line.

    The result is on the disk by then, so that it can be sent again.
    """
    client = ServiceClient(url, option="--to", token_file=token_file)
    answer = client.ask("trials", body=document.model_dump_json().encode())
    return f"sent to {shown_url(url)}: {'stored' if answer.status == 201 else 'it was there already'}"


def _token(option: str, path: str | None) -> str:
    if path is not None:
        return read_text(path, "--token-file").strip()
    token = os.environ.get("HUGEPLAN_TOKEN", "").strip()
    if not token:
        raise InputError(f"{option} needs a token, and HUGEPLAN_TOKEN is not set")
    return token


def _detail(answer: Answer) -> str:
    """The problem's own words."""
    try:
        problem = json.loads(answer.content)
    except (ValueError, RecursionError):
        problem = None
    if not isinstance(problem, dict):
        return "not an answer of hugeplan"
    match problem.get("errors"):
        case [{"field": field, "expected": expected}, *_]:
            first = f" ({field}: expected {expected})"
        case _:
            first = ""
    return f"{problem.get('detail') or problem.get('title')}{first}"
