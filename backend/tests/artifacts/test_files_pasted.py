"""Commands of files are pasted one after another into one shell of root's: none may leave anything of its own there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from unicodedata import category

import pytest
from artifacts.samples import EVERYTHING, instance, request_of

from hugeplan.artifacts import KINDS, Artifact, Platform, installer, render
from hugeplan.artifacts.base import INSTALLER, mark, with_content
from hugeplan.artifacts.bundle import bundle
from hugeplan.cli.plan_answer import _prompted
from hugeplan.planner.model import NodeSample, ObservedDatabase, PlanRequest, ServerPlace
from hugeplan.planner.plan import plan

SEEN = """seen() { declare -p; declare -f; alias; pwd; umask; set +o; shopt; trap; ulimit -a; }
command_not_found_handle() { return $result; }
"""
#: What any command changes, and what the shell counts by itself.
OF_THE_SHELL = re.compile(
    r"declare -\S+ (_|BASH_\w+|COMP_WORDBREAKS|EPOCH\w+|FUNCNAME|LINENO|PIPESTATUS|RANDOM|SECONDS|SRANDOM)[=\s]"
)
SERVER = ObservedDatabase(
    key="here", engine="postgresql", version="17", port=5433, settings={"shared_buffers": "1GB"},
    sources={"huge_pages": "postgresql.auto.conf"},
    place=ServerPlace(data_directory="/srv/pg data", user="eve", uid=1001, socket_directory="/run/pg"),
)  # fmt: skip


def observed() -> PlanRequest:
    request = request_of("postgresql", reserve_at="runtime")
    sample = NodeSample(databases=(SERVER,))
    return replace(request, sample=sample, databases=(instance("postgresql", runs_as=SERVER.key),))


def every_file() -> list[Artifact]:
    found = [a for request in (observed(), *EVERYTHING) for a in render(plan(request), request)]
    boot, mysql = request_of("postgresql"), request_of("mysql")
    return [*found, *render(plan(boot), boot, Platform.SYSTEMD_BOOT), *render(plan(mysql), mysql)]


def test_a_folder_of_any_name_is_one_path_to_a_reader_and_to_verify() -> None:
    place = ServerPlace(data_directory='/srv/a or b/`[x](y)`|${z:1}"', user="eve", uid=1001)
    request = replace(observed(), sample=NodeSample(databases=(replace(SERVER, place=place),)))
    found = {file.path: file.text for file in bundle("n", "h", render(plan(request), request))}
    assert "[ ! -e '/srv/a or b/`[x](y)`|${z:1}\"/conf.d/postgresql-hugepages.conf' ]; then" in found["verify.sh"]
    assert r"| /srv/a or b/\`\[x\](y)\`\|${z:1}" in found["README.md"]


FILES = every_file()


def moved(text: str, folder: Path) -> str:
    """Commands whose files lie below a folder of the test's own."""
    (folder / "own").mkdir(exist_ok=True)
    return re.sub(r"(?<![\w$\"}./])/(?=(etc|sys|proc|usr|var|boot|srv|run)\b)", f"{folder}/own/", text)


