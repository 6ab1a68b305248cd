"""The order of a plan's steps: whenever a database starts, the pages that its file asks for are there.

A file and a pool change in different steps, and a server with ``huge_pages = on`` does not start where the two do not
agree; one that only tries starts on base pages. So one rule for each change, and its ways back run last step first:

* It needs fewer pages, or none: its file first, with a restart, which gives the pages back; then the pool.
* It needs more pages of their size, or its first ones: the pool first, then its file.
* It changes the size of its pages. The memory often holds one of both pools, so no order lets it start in between. Its
  file goes first and does not start it; the step of the pools does, by its reboot or by its last command. At run time
  the file's step stops it, so that the pages of its former size are free. The way back of the pools brings the file
  back first; then it reboots, or stops the server, which the file's way back starts. What takes the place of that
  step does the same. The file is not written where GRUB does not read the pools' step.

A file whose restart is not known (Oracle, Db2, a JVM) stays behind the pools, and says where its program does not
start. In a cluster an object's patch goes before a pool that shrinks, as a pod that asks for more pages than its node
has is not taken. With fewer pages the server's settings go before the patch: below a smaller limit it would not start.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Final

from hugeplan.artifacts.base import (
    INSTALLER,
    Artifact,
    ChangesSize,
    GivesBack,
    Restart,
    all_of,
    as_owner_of,
    mark,
    one_line,
    with_pool,
)
from hugeplan.artifacts.kernel_command_line import MUST_BE_READ, where_read
from hugeplan.planner.demand.settings import plain
from hugeplan.planner.model import InstancePlan, ObservedDatabase, Plan, PlanRequest

#: Says whether the file was put, up to the end of its way back. Who may not look into the folder finds no file either.
#: What its way back would leave, as it was changed, is an error. ``$2``: its folder may not be there either.
_IS_PUT: Final = shlex.quote(
    'd=${1%/*}; if test ! "$2" && test ! -x "$d" && { test -e "$d" || test ! -x "${d%/*}"; }; then'
    ' echo "$(id -un) may not find $1" >&2; exit 1; fi;'
    ' test ! -e "$1.going-$0" || echo goes; test ! -e "$1.before-$0" ||'
    ' { { test -f "$1" && sha256sum < "$1" && cat "$1"; } | grep -q "$0" ||'
    ' { echo "$1 is of another plan or was changed: left as it is" >&2; exit 1; }; echo stays; }'
)
#: A restart starts them again, a stop and a start do not.
_REQUIRE: Final = "# Units that require it stop with it: start them after it (systemctl list-dependencies --reverse)."
#: Steps that write pools on a host, by a reboot or at once.
_AT_BOOT: Final = ("kernel_command_line", "systemd_boot", "cloud_config")
_POOLS: Final = (*_AT_BOOT, "ansible_playbook", "numa_script", "systemd_unit")
#: Files that are no steps, and take the place of one that writes pools.
_INSTEAD: Final = (*_POOLS, "tuned_profile", "tmpfiles", "sysctl")


def with_change(file: Artifact, planned: InstancePlan, request: PlanRequest) -> Artifact:
    """The file as one that gives pages back or changes their size, where the running server says so."""
    kind = change(planned, request)
    return file if kind is None else kind(**asdict(file))


def change(planned: InstancePlan, request: PlanRequest) -> type[GivesBack | ChangesSize] | None:
    """What the running server's file does; its step goes before that of the pools. None: it goes behind."""
    server = request.server(planned.runs_as)
    if server is None or not server.hugetlb_bytes:
        return None
    if planned.page_bytes is None:
        return GivesBack
    held = _held(server, request.node.default_huge_page_bytes)
    if held[planned.page_bytes] > planned.demand.pages * planned.page_bytes:
        return GivesBack
    return None if held[planned.page_bytes] else ChangesSize


def _held(server: ObservedDatabase, default_bytes: int) -> Counter[int]:
    """Bytes by page size. Whose mappings nobody may read has them on the size that it names, or on the default one."""
    held = Counter[int]()
    for one in server.segments:
        if one.page_bytes is not None and one.backing in {None, "hugetlb"}:
            held[one.page_bytes] += one.bytes
    if not held:
        named = plain(server.settings.get("huge_page_size", "0"), 1024)
        held[int(named) if named.isdecimal() else default_bytes] = server.hugetlb_bytes or 0
    return held


