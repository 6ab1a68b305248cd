"""Which kind a file is, by its content: one row per kind, first match wins."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hugeplan.lint.kinds import (
    bottlerocket,
    cluster_objects,
    config_map,
    jvm,
    kernel_command_line,
    kubelet,
    kustomization,
    limits,
    my_cnf,
    operators,
    performance_profile,
    pod,
    postgresql_conf,
    quota,
    redis_conf,
    sysctl,
    systemd_unit,
    tmpfiles,
    tuned_conf,
    values,
)
from hugeplan.lint.model import Context, Edit, Notes, Problem, Reading, Source, wrong
from hugeplan.lint.yaml_tree import Tree, YamlError, documents


@dataclass(frozen=True, slots=True)
class TextKind:
    """A kind of text file."""

    name: str
    detects: Callable[[Source], bool]
    read: Callable[[Source, Context], Reading]


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of YAML or JSON object."""

    name: str
    detects: Callable[[Tree], bool]
    read: Callable[[Tree, Context], Reading]


def of_kind(*kinds: str) -> Callable[[Tree], bool]:
    """Tells an object by its ``kind`` alone."""
    return lambda document: document.get_text("kind") in kinds


#: From the most to the least particular.
TEXT_KINDS: Final = (
    TextKind(bottlerocket.KIND, bottlerocket.detects, bottlerocket.read),
    TextKind(tuned_conf.KIND, tuned_conf.detects, tuned_conf.read),
    TextKind(systemd_unit.KIND, systemd_unit.detects, systemd_unit.read),
    TextKind(my_cnf.KIND, my_cnf.detects, my_cnf.read),
    TextKind(tmpfiles.KIND, tmpfiles.detects, tmpfiles.read),
    TextKind(limits.KIND, limits.detects, limits.read),
    TextKind(postgresql_conf.KIND, postgresql_conf.detects, postgresql_conf.read),
    TextKind(sysctl.KIND, sysctl.detects, sysctl.read),
    TextKind(kernel_command_line.KIND, kernel_command_line.detects, kernel_command_line.read),
    TextKind(jvm.KIND, jvm.detects, jvm.read),
    TextKind(redis_conf.KIND, redis_conf.detects, redis_conf.read),
)
OBJECT_KINDS: Final = (
    ObjectKind(performance_profile.KIND, of_kind("PerformanceProfile"), performance_profile.read),
    ObjectKind(operators.KIND, operators.detects, operators.read),
    ObjectKind("node_overlay", of_kind("NodeOverlay"), cluster_objects.read_overlay),
    ObjectKind("node_feature_rule", of_kind("NodeFeatureRule"), cluster_objects.read_feature_rule),
    ObjectKind("machine_config", of_kind("MachineConfig"), cluster_objects.read_machine_config),
    ObjectKind("tuned", of_kind("Tuned"), cluster_objects.read_tuned),
    ObjectKind(kubelet.KIND, kubelet.detects, kubelet.read),
    ObjectKind(
        "gke_node_system_config", cluster_objects.detects_node_system_config, cluster_objects.read_node_system_config
    ),
    ObjectKind("aks_node_config", cluster_objects.detects_aks, cluster_objects.read_aks),
    ObjectKind(quota.KIND, of_kind("ResourceQuota", "LimitRange"), quota.read),
    ObjectKind(config_map.KIND, of_kind("ConfigMap", "Secret"), config_map.read),
    ObjectKind(kustomization.KIND, kustomization.detects, kustomization.read),
    ObjectKind(pod.KIND, pod.detects, pod.read),
    ObjectKind(values.KIND, values.detects, values.read),
)
_OBJECT: Final = re.compile(
    r"""^[ \t]*+["']?(apiVersion|kind|resources|containers|linuxConfig|kubeletConfig|reservedMemory|memoryManagerPolicy
    |transparentHugePage\w*|evictionHard|kubeReserved)["']?[ \t]*+:""",
    re.M | re.X,
)
DUPLICATE_KEY: Final = wrong(
    "yaml-key-twice",
    "A key occurs once in a mapping: the API server refuses the object, other readers keep the last.",
    "kubernetes strict field validation",
)
BYTE_ORDER_MARK: Final = wrong(
    "byte-order-mark",
    "A configuration file starts with its first character: a byte order mark makes the first line something else.",
    "sysctl.d(5), tmpfiles.d(5), the shell, PostgreSQL and MySQL read it as a part of the first word",
)
_MARK: Final = "\ufeff"
#: The first line of an object, or a section of an ini file: never indented, so an option file inside a block scalar
#: of a ConfigMap is not one.
_TOP_KEY: Final = re.compile(r"""^\ufeff?["']?(apiVersion|kind|items)["']?[ \t]*+:""", re.M)
_SECTION: Final = re.compile(r"^\[[\w.\"-]++\][ \t\r]*+$", re.M)
MAX_DOCUMENTS: Final = 500


