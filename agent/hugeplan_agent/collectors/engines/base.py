"""What every database engine shares: a running server, and the settings that can be read without a login.

Nothing but names on an engine's list is ever taken from a command line, an environment or a file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property

from hugeplan_agent.collectors.foreign import TooMuchError, foreign
from hugeplan_agent.collectors.process_rights import rights_of
from hugeplan_agent.collectors.process_table import Process, ProcessTable
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host
from hugeplan_agent.rights import Rights

CWD = "/proc/self/cwd"
"""The working folder of who reads this name: of a server's name, the server's."""
MAX_VALUE_CHARACTERS = 256
MAX_RECORD_BYTES = 256 * 1024
"""Of a command line or an environment; a Java program's class path has some ten thousand."""
MAX_WORDS = 4096
"""Of a command line; what a server is told stands before what a program in it is told."""
MAX_LINE_CHARACTERS = 8192
"""Of a configuration file. A pattern keeps its way back through a line, 190 bytes per character."""
MAX_FILES = 64
"""Configuration files and listed folders of one server."""
PART_BYTES = 64
"""What looking for one part of a path counts for: it takes as long as reading so much of a file."""
MAX_NOTES = 8
MAX_NOTE_CHARACTERS = 110
"""Of what could not be read: together they stay below the 1,000 characters that a report has for them."""


def words_of(command_line: str) -> list[str]:
    """The first words of a /proc/PID/cmdline. One without a character takes a byte there, and fifty here."""
    return command_line.rstrip("\0").split("\0", MAX_WORDS)[:MAX_WORDS] if command_line else []


def lines_of(text: str, settings: Settings) -> Iterator[str]:
    """The lines of a configuration file without surrounding blanks, one at a time; too long ones are a note."""
    for line in io.StringIO(text):
        if len(line) <= MAX_LINE_CHARACTERS:
            yield line.strip()
        else:
            settings.missing(f"a line of more than {MAX_LINE_CHARACTERS} characters is not read")


TRUTH = {"": "on", "1": "on", "true": "on", "yes": "on", "on": "on"}


@dataclass
class Settings:
    """Settings by name, each with its value as written and its source. A later one replaces an earlier one."""

    wanted: frozenset[str]
    found: dict[str, dict[str, str]] = field(default_factory=dict)
    complete: bool | None = None
    notes: list[str] = field(default_factory=list)
    unnamed: int = 0
    """What could not be read beyond the notes."""

    def put(self, name: str, value: str, source: str) -> None:
        """Take a setting when its name is wanted. No engine's value needs more than what a line of ASCII holds."""
        if name not in self.wanted:
            return
        if len(value) <= MAX_VALUE_CHARACTERS and value.isascii() and value.replace("\t", " ").isprintable():
            self.found[name] = {"value": value, "source": source}
        else:
            self.missing(f"{name}: not a value of up to {MAX_VALUE_CHARACTERS} printable characters")

    def value(self, name: str) -> str | None:
        """What was found so far."""
        return self.found[name]["value"] if name in self.found else None

    def missing(self, what: str) -> None:
        """A source could not be read, so a setting may be missing or overruled."""
        self.complete = False
        what = what if len(what) <= MAX_NOTE_CHARACTERS else f"{what[: MAX_NOTE_CHARACTERS - 1]}…"
        if what in self.notes:
            return
        if len(self.notes) < MAX_NOTES:
            self.notes.append(what)
        else:
            self.unnamed += 1

    def has_room(self, left: list[int]) -> bool:
        """Take one of the files and folders that may still be read; what is beyond them is one note."""
        left[0] -= 1
        if left[0] < 0:
            self.missing(f"more than {MAX_FILES} configuration files and folders: the others are not read")
        return left[0] >= 0

    @property
    def note(self) -> str | None:
        """What is missing, in a line that a report has room for; None when nothing is."""
        return "; ".join([*self.notes, *([f"and {self.unnamed} more"] if self.unnamed else [])]) or None


