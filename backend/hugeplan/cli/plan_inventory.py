"""``hugeplan plan`` over a whole inventory: Kubernetes objects on standard input, or a Prometheus server."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from hugeplan.cli import InputError, status_of_plans
from hugeplan.cli.bundle_files import write_bundle, write_none
from hugeplan.cli.files import write_file
from hugeplan.inventory.answer import FleetAnswer, answer
from hugeplan.inventory.document import inventory_document
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.model import Inventory, InventoryError
from hugeplan.inventory.text import inventory_text
from hugeplan.planner.model import State


def plan_kubernetes(data: bytes, path: str, arguments: argparse.Namespace) -> int:
    """Plan every node of the objects in ``data`` and print the answer."""
    # The millions of objects of a large cluster hold no cycles; collecting among them would double the time.
    gc.disable()
    try:
        found = read_kubernetes(data, "standard input" if path == "-" else path)
        return print_answer(found, arguments)
    except InventoryError as error:
        raise InputError(str(error)) from error
    finally:
        gc.enable()


def print_answer(inventory: Inventory, arguments: argparse.Namespace) -> int:
    """Plan, write files where asked to, print; the exit status says whether all fits and nothing is wrong."""
    if not inventory.nodes:
        kinds = "; ".join(inventory.notes[:3])
        raise InputError(f"no node in {inventory.source}" + (f": {kinds}" if kinds else ""))
    found = answer(inventory)
    if arguments.artifacts is not None:
        write_artifacts(found, Path(arguments.artifacts), force=arguments.force)
    if arguments.json:
        print(json.dumps(inventory_document(found), ensure_ascii=False, allow_nan=False))
    else:
        sys.stdout.write(inventory_text(found, verbose=arguments.verbose))
    return exit_status(found)


def exit_status(found: FleetAnswer) -> int:
    """The exit status of the plans of all nodes; a node on which there is nothing to plan asks for nothing."""
    fits = [node.fits for node in found.nodes if node.plan is not None or node.not_planned_because is not None]
    return status_of_plans(fits, wrong=any(one.state is State.WRONG for one in found.all_findings))


def write_artifacts(found: FleetAnswer, folder: Path, *, force: bool) -> None:
    """One folder per planned node: its whole plan as JSON, and the files that apply it.

    A plan that is not known to fit has none without ``force``, nor one that shares an object with such a node.
    """
    from hugeplan.artifacts import render  # noqa: PLC0415 - most answers are only printed
    from hugeplan.artifacts.bundle import bundle  # noqa: PLC0415
    from hugeplan.artifacts.outside import folder_name  # noqa: PLC0415
    from hugeplan.object_files import needs_of_objects, reasons  # noqa: PLC0415

    taken: set[str] = set()
    why_not = reasons(found, force=force)
    of_objects = needs_of_objects(node for node, reason in zip(found.nodes, why_not, strict=True) if reason is None)
    for node, reason in zip(found.nodes, why_not, strict=True):
        name = node.node.facts.name
        own = folder / folder_name(name, taken)
        if node.plan is None:
            write_none(own, name, reason or "", "--artifacts")
            continue
        if reason is not None:
            sys.stderr.write(f"hugeplan plan: {name}: {reason}\n")
        try:
            write_file(own / "plan.json", json.dumps(asdict(node.plan), indent=2, ensure_ascii=False).encode())
        except OSError as error:
            raise InputError(f"--artifacts {own}: {error.strerror}") from error
        artifacts = () if reason else render(node.plan, node.request, force=force, of_objects=of_objects)
        if artifacts:
            write_bundle(bundle(node.plan.node, node.plan.headline, artifacts), own, "--artifacts")
        else:
            write_none(own, name, reason or "It has nothing to install.", "--artifacts")


def plan_prometheus(arguments: argparse.Namespace) -> int:
    """Plan every node that a Prometheus server knows."""
    return print_answer(prometheus_inventory(arguments.prometheus), arguments)


def prometheus_inventory(url: str) -> Inventory:
    """What a Prometheus server knows; HUGEPLAN_PROMETHEUS_TOKEN is its bearer token."""
    from hugeplan.inventory.prometheus import read_prometheus  # noqa: PLC0415 - no HTTP client for other sources

    try:
        return read_prometheus(url, token=os.environ.get("HUGEPLAN_PROMETHEUS_TOKEN", "").strip() or None)
    except InventoryError as error:
        raise InputError(str(error)) from error
