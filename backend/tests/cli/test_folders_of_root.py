"""Root's new folders where everybody may make names: who makes one first gets only what that user could make."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hugeplan.artifacts.bundle import BundleFile
from hugeplan.cli import InputError, import_inventory, main
from hugeplan.cli.bundle_files import read_bundle, write_bundle
from hugeplan.cli.files import read_bytes
from hugeplan.cli.plan_inventory import write_artifacts
from hugeplan.inventory.answer import answer
from hugeplan.inventory.csv_table import read_csv
from hugeplan.measuring.postgresql_server import PROGRAMS

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
def test_a_bundle_in_another_users_folder_is_read_as_that_user(
    everybodys: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between a look and what follows, that user may put a link to root's files or folders in the place of any."""
    hers = everybodys / "hers"
    write_bundle([BundleFile("README.md", "x"), BundleFile("1-x/y", "x")], hers, "--out")
    os.chown(hers, 65534, 65534)
    write_bundle([BundleFile("README.md", "x")], hers, "--out")
    assert "is of user 65534: let root run none" in capsys.readouterr().err
    assert [file.path for file in read_bundle(hers, "--diff")] == ["1-x/y", "README.md"]
    os.chown(hers / name, 0, 0)
    (hers / name).chmod(0o600)
    with pytest.raises(InputError, match="Permission denied"):
        read_bundle(hers, "--diff")


def test_what_the_callers_shell_opened_is_read_and_no_other_pipe(tmp_path: Path) -> None:
    """A shell's <(...) leads to no file."""
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as pipe:
        print("select 1;", file=pipe, flush=True)
        pipe.close()
        assert read_bytes(f"/dev/fd/{reading}") == b"select 1;\n"
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero")):
        with pytest.raises(InputError, match=f"--script {path}: expected a regular file, or - for standard input"):
            read_bytes(str(path), "--script")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is led elsewhere by other users")
