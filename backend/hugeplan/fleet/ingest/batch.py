"""One batch of reports in one transaction: what is stored is read, each report is judged, and the rows are written."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Final
from uuid import UUID

import msgspec
import psycopg

from hugeplan.access.machines import CLONE_MARK, told_apart
from hugeplan.db.connection import Connection
from hugeplan.db.exchange import BEGIN, COMMIT, ROLLBACK, Call, Exchange, Prepared, Row, texts, times, uuids
from hugeplan.documents.report import Report
from hugeplan.errors import FieldProblem, ForbiddenError, UnauthenticatedError, invalid_input
from hugeplan.events.records import Told
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.fleet.hardware_state import MeasuredState
from hugeplan.fleet.ingest import names, statements
from hugeplan.fleet.ingest.in_force import Plans, SavedPlans, labelled_plan
from hugeplan.fleet.ingest.incoming import Incoming, lenient
from hugeplan.fleet.ingest.node_update import KeptFinding, Node, Reference
from hugeplan.fleet.ingest.writes import NEWER, PARSED, Judged, State, to_json, writes_of
from hugeplan.fleet.schemas import ReportReceipt
from hugeplan.planner.printable import printable_name

PAUSE_SECONDS: Final = 0.02
"""Of judging, after which whoever else waits for this thread has a turn."""
_findings = msgspec.json.Decoder(list[KeptFinding])
_planned = msgspec.json.Decoder(tuple[PlannedPool, ...])
_measured = msgspec.json.Decoder(MeasuredState)
_told = msgspec.json.Decoder(Told)


@dataclass(slots=True)
class _Seen:
    """A report that is stored already. Of one that is known by its block alone ``content_sha256`` is None, and
    ``block_start_at`` says which one that is.
    """

    node_id: UUID
    content_sha256: bytes | None
    run_id: UUID | None
    state: State
    block_start_at: datetime | None = None


class SentAgainError(Exception):
    """A report whose id is stored with other bytes, or sealed: whether it says the same is for ``again`` to find out,
    since reading what is stored takes long and everybody's reports would wait for it. ``receipt``: where it does.
    """

    def __init__(self, receipt: ReportReceipt, stored: _Seen) -> None:
        super().__init__(f"report {receipt.report_id} is stored already")
        self.receipt, self.content_sha256, self.block_start_at = receipt, stored.content_sha256, stored.block_start_at


class NodeLockedError(Exception):
    """Of a report whose node is locked, or made, by somebody else at this moment."""


class Batch:
    """One batch in one transaction. ``checked``: machines by token where the tokens were checked before.

    ``prepared`` is what is prepared on the connection (hugeplan.db.exchange); None: nothing stays prepared there.
    """

    def __init__(
        self,
        connection: Connection,
        incoming: Sequence[Incoming],
        plans: SavedPlans,
        *,
        prepared: Prepared | None,
        checked: dict[UUID, str | None] | None = None,
    ) -> None:
        self._connection = connection
        self._exchange = Exchange(connection, prepared)
        self._checked = checked
        self._saved = plans
        self._plans: Plans = {}
        self._incoming = incoming
        # Machines whose reports are left to another batch, and whether new nodes are made one after the other.
        self._held: set[str] = set()
        self._is_one_by_one = False
        self._start()

    def _start(self) -> None:
        self.answers: dict[int, ReportReceipt | Exception] = {}
        self._nodes: dict[str, Node] = {}
        self._enrolled: set[str] = set()
        self._shown: dict[tuple[str, str], str] = {}
        self._judged = Judged()

    async def commit(self, sent: Callable[[], None], *, in_line: bool = False) -> bool:
        """Write everything in a transaction of its own. ``sent`` is called when all has left for PostgreSQL.
        ``in_line``: wait for the nodes' locks, half a second at most, after which psycopg.errors.LockNotAvailable.

        False when a new node turned out to be made by another process in this moment: nothing is written then.
        """
        begin: list[Call] = [(BEGIN, ())]
        if in_line:
            briefly, lock, as_ever = statements.STAND_IN_LINE
            machines = texts({incoming.machine_id for incoming in self._incoming})
            begin += [(briefly, []), (lock, [machines]), (as_ever, [])]
        writes = await self._judge(begin)
        if writes is None:
            await self._exchange.run([(ROLLBACK, ())])
            return False
        await self._exchange.run([*writes, (COMMIT, ())], sent)
        return True

    async def write(self) -> bool:
        """Write everything in the caller's transaction. False as for ``commit``."""
        writes = await self._judge([])
        if writes:
            await self._exchange.run(writes)
        return writes is not None

    async def _judge(self, before: list[Call]) -> list[Call] | None:
        """Read, judge each report, and make the nodes that are new. What is to be written; None as for ``commit``."""
        self._start()
        tokens, seen = await self._read(before)
        bound = dict(tokens if self._checked is None else self._checked)
        began = time.monotonic()
        for index, incoming in enumerate(self._incoming):
            if time.monotonic() - began > PAUSE_SECONDS:
                await asyncio.sleep(0)
                began = time.monotonic()
            self.answers[index] = self._take(incoming, bound, seen)
        nodes = [node for node in self._nodes.values() if node.columns]
        new = [node for node in nodes if node.is_new]
        if new and not await self._insert_nodes(new):
            return None
        return writes_of(self._judged, nodes) if self._judged.stored else []

    async def _read(self, before: list[Call]) -> tuple[dict[UUID, str | None], dict[tuple[str, UUID], _Seen]]:
        """The tokens, the nodes that could be locked, and the reports that are stored already."""
        machines = texts(sorted({incoming.machine_id for incoming in self._incoming}))
        ids = uuids(incoming.token_id for incoming in self._incoming)
        reports = uuids(incoming.report_id for incoming in self._incoming)
        of_machines = texts(incoming.machine_id for incoming in self._incoming)
        # All are sent together: the lock comes first, and each sees what was committed before it.
        calls: list[Call] = [
            *before,
            (statements.LOCK_NODES, [machines]),
            (statements.TOKENS_AND_SEEN, [ids, of_machines, reports]),
            (statements.NODES, [machines]),
        ]
        with_runs = sorted({incoming.machine_id for incoming in self._incoming if incoming.run})
        if with_runs:
            calls.append((statements.MEASURED, [texts(with_runs)]))
        locked, found, nodes, *measured = (await self._exchange.run(calls))[len(before) :]
        # One that is locked by somebody else, or was made since the lock, is left to another batch.
        self._nodes = dict(_node(row) for row in nodes if (row[0],) in locked)
        self._held |= {_text(row[1]) for row in nodes if (row[0],) not in locked}
        for of_machine, state in measured[0] if measured else ():
            if state is not None and (node := self._nodes.get(_text(of_machine))) is not None:
                node.measured = _measured.decode(state)
        bound = {_uuid(row[0]): None if row[1] is None else _text(row[1]) for row in found if row[0] is not None}
        self._enrolled = {_text(row[2]) for row in found if row[9] == b"t"}
        known = _seen(found)
        known |= await self._seen_sealed(known)
        patterns = {_uuid(row[0]): _text(row[8]) for row in found if row[8] is not None}
        await self._settle_names(patterns, bound if self._checked is None else self._checked, known)
        in_force = {node.plan_id for node in self._nodes.values() if node.plan_id is not None}
        self._plans = await self._saved.read(self._connection, in_force, labelled=self._newly_labelled())
        return bound, known

    async def _settle_names(
        self, patterns: Mapping[UUID, str], bound: Mapping[UUID, str | None], seen: Container[tuple[str, UUID]]
    ) -> None:
        """Whose the names are that a machine says and does not have yet: none in nearly all batches. ``patterns``: of
        the names that machines were enrolled for, by token. What is not stored, or stored already, takes no name.
        """
        claims: set[names.Claim] = set()
        lost: dict[UUID, Node] = {}
        for incoming, node, report in self._stored_now(bound, seen):
            machine_id, pattern = incoming.machine_id, patterns.get(incoming.token_id, "*")
            if report is None:
                # It says no name, and would keep one that it may not have from others.
                if node is not None and not _may_be_called(node.name, machine_id, pattern):
                    node.name, lost[node.id] = told_apart(node.name, machine_id), node
                continue
            name = printable_name(report.node_name)
            apart = told_apart(name, machine_id)
            if self._checked is not None:  # read later: nothing says what its token allowed, or whose the name is now
                if node is not None and node.name in {name, apart}:
                    self._shown[machine_id, name] = node.name
            elif not fnmatchcase(name, pattern):
                self._shown[machine_id, name] = apart
            elif node is not None and node.name == name:
                self._shown[machine_id, name] = name
            else:
                claims.add(names.Claim((node and node.first_report_at) or incoming.received_at, machine_id, name))
        if lost:
            rows = [{"id": node.id, "name": node.name} for node in lost.values()]
            await self._exchange.run([(statements.RENAME_NODES, [to_json(rows)])])
        if claims:
            self._shown |= await names.settle(self._exchange, claims)
        for machine_id, node in self._nodes.items():
            node.shown = self._shown_of(machine_id)

    def _stored_now(
        self, bound: Mapping[UUID, str | None], seen: Container[tuple[str, UUID]]
    ) -> Iterator[tuple[Incoming, Node | None, Report | None]]:
        """The reports that are stored with this batch, each with its node and, where that may have another name by it,
        with what it says.
        """
        for incoming in self._incoming:
            is_left = incoming.machine_id in self._held or (incoming.machine_id, incoming.report_id) in seen
            if is_left or self._refusal(incoming, bound) is not None:
                continue
            node = self._nodes.get(incoming.machine_id)
            if node is None:
                yield incoming, None, incoming.parsed or lenient(incoming.content)
            else:
                yield incoming, node, incoming.parsed if node.is_newest(incoming) else None

    def _shown_of(self, machine_id: str) -> dict[str, str]:
        return {said: shown for (machine, said), shown in self._shown.items() if machine == machine_id}

    async def _seen_sealed(self, known: Mapping[tuple[str, UUID], _Seen]) -> dict[tuple[str, UUID], _Seen]:
        """The reports that are known by their sealed documents alone. Only those are looked for that say a time from
        which the node has sealed reports: few, so that all others cost no statement.
        """
        wanted = {}
        # What an earlier version kept unread was looked for when it arrived.
        for incoming in self._incoming if self._checked is None else ():
            node, key = self._nodes.get(incoming.machine_id), (incoming.machine_id, incoming.report_id)
            if node is not None and node.sealed_until is not None and key not in known:
                stated_at = None if incoming.parsed is None else incoming.parsed.sample.taken_at
                if stated_at is None or stated_at <= node.sealed_until:
                    wanted[node.id, incoming.report_id] = key, stated_at
        if not wanted:
            return {}
        nodes, reports = zip(*wanted, strict=True)
        stated = times(stated_at for _, stated_at in wanted.values())
        (rows,) = await self._exchange.run([(statements.SEALED_SEEN, [uuids(nodes), uuids(reports), stated])])
        return {
            wanted[_uuid(node_id), _uuid(report_id)][0]: _Seen(
                _uuid(node_id), None, None, PARSED, datetime.fromisoformat(_text(start_at))
            )
            for node_id, report_id, start_at in rows
        }

    def _newly_labelled(self) -> set[tuple[UUID, UUID]]:
        """The plans that labels name and that are not in force yet, each with the node that has the label.

        Of several reports of one node the last counts: what the others name would not stay in force.
        """
        found: dict[UUID, UUID] = {}
        for incoming in self._incoming:
            node, report = self._nodes.get(incoming.machine_id), incoming.parsed
            plan_id = None if report is None else labelled_plan(report.labels)
            if plan_id is not None and node is not None and node.plan_id != plan_id:
                found[node.id] = plan_id
        return {(plan_id, node_id) for node_id, plan_id in found.items()}

    def _take(
        self, incoming: Incoming, bound: dict[UUID, str | None], seen: dict[tuple[str, UUID], _Seen]
    ) -> ReportReceipt | Exception:
        """Judge one report and note what is to be written for it."""
        refusal = self._refusal(incoming, bound)
        if refusal is not None:
            return refusal
        key = (incoming.machine_id, incoming.report_id)
        if key in seen:
            return _answer_seen(incoming, seen[key])
        if incoming.machine_id in self._held:
            return NodeLockedError(incoming.machine_id)
        node = self._nodes.get(incoming.machine_id)
        run = None
        if node is None:
            report = incoming.parsed or lenient(incoming.content)
            if report is None:
                expected = "1 from a machine that never reported before"
                return invalid_input(
                    [FieldProblem(field="schema_version", value=str(incoming.schema_version), expected=expected)]
                )
            shown = self._shown_of(incoming.machine_id)
            node = self._nodes[incoming.machine_id] = _new_node(report, shown)
            if incoming.parsed is None:
                node.introduce(incoming, report)
        if incoming.run is not None:
            run, wins = incoming.run.rows(node.id, incoming.received_at)
            self._judged.runs.append((run, incoming.run.document))
            self._judged.wins += wins
        kept, is_reference = node.keep(incoming)
        before = len(node.events)
        node.apply(incoming, run, self._plans, is_reference=is_reference)
        if bound[incoming.token_id] is None:
            bound[incoming.token_id] = incoming.machine_id
            self._judged.binds.append((incoming.machine_id, incoming.token_id))
        if is_reference:
            self._judged.references.append((incoming, node))
        self._judged.stored.append((incoming, node))
        self._judged.documents.append(kept)
        state = PARSED if incoming.parsed is not None else NEWER
        seen[key] = _Seen(node.id, incoming.content_sha256, incoming.run_id, state)
        receipt = ReportReceipt(
            report_id=incoming.report_id, node_id=node.id, created=True, run_id=incoming.run_id, state=state
        )
        receipt._event_bytes = len(to_json(node.events[before:])) if node.events[before:] else 0
        return receipt

    def _refusal(self, incoming: Incoming, bound: Mapping[UUID, str | None]) -> Exception | None:
        """An agent reports only for its own machine; an unbound token binds to the first one it names."""
        if incoming.token_id not in bound:
            return UnauthenticatedError("This token is unknown, expired or revoked.")
        owner = bound[incoming.token_id]
        if owner is None:
            owner = incoming.machine_id
        # A clone reports with the token that was cloned with it, until it has had one of its own; whose machine it is
        # was judged before (admit_machine).
        copied = None if incoming.machine_id in self._enrolled else incoming.machine_id.partition(CLONE_MARK)[0]
        if owner not in {incoming.machine_id, copied}:
            expected = "the machine the token was enrolled for"
            return ForbiddenError(
                "This agent token belongs to another machine. Enrol this machine, or use its own token.",
                [FieldProblem(field="machine_id", value=incoming.machine_id, expected=expected)],
            )
        return None

    async def _insert_nodes(self, new: Sequence[Node]) -> bool:
        machines = {node.id: machine_id for machine_id, node in self._nodes.items()}
        first = {node.id: incoming.received_at for incoming, node in reversed(self._judged.stored)}
        rows = [
            {"id": node.id, "machine_id": machines[node.id], "first_report_at": first[node.id], **node.columns}
            for node in new
        ]
        parts = [[row] for row in sorted(rows, key=itemgetter("id"))] if self._is_one_by_one else [rows]
        for number, some in enumerate(parts):
            calls: list[Call] = [(statements.WAIT_BRIEFLY, []), (statements.INSERT_NODES, [to_json(some)])]
            try:
                _, inserted, _ = await self._exchange.run([*calls, (statements.WAIT, [])])
            except psycopg.errors.LockNotAvailable:  # somebody makes one of them, and has not ended
                if self._is_one_by_one:  # one wait per batch: what comes behind it is tried again, in another order
                    self._held |= {row["machine_id"] for part in parts[number:] for row in part}
                self._is_one_by_one, inserted = True, []
            if len(inserted) != len(some):
                return False
        states = [{"node_id": node.id, "findings": [], **node.state} for node in new]
        await self._exchange.run([(statements.INSERT_STATES, [to_json(states)])])
        return True


