"""Three PostgreSQL servers of one port, size and unit: their data directories alone tell which plan is whose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.postgresql_servers import WHEEL, RealServer, programs

from hugeplan.cli import main
from hugeplan.planner.model import MIB

M2 = 2 * MIB
#: Each server listens on a socket in its own folder, so that they may share a port; no other suite has this one.
PORT = 54731
MODES = ("on", "try", "off")
#: Ten times what the server with huge_pages=on needs: a server of another suite may take some before it starts.
PAGES = 256

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def hugeplan(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> tuple[int, str]:
        status = main(list(words))
        captured = capsys.readouterr()
        return status, captured.out or captured.err

    return run


@pytest.fixture
def servers() -> Iterator[dict[str, RealServer]]:
    """The three, none started; stopped and removed at the end."""
    with ExitStack() as stack:
        found = {}
        for mode in MODES:
            found[mode] = RealServer(programs(WHEEL), PORT)
            stack.callback(found[mode].close)
            found[mode].configure({"shared_buffers": "32MB", "huge_pages": mode})
        yield found


def engine_finding(text: str) -> tuple[str, int | None]:
    """State of the finding on the pages that the plan's instance runs on, and the PID that it judged."""
    found = next(f for f in json.loads(text)["findings"] if f["code"] == "verify_engine")
    pid = next((term["value"] for term in found["evidence"] if term["name"] == "pid"), None)
    return found["state"], None if pid is None else int(pid)


def pid_of(server: RealServer) -> int:
    return int((server.data / "postmaster.pid").read_text().splitlines()[0])


def test_each_plan_is_judged_by_its_own_server_whichever_restarted_last(
    servers: dict[str, RealServer], hugeplan: Command, tmp_path: Path
) -> None:
    pool_reservation = pytest.importorskip("hugeplan_agent.pool_reservation")
    try:
        with pool_reservation.reservation() as pages:
            # Those that may take pages start before there are any for them.
            for mode in ("try", "off"):
                assert servers[mode].start() == 0, servers[mode].log
            pages.grow(M2, PAGES)
            assert servers["on"].start() == 0, servers["on"].log
            plans = _plans(servers, hugeplan, tmp_path)
            _each_by_its_own(servers, plans, hugeplan)
            # What was the first process is the last one now.
            for mode in ("off", "on"):
                assert servers[mode].control("-m", "fast", "stop") == 0
                assert servers[mode].start() == 0, servers[mode].log
            _each_by_its_own(servers, plans, hugeplan)
            # One that does not run is not mistaken for one that does, and the others stay what they are.
            assert servers["on"].control("-m", "fast", "stop") == 0
            _, text = hugeplan("verify", str(plans["on"]), "--json")
            assert engine_finding(text) == ("unknown", None), text
            _each_by_its_own({m: s for m, s in servers.items() if m != "on"}, plans, hugeplan)
            for server in servers.values():
                server.control("-m", "immediate", "stop")
    except pool_reservation.ReservationError as error:
        pytest.skip(str(error))


def _plans(servers: dict[str, RealServer], hugeplan: Command, folder: Path) -> dict[str, Path]:
    found = {}
    for mode, server in servers.items():
        words = f"data_directory={server.data},huge_pages=on,page_size=2MiB"
        status, text = hugeplan("plan", "--node", "this", "--postgresql", words, "--json")
        assert status in {0, 5}, text
        found[mode] = folder / f"{mode}.json"
        found[mode].write_text(text)
    status, text = hugeplan("plan", "--node", "this", "--postgresql", f"port={PORT}")
    assert (status, "data_directory=" in text, "port= " in text) == (2, True, False), text
    return found


def _each_by_its_own(servers: dict[str, RealServer], plans: dict[str, Path], hugeplan: Command) -> None:
    for mode, server in servers.items():
        _, text = hugeplan("verify", str(plans[mode]), "--json")
        state, pid = engine_finding(text)
        assert pid == pid_of(server), f"{mode}: {text}"
        # The kernel says what backs its segment. One that may try is on pages where another suite had left some.
        is_huge = "/anon_hugepage" in Path(f"/proc/{pid}/maps").read_text()
        assert is_huge is (mode == "on") or mode == "try"
        # Pages that others hold make it wrong, free ones make a restart the next step: both say base pages.
        assert state == "ok" if is_huge else state in {"wrong", "attention"}, f"{mode}: {text}"