@dataclass
class Server:
    """One running server: its main process, all of its processes, and how it was started."""

    host: Host
    main: Process
    members: list[Process]
    executable: str | None = None
    is_unfinished: bool = False
    """Whether something of it is left for a later observation."""
    is_cut: bool = False
    """Whether something was not read for want of room: what was read is not the whole."""
    changed: float = 0.0
    """When the youngest of the files and folders that were read of it was changed."""
    _read: dict[str, str | None] = field(default_factory=dict, repr=False)

    @property
    def arguments(self) -> list[str]:
        """The command line, split as the process was given it. It never leaves the node but through a whitelist."""
        return words_of(self._of_process("cmdline") or "")

    @property
    def root(self) -> str:
        """Its own file system, which in a container is another one than the node's."""
        return f"proc/{self.main.pid}/root"

    @cached_property
    def rights(self) -> Rights | None:
        """Whose rights what it names is read with; None in a captured tree, whose files have other owners."""
        return rights_of(self.host, self.main) if self.host.path("proc").is_mount() else None

    def read(self, path: str) -> str:
        """A file as the server sees it; a relative name is from its working folder.

        Raises NoData when it does not exist, OSError when it cannot be read.
        """
        with self._paid(path):
            try:
                text = self.host.read_inside(self.root, self._begun(path), self.rights)
            finally:
                self.changed = max(self.changed, self.host.found_changed)
        self.spend(len(text))
        return text

    def included(self, folder: str, is_one: Callable[[str], bool], settings: Settings, left: list[int]) -> list[str]:
        """The files of an included folder in their order. The folder is one of those that may be read."""
        if not settings.has_room(left):
            return []
        try:
            with self._paid(folder):
                names = self.host.names_inside(self.root, self._begun(folder), self.rights)
                self.changed = max(self.changed, self.host.found_changed)
        except (NoData, OSError) as error:
            reason = getattr(error, "strerror", None) or "not readable"
            settings.missing(f"{folder.rpartition('/')[2]}: {reason.lower()}")
            return []
        self.spend(sum(map(len, names)))
        names = list(filter(is_one, names))
        if len(names) > left[0]:
            settings.missing(f"{len(names) - left[0]} more configuration files than the {MAX_FILES} that are read")
        return names[: left[0]]

    def has_file(self, path: str) -> bool:
        """Whether there is a file of this name, as the server sees it. False when this user may not look."""
        with suppress(TooMuchError), self._paid(path):
            return self.host.is_inside(self.root, self._begun(path), self.rights)
        return False

    def named_at_start(self, path: str) -> str | None:
        """A relative name on its command line: from PWD, where a shell started it, which it may have left since. None
        where nothing is there, or this user may not look."""
        start = self.environment(["PWD"]).get("PWD", "")
        found = f"./{path}" if start == self.folder() else f"{start}/{path}"
        return found if start.startswith("/") and self.has_file(found) else None

    def try_read(self, path: str, settings: Settings, *, must_exist: bool = False) -> str | None:
        """A configuration file; one that may not be read is noted, one that does not exist only when it must."""
        try:
            return self.read(path)
        except NoData:
            if must_exist:
                settings.missing(f"{path.rpartition('/')[2]}: does not exist")
        except OSError as error:
            settings.missing(f"{path.rpartition('/')[2]}: {(error.strerror or 'not readable').lower()}")
        return None

    def folder(self) -> str | None:
        """Its working folder, as it sees it; None when this user may not look."""
        return self.host.read_link(f"proc/{self.main.pid}/cwd")

    def environment(self, names: Iterable[str]) -> dict[str, str]:
        """Only the named variables. Empty when this user may not look."""
        wanted = set(names)
        text = self._of_process("environ") or ""
        pairs = (entry.partition("=") for entry in text.split("\0"))
        return {name: value for name, _, value in pairs if name in wanted}

    def mapped_libraries(self) -> set[str] | None:
        """Names of the shared objects that it runs with; None when this user may not look, or it was too much."""
        text = self._of_process("maps")
        return None if text is None else set(re.findall(r"/([^/\n]+)\.so(?: \(deleted\))?$", text, re.MULTILINE))

    def hides_environment(self) -> bool:
        """Whether this user may not look into its environment, or it was too much."""
        return self._of_process("environ") is None

    def spend(self, count: int) -> None:
        """Count what was read of it."""
        foreign(self.host).spend(self.main.account, count)

    def _begun(self, path: str) -> str:
        """A path that is absolute, or from its working folder where that can be entered: not in a captured tree."""
        path = f".{path[len(CWD) :]}" if path.startswith(f"{CWD}/") else path
        return path if path.startswith("/") or self.rights is not None else f"{self.folder() or ''}/{path}"

    @contextmanager
    def _paid(self, path: str) -> Iterator[None]:
        """A path is as much as its characters, and the parts that it leads through: links make many of few."""
        self._require_room()
        before = self.host.followed
        try:
            yield
        finally:
            self.spend(len(path) + PART_BYTES * (self.host.followed - before))

    def _require_room(self) -> None:
        try:
            foreign(self.host).require(self.main.account)
        except TooMuchError:
            self.is_unfinished = self.is_cut = True
            raise

    def _of_process(self, name: str) -> str | None:
        """A file of its folder in /proc, read once per look; None when this user may not."""
        if name not in self._read:
            try:
                self._require_room()
            except TooMuchError:
                return None
            self._read[name] = self.host.read_optional(f"proc/{self.main.pid}/{name}", MAX_RECORD_BYTES)
            self.spend(len(self._read[name] or ""))
        return self._read[name]