def _text(value: bytes | None) -> str:
    """A column that is never NULL."""
    assert value is not None
    return value.decode()


def _may_be_called(name: str, machine_id: str, pattern: str) -> bool:
    """Whether a node keeps its name: its enrolment allows it, or it is told apart already."""
    return fnmatchcase(name, pattern) or name.endswith(told_apart("", machine_id))


def _uuid(value: bytes | None) -> UUID:
    return UUID(_text(value))


def _seen(found: Sequence[Row]) -> dict[tuple[str, UUID], _Seen]:
    """The reports of rows of TOKENS_AND_SEEN that are stored already, by machine and id."""
    known: dict[tuple[str, UUID], _Seen] = {}
    for _, _, machine_id, report_id, node_id, sha256, run_id, state, *_ in found:
        if node_id is not None:
            known[_text(machine_id), _uuid(report_id)] = _Seen(
                node_id=_uuid(node_id),
                content_sha256=bytes.fromhex(_text(sha256)[2:]),
                run_id=None if run_id is None else _uuid(run_id),
                state=PARSED if _text(state) == PARSED else NEWER,
            )
    return known


def _node(row: Row) -> tuple[str, Node]:
    (
        node_id,
        machine_id,
        name,
        sampled_at,
        labels_set,
        granule,
        findings,
        pools,
        plan_id,
        outcome,
        sealed,
        told,
        first_at,
        *kept,
    ) = row
    return _text(machine_id), Node(
        id=_uuid(node_id),
        name=_text(name),
        is_new=False,
        sampled_at=datetime.fromisoformat(_text(sampled_at)),
        labels_set=msgspec.json.decode(labels_set or b"{}"),
        measured=MeasuredState(effective_granule_bytes=None if granule is None else int(granule)),
        findings=_findings.decode(findings or b"[]"),
        planned=None if pools is None else _planned.decode(pools),
        plan_id=None if plan_id is None else _uuid(plan_id),
        outcome=None if outcome is None else _text(outcome),
        sealed_until=None if sealed is None else datetime.fromisoformat(_text(sealed)),
        told=_told.decode(told or b"{}"),
        first_report_at=datetime.fromisoformat(_text(first_at)),
        reference=None if kept[0] is None else Reference(_uuid(kept[0]), bytes.fromhex(_text(kept[1])[2:])),
    )


def _new_node(report: Report, shown: dict[str, str] | None = None) -> Node:
    said, shown = printable_name(report.node_name), shown or {}
    return Node(
        id=uuid.uuid4(),
        name=shown.get(said, said),
        shown=shown,
        is_new=True,
        sampled_at=None,
        labels_set={},
        measured=MeasuredState(),
        findings=[],
        planned=None,
    )


def _answer_seen(incoming: Incoming, seen: _Seen) -> ReportReceipt | Exception:
    receipt = ReportReceipt(
        report_id=incoming.report_id, node_id=seen.node_id, created=False, run_id=seen.run_id, state=seen.state
    )
    return receipt if seen.content_sha256 == incoming.content_sha256 else SentAgainError(receipt, seen)


async def store_kept(connection: Connection, kept: Incoming) -> None:
    """Store a report that an earlier version kept unread, in the caller's transaction. Its node is there already.

    Its token was checked when it arrived, and may be revoked since: it gives its node no other name.
    """
    batch = Batch(connection, [kept], SavedPlans(), prepared=None, checked={kept.token_id: kept.machine_id})
    await batch.write()
    answer = batch.answers[0]
    if isinstance(answer, Exception):
        raise answer
