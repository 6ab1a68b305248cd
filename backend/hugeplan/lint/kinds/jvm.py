"""JVM options: java command lines, JAVA_TOOL_OPTIONS, jvm.options files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hugeplan.formats.jvm_options import option_of
from hugeplan.lint.model import Context, Edit, EngineFact, Notes, Reading, Source, attention, wrong
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import MIB
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.units import format_bytes, format_mysql_bytes, parse_jvm_bytes

KIND: Final = "jvm"
_JAVA: Final = "java(1), Large Pages"

SPELLING: Final = wrong(
    "jvm-flag-spelling",
    "A switch is written -XX:+Name or -XX:-Name, a value -XX:Name=value; the JVM does not start with others.",
    "OpenJDK src/hotspot/share/runtime/arguments.cpp",
)
UNKNOWN: Final = wrong(
    "jvm-flag-unknown", "The JVM does not start with a flag that it does not know.", "OpenJDK arguments.cpp"
)
SIZE: Final = wrong(
    "jvm-page-size",
    "LargePageSizeInBytes names a huge page size of the machine; with another the JVM uses the default size.",
    _JAVA,
)
VALUE: Final = wrong("jvm-size-value", "Sizes take k, m, g or t without b: -Xmx8g.", "java(1)")
BOTH: Final = wrong(
    "jvm-both-kinds",
    "UseLargePages and UseTransparentHugePages exclude each other: the pool stays unused with the latter.",
    _JAVA,
)
KIND_OFF: Final = wrong(
    "jvm-kind-switched-off",
    "JDK 21 and earlier use no huge page where one kind is switched off by name and none is switched on.",
    "OpenJDK 21 src/hotspot/os/linux/os_linux.cpp, os::Linux::setup_large_page_type",
)
LAST_WINS: Final = wrong("jvm-switched-off", "The last of several equal flags wins.", "java(1)")
SIZE_ALONE: Final = wrong(
    "jvm-size-without-switch", "LargePageSizeInBytes does nothing without -XX:+UseLargePages.", _JAVA
)
HEAP_GROWS: Final = attention(
    "jvm-heap-grows",
    "With large pages the heap is committed whole at start: -Xms below -Xmx only hides the need.",
    _JAVA,
)
OFF: Final = wrong(
    "jvm-large-pages-off",
    "-XX:-UseLargePages switches every kind of huge page off, transparent ones too.",
    "OpenJDK src/hotspot/os/linux/os_linux.cpp, os::large_page_init",
)
COLLECTORS: Final = wrong(
    "jvm-two-collectors",
    "The JVM does not start with two garbage collectors.",
    "OpenJDK src/hotspot/share/gc/shared/gcConfig.cpp",
)
REMOVED: Final = attention(
    "jvm-flag-removed",
    "Flags are taken out of the JVM: it warns for a release or two, and then does not start with them.",
    "OpenJDK src/hotspot/share/runtime/arguments.cpp special_jvm_flags; JDK-8243161, JDK-8261894",
)
Z_PAGES: Final = wrong(
    "jvm-zgc-page-size",
    "ZGC takes explicit huge pages of 2M alone: with a larger size it ends at its start.",
    "OpenJDK src/hotspot/os/linux/gc/z/zPhysicalMemoryBacking_linux.cpp",
)
HEAP_ROUNDS: Final = attention(
    "jvm-heap-whole-pages", "With large pages the heap takes whole pages of their size.", _JAVA
)
_COLLECTOR: Final = re.compile(r"-XX:([+-])Use(Serial|Parallel|G1|Z|Shenandoah|Epsilon|ConcMarkSweep)GC$")
TWO_PRODUCTS: Final = wrong(
    "jvm-two-products",
    "-Xlp asks for large pages in OpenJ9, -XX:+UseLargePages in HotSpot; neither JVM takes both.",
    "Eclipse OpenJ9 documentation, -Xlp; OpenJDK src/hotspot/share/runtime/arguments.cpp",
)
_HOTSPOT: Final = re.compile(r"-XX:(?:[+-]Use(?:LargePages|TransparentHugePages|\w+GC)$|LargePageSizeInBytes=)")
_TOKEN: Final = re.compile(r"(?<![\w-])-(?:XX:[^\s\"',]+|X(?:mx|ms|mn|ss|lp)[^\s\"',]*)")
_KNOWN: Final = {
    "uselargepages": "UseLargePages",
    "usetransparenthugepages": "UseTransparentHugePages",
    "largepagesizeinbytes": "LargePageSizeInBytes",
    "alwayspretouch": "AlwaysPreTouch",
    "useshm": "UseSHM",
    "usehugetlbfs": "UseHugeTLBFS",
}
_WRONG: Final = {
    "usehugepages": "UseLargePages",
    "uselargepage": "UseLargePages",
    "usehugepage": "UseLargePages",
    "hugepagesizeinbytes": "LargePageSizeInBytes",
    "largepagesize": "LargePageSizeInBytes",
    "usetransparenthugepage": "UseTransparentHugePages",
}
#: The last release that starts with a flag.
_REMOVED: Final = {"UseLargePagesInMetaspace": 16, "UseSHM": 22, "UseHugeTLBFS": 22}
#: Of huge pages: where none is named, the JVM takes those of the pool.
_KINDS: Final = ("UseTransparentHugePages", "UseHugeTLBFS", "UseSHM")
_SWITCHES: Final = ("UseLargePages", *_KINDS, "AlwaysPreTouch")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option: its text and offsets. ``is_element``: without it, an element of a list would be left empty."""

    text: str
    start: int
    end: int
    is_element: bool = False


