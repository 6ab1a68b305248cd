"""What retention deletes, and whether a round may: what is gone stays gone, and a clock that is wrong for an hour is
enough.

A round deletes nothing while the clock disagrees with PostgreSQL's or with the times in recent reports, nor when it
would take more than a stated share of what is kept. An operator who means it says so (HUGEPLAN_RETENTION_MAX_SHARE=1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import text

from hugeplan.db.session import Database, ReadSession
from hugeplan.settings import Settings

MAX_CLOCK_DIFFERENCE: Final = timedelta(minutes=10)
HEARD_WITHIN: Final = timedelta(days=1)
#: A time in a report may be this much older than its arrival: an outage is made up for from the spool.
MAX_SAMPLE_AGE: Final = timedelta(days=1)
ALWAYS_DAYS: Final = 2
"""So many days may go in any round: the usual round takes one, also where little is kept."""

LISTEN_SECONDS: Final = 10.0
_NO_GAP: Final = "now() - l.until < interval '30 seconds'"
LISTENING_SINCE: Final = f"coalesce((SELECT l.since FROM listening l WHERE {_NO_GAP}), now())"  # noqa: S608 - constants
"""Since when agents can be heard without a gap, by PostgreSQL's clock, whatever process they come to: silence counts
from then. A gap is an outage of the service or of PostgreSQL, a restored backup, and a step of PostgreSQL's clock."""
HEARD_AT: Final = f"""
greatest(last_report_at, {LISTENING_SINCE},
    (SELECT max(t.last_used_at) FROM tokens t WHERE t.machine_id = nodes.machine_id))
"""  # noqa: S608 - constants
"""The moment from which a node is silent. Its last report is by the clock of the service, its token's by PostgreSQL's:
neither of them that is behind makes it silent."""
_LISTEN: Final = f"""
INSERT INTO listening AS l VALUES (true, now(), now()) ON CONFLICT (is_one) DO UPDATE SET until = now(),
    since = CASE WHEN {_NO_GAP} THEN least(l.since, now()) ELSE now() END
"""  # noqa: S608 - constants


async def listen(database: Database) -> None:
    """Note that agents are heard now."""
    async with database.write() as session:
        await session.execute(text(_LISTEN))


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


def too_many_days(table: str, kept: Collection[date], expired: Collection[date], share: float) -> str | None:
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


def batch(table: str, condition: str) -> str:
    """A statement that deletes at most ``:limit`` rows.

    It stands twice: of a row that changed meanwhile PostgreSQL before 16.11 and 17.7 asks the outer condition alone.
    """
    rows = f"SELECT ctid FROM {table} WHERE {condition} LIMIT :limit"  # noqa: S608
    return f"DELETE FROM {table} WHERE ctid IN ({rows}) AND ({condition})"  # noqa: S608


GONE_AT_ONCE: Final = 20
"""Rows that may have some megabytes each."""
GONE_SCENARIO: Final = (
    batch("plans", "scenario_id = :id AND state = 'draft'"),
    "UPDATE plans SET scenario_id = NULL WHERE ctid IN"
    " (SELECT ctid FROM plans WHERE scenario_id = :id AND state <> 'draft' LIMIT :limit) AND scenario_id = :id",
    batch("scenario_versions", "scenario_id = :id"),
    batch(
        "scenarios",
        "id = :id AND NOT EXISTS (SELECT FROM plans WHERE scenario_id = :id)"
        " AND NOT EXISTS (SELECT FROM scenario_versions WHERE scenario_id = :id)",
    ),
)
"""What a deleted scenario leaves behind goes in parts: its drafts, then what stays of its plans, then itself."""


