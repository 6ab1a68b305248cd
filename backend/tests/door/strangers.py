"""Many clients without a credential, each sending bombs in a closed loop: ``python strangers.py PORT CLIENTS SECONDS``.

Prints how many answers they got. It only ever talks to 127.0.0.1, for at most SECONDS.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from itertools import count

BOMB = (('{"' + "😀" * 512 + '":') * 30 + "[" + "0," * 50_000 + "0]" + "}" * 30).encode()
OBJECTS = b"[" + b"{}," * 2_700_000 + b"{}]"
READ_SECONDS = 5.0


def request(number: int) -> tuple[bytes, bytes]:
    """Head and body of one of six: two bombs, with no credential, a forged token and a forged cookie."""
    body = (BOMB, OBJECTS)[number % 2]
    credential = ("", f"Authorization: Bearer hp_{number}\r\n", f"Cookie: hugeplan_session={number}\r\n")[number % 3]
    path = ("/api/v1/plans/preview", "/api/v1/reports")[number // 6 % 2]
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\n{credential}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode(), body


async def stranger(port: int, until: float, numbers: count[int]) -> int:
    """Bombs one after the other; the number of answers."""
    answers = 0
    while time.monotonic() < until:
        head, body = request(next(numbers))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            continue
        try:
            async with asyncio.timeout(READ_SECONDS):
                writer.write(head)
                sending = asyncio.create_task(send(writer, body))
                answers += (await reader.readline()).startswith(b"HTTP/1.1 4")
                sending.cancel()
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
    return answers


async def send(writer: asyncio.StreamWriter, body: bytes) -> None:
    """As much of the body as the service takes."""
    try:
        for start in range(0, len(body), 65536):
            writer.write(body[start : start + 65536])
            await writer.drain()
    except OSError:
        return


async def main(port: int, clients: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    numbers = count()
    answers = await asyncio.gather(*(stranger(port, until, numbers) for _ in range(clients)))
    print(sum(answers))


if __name__ == "__main__":
    os.nice(19)  # strangers are elsewhere: what they cost is what the service does for them, not their own work
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
