"""Bringing pools to their counts, and back: step by step, reading back, never below what is in use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from hugeplan.cli.apply_journal import Change, Journal, with_state, write_journal
from hugeplan.cli.pool_files import PoolError, PoolFiles
from hugeplan.planner.host_names import is_one_host
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.units import format_bytes
from hugeplan.signals import hold, ignore

#: A pool grows in about this many steps, and a step is at least this many pages; gigantic pages one by one.
_STEPS: Final = 16
_STEP_PAGES: Final = 32
_GIGANTIC_BYTES: Final = 512 * 2**20
_ATTEMPTS: Final = 3
_MEMINFO: Final = re.compile(r"^(MemTotal|MemAvailable):\s+(\d+) kB$", re.M)
Say = Callable[[str], None]


class ShortError(PoolError):
    """The kernel gave fewer pages than asked for, or pages to release are in use."""


def order(changes: tuple[Change, ...]) -> list[Change]:
    """Pools that shrink first, then large pages, which are harder to find, before small ones."""
    return sorted(changes, key=lambda c: (c.wanted > c.before, -c.page_bytes, c.numa_node))


def releasable(files: PoolFiles, change: Change) -> int:
    """The lowest count that takes no page from a mapping: used pages, and those reserved by mappings."""
    now = files.counts(change.numa_node, change.page_bytes)
    return now.pages - max(0, min(now.free, now.free - files.reserved(change.page_bytes)))


def check_node(root: Path, node: str) -> str | None:
    """Why a plan for ``node`` is not for this one; None where the names agree, or this one's is not known.

    A domain behind one of them does not count: a Kubernetes node is often named without the one its host has.
    """
    path = root / "proc/sys/kernel/hostname"
    own = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    if not own or is_one_host(own, node):
        return None
    return f"the plan is for {node}, this node is {own}"


def check_room(root: Path, changes: tuple[Change, ...]) -> None:
    """Refuse pools that are larger than the node's memory, or grow by more than is available less 2 % of the memory:
    the kernel would reclaim until nothing is left for what runs. A plan is often older than what runs. So are pools
    that are not there, or would shrink below their use.
    """
    path = root / "proc/meminfo"
    text = path.read_text(encoding="ascii") if path.exists() else ""
    known = {name: int(size) * 1024 for name, size in _MEMINFO.findall(text)}
    wanted = sum(change.wanted * change.page_bytes for change in changes)
    more = wanted - sum(change.before * change.page_bytes for change in changes)
    total, available = known.get("MemTotal"), known.get("MemAvailable")
    if total is not None and wanted > total:
        raise PoolError(
            f"the plan's pools take {format_bytes(wanted)}, this node has {format_bytes(total)}; nothing was changed"
        )
    kept = (total or 0) // 50
    if available is not None and more > available - kept:
        raise PoolError(
            f"the pools grow by {format_bytes(more)}, and {format_bytes(available)} are available (MemAvailable), of"
            f" which {format_bytes(kept)} stay for what runs (2 % of the memory); stop what uses the memory, or apply"
            " the files and reboot; nothing was changed"
        )
    _check_use(PoolFiles(root), changes)


def _check_use(files: PoolFiles, changes: tuple[Change, ...]) -> None:
    for change in changes:
        lowest = releasable(files, change)
        if change.wanted < change.before and change.wanted < lowest:
            reserved, nodes = files.reserved(change.page_bytes), files.root.glob("sys/devices/system/node/node[0-9]*")
            where = "" if len([*nodes]) < 2 else f" ({reserved} reserved, on a NUMA node that the kernel does not name)"
            raise ShortError(
                f"{_name(change)}: {lowest} pages are in use or reserved{where}, the plan wants {change.wanted};"
                " stop what uses them, or plan again"
            )


def grow_and_shrink(files: PoolFiles, changes: tuple[Change, ...], say: Say) -> None:
    """Write every pool. ShortError with what the kernel gave; nothing is put back here."""
    for change in order(changes):
        now = files.counts(change.numa_node, change.page_bytes).pages
        if now == change.wanted:
            continue
        if now > change.wanted:
            _check_use(files, (change,))
            got = files.write(change.numa_node, change.page_bytes, change.wanted)
        else:
            got = _grow(files, change, now)
        say(f"{_name(change)}: {change.before} -> {got}")
        if got != change.wanted:
            raise ShortError(
                f"{_name(change)}: {counted_pages(change.wanted, change.page_bytes)} asked for, {got} given"
            )


def _grow(files: PoolFiles, change: Change, now: int) -> int:
    step = 1 if change.page_bytes >= _GIGANTIC_BYTES else max(_STEP_PAGES, (change.wanted - now) // _STEPS)
    while now < change.wanted:
        aim = min(change.wanted, now + step)
        got = files.write(change.numa_node, change.page_bytes, aim)
        for _ in range(_ATTEMPTS):
            if got >= aim:
                break
            files.compact()
            got = files.write(change.numa_node, change.page_bytes, aim)
        if got < aim:
            return got
        now = got
    return now


def restore(root: Path, journal: Journal) -> list[str]:
    """The counts before, in the opposite order; what could not be restored, one line each. Ends the journal.

    The counts come before the journal: on a full disk they go back all the same.
    """
    files = PoolFiles(root)
    failed, left = [], []
    with suppress(PoolError):
        journal = with_state(root, journal, "restoring")
    for change in reversed(order(journal.changes)):
        try:
            aim = _aim_back(files, change)
            got = files.write(change.numa_node, change.page_bytes, aim)
            if got < aim:
                files.compact()
                got = files.write(change.numa_node, change.page_bytes, aim)
            left.append(replace(change, left=got))
            if got != change.before:
                failed.append(f"{_name(change)}: {change.before} pages before, {got} now")
        except PoolError as error:
            left.append(change)
            failed.append(str(error))
    with suppress(PoolError):
        if failed:
            write_journal(root, replace(journal, changes=tuple(left)))
        else:
            write_journal(root, journal.former or replace(journal, state="restored"))
    return failed


def _aim_back(files: PoolFiles, change: Change) -> int:
    """The count before, or more where something started to use the new pages meanwhile: it keeps them."""
    try:
        now = files.counts(change.numa_node, change.page_bytes).pages
        return max(change.before, min(now, releasable(files, change)))
    except PoolError:
        return change.before  # unreadable now: the count before is still the one to ask for


def place(files: PoolFiles, changes: tuple[Change, ...]) -> str:
    """``new``, ``old`` or ``between``: where the counts stand now."""
    now = [files.counts(change.numa_node, change.page_bytes).pages for change in changes]
    if now == [change.wanted for change in changes]:
        return "new"
    return "old" if now == [change.before for change in changes] else "between"


def _name(change: Change) -> str:
    return f"NUMA node {change.numa_node}, pages of {page_label(change.page_bytes)}"


@contextmanager
def guarded(root: Path, journal: Journal) -> Iterator[Callable[[], None]]:
    """A second process that restores the counts when this one is killed before it says that it is done.

    SIGKILL leaves no chance to the one that gets it. The guard has a session of its own, ignores signals that a
    terminal or a group kill sends, and waits at a pipe whose other end the kernel closes when this process is gone.
    The value yielded says "done"; it is to be called once the journal holds the end.
    """
    reading, writing = os.pipe()
    release = hold()
    child = os.fork()
    if child == 0:
        release()
        os.close(writing)
        _guard(root, journal, reading)
    os.close(reading)
    is_done = False

    def done() -> None:
        nonlocal is_done
        if not is_done:
            is_done = True
            os.write(writing, b"d")

    try:
        release()
        yield done
    finally:
        if is_done or sys.exc_info()[0] is None:
            done()
        os.close(writing)
        os.waitpid(child, 0)


def _guard(root: Path, journal: Journal, reading: int) -> None:
    """The guard's life; it never returns."""
    os.setsid()
    ignore()
    try:
        if os.read(reading, 1) == b"d":
            os._exit(0)
        failed = restore(root, journal)
        text = "the previous counts are back" if not failed else "not all counts are back: " + "; ".join(failed)
        os.write(2, f"hugeplan apply: the run ended before it was done; {text}\n".encode())
        os._exit(1 if failed else 0)
    except BaseException as error:  # a forked child must not unwind into its parent's frames
        os.write(2, f"hugeplan apply: the run ended before it was done, and its guard failed: {error}\n".encode())
        os._exit(1)