def old_rows(settings: Settings, now: datetime) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What is past its retention: tables, and statements that delete a part of them."""

    def before(days: int) -> dict[str, Any]:
        return {"before": now - timedelta(days=days)}

    documents, events = before(settings.document_retention_days), before(settings.event_retention_days)
    tokens = before(settings.token_retention_days)
    yield "reports", batch("reports", "received_at < :before"), documents
    yield "report_references", f"{FORGET_REFERENCES} AND r.made_at < :before LIMIT :limit)", documents
    yield "webhook_deliveries", batch("webhook_deliveries", "finished_at < :before"), events
    yield "events", batch("events", "at < :before"), events
    yield "webhook_deliveries", _PAST_EVENTS, {}
    yield "runs", _OLD_RUNS, before(settings.run_retention_days)
    yield "runs", _RUNS_PAST_BOUND, {"most": settings.max_runs_per_node}
    if settings.silent_node_retention_days:
        yield "nodes", _DELETE_SILENT_NODES, before(settings.silent_node_retention_days) | {"now": now}
    for table in ("browser_sessions", "login_links", "oidc_logins", "enrolment_approvals"):
        yield table, batch(table, "expires_at < :before"), {"before": now}
    asked = "last_asked_at < :before AND decision IS DISTINCT FROM 'refused'"  # who is refused may ask every day
    yield "enrolment_requests", batch("enrolment_requests", asked), tokens
    # The audit log keeps what is to be known of them.
    yield "tokens", batch("tokens", _OLD_TOKENS), tokens
    longest = max(getattr(settings, name) for name in Settings.model_fields if name.endswith("_retention_days"))
    yield "machines", batch("machines", _FORGOTTEN_MACHINES), before(longest)


# Nobody can send them any more: they are given up, which is said.
_PENDING: Final = "finished_at IS NULL AND event_id < (SELECT min(id) FROM events)"
_PAST_EVENTS: Final = f"""
UPDATE webhook_deliveries SET finished_at = now(), last_error = 'the event is past its retention'
WHERE ctid IN (SELECT ctid FROM webhook_deliveries WHERE {_PENDING} LIMIT :limit) AND ({_PENDING})
"""  # noqa: S608 - constants


# A clone's last token says that the one that was copied to it is not its own: without it, that one would be again.
# A row that says no outlives what it forbids: a backup may have the token as good for ever, or until the end that it
# had before it was rotated, and the environment names an enrolment token at each start.
_OLD_TOKENS: Final = """
expires_at < :before AND role <> 'enrolment'
AND NOT EXISTS (SELECT FROM tokens n WHERE n.line_id = tokens.line_id AND n.id <> tokens.id)
AND (coalesce(machine_id, '') NOT LIKE '%~%' OR EXISTS (
    SELECT FROM tokens n
    WHERE n.machine_id = tokens.machine_id AND (n.created_at, n.id) > (tokens.created_at, tokens.id)
))"""


# A machine's row tells it from its clones. The first of them has the id that they share, and stays while there is one:
# the next clone would be taken for it, and what was copied to that for its own. No clone has a token without a row.
_FORGOTTEN_MACHINES: Final = """
last_seen_at < :before
AND NOT EXISTS (SELECT FROM nodes n WHERE n.machine_id = machines.node_machine_id)
AND NOT EXISTS (SELECT FROM tokens t WHERE t.machine_id = machines.node_machine_id)
AND NOT EXISTS (SELECT FROM enrolment_requests r WHERE r.node_machine_id = machines.node_machine_id)
AND NOT EXISTS (SELECT FROM enrolment_approvals a WHERE a.machine_id = machines.machine_id)
AND (node_machine_id <> machine_id OR NOT EXISTS (
    SELECT FROM machines c WHERE c.machine_id = machines.machine_id AND c.node_machine_id <> machines.node_machine_id
))"""


# A node's newest reference serves the reports that arrive. Who makes a newer one holds the node's lock, as those do
# that refer to the one before: so where a newer one is seen, all that refer to an earlier one are seen too.
FORGET_REFERENCES: Final = r"""
DELETE FROM report_references WHERE ctid IN (
    SELECT r.ctid FROM report_references r
    WHERE EXISTS (SELECT FROM report_references n WHERE n.node_id = r.node_id AND n.made_at > r.made_at)
        AND NOT EXISTS (
            SELECT FROM report_documents d
            WHERE d.node_id = r.node_id AND substring(d.document FOR 17) = '\x01'::bytea || uuid_send(r.report_id)
        ) AND NOT EXISTS (
            SELECT FROM node_states s
            WHERE s.node_id = r.node_id
                AND substring(s.newest_document FOR 17) = '\x01'::bytea || uuid_send(r.report_id)
        )
"""
"""References to which no document refers any more. Conditions and a bracket follow."""


# Each node is looked at once per round, in the order of ids, so that none keeps the round going. One that is locked is
# waited for: passed over, it would lose its newest report. One that has reported meanwhile is not due any more.
KEEP_NEWEST: Final = """
WITH looked_at AS MATERIALIZED (
    SELECT n.id FROM nodes n
    JOIN node_states s ON s.node_id = n.id AND s.newest_document IS NULL
    WHERE n.sampled_at < :before AND n.id > :after ORDER BY n.id LIMIT :limit
), due AS MATERIALIZED (
    SELECT n.id, newest.document FROM nodes n
    CROSS JOIN LATERAL (
        SELECT d.document FROM samples a
        JOIN reports r ON r.node_id = a.node_id AND r.report_id = a.report_id
        JOIN report_documents d
            ON d.node_id = r.node_id AND d.received_at = r.received_at AND d.report_id = r.report_id
        WHERE a.node_id = n.id AND a.taken_at = n.sampled_at AND a.taken_at < :before
        ORDER BY r.received_at DESC LIMIT 1
    ) newest
    WHERE n.id IN (SELECT id FROM looked_at) AND n.sampled_at < :before FOR UPDATE OF n
), kept AS (
    UPDATE node_states s SET newest_document = due.document FROM due WHERE s.node_id = due.id
)
SELECT id FROM looked_at ORDER BY id DESC LIMIT 1
"""
"""The newest documents of silent nodes, before they go with their partition: the nodes are still shown by them. The
answer is the last node that was looked at.
"""


# What was measured on a node is kept beside it, so a run that is still the source of it stays.
_DELETE_RUNS: Final = """
DELETE FROM runs WHERE (node_id, id) IN (
    SELECT r.node_id, r.id FROM node_states s {joined}
    WHERE {condition} AND NOT EXISTS (
        SELECT FROM jsonb_each(coalesce(s.measured -> 'parts', '{{}}')) p
        WHERE CAST(p.value ->> 'run_id' AS uuid) = r.id
    ) AND r.id IS DISTINCT FROM CAST(s.measured -> 'latest' ->> 'run_id' AS uuid)
    LIMIT :limit
)
"""
_OLD_RUNS: Final = _DELETE_RUNS.format(joined="JOIN runs r ON r.node_id = s.node_id", condition="r.stored_at < :before")
_RUNS_PAST_BOUND: Final = _DELETE_RUNS.format(
    joined="""CROSS JOIN LATERAL (
        SELECT n.ordered_at, n.id FROM runs n WHERE n.node_id = s.node_id
        ORDER BY n.ordered_at DESC, n.id DESC OFFSET :most LIMIT 1
    ) past JOIN runs r ON r.node_id = s.node_id""",
    condition="(r.ordered_at, r.id) <= (past.ordered_at, past.id)",
)


# After a gap each has a day to be heard. Nobody asked for this deletion, so the audit log says why the node is gone.
_DELETE_SILENT_NODES = f"""
WITH gone AS (
    {batch("nodes", f"last_report_at < :before AND {LISTENING_SINCE} < now() - interval '1 day'")}
    RETURNING id, name, last_report_at
)
INSERT INTO audit_events (at, actor_name, action, subject_kind, subject_id, detail)
SELECT :now, 'retention', 'nodes_delete', 'nodes', CAST(id AS text),
    jsonb_build_object('name', name, 'last_report_at', last_report_at)
FROM gone
"""  # noqa: S608 - constants
