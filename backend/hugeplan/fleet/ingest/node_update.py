"""What a report changes on its node: columns, measured state, findings and events. Pure: no statement is here."""

from __future__ import annotations

import hashlib
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from hugeplan.benchmarks.records import RunRecord
from hugeplan.documents.against import SMALLEST_BYTES, against
from hugeplan.documents.decoding import changed
from hugeplan.documents.kept import pack, unpack
from hugeplan.documents.report import Inventory, Report, Sample, SampleMemory
from hugeplan.events.records import BOUND, Away, Event, Told
from hugeplan.fleet.findings import OF_THE_PLAN, NodeFinding, Observed, findings_of, plan_drift, worst_first
from hugeplan.fleet.findings.base import PlannedPool, idle_pages_by_size, pages_by_size
from hugeplan.fleet.findings.plan_drift import state_of
from hugeplan.fleet.hardware_state import MeasuredState, packed, with_run
from hugeplan.fleet.ingest.in_force import (
    LABEL,
    Plans,
    Unreadable,
    Verification,
    labelled_plan,
    not_verified,
    pools_of,
    verified,
)
from hugeplan.fleet.ingest.incoming import Incoming
from hugeplan.fleet.observation import owners_of
from hugeplan.planner.model import subject_words
from hugeplan.planner.printable import printable_name

CLOCK_TOLERANCE: Final = timedelta(minutes=1)
"""Reports that arrive together are taken in any order; a step of the clock is more than this."""

NEARLY: Final = 0.01
"""By how much a size in a finding moves before the finding is written again within the hour (docs/adr/0052)."""
_SIZE: Final = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d+)?)(?= [KMGT]iB)")

REFERENCE_WORTH: Final = 0.5
"""A new reference is made where what has changed takes more than this part of a report that is kept whole."""

COMPARED_BYTES: Final = 1 << 16
"""Of a node's reports in one batch, after which others are kept whole: some kinds take 18 ms each, and all wait."""


