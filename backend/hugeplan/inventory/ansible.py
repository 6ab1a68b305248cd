"""Inventory from Ansible's facts: ``ansible all -m setup --tree DIR``, or its JSON output.

Ansible reads ``/proc/meminfo`` for MemTotal and little else: databases, pools and NUMA nodes stay unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeGuard

from hugeplan.inventory.model import NOTE_WIDTH, FoundNode, Inventory, InventoryError
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import EVERYTHING_IN_USE, MIB, NodeFacts, NumaNode, Reservations, Tenant
from hugeplan.planner.pages import base_page_sizes, canonical_architecture, kernel_page_sizes, usual_default_size
from hugeplan.planner.printable import one_line

_MOST_BYTES: Final = 1 << 60
_UNKNOWN: Final = (
    "pools, NUMA nodes and databases: Ansible's facts do not hold them",
    "memory over time: the facts were gathered at one moment",
)
#: ``ansible all -m setup`` prints ``host | SUCCESS => {`` before each host's document.
_OUTPUT: Final = re.compile(
    r"^(?P<host>\S+) \| (?P<status>SUCCESS|CHANGED|FAILED!?|UNREACHABLE!?) => (?=\{)", re.MULTILINE
)

#: What opens and closes in JSON, a text with its end, and the name of an object.
_TOKEN: Final = re.compile(r'(?P<name>"(?:[^"\\]|\\.)*+")\s*:\s*(?=\{)|"(?:[^"\\]|\\.?)*+(?:"|\Z)|[][{}]', re.DOTALL)


def read_ansible(path: Path, read_file: Callable[[Path], bytes] = Path.read_bytes) -> Inventory:
    """Facts of a folder (one file per host), or of a file with the output of the setup module or of a fact cache.

    ``read_file``: what gives a file's bytes, or raises OSError. Raises InventoryError.
    """
    notes: list[str] = []
    nodes: list[FoundNode] = []
    try:
        documents = list(_documents(path, read_file))
    except OSError as error:
        raise InventoryError(f"{path}: {error.strerror}") from error
    for host, read in documents:
        try:
            found = _node(host, read())
        except (InventoryError, OSError) as error:
            found = str(error)
        except Exception as error:  # what nobody foresaw of one host is no other's failure
            found = f"internal error: {type(error).__name__}: {error}"
        if isinstance(found, str):
            notes.append(one_line(f"host {host} is left out: {found}"[: 4 * NOTE_WIDTH], NOTE_WIDTH))
        else:
            nodes.append(found)
    if not nodes:
        reason = f": {notes[0]}" if notes else ""
        raise InventoryError(f"{path}: no host with facts; expected ansible all -m setup --tree DIR{reason}")
    return Inventory(
        source=f"Ansible facts of {path}",
        nodes=tuple(sorted(nodes, key=lambda node: node.facts.name)),
        notes=tuple(notes),
        unknown=_UNKNOWN,
    )


def _documents(path: Path, read_file: Callable[[Path], bytes]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Hosts, each with what reads its document: a broken one is no other's failure."""
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if file.is_file():
                yield file.stem if file.suffix == ".json" else file.name, partial(_of_file, file, read_file)
        return
    text = read_file(path).decode("utf-8", "replace")
    starts = [(one["host"], one.end()) for one in _OUTPUT.finditer(text)]
    if starts:
        yield from _each(starts, text, path)
        return
    try:
        document = _json(text.encode(), str(path))
    except InventoryError as error:
        none = isinstance(error.__cause__, json.JSONDecodeError)
        hosts = {} if none else dict(_each(list(_members(text)), text, path))
        if not hosts or any(host.startswith("ansible_") for host in hosts):  # one host's facts name no others
            raise
        yield from hosts.items()
        return
    if isinstance(document, Mapping) and not _facts(document):
        yield from ((str(host), partial(document.get, host)) for host in document)
    else:
        yield str(_facts(document).get("nodename") or path.stem), lambda: document


