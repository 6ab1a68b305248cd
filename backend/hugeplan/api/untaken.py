"""What the kernel has of answers, and their clients have not.

For asyncio an answer is sent when the kernel has it, which keeps the answers of closed connections for as long as their
clients say that they are there and read nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

MIN_READ_BYTES: Final = 32 * 1024
"""How much of its answer a client takes in its time to read, or all that is left."""
FIRST_LOOK_SECONDS: Final = 0.05
"""Until the kernel is asked; then after twice as long, up to"""
LOOK_SECONDS: Final = 1.0
_TCP_CLOSE: Final = 7
"""linux/include/net/tcp_states.h"""
_BYTES_ACKED: Final = slice(120, 128)
"""tcpi_bytes_acked, of Linux 4.1 and later (linux/include/uapi/linux/tcp.h)."""
_NOTHING_IS_KEPT: Final = struct.pack("ii", 1, 0)


def acknowledged_bytes(opened: Any) -> int | None:
    """What a client has said to have of a connection since its beginning; None where it is no TCP."""
    with suppress(OSError):
        found = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.stop)[_BYTES_ACKED]
        return int.from_bytes(found, sys.byteorder) if found else None
    return None


def reset_at_close(opened: Any) -> None:
    """Have the kernel forget what is left of an answer when a connection is closed. OSError."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOTHING_IS_KEPT)


def when_taken(opened: Any, seconds: float, then: Callable[[], None]) -> None:
    """Call once the client of a connection that is closed now has its answer, or takes no more of it for so long."""
    with suppress(OSError):  # it is no TCP
        if left := _left(opened):
            try:
                kept = opened.dup()
            except OSError:  # no more files may be open
                reset_at_close(opened)
            else:
                with suppress(OSError):
                    kept.shutdown(socket.SHUT_WR)  # as closing it does
                _look(kept, left, seconds, then)
                return
    then()


def _look(kept: socket.socket, unread: int, seconds: float, then: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def look(unread: int, until: float, pause: float) -> None:
        left, now = _left(kept), loop.time()
        if left and now >= until:
            if unread - left < MIN_READ_BYTES:
                reset_at_close(kept)
                left = 0
            unread, until = left, now + seconds
        if left:
            loop.call_later(pause, look, unread, until, min(2 * pause, LOOK_SECONDS))
        else:
            kept.close()
            then()

    look(unread, loop.time() + seconds, FIRST_LOOK_SECONDS)


def _left(opened: Any) -> int:
    """What a client has not said to have, in bytes; the end of the connection counts as one. OSError."""
    if opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSE:
        return 0
    return int.from_bytes(fcntl.ioctl(opened.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
