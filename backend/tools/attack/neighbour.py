"""Another client: ``python -m tools.attack.neighbour TOKEN PORT PID TWIN_PORT TWIN_PID`` asks two services.

One of them is attacked. Its twin is idle: how long it takes is the noise of the machine at that moment. Asks from one
line of its input to the next, and prints the name, the seconds, the seconds of those in which somebody waited for a
processor, and the status of each request; an empty line when it rests again. It is a process of its own, so what it
waits for is the service and not the attacker beside it.
"""

from __future__ import annotations

import http.client
import itertools
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from tools.attack import processes

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


Waits = tuple[dict[int, float], ...]


class Asking(threading.Thread):
    """Asks one service again and again."""

    def __init__(
        self,
        name: str,
        port: int,
        waits: Callable[[], tuple[dict[int, float], ...]],
        token: str,
        ending: threading.Event,
    ) -> None:
        super().__init__(name=name)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self._waits, self._token, self._ending = waits, token, ending

    def run(self) -> None:
        """Ask until the process ends."""
        for path in itertools.cycle(PATHS):
            if self._ending.wait(PAUSE_SECONDS):
                self._connection.close()
                return
            before = self._waits()
            begun = time.monotonic()
            status = ask(self._connection, path, self._token)
            seconds = time.monotonic() - begun
            waited = sum(map(processes.longest_wait, before, self._waits()))
            sys.stdout.write(f"{self.name} {seconds:.6f} {min(seconds, waited):.6f} {status}\n")
            sys.stdout.flush()


def waits(service: int) -> Waits:
    """How long the thread that asks and those of a service have waited for a processor.

    PostgreSQL's processes are left out: of several that wait at the same time none is known to be the one that is
    waited for. The twin is over the same PostgreSQL.
    """
    return processes.waited_seconds([threading.get_native_id()]), processes.waited_seconds(
        processes.threads_of(service)
    )


def main() -> None:
    """Ask both from each odd line of the input to the next one, until the input ends."""
    token = sys.argv[1]
    port, pid, twin_port, twin_pid = map(int, sys.argv[2:])
    while sys.stdin.readline():
        ending = threading.Event()
        asking = [
            Asking(name, at, partial(waits, served_by), token, ending)
            for name, at, served_by in (("service", port, pid), ("twin", twin_port, twin_pid))
        ]
        for each in asking:
            each.start()
        sys.stdin.readline()
        ending.set()
        for each in asking:
            each.join()
        print(flush=True)


if __name__ == "__main__":
    main()
