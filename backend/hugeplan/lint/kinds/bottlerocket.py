"""Bottlerocket settings (TOML): static huge pages, sysctls, boot kernel parameters."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from hugeplan.lint.kinds.kubelet import PAGES_OF_NUMA
from hugeplan.lint.kinds.quantities import page_bytes_of
from hugeplan.lint.model import Context, Edit, Notes, PoolFact, Reading, Source, attention, wrong
from hugeplan.planner.pages import counted_pages, kubernetes_resource_name

KIND: Final = "bottlerocket"
_DOC: Final = "Bottlerocket documentation, settings.kernel.hugepages (1.64 and later)"
SIZE: Final = wrong("bottlerocket-size", 'A static size is written as a binary quantity: "2Mi" or "1Gi".', _DOC)
STATIC: Final = wrong(
    "bottlerocket-not-static", 'Sizes stand in settings.kernel.hugepages.static."SIZE"; others are refused.', _DOC
)
COUNT: Final = wrong("bottlerocket-count", 'count is a string of digits: count = "200".', _DOC)
BOOT_ORDER: Final = wrong(
    "bottlerocket-boot-order",
    "settings.boot.kernel-parameters does not keep the order of its keys, and the kernel's huge page words need it.",
    "bottlerocket-os/bottlerocket#4385",
)
SYSCTL: Final = attention(
    "bottlerocket-sysctl",
    "vm/nr_hugepages is applied after the kubelet's node was sized on some releases; "
    "settings.kernel.hugepages is read at boot.",
    "bottlerocket-os/bottlerocket#4385",
)
SYSCTL_COUNT: Final = wrong(
    "bottlerocket-sysctl-value",
    "A sysctl's value is a string of digits.",
    "Bottlerocket documentation, settings.kernel.sysctl",
)
_HEADER: Final = re.compile(r'\b(?P<table>hugepages|static)\.("?)(?P<name>[^"\]\s.]{1,64}+)\2[ \t]*+\]')
_NEAR: Final = 1_000
"""Characters behind a table's header in which its count is looked for."""


def detects(source: Source) -> bool:
    """TOML tables below [settings."""
    return bool(re.search(r"^[ \t]*+\[settings\.", source.text, re.M))


def read(source: Source, context: Context) -> Reading:
    """What is reserved at boot."""
    notes = Notes()
    try:
        document = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from error
    kernel = _table(document, "settings", "kernel")
    static = _table(kernel, "hugepages", "static")
    headers: dict[str, re.Match[str]] = {}
    for header in _HEADER.finditer(source.text):
        headers.setdefault(f"{header['table']}.{header['name']}", header)
    for name in _table(kernel, "hugepages"):
        if name != "static":
            _not_static(headers.get(f"hugepages.{name}"), name, notes)
    for name, value in static.items():
        if isinstance(value, Mapping):
            _static(source.text, headers.get(f"static.{name}"), name, value, notes, context=context)
    sysctls = _table(kernel, "sysctl")
    for name in ("vm/nr_hugepages", "vm.nr_hugepages"):
        if name in sysctls:
            _sysctl(source.text, name, sysctls[name], notes, used_static=bool(static))
    _reserved(source.text, _table(document, "settings", "kubernetes"), notes)
    boot = _table(document, "settings", "boot", "kernel-parameters") or _table(document, "settings", "boot", "kernel")
    if "hugepages" in boot and "hugepagesz" in boot:
        at = source.text.find("hugepages")
        said = (
            "The two may reach the kernel in the wrong order, and then nothing is reserved, or pages of another size."
        )
        fix = f"Write {_as_static(boot)} instead, on Bottlerocket 1.64 and later."
        notes.problem(BOOT_ORDER, max(at, 0), "hugepages, hugepagesz", said, fix)
    return notes.reading(KIND, "Bottlerocket settings")


def _reserved(text: str, kubernetes: Mapping[str, Any], notes: Notes) -> None:
    """Huge pages in memory-manager-reserved-memory, which becomes the kubelet's reservedMemory."""
    if kubernetes.get("memory-manager-policy") != "Static":
        return
    places: dict[str, int] = {}
    for found in re.finditer(r"hugepages-\w++", text):
        places.setdefault(found[0], found.start())
    for node, entry in _table(kubernetes, "memory-manager-reserved-memory").items():
        names = [name for name in entry if name.startswith("hugepages-")] if isinstance(entry, Mapping) else []
        if isinstance(entry, Mapping) and entry.get("enabled", True):
            for name in names:
                said = f"NUMA node {node} reserves {name} of {entry[name]}; the kubelet compares it with 0 and ends."
                fix = "Leave it out; reserve the pages by leaving them out of the pods' limits."
                notes.problem(PAGES_OF_NUMA, places.get(name, 0), name, said, fix)