def flags_of(text: str, offset: int = 0) -> list[Flag]:
    """All -XX and -X options of a text outside comment lines."""
    found = []
    for line in text.splitlines(keepends=True):
        if not line.lstrip().startswith(("#", "//")):
            for m in _TOKEN.finditer(line):
                around = line[: m.start()][-1:], line[m.end() :][:1]
                is_element = around in {('"', '"'), ("'", "'")} or around[0] == ":"
                found.append(Flag(m[0], offset + m.start(), offset + m.end(), is_element))
        offset += len(line)
    return found


def detects(source: Source) -> bool:
    """At least one -XX or -Xmx option."""
    return bool(flags_of(source.text))


def read(source: Source, context: Context) -> Reading:
    """What the JVM will do with large pages."""
    notes = Notes()
    check_flags(flags_of(source.text), notes, context)
    return notes.reading(KIND, "JVM options")


def check_flags(flags: list[Flag], notes: Notes, context: Context, *, owner: str | None = None) -> EngineFact:
    """Note the problems of JVM options from anywhere."""
    values: dict[str, tuple[str, Flag]] = {}
    for flag in flags:
        _one(flag, values, notes)
    large, transparent, never = _page_kinds(flags, values, notes)
    size = values.get("LargePageSizeInBytes")
    _two_products(flags, notes)
    collectors = _collectors(flags, notes)
    if large and not transparent and "Z" in collectors:
        _zgc(collectors["Z"], size, notes, context)
    if size is not None:
        _page_size(size, large, notes, context)
    heap, start = _heap(values, "Xmx", notes), _heap(values, "Xms", notes)
    page = _named_page(size, context)
    if large and not transparent and heap and page:
        _whole_pages(page, heap, values["Xmx"][1], notes)
    if large and heap and start and start < heap:
        flag = values["Xms"][1]
        notes.rewrite(HEAP_GROWS, flag, flag.text, "-Xms is below -Xmx.", f"-Xms{format_mysql_bytes(heap).lower()}")
    what = "transparent huge pages" if transparent else "huge pages from the pool" if large else "base pages"
    if large and not transparent:
        what = f"base pages up to JDK 21, {what} later" if never else what
        what += " and falls back to base pages with a warning"
        if "Z" in collectors:
            what += " where none is free; with too few ZGC does not start, or lowers its largest heap"
    notes.effects.append(f"the JVM uses {what}")
    fact = EngineFact(
        engine="jvm",
        settings=(
            *((name, value) for name, (value, _) in values.items()),
            *((f"Use{name}GC", "true") for name in collectors),
        ),
        positions=tuple((name.lower(), flag.start) for name, (_, flag) in values.items()),
        owner=owner,
    )
    notes.facts.append(fact)
    return fact


