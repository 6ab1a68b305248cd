"""Pages under tlbbench's journal, on a made-up /sys in a temporary folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hugeplan_agent.pool_reservation import Places, ReservationError, reservation

PAGE = 2 << 20


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path / "sys", tmp_path / "run")
    for node in (-1, 0):
        made.pool(PAGE, node).mkdir(parents=True)
        for name, count in (("nr_hugepages", 5), ("free_hugepages", 1), ("surplus_hugepages", 0)):
            (made.pool(PAGE, node) / name).write_text(f"{count}\n")
    return made


def count(places: Places, node: int = -1) -> int:
    return int((places.pool(PAGE, node) / "nr_hugepages").read_text())


def journal(places: Places) -> Path:
    assert places.journal_folder is not None
    return places.journal_folder / "journal"


def test_pages_come_back_and_the_journal_goes(places: Places) -> None:
    with reservation(places) as held:
        assert held.grow(PAGE, 10) == 10
        assert held.grow(PAGE, 3) == 3
        assert count(places) == 18
        assert journal(places).read_text().endswith(" former=5 held=18.\n")
    assert count(places) == 5
    assert not journal(places).parent.exists()


@pytest.mark.parametrize("later", [17, 9, 3])
def test_a_count_that_somebody_set_later_stays(places: Places, later: int) -> None:
    with reservation(places) as held:
        held.grow(PAGE, 10)
        (places.pool(PAGE) / "nr_hugepages").write_text(f"{later}\n")
    assert count(places) == later


def test_pages_come_back_when_the_block_fails(places: Places) -> None:
    def fail() -> None:
        with reservation(places) as held:
            held.grow(PAGE, 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert count(places) == 5


@pytest.mark.parametrize(
    ("lines", "current", "restored"),
    [
        ([], 5, 5),  # killed before anything was written
        (["target=50"], 5, 5),  # before the pool was
        (["target=50"], 30, 5),  # while the kernel looked for pages
        (["target=50"], 50, 5),  # before that was noted
        (["target=50"], 51, 51),  # somebody set it since
        (["target=50", "held=30"], 30, 5),
        (["target=50", "held=30"], 31, 31),
        (["target=50", "held=30"], 29, 29),
        (["target=50", "held=30", "target=80"], 60, 5),  # killed while it took more
    ],
)
def test_a_journal_gives_back_after_a_kill_at_each_step(
    places: Places, lines: list[str], current: int, restored: int
) -> None:
    """The same rule and the same lines as in agent/tlbbench/src/memory/reservation.h."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    journal(places).parent.mkdir(mode=0o700)
    journal(places).write_text(
        f"tlbbench reservation 1, boot {boot_id}\n"
        + "".join(f"pool page_bytes={PAGE} node=-1 former=5 {line}.\n" for line in lines)
    )
    (places.pool(PAGE) / "nr_hugepages").write_text(f"{current}\n")
    with reservation(places):
        assert count(places) == restored
    assert count(places) == restored


def test_surplus_is_not_kept(places: Places) -> None:
    (places.pool(PAGE) / "surplus_hugepages").write_text("5\n")
    with reservation(places) as held:
        held.grow(PAGE, 10)
        assert count(places) == 15
        assert "former=0 target=15." in journal(places).read_text()


def test_a_second_owner_waits_and_then_says_so(places: Places) -> None:
    with (
        reservation(places),
        pytest.raises(ReservationError, match=r"another program held huge pages .* for 0\.2 s"),
        reservation(places, wait_seconds=0.2),
    ):
        pytest.fail("two owners")


KILLED = """
import os, signal, sys
from pathlib import Path
from hugeplan_agent.pool_reservation import Places, reservation
with reservation(Places(Path(sys.argv[1]), Path(sys.argv[2]))) as held:
    held.grow(2 << 20, 10)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_owner_mends_what_a_killed_one_left(places: Places) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(places.sysfs), str(places.journal_folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert count(places) == 15
    assert journal(places).exists()
    with reservation(places):
        assert count(places) == 5
    assert not journal(places).exists()


def test_a_journal_of_tlbbench_is_obeyed(places: Places) -> None:
    """Two sizes of writing: by NUMA node, and with what the kernel really gave in a later line."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    journal(places).parent.mkdir(mode=0o700)
    journal(places).write_text(
        f"tlbbench reservation 1, boot {boot}\n"
        f"pool page_bytes={PAGE} node=0 former=1 target=500.\n"
        f"pool page_bytes={PAGE} node=0 former=1 held=5.\n"
        f"pool page_bytes={PAGE} node=-1 former=2 targ"
    )
    with reservation(places):
        assert (count(places, 0), count(places)) == (1, 5)


def test_a_journal_of_another_boot_is_dropped(places: Places) -> None:
    journal(places).parent.mkdir(mode=0o700)
    journal(places).write_text(f"tlbbench reservation 1, boot 0\npool page_bytes={PAGE} node=-1 former=1 target=5.\n")
    with reservation(places):
        assert count(places) == 5


def test_a_folder_that_others_may_write_is_refused(places: Places) -> None:
    journal(places).parent.mkdir()
    journal(places).parent.chmod(0o777)
    with pytest.raises(ReservationError, match="no folder for the journal"), reservation(places):
        pytest.fail("planted")


def test_a_size_that_the_kernel_lacks_is_named(places: Places) -> None:
    message = "no nr_hugepages of huge pages of 1073741824 bytes"
    with pytest.raises(ReservationError, match=message), reservation(places) as held:
        held.grow(1 << 30, 1)
    assert not journal(places).exists()
