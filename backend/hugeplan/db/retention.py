"""Whether a round of retention may delete: what is gone stays gone, and a clock that is wrong for an hour is enough.

A round deletes nothing while the clock disagrees with PostgreSQL's or with the times in recent reports, nor when it
would take more than a stated share of what is kept. An operator who means it says so (HUGEPLAN_RETENTION_MAX_SHARE=1).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final

from sqlalchemy import text

from hugeplan.db.session import ReadSession

MAX_CLOCK_DIFFERENCE: Final = timedelta(minutes=10)
HEARD_WITHIN: Final = timedelta(days=1)
#: A time in a report may be this much older than its arrival: an outage is made up for from the spool.
MAX_SAMPLE_AGE: Final = timedelta(days=1)
ALWAYS_DAYS: Final = 2
"""So many days may go in any round: the usual round takes one, also where little is kept."""

# A machine has one vote with its clones (whose ids have a ~), as one token makes many of them. Machines of this last
# day have one only where there is no other.
_HEARD = """
WITH machines AS (
    SELECT min(name) AS name, max(last_report_at) > :since AS is_heard, min(first_report_at) <= :since AS is_known,
        bool_or(last_report_at > :since AND sampled_at > last_report_at - CAST(:age AS interval)) AS is_on_time
    FROM nodes WHERE NOT synthetic GROUP BY split_part(machine_id, '~', 1)
), votes AS (
    SELECT * FROM machines WHERE is_heard
        AND (is_known OR NOT EXISTS (SELECT FROM machines WHERE is_heard AND is_known))
)
SELECT (SELECT count(*) FROM machines), count(*), count(*) FILTER (WHERE is_on_time),
    (array_agg(name ORDER BY name) FILTER (WHERE NOT is_on_time))[1 : 3]
FROM votes
"""


async def clock_doubt(session: ReadSession, now: datetime) -> str | None:
    """Why ``now`` is not to be trusted with deletion; None where it agrees with PostgreSQL and with the fleet."""
    database_now: datetime = (await session.execute(text("SELECT clock_timestamp()"))).scalar_one()
    difference = now - database_now
    if abs(difference) > MAX_CLOCK_DIFFERENCE:
        word = "ahead of" if difference > timedelta() else "behind"
        return f"This server's clock is {_length(abs(difference))} {word} PostgreSQL's."
    values = {"since": now - HEARD_WITHIN, "age": MAX_SAMPLE_AGE}
    known, heard, on_time, others = (await session.execute(text(_HEARD), values)).one()
    if known and not heard:
        return "No node has reported within a day, so nothing says that the clock is right."
    if heard and 2 * on_time < heard:
        many = heard - on_time
        named = f"{', '.join(others)}{f' and {many - len(others)} more' if many > len(others) else ''}"
        return f"Of {heard} machines that reported within a day, {many} say that it is another day: {named}."
    return None


def too_many_days(table: str, kept: Sequence[date], expired: Sequence[date], share: float) -> str | None:
    """Why so many of a table's partitions are not dropped in one round; ``kept`` are those with rows."""
    gone = set(expired) & set(kept)
    if share >= 1 or not gone or (len(gone) < len(kept) and len(gone) <= max(ALWAYS_DAYS, share * len(kept))):
        return None
    return f"{len(gone)} of {len(kept)} partitions of {table} would go, more than {100 * share:.0f} % in one round."


async def too_many_rows(session: ReadSession, table: str, column: str, before: datetime, share: float) -> str | None:
    """The same for a table with an index on ``column``, by the time that its rows span."""
    # Names are constants of the caller.
    oldest, newest = (await session.execute(text(f"SELECT min({column}), max({column}) FROM {table}"))).one()  # noqa: S608
    if share >= 1 or oldest is None or oldest >= before:
        return None
    gone, all_time = min(before, newest) - oldest, newest - oldest
    if newest >= before and gone <= max(timedelta(days=ALWAYS_DAYS), share * all_time):
        return None
    what = "All" if newest < before else f"{_length(gone)} of {_length(all_time)}"
    return f"{what} of {table} would go, more than {100 * share:.0f} % in one round."


def _length(time: timedelta) -> str:
    hours = time.total_seconds() / 3600
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
