"""What the linter reads and says: sources, rules, problems, and what a file will really do.

Everything is plain data. Offsets count characters of the source's text from 0, lines from 1. ``None`` means unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from hugeplan.planner.model import GIB, KIB, MIB
from hugeplan.planner.pages import huge_page_sizes, usual_default_size


class Severity(StrEnum):
    """``wrong``: the file does not do what it says. ``attention``: it works, but needs attention."""

    WRONG = "wrong"
    ATTENTION = "attention"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a stable id, how bad it is to break it, the rule in one sentence, and where it is written down.

    ``fix`` is what to do in general words; a problem's own fix says it with the values of the file.
    """

    id: str
    severity: Severity
    sentence: str
    source: str
    fix: str = ""


def wrong(rule_id: str, sentence: str, source: str, fix: str = "") -> Rule:
    """A rule whose breach keeps the file from doing what it says."""
    return Rule(rule_id, Severity.WRONG, sentence, source, fix)


def attention(rule_id: str, sentence: str, source: str) -> Rule:
    """A rule whose breach needs attention."""
    return Rule(rule_id, Severity.ATTENTION, sentence, source)


@dataclass(frozen=True, slots=True)
class Source:
    """A file to check: the name to show and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters from ``start`` to ``end`` (exclusive) with ``text``."""

    start: int
    end: int
    text: str


