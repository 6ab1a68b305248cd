"""Small cluster objects: NodeOverlay, NodeFeatureRule, MachineConfig, Tuned, AKS and GKE node configuration."""

from __future__ import annotations

import re
from typing import Final

from hugeplan.lint.kernel.check import check_words, has_huge_page_words
from hugeplan.lint.kinds import tuned_conf
from hugeplan.lint.kinds.quantities import check_name, read_quantities
from hugeplan.lint.kinds.sysfs_paths import THP_WORDS, thp_word
from hugeplan.lint.model import GIB, MIB, Context, Edit, Notes, PoolFact, Reading, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.memory.kernel_words import words_of
from hugeplan.planner.pages import counted_pages
from hugeplan.planner.units import format_bytes, format_share

OVERLAY_STANDARD: Final = wrong(
    "overlay-standard-resource",
    "A NodeOverlay's capacity adds extended resources; cpu, memory, ephemeral-storage and pods are refused.",
    "aws/karpenter-provider-aws karpenter.sh_nodeoverlays.yaml x-kubernetes-validations",
)
OVERLAY_REQUIREMENTS: Final = wrong(
    "overlay-requirements", "spec.requirements is required.", "karpenter.sh_nodeoverlays.yaml"
)
NFD_FEATURE: Final = wrong(
    "nfd-feature-name",
    "The feature is memory.hugepages (or memory.numa and so on), with enabled and hugepages-<size> as its attributes.",
    "kubernetes-sigs/node-feature-discovery docs, Customization guide",
)
NFD_OP: Final = wrong(
    "nfd-operator",
    "A matchExpressions operator is In, NotIn, InRegexp, Exists, DoesNotExist, Gt, Lt, "
    "GtLt, Ge, Le, GeLe, IsTrue or IsFalse.",
    "node-feature-discovery api/nfd/v1alpha1",
)
GKE_KEY: Final = wrong(
    "gke-key",
    "The keys are linuxConfig, hugepageConfig, hugepage_size2m and hugepage_size1g.",
    "GKE documentation, Customizing node system configuration",
)
GKE_COUNT: Final = wrong(
    "gke-count", "A GKE huge page count is a whole number from 1.", "GKE documentation, linuxConfig.hugepageConfig"
)
GKE_CAP: Final = wrong(
    "gke-cap",
    "GKE takes at most 60 % of memory below 30 GB and 80 % above it for huge pages.",
    "GKE documentation, hugepageConfig",
)
AKS_FIELD: Final = wrong(
    "aks-no-huge-pages",
    "AKS linuxOSConfig has transparent huge pages and some sysctls, but neither nr_hugepages nor kernel arguments.",
    "AKS documentation, Customize node configuration",
)
AKS_THP: Final = wrong(
    "aks-thp-word",
    "transparentHugePageEnabled takes always, madvise or never; transparentHugePageDefrag also defer and "
    "defer+madvise.",
    "AKS documentation, Customize node configuration",
)
_AKS_THP: Final = {
    f"transparentHugePage{path.rsplit('/', 1)[1].capitalize()}": words for path, words in THP_WORDS.items()
}
_NFD_OPS: Final = (
    "In",
    "NotIn",
    "InRegexp",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Lt",
    "GtLt",
    "Ge",
    "Le",
    "GeLe",
    "IsTrue",
    "IsFalse",
)
_GKE: Final = {"hugepage_size2m": 2 * MIB, "hugepage_size1g": GIB}


def read_overlay(document: Tree, context: Context) -> Reading:
    """What Karpenter will believe a new node offers."""
    notes = Notes()
    spec = document.get("spec")
    capacity = None if spec is None else spec.get("capacity")
    for quantity in read_quantities(capacity, notes, context).values():
        if quantity.bytes is not None:
            notes.effects.append(
                f"Karpenter takes new nodes to offer {format_bytes(quantity.bytes)} of {quantity.name}"
            )
    for name, tree in () if capacity is None else capacity.items():
        if name in {"cpu", "memory", "ephemeral-storage", "pods"}:
            notes.problem(OVERLAY_STANDARD, tree.key_start, name, f"{name} is refused here.", "Leave it out.")
    if spec is not None and spec.get("requirements") is None:
        said = "There are no requirements."
        notes.problem(OVERLAY_REQUIREMENTS, spec.start, "spec", said, "Add a requirement that selects the nodes.")
    notes.effects.append(
        "the pages must be reserved on the node by its user data or image: an overlay reserves nothing"
    )
    return notes.reading("node_overlay", "Karpenter NodeOverlay")


def read_feature_rule(document: Tree, context: Context) -> Reading:
    """The feature and operator names of the rules."""
    notes = Notes()
    rules = document.get("spec", "rules")
    for rule in () if rules is None else rules.elements():
        for matcher in _matchers(rule):
            feature = matcher.get("feature")
            text = (feature.text if feature is not None else None) or ""
            if feature is not None and "huge" in text.lower() and text != "memory.hugepages":
                notes.rewrite(NFD_FEATURE, feature, text, f"There is no feature {text}.", "memory.hugepages")
            expressions = matcher.get("matchExpressions")
            if expressions is not None and "huge" in text.lower():
                _expressions(expressions, notes, context)
    return notes.reading("node_feature_rule", "NodeFeatureRule")


def _matchers(rule: Tree) -> list[Tree]:
    found = list((rule.get("matchFeatures") or rule).elements())
    for group in (rule.get("matchAny") or rule).elements():
        found += list((group.get("matchFeatures") or group).elements())
    return found


