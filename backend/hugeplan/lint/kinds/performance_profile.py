"""OpenShift PerformanceProfiles: spec.hugepages by the rules of the Node Tuning Operator's admission."""

from __future__ import annotations

import re
from typing import Final

from hugeplan.lint.kernel.check import check_words, has_huge_page_words
from hugeplan.lint.model import Context, Edit, Notes, PoolFact, Reading, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.memory.kernel_words import words_of
from hugeplan.planner.model import GIB, KIB, MIB
from hugeplan.planner.pages import counted_pages

KIND: Final = "performance_profile"
_SOURCE: Final = (
    "openshift/cluster-node-tuning-operator pkg/apis/performanceprofile/v2/performanceprofile_validation.go"
)
_X86: Final = {"2M": 2 * MIB, "1G": GIB}
_ARM_4K: Final = {"64k": 64 * KIB, "2M": 2 * MIB, "32M": 32 * MIB, "1G": GIB}
_ARM_64K: Final = {"2M": 2 * MIB, "512M": 512 * MIB, "16G": 16 * GIB}

DEFAULT_MISSING: Final = wrong("profile-default-missing", "pages need a defaultHugepagesSize beside them.", _SOURCE)
SIZE: Final = wrong(
    "profile-size",
    "A size is 2M or 1G on x86-64; 64k, 2M, 32M or 1G on aarch64 with 4k pages; 2M, 512M or 16G with 64k pages.",
    _SOURCE,
)
TWICE: Final = wrong("profile-size-twice", "Each size occurs once per NUMA node.", _SOURCE)
COUNT: Final = wrong("profile-count", "count is a whole number of pages from 0.", _SOURCE)
KERNEL_PAGE: Final = wrong(
    "profile-kernel-page-size", "kernelPageSize 64k exists on aarch64 only, and not with the real-time kernel.", _SOURCE
)
FIELD: Final = wrong(
    "profile-field-missing",
    "A PerformanceProfile needs spec.cpu with isolated (and reserved from v2 on) and spec.nodeSelector, whatever else "
    "it sets.",
    "openshift/cluster-node-tuning-operator, the custom resource definition of PerformanceProfile",
)
NODE: Final = wrong("profile-node", "node names a NUMA node that the machine has.", _SOURCE)


def read(document: Tree, context: Context) -> Reading:
    """What the operator will put on the command line and into units, and what its admission refuses."""
    notes = Notes()
    spec = document.get("spec")
    hugepages = None if spec is None else spec.get("hugepages")
    if spec is not None:
        _required(document, spec, notes)
        table, where = _table(spec, notes, context)
        if hugepages is not None:
            _hugepages(hugepages, table, where, notes, context)
        arguments = spec.get("additionalKernelArgs")
        # The operator joins them into one command line.
        elements = [] if arguments is None else list(arguments.elements())
        words = [word for e in elements for word in words_of(e.text or "", e.start + (1 if e.is_quoted else 0))]
        if has_huge_page_words(words):
            check_words(words, notes, context)
    return notes.reading(KIND, "PerformanceProfile")


def _required(document: Tree, spec: Tree, notes: Notes) -> None:
    """Fields without which the API server refuses the object; v1alpha1 has none."""
    version = (document.get_text("apiVersion") or "").rpartition("/")[2]
    if version not in {"v1", "v2"}:
        return
    paths = [("cpu", "isolated"), *([("cpu", "reserved")] if version == "v2" else []), ("nodeSelector",)]
    missing = ["spec." + ".".join(path) for path in paths if spec.get(*path) is None]
    # With neither cpu nor nodeSelector it is a merge patch: the profile has them.
    is_patch = spec.get("cpu") is None and spec.get("nodeSelector") is None
    if missing and not is_patch:
        said = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, so the profile is refused."
        fix = "Add what is missing, or reserve the pages with a Tuned or MachineConfig object, which need no CPU sets."
        notes.problem(FIELD, spec.start, "spec", said, fix)


def _table(spec: Tree, notes: Notes, context: Context) -> tuple[dict[str, int], str]:
    page = spec.get("kernelPageSize")
    text = "4k" if page is None else (page.text or "4k")
    sizes = {size.text for size in _size_trees(spec)}
    on_arm = context.arch == "aarch64" or text == "64k" or bool(sizes & {"64k", "32M", "512M", "16G"})
    if page is not None and text not in {"4k", "64k"}:
        notes.problem(KERNEL_PAGE, page.start, text, f"kernelPageSize {text} does not exist.", "Write 4k or 64k.")
    if page is not None and text == "64k":
        real_time = spec.get_text("realTimeKernel", "enabled") == "true"
        if real_time or (context.arch == "x86_64" and sizes & {"1G"}):
            said = "kernelPageSize 64k is refused " + ("with the real-time kernel." if real_time else "on x86-64.")
            notes.rewrite(KERNEL_PAGE, page, text, said, "4k")
    if not on_arm:
        return _X86, "x86-64"
    return (_ARM_64K, "aarch64 with 64k pages") if text == "64k" else (_ARM_4K, "aarch64 with 4k pages")


