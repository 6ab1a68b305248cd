"""What a report writes beside its document: findings whose sizes hardly move stay, roll-ups log no locks."""

from __future__ import annotations

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from support.service import Service

from hugeplan.fleet.findings.base import attention
from hugeplan.fleet.ingest.node_update import NEARLY, Node, _says_nearly
from hugeplan.planner.units import format_bytes
from tools import wal_cost
from tools.replay import replayed

EXAMPLE = json.loads((Path(__file__).parents[3] / "docs/report.example.json").read_text())
GIB = 1 << 30


def finding(title: str, reason: str = "", fix: str = "") -> Any:
    return attention("code", "subject", title, reason, fix)


@given(st.integers(1 << 20, 1 << 45), st.floats(0.9, 1.1))
def test_a_size_is_written_again_when_it_has_moved_by_a_hundredth(size: int, factor: float) -> None:
    before, after = (f"{format_bytes(one)} left" for one in (size, round(size * factor)))
    # Three digits are shown, so each of the two is up to half a hundredth off what it is.
    if before == after or abs(factor - 1) > NEARLY + 0.0105:
        assert _says_nearly(finding(before), finding(after)) == (before == after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (finding("8 GiB left"), finding("8.2 GiB left")),
        (finding("8 GiB left"), finding("8 MiB left")),
        (finding("8 GiB left"), finding("8 GiB used")),
        (finding("8 GiB left"), finding("8 GiB left of 9 GiB")),
        (finding("t", "16,384 pages"), finding("t", "16,385 pages")),
        (finding("t", "nr_hugepages is 16384"), finding("t", "nr_hugepages is 16385")),
        (finding("t", "61,888 MiB"), finding("t", "61,889 MiB")),
        (finding("t", "r", "Set 100 GiB"), finding("t", "r", "Set 100.5 GiB")),
    ],
)
def test_counts_fixes_and_other_words_are_written_at_once(before: Any, after: Any) -> None:
    assert not _says_nearly(before, after)
    assert _says_nearly(after, after)


async def test_findings_are_written_with_the_sizes_of_this_hour(service: Service, agent: Any) -> None:
    """Reports of 66 minutes in which the sizes of a finding move in their third digit."""
    start = datetime.now(UTC).replace(minute=5, second=0, microsecond=0) - timedelta(hours=3)
    chance = random.Random(1)
    versions, titles = [], []
    for _, at, raw in replayed(EXAMPLE, processes=2, start=start, minutes=66, chance=chance):
        headers = {"Content-Type": "application/json"}
        answer = await agent.post("/api/v1/reports", content=raw, headers=headers)
        assert answer.status_code == 201, answer.text
        async with service.database.read() as session:
            row = (await session.execute(text("SELECT xmin::text, findings FROM node_states"))).one()
        versions.append((at.hour, row.xmin))
        titles += [one["title"] for one in row.findings if one["code"] == "time_bomb"]
    in_first, in_second = (versions[:55], versions[55:])
    assert {hour for hour, _ in in_first} != {hour for hour, _ in in_second}
    # The first report makes the node, and the first of an hour may write what has moved.
    assert len(set(in_first)) <= 2
    assert len(set(in_second)) <= 1
    assert titles[0] == titles[54]
    assert titles[55] != titles[54]


def test_a_node_writes_its_findings_again_in_each_hour() -> None:
    """Within the hour the words of before stay, and their time; after it they say the sizes of now."""
    at = datetime(2026, 11, 27, 8, 58, tzinfo=UTC)
    node = Node(id=uuid.UUID(int=1), name="n", is_new=True, sampled_at=None, labels_set={}, measured=None,  # type: ignore[arg-type]
                findings=[], planned=None)  # fmt: skip

    def kept(size: int, *, in_new_words: bool) -> str:
        node._keep([finding(f"{format_bytes(size)} left")], at, in_new_words=in_new_words)
        return node.findings[0].title

    assert kept(800 * GIB, in_new_words=False) == "800 GiB left"
    assert kept(801 * GIB, in_new_words=False) == "800 GiB left"
    assert kept(801 * GIB, in_new_words=True) == "801 GiB left"
    # It is compared with what is written, and not with the report before: it cannot creep.
    assert [kept(size * GIB, in_new_words=False) for size in (804, 808, 810)] == [
        "801 GiB left", "801 GiB left", "810 GiB left",
    ]  # fmt: skip


@pytest.mark.parametrize(("processes", "most_bytes"), [(2, 2000), (38, 3000)])
def test_the_write_ahead_log_of_a_report_stays_within_its_bar(processes: int, most_bytes: int) -> None:
    """Record bytes do not depend on the machine or on checkpoints. The bar of 2 kB is for a node with 2 processes."""
    found = wal_cost.measured_here(EXAMPLE, nodes=10, reports=60, processes=processes)
    assert found["wal_record_bytes_per_report"] <= most_bytes, found
    assert not [name for name in found["of_it"] if name.startswith("Heap lock sample_")]