def in_order(recommended: Iterable[Artifact]) -> list[Artifact]:
    """The steps: who gives pages back, who changes their size, all others as they come."""

    def rank(file: Artifact) -> tuple[int, bool]:
        is_patch = file.media_type == "application/yaml"
        if isinstance(file, GivesBack) or "\nlarge_pages = OFF\n" in file.content:
            return 0, is_patch
        if isinstance(file, ChangesSize) and (_restart(file) or _is_in_cluster(file)):
            return 1, not is_patch
        return 2, False

    return sorted(recommended, key=rank)


def _is_in_cluster(file: Artifact) -> bool:
    """A patch may be made from another node's folder."""
    return "kubectl" in file.install or file.media_type == "application/yaml"


def without_file(files: Sequence[Artifact], plan: Plan, request: PlanRequest) -> list[Artifact]:
    """The files; those that write pools at once name who changes its size with no file: MariaDB's is its pool's."""
    names = [
        one_line(planned.name)
        for _, planned in with_pool(plan, request)
        if planned.engine == "mariadb" and not request.reservations.kubernetes
        if isinstance(with_change(files[0], planned, request), ChangesSize)
        if not any(f"# {one_line(planned.name)}: settings of its plan\n" in a.content for a in files)
    ]
    note = (
        f"# The pages of {', '.join(names)} change their size: stop it before the pools' steps, start it after them.\n"
    )
    return [
        replace(a, install=note + a.install, rollback=note + a.rollback)
        if names and a.kind in _INSTEAD and a.restart is not Restart.REBOOT
        else a
        for a in files
    ]


def joined(steps: Sequence[Artifact], others: Sequence[Artifact]) -> tuple[list[Artifact], list[Artifact]]:
    """The numbered steps and the other files, with what pools and servers that change their size do for each other."""
    pools = [a for a in steps if a.kind in _POOLS]
    changing = [a for a in steps if isinstance(a, ChangesSize) and _restart(a)]
    reboots = any(a.restart is Restart.REBOOT for a in pools)
    done = []
    for a in steps:
        if isinstance(a, ChangesSize):
            done.append(_file(a, pools[0], reboots=reboots) if pools else _elsewhere(a))
        elif a in pools and changing:
            done.append(_rebooted(a, changing) if reboots else _started(a, changing, is_first=a is pools[0]))
        else:
            done.append(a)
    if pools and changing:
        others = [_instead(a, changing, reboots=reboots) if a.kind in _INSTEAD else a for a in others]
    return done, [_by_hand(a, reboots=reboots, by_grub=_by_grub(pools)) for a in others]


def _steps(files: Sequence[Artifact]) -> str:
    return " and ".join(str(file.step) for file in files)


def _instead(file: Artifact, changing: Sequence[Artifact], *, reboots: bool) -> Artifact:
    """What takes the place of the pools' step does for the servers what that step does."""
    if file.kind == "kernel_command_line":
        file = replace(file, install=where_read(file.install))
    if file.restart is Restart.REBOOT:
        starts = f"# Where it ends with an error, the way back of step {_steps(changing)} starts what that stopped.\n"
        return _rebooted(replace(file, install=("" if reboots else starts) + file.install), changing)
    if file.kind == "sysctl" and "vm.nr_hugepages" not in file.content:
        return file
    return _started(file, changing, is_first=True, runs=reboots)


def _restart(file: Artifact) -> str:
    """What ends its install and starts the server, or nothing."""
    last = file.install.rsplit(" &&\n", 1)[-1]
    is_command = last.startswith("systemctl restart ") or (" pg_ctl " in last and last.endswith(" restart"))
    return last if is_command and "\n" not in last else ""


def _stop(file: Artifact) -> str:
    """It may be stopped already."""
    own = _restart(file).removesuffix(" restart")
    if own.startswith("systemctl"):
        return own.replace("restart", "stop", 1)
    # pg_ctl, "status": 3 is a server that does not run, all else but 0 an error.
    return f"{{ {own} status > /dev/null && {own} stop || test $? -eq 3; }}"