@pytest.mark.parametrize("option", ["--script", "--schema"])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("file", "the memory does not suffice"),
        ("root's link", "the memory does not suffice"),
        ("link", "Permission denied"),
        ("folder's link", "Permission denied"),
        ("sticky link", "Permission denied"),
        ("FIFO", "expected a regular file"),
        ("no end", "it has more than 268435456 bytes"),
        ("loop", "Too many levels of symbolic links"),
    ],
)
def test_what_a_servers_user_gets_is_read_as_who_could_lead_root(
    option: str, how: str, said: str, everybodys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by a security reader: with a user's link to it as its SQL, root's trial gave /etc/shadow away."""
    hers, roots, other = everybodys / "hers", everybodys / "root", everybodys / "other.sql"
    for folder in (hers, roots):
        folder.mkdir(mode=0o700)
    (roots / "secret").write_text("root's")
    given = {"folder's link": hers / "way/secret", "sticky link": everybodys / "sql"}.get(how, hers / "sql")
    link = given.parent if how == "folder's link" else given
    match how:
        case "file":
            given.write_text("select 1;")
            given.chmod(0o600)
        case "FIFO":
            os.mkfifo(given)
        case "no end":
            given.touch()
            os.truncate(given, 1 << 40)
        case "root's link":
            given = roots / "sql"
            given.symlink_to("secret")
        case "loop":
            given.symlink_to(given)
        case _:
            link.symlink_to(roots if how == "folder's link" else roots / "secret")
    for path in (hers, *hers.iterdir(), *([link] if link.parent == everybodys else [])):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    other.write_text("select 1;")
    for name in (*PROGRAMS, "psql"):
        (roots / name).touch()
    both = {"--script": str(other), "--schema": str(other)} | {option: str(given)}
    words = ["--bin-dir", str(roots), "--work-dir", str(roots / "work"), "--data-gib", "4000"]
    status = main(["trial", "postgresql", *words, *(word for pair in both.items() for word in pair)])
    assert said in capsys.readouterr().err
    assert status == (1 if "memory" in said else 2)
    assert not (roots / "work").exists()


READING = (
    *(f"import {source} FILE" for source in ("csv", "kubernetes", "ansible")),
    *("plan FILE", "plan --node this --tlbbench FILE", "verify FILE", "verify PLAN --report FILE"),
    *("artifacts FILE", "artifacts PLAN --diff FILE", "lint FILE", "lint FOLDER", "import ansible FOLDER"),
    *("benefit FILE", "wins FILE", "restore FILE", "backtest --trials http://127.0.0.1:1 --token-file FILE"),
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is led elsewhere by other users")
@pytest.mark.parametrize("words", READING)
def test_every_file_that_a_user_names_is_read_as_who_could_lead_root(
    words: str, everybodys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by a security reader: errors and scenarios had lines of what a user's link led root to."""
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    hers, secret, plan = everybodys / "hers", everybodys / "secret", everybodys / "plan"
    secret.write_text("PGDMP a-secret\n")
    secret.chmod(0o600)
    plan.write_text("node: {memory: 64GiB}\n")
    assert main(["plan", str(plan), "--json"]) == 0
    plan.write_text(capsys.readouterr().out)
    hers.mkdir(mode=0o700)
    os.chown(hers, 65534, 65534)
    given = [word.replace("FILE", f"{hers}/x").replace("FOLDER", str(hers)) for word in words.split()]
    given = [str(plan) if word == "PLAN" else word for word in given]
    (hers / "x").symlink_to(secret)
    status = main(given)
    said = capsys.readouterr()
    assert (status, "Permission denied" in said.err) == (2, True), said.err
    assert "a-secret" not in said.out + said.err
    if "FILE" in words:
        (hers / "x").unlink()
        os.mkfifo(hers / "x")
        assert main(given) == 2
        assert "a regular file" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is led elsewhere by other users")
@pytest.mark.parametrize("has_agent", [True, False])
def test_root_reads_a_users_own_file_and_where_all_may_write_one_without_a_link(
    has_agent: bool, everybodys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_agent:
        monkeypatch.setitem(sys.modules, "hugeplan_agent.ownership", None)
    for mode, name in ((0o755, "home"), (0o777, "open"), (0o1777, "sticky")):
        folder = everybodys / name
        folder.mkdir()
        (folder / "x").write_text("x")
        for path in (folder, folder / "x"):
            os.chown(path, 65534, 65534)
        folder.chmod(mode)
        assert read_bytes(f"{folder}/x") == b"x"
        (folder / "link").symlink_to("/etc/shadow")
        os.chown(folder / "link", 65534, 65534, follow_symlinks=False)
        (folder / "way").symlink_to("/etc")
        for path in ("link", "way/shadow"):
            with pytest.raises(InputError, match=r"Permission denied; |symbolic links|Not a directory"):
                read_bytes(f"{folder}/{path}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is led elsewhere by other users")
@pytest.mark.parametrize("has_agent", [True, False])
@pytest.mark.parametrize("mode", [0o755, 0o777, 0o775, 0o1777])
def test_root_reads_nothing_of_its_own_that_another_user_gave_a_name(
    mode: int, has_agent: bool, everybodys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder's owner opened it to all, which chose another way to read, and renamed root's file: it needs no link."""
    if not has_agent:
        monkeypatch.setitem(sys.modules, "hugeplan_agent.ownership", None)
    hers = everybodys / "hers"
    hers.mkdir()
    os.chown(hers, 65534, 65534)
    (hers / "x").write_text("a secret")
    (hers / "x").chmod(0o600)
    (hers / "private").mkdir(mode=0o700)
    (hers / "private" / "x").write_text("a secret")
    hers.chmod(mode)
    for name in ("x", "private/x"):
        with pytest.raises(InputError, match=r"ermission denied|can be changed by others|may change|of your own"):
            read_bytes(f"{hers}/{name}")
