"""Whether the agent of this folder works: for probes, which start this each minute and so import little.

    python3 -m hugeplan_agent.health live     the loop goes round
    python3 -m hugeplan_agent.health ready    reports reach the server, or have only just begun not to

The times are of the clock that counts from boot, so that setting the clock fails no probe. An agent keeps a lock on
what it wrote last, which the kernel takes from it however it ends: what an agent left that has ended tells by it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time

FILE = "health.json"
HELD = "is_locked_while_its_agent_runs"
"""Says that the file's writer is one that keeps the lock; agents of before 2026-11-26 did not."""
ENDED = "no agent runs on this folder: the one that wrote its health has ended"
MOST_BYTES = 64 * 1024
LEAST_PATIENCE_SECONDS = 600.0
QUIET_SECONDS = 300.0
"""How long nothing may be delivered before a pod is not ready. A replaced one waits 150 s to be recognised."""


def now() -> float:
    """Seconds since boot, the same for all processes of a machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read(spool_dir: str) -> dict[str, object] | None:
    """What the agent wrote last, and as ``is_running`` whether that agent still runs; None without a file."""
    try:
        # pathlib takes 15 ms. Not waiting for the other end of a FIFO.
        descriptor = os.open(os.path.join(spool_dir, FILE), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # noqa: PTH118
        with open(descriptor, "rb") as file:  # noqa: PTH123
            found = json.loads(file.read(MOST_BYTES))
            if not isinstance(found, dict):
                return None
            found["is_running"] = _is_locked(descriptor) if found.get(HELD) is True else None
            was_replaced = os.fstat(descriptor).st_nlink == 0
    except (OSError, ValueError, RecursionError):
        return None
    return read(spool_dir) if found["is_running"] is False and was_replaced else found


def _is_locked(descriptor: int) -> bool | None:
    """Whether somebody holds a writer's lock on this file; None on a file system without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _seconds(found: dict[str, object], name: str) -> float:
    value = found.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0


def live(found: dict[str, object] | None, moment: float) -> tuple[bool, str]:
    """Whether the loop goes round, and a sentence."""
    if found is None:
        return False, "the agent has not written its health yet"
    if found.get("is_running") is False:
        return False, ENDED
    patience = max(LEAST_PATIENCE_SECONDS, 3 * _seconds(found, "interval_seconds"))
    age = moment - _seconds(found, "round_at")
    is_live = age <= patience + _seconds(found, "measure_limit_seconds")
    return is_live, f"the last round was {age:.0f} s ago"


def ready(found: dict[str, object] | None, moment: float) -> tuple[bool, str]:
    """Whether reports reach the server, and a sentence that says why not."""
    if found is None:
        return False, "the agent has not written its health yet"
    if found.get("is_running") is False:
        return False, ENDED
    last = max(_seconds(found, "delivered_at"), _seconds(found, "started_at"))
    patience = max(QUIET_SECONDS, 3 * _seconds(found, "interval_seconds"))
    if moment - last <= patience + _seconds(found, "measure_limit_seconds"):
        return True, "reports reach the server" if found.get("delivered_at") else "the agent has just started"
    return False, f"no report has reached the server for {moment - last:.0f} s: {found.get('why') or 'unknown why'}"


def main(arguments: list[str], spool_dir: str | None = None) -> int:
    """Print the sentence; status 0 when it is well."""
    judge = {"live": live, "ready": ready}.get(arguments[0] if arguments else "ready")
    if judge is None:
        print(f"hugeplan-agent health: {arguments[0]!r} is not valid; expected live or ready", file=sys.stderr)
        return 2
    folder = spool_dir or os.environ.get("HUGEPLAN_AGENT_SPOOL_DIR") or "/var/lib/hugeplan-agent"
    is_well, sentence = judge(read(folder), now())
    print(sentence if sentence.isprintable() else json.dumps(sentence))  # printable() would import more
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
