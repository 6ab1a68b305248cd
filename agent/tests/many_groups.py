"""Another user's processes with 65,000 groups each, of which the kernel writes a new list for who reads their status.

python many_groups.py COUNT SECONDS, as root: their pids are printed. A user with subordinate ids makes the like.
"""

import mmap
import os
import signal
import sys

count, limit = map(int, sys.argv[1:])
os.setgroups(range(65000))
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
large = mmap.mmap(-1, 400 << 20)  # as large as those that are looked at
pids = []
for _ in range(count):
    pid = os.fork()
    if pid == 0:
        signal.alarm(limit)
        while True:
            signal.pause()
    pids.append(pid)
print(*pids, flush=True)
signal.alarm(limit)
while True:
    signal.pause()
