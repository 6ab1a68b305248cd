"""The short answer: what to do first, then cost, benefit, risk, change, what needs action, and commands that work."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from hugeplan.artifacts import render
from hugeplan.cli.plan_answer import MOST_FINDINGS, plan_answer
from hugeplan.planner.model import GIB, DatabaseInstance, NodeFacts, NumaNode, Plan, PlanRequest, State, Tenant
from hugeplan.planner.plan import plan

NODE = NodeFacts(name="db-1", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), cpus=16, kernel_used_bytes=GIB)


def request(shared_buffers: str = "8GB", memory_gib: int = 64) -> PlanRequest:
    node = NodeFacts(
        name="db-1", numa=(NumaNode(id=0, mem_total_bytes=memory_gib * GIB),), cpus=16, kernel_used_bytes=GIB
    )
    database = DatabaseInstance(
        name="orders", engine="postgresql", settings={"shared_buffers": shared_buffers}, page_bytes=2 << 20
    )
    tenant = Tenant(name="app", request_bytes=4 * GIB, limit_bytes=6 * GIB)
    return PlanRequest(node=node, tenants=(tenant,), databases=(database,))


def answered(asked: PlanRequest) -> tuple[Plan, list[str]]:
    found = plan(asked)
    return found, plan_answer(found, render(found, asked)).splitlines()


def test_the_first_lines_say_what_it_costs_and_buys() -> None:
    found, lines = answered(request())
    assert lines[0] == found.headline
    assert lines[1].startswith("It costs ")
    assert lines[2].startswith("It buys the database orders ")
    assert re.search(r"confidence is (low|medium|high)", " ".join(lines[2:5]))


def test_what_does_not_fit_comes_first_and_no_command_follows() -> None:
    _, lines = answered(request("80GB"))
    assert "fit" in lines[0]
    assert "Apply" not in lines
    assert not any(line.lstrip().startswith("$ ") for line in lines)


def test_the_largest_pool_that_fits_is_named() -> None:
    _, lines = answered(request("80GB"))
    assert any("shared_buffers" in line for line in lines[:8])


def test_at_most_five_findings_that_need_action() -> None:
    found, lines = answered(request())
    start = lines.index("Needs action") + 1
    shown = [line for line in lines[start:] if line.startswith("  - ")]
    action = [f for f in found.findings if f.state in {State.WRONG, State.ATTENTION}]
    assert 0 < len(shown) == min(MOST_FINDINGS, len(action))


def test_commands_are_whole_lines_of_the_recommended_files() -> None:
    asked = request()
    found = plan(asked)
    files = render(found, asked)
    lines = plan_answer(found, files).splitlines()
    shown = [line.strip()[2:] for line in lines if line.lstrip().startswith(("$ ", "> "))]
    own = [item for item in files if item.recommended]
    assert own
    for item in own:
        for text in (item.install, item.verify, item.rollback):
            assert set(text.splitlines()) <= set(shown)
    others = [item for item in files if not item.recommended]
    assert others
    assert not any(item.filename in " ".join(shown) for item in others if item.filename not in str(own))


@pytest.mark.parametrize("memory_gib", [12, 16, 64, 512])
def test_no_sentence_is_wider_than_the_page(memory_gib: int) -> None:
    _, lines = answered(request(memory_gib=memory_gib))
    assert all(len(line) <= 120 or line.lstrip().startswith(("$ ", "> ")) for line in lines)


def test_a_line_that_goes_on_has_no_second_prompt() -> None:
    _, lines = answered(request())
    verify = lines[lines.index("Verify (reads only, fails while the plan is not in force)") + 1 :]
    before = [line for line, after in pairwise(verify) if after.startswith("  > ")]
    assert before
    assert all(line.endswith("&&") for line in before)


def test_what_does_not_fit_is_said_once_and_adds_up() -> None:
    found, lines = answered(request("80GB"))
    assert sum("largest shared_buffers" in line for line in lines) == 1
    assert found.shortfall is not None
    parts = re.fullmatch(
        r"The databases need ([\d.]+) GiB and everything else ([\d.]+) GiB; the node has 64 GiB\.", lines[1]
    )
    assert parts is not None, lines[1]
    short = sum(float(part) for part in parts.groups()) - 64
    assert short == pytest.approx(found.shortfall.shortfall_bytes / GIB, rel=0.02)
