"""sysctl.d files: vm.nr_hugepages and its neighbours, as systemd-sysctl and the kernel take them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final, TypeVar

from hugeplan.lint.kinds.lines import Line, Pair, lines_of, matches, pairs_of
from hugeplan.lint.model import Context, Edit, Notes, PoolFact, Reading, Source, attention, wrong
from hugeplan.planner.memory.kernel_words import memparse
from hugeplan.planner.pages import counted_pages
from hugeplan.planner.units import format_bytes

KIND: Final = "sysctl"
_VM: Final = "Documentation/admin-guide/sysctl/vm.rst"
_PARSER: Final = "kernel/sysctl.c proc_doulongvec_minmax(): a written number must end at a blank or the line's end"

NOT_A_COUNT: Final = wrong(
    "sysctl-not-a-count", "vm.nr_hugepages and its neighbours take a whole number of pages.", _PARSER
)
UNKNOWN: Final = wrong(
    "sysctl-unknown-name", "A sysctl that does not exist is skipped with a line in the journal.", _VM
)
TWICE: Final = attention("sysctl-set-twice", "The last value wins.", "sysctl.d(5)")
SHRUNK: Final = wrong("sysctl-set-again-smaller", "The last value wins, here one of half or less.", "sysctl.d(5)")
NO_EQUALS: Final = wrong("sysctl-no-equals", "Each line of sysctl.d is name = value.", "sysctl.d(5)")
OVERCOMMIT: Final = attention(
    "sysctl-overcommit",
    "nr_overcommit_hugepages lets the pool grow beyond the plan with pages taken from everybody else.",
    "Documentation/admin-guide/mm/hugetlbpage.rst",
)
GIGANTIC_OVERCOMMIT: Final = wrong(
    "sysctl-gigantic-overcommit",
    "The kernel refuses nr_overcommit_hugepages where the default size is gigantic.",
    "mm/hugetlb.c hugetlb_overcommit_handler(): -EINVAL",
)
GROUP: Final = wrong("sysctl-group-not-a-number", "vm.hugetlb_shm_group takes a numeric group id.", _VM)
SWITCH: Final = wrong("sysctl-switch", "vm.hugetlb_optimize_vmemmap takes 0 or 1.", _VM)
MEMPOLICY: Final = attention(
    "sysctl-mempolicy",
    "vm.nr_hugepages_mempolicy follows the memory policy of the process that writes it, which in sysctl.d is none.",
    "Documentation/admin-guide/mm/hugetlbpage.rst",
)
SHMMAX: Final = wrong(
    "sysctl-shmmax-below-pool",
    "A System V segment cannot be larger than kernel.shmmax bytes; shmget fails with EINVAL.",
    "ipc/shm.c newseg()",
)
TOO_MUCH: Final = wrong(
    "sysctl-more-than-memory", "A pool larger than memory is granted in part and leaves nothing for the system.", _VM
)

_TOTALS: Final = ("vm.nr_hugepages", "vm.nr_hugepages_mempolicy")
_COUNTS: Final = ("vm.nr_overcommit_hugepages", *_TOTALS)
_NAMES: Final = (
    *_COUNTS,
    "vm.hugetlb_shm_group",
    "vm.hugetlb_optimize_vmemmap",
    "vm.min_free_kbytes",
    "vm.overcommit_hugepages",
    "kernel.shmmax",
    "kernel.shmall",
    "kernel.shmmni",
)
_KNOWN: Final = tuple(name for name in _NAMES if name != "vm.overcommit_hugepages")
_PATTERN: Final = re.compile(r"[*?\[]")
_LINE: Final = re.compile(r"^-?[a-z]++[./][\w./*-]++[ \t]*+=[ \t]*+\S", re.M)
_File = TypeVar("_File")


def detects(source: Source) -> bool:
    """Lines of ``vm.x = y``; anything dotted on the left of = with vm, kernel, net or fs in front."""
    pairs = list(pairs_of(source.text))
    if any("=" in (pair.value or "") for pair in pairs):
        return False
    keys = [pair.key.lstrip("-").replace("/", ".") for pair in pairs]
    dotted = [key for key in keys if key.split(".")[0] in {"vm", "kernel", "net", "fs", "user"}]
    return bool(dotted) and len(dotted) * 2 >= len(keys)


def read(source: Source, context: Context) -> Reading:
    """The values in force after the file, and what the kernel would refuse."""
    notes = Notes()
    last: dict[str, tuple[Pair, int | None]] = {}
    accepted: dict[str, str] = {}
    for line in lines_of(source.text):
        if not line.is_comment and "=" not in line.text:
            _no_equals(line, notes)
    for pair in pairs_of(source.text):
        name = re.sub(r"[./]+", ".", pair.key.removeprefix("-").strip()).strip(".")
        if pair.value is None or _PATTERN.search(name):
            # -NAME without a value takes the name out of what patterns write.
            if pair.key[0] == "-" or pair.value is not None:
                last.pop(name, None)
                last[name] = (pair, count_of(pair.value or ""))
        elif "hugep" in name or "huge_p" in name or "hugetlb" in name or name.startswith("kernel.shm"):
            before = len(notes.problems)
            value = _check(pair, name, notes, context)
            is_refused = any(problem.rule is NOT_A_COUNT for problem in notes.problems[before:])
            earlier, later = accepted.get(name, pair.value), pair.value
            if not is_refused:
                accepted[name] = later
            if earlier != later and not is_refused:
                less = earlier.isdecimal() and later.isdecimal() and 2 * int(later) <= int(earlier)
                said = f"{name} is set again: {later} replaces {earlier}" + (
                    ", so what was sized for the larger count does not get its pages." if less else "."
                )
                fix = "Keep one line."
                notes.problem(SHRUNK if less and name == "vm.nr_hugepages" else TWICE, pair.key_start, name, said, fix)
            if name in last and last[name][0].value != pair.value:
                del last[name]  # it is written where it stands last
            last[name] = (pair, value)
    totals = [(pair, PoolFact(pages=value, key=name)) for name, (pair, value) in last.items() if _totals(name)]
    notes.facts += [fact for _, fact in totals]
    pool = next(reversed(written(totals)), None)
    _together({name: item for name, item in last.items() if item[1] is not None}, pool, notes, context)
    return notes.reading(KIND, "sysctl.d file")


def written(facts: Iterable[tuple[_File, PoolFact]]) -> list[tuple[_File, PoolFact]]:
    """Of the assignments of all files, in the order of their names, those that systemd-sysctl makes, in its order.

    Of one name it makes the last alone, and where the kernel refuses that, none. A pattern writes to the names that
    have no assignment of their own.
    """
    last: dict[str, tuple[_File, PoolFact]] = {}
    for file, fact in facts:
        if fact.key in last and last[fact.key][1].pages != fact.pages:
            del last[fact.key]
        last[fact.key] = file, fact
    made = (key for key in last if key in _TOTALS or any(name not in last for name in _totals(key)))
    return [last[key] for key in made if last[key][1].pages is not None]


def _totals(name: str) -> list[str]:
    """The pool's names that a name or a pattern stands for."""
    if not _PATTERN.search(name):
        return [name] if name in _TOTALS else []
    return [total for total in _TOTALS if matches(name.replace(".", "/"), total.replace(".", "/"))]