def _expressions(expressions: Tree, notes: Notes, context: Context) -> None:
    for name, body in expressions.items():
        if name.lower().startswith("hugepages") and name != "hugepages":
            check_name(name, body, notes, context)
        operator = body.get("op")
        if operator is not None and operator.text not in _NFD_OPS:
            near = next((op for op in _NFD_OPS if op.lower() == (operator.text or "").lower()), None)
            said = f"{operator.text} is not an operator."
            notes.rewrite(NFD_OP, operator, f"op: {operator.text}", said, near, otherwise="Write Gt.")


def read_machine_config(document: Tree, context: Context) -> Reading:
    """kernelArguments, joined in order, as a command line."""
    notes = Notes()
    arguments = document.get("spec", "kernelArguments")
    elements = [] if arguments is None else list(arguments.elements())
    words = [word for e in elements for word in words_of(e.text or "", e.start + (1 if e.is_quoted else 0))]
    if has_huge_page_words(words):
        check_words(words, notes, context)
    return notes.reading("machine_config", "MachineConfig")


def read_tuned(document: Tree, context: Context) -> Reading:
    """The profiles' data, each a tuned.conf."""
    notes = Notes()
    profiles = document.get("spec", "profile")
    for profile in () if profiles is None else profiles.elements():
        data = profile.get("data")
        if data is not None and data.text is not None:
            inner = Notes()
            tuned_conf.check(data.text, inner, context)
            notes.take(inner, data.start)
    return notes.reading("tuned", "Tuned")


def detects_node_system_config(document: Tree) -> bool:
    """GKE's system configuration file: kubeletConfig and linuxConfig at the top."""
    return document.get("kind") is None and (
        document.get("linuxConfig") is not None or document.get("kubeletConfig") is not None
    )


def read_node_system_config(document: Tree, context: Context) -> Reading:
    """Huge page counts per size."""
    notes = Notes()
    linux = document.get("linuxConfig")
    config = None
    for name, tree in () if linux is None else linux.items():
        if name == "hugepageConfig":
            config = tree
        elif re.fullmatch(r"huge_?pages?_?config", name, re.I):
            config = tree
            notes.rewrite(GKE_KEY, tree.key, name, f"GKE has no key {name}.", "hugepageConfig")
    total = 0
    for name, tree in () if config is None else config.items():
        total += _gke_count(name, tree, notes)
    if context.mem_total_bytes is not None and total:
        share = 0.6 if context.mem_total_bytes < 30 * 10**9 else 0.8
        if total > share * context.mem_total_bytes:
            assert config is not None
            said = (
                f"The pools take {format_bytes(total)} of {format_bytes(context.mem_total_bytes)}: "
                f"GKE allows {format_share(share)}."
            )
            notes.problem(GKE_CAP, config.start, "hugepageConfig", said, "Reserve less.")
    return notes.reading("gke_node_system_config", "GKE node system configuration")


def _gke_count(name: str, tree: Tree, notes: Notes) -> int:
    size = _GKE.get(name)
    if size is None:
        found = re.search(r"(2m|1g)", name.lower())
        right = None if found is None else f"hugepage_size{found[1]}"
        said = f"GKE has no key {name}."
        notes.rewrite(GKE_KEY, tree.key, name, said, right, otherwise="Write hugepage_size2m.")
        size = _GKE.get(right or "", 0)
    count = tree.whole_number()
    if count is None or count < 1 or tree.is_text:
        edits = (
            (Edit(tree.start, tree.end, tree.text),)
            if tree.is_quoted and (tree.text or "").isdecimal() and tree.text
            else ()
        )
        said = f"{tree.text} is not a count."
        fix = f"Write {edits[0].text}, without quotes." if edits else "Write a number from 1."
        notes.problem(GKE_COUNT, tree.start, f"{name}: {tree.text}", said, fix, *edits)
        return 0
    if size:
        notes.effects.append(f"reserves {counted_pages(count, size)} on each node of the pool")
        notes.facts.append(PoolFact(pages=count, page_bytes=size))
    return count * size


def detects_aks(document: Tree) -> bool:
    """AKS' custom node configuration, JSON or YAML: linuxOSConfig's fields at the top."""
    keys = {key for key, _ in document.items()}
    return document.get("kind") is None and bool(
        keys & {"transparentHugePageEnabled", "transparentHugePageDefrag", "swapFileSizeMB", "linuxOSConfig"}
    )


def read_aks(document: Tree, _: Context) -> Reading:
    """Fields that AKS does not have."""
    notes = Notes()
    top = document.get("linuxOSConfig") or document
    for field, words in _AKS_THP.items():
        mode = top.get(field)
        if mode is not None and mode.text is not None and mode.text not in words:
            meant = thp_word(mode.text, words)
            quote = '"' if mode.is_quoted else ""
            edits = () if meant is None else (Edit(mode.start, mode.end, f"{quote}{meant}{quote}"),)
            said = f"AKS refuses {mode.text} for {field}: the node pool is not made."
            fix = f"Write {meant}." if meant else f"Write one of {', '.join(words)}."
            notes.problem(AKS_THP, mode.start, f"{field}: {mode.text}", said, fix, *edits)
    for holder in (top, top.get("sysctls")):
        for name, tree in () if holder is None else holder.items():
            if re.search(r"nr_?hugepages|hugepages?(sz|size|count)", name, re.I) or (
                name.lower().startswith("vm") and "huge" in name.lower()
            ):
                said = f"AKS has no field {name}."
                fix = "Reserve the pages with a privileged DaemonSet, then restart the kubelet."
                notes.problem(AKS_FIELD, tree.key_start, name, said, fix)
    return notes.reading("aks_node_config", "AKS custom node configuration")
