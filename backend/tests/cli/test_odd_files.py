"""Files that wait for a writer or have no end, where somebody else put them: one sentence, or none of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.folders import folder_for_all

from hugeplan.cli import InputError, files, main

KERNEL_LINE = "quiet hugepagesz=1G hugepages=8\n"


def test_what_was_found_in_a_folder_is_a_file_with_a_size(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The reader of /proc/kmsg waits for the kernel's next line."""
    (tmp_path / "cmdline").write_text(KERNEL_LINE)
    (tmp_path / "waits").symlink_to("/proc/kmsg")
    os.mkfifo(tmp_path / "fifo")
    assert files.read_found(tmp_path / "fifo") is None
    assert files.read_found(Path("/proc/self/status")) is None
    assert files.read_found(tmp_path / "cmdline") == KERNEL_LINE.encode()
    assert main(["lint", str(tmp_path)]) in {0, 1}
    assert "1 of 2 files are of no kind" in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes another user's files")
@pytest.mark.parametrize("user", [0, 65534])
def test_one_file_that_cannot_be_read_hides_nothing(user: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A user's link among root's files hid what is wrong with them."""
    with folder_for_all() as folder:
        folder.chmod(0o755)
        (folder / "a.conf").write_text("vm.nr_hugepages = x\n")
        theirs = folder / "b"
        theirs.mkdir()
        (theirs / "x.conf").symlink_to("/etc/shadow")
        (theirs / "shut").mkdir(mode=0o600)
        (theirs / "shut/y.conf").touch()
        os.chown(theirs, 65534, 65534)
        os.chown(theirs / "x.conf", 65534, 65534, follow_symlinks=False)
        (theirs / "shut").chmod(0o644)
        os.seteuid(user)
        try:
            assert main(["lint", str(folder)]) == 2
        finally:
            os.seteuid(0)
    out, said = capfd.readouterr()
    assert "1 wrong" in out
    assert "b/x.conf: Permission denied" in said
    assert ("y.conf: Permission denied; this file is left out" in said) is (user != 0)


def test_a_file_without_an_end_is_not_kept() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "wb") as pipe:
        pipe.write(b"x" * 60_000)
        pipe.close()
        with pytest.raises(InputError, match=f"/dev/fd/{reading}: it has more than 50000 bytes"):
            files.read_bytes(f"/dev/fd/{reading}", most_bytes=50_000)


def test_a_scenario_names_a_run_that_is_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "run.json")
    (tmp_path / "scenario.yaml").write_text("node: {memory: 64GiB, hardware: {run: run.json}}\n")
    assert main(["plan", str(tmp_path / "scenario.yaml")]) == 2
    assert "run.json is not a regular file" in capfd.readouterr().err