def _no_equals(line: Line, notes: Notes) -> None:
    found = re.match(r"\s*+-?((?:vm|kernel)[./][\w./]++)\s*+:?\s*+(\S++)\s*+$", line.text)
    if found:
        edit = Edit(line.start, line.end, f"{found[1]} = {found[2]}")
        said = f"{line.text.strip()!r} has no =, so it is not applied."
        notes.problem(NO_EQUALS, line.start, line.text.strip(), said, f"Write {found[1]} = {found[2]}.", edit)


def _check(pair: Pair, name: str, notes: Notes, context: Context) -> int | None:
    value = pair.value or ""
    if name not in _KNOWN:
        if name.startswith("vm.") or name.split(".", maxsplit=1)[0] not in {"fs", "net", "user"}:
            near = _nearest(name)
            said = f"There is no sysctl {name}."
            otherwise = "Leave the line out."
            notes.rewrite(
                UNKNOWN, (pair.key_start, pair.key_start + len(pair.key)), name, said, near, otherwise=otherwise
            )
        return None
    if name in _COUNTS:
        return _count(pair, name, value, notes, context)
    if name == "vm.hugetlb_shm_group" and not value.isdecimal():
        said = f"{name} = {value}: the kernel takes a number and refuses this."
        notes.problem(GROUP, pair.value_start, value, said, "Write the group's id, as getent group NAME shows it.")
        return None
    if name == "vm.hugetlb_optimize_vmemmap" and value not in {"0", "1"}:
        meant = "1" if value.lower() in {"on", "yes", "true", "y"} else "0"
        said = f"{name} = {value} is refused."
        notes.rewrite(SWITCH, (pair.value_start, pair.value_end), value, said, meant, fix=f"Write {name} = {meant}.")
        return None
    return int(value) if value.isdecimal() else None