def _each(starts: list[tuple[str, int]], text: str, path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """An error counts the lines of its own host's text: to count all before it would take a square of the file."""
    for (host, start), (_, end) in pairwise([*starts, ("", len(text))]):
        yield host, partial(_json, text, str(path), slice(start, end))


def _members(text: str) -> Iterator[tuple[str, int]]:
    """Names of a JSON document's objects, and where each begins: also of what is too deep or too long to decode."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["name"] and depth == 1:
            yield _json(token["name"], "a host's name"), token.end()
        depth += (token[0] in "[{") - (token[0] in "]}")


def _of_file(file: Path, read_file: Callable[[Path], bytes]) -> Any:
    return _json(read_file(file), str(file))


def _json(data: bytes | str, name: str, part: slice = slice(None)) -> Any:
    """The document, or the one that a ``part`` of a text begins with."""
    try:
        return json.JSONDecoder().raw_decode(data[part])[0] if isinstance(data, str) else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InventoryError(f"{name}: not valid JSON: {error}") from error


def _facts(document: Any) -> Mapping[str, Any]:
    """The facts of a host's document, with or without the module's envelope and its prefix."""
    if not isinstance(document, Mapping):
        return {}
    inner = document.get("ansible_facts")
    facts = inner if isinstance(inner, Mapping) else document
    plain = {str(name).removeprefix("ansible_"): value for name, value in facts.items()}
    return plain if "memtotal_mb" in plain else {}


def _node(host: str, document: Any) -> FoundNode | str:
    facts = _facts(document)
    total = facts.get("memtotal_mb")
    if not _is_mib(total) or total == 0:
        message = document.get("msg") if isinstance(document, Mapping) else None
        return str(message) if message else "it has no ansible_memtotal_mb"
    unknown = ["MemTotal to the byte: Ansible rounds it down to MiB"]
    try:
        arch = canonical_architecture(str(facts.get("architecture") or "x86_64"))
    except PlannerError:
        return f"its architecture {facts.get('architecture')} is not known here"
    base = _base_page(arch, facts, unknown)
    sizes = kernel_page_sizes(arch, base)
    used = _used_mib(facts)
    if used is None:
        unknown.append("memory in use")
    cpus = facts.get("processor_vcpus")
    return FoundNode(
        facts=NodeFacts(
            name=host,  # the operator's: a host may call itself as another is called
            arch=arch,
            base_page_bytes=base,
            huge_page_sizes_bytes=sizes,
            default_huge_page_bytes=usual_default_size(base, sizes),
            numa=(NumaNode(id=0, mem_total_bytes=total * MIB),),
            cpus=cpus if isinstance(cpus, int) and cpus > 0 else None,
            kernel_release=str(facts["kernel"]) if facts.get("kernel") else None,
        ),
        reservations=Reservations(),
        tenants=()
        if used is None
        else (Tenant(name=EVERYTHING_IN_USE, kind="service", request_bytes=used * MIB, limit_bytes=None),),
        unknown=tuple(unknown),
    )


def _base_page(arch: str, facts: Mapping[str, Any], unknown: list[str]) -> int:
    bases = base_page_sizes(arch)
    named = re.search(r"\+([0-9]{1,4})k|\.([0-9]{1,4})k\b", str(facts.get("kernel") or ""))
    stated = int(named[1] or named[2]) * 1024 if named else None
    if stated in bases:
        return int(stated or bases[0])
    if len(bases) > 1:
        unknown.append(f"base page size: {bases[0] // 1024} KiB is assumed on {arch}")
    return bases[0]


def _used_mib(facts: Mapping[str, Any]) -> int | None:
    """Memory that the page cache could not give back, of ``ansible_memory_mb.nocache``."""
    memory = facts.get("memory_mb")
    nocache = memory.get("nocache") if isinstance(memory, Mapping) else None
    used = nocache.get("used") if isinstance(nocache, Mapping) else None
    return used if _is_mib(used) else None


def _is_mib(value: object) -> TypeGuard[int]:
    """Whether a fact is a size that a machine may have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value * MIB <= _MOST_BYTES