def left_by(text: str, folder: Path, result: int) -> list[str]:
    """Lines of what a shell holds that are there before or after a paste alone. No program is found, so none runs."""
    own = moved(text, folder)
    pasted = f"result={result}\n{SEEN}seen > {folder}/before\n{own}\nseen > {folder}/after\n"
    subprocess.run(
        ["/bin/bash", "--norc", "--noprofile"], input=pasted, text=True, cwd=folder, env={"PATH": "/nowhere"},
        capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    before, after = (
        [line for line in (folder / name).read_text().splitlines() if not OF_THE_SHELL.match(line)]
        for name in ("before", "after")
    )
    return sorted(set(before) ^ set(after))


def test_every_kind_is_pasted() -> None:
    kinds = {next(kind for kind in KINDS if a.kind == kind or a.kind.startswith(f"{kind}-")) for a in FILES}
    assert kinds == set(KINDS)


@pytest.mark.parametrize("command", ["install", "verify", "rollback"])
@pytest.mark.parametrize("result", [0, 1])
def test_a_paste_leaves_nothing_in_the_shell(tmp_path: Path, command: str, result: int) -> None:
    left = {}
    for text, kind in {getattr(a, command): a.kind for a in FILES}.items():
        if found := left_by(text, tmp_path, result):
            left[kind] = found
    assert left == {}


@pytest.mark.parametrize(
    "paste", ["export A=b", "a=b", "cd /", "umask 077", "set -u", "f() { :; }", "shopt -s dotglob"]
)
def test_what_a_paste_leaves_is_seen(tmp_path: Path, paste: str) -> None:
    assert left_by(paste, tmp_path, 0)
    assert left_by(f"({paste}\n)", tmp_path, 0) == []


@pytest.mark.parametrize("kind", ["systemd_boot", "kernel_command_line"])
def test_what_runs_apart_is_shown_as_one_command(kind: str) -> None:
    install = next(a.install for a in FILES if a.kind == kind and a.recommended)
    assert [line[0] for line in _prompted(f"{install}\nreboot")] == ["$", *">" * install.count("\n"), "$"]


#: Programs that a paste finds in :func:`test_a_way_back_ends_where_the_install_began`; no other runs.
_PROGRAMS = (
    "bash cat chmod cmp cp env fold grep id ln ls mkdir mv readlink rm sed setsid sh sha256sum stat sync tail test tr"
    " uname"
)
PROGRAMS = _PROGRAMS.split()
DO_NOTHING = "pg_ctl psql sysctl systemctl systemd-tmpfiles tuned-adm update-grub".split()  # noqa: SIM905
ON_THE_NODE = {a.kind: a for a in FILES if " put " in a.install and (a.path or "").startswith("/")}


def place_of(folder: Path, artifact: Artifact) -> Path:
    """Where the file goes: of several folders the one that the server's main file includes."""
    path = str(artifact.path).split(" or ")[-1]
    if path != artifact.path:
        (folder / "own/etc").mkdir(parents=True, exist_ok=True)
        (folder / "own/etc/my.cnf").write_text(f"!includedir {(folder / f'own{path}').parent}/\n")
    if artifact.kind.startswith("redis_conf"):
        (folder / "own/etc/redis").mkdir(parents=True, exist_ok=True)
        (folder / "own/etc/redis/redis.conf").touch()
    return folder / f"own{path}"


def paste(folder: Path, artifact: Artifact, commands: str) -> str | None:
    """What lies where the file goes, after its commands ran with these programs alone."""
    said_by_paste(folder, artifact, commands)
    place = place_of(folder, artifact)
    return place.read_text() if place.exists() else None


def said_by_paste(folder: Path, artifact: Artifact, commands: str) -> str:
    """What the commands say, of both outputs, at last their exit status."""
    bin_ = folder / "bin"
    place_of(folder, artifact)
    if not bin_.exists():
        bin_.mkdir()
        for name in PROGRAMS:
            (bin_ / name).symlink_to(shutil.which(name) or "")
        (bin_ / "runuser").write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
        (bin_ / "grub-mkconfig").write_text("for x in ${sysconfdir}/default/grub.d/*.cfg ; do")
        for name in (*DO_NOTHING, "runuser", "grub-mkconfig"):
            if name in DO_NOTHING:
                (bin_ / name).write_text("#!/bin/sh\n")
            (bin_ / name).chmod(0o755)
    (folder / artifact.filename).write_text(artifact.content)
    program = folder / f"own{INSTALLER}"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(moved(installer.text(), folder))
    program.chmod(0o755)
    if artifact.kind == "systemd_unit":  # goes after the script that it runs
        (script := folder / "own/usr/local/sbin/hugeplan-reserve").parent.mkdir(parents=True, exist_ok=True)
        script.touch(mode=0o755)
    for path in re.findall(r"echo \d+ > (/sys[^\s;]+)", commands):
        (folder / f"own{path}").parent.mkdir(parents=True, exist_ok=True)
    (folder / "own/sys/kernel/mm/transparent_hugepage").mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [bin_ / "bash", "--norc", "--noprofile"], input=moved(commands, folder), text=True, cwd=folder,
        env={"PATH": str(bin_), "JVM_USER": "x"}, capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    return f"{done.stdout}{done.stderr}{done.returncode}"


def stub(folder: Path, name: str, text: str) -> None:
    """Puts a script in a program's place; ``real`` in it is that program."""
    program = folder / "bin" / name
    program.unlink(missing_ok=True)
    program.write_text(f"#!/bin/sh\n{text.replace('real', shutil.which(name) or name)}\n")
    program.chmod(0o755)


def three_plans(kind: str) -> list[Artifact]:
    return [with_content(ON_THE_NODE[kind], f"#!/bin/sh\n# {n}\n") for n in "123"]


def of_hugeplan(folder: Path) -> list[str]:
    """What is kept beside a file, for a way back."""
    names = [path.name for path in (folder / "own").rglob("*")]
    return [name for name in names if re.search(r"\.(before|going|auto|part)\b", name)]


def in_turn(folder: Path, plans: list[Artifact], installs: str, rollbacks: str) -> None:
    """The end is what was there; a way back that is not of the file in force changes nothing else."""
    place = place_of(folder, plans[0])
    before = place.read_text() if place.exists() else None
    for n in installs:
        assert paste(folder, plans[int(n)], plans[int(n)].install) == plans[int(n)].content
    there = set(installs)
    for n in rollbacks:
        was = place.read_text() if place.exists() else None
        left = paste(folder, plans[int(n)], plans[int(n)].rollback)
        there.discard(n)
        own = plans[int(n)].content
        assert left == was if was != own else left in {before, *(plans[int(m)].content for m in there)} - {own}
    assert (place.read_text() if place.exists() else None) == before
    if "10" not in installs and "20" not in installs:  # a plan under which another was installed again keeps its own
        assert of_hugeplan(folder) == [], (installs, rollbacks)


@pytest.mark.parametrize("kind", ON_THE_NODE)
@pytest.mark.parametrize(("installs", "rollbacks"), [("0011202", "2210"), ("012", "0120"), ("0102", "1201")])
def test_ways_back_end_where_the_installs_began(tmp_path: Path, kind: str, installs: str, rollbacks: str) -> None:
    """Found: the way back of a second plan removed the file of both, and the first database did not start again."""
    plans = three_plans(kind)
    place = place_of(tmp_path, plans[0])
    place.parent.mkdir(parents=True, exist_ok=True)
    if installs != "012":
        place.write_text("# of another tool\n")
    in_turn(tmp_path, plans, installs, rollbacks)


@pytest.mark.parametrize("was", ["# of another tool\n", None])
def test_in_any_order(tmp_path: Path, was: str | None) -> None:
    plans = three_plans("limits_d")
    place = place_of(tmp_path, plans[0])
    place.parent.mkdir(parents=True, exist_ok=True)
    if was is not None:
        place.write_text(was)
    for installs in ("01", "012", "010", "0102", "0121", "01210", "0110"):
        for rollbacks in permutations(sorted(set(installs))):
            in_turn(tmp_path, plans, installs, "".join(rollbacks))
            for name in of_hugeplan(tmp_path):
                (place.parent / name).unlink()


def test_an_edited_file_comes_back_as_it_was_first(tmp_path: Path) -> None:
    plans = three_plans("limits_d")
    place = place_of(tmp_path, plans[0])
    place.parent.mkdir(parents=True)
    place.write_text("# of another tool\n")
    paste(tmp_path, plans[0], plans[0].install)
    place.write_text("# edited\n")
    assert paste(tmp_path, plans[0], plans[0].rollback) == "# edited\n"
    paste(tmp_path, plans[0], plans[0].install)
    assert paste(tmp_path, plans[0], plans[0].rollback) == "# of another tool\n"
    assert of_hugeplan(tmp_path) == []


@pytest.mark.parametrize("cut", range(1, 16))
def test_a_power_cut_loses_no_file(tmp_path: Path, cut: int) -> None:
    """The shell ends at one of its programs, which has done half of its work; then the commands run again."""
    plans = three_plans("sysctl")
    place, bin_, calls = place_of(tmp_path, plans[0]), tmp_path / "bin", tmp_path / "calls"
    place.parent.mkdir(parents=True)
    place.write_text("# of another tool\n")
    paste(tmp_path, plans[0], "")
    for name in ("cat", "cp", "ln", "mv", "rm", "sync"):
        half = "head -c 5" if name == "cat" else ":"
        real = shutil.which(name)
        (bin_ / name).unlink()
        (bin_ / name).write_text(
            f'#!/bin/sh\necho >> {calls}\ntest "$(wc -l < {calls})" -ne {cut} || {{ {half}; kill -9 $PPID; }}\n'
            f'exec {real} "$@"\n'
        )
        (bin_ / name).chmod(0o755)
    for name in ("head", "wc"):
        (bin_ / name).symlink_to(shutil.which(name) or "")
    for one, commands, wanted in (
        (plans[0], "install", {plans[0].content}), (plans[1], "install", {plans[1].content}),
        (plans[1], "rollback", {plans[0].content}), (plans[0], "rollback", {"# of another tool\n"}),
    ):  # fmt: skip
        was, own = place.read_text(), getattr(one, commands)
        calls.write_text("")
        assert {paste(tmp_path, one, own)} <= {was, None, *wanted}
        calls.write_text("\n" * 99)
        assert {paste(tmp_path, one, own)} == wanted
    assert of_hugeplan(tmp_path) == []


def test_no_two_plans_have_a_file_of_the_same_text() -> None:
    """Found: the way back of a plan disabled the unit of the one before, which had the same text."""
    for platform, reserve_at in ((None, "runtime"), (None, "boot"), (Platform.SYSTEMD_BOOT, "boot")):
        of_plan = []
        for gib in ("4GB", "8GB", "4GB"):
            server = replace(instance("postgresql"), settings={"shared_buffers": gib})
            request = request_of("postgresql", reserve_at=reserve_at)
            node = replace(request.node, thp_enabled="always")
            request = replace(request, node=node, databases=(server,))
            of_plan.append({a.kind: a for a in render(plan(request), request, platform)})
        first, second, again = of_plan
        assert first == again
        known = [kind for kind, a in first.items() if f" {mark(a.content)} " in a.install or kind == "ansible_playbook"]
        assert len(known) > 6
        assert [kind for kind in known if first[kind].content == second[kind].content] == []


def test_where_grub_reads_no_fragment_nothing_is_changed(tmp_path: Path) -> None:
    """As of GRUB's own program, which Red Hat's and SUSE's distributions have."""
    grub = ON_THE_NODE["kernel_command_line"]
    earlier = tmp_path / "own/etc/sysctl.d/60-hugeplan.conf"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("vm.nr_hugepages = 9\n")
    assert paste(tmp_path, grub, "") is None
    (tmp_path / "bin/grub-mkconfig").write_text("sysconfdir=/etc; . /etc/default/grub; grub.d")
    assert paste(tmp_path, grub, grub.install) is None
    assert earlier.read_text() == "vm.nr_hugepages = 9\n"


@pytest.mark.parametrize("kind", ["systemd_unit", "sysctl", "tmpfiles"])
def test_what_is_masked_stays_masked(tmp_path: Path, kind: str) -> None:
    """Found: the new file had the mode of /dev/null, and any user could write root's unit."""
    place = place_of(tmp_path, ON_THE_NODE[kind])
    place.parent.mkdir(parents=True)
    place.symlink_to("/dev/null")
    paste(tmp_path, ON_THE_NODE[kind], ON_THE_NODE[kind].install)
    assert place.readlink() == Path("/dev/null")
    assert [path.name for path in place.parent.iterdir()] == [place.name]


@pytest.mark.parametrize(
    ("kind", "fails"), [("kernel_command_line", "update-grub"), ("systemd_boot", "kernel-install")]
)
def test_what_reserves_pages_stays_until_its_follower_is_in_place(tmp_path: Path, kind: str, fails: str) -> None:
    """Found: a full /boot failed update-grub, the unit of the pages was gone already, and the node rebooted."""
    platform = Platform.LINUX if kind == "kernel_command_line" else Platform.SYSTEMD_BOOT
    request = request_of("postgresql")
    (grub,) = (a for a in render(plan(request), request, platform) if a.kind == kind)
    unit = tmp_path / "own/etc/systemd/system/hugeplan-hugepages.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("hugepages\n")
    for name in ("proc/cmdline", f"boot/vmlinuz-{os.uname().release}"):
        (tmp_path / "own" / name).parent.mkdir(parents=True)
        (tmp_path / "own" / name).write_text("quiet\n")
    install = grub.install.replace('"/boot/', f'"{tmp_path}/own/boot/')
    assert paste(tmp_path, grub, "") is None
    for name in ("awk", "head"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    (tmp_path / "bin" / fails).write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / fails).chmod(0o755)
    (tmp_path / "bin/reboot").write_text('#!/bin/sh\n: > "$0ed"\n')
    (tmp_path / "bin/reboot").chmod(0o755)
    paste(tmp_path, grub, install)
    assert (unit.exists(), (tmp_path / "bin/rebooted").exists()) == (True, False)
    (tmp_path / "bin" / fails).write_text("#!/bin/sh\n")
    paste(tmp_path, grub, install)
    assert (unit.exists(), (tmp_path / "bin/rebooted").exists()) == (False, True)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (request_of("postgresql"), "kernel_command_line"),
        (request_of("postgresql", reserve_at="runtime"), "systemd_unit"),
        (request_of("redis"), "numa_script"),
    ],
)
def test_one_file_has_the_counts_of_the_next_boot(tmp_path: Path, request_: PlanRequest, kind: str) -> None:
    """Found: the unit of a plan without pages wrote 0 after the command line of a later one."""
    files = {a.kind: a for a in render(plan(request_), request_) if a.recommended}
    assert ("systemd_unit" in files) is (kind == "systemd_unit")
    counts, pages = "sysctl.d/60-hugeplan.conf", "hugepages"
    before = {
        "default/grub.d/60-hugeplan.cfg": pages, "tmpfiles.d/60-hugeplan.conf": pages,
        "systemd/system/hugeplan-hugepages.service": pages, counts: "vm.nr_hugepages = 9\nkernel.shmmni = 7\n",
    }  # fmt: skip
    etc = tmp_path / "own/etc"
    for name, text in before.items():
        (etc / name).parent.mkdir(parents=True)
        (etc / name).write_text(text)

    def there() -> dict[str, str]:
        return {name: (etc / name).read_text() for name in before if (etc / name).exists()}

    own = with_content(files[kind], "#!/bin/sh\n# hugepages\n")
    for _ in "12":
        paste(tmp_path, own, own.install)
        assert there() == {counts: "kernel.shmmni = 7\n"} | {
            name: own.content for name in before if f"/etc/{name}" == own.path
        }
    for _ in "12":
        paste(tmp_path, own, own.rollback)
        assert there() == before


