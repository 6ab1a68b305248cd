"""Huge page quantities of Kubernetes objects: resource names, page multiples, and edits that fix them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hugeplan.lint.model import Context, Edit, Notes, attention, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.errors import UnitError
from hugeplan.planner.pages import HUGE_PAGE_SIZES, kubernetes_resource_name
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes, parse_kubernetes_bytes

PREFIX: Final = "hugepages-"
_VALIDATION: Final = "kubernetes pkg/apis/core/validation/validation.go"

NAME: Final = wrong(
    "resource-name",
    "A huge page resource is named after the page size as a binary quantity: hugepages-2Mi, hugepages-1Gi.",
    "kubernetes pkg/apis/core/v1/helper HugePageResourceName()",
)
OTHER_MACHINE: Final = attention(
    "resource-of-another-machine",
    "A node offers huge pages of the sizes that its processor and its base page size have, and no others.",
    "arch/*/mm/hugetlbpage.c arch_hugetlb_valid_size()",
)
MULTIPLE: Final = wrong(
    "resource-not-whole-pages", "A huge page quantity must be a whole number of pages.", _VALIDATION
)
QUANTITY: Final = wrong(
    "resource-quantity", "A resource takes a Kubernetes quantity such as 512Mi or 2Gi.", _VALIDATION
)

_ALL_SIZES: Final = sorted({size for sizes in HUGE_PAGE_SIZES.values() for size in sizes})


@dataclass(frozen=True, slots=True)
class Quantity:
    """One huge page quantity: its page size and bytes (None: unreadable), and its place."""

    name: str
    page_bytes: int | None
    bytes: int | None
    tree: Tree


def read_quantities(resources: Tree | None, notes: Notes, context: Context, prefix: str = "") -> dict[str, Quantity]:
    """Huge page quantities of a ``limits`` or ``requests`` mapping, with the problems of each, by their names.

    ``prefix`` stands before each name (``requests.`` of a quota); names without it are passed over.
    """
    found: dict[str, Quantity] = {}
    if resources is None:
        return found
    for key, tree in resources.items():
        name = key.removeprefix(prefix)
        if key.startswith(prefix) and name.lower().startswith(("hugepages", "hugepage-", "huge-pages")):
            size = check_name(name, tree, notes, context, prefix)
            if tree.text is None and getattr(tree.node, "value", None) == "null":
                continue  # the word takes a field away where a patch has it
            found[name] = Quantity(name, size, _bytes(name, size, tree, notes), tree)
    return found


def page_bytes_of(name: str) -> int | None:
    """The page size that a resource name means, None when it is not spelled as the kubelet spells it."""
    for size in _ALL_SIZES:
        if name == kubernetes_resource_name(size):
            return size
    return None


def _meant(name: str) -> int | None:
    found = re.search(r"(?<!\d)(\d++)\s*+([kmgKMG]?)i?[bB]?$", name)
    if found is None:
        return None
    size = int(found[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[found[2].lower()]
    return size if size in _ALL_SIZES else size * 1024 if size * 1024 in _ALL_SIZES else None


def check_name(name: str, tree: Tree, notes: Notes, context: Context, prefix: str = "") -> int | None:
    """The page size of a resource name, with a problem where it is not spelled as the kubelet spells it.

    ``prefix`` stands before the name in the text (``requests.`` of a quota).
    """
    exact = page_bytes_of(name)
    if exact is not None:
        if exact not in context.sizes:
            _of_another_machine(name, exact, tree, notes, context)
        return exact
    meant = _meant(name)
    edits = () if meant is None else (Edit(tree.key_start, tree.key_end, prefix + kubernetes_resource_name(meant)),)
    right = (
        prefix + kubernetes_resource_name(meant)
        if meant
        else " or ".join(prefix + kubernetes_resource_name(s) for s in context.sizes)
    )
    said = (
        f"No node offers {name}, so nothing that asks for it is scheduled."
        if not prefix
        else f"No pod can ask for {name}, so {prefix}{name} limits nothing."
    )
    notes.problem(NAME, tree.key_start, name, said, f"Write {right}.", *edits)
    return meant


def _of_another_machine(name: str, size: int, tree: Tree, notes: Notes, context: Context) -> None:
    """A size that exists, on other machines than the one that is known or assumed."""
    others = sorted({arch for (arch, _), sizes in HUGE_PAGE_SIZES.items() if size in sizes})
    own = " and ".join(kubernetes_resource_name(s) for s in context.sizes)
    said = (
        f"{context.arch} nodes with base pages of {format_bytes(context.base_page_bytes)} offer {own}; {name} exists "
        f"on {', '.join(others)} only, so elsewhere nothing that asks for it is scheduled."
    )
    fix = f"Write {own.replace(' and ', ' or ')}, or say the machine with --arch and --base-page-size."
    notes.problem(OTHER_MACHINE, tree.key_start, name, said, fix)


def _bytes(name: str, size: int | None, tree: Tree, notes: Notes) -> int | None:
    text = tree.text
    try:
        value = parse_kubernetes_bytes(text if text is not None else "", name)
    except UnitError:
        meant = _binary(text or "")
        said = f"{text!r} is not a Kubernetes quantity."
        notes.rewrite(QUANTITY, tree, f"{name}: {text}", said, meant, otherwise="Write a quantity such as 512Mi.")
        return None
    if size is not None and 0 < value < size and (text or "").isdecimal():
        pages = format_kubernetes_bytes(value * size)
        said = f"{text} without a unit is {text} bytes, less than a page of {name.removeprefix(PREFIX)}."
        fix = f"Write {text}Mi if MiB were meant, or {pages} for {text} pages."
        notes.problem(MULTIPLE, tree.start, f"{name}: {text}", said, fix)
        return None
    if size is not None and value % size:
        up = -(-value // size) * size
        said = f"{text} is {format_bytes(value)}, not a whole number of pages of {name.removeprefix(PREFIX)}."
        notes.rewrite(MULTIPLE, tree, f"{name}: {text}", said, format_kubernetes_bytes(up))
        return up
    return value


def check_memory(tree: Tree | None, name: str, notes: Notes, consequence: str) -> None:
    """A memory quantity that Kubernetes cannot read, such as 1GiB; a percentage is the caller's to allow."""
    if tree is None or tree.text is None or bytes_or_none(tree) is not None:
        return
    meant = _binary(tree.text)
    said = f"{tree.text!r} is not a Kubernetes quantity: {consequence}."
    notes.rewrite(QUANTITY, tree, f"{name}: {tree.text}", said, meant, otherwise="Write a quantity such as 512Mi.")


def _binary(text: str) -> str | None:
    """``2GB`` or ``512MB`` as the binary quantity that was most likely meant."""
    found = re.fullmatch(r"(\d+)\s*([kKmMgG])(?:i?[bB]|i)?", text.strip())
    return None if found is None else f"{found[1]}{found[2].upper()}i"


def bytes_or_none(tree: Tree | None) -> int | None:
    """A quantity in bytes, None when it is absent or unreadable."""
    if tree is None or tree.text is None:
        return None
    try:
        return parse_kubernetes_bytes(tree.text, "quantity")
    except UnitError:
        return None
