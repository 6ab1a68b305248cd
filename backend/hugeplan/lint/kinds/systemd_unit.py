"""systemd units and drop-ins that reserve huge pages or raise LimitMEMLOCK."""

from __future__ import annotations

import difflib
import re
from typing import Final

from hugeplan.lint.kinds.lines import Pair, pairs_of
from hugeplan.lint.kinds.sysfs_paths import THP_WORDS, wrong_paths, wrong_words
from hugeplan.lint.model import Context, Edit, MemlockFact, Notes, PoolFact, Reading, Source, attention, wrong
from hugeplan.planner.pages import counted_pages, page_label, sysfs_directory_name
from hugeplan.planner.units import format_bytes

KIND: Final = "systemd_unit"
SHELL: Final = wrong(
    "unit-redirection", "ExecStart= is no shell: > and && need /bin/sh -c.", "systemd.service(5), Command Lines"
)
ONESHOT: Final = attention(
    "unit-not-oneshot",
    "A unit that writes and ends is Type=oneshot, so that units ordered after it wait for the pages.",
    "systemd.service(5)",
)
LIMIT: Final = wrong("unit-limit-value", "LimitMEMLOCK= takes bytes with K, M, G or T, or infinity.", "systemd.exec(5)")
UNKNOWN: Final = wrong("unit-unknown-key", "systemd ignores unknown keys; their case counts.", "systemd.syntax(7)")
SECTION: Final = wrong("unit-section", "LimitMEMLOCK= belongs in [Service].", "systemd.exec(5)")
DIRECTORY: Final = wrong(
    "unit-size-directory", "A pool's directory is hugepages-<kB>kB.", "Documentation/admin-guide/mm/hugetlbpage.rst"
)
NO_PATH: Final = wrong(
    "unit-no-such-path",
    "A command cannot write to a file that the kernel does not have: it fails, and the setting stays as it is.",
    "Documentation/admin-guide/mm/hugetlbpage.rst, transhuge.rst",
)
THP_WORD: Final = wrong(
    "unit-thp-word",
    "enabled takes always, madvise or never; defrag also defer and defer+madvise.",
    "Documentation/admin-guide/mm/transhuge.rst",
)
SECTION_NAME: Final = wrong(
    "unit-section-name", "systemd ignores a section that it does not know; its case counts.", "systemd.syntax(7)"
)
TARGET: Final = wrong(
    "unit-no-such-target",
    "WantedBy= and RequiredBy= start a unit with another one; one that does not exist starts nothing.",
    "systemd.special(7)",
)
_SECTIONS: Final = {name.lower(): name for name in ("Unit", "Service", "Install")}
_TARGETS: Final = (
    "multi-user.target", "default.target", "graphical.target", "sysinit.target", "basic.target", "local-fs.target",
    "network.target", "network-online.target", "rescue.target", "emergency.target", "timers.target", "sockets.target",
)  # fmt: skip
TYPE: Final = wrong("unit-type", "Type= takes one of systemd's words; another is ignored.", "systemd.service(5)")
_TYPES: Final = frozenset({"simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"})
#: Keys of units that reserve pages or lock memory, by what is left of them without case and dashes.
_KEYS: Final = {
    name.lower(): name
    for name in (
        *("Description", "Documentation", "DefaultDependencies", "After", "Before", "Requires", "Wants", "Conflicts"),
        *("ConditionPathExists", "Type", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecReload"),
        *("RemainAfterExit", "Environment", "User", "Group", "LimitMEMLOCK", "LimitNOFILE"),
        *("WantedBy", "RequiredBy", "Also", "Alias"),
    )
}
#: What a unit lacks without the key.
_WITHOUT: Final = {
    "LimitMEMLOCK": "the service keeps its limit",
    "WantedBy": "nothing starts the unit at boot",
    "RequiredBy": "nothing starts the unit at boot",
    "ExecStart": "nothing is run",
    "Type": "the service is a simple one, and others do not wait for it",
    "RemainAfterExit": "the unit counts as stopped when its command ends",
    "DefaultDependencies": "it starts after basic.target, perhaps after what needs the pages",
    "Before": "what needs the pages may start first",
    "After": "it may start before what it needs",
}
_WRITE: Final = re.compile(
    r"echo\s+[\"']?(?P<count>\S+?)[\"']?\s*>\s*(?P<path>/sys/(?:devices/system/node/node(?P<node>\d+)|kernel/mm)/hugepages/(?P<dir>[^/\s]+)/nr_hugepages)"
)


def detects(source: Source) -> bool:
    """An ini file with unit sections and something about huge pages or locked memory in it."""
    sections = {(pair.section or "").lower() for pair in pairs_of(source.text)}
    return bool(sections & _SECTIONS.keys()) and bool(re.search(r"huge|limitmem|memlo", source.text, re.I))


def read(source: Source, context: Context) -> Reading:
    """What the unit writes, and what systemd would not run."""
    notes = Notes()
    pairs = list(pairs_of(source.text))
    _sections(source.text, notes)
    kind = next((p.value for p in pairs if p.key == "Type"), "simple")
    for pair in pairs:
        if pair.key.startswith("ExecStart") and pair.value is not None:
            _exec(pair, notes, context)
        elif pair.key == "LimitMEMLOCK":
            _limit(pair, notes)
        elif (meant := _meant(pair.key)) is not None:
            end = pair.key_start + len(pair.key)
            said = f"systemd has no {pair.key}= and ignores the line: {_WITHOUT.get(meant, 'it has no effect')}."
            notes.rewrite(UNKNOWN, (pair.key_start, end), pair.key, said, meant)
        elif pair.key in {"WantedBy", "RequiredBy"}:
            _targets(pair, notes)
        elif pair.section == "Service" and pair.key == "Type" and pair.value and pair.value not in _TYPES:
            _type(pair, notes)
    writes = [p for p in pairs if p.key == "ExecStart" and "hugepages" in (p.value or "")]
    if writes and kind == "simple":
        at = writes[0].line.start
        notes.problem(
            ONESHOT,
            at,
            "Type=",
            "Without Type=oneshot units ordered after this one start before the pages are there.",
            "Write Type=oneshot and RemainAfterExit=yes.",
            Edit(at, at, "Type=oneshot\nRemainAfterExit=yes\n"),
        ) if not any(p.key == "Type" for p in pairs) else None
    return notes.reading(KIND, "systemd unit")


def _meant(key: str) -> str | None:
    """The key that was meant by one that systemd does not have: it tells upper from lower case. None: it is right."""
    if key in _KEYS.values():
        return None
    plain = key.lower().replace("_", "").replace("-", "")
    if plain in _KEYS:
        return _KEYS[plain]
    is_limit = bool(difflib.get_close_matches(plain, ["limitmemlock"], n=1, cutoff=0.85)) or plain == "memlock"
    return "LimitMEMLOCK" if is_limit else None


def _sections(text: str, notes: Notes) -> None:
    for found in re.finditer(r"^[ \t]*+\[(\w+)\]", text, re.M):
        right = _SECTIONS.get(found[1].lower())
        if right is not None and found[1] != right:
            said = f"systemd has no section [{found[1]}] and ignores all lines in it."
            fix = f"Write [{right}]."
            notes.rewrite(SECTION_NAME, (found.start(1), found.end(1)), found[0].strip(), said, right, fix=fix)


def _targets(pair: Pair, notes: Notes) -> None:
    """Misspelt targets of systemd itself; a name of one's own may exist."""
    for found in re.finditer(r"\S+", pair.value or ""):
        name = found[0]
        near = next(iter(difflib.get_close_matches(name.lower(), _TARGETS, n=1, cutoff=0.85)), None)
        if near is None or name in _TARGETS or not name.lower().endswith((".target", ".targets")):
            continue
        at = pair.value_start + found.start()
        said = f"systemd has no {name}: nothing starts the unit at boot."
        notes.rewrite(TARGET, (at, at + len(name)), f"{pair.key}={name}", said, near)


def _type(pair: Pair, notes: Notes) -> None:
    plain = (pair.value or "").lower().replace("_", "").replace("-", "")
    plain = "notify-reload" if plain == "notifyreload" else plain
    meant, span = plain if plain in _TYPES else None, (pair.value_start, pair.value_end)
    said = f"{pair.value!r} is ignored with a warning: the service is a simple one."
    notes.rewrite(TYPE, span, f"Type={pair.value}", said, meant, fix=f"Write Type={meant or 'oneshot'}.")


def _exec(pair: Pair, notes: Notes, context: Context) -> None:
    value = pair.value or ""
    command = value.lstrip("-+!@:")
    first = command.split()[0] if command.split() else ""
    in_shell = bool(re.match(r"(/usr)?/bin/(ba|da)?sh$", first)) or first in {"sh", "bash"}
    operator = None if in_shell else re.search(r"(?<![0-9&])(>>?|&&|\|)\s*\S", value)
    if operator is not None:
        edit = Edit(pair.value_start, pair.value_end, f"/bin/sh -c '{value}'")
        said = f"systemd passes {operator[1]} to the command as a word: nothing is written."
        fix = f"Write ExecStart=/bin/sh -c '{value}'."
        notes.problem(SHELL, pair.value_start, value, said, fix, *(() if "'" in value else (edit,)))
    for item in wrong_paths(value):
        at = pair.value_start + item.start
        said = f"There is no {item.path}: the command fails, and nothing is set."
        notes.rewrite(NO_PATH, at, item.path, said, item.meant, otherwise="Write a path that ls shows on the machine.")
    for wrong_word in wrong_words(value):
        at = pair.value_start + wrong_word.start
        meant_word = wrong_word.meant
        said = f"The kernel refuses {wrong_word.word} in {wrong_word.path}: the mode stays as it is."
        otherwise = f"Write one of {', '.join(THP_WORDS[wrong_word.path])}."
        notes.rewrite(THP_WORD, at, wrong_word.word, said, meant_word, otherwise=otherwise)
    for found in _WRITE.finditer(value):
        exact = re.fullmatch(r"hugepages-(\d+)kB", found["dir"])
        size = int(exact[1]) * 1024 if exact else None
        if size not in context.sizes:
            names = {page_label(s).lower(): sysfs_directory_name(s) for s in context.sizes}
            meant = next((name for label, name in names.items() if label in found["dir"].lower()), None)
            at = pair.value_start + found.start("dir")
            said = f"There is no directory {found['dir']}."
            otherwise = f"Use one of {', '.join(names.values())}."
            notes.rewrite(DIRECTORY, at, found["dir"], said, meant, otherwise=otherwise)
        elif found["count"].isdecimal() and size is not None:
            node = None if found["node"] is None else int(found["node"])
            where = "" if node is None else f" on NUMA node {node}"
            notes.effects.append(f"asks for {counted_pages(int(found['count']), size)}{where}")
            notes.facts.append(PoolFact(pages=int(found["count"]), page_bytes=size, numa_node=node))


def _limit(pair: Pair, notes: Notes) -> None:
    value = pair.value or ""
    if pair.section != "Service":
        said = f"In [{pair.section}] systemd ignores it."
        notes.problem(SECTION, pair.key_start, "LimitMEMLOCK", said, "Move it to [Service].")
    if not re.fullmatch(r"(infinity|\d+[KMGTPE]?)(:(infinity|\d+[KMGTPE]?))?", value):
        right = "infinity" if value.lower() in {"unlimited", "-1", "max"} else re.sub(r"(?i)i?b$", "", value).upper()
        fits = re.fullmatch(r"infinity|\d+[KMGTPE]?", right)
        edits = (Edit(pair.value_start, pair.value_end, right),) if fits else ()
        said = f"{value!r} is ignored with a warning."
        fix = f"Write LimitMEMLOCK={right if fits else 'infinity'}."
        notes.problem(LIMIT, pair.value_start, f"LimitMEMLOCK={value}", said, fix, *edits)
    else:
        hard = value.rsplit(":", 1)[-1]
        if hard == "infinity":
            notes.effects.append("the service may lock memory without limit")
            return
        factor = 1024 ** (1 + "KMGTPE".index(hard[-1])) if hard[-1].isalpha() else 1
        limit = int(hard.rstrip("KMGTPE")) * factor
        notes.effects.append(f"the service may lock {format_bytes(limit)} of memory")
        notes.facts.append(MemlockFact(owner="the service", limit_bytes=limit, position=pair.value_start))