def _runs(file: Artifact) -> str:
    restart = _restart(file)
    if restart.startswith("systemctl"):
        return restart.replace("restart", "is-active --quiet", 1)
    return restart.removesuffix(" restart") + " status > /dev/null"


def _back(file: Artifact) -> list[str]:
    """The way back up to the restart; nothing where it is more than a row of commands."""
    commands = file.rollback.split(" &&\n")
    is_row = "\n" not in commands[0] and _restart(file) in commands
    before = commands[: commands.index(_restart(file))] if is_row else []
    return before[: -1 if before and before[-1] in file.install else None]  # what it asks before a start alone


def _reads(file: Artifact) -> str:
    """Says whether the file is put, in whichever folder."""
    row = [one.split(" back ", 1) for one in _back(file) if f" back {mark(file.content)} " in one]
    row = row or [[as_owner_of(path.rpartition("/")[0]), f"{mark(file.content)} {path} maybe"]
                  for path in (file.path or "").split(" or ")]  # fmt: skip
    return " && ".join(f"{'' if own == INSTALLER else f'{own} run '}sh -c {_IS_PUT} {words}" for own, words in row)


def _file(file: Artifact, pools: Artifact, *, reboots: bool) -> Artifact:
    step, restart, install = pools.step, _restart(file), file.install.split(" &&\n")[:-1]
    if not restart:
        if _is_in_cluster(file):
            return _elsewhere(file)
        note = f"# From step {step} to this one, and on the way back until that of step {step}, it finds no pages."
        again = "# Start the program again after that."
        return replace(file, install=f"{note}\n{file.install}", rollback=f"{file.rollback}\n{note}\n{again}")
    rollback = file.rollback
    if _back(file):
        # Else it starts on pools that are not back: their file was edited, and their way back has ended with an error.
        told = "{ echo 'first the way back of the pools' >&2; false; }"
        comes_first = f'{{ test "$({_reads(file)} 2> /dev/null)" != stays || ! {_runs(file)} || {told}; }}'
        start = f"{{ {_runs(file)} || {restart}; }}"
        rollback = f"# The way back of step {step} brought the file back first: a server that runs goes on.\n"
        rollback += all_of([comes_first, *(start if c == restart else c for c in file.rollback.split(" &&\n"))])
    if not reboots:
        note = f"# This stops the server, and step {step} starts it on its new pages. In between it does not run."
        note += f"\n{_REQUIRE}" if restart.startswith("systemctl") else ""
        puts = [line for line in pools.install.split(" &&\n") if line.startswith(f"{INSTALLER} put ")]
        judged = [line.replace(" put ", " keep ", 1).partition(" < ")[0] for line in puts]
        return replace(file, install=f"{note}\n{all_of([*judged, *install, _stop(file)])}", rollback=rollback)
    note = (
        f"# The server is not restarted: after the reboot of step {step} it starts on its new pages. Until then it runs"
        " on, and would not start again."
    )
    if _by_grub([pools]):
        note += f"\n# Without the first command where an alternative without GRUB takes the place of step {step}."
        install = [MUST_BE_READ, *install]
    return replace(file, install=f"{note}\n{all_of(install)}", rollback=rollback, restart=Restart.NOTHING)


def _elsewhere(file: Artifact) -> Artifact:
    """In a cluster. Kubernetes, StatefulSets, "Forced rollback": a pod that is not ready is not replaced."""
    note = "# Its pods wait from here until the pool of their new pages is there."
    again = "# A pod that waits after that is deleted: its StatefulSet does not replace one that is not ready."
    return replace(file, install=f"{note}\n{again}\n{file.install}", rollback=f"{file.rollback}\n{again}")


def _rebooted(pools: Artifact, changing: Sequence[Artifact]) -> Artifact:
    """The way back brings the files back before it reboots."""
    left = [file.step for file in changing if not _back(file)]
    notes, first = _files_back(pools, changing)
    notes += [f"# Then the way back of step {step}: until that its server is on base pages." for step in left]
    return replace(pools, rollback="\n".join([*notes, all_of([*first, pools.rollback])]))