def _page_kinds(flags: list[Flag], values: Mapping[str, tuple[str, Flag]], notes: Notes) -> tuple[bool, bool, bool]:
    """Whether the JVM asks for huge pages, for transparent ones, and for none up to JDK 21."""
    kinds = {kind: values[kind] for kind in _KINDS if kind in values}
    on = [kind for kind, (value, _) in kinds.items() if value == "true"]
    transparent, is_off = "UseTransparentHugePages" in on, values.get("UseLargePages", ("true",))[0] == "false"
    large = not is_off and ("UseLargePages" in values or bool(on and not transparent))
    _removed(flags, large and "UseLargePages" not in values, notes)
    if large and transparent:
        said = "With both, the JVM uses transparent huge pages and leaves the pool unused."
        flag, edits = kinds["UseTransparentHugePages"][1], _without(_named("UseTransparentHugePages", flags))
        notes.problem(BOTH, flag.start, flag.text, said, "Leave it out.", *edits)
    if transparent and is_off:
        flag = values["UseLargePages"][1]
        said = f"{flag.text} is explicit, so the JVM drops -XX:+UseTransparentHugePages too and uses base pages."
        notes.problem(OFF, flag.start, flag.text, said, "Leave it out.", *_without([flag]))
        transparent = False
    never = large and bool(kinds) and not on
    for kind, (_, flag) in kinds.items() if never else ():
        said = (
            f"With {flag.text}, JDK 21 and earlier use no huge page, since no kind is left that they choose by"
            " themselves; later ones do as without it. Which release runs is not known here."
        )
        notes.problem(KIND_OFF, flag.start, flag.text, said, "Leave it out.", *_without(_named(kind, flags)))
    return large, transparent, never


def _named(name: str, flags: list[Flag]) -> list[Flag]:
    """Every place of a switch: where only its last is left out, an earlier one counts."""
    found = [(flag, option_of(flag.text)) for flag in flags]
    return [f for f, o in found if o is not None and (_KNOWN | _WRONG).get(o.name.lower()) == name]


def _without(flags: Sequence[Flag]) -> tuple[Edit, ...]:
    """What takes flags out of a text; none where an empty element would be left, with which the program fails."""
    return () if any(f.is_element for f in flags) else tuple(Edit(f.start, f.end, "") for f in flags)


def _two_products(flags: list[Flag], notes: Notes) -> None:
    """OpenJ9's -Xlp beside an option that HotSpot alone has."""
    ours = next((flag for flag in flags if re.match(r"-Xlp(?::|\d|$)", flag.text)), None)
    other = next((flag for flag in flags if _HOTSPOT.match(flag.text)), None)
    if ours is not None and other is not None:
        said = (
            f"{ours.text} is OpenJ9's and {other.text} is HotSpot's: HotSpot does not start with the first, OpenJ9"
            " ignores the second."
        )
        fix = f"Keep {ours.text} for OpenJ9 alone, or {other.text} for HotSpot alone."
        notes.problem(TWO_PRODUCTS, ours.start, ours.text, said, fix)


def _removed(flags: list[Flag], is_alone: bool, notes: Notes) -> None:
    """Flags that later releases do not have. ``is_alone``: a kind of huge pages is what asks for them."""
    for flag in flags:
        found = re.match(r"-XX:([+-])(\w+)$", flag.text)
        last = None if found is None else _REMOVED.get(found[2])
        if found is None or last is None:
            continue
        said = f"JDK {last + 1} and later do not start with {flag.text}."
        if is_alone and found[1] == "+" and found[2] in _KINDS:
            notes.rewrite(REMOVED, flag, flag.text, said, "-XX:+UseLargePages")
        else:
            notes.problem(REMOVED, flag.start, flag.text, said, "Leave it out.", *_without([flag]))


def _named_page(size: tuple[str, Flag] | None, context: Context) -> int | None:
    """The page size that the options name, else the machine's default where that is known."""
    if size is None:
        return context.default_page_bytes
    try:
        page = parse_jvm_bytes(size[0], "LargePageSizeInBytes")
    except PlannerError:
        return None
    return page if page in context.sizes else context.default_page_bytes


def _zgc(flag: Flag, size: tuple[str, Flag] | None, notes: Notes, context: Context) -> None:
    """ZGC's pages are of 2M; another size of explicit huge pages ends the JVM."""
    page = _named_page(size, context)
    if page is None or page == 2 * MIB:
        return
    where = flag if size is None else size[1]
    edits = () if size is None else (Edit(where.start, where.end, "-XX:LargePageSizeInBytes=2m"),)
    notes.problem(
        Z_PAGES,
        where.start,
        where.text,
        f"ZGC with pages of {page_label(page)}: the JVM ends with 'Incompatible large page size configured' wherever "
        "such pages are reserved.",
        "Write -XX:LargePageSizeInBytes=2m and reserve pages of 2M."
        if edits
        else "Reserve pages of 2M and write -XX:LargePageSizeInBytes=2m, or use G1.",
        *edits,
    )


def _collectors(flags: list[Flag], notes: Notes) -> dict[str, Flag]:
    """The collectors that are on at the end of the options; two are a problem."""
    on: dict[str, Flag] = {}
    for flag in flags:
        found = _COLLECTOR.match(flag.text)
        if found is not None and found[1] == "+":
            on[found[2]] = flag
        elif found is not None:
            on.pop(found[2], None)
    if len(on) > 1:
        first, *_, last = on.values()
        said = f"{first.text} and {last.text} are both on: the JVM ends with conflicting collector combinations."
        notes.problem(COLLECTORS, last.start, last.text, said, "Keep one of them.")
    return on


