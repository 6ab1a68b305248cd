"""Prometheus' HTTP API: instant and range queries. Every failure is one line."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from hugeplan.http_answer import Answer, client_of, shown_url, whole_answer
from hugeplan.inventory.model import InventoryError
from hugeplan.inventory.prometheus.queries import LABELS, MOST_OF_A_NAME, NAMES, named_by

#: Of one answer. The largest of 10,000 nodes with 100,000 pods has 120 MiB.
_BODY_MAX = 256 * 2**20
#: What is decoded at a time, and where a proxy wrote it in another way: of JSON values take the memory of 17 times
#: their text.
_PART_BYTES, _WHOLE_MAX = 2**20, 2**25
#: What all answers may take once they are read, by the estimate below. 10,000 nodes with 100,000 pods take 740 MiB,
#: and their histories 225 MiB.
_KEPT_MAX = 3 * 2**29
_SERIES_BYTES, _LABEL_BYTES, _TEXT_BYTES, _POINT_BYTES = 300, 40, 150, 90
#: Between two series of an answer; no text of JSON holds it, as a quote ends a text.
_BETWEEN = b'},{"metric":'
_MOST = 2.0**62
#: For one query, from its first byte to the answer's last: a server that takes longer is asked for less.
TIMEOUT_SECONDS = 15.0
TOKEN_VARIABLE = "HUGEPLAN_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True)
class Series:
    """A series' labels that are read, and its points: seconds since the epoch, sorted, and a value at each."""

    labels: Mapping[str, str]
    times: Sequence[float]
    values: Sequence[float]

    @property
    def value(self) -> float:
        """The newest value."""
        return self.values[-1]


