"""Kubelet configurations: the equality that the Memory Manager demands, and what huge pages do to eviction."""

from __future__ import annotations

import difflib
from typing import Final

from hugeplan.lint.kinds.quantities import bytes_or_none, check_memory, page_bytes_of, read_quantities
from hugeplan.lint.model import Context, Edit, KubeletFact, Notes, Reading, attention, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.model import MIB
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

KIND: Final = "kubelet"
_MANAGER: Final = "kubernetes pkg/kubelet/cm/memorymanager/memory_manager.go validateReservedMemory()"
_CONFIG: Final = "kubernetes pkg/kubelet/apis/config/validation/validation_reserved_memory.go"
#: evictionHard's memory.available where evictionHard is not given at all (pkg/kubelet/apis/config/v1beta1/defaults).
DEFAULT_EVICTION_BYTES: Final = 100 * MIB
_POLICIES: Final = ("None", "Static", "BestEffort")
_TOPOLOGY: Final = ("none", "best-effort", "restricted", "single-numa-node")
_FIELDS: Final = (
    "reservedMemory",
    "kubeReserved",
    "systemReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "memoryManagerPolicy",
    "topologyManagerPolicy",
    "topologyManagerScope",
    "cpuManagerPolicy",
)

SUM: Final = wrong(
    "kubelet-reserved-memory-sum",
    "reservedMemory over all NUMA nodes must equal kubeReserved + systemReserved + evictionHard exactly, "
    "or the kubelet does not start.",
    _MANAGER,
)
MISSING: Final = wrong("kubelet-static-without-reserved", "memoryManagerPolicy: Static needs reservedMemory.", _MANAGER)
DUPLICATE: Final = wrong(
    "kubelet-reserved-memory-twice", "reservedMemory names each NUMA node and resource at most once.", _CONFIG
)
ZERO: Final = wrong("kubelet-reserved-memory-zero", "A reservedMemory limit may not be zero.", _CONFIG)
TYPE: Final = wrong(
    "kubelet-reserved-memory-type", "reservedMemory takes memory and hugepages-<size>, nothing else.", _CONFIG
)
NODE: Final = wrong("kubelet-reserved-memory-node", "reservedMemory names NUMA nodes that the machine has.", _MANAGER)
PAGES_RESERVED: Final = wrong(
    "kubelet-pages-in-reserved",
    "kubeReserved and systemReserved do not take huge pages: the kubelet refuses them.",
    "kubernetes/enhancements#6253 (open)",
)
POLICY: Final = wrong(
    "kubelet-policy-value",
    "memoryManagerPolicy and topologyManagerPolicy are case-sensitive words.",
    "kubernetes pkg/kubelet/apis/config/validation/validation.go",
)
FIELD: Final = wrong(
    "kubelet-unknown-field",
    "A field that the kubelet does not know keeps it from starting with a strict decoding error.",
    "kubelet.config.k8s.io/v1beta1 KubeletConfiguration",
)
NOT_STATIC: Final = wrong(
    "kubelet-reserved-without-static",
    "reservedMemory acts only with memoryManagerPolicy: Static.",
    "kubernetes docs, Utilizing the NUMA-aware Memory Manager",
)
GRACE: Final = wrong(
    "kubelet-soft-without-grace",
    "Each evictionSoft threshold needs a period in evictionSoftGracePeriod, or the kubelet does not start.",
    "kubernetes pkg/kubelet/eviction/helpers.go ParseThresholdConfig()",
)
GATE_GONE: Final = wrong(
    "kubelet-gate-gone",
    "A feature gate is taken out some releases after its feature is general; a kubelet ends over one that it does not "
    "know.",
    "kubernetes staging/src/k8s.io/component-base/featuregate; pkg/features/kube_features.go",
)
GATE_NEW: Final = attention(
    "kubelet-gate-new",
    "A kubelet ends over a feature gate that it does not know.",
    "kubernetes staging/src/k8s.io/component-base/featuregate; #138127",
)
#: Gates and the first release without them, and with them.
_GATES_GONE: Final = {"HugePages": "1.16", "HugePageStorageMediumSize": "1.24"}
_GATES_NEW: Final = {"HugepageAwareEviction": "1.36"}
_DOES_NOT_START: Final = "the kubelet does not start"
PAGES_OF_NUMA: Final = wrong(
    "kubelet-reserved-memory-pages",
    "reservedMemory of each resource must equal what kubeReserved and systemReserved hold of it, and those take no "
    "huge pages: the kubelet does not start.",
    "kubernetes pkg/kubelet/cm/memorymanager/memory_manager.go validateReservedMemory(); "
    "bottlerocket-os/bottlerocket#4754",
)