def _files_back(pools: Artifact, changing: Sequence[Artifact]) -> tuple[list[str], list[str]]:
    """Notes, and commands that bring the files back: those that are in force.

    All are asked first, those of the pools too. What cannot be read, or was changed since, ends the way back before
    anything changes: the server would not start after it.
    """
    notes, asks, then = [], [], []
    for file in changing:
        back = _back(file)
        at = next((at for at, one in enumerate(back) if f" back {mark(file.content)} " in one), 0)
        asks += [*back[:at], f"is{file.step}=$({_reads(file)})"]
        if back:
            notes.append(f"# The file of step {file.step} comes back first: its server starts on the former pages.")
            notes += [line for line in file.install.splitlines() if line.startswith("# another user")]
            then.append(f'{{ test -z "$is{file.step}" || {{\n{all_of(back[at:])}\n}}; }}')
    own = re.findall(rf"{INSTALLER} back(?:-alone)? (\S+ \S+)", pools.rollback)
    asks += [f"sh -c {_IS_PUT} {one} maybe > /dev/null" for one in own]
    return notes, [*asks, *then]


def _started(pools: Artifact, changing: Sequence[Artifact], *, is_first: bool, runs: bool = False) -> Artifact:
    """It starts what the steps before it stopped; its way back stops it, and theirs start it.

    ``runs``: what they did not stop, as they are made for a reboot.
    """
    of_steps = _steps(changing)
    install = pools.install
    stops = all_of([_stop(file) for file in changing])
    if is_first:
        starts = [_restart(file) for file in changing]
        whose = f"the server of step {of_steps}, which this stops" if runs else f"what step {of_steps} stopped"
        notes = [
            f"# The last command starts {whose}. In between it does not run.",
            *([_REQUIRE] if runs and "systemctl stop " in stops else []),
            f"# Where the pages are not reached, the ways back of this step and of step {of_steps} start it again.",
        ]
        if pools.kind == "ansible_playbook":  # runs on the control host
            notes[0] = f"# After it, start on the node what step {of_steps} stopped: {' && '.join(starts)}"
            starts = []
        install = "\n".join([*notes, all_of([*([stops] if runs else []), install, *starts])])
    note = f"# This stops the server of step {of_steps}, whose way back starts it. In between it does not run."
    note += f"\n{_REQUIRE}" if "systemctl stop " in stops else ""
    notes, first = _files_back(pools, changing)
    own, _, rest = pools.rollback.partition(" &&\n")  # a file of the pools that was edited stops no server either
    stops = all_of([f'{{ test -z "$is{file.step}" || {_stop(file)}; }}' for file in changing])
    back = all_of([*first, f"{{\n{own}\n}}", f"{stops} && {{\n{rest}\n}}"])
    return replace(pools, install=install, rollback="\n".join([*notes, note, back]))


def _by_grub(pools: Sequence[Artifact]) -> bool:
    return bool(pools) and pools[0].kind in {"kernel_command_line", "ansible_playbook"}


def _by_hand(file: Artifact, *, reboots: bool, by_grub: bool) -> Artifact:
    """Lines that are left to a person."""
    if "_snippet" not in file.kind or not isinstance(file, (GivesBack, ChangesSize)):
        return file
    summary, before = file.summary, "Before the numbered steps: "
    if before not in summary:
        summary = f"{before}{summary[0].lower()}{summary[1:]}"
    install, rollback = file.install, file.rollback
    if not install.startswith("# write"):
        return replace(file, summary=summary)
    if isinstance(file, ChangesSize) and reboots:
        summary += " It is not restarted: the reboot of the steps starts it on its new pages. Back: the lines first."
        install = install.partition(", then restart")[0] + ", without a restart: the reboot of the steps does it"
        if by_grub:
            install = f"# only where this says nothing: {MUST_BE_READ}\n{install}"
        rollback = "# set the previous values before the way back of the pools, whose reboot restarts it"
    elif isinstance(file, ChangesSize):
        summary += " It is stopped until the steps have run: there are no pages for it."
        install = install.replace("# ", "# stop it; ", 1).replace("then restart", "after the pools' step start", 1)
        rollback = rollback.replace("# ", "# before the way back of the pools stop it; ", 1)
        rollback = rollback.replace("and restart", "and after it start", 1)
    else:
        rollback = rollback.replace("# ", "# after the ways back of the numbered steps: ", 1)
    return replace(file, summary=summary, install=install, rollback=rollback)
