"""Tells the service manager how the agent is doing: the protocol of sd_notify(3), which is one datagram."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(*lines: str) -> None:
    """Send lines such as ``READY=1``, ``STATUS=...`` or ``WATCHDOG=1``; nothing happens outside of systemd."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.connect(address)
        channel.sendall("\n".join(lines).encode())


def watchdog_seconds() -> float | None:
    """Half of the time within which systemd wants to hear from us; None when it does not ask."""
    text = os.environ.get("WATCHDOG_USEC", "")
    return int(text) / 2_000_000 if text.isdecimal() and int(text) > 0 else None