class Place(Protocol):
    """Characters of a source, such as a word or a value of it."""

    @property
    def start(self) -> int:
        """The first one's offset."""

    @property
    def end(self) -> int:
        """The offset behind the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One broken rule at one place. ``edits`` fix it; they are empty where only a person can decide.

    ``position`` is a character offset; ``subject`` the words of the file that the problem is about.
    """

    rule: Rule
    position: int
    subject: str
    message: str
    fix: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFact:
    """Pages that a file reserves. ``page_bytes`` None: the default size; ``numa_node`` None: spread by the kernel.

    ``key`` is what a line of sysctl.d sets, of which the last line counts; ``pages`` None: that line writes no count.
    ``turn``: systemd-tmpfiles writes in this order, which is not that of the lines.
    """

    pages: int | None
    page_bytes: int | None = None
    numa_node: int | None = None
    key: str = ""
    turn: tuple[bool, int] = (False, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSizeFact:
    """A kernel command line that names the default huge page size, which counts of sysctl.d are of."""

    page_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFact:
    """What one container, or one custom resource's pods, may use.

    ``hugepages`` maps a page size to a limit in bytes; ``insert_at`` and ``quantities`` say where the text holds them.
    ``engine`` is the database engine it runs, as far as image, command or resource kind tell. ``replicas`` pods run.
    ``is_whole_pod``: the limit of a pod, which its containers without one of their own share. ``tries_pages_first``:
    a new PostgreSQL cluster is made with huge_pages = try, whatever its own configuration says. ``only_requested``:
    page size, bytes and position of requests without a limit.
    """

    name: str
    hugepages: tuple[tuple[int, int], ...]
    memory_bytes: int | None
    position: int
    engine: str | None = None
    replicas: int | None = 1
    quantities: tuple[tuple[int, tuple[Edit, ...]], ...] = ()
    is_whole_pod: bool = False
    tries_pages_first: bool = False
    only_requested: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFact:
    """An engine's settings as a file gives them, verbatim. ``position`` by setting name, lower case."""

    engine: str
    settings: tuple[tuple[str, str], ...]
    version: str | None = None
    positions: tuple[tuple[str, int], ...] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletFact:
    """What a kubelet configuration holds back, in bytes; None where it does not say."""

    eviction_hard_bytes: int | None
    reserved_bytes: int | None
    position: int
    eviction_edit: tuple[int, int] | None = None
    eviction_soft_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemlockFact:
    """How much memory a user or a service may lock, in bytes. ``owner`` is the user, or ``the service``."""

    owner: str
    limit_bytes: int
    position: int


Fact = PoolFact | DefaultSizeFact | LimitFact | EngineFact | KubeletFact | MemlockFact


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one part of a file is, what it will really do, what is wrong with it, and the facts for other files.

    ``part`` names the part where a file has several (``data.postgresql.conf`` of a ConfigMap), else it is empty.
    """

    kind: str
    title: str
    effects: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: tuple[Fact, ...] = ()
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known of the machine the files are for. Every None is unknown and checked for no contradiction.

    ``kernel`` is (major, minor); ``numa_nodes`` the ids of the nodes that are online. ``tmpfiles`` grows as files of
    tmpfiles.d are read in the order of their names: what has a line, since the first line counts, its turn, and whether
    more lines may be added.
    """

    kernel: tuple[int, int] | None = None
    arch: str = "x86_64"
    base_page_bytes: int = 4 * KIB
    numa_nodes: tuple[int, ...] | None = None
    mem_total_bytes: int | None = None
    default_page_bytes: int | None = None
    tmpfiles: dict[tuple[bool, str], tuple[int, bool]] = field(default_factory=dict, compare=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Huge page sizes of the architecture, ascending, in bytes."""
        return huge_page_sizes(self.arch, self.base_page_bytes)

    @property
    def pmd_bytes(self) -> int:
        """The default huge page size where no ``default_hugepagesz`` names one."""
        return usual_default_size(self.base_page_bytes, self.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """The verdict on one file. ``fixed_text`` is the file with all edits made; None when there is nothing to edit."""

    source: Source
    readings: tuple[Reading, ...]
    fixed_text: str | None = None
    unreadable: str | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, in order of their place."""
        found = [problem for reading in self.readings for problem in reading.problems]
        return tuple(sorted(found, key=lambda p: (p.position, p.rule.id)))

    def line_of(self, position: int) -> int:
        """The line, from 1, that holds a character offset."""
        return self.source.text.count("\n", 0, position) + 1


@dataclass(slots=True)
class Notes:
    """Collects what a reader of one kind finds."""

    effects: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def problem(self, rule: Rule, position: int, subject: str, message: str, fix: str, *edits: Edit) -> None:
        """Note one broken rule."""
        self.problems.append(
            Problem(rule=rule, position=position, subject=subject, message=message, fix=fix, edits=edits)
        )

    def rewrite(
        self,
        rule: Rule,
        place: Place | tuple[int, int] | int,
        subject: str,
        message: str,
        text: str | None,
        *,
        fix: str | None = None,
        otherwise: str = "",
    ) -> None:
        """Note one broken rule that ``text`` in this place mends; None where only a person can tell what was meant.

        A number for a place is where the subject begins. The fix says what is written, unless ``fix`` has better words;
        ``otherwise`` are the words for a person.
        """
        if isinstance(place, int):
            place = place, place + len(subject)
        start, end = place if isinstance(place, tuple) else (place.start, place.end)
        edits = () if text is None else (Edit(start, end, text),)
        said = otherwise if text is None else f"Write {text}."
        self.problem(rule, start, subject, message, said if fix is None else fix, *edits)

    def take(self, inner: Notes | Reading, at: int | None = None) -> None:
        """What a text inside says. ``at``: its lines are indented there, so its problems stand there without edits."""
        self.effects += inner.effects
        self.facts += inner.facts
        self.problems += inner.problems if at is None else [replace(p, position=at, edits=()) for p in inner.problems]

    def reading(self, kind: str, title: str, part: str = "") -> Reading:
        """What was found, as data."""
        return Reading(
            kind=kind,
            title=title,
            effects=tuple(self.effects),
            problems=tuple(self.problems),
            facts=tuple(self.facts),
            part=part,
        )


__all__ = [
    "GIB",
    "KIB",
    "MIB",
    "Context",
    "DefaultSizeFact",
    "Edit",
    "EngineFact",
    "Fact",
    "FileReport",
    "KubeletFact",
    "LimitFact",
    "MemlockFact",
    "Notes",
    "PoolFact",
    "Problem",
    "Reading",
    "Rule",
    "Severity",
    "Source",
    "attention",
    "wrong",
]
