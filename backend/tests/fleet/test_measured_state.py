"""What was measured on a node, as it is kept: packed, read back whole, and read as earlier versions wrote it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import msgspec
from support.reports import report, run

from hugeplan.benchmarks.records import RunRecord, run_record
from hugeplan.documents.decoding import changed, convert
from hugeplan.documents.report import Inventory
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.fleet.facts import SharedHardware, hardware_facts
from hugeplan.fleet.hardware_state import MeasuredState, measured_alone, packed, unpacked, with_run

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def record(document: TlbbenchDocument, at: datetime) -> RunRecord:
    return run_record(document, node_id=UUID(int=1), run_id=uuid4(), received_at=at)


def after_run(state: MeasuredState, document: TlbbenchDocument, at: datetime) -> MeasuredState:
    run = record(document, at)
    return with_run(state, run, measured_alone(document, run))


def kept_and_read(state: MeasuredState) -> MeasuredState:
    return msgspec.json.decode(msgspec.json.encode(packed(state)), type=MeasuredState)


def test_what_was_measured_is_read_back_as_it_was() -> None:
    document = convert(TlbbenchDocument, run())
    state = after_run(MeasuredState(), document, NOW)
    assert state.hardware is not None
    assert packed(state).hardware is None
    assert unpacked(kept_and_read(state)) == state


def test_rows_of_earlier_versions_hold_the_facts_as_json() -> None:
    document = convert(TlbbenchDocument, run())
    state = after_run(MeasuredState(), document, NOW)
    former = msgspec.json.decode(msgspec.json.encode(state), type=MeasuredState)
    assert unpacked(former) == state


def test_a_run_without_curves_keeps_those_of_the_run_before() -> None:
    whole = convert(TlbbenchDocument, run())
    before = after_run(MeasuredState(), whole, NOW)
    assert before.hardware is not None
    assert before.hardware.curves
    later = NOW + timedelta(hours=1)
    sections = [section for section in whole.sections if section.name != "latency"]
    bare = changed(whole, latency=None, sections=sections, started_at=later)
    after = after_run(kept_and_read(before), bare, later)
    assert after.parts["geometry"].ordered_at == later
    assert after.hardware is not None
    assert after.hardware.curves == before.hardware.curves


def test_nodes_of_which_the_same_is_known_share_their_hardware() -> None:
    inventory = convert(Inventory, report()["inventory"])
    other = changed(inventory, virtualised=not inventory.virtualised)
    shared = SharedHardware()
    assert shared(inventory, None) is shared(convert(Inventory, report()["inventory"]), None)
    assert shared(inventory, None) == hardware_facts(inventory, None)
    assert shared(other, None) == hardware_facts(other, None)
    assert shared(other, None) is not shared(inventory, None)