def _whole_pages(page: int, heap: int, flag: Flag, notes: Notes) -> None:
    """A heap that is no multiple of the page size is rounded up."""
    if not heap % page:
        return
    pages = -(-heap // page)
    said = (
        f"The heap takes {counted_pages(pages, page)}, {format_bytes(pages * page)}:"
        f" {format_bytes(pages * page - heap)} more than {flag.text[4:]}."
    )
    fix = f"Write -Xmx{format_mysql_bytes(pages * page).lower()}, or one page less."
    notes.problem(HEAP_ROUNDS, flag.start, flag.text, said, fix)


def _one(flag: Flag, values: dict[str, tuple[str, Flag]], notes: Notes) -> None:
    text = flag.text
    option = option_of(text)
    if option is None:
        return
    sign, name, value = option.sign, option.name, option.value
    if name in {"Xmx", "Xms"}:
        values[name] = ((value or "").lstrip(":="), flag)
        return
    right = _KNOWN.get(name.lower()) or _WRONG.get(name.lower())
    if sign and value is not None and right != "LargePageSizeInBytes":
        same = f"-XX:{sign}{name}" if value == ("true" if sign == "+" else "false") else None
        said = f"{text}: a flag has a sign or a value, and the JVM does not start with both."
        notes.rewrite(SPELLING, flag, text, said, same, otherwise="Write one of them.")
    if right is None:
        return
    proper = _proper(right, sign, value)
    if name != right:
        notes.rewrite(UNKNOWN, flag, text, f"The JVM has no flag {name} and does not start.", proper)
    elif (right in _SWITCHES) != bool(sign):
        notes.rewrite(SPELLING, flag, text, f"{text} is not how this flag is written; the JVM does not start.", proper)
    new = (value or "") if right not in _SWITCHES else ("false" if sign == "-" or value == "false" else "true")
    old = values.get(right)
    if right == "UseLargePages" and old is not None and old[0] == "true" and new == "false":
        said = f"{text} switches off what {old[1].text} switched on."
        notes.rewrite(LAST_WINS, flag, text, said, "-XX:+UseLargePages", fix="Keep -XX:+UseLargePages.")
    values[right] = (new, flag)


def _proper(name: str, sign: str, value: str | None) -> str:
    if name in _SWITCHES:
        off = sign == "-" or value == "false"
        return f"-XX:{'-' if off else '+'}{name}"
    return f"-XX:{name}={value or '2m'}"


def _page_size(size: tuple[str, Flag], large: bool, notes: Notes, context: Context) -> None:
    text, flag = size
    try:
        count = parse_jvm_bytes(text, "LargePageSizeInBytes")
    except PlannerError:
        found = re.fullmatch(r"(\d+)([kKmMgG])i?[bB]", text)
        right = None if found is None else f"-XX:LargePageSizeInBytes={found[1]}{found[2].lower()}"
        otherwise = "Write 2m or 1g."
        notes.rewrite(
            VALUE, flag, flag.text, f"{text!r} is not a size; the JVM does not start.", right, otherwise=otherwise
        )
        return
    if count not in context.sizes:
        sizes = ", ".join(page_label(s).lower() for s in context.sizes)
        said = f"{text} is not a huge page size of {context.arch}."
        said += " JDK 25 does not start with it, as it is no power of 2." * (count.bit_count() != 1)
        notes.problem(SIZE, flag.start, flag.text, said, f"Use one of {sizes}, or leave it out.")
    elif not large:
        said = "-XX:+UseLargePages is missing or switched off."
        fix = "Add -XX:+UseLargePages."
        notes.rewrite(SIZE_ALONE, (flag.start, flag.start), flag.text, said, "-XX:+UseLargePages ", fix=fix)


def _heap(values: dict[str, tuple[str, Flag]], name: str, notes: Notes) -> int | None:
    found = values.get(name)
    if found is None:
        return None
    try:
        return parse_jvm_bytes(found[0], name)
    except PlannerError:
        flag = found[1]
        match = re.fullmatch(r"(\d+)\s*([kKmMgGtT])i?[bB]?", found[0])
        edits = () if match is None else (Edit(flag.start, flag.end, f"-{name}{match[1]}{match[2].lower()}"),)
        said = f"{found[0]!r} is not a size; the JVM does not start."
        notes.problem(VALUE, flag.start, flag.text, said, f"Write -{name}8g.", *edits)
        return None