@pytest.mark.parametrize("fails", ["cp", "cat", "mv", "sync"])
def test_a_copy_that_failed_loses_nothing(tmp_path: Path, fails: str) -> None:
    """Found on a full disk: the only copy of what an operator had there was deleted, and PostgreSQL's own lines."""
    plans = three_plans("postgresql_conf")
    place = place_of(tmp_path, plans[0])
    place.parent.mkdir(parents=True)
    place.write_text("# of another tool\n")
    for each in plans[:2]:
        paste(tmp_path, each, each.install)
    auto = place.with_name(f"{place.name}.auto-{mark(plans[0].content)}")
    auto.write_text("shared_buffers = '1GB'\n")
    kept, program = {path: path.read_bytes() for path in place.parent.iterdir()}, tmp_path / "bin" / fails
    real = program.readlink()
    program.unlink()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    paste(tmp_path, plans[0], plans[0].rollback)
    assert {path: path.read_bytes() for path in kept if path.exists()} == kept
    program.unlink()
    program.symlink_to(real)
    paste(tmp_path, plans[0], plans[0].rollback)
    handed_on = place.with_name(f"{place.name}.auto-{mark(plans[1].content)}").read_text()
    assert set(handed_on.splitlines()) == {"shared_buffers = '1GB'"}, "perhaps twice"
    assert paste(tmp_path, plans[1], plans[1].rollback) == "# of another tool\n"


