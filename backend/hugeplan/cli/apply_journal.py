"""The journal of ``hugeplan apply``: what was there, what is wanted, and how far it came.

It is written before the first pool is, replaced as a whole and flushed, so that a reader finds the old or the new
text. ``applying`` and ``restoring`` mean that somebody is at work or was killed; ``applied`` and ``restored`` are ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from hugeplan.cli.pool_files import PoolError

FILE: Final = "var/lib/hugeplan/apply.json"
#: The plan that the last run applied, for ``hugeplan artifacts --diff in-force``.
IN_FORCE: Final = "var/lib/hugeplan/plan-in-force.json"
STATES: Final = ("applying", "applied", "restoring", "restored")


@dataclass(frozen=True, slots=True)
class Change:
    """One pool: pages before and pages wanted."""

    numa_node: int
    page_bytes: int
    before: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Journal:
    """One run: its state, the boot it belongs to, the node's plan by its headline, and the pools."""

    state: str
    boot_id: str
    plan: str
    changes: tuple[Change, ...]


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
        document = json.loads(path.read_text(encoding="utf-8"))
        journal = Journal(
            state=document["state"],
            boot_id=document["boot_id"],
            plan=document["plan"],
            changes=tuple(Change(**change) for change in document["changes"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PoolError(f"{path}: not a journal of hugeplan apply: {error}") from error
    return journal if journal.boot_id == boot_id(root) and journal.state in STATES else None


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
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=".apply-", delete=False
        ) as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
    except OSError as error:
        raise PoolError(f"{path}: {error.strerror}") from error


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
            raise PoolError("another hugeplan apply is at work on this node") from error
        yield descriptor
    finally:
        os.close(descriptor)
