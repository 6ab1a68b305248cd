"""Sends a trial to a hugeplan service."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from hugeplan.cli import InputError
from hugeplan.documents.trial import TrialDocument

_SECONDS = 30.0


def post(url: str, document: TrialDocument, token_file: str | None) -> str:
    """What the service answered, in one line. InputError where it refused or could not be reached.

    The result is on the disk by then, so that it can be sent again.
    """
    token = _token(token_file)
    try:
        answer = httpx.post(
            f"{url.rstrip('/')}/api/v1/trials",
            content=document.model_dump_json(),
            headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
            timeout=_SECONDS,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InputError(f"--to {url}: {error}") from error
    if answer.is_success:
        return f"sent to {url}: {'stored' if answer.status_code == 201 else 'it was there already'}"
    try:
        why = answer.json().get("detail") or answer.json().get("title")
    except (ValueError, AttributeError):
        why = "it is no hugeplan service"
    raise InputError(f"--to {url}: status {answer.status_code}: {why}")


def _token(path: str | None) -> str:
    if path is not None:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"--token-file {path}: {error.strerror}") from error
    token = os.environ.get("HUGEPLAN_TOKEN", "").strip()
    if not token:
        raise InputError("--to URL needs a token: give --token-file FILE or set HUGEPLAN_TOKEN")
    return token
