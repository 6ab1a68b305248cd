"""Root's new folders where everybody may make names: who makes one first gets only what that user could make."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hugeplan.artifacts.bundle import BundleFile
from hugeplan.cli import InputError, import_inventory
from hugeplan.cli.files import read_bundle, write_bundle
from hugeplan.cli.plan_inventory import write_artifacts
from hugeplan.inventory.answer import answer
from hugeplan.inventory.csv_table import read_csv

TABLE = "host,memory,engine,settings\nn,64GiB,postgresql,shared_buffers=4GB\n"
WRITERS: tuple[Callable[[Path], None], ...] = (
    lambda folder: write_bundle([BundleFile(path="f", text="x", executable=False)], folder, "--artifacts"),
    lambda folder: import_inventory._write(folder, [("n", {})]),
    lambda folder: write_artifacts(answer(read_csv(TABLE, "t")), folder, force=True),
)


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is led elsewhere by other users")
@pytest.mark.parametrize("write", WRITERS, ids=["plan --artifacts", "import --out", "plan --inventory"])
def test_a_folder_that_another_user_made_first_is_written_to_as_that_user(
    write: Callable[[Path], None], everybodys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(everybodys / "own" / "x")
    assert list((everybodys / "own" / "x").rglob("*"))
    make = os.mkdir

    def first(path: str, mode: int = 0o777) -> None:
        """Another user's folder is there just before."""
        if Path(path) == everybodys / "new":
            make(path, 0o777)
            os.chown(path, 65534, 65534)
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", first)
    write(everybodys / "new" / "x")
    assert {path.lstat().st_uid for path in (everybodys / "new").rglob("*")} == {65534}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is led elsewhere by other users")
@pytest.mark.parametrize("name", ["README.md", "1-x"])
def test_a_bundle_in_another_users_folder_is_read_as_that_user(everybodys: Path, name: str) -> None:
    """Between a look and what follows, that user may put a link to root's files or folders in the place of any."""
    hers = everybodys / "hers"
    write_bundle([BundleFile("README.md", "x"), BundleFile("1-x/y", "x")], hers, "--out")
    os.chown(hers, 65534, 65534)
    assert [file.path for file in read_bundle(hers, "--diff")] == ["1-x/y", "README.md"]
    (hers / name).chmod(0o600)
    with pytest.raises(InputError, match="Permission denied"):
        read_bundle(hers, "--diff")
