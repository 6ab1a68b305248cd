"""Another client of the service: ``python -m tools.attack.neighbour PORT TOKEN`` asks again and again.

Prints when each request began (the machine's monotonic clock), its seconds and its status, until its input ends. It is
a process of its own, so what it waits for is the service and not the attacker beside it.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time

PATHS = ("/healthz", "/api/v1/nodes?limit=1")
PAUSE_SECONDS = 0.02
TIMEOUT_SECONDS = 60.0


def ask(connection: http.client.HTTPConnection, path: str, token: str) -> int:
    """The status of one request; 0 without an answer."""
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0


def main() -> None:
    """Ask until the input ends."""
    port, token = int(sys.argv[1]), sys.argv[2]
    ending = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ending.set()), daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    number = 0
    while not ending.wait(PAUSE_SECONDS):
        begun = time.monotonic()
        status = ask(connection, PATHS[number % len(PATHS)], token)
        print(f"{begun:.6f} {time.monotonic() - begun:.6f} {status}", flush=True)
        number += 1


if __name__ == "__main__":
    main()
