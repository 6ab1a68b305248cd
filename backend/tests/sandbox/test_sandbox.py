"""Work on what strangers wrote: within limits that the kernel keeps, and never longer than somebody waits for it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import hugeplan
from hugeplan.errors import InvalidInputError, RateLimitedError, UnavailableError
from hugeplan.sandbox import sandbox as module
from hugeplan.sandbox.orders import Limits
from hugeplan.sandbox.sandbox import (
    AT_ONCE,
    AT_ONCE_OF_ONE,
    OF_ONE_AGENT,
    WAITING_OF_AGENTS,
    WAITING_OF_ONE,
    Asker,
    Sandbox,
)
from tools.attack.processes import cpu_seconds, family

JOBS = "tests.support.jobs"
SHORT = Limits(cpu_seconds=0.1, seconds=5)


@pytest_asyncio.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox()
    yield made
    await made.close()


async def work(sandbox: Sandbox, job: str, payload: bytes = b"", whose: str = "one", **more: object) -> bytes:
    asker = Asker(whose, is_agent=bool(more.pop("is_agent", False)), address=str(more.pop("address", "")))
    return await sandbox.work(f"{JOBS}:{job}", payload, whose=asker, what="This", **more)  # type: ignore[arg-type]


def descendants(sandbox: Sandbox) -> list[int]:
    assert sandbox._process is not None
    return family(sandbox._process.process.pid)


async def until_alone(sandbox: Sandbox) -> None:
    """Until nothing that was forked is left."""
    async with asyncio.timeout(20):
        while len(descendants(sandbox)) > 1:
            await asyncio.sleep(0.01)


async def test_an_answer_comes_back_whole(sandbox: Sandbox) -> None:
    text = b"abc" * 700_000
    assert await work(sandbox, "upper", text) == text.upper()


async def test_no_code_comes_from_the_folder_that_root_works_in(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hugeplan").mkdir()
    (tmp_path / "hugeplan" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert await work(sandbox, "upper", b"a") == b"A"
    assert not (tmp_path / "ran").exists()
    texts = [path.read_text() for path in Path(hugeplan.__file__).parent.rglob("*.py")]
    starting = [text for text in texts if re.search(r'"-m",\s+"hugeplan', text)]
    assert len(starting) >= 5
    assert all("own_path()" in text for text in starting)


@pytest.mark.parametrize("job", ["spin", "hold_the_interpreter"])
async def test_work_ends_with_its_processor_time(sandbox: Sandbox, job: str) -> None:
    await work(sandbox, "upper")
    before = os.times()
    with pytest.raises(InvalidInputError, match=r"This takes more than 0\.1 s of processor time and 56 MiB"):
        await work(sandbox, job, limits=SHORT)
    await until_alone(sandbox)
    assert await work(sandbox, "upper", b"a") == b"A"
    await sandbox.close()
    assert os.times().children_user - before.children_user < 1


async def test_pieces_of_one_work_share_its_processor_time(sandbox: Sandbox) -> None:
    await work(sandbox, "upper")
    assert sandbox._process is not None
    pid = sandbox._process.process.pid
    for used, most in ((0.9, 0.3), (1.0, 0.2), (2.0, 0.2)):
        before = cpu_seconds(pid)
        with pytest.raises(InvalidInputError, match=r"This takes more than 1 s of processor time"):
            await work(sandbox, "spin", limits=Limits(cpu_seconds=1.0, used_seconds=used))
        await until_alone(sandbox)
        assert cpu_seconds(pid) - before < most


async def test_its_processor_time_is_told(sandbox: Sandbox) -> None:
    """Of each piece of work its own, of one that was ended all that it might take."""
    told: list[float] = []
    for keep in (False, True, True):
        await work(sandbox, "compute", b"0.1", keep=keep, spend=told.append, limits=Limits(cpu_seconds=2.0))
    with pytest.raises(InvalidInputError):
        await work(sandbox, "spin", spend=told.append, limits=SHORT)
    assert [round(seconds, 1) for seconds in told] == [0.1, 0.1, 0.1, 0.1]


async def test_a_refusal_says_what_to_do_instead(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidInputError, match=r"56 MiB; use the command\.$"):
        await work(sandbox, "spin", limits=SHORT, instead="use the command")


async def test_work_ends_with_the_clock(sandbox: Sandbox) -> None:
    begun = time.monotonic()
    with pytest.raises(InvalidInputError):
        await work(sandbox, "sleep", limits=Limits(seconds=0.2))
    assert time.monotonic() - begun < 20
    await until_alone(sandbox)


async def test_work_ends_with_its_memory(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidInputError, match="56 MiB"):
        await work(sandbox, "fill", limits=Limits(cpu_seconds=30))


async def test_work_ends_when_nobody_waits_for_it(sandbox: Sandbox) -> None:
    await work(sandbox, "upper")
    asked = asyncio.create_task(work(sandbox, "sleep", limits=Limits(seconds=600)))
    async with asyncio.timeout(20):
        while len(descendants(sandbox)) < 2:
            await asyncio.sleep(0.01)
    asked.cancel()
    await until_alone(sandbox)


@pytest.mark.parametrize("job", ["refuse", "refuse_as_the_planner"])
async def test_a_refusal_keeps_its_field(sandbox: Sandbox, job: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await work(sandbox, job)
    (problem,) = caught.value.errors
    assert (problem.field, problem.value, problem.expected) == ("x", "1", "2")


async def test_a_fault_is_no_refusal(sandbox: Sandbox) -> None:
    with pytest.raises(RuntimeError):
        await work(sandbox, "fail")


async def test_a_number_out_of_range_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidInputError, match="too large or too small to compute with"):
        await work(sandbox, "raise_a_power")


async def test_a_process_stays_for_its_kind_where_the_order_says_so(sandbox: Sandbox) -> None:
    first, second = [(await work(sandbox, "which", keep=True)).split() for _ in range(2)]
    assert first[0] == second[0]
    assert (first[1], second[1]) == (b"1", b"2")
    alone = (await work(sandbox, "which")).split()
    assert alone[0] != first[0]
    assert alone[1] == b"1"


async def test_what_overran_does_not_stay(sandbox: Sandbox) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInputError):
            await work(sandbox, "spin", limits=SHORT, keep=True)
    assert await work(sandbox, "upper", b"a", limits=SHORT, keep=True) == b"A"


async def test_a_process_that_was_killed_is_started_again(sandbox: Sandbox) -> None:
    await work(sandbox, "upper")
    assert sandbox._process is not None
    sandbox._process.process.kill()
    sandbox._process.process.wait()
    assert await work(sandbox, "upper", b"a") == b"A"


async def test_it_ends_with_the_service(sandbox: Sandbox) -> None:
    await work(sandbox, "upper")
    assert sandbox._process is not None
    process = sandbox._process.process
    sandbox._process.control.close()
    assert await asyncio.to_thread(process.wait, 20) == 0


async def test_one_credential_leaves_room_for_others(sandbox: Sandbox) -> None:
    slow = [
        asyncio.create_task(work(sandbox, "sleep", limits=Limits(seconds=600)))
        for _ in range(AT_ONCE_OF_ONE + WAITING_OF_ONE)
    ]
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError, match="one credential"):
        await work(sandbox, "upper")
    assert await work(sandbox, "upper", b"a", whose="another") == b"A"
    for each in slow:
        each.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert await work(sandbox, "upper", b"a") == b"A"
    assert not sandbox._turns._rooms


async def test_an_agent_leaves_room_for_other_agents(sandbox: Sandbox) -> None:
    slow = [
        asyncio.create_task(work(sandbox, "sleep", is_agent=True, limits=Limits(seconds=600)))
        for _ in range(OF_ONE_AGENT)
    ]
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError, match=f"At most {OF_ONE_AGENT}"):
        await work(sandbox, "upper", is_agent=True)
    for each in slow:
        each.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_agents_leave_room_for_people(sandbox: Sandbox) -> None:
    """Forty agents of one enrolment token had all places, and previews were answered 503."""
    of_agents = [
        asyncio.create_task(work(sandbox, "sleep", whose=f"agent {number}", is_agent=True, limits=Limits(seconds=600)))
        for number in range(WAITING_OF_AGENTS + 1)
    ]
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError, match="too many"):
        await work(sandbox, "upper", whose="one more", is_agent=True)
    people = [work(sandbox, "upper", b"a", whose=f"person {number}") for number in range(AT_ONCE)]
    assert await asyncio.gather(*people) == [b"A"] * AT_ONCE
    for each in of_agents:
        each.cancel()
    await asyncio.gather(*of_agents, return_exceptions=True)
    assert await work(sandbox, "upper", b"a", whose="agent 1", is_agent=True) == b"A"


async def test_what_does_not_start_is_unavailable(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(module.UnavailableError):
        await work(sandbox, "upper")


async def test_agents_of_one_address_leave_room_and_a_place_to_those_of_others(sandbox: Sandbox) -> None:
    """All waited in one line, first come, first served, and one address could fill it."""
    order: list[str] = []

    async def done(name: str, address: str) -> None:
        await work(sandbox, "upper", whose=name, is_agent=True, address=address)
        order.append(address)

    first = asyncio.create_task(work(sandbox, "sleep", whose="first", is_agent=True, limits=Limits(seconds=600)))
    await asyncio.sleep(0)
    async with asyncio.TaskGroup() as tasks:
        many = [tasks.create_task(done(f"agent {number}", "there")) for number in range(WAITING_OF_AGENTS // 2)]
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="too many"):
            for _ in range(WAITING_OF_AGENTS):
                await asyncio.wait_for(work(sandbox, "upper", whose="more", is_agent=True, address="there"), 0.01)
        tasks.create_task(done("other", "here"))
        await asyncio.sleep(0)
        first.cancel()
    assert len(order) == len(many) + 1
    assert order.index("here") <= 1
