"""A user's server of files that answers nothing, and a process ``postgres`` that has them: its pid is printed.

python serves_nothing.py memory|files DEVICE SECONDS, as root of a user and mount namespace of its own. ``memory``: who
looks at what the process maps waits; ``files``: who looks below its root does, and no signal ends that wait.
"""

import ctypes
import mmap
import os
import signal
import struct
import sys
import threading
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
what, device, limit = sys.argv[1:]
signal.alarm(int(limit))


def mount(kind: str, target: str, options: str) -> None:
    if libc.mount(kind.encode(), target.encode(), kind.encode(), 0, options.encode()):
        sys.exit(f"skip: {kind} cannot be mounted: {os.strerror(ctypes.get_errno())}")


mount("tmpfs", "/mnt", "")
for name in ("low", "up", "work", "all"):
    Path(f"/mnt/{name}").mkdir()
try:
    channel = os.open(device, os.O_RDWR | os.O_CLOEXEC)
except OSError as error:
    sys.exit(f"skip: {device}: {error.strerror}")
mount("fuse", "/mnt/low", f"fd={channel},rootmode=40000,user_id=0,group_id=0")
asked, tell = os.pipe()


def victim() -> None:
    os.close(channel)  # so that the connection ends with who serves it
    signal.alarm(int(limit))
    if what == "files":
        mount("overlay", "/mnt/all", "lowerdir=/mnt/low,upperdir=/mnt/up,workdir=/mnt/work")
        os.chdir("/mnt/all")
    libc.prctl(15, b"postgres", 0, 0, 0)
    print(os.getpid(), flush=True)
    if what == "memory":
        first, second = (os.open("/mnt/low/f", os.O_RDONLY) for _ in range(2))
        threading.Thread(target=os.pread, args=(first, 1, 0), daemon=True).start()
        os.read(asked, 1)
        mmap.mmap(second, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)  # the lock of its memory is held meanwhile
    while True:
        signal.pause()


if os.fork() == 0:
    victim()


def attributes(node: int) -> bytes:
    mode, size = (0o40755, 0) if node == 1 else (0o100644, 4096)
    return struct.pack("6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


opened = 0
while True:
    request = os.read(channel, 1 << 20)
    _, kind, number, node = struct.unpack_from("IIQQ", request)
    code, answer = 0, b""
    if kind == 26:  # INIT
        answer = struct.pack("4I2H2I2HI", 7, 31, 65536, 0, 12, 9, 65536, 1, 32, 0, 0).ljust(64, bytes(1))
    elif kind == 3:  # GETATTR
        answer = struct.pack("QII", 9, 0, 0) + attributes(node)
    elif kind == 1 and what == "memory":  # LOOKUP
        answer = struct.pack("4Q2I", 2, 0, 9, 9, 0, 0) + attributes(2)
    elif kind == 14:  # OPEN; the second time without the page cache
        answer, opened = struct.pack("QII", 1, opened, 0), 1
    elif kind == 17:  # STATFS
        answer = struct.pack("5Q4I", 9, 9, 9, 9, 9, 4096, 255, 4096, 0).ljust(80, bytes(1))
    elif kind in (1, 15):  # LOOKUP, READ
        os.write(tell, b".")
        continue
    elif kind in (2, 36, 42):  # FORGET, INTERRUPT
        continue
    else:
        code = -38
    os.write(channel, struct.pack("IiQ", 16 + len(answer), code, number) + answer)
