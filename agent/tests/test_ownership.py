"""What root types must leave nothing that the service's user cannot use."""

from __future__ import annotations

import ctypes
import grp
import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hugeplan_agent import enrolment, machine, ownership, privileges
from hugeplan_agent.cli import AS_SERVICE_USER
from hugeplan_agent.config import Config, read_token, resolve, unknown_variables, with_system_settings
from hugeplan_agent.errors import AgentError, ConfigurationError, SpoolError
from hugeplan_agent.host import Host
from hugeplan_agent.spool import Bounds, Spool, read_small_json
from tests.factories import add, make_spool

NOBODY = pwd.getpwnam("nobody")
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root can write into folders of other users")


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder of root's that everybody may enter, as pytest's are not."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@AS_ROOT
def test_root_gives_what_it_makes_to_the_owner_of_the_folder(open_path: Path) -> None:
    folder = open_path / "spool"
    folder.mkdir()
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    spool = Spool(folder, make_spool(open_path / "other").bounds)
    spool.keep("health.json", {})
    with spool.sending():
        assert os.geteuid() == 0, "what is sent is root's affair"
    made = [folder, *folder.rglob("*")]
    assert len(made) >= 5
    assert {path.stat().st_uid for path in made} == {NOBODY.pw_uid}
    assert {path.stat().st_gid for path in made} == {NOBODY.pw_gid}


WATCHED: dict[str, set[tuple[int, int]]] = {}
"""Below which folder it is watched who opens, makes, renames, removes and gives away, and who did."""


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    for folder, did in WATCHED.items():
        if (event == "open" or event.startswith("os.")) and any(str(given).startswith(folder) for given in arguments):
            did.add((os.geteuid(), os.getegid()))


sys.addaudithook(_watch)

ACTS: dict[str, Callable[[Spool], object]] = {
    "Spool": lambda spool: Spool(spool.folder / "new", spool.bounds),
    "add": lambda spool: add(spool, 2),
    "enforce": lambda spool: Spool(spool.folder, Bounds(max_bytes=0)).enforce(),
    "delivered": lambda spool: spool.delivered(spool.entries()[0]),
    "reject": lambda spool: spool.reject(spool.entries()[0], {}),
    "sending": lambda spool: spool.sending().__enter__(),
    "remove_leftovers": Spool.remove_leftovers,
    "keep": lambda spool: spool.keep("health.json", {}),
    "machine_id": lambda spool: machine.machine_id(Host(spool.folder.parents[1] / "no"), spool.folder),
    "write_token": lambda spool: enrolment.write_token(spool.folder / "new" / "token", "hp_x"),
    "read_small_json": lambda spool: read_small_json(spool.folder / "health.json"),
}


@AS_ROOT
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("is_below", [False, True], ids=["hers", "below hers"])
def test_in_another_users_folder_root_does_nothing_as_root(open_path: Path, act: str, *, is_below: bool) -> None:
    """Between any look and what follows, that user may lead the path elsewhere: so who acts is that user."""
    hers = open_path / "hers"
    folder = hers / "spool" if is_below else hers
    spool = make_spool(folder)
    add(spool, 1)
    spool.keep("health.json", {})
    (folder / ".x.0.tmp").touch()
    for path in (hers, *hers.rglob("*")):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    did: set[tuple[int, int]] = set()
    WATCHED[str(hers)] = did
    try:
        ACTS[act](spool)
    finally:
        WATCHED.clear()
    assert did == {(NOBODY.pw_uid, NOBODY.pw_gid)}
    assert (os.geteuid(), os.getegid()) == (0, 0), "and root is root again"


