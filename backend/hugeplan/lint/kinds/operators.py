"""Operators' custom resources: the pod's limits and the engine's settings in one object.

The table of operators (``hugeplan.recognition.operators``) says where each of the two stands.
"""

from __future__ import annotations

import re
from typing import Final

from hugeplan.formats.postgresql_conf import Setting
from hugeplan.lint.kinds.my_cnf import check_my_cnf
from hugeplan.lint.kinds.postgresql_conf import check_settings
from hugeplan.lint.kinds.quantities import bytes_or_none
from hugeplan.lint.kinds.resources import check_resources
from hugeplan.lint.model import Context, Notes, Reading, wrong
from hugeplan.lint.yaml_tree import Tree
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.units import format_bytes, parse_postgresql_bytes
from hugeplan.recognition.base import CustomResource, Operator
from hugeplan.recognition.operators import RESOURCES

KIND: Final = "operator"
ZALANDO_FIELD: Final = wrong(
    "zalando-huge-pages-field",
    "Zalando's operator takes hugepages-2Mi and hugepages-1Gi beside cpu and memory, "
    "and copies nothing else to the pod.",
    "zalando/postgres-operator manifests/postgresql.crd.yaml, #1549, #2311",
)
PARAMETER_TEXT: Final = wrong(
    "operator-parameter-not-text",
    "A parameter's value is a string in quotes: a bare on is a boolean and is refused.",
    "the custom resource definition: additionalProperties of type string",
)
BUFFERS_ABOVE_ALL: Final = wrong(
    "cnpg-shared-buffers-above-request",
    "CloudNativePG refuses a cluster whose shared_buffers is above both the memory and the huge pages of its pods.",
    "cloudnative-pg/cloudnative-pg#7862, #7864",
)


def row_of(document: Tree) -> tuple[CustomResource, Operator] | None:
    """The row for an object, by its apiVersion's group and its kind; None where nothing is checked."""
    group = (document.get_text("apiVersion") or "").split("/")[0]
    found = RESOURCES.get((group, document.get_text("kind") or ""))
    return None if found is None or found[0].resources is None else found


def detects(document: Tree) -> bool:
    """An object of a known operator."""
    return row_of(document) is not None


def read(document: Tree, context: Context) -> Reading:
    """Limits and settings, then both against each other (in ``together``)."""
    found = row_of(document)
    assert found is not None
    row, operator = found
    engine = operator.engine
    notes = Notes()
    name = document.get_text("metadata", "name") or "the cluster"
    owner = f"{row.title} {name}"
    spec = document.get("spec")
    if spec is None:
        return notes.reading(KIND, row.title)
    _resources(spec, found, owner, notes, context)
    parameters = spec.get(*row.parameters) if row.parameters else None
    if engine == "postgresql":
        check_settings(_settings(parameters, row, notes), notes, context, version=_version(spec, row), owner=owner)
    if row.group == "postgresql.cnpg.io":
        _requests(spec, parameters, owner, notes)
    option_file = spec.get(*row.option_file) if row.option_file else None
    if option_file is not None and option_file.text is not None:
        _option_file(option_file, (engine, owner), notes, context)
    return notes.reading(KIND, row.title)


def _resources(spec: Tree, found: tuple[CustomResource, Operator], owner: str, notes: Notes, context: Context) -> None:
    row, operator = found
    holders = [spec] if not row.sets else list((spec.get(*row.sets) or spec).elements())
    for index, holder in enumerate(holders):
        replicas_tree = holder.get(*row.replicas) if row.replicas else None
        replicas = 1 if replicas_tree is None else replicas_tree.whole_number()
        resources = holder.get(*(row.resources or ()))
        which = owner if not row.sets else f"{owner}, instance set {holder.get_text('name') or index + 1}"
        check_resources(
            resources,
            which,
            notes,
            context,
            engine=operator.engine,
            replicas=replicas,
            position=holder.start,
            # Others leave a new cluster to initdb, which begins with huge_pages = try.
            tries_pages_first=operator.engine == "postgresql" and not operator.switches_huge_pages,
        )
        if row.known_resources_only and resources is not None:
            _zalando(resources, notes)


def _requests(spec: Tree, parameters: Tree | None, owner: str, notes: Notes) -> None:
    """shared_buffers against the memory or huge pages that are requested, as CloudNativePG's admission compares them.

    Releases before its #7864 compared it with the memory alone.
    """
    value = None if parameters is None else parameters.get("shared_buffers")
    requests, limits = spec.get("resources", "requests"), spec.get("resources", "limits")
    memory = None if requests is None else bytes_or_none(requests.get("memory"))
    if value is None or not memory:
        return
    try:
        buffers = parse_postgresql_bytes(value.text or "", 8192, "shared_buffers")
    except PlannerError:
        return  # the unit is a problem already
    parts = [part for part in (requests, limits) if part is not None]
    held = [bytes_or_none(tree) or 0 for part in parts for name, tree in part.items() if name.startswith("hugepages-")]
    if buffers > max(memory, *held, 0):
        said = (
            f"{owner} requests {format_bytes(memory)} of memory and no huge pages that hold shared_buffers: the "
            "operator refuses it."
        )
        fix = "Write huge page limits that hold shared_buffers, or request more memory."
        notes.problem(BUFFERS_ABOVE_ALL, value.start, f"shared_buffers: {value.text}", said, fix)


def _zalando(resources: Tree, notes: Notes) -> None:
    for part in ("limits", "requests"):
        tree = resources.get(part)
        for name, value in () if tree is None else tree.items():
            if re.match(r"huge[-_]?pages?_", name):
                notes.rewrite(ZALANDO_FIELD, value.key, name, f"The operator drops {name}.", "hugepages-2Mi")


def _settings(parameters: Tree | None, row: CustomResource, notes: Notes) -> list[Setting]:
    found = []
    for name, value in () if parameters is None else parameters.items():
        text = value.text
        if text is None:
            continue
        if row.texts_only and not value.is_text and name.startswith("huge_page"):
            said = f"{name}: {text} is not a string here, so the API server refuses it."
            notes.rewrite(PARAMETER_TEXT, value, f"{name}: {text}", said, f'"{text}"', fix=f'Write {name}: "{text}".')
        found.append(Setting(name, text, (value.key_start, value.key_end), _inner(value), quoted=False))
    return found


def _inner(value: Tree) -> tuple[int, int]:
    """The span of a scalar without its quotes, so that an edit keeps them."""
    return (value.start + 1, value.end - 1) if value.is_quoted else (value.start, value.end)


def _version(spec: Tree, row: CustomResource) -> str | None:
    text = next((said for field in (row.image, row.version) if field and (said := spec.get_text(*field))), None)
    found = re.search(r"(\d++(?:\.\d++)?)", (text or "").rsplit("/", 1)[-1])
    return None if found is None else found[1]


def _option_file(tree: Tree, whose: tuple[str, str], notes: Notes, context: Context) -> None:
    """The text of a block scalar; edits are left out, because its lines are indented in the source."""
    engine, owner = whose
    inner = Notes()
    check_my_cnf(tree.text or "", tree.start, inner, context, owner=owner, engine=engine)
    notes.take(inner, tree.start)