def _nearest(name: str) -> str | None:
    tail = name.rsplit(".", maxsplit=1)[-1]
    if tail in {"hugepages", "nr_huge_pages", "nr_hugepage", "hugepage", "num_hugepages"}:
        return "vm.nr_hugepages"
    if tail in {"overcommit_hugepages", "nr_overcommit_hugepage"}:
        return "vm.nr_overcommit_hugepages"
    return next(iter(difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.75)), None)


def _count(pair: Pair, name: str, value: str, notes: Notes, context: Context) -> int | None:
    first = value.split(maxsplit=1)[0] if value.split() else ""
    count = count_of(value)
    if count is None:
        pages = _pages_of_size(first, context)
        edits = () if pages is None else (Edit(pair.value_start, pair.value_end, str(pages)),)
        hint = f" ({pages} pages hold {first})" if pages is not None else ""
        said = f"{name} = {value}: the kernel takes a number of pages and refuses this, and no earlier one is written."
        fix = f"Write the number of pages{hint}; counts per NUMA node go to /sys/devices/system/node/node*/hugepages."
        notes.problem(NOT_A_COUNT, pair.value_start, value, said, fix, *edits)
        return None
    if name == "vm.nr_hugepages_mempolicy":
        notes.rewrite(
            MEMPOLICY,
            (pair.key_start, pair.key_start + len(pair.key)),
            name,
            f"{name} has no memory policy to follow here: it acts like vm.nr_hugepages.",
            "vm.nr_hugepages",
            fix="Write vm.nr_hugepages, or counts per NUMA node in /sys.",
        )
    return count


def count_of(value: str) -> int | None:
    """A count as the kernel reads it in /proc/sys: 010 is 8. None: it refuses it."""
    first = value.split(maxsplit=1)[0] if value.split() else ""
    return memparse(first) if re.fullmatch(r"0[0-7]*|[1-9][0-9]*|0[xX][0-9a-fA-F]+", first) else None


def _pages_of_size(text: str, context: Context) -> int | None:
    found = re.fullmatch(r"([1-9][0-9]*[kmgt])i?b?", text.lower())
    return None if found is None else -(-memparse(found[1]) // (context.default_page_bytes or context.pmd_bytes))


def _together(
    values: dict[str, tuple[Pair, int | None]], pool: tuple[Pair, PoolFact] | None, notes: Notes, context: Context
) -> None:
    size = context.default_page_bytes or context.pmd_bytes
    usual = "" if context.default_page_bytes else ", where the default size is the usual one"
    pages = 0 if pool is None else pool[1].pages or 0
    pool_bytes = pages * size
    if pool is not None:
        notes.effects.append(
            f"asks for {counted_pages(pages, size)} ({format_bytes(pool_bytes)}) in all NUMA nodes together{usual}"
        )
        notes.effects.append("the kernel grants what it finds: compare HugePages_Total afterwards")
        if context.mem_total_bytes is not None and pool_bytes >= context.mem_total_bytes:
            said = (
                f"{counted_pages(pages, size)} are {format_bytes(pool_bytes)} of "
                f"{format_bytes(context.mem_total_bytes)} of memory."
            )
            fix = "Reserve less than the memory there is."
            notes.problem(TOO_MUCH, pool[0].value_start, pool[0].value or "", said, fix)
    over = values.get("vm.nr_overcommit_hugepages")
    if over is not None and over[1]:
        gigantic = context.default_page_bytes is not None and context.default_page_bytes > context.pmd_bytes
        rule = GIGANTIC_OVERCOMMIT if gigantic else OVERCOMMIT
        notes.rewrite(
            rule,
            (over[0].value_start, over[0].value_end),
            over[0].value or "",
            f"vm.nr_overcommit_hugepages = {over[1]}: "
            + ("refused for gigantic pages." if gigantic else f"up to {counted_pages(over[1], size)} beyond the pool."),
            "0",
            fix="Write vm.nr_overcommit_hugepages = 0 and reserve what is needed.",
        )
    shmmax = values.get("kernel.shmmax")
    if shmmax is not None and shmmax[1] is not None and pool_bytes and shmmax[1] < pool_bytes:
        segment = pool_bytes
        if shmmax[1] * 2 < pool_bytes:  # half a pool per segment is a choice, less is a forgotten old value
            notes.rewrite(
                SHMMAX,
                (shmmax[0].value_start, shmmax[0].value_end),
                shmmax[0].value or "",
                f"kernel.shmmax = {shmmax[1]} ({format_bytes(shmmax[1])}) is far below "
                f"the pool of {format_bytes(segment)}.",
                str(segment),
                fix=f"Write kernel.shmmax = {segment}; a larger one does no harm.",
            )
