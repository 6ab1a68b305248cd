"""Questions to the Kubernetes API server, as rarely and as cheaply as they can be put (ADR 0023).

Lists come from the API server's cache (``resourceVersion=0``), only for this node (a field selector), and hold the
objects' metadata alone: no variable and no command line of a pod ever reaches the agent. Of that it keeps names alone,
one object at a time: whoever creates pods chooses how large their annotations are. Nothing is watched.

What may go wrong and what is done: 401, the token file is read again, once; 403 and 404, said; 410 in a list that
comes in parts, the list is begun again, once; 429, 5xx and a server that is away, no question until Retry-After or a
growing wait has passed, so that an API server under load is left in peace.
"""

from __future__ import annotations

import codecs
import http.client
import json
import random
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from hugeplan_agent.backoff import delay_seconds, parse_retry_after

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_SECONDS = 5
#: Of an answer that is one object, and of one object of a list.
MAX_ANSWER_BYTES = 4 << 20
#: Of a list: 250 pods with all the annotations that Kubernetes allows, 256 KiB each.
MAX_LIST_BYTES = 64 << 20
CHUNK_BYTES = 64 << 10
PAGE_ITEMS = 100
MAX_PAGES = 50
#: A static pod's cgroup has the hash of its file, which its mirror carries.
MIRRORED = "kubernetes.io/config.mirror"
MAX_HASH = 64
ITEMS = re.compile(r'"items"\s*:\s*\[')
NEXT = re.compile(r"[{\]]")
METADATA_ALONE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TOO_MANY_REQUESTS = 429