@AS_ROOT
def test_who_may_lead_a_path_is_the_first_on_the_way_that_is_not_root(open_path: Path) -> None:
    hers, links = open_path / "hers", open_path / "links"
    for folder in (hers / "roots", links, open_path / "own"):
        folder.mkdir(parents=True)
    (links / "there").symlink_to("../hers/roots")
    (links / "round").symlink_to("round")
    (hers / "back").symlink_to(open_path / "own")
    for path in (hers, hers / "back"):
        os.chown(path, NOBODY.pw_uid, 0, follow_symlinks=False)
    found = {}
    for name in ("own", "own/new", "hers", "hers/roots/new", "links/there", "links/there/..", "hers/back", "links"):
        with ownership.as_owner_of(open_path / name):
            found[name] = os.geteuid(), os.getegid()
    her, root = (NOBODY.pw_uid, NOBODY.pw_gid), (0, 0)
    assert found == {name: her if "hers" in name or "there" in name else root for name in found}
    with pytest.raises(OSError, match="symbolic links"), ownership.as_owner_of(links / "round"):
        pass


@AS_ROOT
@pytest.mark.parametrize("way", ["file", "folder", "sticky"])
def test_a_users_link_gives_the_service_no_file_of_roots(open_path: Path, way: str) -> None:
    (open_path / "roots").mkdir()
    secret = open_path / "roots" / "token"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    hers = open_path / "hers"
    hers.mkdir()
    hers.chmod(0o1777 if way == "sticky" else 0o755)
    os.chown(hers, 0 if way == "sticky" else NOBODY.pw_uid, 0)
    link = hers / "link"
    link.symlink_to(secret.parent if way == "folder" else secret)
    os.chown(link, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    secret.parent.chmod(0o755)
    with pytest.raises(ConfigurationError, match="Permission denied; the user who can lead root elsewhere there"):
        read_token(link / "token" if way == "folder" else link)


@AS_ROOT
def test_tokens_of_kubernetes_systemd_and_users_are_read(open_path: Path) -> None:
    mount = open_path / "mount"  # a secret's volume: everybody may make names, the kernel's links are root's
    (mount / "..2026").mkdir(parents=True)
    mount.chmod(0o1777)
    (mount / "..data").symlink_to("..2026")
    (mount / "token").symlink_to("..data/token")
    hers, credentials = open_path / "hers", open_path / "credentials"
    for folder in (hers, credentials):
        folder.mkdir()
    for path in (mount / "..2026/token", hers / "token", credentials / "token", open_path / "token"):
        path.write_text("hp_x\n")
        path.chmod(0o440)
    for path in (hers, hers / "token", open_path / "token"):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    credentials.chmod(0o500)
    (open_path / "link").symlink_to(hers / "token")
    for path in (mount / "token", hers / "token", credentials / "token", open_path / "token", open_path / "link"):
        assert read_token(path) == "hp_x", path


@AS_ROOT
@pytest.mark.parametrize(("folder_mode", "found"), [(0o755, (65534, 12, 0o640)), (0o1777, (0, 0, 0o600))])
def test_a_new_token_is_read_by_who_read_the_old_one(
    open_path: Path, folder_mode: int, found: tuple[int, int, int]
) -> None:
    """In a folder of root's; where everybody makes names, whoever made the old file gets nothing."""
    open_path.chmod(folder_mode)
    path = open_path / "token"
    path.write_text("hp_old\n")
    os.chown(path, 65534, 12)
    path.chmod(0o4647)
    enrolment.write_token(path, "hp_new")
    state = path.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == found
    assert read_token(path) == "hp_new"


@AS_ROOT
def test_a_new_token_is_read_by_nobody_whom_its_folder_lets_read_new_files(open_path: Path) -> None:
    path = open_path / "token"
    path.write_text("hp_old\n")
    path.chmod(0o640)
    default = "0200000001000700ffffffff020004003930000004000500ffffffff10000500ffffffff20000000ffffffff"
    try:
        os.setxattr(open_path, "system.posix_acl_default", bytes.fromhex(default))
    except OSError:
        pytest.skip("SKIP: a file system without access lists")
    enrolment.write_token(path, "hp_new")
    assert (stat.S_IMODE(path.stat().st_mode), os.listxattr(path)) == (0o640, [])


@AS_ROOT
@pytest.mark.parametrize("name", ["new", "new/spool"])
def test_root_makes_what_is_missing_where_everybody_may(
    open_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Found with a user whose folder of links came and went in /tmp: the links were followed as root."""
    open_path.chmod(0o1777)
    folder, roots, make = open_path / name, open_path / "roots", Path.mkdir
    with pytest.raises(FileNotFoundError), ownership.as_owner_of(folder):
        pass
    roots.mkdir(mode=0o700)

    def late(path: Path, *arguments: Any, **words: Any) -> None:
        if not (open_path / "new").exists():
            make(folder.parent, exist_ok=True)
            make(folder)
            (folder / "token").symlink_to(roots / "token")
            for one in (open_path / "new", *(open_path / "new").rglob("*")):
                os.chown(one, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
        make(path, *arguments, **words)

    monkeypatch.setattr(Path, "mkdir", late)
    with ownership.as_owner_of(folder, make=0o700):
        assert os.geteuid() == NOBODY.pw_uid
        with pytest.raises(PermissionError):
            (folder / "token").write_text("x")
    monkeypatch.undo()
    shutil.rmtree(open_path / "new")
    with ownership.as_owner_of(folder, make=0o700):
        assert os.geteuid() == 0
    found = folder.stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o700)


@AS_ROOT
@pytest.mark.parametrize("which", ["above", "above/spool"])
@pytest.mark.parametrize(
    ("group", "mode", "is_taken"),
    [
        (NOBODY.pw_gid, 0o2775, False),
        (0, 0o777, False),
        (NOBODY.pw_gid, 0o3775, True),
        (0, 0o1777, True),
        (0, 0o775, True),
        (NOBODY.pw_gid, 0o2755, True),
    ],
)
def test_root_writes_nothing_where_a_group_or_all_may_lead_it(
    open_path: Path, *, which: str, group: int, mode: int, is_taken: bool
) -> None:
    """Whoever may rename what lies in a folder of root's may put a link there, between any look and what follows."""
    folder, place = open_path / "above/spool", open_path / which
    folder.mkdir(parents=True)
    os.chown(place, 0, group)
    place.chmod(mode)
    acts = (lambda: add(make_spool(folder), 1), lambda: enrolment.write_token(folder / "token", "hp_x"))
    for act in acts:
        if is_taken:
            act()
        else:
            words = re.escape(f"{place} (group {group}, mode {stat.filemode(place.stat().st_mode)}) can be changed")
            with pytest.raises(AgentError, match=words):
                act()
    assert bool(list(folder.iterdir())) is is_taken


OTHER = 60_001
"""A user id without a name."""


def acts_as(path: Path, make: int | None = None) -> int:
    """Whom root is for what it does at a path."""
    with ownership.as_owner_of(path, make):
        return os.geteuid()


@AS_ROOT
@pytest.mark.parametrize(
    ("group", "mode", "is_taken"),
    [
        (NOBODY.pw_gid, 0o2775, False),
        (NOBODY.pw_gid, 0o757, False),
        (0, 0o777, False),
        (0, 0o775, True),
        (NOBODY.pw_gid, 0o2755, True),
        (0, 0o700, True),
        (0, 0o1777, True),
        (NOBODY.pw_gid, 0o3775, True),
    ],
)
def test_a_users_folder_that_others_may_change_is_judged_as_roots(
    open_path: Path, group: int, mode: int, *, is_taken: bool
) -> None:
    """Through a link of one of the others root wrote into its owner's private folders, with that user's rights."""
    shared, private = open_path / "shared", open_path / "private"
    for folder in (shared, private, shared / "own"):
        folder.mkdir()
        os.chown(folder, NOBODY.pw_uid, group)
    private.chmod(0o700)
    shared.chmod(mode)
    (shared / "link").symlink_to(private)
    os.lchown(shared / "link", OTHER, OTHER)
    (shared / "moved").symlink_to(private)
    os.lchown(shared / "moved", NOBODY.pw_uid, NOBODY.pw_gid)
    if not is_taken:
        what = f"{shared} (group {group}, mode {stat.filemode(shared.stat().st_mode)}) can be changed by others than"
        for name in ("own", "link", "moved", "new"):
            with pytest.raises(PermissionError, match=re.escape(f"{what} root and user {NOBODY.pw_uid}: chmod go-w")):
                acts_as(shared / name)
        return
    assert acts_as(shared / "own") == NOBODY.pw_uid
    with pytest.raises(PermissionError, match=r"belongs to user|is a link where everybody"):
        acts_as(shared / "link")
    for name, words in (("moved", "is a link where everybody"), ("new", "No such file")):
        if mode & stat.S_ISVTX:
            with pytest.raises(OSError, match=words):
                acts_as(shared / name)
        else:
            assert acts_as(shared / name) == NOBODY.pw_uid
    assert acts_as(shared / "new/deep", make=0o700) == NOBODY.pw_uid
    assert (shared / "new").stat().st_uid == NOBODY.pw_uid
    assert (os.geteuid(), os.getegid()) == (0, 0), "and root is root again"


@AS_ROOT
@pytest.mark.parametrize("way", ["folder", "link", "sticky"])
def test_root_acts_as_one_of_two_users_nowhere(open_path: Path, way: str) -> None:
    hers, others = open_path / "hers", open_path / "others"
    hers.mkdir()
    hers.chmod(0o1777 if way == "sticky" else 0o755)
    place = others if way == "link" else hers / "others"
    place.mkdir()
    os.chown(place, OTHER, OTHER)
    os.chown(hers, NOBODY.pw_uid, NOBODY.pw_gid)
    (hers / "link").symlink_to(others)
    os.lchown(hers / "link", NOBODY.pw_uid, NOBODY.pw_gid)
    words = f"{hers} belongs to user {NOBODY.pw_uid} and {place} to user {OTHER}, and root acts as one of them"
    for act in (lambda path: acts_as(path, make=0o700), make_spool):
        with pytest.raises((PermissionError, SpoolError), match=re.escape(words)):
            act((hers / "link" if way == "link" else place) / "new")
    assert list(place.iterdir()) == []


@AS_ROOT
@pytest.mark.parametrize("also", ["", "a member", "whose first group it is"])
def test_a_group_that_a_user_has_alone_is_that_user(
    open_path: Path, monkeypatch: pytest.MonkeyPatch, *, also: str
) -> None:
    """Where users have groups of their own, new folders are often open to them (pam_umask(8))."""
    is_private, members = not also, [NOBODY.pw_name, *(["x"] if also == "a member" else [])]
    group = grp.struct_group((NOBODY.pw_name, "x", NOBODY.pw_gid, members))
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    first = pwd.struct_passwd(("x", "x", OTHER, NOBODY.pw_gid, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [NOBODY, *([first] if also == "whose first group it is" else [])])
    folder = open_path / "hers"
    folder.mkdir()
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    folder.chmod(0o775)
    with ExitStack() as after:
        if not is_private:
            after.enter_context(pytest.raises(PermissionError, match="can be changed by others"))
        assert acts_as(folder / "new", make=0o700) == NOBODY.pw_uid
    # A list may name more than that group.
    access = "0200000001000700ffffffff020007003930000004000500ffffffff10000700ffffffff20000000ffffffff"
    try:
        os.setxattr(folder, "system.posix_acl_access", bytes.fromhex(access))
    except OSError:
        pytest.skip("SKIP: a file system without access lists")
    with pytest.raises(PermissionError, match="can be changed by others"):
        acts_as(folder / "new")


@AS_ROOT
def test_in_a_user_namespace_the_hosts_users_lead_nobody_astray(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There "/" belongs to one whom nobody can become."""
    os.chown(open_path, ownership.UNNAMED, ownership.UNNAMED)
    first, _, count = map(int, Path("/proc/self/uid_map").read_text().splitlines()[0].split())
    assert ownership._is_unnamed() is not (first <= ownership.UNNAMED < first + count)
    for names_few in (False, True):
        monkeypatch.setattr(ownership, "_is_unnamed", lambda answer=names_few: answer)
        with ownership.as_owner_of(open_path / "spool"):
            assert (os.geteuid() == 0) is names_few
    (open_path / "out").symlink_to(open_path)
    os.lchown(open_path / "out", ownership.UNNAMED, ownership.UNNAMED)
    with pytest.raises(PermissionError, match="which user of the host"), ownership.as_owner_of(open_path / "out"):
        pass


@contextmanager
def users_mount(place: Path, user: int) -> Iterator[None]:
    """A mount of FUSE that a user serves, and never answers; as fusermount makes it with allow_other."""
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir()
    try:
        served = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("SKIP: no /dev/fuse")
    options = f"fd={served},rootmode=40000,user_id={user},group_id={user},allow_other".encode()
    try:
        if libc.mount(b"x", os.fsencode(place), b"fuse", 6, options):
            pytest.skip("SKIP: no right to mount")
        yield
    finally:
        libc.umount2(os.fsencode(place), 2)
        os.close(served)


@AS_ROOT
def test_who_serves_a_mount_of_fuse_may_lead_what_is_in_it(open_path: Path) -> None:
    """Whoever it says that it is: a backup went to that user as to root."""
    with users_mount(open_path / "größe ü", NOBODY.pw_uid):
        assert acts_as(open_path / "größe ü/in/it") == NOBODY.pw_uid
        hers = open_path / "hers"
        hers.mkdir()
        os.chown(hers, NOBODY.pw_uid + 1, 0)
        (hers / "link").symlink_to("../größe ü/in")
        with pytest.raises(PermissionError, match=rf"größe ü to user {NOBODY.pw_uid}"):
            acts_as(hers / "link")
    assert not set(ownership.users_mounts()) & {open_path / "größe ü"}


@AS_ROOT
@pytest.mark.parametrize(
    "name", ["\x0bx", "\x0cx", "\rx", "\x1cx", "\x85x", " x", "\t\\ \nx", "x - fuse x a,user_id=7", "\\040x"]
)
def test_a_mount_of_fuse_is_only_where_it_is(open_path: Path, name: str) -> None:
    """One at /tmp/<VT>x was read as one at /tmp, and root wrote there as the user who had mounted it."""
    shared = open_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with users_mount(shared / name, NOBODY.pw_uid):
        assert {place for place in ownership.users_mounts() if shared in (place, *place.parents)} == {shared / name}
        if "/" not in name:
            assert acts_as(shared / name / "in") == NOBODY.pw_uid


@AS_ROOT
@pytest.mark.parametrize("name", ["", "pending", "rejected"])
@pytest.mark.parametrize(
    ("owner", "is_link", "mode", "is_taken"),
    [
        (NOBODY.pw_uid, True, 0o755, False),
        (NOBODY.pw_uid, True, 0o1777, False),
        (NOBODY.pw_uid, False, 0o1777, False),
        (NOBODY.pw_uid, False, 0o755, True),
        (0, True, 0o755, True),
        (0, False, 0o1777, True),
    ],
)
def test_root_writes_where_no_other_user_leads_it(
    open_path: Path, *, name: str, owner: int, is_link: bool, mode: int, is_taken: bool
) -> None:
    """In place of the spool folder, or of one in it, before the agent starts or while it runs."""
    folder, elsewhere = open_path / "spool", open_path / "elsewhere"
    spool = make_spool(folder)
    for one in (elsewhere, elsewhere / "pending", elsewhere / "rejected"):
        one.mkdir()
    place = folder / name
    shutil.rmtree(place)
    place.parent.chmod(mode)
    if is_link:
        place.symlink_to(elsewhere / name)
    else:
        shutil.copytree(elsewhere / name, place)
    for path in (place, *(() if is_link else place.rglob("*"))):
        os.chown(path, owner, owner, follow_symlinks=False)
    for act in (lambda: add(make_spool(folder), 1), lambda: add(spool, 2), spool.entries):
        if is_taken:
            act()
        else:
            with pytest.raises(SpoolError, match=rf"user {NOBODY.pw_uid} put .*{name} there"):
                act()
    assert any(path.is_file() for path in elsewhere.rglob("*")) is (is_taken and is_link and name != "rejected")


def test_the_page_names_the_commands_that_step_down() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/agent.md").read_text(encoding="utf-8").split())
    said = page.partition("When root types ")[2].partition(", they step down to it")[0]
    assert {*re.findall(r"`(\w+)`", said), "enroll"} == AS_SERVICE_USER, "enroll is enrol"


@AS_ROOT
def test_root_becomes_the_services_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    enrolment = tmp_path / "enrolment"
    enrolment.write_text("hp_enrolment\n")
    enrolment.chmod(0o600)
    for module in (ownership, privileges):
        monkeypatch.setattr(module, "SYSTEM_SPOOL_DIR", str(folder))
        monkeypatch.setattr(module, "service_user", lambda: NOBODY)
    words = {"spool_dir": str(folder), "enrolment_token_file": str(enrolment)}
    child = os.fork()  # who steps down cannot come back up
    if child == 0:
        config = privileges.step_down(resolve(words, {}))
        os._exit(0 if os.geteuid() == NOBODY.pw_uid and config.enrolment_token == "hp_enrolment" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.stat().st_uid == NOBODY.pw_uid


@AS_ROOT
@pytest.mark.parametrize("capabilities", [frozenset(), frozenset({2, 19})])
def test_roots_doctor_has_the_daemons_user_and_capabilities_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: frozenset[int]
) -> None:
    """Also the programs that it starts; and it does not read for the daemon what the daemon cannot read itself."""
    enrolment = tmp_path / "enrolment"
    enrolment.write_text("hp_enrolment\n")
    enrolment.chmod(0o600)
    for module in (ownership, privileges):
        monkeypatch.setattr(module, "SYSTEM_SPOOL_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(privileges, "rights_of_the_unit", lambda: privileges.Rights(NOBODY, capabilities))
    words = {"spool_dir": str(tmp_path / "state"), "enrolment_token_file": str(enrolment)}
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(None).syscall(privileges.KEYCTL, privileges.KEYCTL_JOIN_SESSION_KEYRING, b"roots")
            config = privileges.step_down(resolve(words, {}), as_daemon=True)
            command = ["sh", "-c", "cat /proc/self/status; ! grep roots /proc/keys"]
            started = subprocess.run(command, capture_output=True, check=True, text=True).stdout
            os.write(into, json.dumps([config.enrolment_token, started]).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as told:
        answer = told.read()
    os.waitpid(child, 0)
    token, status = json.loads(answer)
    assert token is None
    found = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert set(found["Uid"].split()) == {str(NOBODY.pw_uid)}
    mask = sum(1 << number for number in capabilities)
    assert {int(found[name], 16) for name in ("CapEff", "CapPrm", "CapAmb")} == {mask}


def test_what_a_unit_gives_is_its_users_ambient_capabilities_within_the_bound() -> None:
    unit = {
        "AmbientCapabilities": "cap_dac_read_search cap_sys_ptrace cap_perfmon",
        "CapabilityBoundingSet": "cap_dac_read_search cap_sys_ptrace cap_chown",
        "PrivateUsers": "no",
    }
    root = pwd.getpwuid(0)
    assert privileges.rights_of(unit, NOBODY).capabilities == {2, 19}
    assert privileges.rights_of(unit, NOBODY).words == "nobody with CAP_DAC_READ_SEARCH CAP_SYS_PTRACE"
    assert privileges.rights_of(unit, root).capabilities == {0, 2, 19}
    assert privileges.rights_of({**unit, "PrivateUsers": "yes"}, root).capabilities == set()
    assert privileges.rights_of({}, NOBODY).words == "nobody without capabilities"


def test_a_misspelt_name_is_said_with_the_one_that_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "agent.env"
    file.write_text(
        "# HUGEPLAN_AGENT_COMMENT=1\nHUGEPLAN_AGENT_SEVRER=https://a\nHUGEPLAN_SERVER=https://a\nHUGEPLAN_XYZ=1\n"
        "export HUGEPLAN_AGENT_MEASURE=quick\nhugeplan_agent_interval=5m\n HUGEPLAN_AGENT_NODE_NAME = a\nPATH=/x\n"
    )
    said = list(unknown_variables({"HUGEPLAN_AGENT_INTERVALL": "1m", "HUGPLAN_AGENT_SERVER": "x"}, file))
    nearest = {line.partition("'")[2].partition("'")[0]: line.partition("reads it. ")[2] for line in said}
    assert nearest == {
        "HUGEPLAN_AGENT_INTERVALL": "Is HUGEPLAN_AGENT_INTERVAL meant?",
        "HUGEPLAN_AGENT_SEVRER": "Is HUGEPLAN_AGENT_SERVER meant?",
        "HUGEPLAN_SERVER": "Is HUGEPLAN_AGENT_SERVER meant?",
        "HUGEPLAN_XYZ": "hugeplan-agent run --help names all.",
        "HUGPLAN_AGENT_SERVER": "Is HUGEPLAN_AGENT_SERVER meant?",
        "export HUGEPLAN_AGENT_MEASURE": "Is HUGEPLAN_AGENT_MEASURE meant?",
        "hugeplan_agent_interval": "Is HUGEPLAN_AGENT_INTERVAL meant?",
    }
    assert with_system_settings({}, file)["HUGEPLAN_AGENT_NODE_NAME"] == "a", "as systemd reads it"


def test_what_a_container_platform_puts_there_is_no_misspelt_name(tmp_path: Path) -> None:
    """Services called hugeplan and hugeplan-agent; and the server's own settings beside an agent's."""
    told = {"HUGEPLAN_PUBLIC_URL": "https://x", "HUGEPLAN_TOKEN": "x", "HUGEPLAN_AGENT_ENROLMENT_TOKEN": "x"}
    for service in ("HUGEPLAN", "HUGEPLAN_AGENT"):
        told |= {f"{service}_SERVICE_HOST": "10.0.0.1", f"{service}_SERVICE_PORT_HTTP": "80"}
        told |= {f"{service}_PORT": "tcp://10.0.0.1:80", f"{service}_PORT_80_TCP_ADDR": "10.0.0.1"}
    assert list(unknown_variables(told, tmp_path / "absent")) == []


@AS_ROOT
def test_a_token_elsewhere_is_roots_affair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "SYSTEM_SPOOL_DIR", str(tmp_path))
    monkeypatch.setattr(privileges, "service_user", lambda: NOBODY)
    config: Config = resolve({"spool_dir": str(tmp_path), "token_file": "/etc/elsewhere"}, {})
    assert privileges.step_down(config) == replace(config)
    assert os.geteuid() == 0


def test_commands_see_the_settings_of_the_units(tmp_path: Path) -> None:
    file = tmp_path / "agent.env"
    file.write_text(
        '# a comment\nHUGEPLAN_AGENT_SERVER=https://a.example\nHUGEPLAN_AGENT_INTERVAL="5m"\nPATH=/nowhere\n'
    )
    found = with_system_settings({"HUGEPLAN_AGENT_INTERVAL": "1m"}, file)
    assert found == {"HUGEPLAN_AGENT_SERVER": "https://a.example", "HUGEPLAN_AGENT_INTERVAL": "1m"}
    assert with_system_settings({}, tmp_path / "absent") == {}