class PrometheusClient:
    """A connection to one server; a context manager. ``token`` is sent as a bearer token.

    A query is asked once: the same expression again is answered from before.
    """

    def __init__(
        self, url: str, token: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS, body_max: int = _BODY_MAX
    ) -> None:
        self._body_max = body_max
        self._timeout_seconds = timeout_seconds
        self._known: dict[str, list[Series]] = {}
        self._texts: dict[str, str] = {}
        self._times = array("d")
        self._left_bytes = _KEPT_MAX
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.url = url.rstrip("/")
        try:
            parsed = httpx.URL("" if any(letter.isspace() for letter in self.url) else self.url)
        except httpx.InvalidURL:
            parsed = httpx.URL()
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise InventoryError(f"{shown_url(url)}: expected a URL such as http://prometheus.example:9090")
        self.shown = shown_url(str(parsed))
        try:
            self._client = client_of(self.url, headers, timeout_seconds)
        except httpx.HTTPError as error:
            raise InventoryError(f"{self.shown}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def query(self, expression: str) -> list[Series]:
        """The newest point of every series that an expression selects."""
        if expression not in self._known:
            self._known[expression] = self._ask("/api/v1/query", {"query": expression})
        return self._known[expression]

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Points of every series from ``start`` to ``end``, seconds since the epoch."""
        asked = {"query": expression, "start": f"{start:.0f}", "end": f"{end:.0f}", "step": f"{step_seconds:g}"}
        if (known := repr(asked)) not in self._known:
            self._known[known] = self._ask("/api/v1/query_range", asked)
        return self._known[known]

    def now(self) -> float:
        """The server's clock, so that a wrong clock here does not shift the history."""
        (found,) = self._ask("/api/v1/query", {"query": "time()"}, scalar=True)
        if not found.values:
            raise InventoryError(f"{self.shown}: its answer to time() has no value: is this a Prometheus server?")
        return found.value

    def _ask(self, path: str, parameters: Mapping[str, str], *, scalar: bool = False) -> list[Series]:
        answer = self._answer(path, parameters)
        self._refuse(answer.status, answer.content, answer.headers)
        if scalar:
            return [Series({}, *_points([self._result(answer.status, answer.content)]))]
        found = (self._series(one) for part in self._parts(answer.content) for one in self._result(answer.status, part))
        names = named_by(parameters["query"])
        return [one for one in found if one is not None and all(one.labels.get(name) for name in names)]

    def _parts(self, content: bytes | bytearray) -> Iterator[bytes | bytearray]:
        """The answer as answers of fewer series. One in which no series ends for long is none of Prometheus."""
        at, before = 0, b""
        has_status = b'"status"' in content[:64]
        while len(content) - at > _PART_BYTES:
            end = content.rfind(_BETWEEN, at, at + _PART_BYTES) if has_status else -1
            if end == -1 and len(content) - at <= _WHOLE_MAX:
                break
            if end == -1:
                raise InventoryError(f"{self.shown}: an answer with a series of more than {_PART_BYTES} bytes")
            yield before + content[at : end + 1] + b"]}}"
            at, before = end + 2, b'{"status":"success","data":{"result":['
        yield before + content[at:]

    def _result(self, status: int, content: bytes | bytearray) -> list[Any]:
        try:
            body = msgspec.json.decode(content)
        except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested without end
            raise InventoryError(f"{self.shown}: HTTP {status}, {_not_json(status)}") from error
        if not isinstance(body, dict) or body.get("status") != "success":
            reason = body.get("error") if isinstance(body, dict) else None
            words = str(reason or "not an answer of Prometheus")[:2000]
            raise InventoryError(f"{self.shown}: HTTP {status}: {words}")
        data = body.get("data")
        result = data.get("result") if isinstance(data, dict) else None
        if not isinstance(result, list):
            raise InventoryError(f"{self.shown}: an answer without a result")
        return result

    def _series(self, one: Any) -> Series | None:
        """A series with the labels that are read. Most of its texts are those of others, and one object with them.

        None without a value, or with a name that Kubernetes does not have.
        """
        if not isinstance(one, dict):
            return None
        times, values = _points(one["values"] if "values" in one else [one.get("value")])
        if not values:
            return None
        self._times = times = self._times if times == self._times else times
        labels, known = one.get("metric"), {}
        for name, text in labels.items() if isinstance(labels, dict) else ():
            if name in LABELS and isinstance(text, str):
                if len(text) > MOST_OF_A_NAME and name in NAMES:
                    return None
                if text not in self._texts:
                    self._left_bytes -= _TEXT_BYTES + sys.getsizeof(text)
                known[LABELS[name]] = self._texts.setdefault(text, text)
        self._left_bytes -= _SERIES_BYTES + len(known) * _LABEL_BYTES + len(values) * _POINT_BYTES
        if self._left_bytes < 0:
            raise InventoryError(f"{self.shown}: its answers take more than {_KEPT_MAX} bytes once they are read")
        return Series(known, times, values)

    def _refuse(self, status: int, content: bytes | bytearray, headers: httpx.Headers) -> None:
        """InventoryError for an answer that is not Prometheus's own, with what it is and what to do."""
        kind = headers.get("content-type", "")
        said = None
        if status in {401, 403}:
            sent = "the token is not accepted" if "authorization" in self._client.headers else "it wants a token"
            said = f"{sent}: put a bearer token into {TOKEN_VARIABLE}"
        elif 300 <= status < 400:
            said = f"it sends on to {headers.get('location', 'nowhere')[:200]}: give that URL, or a token of a login"
        elif status == HTTPStatus.SERVICE_UNAVAILABLE and not content.lstrip().startswith(b"{"):
            is_page = "html" in kind or content.lstrip().startswith(b"<")
            words = "" if is_page else " ".join(content[:200].decode("utf-8", "replace").split())
            said = f"it is not ready{f' ({words})' if words else ''}: try again later"
        elif "html" in kind or content.lstrip()[:1] == b"<":
            said = "the answer is a web page, not Prometheus: a login, a proxy, or a path that is missing in the URL"
        if said is not None:
            raise InventoryError(f"{self.shown}: HTTP {status}: {said}")

    def _answer(self, path: str, parameters: Mapping[str, str]) -> Answer:
        """Status, body and headers; a body that goes past the bound is not read on."""
        try:
            return whole_answer(
                self._client,
                "POST",
                f"{self.url}{path}",
                data=dict(parameters),
                seconds=self._timeout_seconds,
                most_bytes=self._body_max,
            )
        except httpx.TimeoutException as error:
            query = " ".join(parameters["query"].split())[:120]
            seconds = f"{self._timeout_seconds:g} s"
            raise InventoryError(f"{self.shown}: no answer within {seconds} to the query {query}") from error
        except httpx.HTTPError as error:
            raise InventoryError(f"{self.shown}: no answer: {error or type(error).__name__}") from error


def _not_json(status: int) -> str:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "it is asked too often: try again later"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "it or a proxy before it has failed: try again later, or look into its log"
    return "and the answer is not JSON: is this a Prometheus server?"


def _points(found: Any) -> tuple[array[float], array[float]]:
    """Times and values that a machine may have; NaN and infinities of a recording rule say nothing of memory."""
    times, values = array("d"), array("d")
    for point in found if isinstance(found, list) else ():
        try:
            moment, value = float(point[0]), float(point[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            continue
        if abs(moment) < _MOST and abs(value) < _MOST:  # NaN is not
            times.append(moment)
            values.append(value)
    return times, values
