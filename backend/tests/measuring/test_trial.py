"""The loop: it stops when it knows enough or the time is up, and never says more than it knows."""

from __future__ import annotations

import argparse
import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from measuring.simulated import SimulatedSubject
from support.folders import folder_for_all

from hugeplan.cli import main
from hugeplan.cli.trial_document import About, written
from hugeplan.cli.trial_text import percent, picture, sentence, table
from hugeplan.documents.trial import TrialShape
from hugeplan.measuring.batches import MOST_PAIRS, Batch, BatchError, Side
from hugeplan.measuring.busy import CpuTimes
from hugeplan.measuring.confidence import Interval, as_gain
from hugeplan.measuring.trial import LEAST_BLOCKS, Limits, Measured, TrialError, run

TEN_MINUTES = Limits(600.0)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated time needs no look at the real CPUs."""
    monkeypatch.setattr(CpuTimes, "others_share", classmethod(lambda _: 0.04))


def measure(subject: SimulatedSubject, *arms: str, limits: Limits = TEN_MINUTES, seed: int = 1) -> Measured:
    return run(subject, arms, limits, seed=seed, clock=subject.clock)


def test_equal_pages_include_zero_and_a_known_gain_is_covered() -> None:
    """A/A and A/B by simulation, each stopped by its own rule: at least 93 of 100 intervals hold the truth."""
    held = {"equal": 0, "2M": 0}
    for seed in range(100):
        measured = measure(SimulatedSubject({"2M": 7.5}, seed, place_bias=0.01), "2M", seed=seed)
        equal, huge = measured.arms
        floor, gain = equal.gain(by_cpu=True), huge.gain(by_cpu=True)
        held["equal"] += floor.low <= 0.0 <= floor.high
        held["2M"] += gain.low <= 7.5 <= gain.high
    assert held["equal"] >= 93
    assert held["2M"] >= 93


def test_two_trials_overlap() -> None:
    """Starts that differ by a point are in the interval, so a second trial agrees with the first."""
    overlaps = 0
    for seed in range(60):
        first, second = (
            measure(SimulatedSubject({"2M": 5.0}, 1000 * n + seed), "2M", seed=seed).arms[1].gain(by_cpu=True)
            for n in (1, 2)
        )
        overlaps += first.low <= second.high and second.low <= first.high
    assert overlaps >= 54


def test_a_quiet_machine_gives_two_points_in_ten_minutes() -> None:
    measured = measure(SimulatedSubject({"2M": 7.5}, 3, pair_noise=0.02, start_noise=0.005), "2M")
    assert measured.arms[1].gain(by_cpu=True).width <= 2.0
    assert measured.is_usable(measured.arms[1])
    said = sentence(measured, "4K")
    assert said.startswith("2M pages: +")
    assert "too noisy" not in said
    assert "4K against 4K" in said


@pytest.mark.parametrize(("start_seconds", "pairs"), [(0.5, 12), (12.0, 30), (1000.0, MOST_PAIRS)])
def test_a_block_measures_as_long_as_its_starts_took(start_seconds: float, pairs: int) -> None:
    """Pairs cost 0.4 s here; a dozen of them behind a start of 12 s would leave four fifths of the time unmeasured."""
    subject = SimulatedSubject({"2M": 7.5}, 3, seconds_per_start=start_seconds)
    measured = measure(subject, "2M", limits=Limits(5000.0))
    found = {len(block.pairs) for arm in measured.arms for block in arm.blocks}
    assert found <= {pairs, min(pairs + 1, MOST_PAIRS)}, "one more where the sum of times is rounded down"


def test_it_stops_when_the_interval_is_narrow() -> None:
    subject = SimulatedSubject({"2M": 7.5}, 3, pair_noise=0.002, start_noise=0.001)
    measured = measure(subject, "2M")
    assert measured.stopped == "narrow"
    assert measured.seconds < 300
    assert measured.arms[1].gain(by_cpu=True).width <= 1.0
    assert all(len(arm.blocks) >= LEAST_BLOCKS for arm in measured.arms)


def test_a_noisy_machine_says_so_and_what_it_would_take() -> None:
    measured = measure(SimulatedSubject({"2M": 7.5}, 3, start_noise=0.1), "2M")
    assert measured.stopped == "time"
    assert measured.seconds <= 600
    assert not measured.is_usable(measured.arms[1])
    said = sentence(measured, "4K")
    assert said.startswith("too noisy: 2M pages")
    assert "--minutes" in said


def test_equal_pages_that_differ_refute_everything() -> None:
    """Not a difference between places, which swapping removes, but one between first and second."""
    measured = measure(SimulatedSubject({"2M": 7.5, "equal": 3.0}, 3, start_noise=0.002), "2M")
    assert measured.noise_refutes()
    assert not measured.is_usable(measured.arms[1])
    assert "4K pages differ from 4K pages as well" in sentence(measured, "4K")


def test_a_difference_between_the_places_favours_no_page_size() -> None:
    gain = measure(SimulatedSubject({"2M": 5.0}, 9, place_bias=0.05), "2M").arms[1].gain(by_cpu=True)
    assert gain.low <= 5.0 <= gain.high
    assert gain.likely == pytest.approx(5.0, abs=3.0)


def test_a_page_size_that_is_not_there_does_not_stop_the_others() -> None:
    measured = measure(SimulatedSubject({"2M": 5.0}, 4, absent={"1G": "no 1G pages"}), "2M", "1G")
    by_name = {arm.name: arm for arm in measured.arms}
    assert by_name["1G"].skipped == "no 1G pages"
    assert by_name["2M"].blocks
    assert "1G: not measured: no 1G pages." in sentence(measured, "4K")
    assert "no 1G pages" in table(measured)
    with pytest.raises(TrialError, match="no 1G pages"):
        measure(SimulatedSubject({}, 4, absent={"1G": "no 1G pages"}), "1G")


def test_a_table_keeps_its_columns_where_blocks_are_too_few_for_an_interval() -> None:
    measured = measure(SimulatedSubject({"2M": 107.5}, 3, start_noise=0.1), "2M", limits=Limits(60.0))
    assert "too few" in sentence(measured, "4K")
    assert {len(re.split(r" {2,}", row)) for row in table(measured).splitlines()} == {5}, table(measured)


def test_equal_alone_is_a_trial_of_the_machine() -> None:
    measured = measure(SimulatedSubject({}, 5, start_noise=0.002, pair_noise=0.01))
    assert [arm.name for arm in measured.arms] == ["equal"]
    assert measured.stopped == "narrow"


def test_an_interrupt_keeps_what_was_measured() -> None:
    class Interrupted(SimulatedSubject):
        starts = 0

        @contextmanager
        def sides(self, arm: str, *, swapped: bool) -> Iterator[tuple[Side, Side]]:
            self.starts += 1
            if self.starts > 8:
                raise KeyboardInterrupt
            with super().sides(arm, swapped=swapped) as made:
                yield made

    measured = measure(Interrupted({"2M": 5.0}, 6), "2M")
    assert measured.stopped == "interrupted"
    assert sum(len(arm.blocks) for arm in measured.arms) == 8


@pytest.mark.parametrize("problem", [TrialError("no word"), OSError("no word"), ValueError("no word")])
def test_what_fails_keeps_what_was_measured(problem: Exception) -> None:
    class Failing(SimulatedSubject):
        starts = 0

        @contextmanager
        def sides(self, arm: str, *, swapped: bool) -> Iterator[tuple[Side, Side]]:
            self.starts += 1
            if self.starts > first:
                raise problem
            with super().sides(arm, swapped=swapped) as made:
                yield made

    first = 3
    measured = measure(Failing({"2M": 5.0}, 6), "2M")
    assert measured.stopped == "interrupted"
    assert (measured.failure or "").endswith("no word")
    assert sum(len(arm.blocks) for arm in measured.arms) == 3
    first = 0
    with pytest.raises(type(problem)):
        measure(Failing({"2M": 5.0}, 6), "2M")


def test_numbers_that_are_no_page_sizes_doing_end_it_with_a_sentence() -> None:
    """Whoever is measured may say them: its clocks are its own."""
    for rate, cpu_ns in ((math.nan, 1.0), (math.inf, 1.0), (1.0, 0.0), (1.0, -1.0), (1e15, 1.0), (1.0, 1e-320)):
        with pytest.raises(BatchError, match="cannot be compared"):
            Batch(rate, cpu_ns)
    with pytest.raises(TrialError, match="no page size"):
        measure(SimulatedSubject({"2M": 1e7}, 6), "2M", limits=Limits(20.0))
    assert percent(as_gain(Interval(-90.0, 0.1, 90.0))).startswith("+10.5 %")


def test_the_picture_shows_every_pair() -> None:
    measured = measure(SimulatedSubject({"2M": 5.0}, 7), "2M", limits=Limits(120.0))
    root = ET.fromstring(picture(measured, "a & b"))  # noqa: S314 - our own text
    dots = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == sum(len(block.pairs) for arm in measured.arms for block in arm.blocks)
    assert any(text.text == "a & b" for text in root.iter("{http://www.w3.org/2000/svg}text"))


def test_what_is_no_file_in_the_place_of_the_result_is_named_before_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A FIFO waits for who reads it."""
    os.mkfifo(tmp_path / "trial.json")
    assert main(["trial", "postgresql", "--output", str(tmp_path)]) == 2
    assert f"{tmp_path / 'trial.json'} is not a regular file" in capsys.readouterr().err
    assert main(["trial", "postgresql", "--output", "x" * 300]) == 2  # as a folder in which nobody may look
    assert "File name too long" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root can write into folders of other users")
