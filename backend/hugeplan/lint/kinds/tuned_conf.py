"""TuneD profiles: [sysctl], [vm] and [bootloader]."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from hugeplan.lint.kernel.check import check_words, has_huge_page_words
from hugeplan.lint.kinds import sysctl
from hugeplan.lint.kinds.lines import Pair, pairs_of
from hugeplan.lint.model import Context, Notes, PoolFact, Reading, Source, attention, wrong
from hugeplan.planner.memory.kernel_words import Word, words_of

KIND: Final = "tuned_conf"
SECTION: Final = wrong(
    "tuned-section", "sysctls belong in [sysctl], kernel arguments in [bootloader].", "tuned-profiles(7)"
)
THP_BOTH: Final = attention(
    "tuned-thp-ignored",
    "[vm] transparent_hugepages is ignored while transparent_hugepage= is on the kernel command line.",
    "redhat-performance/tuned tuned/plugins/plugin_vm.py",
)
THP_VALUE: Final = wrong("tuned-thp-value", "transparent_hugepages takes always, madvise or never.", "TuneD vm plugin")


def detects(source: Source) -> bool:
    """A profile with [main] or [bootloader] beside TuneD's other sections."""
    sections = {pair.section for pair in pairs_of(source.text)}
    return bool(
        sections & {"bootloader", "sysctl"} or ("main" in sections and sections & {"vm", "sysctl", "bootloader"})
    )


def read(source: Source, context: Context) -> Reading:
    """What the profile sets."""
    notes = Notes()
    check(source.text, notes, context)
    return notes.reading(KIND, "TuneD profile")


def check(text: str, notes: Notes, context: Context) -> None:
    """Note the problems of a tuned.conf's text."""
    lines: list[Pair] = []
    thp: Pair | None = None
    for pair in pairs_of(text):
        value = pair.value or ""
        if pair.section == "bootloader" and pair.key.startswith("cmdline"):
            lines.append(pair)
        elif pair.section == "vm" and pair.key == "transparent_hugepages":
            thp = pair
            if value not in {"always", "madvise", "never"}:
                said = f"{value!r} is not a value."
                notes.rewrite(THP_VALUE, (pair.value_start, pair.value_end), value, said, "madvise")
        elif pair.section != "sysctl" and pair.key.startswith("vm."):
            said = f"{pair.key} is in [{pair.section}]."
            notes.problem(SECTION, pair.key_start, pair.key, said, "Move it to [sysctl].")
        elif pair.section != "bootloader" and re.match(r"(default_)?hugepages", pair.key):
            said = f"{pair.key} is in [{pair.section}]."
            fix = "Write it in [bootloader] as cmdline_hugepages=+...."
            notes.problem(SECTION, pair.key_start, pair.key, said, fix)
    _sysctls(text, notes, context)
    words = _command_line(lines)
    if has_huge_page_words(words):
        check_words(words, notes, context)
    if thp is not None and any(word.name == "transparent_hugepage" for word in words):
        said = "The command line decides THP here."
        notes.problem(THP_BOTH, thp.key_start, "transparent_hugepages", said, "Keep one of the two.")


def _command_line(lines: list[Pair]) -> list[Word]:
    """The words of all cmdline options, joined in the order of the options' names, whatever their order in the file.

    A value begins with + or with the first word, which is the same; with - it takes words away again.
    Source: redhat-performance/tuned tuned/plugins/plugin_bootloader.py _get_effective_options().
    """
    words: list[Word] = []
    for pair in sorted(lines, key=lambda one: one.key):
        value = pair.value or ""
        if value.startswith("-"):
            gone = {word.text for word in words_of(value[1:], 0)}
            words = [word for word in words if word.text not in gone]
        else:
            taken = len(value) - len(value.removeprefix("+"))
            words += words_of(value[taken:], pair.value_start + taken)
    return words


def _sysctls(text: str, notes: Notes, context: Context) -> None:
    """The [sysctl] section as a sysctl.d file with the rest blanked out, so that offsets stay."""
    lines = []
    inside = False
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[([^\]]*)\]", line)
        if header:
            inside = header[1] == "sysctl"
            lines.append(re.sub(r"[^\n]", " ", line))
        else:
            lines.append(line if inside else re.sub(r"[^\n]", " ", line))
    inner = sysctl.read(Source("", "".join(lines)), context)
    made = sysctl.written((None, fact) for fact in inner.facts if isinstance(fact, PoolFact))
    notes.take(replace(inner, facts=tuple(fact for _, fact in made[-1:])))
