"""Items of different owners in one loop: what is wrong with one of them keeps no other waiting."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, PendingRollbackError, ResourceClosedError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hugeplan.errors import ProblemError, RateLimitedError, UnavailableError
from hugeplan.planner.errors import PlannerError

AWAY: Final = "The database is away or busy. Nothing was stored; try again later."
UNKNOWN: Final = "The database did not answer in time. This may have been stored; look before you send it again."
INTERNAL: Final = "Internal error: the service's log says more."
_CONCERNS_ALL: Final = ("08", "25", "53", "57P")
"""SQLSTATE of a connection that failed, of a transaction that can do nothing more, of resources that are gone, of a
server that stops (PostgreSQL, appendix A)."""
_TOOK_TOO_LONG: Final = "25P03"
"""Of a transaction that waited for what this item had to do: its connection is gone, others are not."""

# PostgreSQL's "the server went away" classes: connection exception, operator intervention,
# insufficient resources, lost a deadlock or a serialisation, a lock not granted in time, and a read-only
# transaction (a replica during failover). All of them pass; nothing was stored.
_UNAVAILABLE_SQLSTATES = ("08", "57", "53", "40", "55P03", "25006")

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Tried:
    """``why`` an item could not be done, as a sentence for its owner; None where it was."""

    why: str | None = None


@contextmanager
def alone(name: str, *through: type[Exception]) -> Iterator[Tried]:
    """End what the block does for this one item where it raises. What nobody foresaw is logged once.

    What concerns all items goes ``through``, as a database that is away and a sandbox without room always do.
    """
    tried = Tried()
    try:
        yield tried
    except Exception as error:
        if _concerns_all(error) or isinstance(error, through):
            raise
        tried.why = str(error)
        if not isinstance(error, ProblemError | PlannerError):
            tried.why = AWAY if is_unavailable(error) else INTERNAL
            _log_once(name, f"{type(error).__name__}: {error}"[:500])


def is_unavailable(error: BaseException) -> bool:
    """Whether a database error means that the server is away or busy, rather than that the statement is wrong."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeoutError | ConnectionError)
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is None:
        return isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated
    return str(sqlstate).startswith(_UNAVAILABLE_SQLSTATES)


def _concerns_all(error: Exception) -> bool:
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None)
        return state is None or (state.startswith(_CONCERNS_ALL) and state != _TOOK_TOO_LONG)
    # Of SQLAlchemy's own errors those of the session: that there is no result concerns one item.
    broken = PoolTimeoutError, PendingRollbackError, ResourceClosedError
    return isinstance(error, (*broken, OSError, UnavailableError, RateLimitedError))


@lru_cache(1024)
def _log_once(name: str, error: str) -> None:
    _logger.exception("one item could not be done; the others go on", extra={"item": name, "error": error})
