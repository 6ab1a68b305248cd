"""Kernel command lines: /proc/cmdline, /etc/kernel/cmdline, GRUB's defaults, boot loader entries, grubby calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hugeplan.lint.kernel import rules
from hugeplan.lint.kernel.check import check_words, has_huge_page_words
from hugeplan.lint.model import Context, Notes, Reading, Source
from hugeplan.planner.memory.kernel_words import Word, words_of

KIND: Final = "kernel_command_line"
_ASSIGNMENT: Final = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)(?P<append>\+)?=
    (?P<quote>["']?)(?P<value>(?:(?!(?P=quote)).|(?<=\\)["'])*?)(?P=quote)[ \t]*(?:\#.*)?$""",
    re.M | re.X,
)
_OPTIONS: Final = re.compile(
    r"^[ \t]*(?:options|append|APPEND|kernelopts=|linux(?:16|efi)?)[ \t=]+(?P<value>.*)$", re.M
)
_GRUBBY: Final = re.compile(r"""--args[= ](?P<quote>["'])(?P<value>.*?)(?P=quote)""")
_WORD: Final = re.compile(
    r"(?<![\w./-])(?:default_)?huge_?pages?\w*+\s*+=|(?<![\w./-])transparent_hugepage\w*+=|(?<![a-z_])hugetlb_\w++="
)

#: Words of nearly every boot: a line with one of them is a command line, also without a huge page word.
_BOOT_WORD: Final = re.compile(r"(?:^|\s)(?:BOOT_IMAGE|root|rdinit|init|console|panic|initrd)=")


@dataclass(frozen=True, slots=True)
class _Segment:
    text: str
    offset: int


def detects(source: Source) -> bool:
    """A GRUB or boot loader file, a line with words of a boot, or lines with huge page parameters among their words."""
    text = source.text
    if _ASSIGNMENT.search(text) or _GRUBBY.search(text):
        return True
    if re.search(r"^[ \t]*options[ \t]", text, re.M) and re.search(
        r"^[ \t]*(title|linux|initrd|version)[ \t]", text, re.M
    ):
        return True
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) == 1 and " " in lines[0].strip() and _BOOT_WORD.search(lines[0]):
        return True
    if re.search(r"[{}]", text):  # a program or a structure, such as Terraform's
        return False
    return 0 < len(lines) <= 3 and bool(_WORD.search(text) or ("nr_hugepages" in text and " " in lines[0].strip()))


def read(source: Source, context: Context) -> Reading:
    """The command line that boot will use, replayed."""
    notes = Notes()
    segments, loader = _segments(source.text, notes)
    words: list[Word] = [word for part in segments for word in words_of(part.text, part.offset)]
    words = [word for word in words if not word.text.startswith("$")]
    if has_huge_page_words(words):
        check_words(words, notes, context)
    else:
        notes.effects.append("says nothing about huge pages")
    return notes.reading(KIND, f"kernel command line ({loader})")


def _segments(text: str, notes: Notes) -> tuple[list[_Segment], str]:
    assignments = list(_ASSIGNMENT.finditer(text))
    if assignments:
        return _grub(assignments, notes), "GRUB"
    grubby = [_Segment(m["value"], m.start("value")) for m in _GRUBBY.finditer(text)]
    if grubby:
        return grubby, "grubby"
    options = [_Segment(m["value"], m.start("value")) for m in _OPTIONS.finditer(text)]
    if options and re.search(r"^[ \t]*(title|linux|initrd|version|LABEL|label)[ \t]", text, re.M):
        return options, "boot loader entry"
    found = []
    offset = 0
    for line in text.splitlines(keepends=True):
        if not line.lstrip().startswith("#"):
            found.append(_Segment(line, offset))
        offset += len(line)
    return found, "words"


def _grub(assignments: list[re.Match[str]], notes: Notes) -> list[_Segment]:
    """What GRUB_CMDLINE_LINUX and then GRUB_CMDLINE_LINUX_DEFAULT hold at the end of the file."""
    held: dict[str, list[_Segment]] = {"GRUB_CMDLINE_LINUX": [], "GRUB_CMDLINE_LINUX_DEFAULT": []}
    for match in assignments:
        name, value = match["name"], match["value"]
        segment = _Segment(value, match.start("value"))
        keeps = match["append"] or re.search(rf"\$\{{?{name}\}}?(?!\w)", value)
        if not keeps:
            for dropped in held[name]:
                lost = words_of(dropped.text, dropped.offset)
                if has_huge_page_words(lost):
                    said = f"{name} is assigned again further down, so the huge page words here have no effect."
                    fix = f'Write {name}="${name} ..." in the later line, or keep one assignment.'
                    notes.problem(rules.REPLACED, dropped.offset, name, said, fix)
            held[name] = []
        held[name].append(segment)
    return [*held["GRUB_CMDLINE_LINUX"], *held["GRUB_CMDLINE_LINUX_DEFAULT"]]
