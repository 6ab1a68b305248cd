"""A file that root makes anew stays its owner's, has no right of root's, and lies where root was told to write."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hugeplan_agent import ownership
from hugeplan_agent.host import Host
from hugeplan_agent.pool_reservation import Places, ReservationError, reservation

from hugeplan.artifacts.bundle import BundleFile
from hugeplan.cli import InputError, bundle_files, files, main, this_node
from hugeplan.cli.postgres_programs import find
from hugeplan.cli.secrets import ENROLMENT_TOKEN_FILE, write_secret
from hugeplan.unprivileged import require_own

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root writes others' files")
NOBODY = 65534
WRONG = b"quiet hugepages=8 hugepagesz=1G\n"
FIXED = b"quiet hugepagesz=1G hugepages=8\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of root's that everybody may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def of(path: Path, uid: int, gid: int, mode: int, data: bytes | None = WRONG) -> Path:
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    os.chown(path, uid, gid)
    path.chmod(mode)
    return path


def facts(path: Path) -> tuple[int, int, int]:
    state = path.lstat()
    return state.st_uid, state.st_gid, state.st_mode & 0o7777


def lint_fix(path: Path) -> int:
    try:
        return main(["lint", "--fix", str(path)])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


@pytest.mark.parametrize(("owner", "gid"), [(NOBODY, NOBODY), (0, 12)], ids=["in its owner's folder", "in root's"])
def test_a_fixed_file_is_its_owners_without_set_uid(folder: Path, owner: int, gid: int) -> None:
    path = of(of(folder / "his", owner, owner, 0o755, None) / "cmdline", NOBODY, gid, 0o6750)
    assert lint_fix(path) == 1
    assert (path.read_bytes(), facts(path)) == (FIXED, (NOBODY, gid, 0o750))
    assert list(path.parent.iterdir()) == [path]


def test_access_lists_and_attributes_stay_and_capabilities_do_not(folder: Path) -> None:
    path = of(folder / "cmdline", NOBODY, NOBODY, 0o640)
    rights = {"user.note": b"x", "system.posix_acl_access": bytes.fromhex(
        "02000000" "01000600ffffffff" "020004000c000000" "04000400ffffffff" "10000400ffffffff" "20000000ffffffff"
    )}  # fmt: skip
    try:
        for name, value in rights.items():
            os.setxattr(path, name, value)
    except OSError:
        pytest.skip("a file system without access lists")
    os.setxattr(path, "security.capability", bytes.fromhex("0000000200200000000000000000000000000000"))
    assert lint_fix(path) == 1
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == rights
    assert facts(path) == (NOBODY, NOBODY, 0o640)


def test_a_folders_list_for_what_is_new_lets_nobody_read_what_was_closed(folder: Path) -> None:
    path = of(folder / "cmdline", 0, 0, 0o640)
    default = "0200000001000700ffffffff020006003930000004000500ffffffff10000700ffffffff20000000ffffffff"
    try:
        os.setxattr(folder, "system.posix_acl_default", bytes.fromhex(default))
    except OSError:
        pytest.skip("a file system without access lists")
    assert lint_fix(path) == 1
    assert (path.read_bytes(), facts(path), os.listxattr(path)) == (FIXED, (0, 0, 0o640), [])


def test_a_file_that_is_so_already_is_made_anew_where_it_is_another_users(folder: Path) -> None:
    shared = of(folder / "shared", 0, 0, 0o1777, None)
    path = of(shared / "plan.zip", NOBODY, NOBODY, 0o644)
    files.write_file(path, path.read_bytes())
    assert facts(path) == (0, 0, 0o644)


def test_no_secret_is_taken_from_another_user(folder: Path) -> None:
    shared = of(folder / "shared", 0, 0, 0o1777, None)
    path = of(shared / "database-password", NOBODY, NOBODY, 0o600)
    with pytest.raises(OSError, match="user 65534 made it"):
        files.read_there(path, secret=True)
    shared.chmod(0o755)  # root gave it to whom reads it
    assert files.read_there(path, secret=True) == WRONG


@pytest.mark.parametrize("name", ["größe ü", "\x0bx", "\x0cx", "\rx", "a\x0b- fuse"])
def test_a_folder_of_a_users_mount_is_not_roots(folder: Path, name: str) -> None:
    """A mount of FUSE that never answers; one that said it were root's got a whole backup."""
    libc, place = ctypes.CDLL(None), of(folder / name, 0, 0, 0o755, None)
    try:
        served = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("no /dev/fuse")
    options = f"fd={served},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other".encode()
    try:
        if libc.mount(b"x", os.fsencode(place), b"fuse", 6, options):
            pytest.skip("no right to mount")
        with pytest.raises(PermissionError, match=f"is a mount of user {NOBODY}"):
            require_own(place / "in")
        with pytest.raises(OSError, match="could lead"):
            files.require_not_led(place / "in")
        for way in (place, folder / "x/..", place / "x/.."):
            said = this_node._changeable(Host("/"), str(way / name / "mariadbd"), {0})
            assert said == f"{place} (a mount of user {NOBODY})"
        with (
            pytest.raises(ReservationError, match="no folder for the journal"),
            reservation(Places(Path("/sys"), place)),
        ):
            pass
        require_own(folder)  # no mount but that one
    finally:
        libc.umount2(os.fsencode(place), 2)
        os.close(served)


