"""One answer of an HTTP server that may have turned bad: whole within a time and a size, or an error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import Thread
from time import monotonic
from typing import Any

import httpx

from hugeplan.here import is_here


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and unpacked body."""

    status: int
    headers: httpx.Headers
    content: bytes | bytearray


def client_of(url: str, headers: dict[str, str], seconds: float) -> httpx.Client:
    """A client for one server. No proxy of the environment gets what is for this machine; its certificates count.

    Raises httpx.InvalidURL, and httpx.HTTPError where the environment's proxy or certificates cannot be used, or a
    header, whose own error would say the token.
    """
    if not all(re.fullmatch("[!-~]+( [!-~]+)?", value) for value in headers.values()):
        raise httpx.UnsupportedProtocol("the token is not one word of printable ASCII characters")
    is_far = not is_here(httpx.URL(url).host)
    try:
        certificates = httpx.create_ssl_context()
        return httpx.Client(headers=headers, timeout=seconds, trust_env=is_far, verify=certificates)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:  # whose words may have a password
        said = "what HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE says is of no use"
        raise httpx.UnsupportedProtocol(said) from error


def shown_url(url: str) -> str:
    """``url`` without its user and password, also where it is not valid."""
    return re.sub(r"(?s)^(\w+://)?.*[@﹫＠]", r"\1", url)


def whole_answer(client: httpx.Client, *what: str, seconds: float, most_bytes: int, **more: Any) -> Answer:
    """The answer to a request (method, URL). Raises httpx.HTTPError (ReadTimeout when it takes longer) and InvalidURL.

    The client's own limits are per read: a name, a head or a body that comes in small parts would never end.
    """
    end = monotonic() + seconds
    found: list[Answer | Exception] = []

    def ask() -> None:
        content = bytearray()
        try:
            with client.stream(*what, headers={"accept-encoding": "gzip"}, **more) as answer:
                if (coding := answer.headers.get("content-encoding", "identity")) not in {"identity", "gzip"}:
                    raise httpx.DecodingError(f"content-encoding {coding[:80]}; expected gzip")  # twice has no bound
                for chunk in answer.iter_bytes():
                    content += chunk
                    if monotonic() > end:
                        return
                    if len(content) > most_bytes:
                        raise httpx.ReadError(f"it has more than {most_bytes} bytes")
            found.append(Answer(answer.status_code, answer.headers, content))
        except Exception as error:  # raised below
            found.append(error)

    thread = Thread(target=ask, daemon=True)  # which is left behind at the end, and ends with its connection
    thread.start()
    thread.join(seconds)
    if not found or isinstance(found[0], httpx.TimeoutException):
        raise httpx.ReadTimeout(f"no answer within {seconds:g} s")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]
