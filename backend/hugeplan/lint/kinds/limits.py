"""limits.d: memlock for engines that lock System V segments."""

from __future__ import annotations

import re
from typing import Final

from hugeplan.lint.kinds.lines import lines_of
from hugeplan.lint.model import Context, Edit, MemlockFact, Notes, Reading, Source, wrong
from hugeplan.planner.units import format_bytes

KIND: Final = "limits"
_MAN: Final = "limits.conf(5)"
ITEM: Final = wrong("limits-item", "The item is memlock.", _MAN)
TYPE: Final = wrong("limits-type", "The second field is soft, hard or -.", _MAN)
VALUE: Final = wrong("limits-value", "memlock is a number of KiB, or unlimited.", _MAN)
FIELDS: Final = wrong("limits-fields", "A line has four fields: domain type item value.", _MAN)
SOFT: Final = wrong("limits-soft-above-hard", "A soft limit cannot exceed the hard limit.", _MAN)
MEMORY: Final = wrong(
    "limits-more-than-memory", "memlock counts KiB: a value above memory is most often one in bytes.", _MAN
)


#: RLIM_INFINITY: above every count.
UNLIMITED: Final = 2**64 - 1


def detects(source: Source) -> bool:
    """A line with soft, hard or - second and locked memory third: other files have each of them somewhere."""
    rows = [line.text.split() for line in lines_of(source.text) if not line.is_comment]
    return any(len(row) >= 3 and row[1] in {"soft", "hard", "-"} and row[2].startswith("mem") for row in rows)


def read(source: Source, context: Context) -> Reading:
    """The limits in KiB."""
    notes = Notes()
    values: dict[tuple[str, str], tuple[int, int]] = {}
    for line in lines_of(source.text):
        words = line.text.split("#")[0].split()
        if line.is_comment or not any("mem" in word.lower() for word in words):
            continue
        if len(words) != 4:
            said = f"The line has {len(words)} fields."
            notes.problem(FIELDS, line.start, line.text.strip(), said, "Write: oracle hard memlock 60397977")
            continue
        domain, kind, item, value = words
        if item != "memlock":
            at = line.start + line.text.index(item, line.text.index(kind) + len(kind))
            said = f"There is no item {item}; the line is skipped."
            notes.problem(ITEM, line.start, item, said, "Write memlock.", Edit(at, at + len(item), "memlock"))
        if kind not in {"soft", "hard", "-"}:
            at = line.start + line.text.index(kind, len(domain))
            said = f"{kind} is not soft, hard or -."
            notes.problem(TYPE, line.start, kind, said, "Write - for both.", Edit(at, at + len(kind), "-"))
        _value(line.start + line.text.rindex(value), (domain, kind, value), values, notes, context)
    for (domain, kind), (kib, at) in values.items():
        if kind in {"hard", "-"} and kib != UNLIMITED:
            notes.facts.append(MemlockFact(owner=domain, limit_bytes=kib * 1024, position=at))
    for (domain, kind), (soft, at) in values.items():
        hard = values.get((domain, "hard"))
        if kind == "soft" and hard is not None and soft > hard[0]:
            text = "unlimited" if soft == UNLIMITED else str(soft)
            notes.problem(SOFT, at, text, f"{domain}: soft {text} is above hard {hard[0]}.", "Make both equal.")
    return notes.reading(KIND, "limits.d file")


def _value(
    at: int,
    row: tuple[str, str, str],
    values: dict[tuple[str, str], tuple[int, int]],
    notes: Notes,
    context: Context,
) -> None:
    domain, kind, value = row
    if value in {"unlimited", "infinity", "-1"}:
        notes.effects.append(f"{domain} may lock memory without limit ({kind})")
        values[domain, kind] = (UNLIMITED, at)
        return
    if not value.isdecimal():
        found = re.fullmatch(r"(\d+)([kKmMgGtT])i?[bB]?", value)
        factor = {"k": 1, "m": 2**10, "g": 2**20, "t": 2**30}
        right = None if found is None else str(int(found[1]) * factor[found[2].lower()])
        notes.rewrite(VALUE, at, value, f"{value!r} is not a number of KiB.", right, otherwise="Write unlimited.")
        return
    count = int(value)
    notes.effects.append(f"{domain} may lock {format_bytes(count * 1024)} ({kind})")
    values[domain, kind] = (count, at)
    if context.mem_total_bytes is not None and count * 1024 > 64 * context.mem_total_bytes:
        said = f"{value} KiB are {format_bytes(count * 1024)}."
        notes.rewrite(MEMORY, (at, at + len(value)), value, said, str(count // 1024), fix=f"Write {count // 1024}.")