def test_what_cannot_be_kept_is_one_sentence(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = of(of(folder / "his", NOBODY, NOBODY, 0o755, None) / "cmdline", 0, 0, 0o644)
    assert lint_fix(path) == 2
    assert "user 65534, who may rename it, cannot keep its owner 0, its group 0" in capfd.readouterr().err
    assert (path.read_bytes(), facts(path), list(path.parent.iterdir())) == (WRONG, (0, 0, 0o644), [path])


@pytest.mark.parametrize("way", ["file", "folder", "sticky"])
@pytest.mark.parametrize("with_agent", [True, False])
def test_a_users_link_leads_root_nowhere(
    folder: Path, way: str, with_agent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = of(of(folder / "roots", 0, 0, 0o755, None) / "cmdline", 0, 0, 0o644)
    his = of(folder / "his", *((0, 0, 0o1777) if way == "sticky" else (NOBODY, NOBODY, 0o755)), None)
    link = his / "link"
    link.symlink_to(roots.parent if way == "folder" else roots)
    os.lchown(link, NOBODY, NOBODY)
    if not with_agent:
        monkeypatch.setitem(sys.modules, "hugeplan_agent.ownership", None)
    path = link / "cmdline" if way == "folder" else link
    assert lint_fix(path) == 2
    with pytest.raises(OSError, match=r"Permission denied|another user"):
        files.replace_file(path, b"fixed", WRONG)
    assert (roots.read_bytes(), list(roots.parent.iterdir())) == (WRONG, [roots])


@pytest.mark.parametrize("with_agent", [True, False])
def test_roots_link_is_followed_to_roots_file(folder: Path, with_agent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = of(folder / "sysctl.conf", 0, 0, 0o644)
    (folder / "99-sysctl").symlink_to(path)
    if not with_agent:
        monkeypatch.setitem(sys.modules, "hugeplan_agent.ownership", None)
    assert lint_fix(folder / "99-sysctl") == 1
    assert path.read_bytes() == FIXED


def test_roots_link_is_followed(folder: Path) -> None:
    path = of(of(folder / "his", NOBODY, NOBODY, 0o755, None) / "cmdline", NOBODY, NOBODY, 0o600)
    (folder / "link").symlink_to(path)
    assert lint_fix(folder / "link") == 1
    assert (path.read_bytes(), facts(path)) == (FIXED, (NOBODY, NOBODY, 0o600))


def test_bytes_of_a_program_are_no_text(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = of(folder / "cmdline", 0, 0, 0o644, b"\x7fELF\0 " + WRONG)
    assert lint_fix(path) == 2
    assert "byte 4 is NUL" in capfd.readouterr().err


def test_a_file_that_changes_meanwhile_is_left(folder: Path) -> None:
    """A link of the owner's led to what only root may read, and leads to the owner's own file now."""
    path = of(folder / "cmdline", NOBODY, NOBODY, 0o644)
    with pytest.raises(OSError, match="changed meanwhile"):
        files.replace_file(path, b"secret", b"what was read")
    assert path.read_bytes() == WRONG


def test_a_server_reads_its_fixed_settings(folder: Path) -> None:
    """PostgreSQL's own file has mode 0600 and is of the server's user."""
    data = of(folder / "data", NOBODY, NOBODY, 0o700, None)
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    subprocess.run([*user, str(find("initdb")), "-D", str(data), "-A", "trust"], check=True, capture_output=True)
    path = data / "postgresql.conf"
    with path.open("a") as file:
        file.write("work_mem = 4M\n")
    before = facts(path)
    assert before == (NOBODY, NOBODY, 0o600)
    assert lint_fix(path) == 1
    assert facts(path) == before
    shown = [*user, str(find("postgres")), "-D", str(data), "-C", "work_mem"]
    assert subprocess.run(shown, check=True, capture_output=True, text=True).stdout == "4096\n"


def test_a_secret_that_root_replaces_is_its_folders_owners(folder: Path) -> None:
    """The service, a user of its own, could not read the next password."""
    path = of(of(folder / "his", NOBODY, NOBODY, 0o700, None) / "password", NOBODY, NOBODY, 0o600)
    write_secret(path, "next")
    assert (path.read_text(), facts(path)) == ("next\n", (NOBODY, NOBODY, 0o600))


def test_a_secret_is_read_and_its_mode_is_set_as_its_folders_owner(folder: Path) -> None:
    """A user's links made root copy /etc/shadow into a file of that user's, and take set-uid from a program."""
    roots = of(of(folder / "roots", 0, 0, 0o755, None) / "shadow", 0, 0, 0o600)
    program = of(folder / "roots" / "su", 0, 0, 0o4755)
    his = of(folder / "his", NOBODY, NOBODY, 0o755, None)
    (his / "database-password").symlink_to(roots)
    arguments = ["secrets", "--database-dir", str(his), "--enrolment-dir", str(his)]
    assert main(arguments) == 2
    (his / "database-password").unlink()
    (his / ENROLMENT_TOKEN_FILE).symlink_to(program)
    assert main(arguments) == 2
    assert not [path for path in his.iterdir() if WRONG.strip() in path.resolve().read_bytes() and path.is_file()
                and not path.is_symlink()]  # fmt: skip
    assert (facts(roots)[2], facts(program)[2]) == (0o600, 0o4755)
    (his / ENROLMENT_TOKEN_FILE).unlink()
    assert main(arguments) == 0
    assert facts(his / ENROLMENT_TOKEN_FILE) == (NOBODY, NOBODY, 0o640)
    assert facts(his / "passfile") == (NOBODY, NOBODY, 0o600)


def test_a_bundle_lies_where_its_user_may_write(folder: Path) -> None:
    roots = of(folder / "roots", 0, 0, 0o755, None)
    his = of(folder / "his", NOBODY, NOBODY, 0o755, None)
    (his / "1-sysctl").symlink_to(roots)
    made = [BundleFile("1-sysctl/60-hugeplan.conf", "x"), BundleFile("README.md", "y")]
    with pytest.raises(InputError, match="Permission denied"):
        bundle_files.write_bundle(made, his, "--out")
    (his / "1-sysctl").unlink()
    bundle_files.write_bundle(made, his, "--out")
    assert facts(his / "1-sysctl" / "60-hugeplan.conf") == (NOBODY, NOBODY, 0o644)
    assert list(roots.iterdir()) == []


@pytest.mark.parametrize("to", ["/dev/null", "fifo", "link"])
def test_what_is_no_file_is_not_written_to(folder: Path, to: str) -> None:
    path = Path(to) if to.startswith("/") else folder / to
    if to == "fifo":
        os.mkfifo(path)
    elif to == "link":
        path.symlink_to("/dev/null")
    with pytest.raises(InputError, match="is not a regular file"):
        files.write_file(path, b"x")
    assert Path("/dev/null").is_char_device()


def test_a_backup_lies_where_no_other_user_can_read_it(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """pg_dump opens its file by name: a user put one of that user's in its place, and had all hashes."""
    his = of(folder / "his", NOBODY, NOBODY, 0o755, None)
    assert main(["backup", str(his / "all.dump")]) == 2
    assert "user 65534 could lead" in capfd.readouterr().err
    assert list(his.iterdir()) == []


ANYBODYS_LIST = bytes.fromhex(
    "0200000001000700ffffffff02000700feff000004000500ffffffff10000700ffffffff20000500ffffffff"
)
"""user::rwx, user:65534:rwx, group::r-x, mask::rwx, other::r-x: the mode reads rwxrwxr-x."""


def test_whom_an_access_list_lets_in_may_lead_a_path(folder: Path) -> None:
    shared = of(folder / "shared", 0, 0, 0o755, None)
    try:
        os.setxattr(shared, "system.posix_acl_access", ANYBODYS_LIST)
    except OSError:
        pytest.skip("a file system without access lists")
    assert shared.stat().st_mode & 0o777 == 0o775
    with pytest.raises(OSError, match="can be changed by"):
        files.write_file(shared / "plan" / "README.md", b"x")
    with pytest.raises(OSError, match="can be changed by"):
        require_own(shared)
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    ("uid_map", "is_unnamed"), [("0 0 4294967295", False), ("0 100000 65536", False), ("0 1000 1\n1 100000 999", True)]
)
def test_the_user_nobody_is_unnamed_where_its_namespace_has_no_such_id(
    monkeypatch: pytest.MonkeyPatch, uid_map: str, is_unnamed: bool
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: uid_map)
    assert ownership._is_unnamed() is is_unnamed


def test_root_makes_no_state_folder_by_anothers_link(folder: Path) -> None:
    roots = of(folder / "roots", 0, 0, 0o755, None)
    his = of(folder / "his", NOBODY, NOBODY, 0o755, None)
    (his / "x").symlink_to(roots)
    with pytest.raises(InputError, match="can be changed by another user"):
        files.make_private(his / "x" / "state")
    assert list(roots.iterdir()) == []


def test_a_secret_without_an_end_is_none(folder: Path) -> None:
    with (folder / "database-password").open("wb") as file:
        file.truncate(1 << 40)
    assert files.read_there(folder / "database-password") is None


def test_no_command_writes_by_a_name_alone() -> None:
    """But to files of the kernel. All else goes by hugeplan.cli.files."""
    folder = Path(files.__file__).parent
    written = re.compile(r"\.(write_text|write_bytes|chmod)\(")
    found = {path.name for path in folder.rglob("*.py") if written.search(path.read_text())}
    assert found == {"pool_files.py", "files.py"}  # which closes a folder that it has judged