class UnknownKindError(ValueError):
    """The content is no kind that the linter knows."""


def read_source(source: Source, context: Context) -> tuple[Reading, ...]:
    """All parts of a file. Raises ValueError in one line: of no known kind, or not readable as its kind."""
    text = source.text
    if _TOP_KEY.search(text) or (_OBJECT.search(text) and not _SECTION.search(text)):
        return _objects(source, context)
    has_mark = text.startswith(_MARK)
    # A blank in place of the mark keeps every offset.
    plain = Source(source.name, " " + text[1:]) if has_mark else source
    for kind in TEXT_KINDS:
        if kind.detects(plain):
            reading = kind.read(plain, context)
            return (_with_mark(reading) if has_mark else reading,)
    if re.match(r"\s*(\{|- )", text):
        return _objects(source, context)
    raise UnknownKindError(
        "not recognised: no kernel command line, sysctl, tmpfiles, unit, Kubernetes object or engine configuration"
    )


def _objects(source: Source, context: Context) -> tuple[Reading, ...]:
    trees = documents(source.text)
    found: list[Reading] = []
    for document in _flattened(trees):
        for kind in OBJECT_KINDS:
            if kind.detects(document):
                reading = kind.read(document, context)
                found.append(_with_duplicates(reading, document))
                break
    if not found:
        kinds = ", ".join(sorted({tree.get_text("kind") or "an object without kind" for tree in trees})) or "nothing"
        raise UnknownKindError(f"nothing to check: the file holds {kinds}")
    return tuple(found)


def _flattened(trees: list[Tree]) -> list[Tree]:
    """Documents, with the items of Lists in their place."""
    flat: list[Tree] = []
    for tree in trees[:MAX_DOCUMENTS]:
        items = tree.get("items") if (tree.get_text("kind") or "").endswith("List") else None
        if items is not None:
            flat += list(items.elements())[:MAX_DOCUMENTS]
        else:
            flat.append(tree)
    return flat


def _with_mark(reading: Reading) -> Reading:
    """The reading of what was meant, and the mark that keeps the first line from being read so."""
    problem = Problem(
        rule=BYTE_ORDER_MARK, position=0, subject="U+FEFF",
        message="The file begins with a byte order mark, so its first line is not read as it looks.",
        fix="Save the file as UTF-8 without a byte order mark.", edits=(Edit(0, 1, ""),),
    )  # fmt: skip
    return replace(reading, problems=(problem, *reading.problems))


def _with_duplicates(reading: Reading, document: Tree) -> Reading:
    notes = Notes(list(reading.effects), list(reading.problems), list(reading.facts))
    for key, position in document.duplicate_keys():
        notes.problem(DUPLICATE_KEY, position, key, f"The key {key} occurs twice in one mapping.", "Keep one of them.")
    return notes.reading(reading.kind, reading.title, reading.part)


__all__ = ["OBJECT_KINDS", "TEXT_KINDS", "UnknownKindError", "YamlError", "read_source"]
