"""The journal of ``hugeplan apply``: what was there, what is wanted, and how far it came.

It is written before the first pool is, replaced as a whole and flushed, so that a reader finds the old or the new
text. ``applying`` and ``restoring`` mean that somebody is at work, or did not come to an end; ``applied`` and
``restored`` are ends. A run that restores what it found puts the journal back that it found, too.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from hugeplan.cli import InputError
from hugeplan.cli.files import TEMPORARY, write_file
from hugeplan.cli.pool_files import PoolError
from hugeplan.planner.pages import page_label

FILE: Final = "var/lib/hugeplan/apply.json"
#: The plan that the last run applied, for ``hugeplan artifacts --diff in-force``.
IN_FORCE: Final = "var/lib/hugeplan/plan-in-force.json"
STATES: Final = ("applying", "applied", "restoring", "restored")


@dataclass(frozen=True, slots=True)
class Change:
    """One pool: pages before and pages wanted. ``left``: what a way back came to that could not restore all."""

    numa_node: int
    page_bytes: int
    before: int
    wanted: int
    left: int | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """One run: its state, the boot it belongs to, the node's plan by its headline, and the pools.

    ``former``: the journal that it found, until it has applied its plan.
    """

    state: str
    boot_id: str
    plan: str
    changes: tuple[Change, ...]
    former: Journal | None = None


def without_end(journal: Journal | None) -> Iterator[Journal]:
    """The runs, from the last one back, that are at work, were killed with their guards, or could not restore all."""
    while journal is not None and journal.state in {"applying", "restoring"}:
        yield journal
        journal = journal.former


def first_count(journal: Journal | None, change: Change) -> int:
    """The pages of a pool before the runs without an end; ``change.before`` where none left its count as it is."""
    count = change.before
    for one in (change for run in without_end(journal) for change in run.changes):
        lowest, highest = sorted((one.before, one.wanted)) if one.left is None else (one.left, one.left)
        if (one.numa_node, one.page_bytes) == (change.numa_node, change.page_bytes) and lowest <= count <= highest:
            count = one.before
    return count


def journal_path(root: Path) -> Path:
    """Where the journal of a node lies."""
    return root / FILE


def boot_id(root: Path) -> str:
    """The boot that counts belong to: after a reboot they say nothing."""
    path = root / "proc/sys/kernel/random/boot_id"
    return path.read_text(encoding="ascii").strip() if path.exists() else ""


def read_journal(root: Path) -> Journal | None:
    """The last run of this boot; None where there is none."""
    path = journal_path(root)
    try:
        journal = _journal(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PoolError(f"{path}: not a journal of hugeplan apply: {error}") from error
    return journal if journal.boot_id == boot_id(root) and journal.state in STATES else None


def _journal(document: dict[str, Any]) -> Journal:
    former = document.get("former")
    changes = tuple(Change(**change) for change in document["changes"])
    return Journal(
        document["state"], document["boot_id"], document["plan"], changes, None if former is None else _journal(former)
    )


def write_journal(root: Path, journal: Journal) -> Journal:
    """Replace the journal; it is on the disk when this returns."""
    _replace(journal_path(root), asdict(journal))
    return journal


def write_in_force(root: Path, document: dict[str, Any]) -> None:
    """Keep the plan document that was applied."""
    _replace(root / IN_FORCE, document)


def forget_in_force(root: Path) -> None:
    """No plan is in force any more, as far as this command knows."""
    try:
        (root / IN_FORCE).unlink(missing_ok=True)
    except OSError as error:
        raise PoolError(f"{root / IN_FORCE}: {error.strerror}") from error


def _replace(path: Path, document: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(document).encode(), 0o600, secret=True)
    except (OSError, InputError) as error:
        raise PoolError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def with_state(root: Path, journal: Journal, state: str) -> Journal:
    """The journal with its next state, written."""
    return write_journal(root, replace(journal, state=state))


@contextmanager
def only_one(root: Path) -> Iterator[int]:
    """An exclusive lock for the time of a run; the descriptor is inherited by the guard, which holds it to its end."""
    path = journal_path(root).with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise PoolError(f"{path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PoolError("a hugeplan apply or trial is at work on this node; try again when it has ended") from error
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def pools_held(root: Path) -> Iterator[None]:
    """The lock of everything in this project that holds pages for a while, as measurements do. The guard inherits it.

    What a killed one left is given back first, and its temporary files go. PoolError while another has the lock.
    """
    try:
        from hugeplan_agent.pool_reservation import Places, ReservationError, reservation  # noqa: PLC0415 - optional
        from hugeplan_agent.whole_files import remove_leftovers  # noqa: PLC0415
    except ImportError as error:
        raise InputError("this command needs hugeplan-agent beside hugeplan (its extra is hugeplan[node])") from error
    try:
        with reservation(Places(root / "sys", None if root == Path("/") else root / "tlbbench"), 1.0) as held:
            with suppress(OSError):
                remove_leftovers(journal_path(root).parent, TEMPORARY)
            for size, former, now in held.recovered:
                print(f"Pages of {page_label(size)} that a killed measurement left are given back: {former} -> {now}")
            yield
    except ReservationError as error:
        raise PoolError(str(error)) from error
