"""What a page count rests on: values that were given, values of the running server, and values that were assumed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hugeplan.cli.running_server import Basis
from hugeplan.planner.demand import engine_named, is_sized
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest
from hugeplan.planner.pages import counted_pages


def assumed_values(instance: DatabaseInstance, planned: InstancePlan | None, basis: Basis) -> dict[str, str]:
    """Values that nothing names. A running server whose files were all read has its defaults for sure."""
    assumed = {}
    if instance.version is None and planned is not None and planned.demand.version is not None:
        assumed["version"] = planned.demand.version
    if basis.server is not None and basis.complete:
        return assumed
    version = instance.version or (planned.demand.version if planned is not None else None)
    engine = engine_named(instance.engine)
    for spec in engine.settings:
        fits = not spec.versions or version is None or version.split(".")[0] in spec.versions
        if spec.matters and fits and spec.default is not None and spec.name not in instance.settings:
            assumed[spec.name] = spec.default
    if planned is not None and planned.demand.pool_bytes is not None and engine.shares_memory(instance):
        assumed[str(engine.pool_setting)] = engine.format_size(planned.demand.pool_bytes)
    return assumed


def basis_lines(request: PlanRequest, plan: Plan, basis: Mapping[str, Basis]) -> list[str]:
    """A few sentences per database: its pages, its server, and each value with where it comes from."""
    lines = []
    for instance, planned, own in _each(request, plan, basis):
        pages = planned.demand.pages
        count = counted_pages(pages, planned.page_bytes) if planned.page_bytes else "no pages"
        error = planned.demand.error_pages if planned.page_bytes else 0
        least = f"{count}{f', at most {pages + error}' if error else ''}"
        parts = [f"{instance.name}: {least}{f', for {own.server}' if own.server else ''}."]
        given = ", ".join(f"{name} = {value}" for name, value in own.given.items())
        if given:
            parts.append(f"Given: {given}.")
        read = ", ".join(f"{name} = {value} ({source})" for name, (value, source) in own.read.items())
        if read:
            parts.append(f"From the server: {read}.")
        ignored = ", ".join(f"{name} = {value} ({source})" for name, (value, source) in own.not_understood.items())
        if ignored:
            parts.append(f"Not understood, so counted as if it were not there: {ignored}; name it in the option.")
        if own.server is not None and own.complete:
            parts.append("Everything else is at its defaults there.")
        elif own.server is not None:
            parts.append(f"Not all of its settings could be read{'' if os.geteuid() == 0 else ' (root can)'}.")
        engine = engine_named(instance.engine)
        if engine.shared_by and not is_sized(engine, instance):
            parts += [item.reason for item in planned.demand.settings if item.name == f"-{engine.pool_setting}"]
        assumed = ", ".join(f"{n} = {v}" for n, v in assumed_values(instance, planned, own).items())
        if assumed:
            parts.append(f"Assumed, because nothing names it: {assumed}.")
        lines.append(" ".join(parts))
    return lines


def basis_document(request: PlanRequest, plan: Plan, basis: Mapping[str, Basis]) -> list[dict[str, Any]]:
    """The same as plain data, one entry per database."""
    return [
        {
            "instance": instance.name,
            "server": own.server,
            "given": dict(own.given),
            "from_server": {n: {"value": value, "source": source} for n, (value, source) in own.read.items()},
            "not_understood": {n: {"value": v, "source": source} for n, (v, source) in own.not_understood.items()},
            "assumed": assumed_values(instance, planned, own),
        }
        for instance, planned, own in _each(request, plan, basis)
    ]


def _each(
    request: PlanRequest, plan: Plan, basis: Mapping[str, Basis]
) -> Sequence[tuple[DatabaseInstance, InstancePlan, Basis]]:
    planned = {one.name: one for one in plan.instances}
    return [
        (i, planned[i.name], basis.get(i.name, Basis(given=dict(i.settings))))
        for i in request.databases
        if i.name in planned
    ]