def _size_trees(spec: Tree) -> list[Tree]:
    hugepages = spec.get("hugepages")
    if hugepages is None:
        return []
    pages = hugepages.get("pages")
    found = [
        hugepages.get("defaultHugepagesSize"),
        *(p.get("size") for p in (() if pages is None else pages.elements())),
    ]
    return [tree for tree in found if tree is not None]


def _hugepages(hugepages: Tree, table: dict[str, int], where: str, notes: Notes, context: Context) -> None:
    default = hugepages.get("defaultHugepagesSize")
    pages = hugepages.get("pages")
    listed = [] if pages is None else list(pages.elements())
    if default is not None:
        _size(default, table, where, notes)
    if listed and default is None:
        size = listed[0].get_text("size") or "2M"
        at = hugepages.start
        edit = Edit(at, at, f'defaultHugepagesSize: "{size}"\n{" " * hugepages.column}')
        edits = () if hugepages.is_flow else (edit,)
        said = "There is no defaultHugepagesSize: the profile is refused."
        fix = f'Write defaultHugepagesSize: "{size}".'
        notes.problem(DEFAULT_MISSING, hugepages.start, "hugepages", said, fix, *edits)
    seen: set[tuple[str | None, int | None]] = set()
    for page in listed:
        _page(page, (table, where), seen, notes, context)
    default_size = table.get((default.text if default is not None else None) or "")
    if default_size == GIB and any(page.get_text("size") == "2M" for page in listed):
        notes.effects.append("with a default of 1G the operator adds hugepagesz=2M so that the 2M pool exists")


def _page(
    page: Tree,
    known: tuple[dict[str, int], str],
    seen: set[tuple[str | None, int | None]],
    notes: Notes,
    context: Context,
) -> None:
    table, where = known
    size_tree, count_tree, node_tree = page.get("size"), page.get("count"), page.get("node")
    size = None if size_tree is None else _size(size_tree, table, where, notes)
    node = None if node_tree is None else node_tree.whole_number()
    count = None if count_tree is None else count_tree.whole_number()
    if count_tree is not None and (count is None or count < 0 or count_tree.is_text):
        digits = re.fullmatch(r"\d+", count_tree.text or "")
        said, fix, text = "count is not a whole number.", "Write a number without quotes.", digits and digits[0]
        notes.rewrite(COUNT, count_tree, f"count: {count_tree.text}", said, text, fix=fix)
    key = (None if size_tree is None else size_tree.text, node)
    if key in seen:
        said = f"{key[0]} is listed twice" + ("" if node is None else f" for node {node}") + "."
        notes.problem(TWICE, page.start, f"size: {key[0]}", said, "Keep one entry.")
    seen.add(key)
    if node is not None and context.numa_nodes is not None and node not in context.numa_nodes:
        said = f"There is no NUMA node {node}."
        fix = f"Use one of {', '.join(str(n) for n in context.numa_nodes)}."
        notes.problem(NODE, page.start, f"node: {node}", said, fix)
    if size is not None and count is not None and count >= 0:
        how = "on the kernel command line" if node is None else f"by a systemd unit on NUMA node {node}"
        notes.effects.append(f"reserves {counted_pages(count, size)} {how}")
        notes.facts.append(PoolFact(pages=count, page_bytes=size, numa_node=node))


def _size(tree: Tree, table: dict[str, int], where: str, notes: Notes) -> int | None:
    text = tree.text or ""
    if text in table:
        return table[text]
    found = re.fullmatch(r"(\d+)\s*([kKmMgG])(?:i?[bB]|i)?", text)
    meant = None
    if found:
        meant = next((name for name in table if name.lower() == (found[1] + found[2]).lower()), None)
    said = f"{text!r} is not a huge page size of {where}."
    fix = f"Write {meant}." if meant else f"Use one of {', '.join(table)}."
    notes.rewrite(SIZE, tree, text, said, meant and f'"{meant}"', fix=fix)
    return None if meant is None else table[meant]