@dataclass
class Facts:
    """What an engine's reader found out about a server."""

    settings: Settings
    version: str | None = None
    version_source: str | None = None
    port: int | None = None
    """As its settings name it: a part of the server's key, which stays when a default is written out."""
    listens_on: int | None = None
    """As the running server says; it goes before ``port`` wherever a person reads it."""
    config_file: str | None = None
    socket_folder: str | None = None
    """These two and ``instance`` stay on the node: no report holds a path."""
    product: str | None = None
    instance: str | None = None
    """What tells this server from others of the same unit: a data folder, a SID."""


def roots_of(found: list[Process]) -> list[Process]:
    """Those that none of them started."""
    pids = {process.pid for process in found}
    return sorted((process for process in found if process.parent_pid not in pids), key=lambda one: one.pid)


@dataclass(frozen=True)
class Engine:
    """An engine: how its processes are called, what belongs to a server, and how its settings are read."""

    name: str
    commands: frozenset[str]
    describe: Callable[[Server], Facts]
    has_child_processes: bool = False
    starts_others: bool = False
    """Whether one may start another that is a server of its own: Elasticsearch's small launcher, its large server."""
    shares_segment: bool = False
    """Whether its buffer pool is a shared mapping; else it is private memory of one process."""
    group: Callable[[Host, ProcessTable, list[Process]], list[tuple[Process, list[Process]]]] | None = None
    """For engines whose processes have no common parent."""
    count_clients: Callable[[Server], int] | None = None
    """How many clients its processes serve now; None for engines with threads."""


def option_pairs(arguments: Iterable[str]) -> list[tuple[str, str | None]]:
    """``--name=value`` and ``--name value`` of a command line, without hyphens; None where no value follows."""
    found: list[tuple[str, str | None]] = []
    words = list(arguments)
    for position, word in enumerate(words):
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        if equals:
            found.append((name, value))
        elif position + 1 < len(words) and not words[position + 1].startswith("-"):
            found.append((name, words[position + 1]))
        else:
            found.append((name, None))
    return found


def port_number(text: str | None) -> int | None:
    """A port in text form; None when it is none."""
    return int(text) if text and re.fullmatch(r"\d{1,5}", text.strip()) else None


def no_settings(_server: Server) -> Facts:
    """For engines whose settings cannot be read from files without their own tools."""
    settings = Settings(frozenset())
    settings.missing("its settings are not in a readable file")
    return Facts(settings)


def plain_lines(text: str, settings: Settings, comment: str = "#;") -> Iterator[str]:
    """Lines without comments and surrounding blanks, empty ones left out."""
    return (line for line in lines_of(text, settings) if line and line[0] not in comment)