class KeptFinding(NodeFinding, frozen=True, kw_only=True):
    """A finding with the time since when it holds in this state."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Reference:
    """A report since which others of its node say what has changed. ``document`` is packed."""

    report_id: UUID
    document: bytes


@dataclass(slots=True)
class Node:
    """A node while a batch is applied to it. ``columns`` and ``state`` hold what is to be written; empty: nothing."""

    id: UUID
    name: str
    is_new: bool
    sampled_at: datetime | None
    labels_set: dict[str, str]
    measured: MeasuredState
    findings: list[KeptFinding]
    planned: tuple[PlannedPool, ...] | None
    plan_id: UUID | None = None
    outcome: str | None = None
    sealed_until: datetime | None = None
    reference: Reference | None = None
    verification: Verification | None = None
    put_in_force: bool = False
    columns: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    told: Told = field(default_factory=Told)
    owners: dict[str, str] = field(default_factory=dict)
    findings_changed: bool = False
    compared_bytes: int = 0
    first_report_at: datetime | None = None
    shown: dict[str, str] = field(default_factory=dict)  # by the name that a report says (hugeplan.fleet.ingest.names)

    def name_in(self, report: Report) -> str:
        """The name under which the node is shown."""
        return self.shown.get(printable_name(report.node_name), self.name)

    def apply(self, incoming: Incoming, run: RunRecord | None, plans: Plans, *, is_reference: bool = False) -> None:
        """Take a report over. One that waited in a spool does not overwrite a newer sample."""
        report = incoming.parsed
        self.columns["last_report_at"] = incoming.received_at
        if report is None:
            return
        if self.is_new and not self.events:
            self._event(incoming.received_at, "node_added", text="Reported for the first time.")
        if run is not None and incoming.run is not None:
            self._apply_run(run, incoming.run.measured)
        if self.is_newest(incoming):
            self._follow_label(incoming, labelled_plan(report.labels), plans)
            self._apply_sample(incoming, report, is_reference)
            self._verify(incoming, plans)
            # Here alone, since what was told is kept with a node's newest sample.
            if left_out := self.told.to_say(incoming.received_at):
                self._event(incoming.received_at, "events_left_out", text=f"{left_out} events were left out. {BOUND}")

    def keep(self, incoming: Incoming) -> tuple[bytes, bool]:
        """The bytes to keep of a report, and whether it becomes the reference of those that follow."""
        # Where there is a run, nearly all of a report is the run.
        if incoming.parsed is None or incoming.run is not None or not incoming.is_small:
            return incoming.document, False
        document = incoming.raw or unpack(incoming.document)
        if len(document) < SMALLEST_BYTES or self.compared_bytes > COMPARED_BYTES:
            return incoming.document, False
        self.compared_bytes += len(document)
        # A reference that is damaged stops no report: the next one is made.
        with suppress(zlib.error):
            if self.reference is not None:
                kept = against(document, incoming.report_id, self.reference.report_id, unpack(self.reference.document))
                if len(kept) <= REFERENCE_WORTH * len(incoming.document):
                    return kept, False
        self.reference = Reference(incoming.report_id, incoming.document)
        return against(document, incoming.report_id, incoming.report_id, document), True

    @property
    def is_changed_with_its_sample(self) -> bool:
        """Whether one statement writes everything that changed: the node was there, and has a newer sample."""
        return not self.is_new and "name" in self.columns

    def is_newest(self, incoming: Incoming) -> bool:
        """Whether a report says how the node is now. One dated ahead of the server's clock was taken before the clock
        was stepped back, and says nothing about what comes later.
        """
        at = self.sampled_at
        return at is None or incoming.taken_at >= at or at > incoming.received_at + CLOCK_TOLERANCE

    def introduce(self, incoming: Incoming, report: Report) -> None:
        """Make a new node known by a report of a newer schema, of which nothing else is believed."""
        self.columns |= node_columns(incoming, report, self.labels_set)
        self.columns |= {"name": self.name_in(report), "findings_wrong": 0, "findings_attention": 0}
        self.state |= {"inventory": report.inventory, "sample": report.sample, "processes_kept": None, "collectors": []}
        self._event(incoming.received_at, "node_added", text="Reported for the first time.")

    def _follow_label(self, incoming: Incoming, plan_id: UUID | None, plans: Plans) -> None:
        """Put the plan in force that a label names, where that is its own and another one."""
        kept = None if plan_id is None else plans.get(plan_id)
        if kept is None or isinstance(kept.plan, Unreadable) or plan_id == self.plan_id:
            return
        if kept.node_id != self.id:  # else it would end what is decided about another node
            return
        if not self.told.has_room(incoming.received_at):  # with the first report that can say so
            return
        self.plan_id, self.planned, self.outcome = plan_id, pools_of(kept.plan), None
        self.put_in_force = True
        text = f"A plan with {len(self.planned)} pools is in force on {self.name}, set by the label {LABEL}"
        self._event(incoming.received_at, "plan_in_force_set", text=text + kept.approval)

    def _verify(self, incoming: Incoming, plans: Plans) -> None:
        """Judge the plan in force by this report; a change of the outcome is an event."""
        kept = None if self.plan_id is None else plans.get(self.plan_id)
        if kept is None:
            return
        if isinstance(kept.plan, Unreadable):
            self.verification = not_verified(self.name, kept.plan)
        else:
            self.verification = verified(kept.plan, incoming.content)
        if self.verification.outcome != self.outcome:
            wrong = sum(check["state"] == "wrong" for check in self.verification.checks)
            words = {
                "in_force": f"The plan is in force on {self.name}.",
                "not_in_force": f"The plan is not in force on {self.name}: {wrong} checks are wrong.",
                "undecided": f"Whether the plan is in force on {self.name} cannot be told from its report.",
            }
            self._event(incoming.received_at, "plan_verified", text=words[self.verification.outcome])
            self.outcome = self.verification.outcome

    def _apply_run(self, run: RunRecord, said: MeasuredState) -> None:
        self.measured = with_run(self.measured, run, said)
        self.state["measured"] = packed(self.measured)
        self.columns["latest_run_id"] = self.measured.latest.run_id if self.measured.latest else None
        self.columns["effective_granule_bytes"] = self.measured.effective_granule_bytes
        self._event(run.stored_at, "run_added", text=f"Results of tlbbench {run.command} were stored.")

    def _apply_sample(self, incoming: Incoming, report: Report, is_reference: bool) -> None:
        is_first = self.sampled_at is None or self.sampled_at.hour != incoming.taken_at.hour
        self.name, self.sampled_at = self.name_in(report), incoming.taken_at
        self.columns |= node_columns(incoming, report, self.labels_set) | {"name": self.name}
        self.owners = owners_of(report.sample)
        # The document says it (hugeplan.fleet.newest); the columns do now and then, for SQL and earlier releases.
        processes = None if incoming.is_small else pack(msgspec.json.encode(report.sample.processes))
        self.state["processes_kept"] = None if processes is None else f"\\x{processes.hex()}"
        if self.is_new or is_reference or not incoming.is_small:
            sample = changed(report.sample, processes=[])
            self.state |= {"inventory": report.inventory, "sample": sample, "collectors": report.collectors}
        said_name = printable_name(report.node_name)
        observed = Observed(
            name=self.name,
            inventory=report.inventory,
            sample=report.sample,
            collectors=report.collectors,
            spool=report.spool,
            clock_ahead_seconds=incoming.clock_ahead_seconds,
            effective_granule_bytes=self.measured.effective_granule_bytes,
            planned=self.planned,
            shares_machine_id=incoming.shares_machine_id,
            said_name=said_name if said_name in self.shown else None,  # else nobody asked whose it is
        )
        self.judge(observed, incoming.received_at, in_new_words=is_first)

    def judge(self, observed: Observed, now: datetime, *, in_new_words: bool = True) -> None:
        """Find what is wrong, and compare with the plan in force. ``in_new_words``: also where sizes hardly moved."""
        self._keep(findings_of(observed), now, in_new_words=in_new_words)
        self.columns["plan_state"] = None if observed.planned is None else state_of(observed.planned, observed.sample)

    def judge_plan(self, planned: tuple[PlannedPool, ...] | None, sample: Sample, now: datetime) -> None:
        """Compare the node with a plan that is put in force now.

        What does not depend on the plan stays as the report left it.
        """
        others = [finding for finding in self.findings if finding.code not in OF_THE_PLAN]
        drift = [] if planned is None else list(plan_drift.found_in(planned, sample, is_new=True))
        self._keep(worst_first([*others, *drift]), now)
        self.columns["plan_state"] = None if planned is None else state_of(planned, sample)

    def _keep(self, found: list[NodeFinding], now: datetime, *, in_new_words: bool = True) -> None:
        """Findings of now beside those of before: the same keep their time, each change is an event."""
        before = {(finding.code, finding.subject): finding for finding in self.findings}
        kept: list[KeptFinding] = []
        for finding in found:
            old = before.pop((finding.code, finding.subject), None)
            if old is not None and old.state == finding.state:
                kept.append(old if not in_new_words and _says_nearly(old, finding) else _kept(finding, old.since))
                continue
            kept.append(_kept(finding, now))
            self.findings_changed = True
            known = old.state if old else self.told.begins(finding.code, finding.subject)
            if known != finding.state:
                kind = "finding_opened" if known is None else "finding_changed"
                self._finding_event(now, kind, finding, finding.state, known)
        for gone in before.values():
            self.findings_changed = True
            ended = Away(code=gone.code, subject=gone.subject, state=gone.state, title=gone.title, at=now)
            if self.told.ends(ended):
                self._finding_event(now, "finding_closed", ended, None, ended.state)
        for ended in self.told.calm(now, {(finding.code, finding.subject) for finding in kept}):
            self._finding_event(now, "finding_closed", ended, None, ended.state)
        if self.findings_changed:
            self.state["told"] = self.told
        self.findings = kept
        self.state["findings"] = kept
        self.columns["findings_wrong"] = sum(finding.state == "wrong" for finding in kept)
        self.columns["findings_attention"] = sum(finding.state == "attention" for finding in kept)

    def counted_findings(self) -> list[KeptFinding]:
        """Of a code and a state one, since the first: what the fleet counts, however many databases a node has."""
        newest_first = sorted(self.findings, key=lambda finding: finding.since)[::-1]
        return list({(finding.code, finding.state): finding for finding in newest_first}.values())

    def _finding_event(
        self, at: datetime, kind: str, finding: NodeFinding | Away, state: str | None, previous: str | None
    ) -> None:
        about = "" if finding.subject == self.name else f"{subject_words(finding.subject)}: "
        text = f"{about}{finding.title}" if state else f"{about}no longer: {finding.title}"
        # Nothing says whose a database was that is gone: all of those are one owner's.
        whose = self.owners.get(finding.subject, finding.subject if state else "gone")
        self._event(
            at, kind, whose, code=finding.code, subject=finding.subject, state=state, previous_state=previous, text=text
        )

    def _event(self, at: datetime, kind: str, whose: str = "", **rest: Any) -> None:
        """An event of this node. Its text is read beside the node's name, so it does not begin with it."""
        self.state["told"] = self.told
        if kind == "events_left_out" or self.told.takes(at, whose):
            self.events.append(Event(at=at, kind=kind, node_id=self.id, node_name=self.name, **rest))


