"""A command line against the kernel's rules: effects, problems with their fixes, and the pools as facts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from hugeplan.lint.kernel import rules
from hugeplan.lint.kernel.intent import intended_words
from hugeplan.lint.model import Context, DefaultSizeFact, Edit, Notes, PoolFact, Rule
from hugeplan.planner.memory.kernel_replay import HUGETLB_NAMES, Boot, Step, Verdict, replay
from hugeplan.planner.memory.kernel_words import Word, memparse, words_of
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.units import format_bytes

#: One version of each parser; the newest stands for itself.
VERSIONS: Final = ((4, 18), (5, 10), (5, 16), (6, 12), (6, 18))
_KNOWN: Final = (
    *HUGETLB_NAMES,
    "hugetlb_free_vmemmap",
    "hugetlb_cma",
    "hugetlb_cma_only",
    "hugepage_alloc_threads",
    "transparent_hugepage",
    "thp_anon",
    "transparent_hugepage_shmem",
    "transparent_hugepage_tmpfs",
    "thp_shmem",
)
_MEANT: Final = {
    "default": "default_hugepagesz",
    **dict.fromkeys(("hugepagesize", "huge_pagesz", "hugepage_size", "hugepagessz", "hugepagesizes"), "hugepagesz"),
    **dict.fromkeys(("nr_hugepages", "hugepage", "huge_pages", "num_hugepages"), "hugepages"),
}
MAX_COMMAND_LINE: Final = 4096
"""Characters that a kernel reads at most (COMMAND_LINE_SIZE): 2048 on x86-64 and Arm, 4096 on s390x."""
_THP: Final = ("always", "madvise", "never")
_SWITCH: Final = ("on", "off", "1", "0", "y", "n", "Y", "N", "true", "false")
_BY_VERDICT: Final[Mapping[Verdict, tuple[Rule, str]]] = {
    Verdict.AFTER_DASHES: (rules.AFTER_DASHES, "is after --, so the kernel does not read it"),
    Verdict.DROPPED_LIMIT: (rules.TOO_MANY, "is one huge page word too many for Linux 6.15 and later, and is dropped"),
    Verdict.NO_VALUE: (rules.NO_VALUE, "has no value, so it does nothing"),
    Verdict.SIZE_UNSUPPORTED: (rules.SIZE_UNSUPPORTED, "is not a huge page size of this machine"),
    Verdict.SIZE_TWICE: (rules.SIZE_TWICE, "gives a size for the second time; the kernel ignores it"),
    Verdict.DEFAULT_TWICE: (rules.DEFAULT_TWICE, "is the second default size; the kernel ignores it"),
    Verdict.COUNT_WITHOUT_SIZE: (rules.COUNT_WITHOUT_SIZE, "follows a size that was refused, so it is ignored"),
    Verdict.COUNT_TWICE: (rules.COUNT_TWICE, "is a second count without a size between the two, so it is ignored"),
    Verdict.COUNT_INVALID: (rules.COUNT_INVALID, "is not valid; the kernel sets the count to 0"),
    Verdict.COUNT_CUT: (rules.COUNT_CUT, "is not a plain count"),
    Verdict.COUNT_OVERRULED: (rules.COUNT_OVERRULED, "loses to another count for the same size"),
    Verdict.CMA_SKIPS_BOOT: (rules.CMA, "reserves nothing at boot, because hugetlb_cma= is set"),
    Verdict.GIGANTIC_TOO_LATE: (rules.GIGANTIC_LATE, "reserves nothing at boot on this kernel"),
}


def has_huge_page_words(words: Iterable[Word]) -> bool:
    """Whether a command line says anything about huge pages, misspelled words included."""
    names = [word.name.lower() for word in words]
    return any(name in _KNOWN or "hugepage" in name or name.startswith("hugetlb") for name in names)


def check_words(words: Sequence[Word], notes: Notes, context: Context) -> Boot:
    """Replay ``words`` and note what they do and what is wrong. ValueError for more than any kernel reads."""
    characters = sum(len(word.text) + 1 for word in words)
    if characters > MAX_COMMAND_LINE:
        raise ValueError(
            f"the kernel command line has {characters} characters; expected at most {MAX_COMMAND_LINE}: no kernel"
            " reads more"
        )
    boot = _replay(words, context, context.kernel)
    _effects(words, boot, notes, context)
    edits = _edits(words, boot, context)
    before = len(notes.problems)
    for step in boot.steps:
        _judge(step, boot, notes, context, edits)
    _sizes_alone(boot, notes)
    _nodes_twice(boot, notes)
    _swapped_pairs(words, boot, notes, edits)
    _other_words(words, notes)
    _cma(words, notes, context)
    _thp_twice(words, notes)
    _memory(boot, notes, context)
    # What a person reads is what --fix writes: both come from the same edit.
    written = " ".join(edit.text.strip() for edit in edits if edit.text)
    notes.problems[before:] = [
        replace(p, fix=f"Write {written}.") if edits and p.edits == edits else p for p in notes.problems[before:]
    ]
    if any(step.word.name == "default_hugepagesz" and step.verdict is Verdict.TAKEN for step in boot.steps):
        notes.facts.append(DefaultSizeFact(page_bytes=boot.default_page_bytes))
    for size, by_node in boot.pools.items():
        for node, pages in by_node.items():
            notes.facts.append(PoolFact(pages=pages, page_bytes=size, numa_node=node))
    return boot


def _replay(words: Sequence[Word], context: Context, version: tuple[int, int] | None) -> Boot:
    return replay(
        words,
        sizes=context.sizes,
        pmd_bytes=context.pmd_bytes,
        version=version,
        arch=context.arch,
        online=context.numa_nodes,
    )


def pools_text(boot: Boot) -> str:
    """``512 pages of 2M (1 GiB) spread over the NUMA nodes, 8 pages of 1G on NUMA node 0``."""
    parts = []
    for size, by_node in boot.pools.items():
        for node, pages in by_node.items():
            where = "" if node is None else f" on NUMA node {node}"
            parts.append(f"{counted_pages(pages, size)} ({format_bytes(pages * size)}){where}")
    return ", ".join(parts) or "no huge pages"


def _effects(words: Sequence[Word], boot: Boot, notes: Notes, context: Context) -> None:
    kernel = "" if context.kernel is None else f"Linux {context.kernel[0]}.{context.kernel[1]} "
    notes.effects.append(f"{kernel or 'the kernel '}reserves {pools_text(boot)} at boot")
    if any(None in by_node for by_node in boot.pools.values()) and len(context.numa_nodes or (0, 1)) > 1:
        notes.effects.append("the kernel spreads counts without a node over the NUMA nodes, as far as each has memory")
    notes.effects.append(f"the default huge page size is {page_label(boot.default_page_bytes)}")
    if context.kernel is None:
        shown = pools_text(boot)
        for version in VERSIONS:
            other = _replay(words, context, version)
            text = pools_text(other)
            if text != shown:
                notes.effects.append(f"Linux {version[0]}.{version[1]} reserves {text} instead")


def _judge(step: Step, boot: Boot, notes: Notes, context: Context, edits: tuple[Edit, ...]) -> None:
    if step.verdict is Verdict.TAKEN:
        return
    rule, what = _BY_VERDICT[step.verdict]
    text = step.word.text
    message = f"{text} {what}" + (f": {step.note}" if step.verdict is Verdict.COUNT_INVALID and step.note else "")
    if step.verdict is Verdict.SIZE_UNSUPPORTED:
        message = f"{text}: {format_bytes(memparse(step.word.value or ''))} is not a huge page size of {context.arch}"
    elif step.verdict is Verdict.COUNT_CUT:
        kernel = context.kernel
        if kernel is not None and kernel < (5, 16) and ":" in text:
            rule = rules.NODES_BEFORE_516
        size = step.target_bytes or boot.default_page_bytes
        message = f"{text}: the kernel reads {counted_pages(step.pages or 0, size)}"
    if rule in {rules.NODES_BEFORE_516, rules.CMA}:
        edits = ()
    sizes = ", ".join(page_label(size) for size in context.sizes)
    fix = rule.fix.format(name=step.word.name, sizes=sizes)
    notes.problem(rule, step.word.start, text, message + ".", fix, *edits)


def _sizes_alone(boot: Boot, notes: Notes) -> None:
    """``hugepagesz=1G`` with no count behind it; ``hugepages=0`` is a count."""
    steps = boot.steps
    for index, step in enumerate(steps):
        following = steps[index + 1].word.name if index + 1 < len(steps) else ""
        if step.word.name == "hugepagesz" and step.verdict is Verdict.TAKEN and following != "hugepages":
            size = step.target_bytes or 0
            if size not in boot.pools:
                said = f"{step.word.text} has no hugepages= behind it, so no pages of {page_label(size)} are reserved."
                fix = "Write hugepages=COUNT behind it, or leave it out."
                notes.problem(rules.SIZE_ALONE, step.word.start, step.word.text, said, fix)


def _nodes_twice(boot: Boot, notes: Notes) -> None:
    for step in boot.steps:
        pairs = re.findall(r"(?<!\d)(\d++):(\d++)", (step.word.value or "") if step.word.name == "hugepages" else "")
        counts = {node: [count for other, count in pairs if other == node] for node, _ in pairs}
        for node, given in counts.items():
            if len(given) > 1 and step.verdict is Verdict.TAKEN:
                said = f"{step.word.text} names node {node} {len(given)} times: it gets {given[-1]} pages."
                notes.problem(rules.NODE_TWICE, step.word.start, step.word.text, said, "Write each node once.")


def _swapped_pairs(words: Sequence[Word], boot: Boot, notes: Notes, edits: tuple[Edit, ...]) -> None:
    """Counts that the kernel gives to another size than the one written beside them."""
    last_size: Word | None = None
    places = {word.start: place for place, word in enumerate(words)}
    for step in boot.steps:
        word = step.word
        if word.name != "hugepages":
            if step.verdict in {Verdict.TAKEN, Verdict.SIZE_TWICE}:
                last_size = word
            continue
        if step.verdict is not Verdict.TAKEN:
            continue
        if last_size is None:
            # In the order of the words, which is not always that of the file.
            later = [w for w in words[places[word.start] :] if w.name == "hugepagesz"]
            target = step.target_bytes or boot.default_page_bytes
            if later and memparse(later[0].value or "") == target and later[0].start == _next_size(words, word):
                said = (
                    f"{word.text} comes before {later[0].text}: it counts pages of the default size, which happens to "
                    f"be {page_label(target)} here."
                )
                fix = f"Write {later[0].text} {word.text}."
                notes.problem(rules.COUNT_FIRST, word.start, word.text, said, fix, *edits)
            elif later and memparse(later[0].value or "") != target:
                said = (
                    f"{word.text} comes before {later[0].text}: it reserves pages of {page_label(target)}, "
                    "the default size."
                )
                fix = f"Write {later[0].text} {word.text}, or hugepagesz={page_label(target)} in front to keep these."
                notes.problem(rules.LEADING_COUNT, word.start, word.text, said, fix, *edits)
        elif step.target_bytes != memparse(last_size.value or ""):
            said = (
                f"{word.text} is after {last_size.text}, but the kernel reserves pages of "
                f"{page_label(step.target_bytes or boot.default_page_bytes)} with it."
            )
            notes.problem(rules.WRONG_TARGET, word.start, word.text, said, rules.WRONG_TARGET.fix, *edits)


def _next_size(words: Sequence[Word], count: Word) -> int | None:
    """Where the hugepagesz= stands that follows a count and has no count of its own behind it; None without one."""
    own = [word for word in words if word.name in HUGETLB_NAMES]
    at = own.index(count)
    names = [word.name for word in own[at + 1 : at + 3]]
    return own[at + 1].start if names[:1] == ["hugepagesz"] and names[1:] != ["hugepages"] else None


def _is_guess(today: Boot, meant: Boot) -> bool:
    """Whether pages become those of another size, and are as much as one of these, or all of them are lost."""
    was, now = ({size: size * sum(by_node.values()) for size, by_node in b.pools.items()} for b in (today, meant))
    lost = max((count - now.get(size, 0) for size, count in was.items()), default=0)
    gained = (size for size, count in now.items() if count > was.get(size, 0))
    return lost >= min(gained, default=lost + 1 if any(now.values()) else 1)


def _edits(words: Sequence[Word], boot: Boot, context: Context) -> tuple[Edit, ...]:
    """The huge page words replaced by what was meant; none where that cannot be told or would not be clean."""
    meant = intended_words(words, context.sizes, context.numa_nodes, context.pmd_bytes)
    own = [word for word in words if word.name in HUGETLB_NAMES]
    if meant is None or not own or _is_guess(boot, _replay(words_of(meant), context, context.kernel)):
        return ()
    dashes = next((word for word in words if word.name == "--"), None)
    edits = []
    if dashes is not None and own[0].start > dashes.start:
        edits.append(Edit(dashes.start, dashes.start, meant + " "))
        doomed = own
    else:
        edits.append(Edit(own[0].start, own[0].end, meant))
        doomed = own[1:]
    by_end = {word.start: previous.end for previous, word in pairwise(words)}
    for word in doomed:
        start = by_end.get(word.start, word.start)
        # Segments of one command line may lie on different lines of a file: only blanks between words go.
        edits.append(Edit(start if 0 <= word.start - start < 8 else word.start, word.end, ""))
    return tuple(edits)


def _other_words(words: Sequence[Word], notes: Notes) -> None:
    for word in words:
        if word.name == "transparent_hugepage" and word.value not in _THP:
            near = {"off": "never", "0": "never", "on": "always", "1": "always"}.get(word.value or "", "madvise")
            said = f"{word.text}: the kernel cannot read this value and ignores it."
            notes.rewrite(rules.THP_VALUE, word, word.text, said, f"transparent_hugepage={near}")
        elif word.name == "hugetlb_free_vmemmap" and word.value not in _SWITCH:
            said = f"{word.text}: the kernel ignores this value."
            notes.rewrite(rules.HVO_VALUE, word, word.text, said, "hugetlb_free_vmemmap=on")
        elif word.name.startswith(("vm.", "vm/", "kernel.shm")):
            said = f"{word.text} is not a kernel parameter."
            notes.rewrite(rules.SYSCTL_WORD, word, word.text, said, f"sysctl.{word.text}")
        else:
            _misspelled(word, notes)


def _cma(words: Sequence[Word], notes: Notes, context: Context) -> None:
    """hugetlb_cma= that the kernel cannot read, and hugetlb_cma_only= without it."""
    own = [word for word in words if word.name == "hugetlb_cma" and word.value]
    if context.kernel is not None and context.kernel < (5, 16):
        for word in own:
            if ":" in (word.value or ""):
                said = f"{word.text}: this kernel does not read sizes per NUMA node, and sets up no CMA area."
                fix = "Write the size of all NUMA nodes together, such as hugetlb_cma=8G."
                notes.problem(rules.CMA_NODES_BEFORE_516, word.start, word.text, said, fix)
    for word in words:
        if word.name == "hugetlb_cma_only" and not own:
            said = f"{word.text} does nothing, because there is no hugetlb_cma=."
            fix = "Write hugetlb_cma=SIZE beside it, or leave it out."
            notes.problem(rules.CMA_ONLY_ALONE, word.start, word.text, said, fix)


def _thp_twice(words: Sequence[Word], notes: Notes) -> None:
    for earlier, word in pairwise(word for word in words if word.name == "transparent_hugepage"):
        if earlier.value != word.value:
            said = f"{word.text} replaces {earlier.text}."
            notes.problem(rules.THP_TWICE, word.start, word.text, said, "Keep one of them.")


def _misspelled(word: Word, notes: Notes) -> None:
    name = word.name.lower()
    if word.name in _KNOWN or "." in word.name or "/" in word.name or not re.search("huge_?page|hugetlb", name):
        return
    near = name if name in _KNOWN else _MEANT.get("default" if name.startswith("default") else name)
    near = near or next(iter(difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.7)), None)
    edits = () if near is None else (Edit(word.start, word.end, f"{near}={word.value or ''}"),)
    said = f"{word.text}: the kernel has no parameter {word.name}=."
    fix = f"Write {near}={word.value or 'VALUE'}." if near else "Look the parameter up in kernel-parameters.txt."
    notes.problem(rules.UNKNOWN_WORD, word.start, word.text, said, fix, *edits)


def _memory(boot: Boot, notes: Notes, context: Context) -> None:
    total = sum(pages * size for size, by_node in boot.pools.items() for pages in by_node.values())
    if context.mem_total_bytes is not None and total >= context.mem_total_bytes and boot.steps:
        said = f"The pools take {format_bytes(total)} of {format_bytes(context.mem_total_bytes)} of memory."
        fix = "Reserve less than the memory there is; hugeplan plan says how much fits."
        notes.problem(rules.TOO_MUCH, boot.steps[0].word.start, boot.steps[0].word.text, said, fix)
