"""Bodies that are large, or become large: one of them is parsed at a time, and they are unpacked in turns."""

from __future__ import annotations

import asyncio
import gzip
import threading
from functools import partial
from itertools import count
from typing import Any

import pytest
from starlette.requests import Request

from hugeplan.api.body import PARSE_BESIDE_LOOP_BYTES, BodyLimits, _Inflater, beside_loop, read_body
from hugeplan.api.loop_share import ROUND_SECONDS
from hugeplan.errors import RateLimitedError
from hugeplan.settings import Settings

MIB = 1024**2


def request_of(whose: str, body: bytes = b"", address: str = "203.0.113.7") -> Request:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    headers = [
        (b"content-type", b"application/json"),
        (b"content-encoding", b"gzip"),
        (b"transfer-encoding", b"chunked"),
    ]
    made = Request({"type": "http", "headers": headers, "client": (address, 1), "state": {}}, receive)
    made.state.line_id = whose
    return made


async def test_one_large_body_is_parsed_at_a_time_and_of_each_credential_one_is_in_line() -> None:
    """Ten agents' bodies of 200 kB were parsed in 40 threads, which took the interpreter from all others for 6 s."""
    limits, done, at_work = BodyLimits.of(Settings()), list[str](), list[int]()

    def work(whose: str) -> None:
        at_work.append(1)
        assert len(at_work) == 1
        assert threading.current_thread() is not threading.main_thread()
        done.append(whose)
        at_work.pop()

    whose = ["flood"] * 20 + ["other"]
    sizes = [PARSE_BESIDE_LOOP_BYTES + 1, 2 * MIB] * 11
    works = [
        beside_loop(request_of(one), size, limits, partial(work, one)) for one, size in zip(whose, sizes, strict=False)
    ]
    await asyncio.gather(*works)
    assert done.index("other") <= 2


@pytest.mark.parametrize("size", [1, PARSE_BESIDE_LOOP_BYTES + 1])
async def test_an_addresses_credentials_are_one_in_line_and_take_turns_within_it(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred agents of one enrolment token each had a place: a small report of their address took 10 s."""
    clock = count()
    monkeypatch.setattr("time.thread_time", lambda: next(clock) * 5 * ROUND_SECONDS)
    limits, done = BodyLimits.of(Settings()), list[str]()
    here, elsewhere = "203.0.113.7", "203.0.113.8"
    asks = [(f"agent {number}", here) for number in range(20) for _ in range(4)]
    asks += [("beside", here), ("elsewhere", elsewhere)]
    works = [
        beside_loop(request_of(whose, address=at), size, limits, partial(done.append, whose)) for whose, at in asks
    ]
    await asyncio.gather(*works)
    assert done.index("elsewhere") <= 2
    assert done.index("beside") <= 22


def test_a_refusal_of_the_first_part_spares_the_others() -> None:
    packed, asked = gzip.compress(b" " * 8 * MIB), list[int]()

    def taken(count: int) -> None:
        asked.append(count)
        raise RateLimitedError("no room", headers={})

    inflater = _Inflater(BodyLimits.of(Settings()))
    assert len(next(iter(inflater.parts(packed)))) == 64 * 1024
    assert inflater._zlib.unconsumed_tail
    request = request_of("a", packed)
    with pytest.raises(RateLimitedError):
        asyncio.run(read_body(request, BodyLimits.of(Settings()), taken))
    assert asked == [64 * 1024]


async def test_what_a_small_body_unpacks_to_takes_turns_with_others() -> None:
    """8 MiB were unpacked in one round of the loop; 60 connections of one agent made a viewer wait for 1.5 s."""
    others = 0

    async def go_round() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    busy = asyncio.create_task(go_round())
    limits = BodyLimits.of(Settings())
    bodies = await asyncio.gather(
        *(read_body(request_of("a", gzip.compress(b" " * 4 * MIB)), limits) for _ in range(4))
    )
    busy.cancel()
    assert [len(body) for body in bodies] == [4 * MIB] * 4
    assert others > 4 * 4 * MIB / (64 * 1024) * 0.0003 / ROUND_SECONDS * 0.8