def _says_nearly(old: NodeFinding, new: NodeFinding) -> bool:
    """Whether both say the same, but for sizes in title and reason that moved by less than NEARLY."""
    if (old.title, old.reason, old.fix) == (new.title, new.reason, new.fix):
        return True
    before, after = (_SIZE.split(f"{one.title}\n{one.reason}") for one in (old, new))
    sizes = zip(map(float, before[1::2]), map(float, after[1::2]), strict=False)
    return (old.fix, before[::2]) == (new.fix, after[::2]) and all(abs(a - b) <= NEARLY * a for a, b in sizes)


def _kept(finding: NodeFinding, since: datetime) -> KeptFinding:
    return KeptFinding(**msgspec.structs.asdict(finding) | {"since": since})


def node_columns(incoming: Incoming, report: Report, labels_set: dict[str, str]) -> dict[str, Any]:
    """What a report says of its node, as columns of lists and sums; without its name."""
    inventory, sample = report.inventory, report.sample
    pools = pool_summaries(sample)
    machine = machine_type(inventory)
    return {
        "synthetic": report.synthetic,
        "architecture": inventory.architecture,
        "cpu_brand": inventory.cpu.brand if inventory.cpu else None,
        "virtualised": inventory.virtualised,
        "mem_total_bytes": sample.memory.mem_total_bytes,
        "numa_node_count": max(1, len(inventory.numa_nodes)),
        "agent_version": report.agent_version,
        "last_report_at": incoming.received_at,
        "sampled_at": incoming.taken_at,
        "labels": report.labels | labels_set,
        "machine_type": machine,
        "group_key": group_key(machine, inventory, sample, pools),
        "mem_available_bytes": sample.memory.mem_available_bytes,
        "page_tables_bytes": sample.memory.page_tables_bytes,
        "anon_huge_pages_bytes": sample.memory.anon_huge_pages_bytes,
        "pool_bytes": hugetlb_pool_bytes(sample),
        "pool_idle_bytes": pool_idle_bytes(sample),
        "pools": pools,
        "spool": report.spool,
        "clock_ahead_seconds": incoming.clock_ahead_seconds,
    }