def detects(document: Tree) -> bool:
    """A KubeletConfiguration, or OpenShift's KubeletConfig around one."""
    return document.get_text("kind") in {"KubeletConfiguration", "KubeletConfig"} or (
        document.get("kind") is None
        and any(key in {"reservedMemory", "memoryManagerPolicy"} for key, _ in document.items())
    )


def read(document: Tree, context: Context) -> Reading:
    """The sums, the policies and the names."""
    notes = Notes()
    kind = document.get_text("kind")
    body = document.get("spec", "kubeletConfig") if kind == "KubeletConfig" else document
    if body is not None:
        check_kubelet(body, notes, context)
    return notes.reading(KIND, kind or "KubeletConfiguration")


def check_kubelet(body: Tree, notes: Notes, context: Context) -> None:
    """Note the problems of a KubeletConfiguration's mapping."""
    _fields(body, notes)
    static = _policies(body, notes)
    reserved = 0
    known = True
    for field in ("kubeReserved", "systemReserved"):
        tree = body.get(field)
        memory = None if tree is None else tree.get("memory")
        check_memory(memory, f"{field}: memory", notes, _DOES_NOT_START)
        size = bytes_or_none(memory)
        known = known and (memory is None or size is not None)
        reserved += size or 0
        for name, value in () if tree is None else tree.items():
            if name.startswith("hugepages"):
                said = f"{field} does not take {name}."
                fix = "Leave it out; reserve the pages by leaving them out of the pods' limits."
                notes.problem(PAGES_RESERVED, value.key_start, name, said, fix)
    for field in ("evictionHard", "evictionSoft"):
        threshold = body.get(field, "memory.available")
        if threshold is not None and not (threshold.text or "").endswith("%"):
            check_memory(threshold, f"{field}: memory.available", notes, _DOES_NOT_START)
    _gates(body, notes)
    eviction, eviction_edit = _eviction(body)
    soft = _soft_eviction(body, notes)
    total = None if eviction is None or not known else reserved + eviction
    notes.facts.append(
        KubeletFact(
            eviction_hard_bytes=eviction,
            eviction_soft_bytes=soft,
            reserved_bytes=reserved if known else None,
            position=body.start,
            eviction_edit=eviction_edit,
        )
    )
    if total is not None:
        notes.effects.append(
            f"holds back {format_bytes(total)} of memory: reserved {format_bytes(reserved)} and eviction threshold "
            f"{format_bytes(eviction or 0)}"
        )
    _reserved_memory(body, total, static, notes, context)


def _gates(body: Tree, notes: Notes) -> None:
    """Feature gates that a kubelet may not know; it does not start with one that it does not know."""
    gates = body.get("featureGates")
    for name, value in () if gates is None else gates.items():
        if name in _GATES_GONE:
            said = f"No kubelet since Kubernetes {_GATES_GONE[name]} knows the gate {name}: it does not start."
            notes.problem(GATE_GONE, value.key_start, name, said, "Leave it out: what it switched is always on.")
        elif name in _GATES_NEW:
            said = (
                f"Kubelets before Kubernetes {_GATES_NEW[name]} do not know the gate {name}, and do not start with it."
            )
            notes.problem(GATE_NEW, value.key_start, name, said, "Leave it out where a node is older.")


def _fields(body: Tree, notes: Notes) -> None:
    for name, tree in body.items():
        if name in _FIELDS:
            continue
        near = difflib.get_close_matches(name, _FIELDS, n=1, cutoff=0.85)
        if near or name == "reserved-memory":
            right = near[0] if near else "reservedMemory"
            notes.rewrite(FIELD, tree.key, name, f"The kubelet has no field {name}.", right)


def _policies(body: Tree, notes: Notes) -> bool:
    for field, words in (("memoryManagerPolicy", _POLICIES), ("topologyManagerPolicy", _TOPOLOGY)):
        tree = body.get(field)
        text = None if tree is None else tree.text
        if tree is not None and text not in words:
            near = next((word for word in words if word.lower() == (text or "").lower()), None)
            near = near or next(iter(difflib.get_close_matches(text or "", words, n=1)), None)
            said = f"{field}: {text} is not one of {', '.join(words)}, so the kubelet does not start."
            notes.rewrite(POLICY, tree, f"{field}: {text}", said, near, otherwise=f"Use one of {', '.join(words)}.")
    return (body.get_text("memoryManagerPolicy") or "").lower() == "static"


def _eviction(body: Tree) -> tuple[int | None, tuple[int, int] | None]:
    """evictionHard's memory.available in bytes; None for a percentage, whose base is the node's memory."""
    tree = body.get("evictionHard")
    if tree is None:
        return DEFAULT_EVICTION_BYTES, None
    value = tree.get("memory.available")
    if value is None:
        # Other signals without this one switch it off, unless mergeDefaultEvictionSettings is true.
        return (DEFAULT_EVICTION_BYTES if body.get_text("mergeDefaultEvictionSettings") == "true" else 0), None
    return bytes_or_none(value), (value.start, value.end)


