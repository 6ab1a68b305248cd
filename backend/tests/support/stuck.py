"""Files of /proc whose reading waits for ever, as that of a process whose memory is held by somebody else."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hugeplan_agent import apart
from hugeplan_agent.host import Host


def stuck_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """A host's files that are put into this set are not read: who tries waits, at a FIFO in the folder."""
    names: set[str] = set()
    os.mkfifo(folder / "nobody writes")
    opened = Host._opened_in_proc

    def waits(self: Host, name: str) -> AbstractContextManager[int]:
        if name in names:
            os.open(folder / "nobody writes", os.O_RDONLY)
        return opened(self, name)

    monkeypatch.setattr(Host, "_opened_in_proc", waits)
    monkeypatch.setattr(apart, "LOOK_POLLS", 3)
    return names
