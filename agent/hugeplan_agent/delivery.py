"""Empties the spool: which report next, what to do with the server's answer, when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hugeplan_agent.sender import Answer, Outcome
from hugeplan_agent.spool import Spool
from hugeplan_agent.whole_files import read_file

MAX_FAULTS = 3
"""After so many 500s in one pass the server is at fault, not the reports."""

MAX_REPORT_BYTES = 64 * 1024**2
"""No server takes as much; a file that is larger waits until it is dropped."""

Send = Callable[[bytes, str], Answer]


@dataclass
class Pass:
    """What one pass over the spool did: ids of reports, and words of refusals. Whole answers are megabytes each.

    ``stopped_by`` is the answer that ended it early, or the last fault.
    """

    delivered: list[str] = field(default_factory=list)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    stopped_by: Answer | None = None
    busy: bool = False

    @property
    def is_complete(self) -> bool:
        return self.stopped_by is None and not self.busy


def deliver(spool: Spool, send: Send, should_stop: Callable[[], bool] = lambda: False) -> Pass:
    """Send waiting reports, the oldest first, until the spool is empty or the server cannot take more."""
    done = Pass()
    with spool.sending() as is_mine:
        if not is_mine:
            done.busy = True
            return done
        spool.remove_leftovers()
        faults = 0
        for entry in spool.entries():
            if should_stop():
                break
            try:
                body = read_file(entry.path, MAX_REPORT_BYTES)
            except OSError:  # dropped by its age or size meanwhile; or not to be read, which must not stop the others
                continue
            answer = send(body, entry.report_id)
            if answer.outcome is Outcome.DELIVERED:
                spool.delivered(entry)
                done.delivered.append(entry.report_id)
            elif answer.outcome is Outcome.REJECTED:
                spool.reject(entry, answer.document or {"status": answer.status, "detail": answer.detail})
                done.rejected.append((entry.report_id, answer.detail))
            else:
                done.stopped_by = answer
                faults += 1
                if answer.outcome is not Outcome.SERVER_FAULT or faults >= MAX_FAULTS:
                    break
    return done
