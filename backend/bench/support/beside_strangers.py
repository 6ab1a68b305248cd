"""p99 of a valid client beside 200 clients without a credential that send bombs, against its p99 without them."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

from bench.support.figures import Figure, figure
from bench.support.load import answer, request_bytes
from bench.support.world import BACKEND

STRANGERS = 200
SECONDS = 6.0
PAIRS = 3
PAUSE_SECONDS = 0.005
"""Between two requests: a client without a pause would measure itself."""
SCRIPT = BACKEND / "tests" / "door" / "strangers.py"


async def _latencies(port: int, token: str, seconds: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = request_bytes(port, token, b"", "GET", "/api/v1/nodes?limit=50")
    taken = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.perf_counter()
        writer.write(request)
        status, _ = await answer(reader)
        if status != 200:
            raise RuntimeError(f"answered {status}")
        taken.append(time.perf_counter() - begun)
        await asyncio.sleep(PAUSE_SECONDS)
    writer.close()
    return taken


def beside_strangers(port: int, token: str) -> Figure:
    """The median of some pairs. The time is that of the loaded p99; the bar is three times the quiet one."""
    asyncio.run(_latencies(port, token, 1.0))
    pairs = []
    answers = 0
    for _ in range(PAIRS):
        quiet = _p99(asyncio.run(_latencies(port, token, SECONDS / 2)))
        command = [sys.executable, str(SCRIPT), str(port), str(STRANGERS), str(SECONDS + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as strangers:  # noqa: S603 - our own
            loaded = _p99(asyncio.run(_latencies(port, token, SECONDS)))
            answers += int(strangers.communicate(timeout=60)[0])
        pairs.append((loaded / quiet, loaded, quiet))
    if answers < STRANGERS:
        raise RuntimeError(f"{STRANGERS} strangers got only {answers} answers: nobody was there")
    ratio = statistics.median(pair[0] for pair in pairs)
    loaded = statistics.median(pair[1] for pair in pairs)
    return figure(
        f"valid client beside {STRANGERS} strangers: p99",
        loaded,
        3 * loaded / ratio,
        ratio=round(ratio, 2),
        bar_ratio=3,
        quiet_p99_ms=round(1000 * statistics.median(pair[2] for pair in pairs), 2),
        strangers_answers=answers,
    )


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]