def machine_type(inventory: Inventory) -> str:
    """The processor and whether it is a guest: what curves of two machines of one type have in common."""
    cpu = inventory.cpu
    if cpu is None:
        named = inventory.architecture
    else:
        named = cpu.brand or f"{cpu.vendor or inventory.architecture} family {cpu.family} model {cpu.model}"
    if inventory.virtualised is None:
        return named
    return f"{named}, {inventory.hypervisor or 'guest'}" if inventory.virtualised else f"{named}, bare metal"


def group_key(machine: str, inventory: Inventory, sample: Sample, pools: list[dict[str, Any]]) -> str:
    """Equal for like nodes: the machine type, memory to the GiB, NUMA nodes, and pools as they are set."""
    gib = round(sample.memory.mem_total_bytes / 2**30)
    settings = [(pool["page_bytes"], pool["nr_hugepages"]) for pool in pools]
    text = repr((machine, gib, max(1, len(inventory.numa_nodes)), settings))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pool_summaries(sample: Sample) -> list[dict[str, Any]]:
    """Pools over the whole node, smallest page first: as the kernel totals them, else summed over NUMA nodes."""
    totals: dict[int, dict[str, Any]] = {}
    for pool in sample.global_pools or sample.pools:
        total = totals.setdefault(
            pool.page_bytes, {"page_bytes": pool.page_bytes, "nr_hugepages": 0, "free_hugepages": 0}
        )
        total["nr_hugepages"] += pool.nr_hugepages
        unknown = total["free_hugepages"] is None or pool.free_hugepages is None
        total["free_hugepages"] = None if unknown else total["free_hugepages"] + pool.free_hugepages
    return [totals[size] for size in sorted(totals)]


def hugetlb_pool_bytes(sample: Sample) -> int | None:
    """Memory in pools of all sizes; None where the report lists no pool."""
    pages = pages_by_size(sample)
    return sum(size * count for size, count in pages.items()) if pages else sample.memory.hugetlb_bytes


def pool_idle_bytes(sample: Sample) -> int | None:
    """Memory in pools that nothing uses or has reserved; None: unknown."""
    idle = idle_pages_by_size(sample)
    if not idle or any(count is None for count in idle.values()):
        return None
    return sum(size * (count or 0) for size, count in idle.items())


def ordinary_bytes(sample: Sample) -> int | None:
    """Memory in use that is not in a huge page pool: MemTotal - MemAvailable - pools. None: unknown."""
    memory = sample.memory
    pools = memory.hugetlb_bytes if memory.hugetlb_bytes is not None else hugetlb_pool_bytes(sample)
    if memory.mem_available_bytes is None or pools is None:
        return None
    return max(0, memory.mem_total_bytes - memory.mem_available_bytes - pools)


def anon_shmem_bytes(memory: SampleMemory) -> int | None:
    """AnonPages + Shmem, what the planner takes as the history of ordinary memory. None: unknown."""
    if memory.anon_pages_bytes is None or memory.shmem_bytes is None:
        return None
    return memory.anon_pages_bytes + memory.shmem_bytes