def test_an_empty_program_is_seen(tmp_path: Path) -> None:
    """A power cut left one: it does nothing, and says that all is well."""
    program = installer.render()
    (tmp_path / program.filename).write_text(program.content)
    install, verify = (text.replace("/usr/local", str(tmp_path)) for text in (program.install, program.verify))

    def works(commands: str) -> bool:
        return subprocess.run(["/bin/sh", "-c", commands], cwd=tmp_path, check=False).returncode == 0

    assert works(install)
    assert works(verify)
    (tmp_path / "sbin/hugeplan-file").write_text("")
    assert not works(verify)


def test_nothing_goes_on_after_a_file_that_was_not_installed(tmp_path: Path) -> None:
    """Found without the program: TuneD's step rebooted the node, and the script of an earlier plan ran."""
    for artifact in FILES:
        (tmp_path / artifact.filename).write_text(artifact.content)
        commands = artifact.install.replace(INSTALLER, "false")
        if "false put" not in commands or artifact.install.startswith("#"):
            continue
        own = subprocess.run(
            ["/bin/bash", "-c", f"command_not_found_handle() {{ echo ran: $1; }}\n{moved(commands, tmp_path)}"],
            cwd=tmp_path, env={"PATH": "/nowhere", "PGDATA": "x"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        ran = {line.split()[1] for line in own.stdout.splitlines() if line.startswith("ran:")}
        # systemd-boot: where there is no file, the running line becomes one.
        assert ran <= {"grep", "stat", "tr", "env", "false", "mkdir"}, (artifact.kind, own.stdout)
        assert own.returncode != 0, artifact.kind


def sysctl_over(folder: Path, was: str | None) -> tuple[list[Artifact], Path]:
    """Three plans of one file, and where it goes, which has the text ``was``."""
    plans = three_plans("sysctl")
    place = place_of(folder, plans[0])
    place.parent.mkdir(parents=True)
    if was is not None:
        place.write_text(was)
    paste(folder, plans[0], "")
    return plans, place


OTHERS = "others than root"


@pytest.mark.parametrize("command", ["install", "rollback"])
@pytest.mark.parametrize("what", ["folder", "above", "sticky", "link"])
def test_where_others_may_write_nothing_is_written(tmp_path: Path, command: str, what: str) -> None:
    """Found: who may write in the folder put a link there meanwhile, through which root overwrote any file."""
    (plan_, *_), place = sysctl_over(tmp_path, "# of another tool\n")
    folder = place.parent
    if command == "rollback":
        paste(tmp_path, plan_, plan_.install)
    if what == "link":  # which another may lead elsewhere
        (tmp_path / "open").mkdir()
        folder.rename(folder.with_name("real"))
        (tmp_path / "open/link").symlink_to(folder.with_name("real"))
        folder.symlink_to(tmp_path / "open/link")
    of_others = {"above": folder.parent, "link": tmp_path / "open"}.get(what, folder)
    of_others.chmod(0o1777 if what in ("sticky", "link") else 0o777)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    said = said_by_paste(tmp_path, plan_, getattr(plan_, command))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert OTHERS in said
    assert re.search(rf"{of_others} \(\w+:\w+, d\S+\)", said)
    assert said.endswith("1")
    of_others.chmod(0o755)
    paste(tmp_path, plan_, getattr(plan_, command))
    assert (place.read_text() == plan_.content) is (command == "install")


@pytest.mark.parametrize(
    ("members", "firsts", "passes"),
    [
        ("", "", True), ("root", "root:x:0:50:", True), ("root,nobody", "", False), ("", "nobody:x:65534:50:", False),
        ("is-no-user", "", False), (None, "", False),
    ],
)  # fmt: skip
def test_a_group_of_nobody_else_may_write(tmp_path: Path, members: str | None, firsts: str, passes: bool) -> None:
    """As the empty group staff of an upgraded Debian's /usr/local."""
    if os.geteuid() != 0:
        pytest.skip("SKIP: the group of a folder is changed")
    (plan_, *_), place = sysctl_over(tmp_path, None)
    os.chown(place.parent, -1, 50)
    place.parent.chmod(0o2775)
    group = "exit 2" if members is None else f"echo staff:x:50:{members}"
    stub(tmp_path, "getent", f"case $1 in group) {group} ;; passwd) echo other:x:65534:5:; echo {firsts} ;; esac")
    said = said_by_paste(tmp_path, plan_, plan_.install)
    assert (place.exists(), OTHERS in said) == (passes, not passes), said


@pytest.mark.parametrize("kind", ["sysctl", "redis_conf"])
@pytest.mark.parametrize("was", ["# of another tool\n", None])
def test_no_link_is_followed_that_is_put_there_meanwhile(tmp_path: Path, kind: str, was: str | None) -> None:
    plan_ = ON_THE_NODE[kind]
    place, victim = place_of(tmp_path, plan_), tmp_path / "victim"
    place.parent.mkdir(parents=True, exist_ok=True)
    if was is not None:
        place.write_text(was)
    victim.write_text("root's\n")
    paste(tmp_path, plan_, "")
    for command in ("rm", "cp"):
        stub(tmp_path, command, f'real "$@"; s=$?; /bin/ln -s {victim} {place}.part 2> /dev/null; exit $s')
    for commands in (plan_.install, plan_.rollback):
        paste(tmp_path, plan_, commands)
        assert victim.read_text() == "root's\n"


@pytest.mark.parametrize("kind", ["redis_conf", "prometheus_rules"])
@pytest.mark.parametrize(
    ("layout", "user"),
    [
        ((0o755, 0, 0), "root"), ((0o755, 65534, 0), "nobody"), ((0o2770, 65534, 65534), "nobody"),
        ((0o770, 0, "daemon"), "daemon"), ((0o775, 0, 54321), "root"), ((0o750, 0, "daemon"), "root"),
    ],
)  # fmt: skip
def test_the_user_of_a_folder_writes_in_it(
    tmp_path: Path, kind: str, layout: tuple[int, int, int | str], user: str
) -> None:
    """Found: of a folder of root's that the group of a service may write, root itself took files as they came."""
    if os.geteuid() != 0:
        pytest.skip("SKIP: the owner of a folder is changed")
    plan_, (mode, owner, group) = ON_THE_NODE[kind], layout
    place = place_of(tmp_path, plan_)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.chown(place.parent, owner, group)
    place.parent.chmod(mode)
    paste(tmp_path, plan_, "")
    (tmp_path / "users").touch()
    stub(tmp_path, "runuser", f'echo "$2" >> {tmp_path}/users')
    for commands in (plan_.install, plan_.rollback):
        paste(tmp_path, plan_, commands)
    users = set((tmp_path / "users").read_text().split())
    assert users == (set() if user == "root" else {user})
    if plan_.kind == "prometheus_rules" and owner:  # who exchanges it with a link to a folder of root's
        shutil.chown(place.parents[1], owner)
        place.parent.rename(place.parents[1] / "old")
        place.parent.symlink_to(tmp_path)
        assert "others than root may write in" in said_by_paste(tmp_path, plan_, plan_.verify)


def test_what_a_user_says_has_no_control_characters(tmp_path: Path) -> None:
    """Found: a server's message reached root's terminal with its own, and a program what root's shell had open. Then:
    also U+202E and the like. Bytes of a longer form, and those that another character's end would join, are none."""
    paste(tmp_path, FILES[0], "")
    every = [chr(n) for n in range(sys.maxunicode + 1) if not 0xD800 <= n < 0xE000 and chr(n) not in "\t\n"]
    hidden = {c for c in every if category(c) in {"Cc", "Cf", "Zl", "Zp", "Zs"}} - {" ", "\xa0"}
    every = [c for c in every if c in hidden or c.isprintable()]
    (tmp_path / "said").write_bytes("\n".join(every).encode() + b"\n\xc0\x9b\xe2\x9b\x80\xe2\x80\x00\xae\t\xe2\x80")
    (tmp_path / "says").write_text(f"#!/bin/sh\n[ ! -e /dev/fd/77 ] && exec tee /dev/stderr < {tmp_path}/said\n")
    (tmp_path / "says").chmod(0o755)
    (tmp_path / "bin/tee").symlink_to(shutil.which("tee") or "")
    done = subprocess.run(
        [tmp_path / "bin/sh", f"{tmp_path}/own{INSTALLER}", "as", "eve", "run", tmp_path / "says"], check=True,
        capture_output=True, env={"PATH": str(tmp_path / "bin")}, pass_fds=[os.dup2(0, 77)],
    )  # fmt: skip
    os.close(77)
    shown = [*("?" if c in hidden else c for c in every), "??\u26c0????\t??"]
    for said in (done.stdout, done.stderr):
        lines = said.decode("utf-8", "replace").split("\n")
        assert {pair for pair in zip(lines, shown, strict=True) if pair[0] != pair[1]} == set()


def test_redis_never_includes_what_is_not_there(tmp_path: Path) -> None:
    """Found on a full disk: the way back removed the file, the line stayed, and Redis did not start again."""
    redis = ON_THE_NODE["redis_conf"]
    place, calls = place_of(tmp_path, redis), tmp_path / "calls"
    conf = place.with_name("redis.conf")
    conf.write_text("port 1\n")
    line = moved(f"include {redis.path}", tmp_path)
    for n in range(1, 99):
        paste(tmp_path, redis, redis.install)
        assert line in conf.read_text()
        calls.write_text("")
        for name in ("cat", "cp", "grep", "mv", "rm", "sed", "sync"):
            stub(
                tmp_path, name, f'echo >> {calls}; test "$(/usr/bin/wc -l < {calls})" -lt {n} || exit 9; exec real "$@"'
            )
        paste(tmp_path, redis, redis.rollback)
        assert place.exists() or line not in conf.read_text(), n
        (is_whole, *_) = [len(calls.read_text()) < n]
        for name in ("cat", "cp", "grep", "mv", "rm", "sed", "sync"):
            stub(tmp_path, name, 'exec real "$@"')
        assert paste(tmp_path, redis, redis.rollback) is None
        assert "include" not in conf.read_text()
        if is_whole:
            break
    assert n > 5
    assert conf.read_text().startswith("port 1\n")


@pytest.mark.parametrize("was", ["# of another tool\n", None])
@pytest.mark.parametrize(("puts", "backs"), [("10", "01"), ("1", "10"), ("1", "01"), ("0", "0"), ("010", "01")])
def test_a_way_back_that_was_cut_off_keeps_what_was_there(
    tmp_path: Path, was: str | None, puts: str, backs: str
) -> None:
    """Found: the same plan installed again after another one took what that had for what was there first."""
    plans, place = sysctl_over(tmp_path, was)
    paste(tmp_path, plans[0], plans[0].install)
    for name in ("cp", "rm"):  # what brings the file back, and what removes it
        last = '$(eval echo "\\${$#}")'
        stub(
            tmp_path,
            name,
            f'case {last} in *.part | *.conf) ls "{place}.going"* && kill -9 $PPID && exit ;; esac; exec real "$@"',
        )
    paste(tmp_path, plans[0], plans[0].rollback)
    assert place.read_text() == plans[0].content, "it is cut off in the middle"
    for name in ("cp", "rm"):
        stub(tmp_path, name, 'exec real "$@"')
    for n in puts:
        paste(tmp_path, plans[int(n)], plans[int(n)].install)
    for n in backs + backs:
        paste(tmp_path, plans[int(n)], plans[int(n)].rollback)
    assert (place.read_text() if place.exists() else None) == was
    assert of_hugeplan(tmp_path) == []


def test_what_only_a_way_back_has_is_not_replaced(tmp_path: Path) -> None:
    plans, place = sysctl_over(tmp_path, "# edited\n")
    going = place.with_name(f"{place.name}.going-{mark(plans[0].content)}")
    going.write_text("# of another tool\n")
    assert going.name in said_by_paste(tmp_path, plans[0], plans[0].install)
    assert {path.name: path.read_text() for path in place.parent.iterdir()} == {
        place.name: "# edited\n", going.name: "# of another tool\n"
    }  # fmt: skip


def test_lines_that_are_gone_are_said(tmp_path: Path) -> None:
    """Found: another plan's step had reset them, and this one's stopped without a word."""
    auto = tmp_path / "postgresql.auto.conf"
    auto.write_text("work_mem = '4MB'\n")
    words = ["keep-lines", "0" * 16, tmp_path / "x.conf", auto, "huge_pages|shared_buffers"]
    (tmp_path / "program").write_text(installer.text())
    done = subprocess.run(["/bin/sh", tmp_path / "program", *words], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{auto} sets none of huge_pages|shared_buffers" in done.stderr


#: kubectl and oc: the first read of an object's fields ends as the file ``how`` says.
_CLUSTER = """#!/bin/sh
case "$*" in
*go-template*) printf '# before the install\\n' && . ./how && printf '{"spec": %s}\\n' "$(cat state)" ;;
*) echo new > state ;;
esac
"""


@pytest.mark.parametrize("how", ["kill -9 $PPID $$", "exit 1", "echo half; exit 1"])
def test_what_stood_in_an_object_is_kept_whole_or_not_at_all(tmp_path: Path, how: str) -> None:
    """A half file would be taken for the state before: the object would never get it back."""
    for name in ("kubectl", "oc"):
        (tmp_path / name).write_text(_CLUSTER)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    patches = [a for a in FILES if "-fields-before.yaml" in a.rollback and not a.install.startswith("#")]
    assert {"performance_profile", "statefulset_patch", "cloudnative_pg"} <= {a.kind for a in patches}
    for at, artifact in enumerate(patches):
        step = tmp_path / f"{at}" / "1-step"
        step.mkdir(parents=True)
        state = step / "state"

        def kept(step: Path = step) -> list[str]:
            return [path.read_text() for path in step.parent.glob("*-fields-before.yaml")]

        def shell(commands: str, how: str, step: Path = step) -> int:
            (step / "how").write_text(how)
            return subprocess.run(["/bin/sh", "-c", commands], cwd=step, env=environment, check=False).returncode

        state.write_text("old\n")
        assert shell(artifact.install, how) != 0
        assert (kept(), state.read_text()) == ([], "old\n")
        for _ in range(2):
            assert shell(artifact.install, ":") == 0
            assert kept() == ['# before the install\n{"spec": old}\n']
            assert state.read_text() == "new\n"
        assert shell(artifact.rollback, ":") == 0
        assert not list(step.parent.glob("*-before*"))
