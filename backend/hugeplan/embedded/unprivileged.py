"""Run a program that ends with its parent, as an ordinary user when started as root, which PostgreSQL refuses.

``python unprivileged.py UID GID FOLDER PROGRAM ARG...``. UID and GID are those to become; without
root they are our own and nothing changes. The parent is the thread that starts this, so it must be one that stays.

The checkout may lie in a folder only root may enter (``/root``). Opening that folder to everyone would be a lasting
change outside the state folder, so the program keeps one capability instead: to enter any folder and read any file.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522
# Reading is enough; containers often have only the wider override.
_CAP_DAC_READ_SEARCH = 2
_CAP_DAC_OVERRIDE = 1
_CAP_SETPCAP = 8


def _set_capabilities(libc: ctypes.CDLL, *capabilities: int) -> bool:
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    bits = sum(1 << capability for capability in capabilities)
    data = struct.pack("IIIIII", bits, bits, bits, 0, 0, 0)
    return bool(libc.capset(ctypes.create_string_buffer(header), ctypes.create_string_buffer(data)) == 0)


def _keep_capability(libc: ctypes.CDLL, capability: int) -> bool:
    """Keep only ``capability``, for this process and the programs it becomes. False when root lacks it too."""
    # access(2) asks on behalf of the real user, without capabilities, unless this bit is set (fs/open.c); initdb looks
    # for postgres with it. Where the bit cannot be set, the rest still holds for a program that asks otherwise.
    if _set_capabilities(libc, capability, _CAP_SETPCAP):
        libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    if not _set_capabilities(libc, capability):
        return False
    return bool(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0)


def become(uid: int, gid: int, needed: Sequence[str]) -> None:
    """Give up root for good. Keeps a capability only when a path of ``needed`` cannot be entered without it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if not all(os.access(path, os.X_OK) for path in needed):
        _keep_capability(libc, _CAP_DAC_READ_SEARCH) or _keep_capability(libc, _CAP_DAC_OVERRIDE)


def end_with_parent() -> None:
    """Ask the kernel for SIGINT (to PostgreSQL a fast shutdown) when the parent ends, however it ends.

    Changing the user clears this, so it comes after.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def main(arguments: Sequence[str]) -> None:
    """Become the user, then the program."""
    uid, gid, folder, program, *rest = arguments
    if int(uid) != os.geteuid():
        become(int(uid), int(gid), [folder, program])
    end_with_parent()
    os.execv(program, [program, *rest])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