class NotToldError(Exception):
    """The API server did not answer the question; the text says why, ``status`` is HTTP's where there was one."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


def is_offered(environment: Mapping[str, str], account: Path = ACCOUNT) -> bool:
    """Whether this process runs in a pod that may ask the API server for its node."""
    wanted = ("KUBERNETES_SERVICE_HOST", "HUGEPLAN_AGENT_NODE_NAME")
    return all(environment.get(name) for name in wanted) and (account / "token").is_file()


def _object(answer: http.client.HTTPResponse) -> Any:
    body = answer.read(MAX_ANSWER_BYTES + 1)
    if len(body) > MAX_ANSWER_BYTES:
        raise NotToldError(f"the API server's answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
    return json.loads(body)


def _list(answer: http.client.HTTPResponse, left: int) -> Any:
    """A part of a list with what its objects are known by, one of which is in memory at a time; what is left of
    the bytes that may be read."""
    decode, parse = codecs.getincrementaldecoder("utf-8")().decode, json.JSONDecoder().raw_decode
    head, text, at = "", "", 0
    items: list[Any] = []
    while more := answer.read(min(max(CHUNK_BYTES, len(text) - at), left)):
        text, at, left = text[at:] + decode(more), 0, left - len(more)
        if not head and (begin := ITEMS.search(text)):
            head, at = text[: begin.end()], begin.end()
        with suppress(ValueError):  # the rest of it is still to come
            while head and (found := NEXT.search(text, at)):
                at = found.start()
                if found[0] == "]":
                    return {**json.loads(head + text[at:]), "items": items, "left": left}
                item, at = parse(text, at)
                items.append(_known_by(item))
        if not left or len(text) - at > MAX_ANSWER_BYTES or len(items) > MAX_PAGES * PAGE_ITEMS:
            raise NotToldError(f"the list is longer than {MAX_LIST_BYTES >> 20} MiB, or an object of it than a few")
    return json.loads(text)


def _known_by(item: Any) -> dict[str, Any]:
    meta = item.get("metadata")
    if not isinstance(meta, dict):
        return {}
    told = meta.get("annotations")
    mirrored = str(told.get(MIRRORED))[:MAX_HASH] if isinstance(told, dict) else None
    names = {key: meta.get(key) for key in ("uid", "namespace", "name")}
    return {"metadata": {**names, "annotations": {MIRRORED: mirrored}}}


class KubernetesApi:
    """The API server as a pod's service account reaches it. ``clock`` and ``uniform`` are replaced by tests."""

    def __init__(
        self,
        environment: Mapping[str, str],
        account: Path = ACCOUNT,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.node_name = environment.get("HUGEPLAN_AGENT_NODE_NAME", "")
        self._address = environment["KUBERNETES_SERVICE_HOST"], int(environment.get("KUBERNETES_SERVICE_PORT") or 443)
        self._account = account
        self._clock = clock
        self._uniform = uniform
        self._failures = 0
        self._not_before = 0.0
        self._why = ""

    def get(
        self,
        path: str,
        query: Mapping[str, str],
        accept: str = "application/json",
        read: Callable[[http.client.HTTPResponse], Any] = _object,
    ) -> dict[str, Any]:
        """One object. Raises NotToldError."""
        wait = self._not_before - self._clock()
        if wait > 0:
            raise NotToldError(f"{self._why}; not asked again for {wait:.0f} s")
        target = f"{path}?{urlencode(query)}" if query else path
        token = self._token()
        status, reason, headers, found = self._exchange(target, token, accept, read)
        if status == http.client.UNAUTHORIZED and (renewed := self._token()) != token:
            status, reason, headers, found = self._exchange(target, renewed, accept, read)
        if status == TOO_MANY_REQUESTS or status >= http.client.INTERNAL_SERVER_ERROR:
            text = f"the API server answers {status} {reason}"
            self._wait(text, parse_retry_after(headers.get("Retry-After"), datetime.now(timezone.utc)))
            raise NotToldError(text, status)
        self._failures = 0
        if status != http.client.OK:
            raise NotToldError(f"the API server answers {status} {reason}", status)
        if not isinstance(found, dict):
            raise NotToldError("the API server's answer is no object")
        return found

    def list_metadata(self, path: str, query: Mapping[str, str]) -> list[Any]:
        """The names of all objects of a list, in as many parts as the server makes of it. Raises NotToldError."""
        try:
            return list(self._pages(path, query))
        except NotToldError as error:
            if error.status != http.client.GONE:
                raise
        # What the parts were to continue from is no longer kept; a list of one node's pods is short.
        return list(self._pages(path, query))

    def _pages(self, path: str, query: Mapping[str, str]) -> Iterator[Any]:
        question = {**query, "limit": str(PAGE_ITEMS), "resourceVersion": "0"}
        left = MAX_LIST_BYTES
        for _ in range(MAX_PAGES):
            page = self.get(path, question, METADATA_ALONE, partial(_list, left=left))
            left = page.get("left", left)
            yield from page.get("items") or ()
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return
            question = {**query, "limit": str(PAGE_ITEMS), "continue": str(following)}
        raise NotToldError(f"the list has more than {MAX_PAGES} parts")

    def _token(self) -> str:
        try:
            token = (self._account / "token").read_text().strip()
            if len(token.split()) != 1:  # the error of a header with it would say it
                raise ValueError("its token is not one word")
            return token
        except (OSError, ValueError) as error:
            raise NotToldError(f"the service account cannot be read: {error}") from error

    def _exchange(
        self, target: str, token: str, accept: str, read: Callable[[http.client.HTTPResponse], Any]
    ) -> tuple[int, str, http.client.HTTPMessage, Any]:
        try:
            context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
        except (OSError, ValueError) as error:
            raise NotToldError(f"the service account cannot be read: {error}") from error
        connection = http.client.HTTPSConnection(*self._address, timeout=TIMEOUT_SECONDS, context=context)
        try:
            connection.request("GET", target, headers={"Authorization": f"Bearer {token}", "Accept": accept})
            answer = connection.getresponse()
            try:
                found = read(answer) if answer.status == http.client.OK else None
            except (ValueError, RecursionError) as error:
                raise NotToldError("the API server's answer is not JSON") from error
        except (OSError, http.client.HTTPException) as error:
            text = f"the API server cannot be reached: {error or type(error).__name__}"
            self._wait(text, None)
            raise NotToldError(text) from error
        finally:
            connection.close()
        return answer.status, answer.reason, answer.headers, found

    def _wait(self, why: str, retry_after_seconds: float | None) -> None:
        self._failures += 1
        self._why = why
        self._not_before = self._clock() + delay_seconds(self._failures, retry_after_seconds, self._uniform)
