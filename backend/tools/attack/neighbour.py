"""Another client: ``python -m tools.attack.neighbour PORT TWIN_PORT TOKEN`` asks two services again and again.

One of them is attacked. Its twin is idle: how long it takes is the noise of the machine at that moment. Prints the
name, the seconds and the status of each request, until its input ends. It is a process of its own, so what it waits for
is the service and not the attacker beside it.
"""

from __future__ import annotations

import http.client
import itertools
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


class Asking(threading.Thread):
    """Asks one service again and again."""

    def __init__(self, name: str, port: int, token: str, ending: threading.Event) -> None:
        super().__init__(name=name)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self._token, self._ending = token, ending

    def run(self) -> None:
        """Ask until the process ends."""
        for path in itertools.cycle(PATHS):
            if self._ending.wait(PAUSE_SECONDS):
                return
            begun = time.monotonic()
            status = ask(self._connection, path, self._token)
            sys.stdout.write(f"{self.name} {time.monotonic() - begun:.6f} {status}\n")
            sys.stdout.flush()


def main() -> None:
    """Ask both until the input ends."""
    token, ending = sys.argv[3], threading.Event()
    asking = [
        Asking(name, int(port), token, ending) for name, port in (("service", sys.argv[1]), ("twin", sys.argv[2]))
    ]
    for each in asking:
        each.start()
    sys.stdin.read()
    ending.set()
    for each in asking:
        each.join()


if __name__ == "__main__":
    main()