def _as_static(boot: Mapping[str, Any]) -> str:
    """The same sizes and counts as static huge pages, as far as they can be paired."""
    sizes, counts = (
        boot[name] if isinstance(boot[name], list) else [boot[name]] for name in ("hugepagesz", "hugepages")
    )
    units = {"M": "Mi", "G": "Gi", "K": "Ki"}
    pairs = [
        (re.fullmatch(r"(\d+)([KMG])B?", str(size).upper()), str(count))
        for size, count in zip(sizes, counts, strict=False)
    ]
    if len(sizes) == len(counts) and all(size and count.isdecimal() for size, count in pairs):
        return ", ".join(
            f'[settings.kernel.hugepages.static."{size[1]}{units[size[2]]}"] count = "{count}"'
            for size, count in pairs
            if size is not None
        )
    return '[settings.kernel.hugepages.static."SIZE"] count = "PAGES" per size'


def _table(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    here: Any = document
    for key in path:
        here = here.get(key, {}) if isinstance(here, Mapping) else {}
    return here if isinstance(here, Mapping) else {}


def _not_static(header: re.Match[str] | None, name: str, notes: Notes) -> None:
    right = f'hugepages.static."{name}"]'
    edits = () if header is None else (Edit(header.start(), header.end(), right),)
    said = f"Bottlerocket has no setting kernel.hugepages.{name}: it refuses the settings, and nothing is reserved."
    fix = f"Write [settings.kernel.{right}"
    notes.problem(STATIC, 0 if header is None else header.start(), f"hugepages.{name}", said, fix, *edits)


def _static(
    text: str, header: re.Match[str] | None, name: str, value: Mapping[str, Any], notes: Notes, *, context: Context
) -> None:
    at = 0 if header is None else header.start()
    size = page_bytes_of("hugepages-" + name)
    if size is None or size not in context.sizes:
        meant = {"2m": "2Mi", "2048k": "2Mi", "1g": "1Gi"}.get(re.sub("i?b$", "", name.lower()))
        edits = () if meant is None or header is None else (Edit(header.start(), header.end(), f'static."{meant}"]'),)
        sizes = ", ".join(kubernetes_resource_name(s).removeprefix("hugepages-") for s in context.sizes)
        fix = f'Write static."{meant}".' if edits else f"Use one of {sizes}."
        notes.problem(SIZE, at, name, f"{name} is not a size of this machine.", fix, *edits)
        size = None if meant is None else page_bytes_of("hugepages-" + meant)
    count = value.get("count")
    if not isinstance(count, str) or not count.isdecimal():
        place = re.compile(r"count[ \t]*+=[ \t]*+(\S+)").search(text, at, at + _NEAR)
        digits = str(count).strip()
        edits = (Edit(place.start(1), place.end(1), f'"{digits}"'),) if place and digits.isdecimal() else ()
        right = edits[0].text if edits else '"200", a string of digits'
        notes.problem(COUNT, at, f"count = {count!r}", f"{count!r} is refused.", f"Write count = {right}.", *edits)
        count = digits
    if size is not None and count.isdecimal():
        notes.effects.append(f"reserves {counted_pages(int(count), size)} at boot")
        notes.facts.append(PoolFact(pages=int(count), page_bytes=size))


def _sysctl(text: str, name: str, value: Any, notes: Notes, *, used_static: bool) -> None:
    at = max(text.find(name), 0)
    if not isinstance(value, str) or not value.isdecimal():
        place = re.compile(re.escape(name) + r"\"?\s*=\s*(\S+)").search(text)
        edits = (Edit(place.start(1), place.end(1), f'"{value}"'),) if place and isinstance(value, int) else ()
        notes.problem(SYSCTL_COUNT, at, f"{name} = {value!r}", f"{value!r} is refused.", 'Write "512".', *edits)
        return
    notes.effects.append(f"asks for {value} pages of the default size")
    notes.facts.append(PoolFact(pages=int(value)))
    if used_static:
        said = "Both static huge pages and the sysctl are set."
        notes.problem(SYSCTL, at, name, said, "Keep settings.kernel.hugepages.")
