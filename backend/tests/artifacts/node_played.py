"""A node that a test plays: pools of one memory, a boot, and servers that do not start without their pages.

``node_played.py FOLDER PROGRAM WORDS...`` is each of the programs that a plan's commands call.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


class Played:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.of: dict[str, Any] = json.loads((folder / "state.json").read_text())

    def asked(self, name: str) -> dict[str, int]:
        """What a server asks for at its next start."""
        own = self.of["new"][name]
        is_new = own["file"] is not None and Path(own["file"]).is_file()
        return dict(own if is_new else self.of["old"][name])

    def held(self, size: int, but: str = "") -> int:
        running = {name: one for name, one in self.of["running"].items() if one is not None and name != but}
        return sum(one["pages"] for one in running.values() if one["size"] == size)

    def finds_pages(self, name: str) -> bool:
        asked = self.asked(name)
        free = self.of["pools"].get(str(asked["size"]), 0) - self.held(asked["size"], but=name)
        return asked["size"] == 0 or free >= asked["pages"]

    def start(self, name: str) -> bool:
        self.of["running"][name] = None
        if self.finds_pages(name):
            self.of["running"][name] = {key: self.asked(name)[key] for key in ("size", "pages")}
        elif self.of["insists"]:
            self.of["failed"].append(name)
        else:
            self.of["running"][name] = {"size": 0, "pages": 0}
        return self.of["running"][name] is not None

    def set_pages(self, size: int, count: int) -> bool:
        """Pages that are held stay; more than the memory has are not given."""
        self.of["pools"][str(size)] = 0
        used = sum(max(pages, self.held(int(of))) * int(of) for of, pages in self.of["pools"].items())
        room = (self.of["memory"] - used) // size + self.held(size)
        self.of["pools"][str(size)] = min(count, max(room, 0))
        return bool(self.of["pools"][str(size)] == count)

    def reserve(self, script: Path) -> bool:
        lines = re.findall(r"^(?:reserve|w) .*hugepages-(\d+)kB\D* (\d+)$", script.read_text(), re.M)
        done = [self.set_pages(int(size) * 1024, int(count)) for size, count in lines]
        return all(done)

    def reboot(self) -> bool:
        paths = ("default/grub.d/60-hugeplan.cfg", "tuned/hugeplan/tuned.conf")
        is_planned = any((self.folder / "etc" / path).is_file() for path in paths)
        self.of["pools"] = dict(self.of["planned" if is_planned else "before"])
        self.of["running"] = dict.fromkeys(self.of["old"])
        for name in self.of["old"]:
            self.start(name)
        return True

    def run(self, program: str, words: list[str]) -> bool:
        if program == "reboot":
            return self.reboot()
        if program == "set_pages":
            return self.set_pages(int(re.findall(r"hugepages-(\d+)kB", words[1])[0]) * 1024, int(words[0]))
        if program in {"reserve_all", "systemd-tmpfiles"}:
            return self.reserve(Path(words[-1]))
        if program == "systemctl" and words[:2] == ["enable", "--now"]:
            return self.reserve(self.folder / "bin/hugeplan-reserve")
        name = next((name for name in self.of["old"] if any(re.search(rf"\b{name}\b", word) for word in words)), None)
        return program == "systemctl" if name is None else self.serve(name, words)

    def serve(self, name: str, words: list[str]) -> bool:
        if "status" in words or "is-active" in words:
            return self.of["running"][name] is not None
        if "stop" in words:
            self.of["running"][name] = None
            return True
        return self.start(name)


if __name__ == "__main__":
    played = Played(Path(sys.argv[1]))
    is_done = played.run(sys.argv[2], sys.argv[3:])
    (played.folder / "state.json").write_text(json.dumps(played.of))
    sys.exit(0 if is_done else 3 if "status" in sys.argv else 1)