def _soft_eviction(body: Tree, notes: Notes) -> int | None:
    """evictionSoft's memory.available in bytes; None where there is none, or a percentage."""
    tree, periods = body.get("evictionSoft"), body.get("evictionSoftGracePeriod")
    for signal, value in () if tree is None else tree.items():
        if periods is None or periods.get(signal) is None:
            said = f"evictionSoft has a threshold for {signal} without a grace period, so the kubelet does not start."
            fix = f"Add evictionSoftGracePeriod with {signal}: 10s."
            notes.problem(GRACE, value.key_start, f"evictionSoft: {signal}", said, fix)
    return None if tree is None else bytes_or_none(tree.get("memory.available"))


def _reserved_memory(body: Tree, total: int | None, static: bool, notes: Notes, context: Context) -> None:
    entries = body.get("reservedMemory")
    listed = [] if entries is None else list(entries.elements())
    if not listed:
        if static:
            where = body.get("memoryManagerPolicy")
            amount = f" of {format_kubernetes_bytes(total)} in total" if total is not None else ""
            said = "The Static policy has no reservedMemory, so the kubelet does not start."
            fix = f"Add reservedMemory entries{amount}."
            notes.problem(
                MISSING, body.start if where is None else where.start, "memoryManagerPolicy: Static", said, fix
            )
        return
    seen: set[tuple[int | None, str]] = set()
    memory: list[tuple[int, Tree]] = []
    unreadable = False
    for entry in listed:
        node = None if entry.get("numaNode") is None else entry.get("numaNode").whole_number()  # type: ignore[union-attr]
        if node is not None and context.numa_nodes is not None and node not in context.numa_nodes:
            said = f"There is no NUMA node {node}."
            fix = f"Use one of {', '.join(str(n) for n in context.numa_nodes)}."
            notes.problem(NODE, entry.start, f"numaNode: {node}", said, fix)
        limits = entry.get("limits")
        read_quantities(limits, notes, context)
        for name, value in () if limits is None else limits.items():
            if static and name.startswith("hugepages-") and bytes_or_none(value):
                said = f"The kubelet compares {name}: {value.text} with 0, which it holds back of huge pages, and ends."
                fix = "Leave it out; reserve the pages by leaving them out of the pods' limits."
                notes.problem(PAGES_OF_NUMA, value.key_start, name, said, fix)
            if (node, name) in seen:
                said = f"{name} of NUMA node {node} is reserved twice."
                notes.problem(DUPLICATE, value.key_start, name, said, "Write one entry.")
            seen.add((node, name))
            _limit(name, value, notes)
            if name == "memory":
                check_memory(value, "reservedMemory: memory", notes, _DOES_NOT_START)
                size = bytes_or_none(value)
                unreadable = unreadable or size is None
                memory.append((size or 0, value))
    if not static:
        said = "reservedMemory has no effect: memoryManagerPolicy is not Static."
        fix = "Write memoryManagerPolicy: Static, or leave reservedMemory out."
        notes.problem(NOT_STATIC, listed[0].start, "reservedMemory", said, fix)
        return
    _sum(memory, total, unreadable, notes)


def _limit(name: str, value: Tree, notes: Notes) -> None:
    if name != "memory" and page_bytes_of(name) is None and not name.startswith("hugepages"):
        notes.problem(TYPE, value.key_start, name, f"reservedMemory does not take {name}.", "Leave it out.")
    if bytes_or_none(value) == 0:
        said = "The kubelet refuses a reservation of zero."
        notes.problem(ZERO, value.start, f"{name}: {value.text}", said, "Leave the line out.")


def _sum(memory: list[tuple[int, Tree]], total: int | None, unreadable: bool, notes: Notes) -> None:
    if total is None or unreadable:
        notes.effects.append("whether reservedMemory has the right sum cannot be told: a threshold is a percentage")
        return
    found = sum(size for size, _ in memory)
    if found == total:
        notes.effects.append(f"reservedMemory sums to {format_kubernetes_bytes(found)}, as the kubelet demands")
        return
    place = memory[-1][1] if memory else None
    edits: tuple[Edit, ...] = ()
    text = format_kubernetes_bytes(total)
    if memory and place is not None:
        rest = total - sum(size for size, _ in memory[:-1])
        if rest > 0:
            edits = (Edit(place.start, place.end, format_kubernetes_bytes(rest)),)
    said = (
        f"reservedMemory sums to {format_kubernetes_bytes(found)}, but kubeReserved + "
        f"systemReserved + evictionHard is {text}."
    )
    fix = f"Make the entries sum to {text} exactly{f': write {edits[0].text}' if edits else ''}."
    notes.problem(SUM, 0 if place is None else place.start, "reservedMemory", said, fix, *edits)
