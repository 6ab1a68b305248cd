"""A guide walked from its first line to its last: commands typed as printed, what holds checked by section."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from printed import printed
from session import Done, Session


@dataclass
class Journey:
    """How a page is walked.

    Every command is typed into the session and must end with status 0, but those that ``special`` names by their
    beginning: a handler types such a command its own way (one that stays in the foreground, one for another machine).
    ``before`` and ``after`` do what is the reader's, and check what holds, by section. A name that the page does not
    have is an error, so that nothing here outlives the page.
    """

    page: str
    session: Session
    special: Mapping[str, Callable[[Session, str], Done | None]] = field(default_factory=dict)
    before: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    after: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    #: These sections alone, where several machines share a page; every section otherwise.
    only: Collection[str] = ()
    #: What a reader replaces, by what is printed.
    mine: Mapping[str, str] = field(default_factory=dict)

    def walk(self) -> None:
        """Type the page. AssertionError names the line."""
        steps = [step for step in printed(self.page) if not self.only or step[0].section in self.only]
        sections = list(dict.fromkeys(block.section for block, _ in steps))
        assert set(self.before) | set(self.after) <= set(sections), (self.page, sections)
        unused = set(self.special) - {key for key in self.special for _, one in steps if one.startswith(key)}
        assert not unused, f"{self.page} prints nothing like {unused}"
        seconds: dict[str, float] = {}
        for section in sections:
            if found := self.before.get(section):
                found()
            for block, command in steps:
                if block.section == section:
                    done = self._type(block.place, command)
                    seconds[section] = seconds.get(section, 0) + (done.seconds if done else 0)
            if found := self.after.get(section):
                found()
        parts = ", ".join(f"{name or 'top'} {spent:.0f} s" for name, spent in seconds.items())
        print(f"{self.page}: {len(steps)} commands in {sum(seconds.values()):.0f} s ({parts})")

    def _type(self, place: str, command: str) -> Done | None:
        for printed_words, theirs in self.mine.items():
            command = command.replace(printed_words, theirs)
        handler = next((self.special[key] for key in self.special if command.startswith(key)), None)
        if handler is not None:
            return handler(self.session, command)
        done = self.session.type(command)
        print(f"{place}: {command.splitlines()[0]} ({done.seconds:.1f} s)")
        assert done.status == 0, f"{place}: {command}\nended with status {done.status}:\n{done.output[-4000:]}"
        return done