def test_a_link_that_came_while_it_was_measured_does_not_lead_root(capsys: pytest.CaptureFixture[str]) -> None:
    about = About("postgresql", "16.1", TrialShape(), datetime.now(UTC), 1)
    measured = measure(SimulatedSubject({"2M": 5.0}, 7), "2M", limits=Limits(120.0))
    with folder_for_all() as place:
        (place / "root").mkdir(mode=0o700)
        (place / "root/config").write_text("important")
        (place / "hers").mkdir()
        (place / "hers/trial.txt").symlink_to(place / "root/config")
        for path in (place / "hers", place / "hers/trial.txt"):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        arguments = argparse.Namespace(output=str(place / "hers"), json=False, priority="idle")
        written(arguments, measured, about)
        assert (place / "root/config").read_text() == "important"
        assert "written: " in capsys.readouterr().err
        assert {path.stat().st_uid for path in (place / "hers").iterdir()} == {65534}


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root can write into folders of other users")
@pytest.mark.parametrize("name", ["out", "."])
def test_a_folder_that_comes_while_root_makes_it_does_not_lead_root(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found in /tmp, where a user's folder of links came and went: root followed them. A FIFO waited for a reader."""
    about = About("postgresql", "16.1", TrialShape(), datetime.now(UTC), 1)
    measured = measure(SimulatedSubject({"2M": 5.0}, 7), "2M", limits=Limits(120.0))
    with folder_for_all() as place:
        place.chmod(0o1777)
        (place / "root").mkdir(mode=0o700)
        (place / "root/config").write_text("important")
        out, mkdir = place / name, Path.mkdir

        def late(path: Path, *arguments: Any, **words: Any) -> None:
            if not (out / "trial.json").is_symlink():
                mkdir(out, exist_ok=True)
                (out / "trial.json").symlink_to(place / "root/config")
                os.mkfifo(out / "trial.svg")
                for one in {out, *out.glob("trial.*")} - {place}:
                    os.chown(one, 65534, 65534, follow_symlinks=False)
            mkdir(path, *arguments, **words)

        monkeypatch.setattr(Path, "mkdir", late)
        written(argparse.Namespace(output=str(out), json=False, priority="idle"), measured, about)
        assert (place / "root/config").read_text() == "important"
        assert {path.stat().st_uid for path in out.glob("trial.*")} == {65534 if name == "out" else 0}
        assert "written: " in capsys.readouterr().err
