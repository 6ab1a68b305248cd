"""A load of reports over keep-alive connections, from prepared bytes: the client must not be what is measured."""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What a load saw. ``seconds`` are the times of single requests."""

    rate: float
    seconds: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """A quantile of the times of single requests."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def median(self) -> float:
        """The median time of one request."""
        return statistics.median(self.seconds)


def request_bytes(port: int, token: str, body: bytes, method: str = "POST", path: str = "/api/v1/reports") -> bytes:
    """A whole request."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer with a Content-Length."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return status, await reader.readexactly(length)


async def run_load(port: int, makers: list[Callable[[], bytes]], *, seconds: float, rate: float | None = None) -> Load:
    """One connection per maker, each sending as soon as it has its answer, or at its share of ``rate``."""
    until = time.perf_counter() + seconds
    times: list[float] = []

    async def one(index: int, make: Callable[[], bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        pause = len(makers) / rate if rate else 0.0
        due = time.perf_counter() + pause * index / len(makers)
        while time.perf_counter() < until:
            if pause:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                due += pause
            request = make()
            begun = time.perf_counter()
            writer.write(request)
            status, body = await answer(reader)
            if status not in (200, 201):
                raise RuntimeError(f"answered {status}: {body[:300]!r}")
            times.append(time.perf_counter() - begun)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one(index, make) for index, make in enumerate(makers)))
    return Load(len(times) / (time.perf_counter() - begun), tuple(times))


class ReportMaker:
    """Requests with reports that differ in nothing but their id: one template, one replacement."""

    def __init__(self, port: int, token: str, body: bytes, report_id: str) -> None:
        request = request_bytes(port, token, body)
        self._before, self._after = request.split(report_id.encode(), 1)

    def __call__(self) -> bytes:
        """The next request."""
        return self._before + str(uuid.uuid4()).encode() + self._after
