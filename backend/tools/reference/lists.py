"""Artifacts, metrics, events and CSV columns, each from the table or the type that the service itself uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_args

from hugeplan import artifacts
from hugeplan.access.audit import CSV_COLUMNS
from hugeplan.api.background import Supervisor
from hugeplan.api.metrics import Metrics
from hugeplan.events.records import KINDS
from hugeplan.events.schemas import EventKind
from hugeplan.fleet import metrics as fleet_metrics
from hugeplan.fleet.overview_router import DRIFT_COLUMNS
from hugeplan.main import create_app
from hugeplan.settings import Settings
from tools.reference.source import ANYTHING, Source, first_paragraph, modules_below


@dataclass(frozen=True, slots=True)
class File:
    """A kind of artifact: what it does, where it goes, what must be restarted, when not to use it, and where it is the
    recommended one."""

    kind: str
    does: str
    path: str
    restart: str
    avoid: str
    platforms: str


def files() -> Iterator[File]:
    """Every kind of artifact, in the order of the table."""
    said: dict[str, Mapping[str, str]] = {}
    unnamed: dict[str, list[Mapping[str, str]]] = {}
    for module in modules_below("hugeplan.artifacts"):
        source = Source(module)
        for call, function in source.calls():
            if isinstance(call.func, ast.Name) and call.func.id == "Artifact":
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                words = {
                    name: " / ".join(text for text in source.texts(given.get(name), function) if text.strip(ANYTHING))
                    for name in ("summary", "path", "avoid_when")
                }
                after = given.get("restart")
                words["restart"] = after.attr.lower() if isinstance(after, ast.Attribute) else ""
                kinds = [kind for kind in source.texts(given["kind"], function) if kind in artifacts.KINDS]
                said |= dict.fromkeys(kinds, words)
                if not kinds:
                    unnamed.setdefault(module.__name__, []).append(words)
        for call, function in source.calls():  # the second kind of their module
            if isinstance(call.func, ast.Name) and call.func.id == "left_to_a_person":
                summary = " / ".join(source.texts(call.args[2], function))
                words = {"summary": summary, "restart": "engine", "avoid_when": "Another server reads the same lines."}
                unnamed.setdefault(module.__name__, []).append(words)
    for row in artifacts.ROWS:
        name = row.render.__module__
        others = unnamed.get(name, [{}])
        for at, kind in enumerate(row.kinds):
            known = said.get(kind) or others[min(at, len(others) - 1)]
            on = [one.value for one, ways in artifacts.PATHS.items() if any(kind in way for way in ways.values())]
            does = known.get("summary") or first_paragraph(import_module(name).__doc__)
            path, restart, avoid = (known.get(word, "") for word in ("path", "restart", "avoid_when"))
            yield File(kind, does, path, restart, avoid, ", ".join(on))


def metrics() -> list[tuple[str, str, str, str]]:
    """Name, type, labels and meaning of every metric of a process of the service."""
    own = Metrics()
    Supervisor(own.registry)
    labels = {getattr(c, "_name", ""): getattr(c, "_labelnames", ()) for c in own.registry._collector_to_names}
    found = [
        (one.name, one.type, ", ".join(labels.get(one.name, ())), one.documentation) for one in own.registry.collect()
    ]
    source = Source(fleet_metrics)
    for call, function in source.calls():
        if isinstance(call.func, ast.Name) and call.func.id == "GaugeMetricFamily":
            names, texts = source.texts(call.args[0], function), source.texts(call.args[1], function)
            by = next((ast.literal_eval(k.value) for k in call.keywords if k.arg == "labels"), ())
            if names == [ANYTHING]:
                found += [
                    (name, "gauge", "", texts[0].replace(ANYTHING, f"`{column}`"))
                    for column, name in fleet_metrics._NODES.items()
                ]
            else:
                found.append((names[0], "gauge", ", ".join(by), texts[0]))
    return sorted(row for row in found if row[0].startswith("hugeplan_"))


def events() -> list[tuple[str, str]]:
    """Each kind of event with its meaning."""
    return [(kind, KINDS[kind]) for kind in get_args(EventKind)]


@cache
def document() -> dict[str, Any]:
    """The service's OpenAPI document, made once: it takes a second or two. Nobody may change it."""
    return create_app(Settings()).openapi()


def fields(schema: str) -> list[tuple[str, str]]:
    """The fields of a schema of the API with their types."""
    return [(name, _type(one)) for name, one in document()["components"]["schemas"][schema]["properties"].items()]


def tables() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Each list that is also a CSV: its address, what its rows are, and its columns with their types."""
    paths = document()["paths"]
    for path in sorted(path for path in paths if path.endswith(".csv")):
        operation = paths[path]["get"]
        own = {"drift.csv": DRIFT_COLUMNS, "audit.csv": CSV_COLUMNS}.get(path.rsplit("/", 1)[-1])
        answer = paths[path.removesuffix(".csv")]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        rows = dict(fields(_rows_of(answer)))
        if path.endswith("drift.csv"):
            rows = dict(fields("DriftPool")) | rows
        columns = list(rows.items()) if own is None else [(name, rows.get(name, "")) for name in own]
        yield path, operation.get("description") or operation["summary"], columns


def _rows_of(schema: Mapping[str, Any]) -> str:
    """The schema of one row of a list's answer."""
    name = str(schema["$ref"]).rsplit("/", 1)[-1]
    properties = document()["components"]["schemas"][name]["properties"]
    items = properties.get("items") or properties["points"]
    return str(items["items"]["$ref"]).rsplit("/", 1)[-1]


def _type(schema: Mapping[str, Any]) -> str:
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    words = [
        ", ".join(f"`{value}`" for value in one["enum"]) if "enum" in one
        else str(one.get("format") or one.get("type") or one.get("$ref", "").rsplit("/", 1)[-1])
        for one in options
    ]  # fmt: skip
    return " or ".join(words) + (" or empty" if len(options) < len(schema.get("anyOf", [schema])) else "")
