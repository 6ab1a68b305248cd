"""``hugeplan import``: an inventory as scenario files, or into a running service."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hugeplan.artifacts.outside import folder_name
from hugeplan.cli import EXIT_FAILED, InputError
from hugeplan.cli.files import decode_text, read_bytes, read_named, write_file
from hugeplan.cli.plan_inventory import prometheus_inventory
from hugeplan.inventory.ansible import read_ansible
from hugeplan.inventory.answer import answer
from hugeplan.inventory.csv_table import COLUMNS, read_csv
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.model import Inventory, InventoryError
from hugeplan.object_files import scenarios as planned_scenarios
from hugeplan.planner.printable import one_line

if TYPE_CHECKING:
    from hugeplan.cli.service_client import ServiceClient

EPILOG: Final = f"""\
sources:
  kubernetes FILE   kubectl get nodes,pods,pvc,configmaps -A -o json; - reads standard input
  prometheus URL    node_exporter and kube-state-metrics (HUGEPLAN_PROMETHEUS_TOKEN: a bearer token)
  ansible PATH      ansible all -m setup --tree PATH, or its output in a file
  csv FILE          a table with the columns {", ".join(COLUMNS[:6])}, ...

examples:
  kubectl get nodes,pods,pvc -A -o json | hugeplan import kubernetes - --out scenarios
  hugeplan import prometheus http://prometheus.example:9090 --to https://hugeplan.example

--to needs a planner's token in HUGEPLAN_TOKEN. A node's scenario is replaced when it is imported again.
"""
_BATCH: Final = 100
_BATCH_BYTES: Final = 512 * 1024
_BATCH_VALUES: Final = 40_000
"""Commas and opening brackets, which the service counts."""
_MOST_BYTES: Final = 1000 * 1024
_MOST_VALUES: Final = 49_000
"""Of one node. A body may have 1 MiB and 50,000, with the words around it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``import``."""
    parser.add_argument("source", choices=sorted(_READERS), help="what is read")
    parser.add_argument("path", help="a file, a folder or a URL, by source")
    parser.add_argument("--out", metavar="DIR", help="write one scenario file per node into this folder")
    parser.add_argument("--to", metavar="SERVER", help="keep the scenarios in this service, such as https://host:8000")
    parser.add_argument("--all", action="store_true", help="nodes without a database too")


def run(arguments: argparse.Namespace) -> int:
    """Read the source, then write or send one scenario per node; the names are printed."""
    try:
        inventory = _READERS[arguments.source](arguments.path)
    except InventoryError as error:
        raise InputError(str(error)) from error
    for note in inventory.notes:
        sys.stderr.write(f"hugeplan import: {note}\n")
    if not any(node.databases or arguments.all for node in inventory.nodes):
        raise InputError(
            f"{inventory.source}: {len(inventory.nodes)} nodes, none with a database; --all takes them all"
        )
    documents, notes = planned_scenarios(answer(inventory))
    scenarios = [(node.facts.name, document) for node, document in documents if node.databases or arguments.all]
    for note in notes:
        sys.stderr.write(f"hugeplan import: {note}\n")
    refused = _send(arguments.to, inventory, scenarios) if arguments.to is not None else 0
    if arguments.out is not None:
        _write(Path(arguments.out), scenarios)
    if arguments.to is None and arguments.out is None:
        print(json.dumps([{"name": name, "scenario": document} for name, document in scenarios], indent=2))
    return EXIT_FAILED if refused else 0


def _kubernetes(path: str) -> Inventory:
    return read_kubernetes(read_bytes(path), "standard input" if path == "-" else path)


def _csv(path: str) -> Inventory:
    return read_csv(decode_text(read_bytes(path), path), path)


_READERS: Final[dict[str, Callable[[str], Inventory]]] = {
    "kubernetes": _kubernetes,
    "prometheus": prometheus_inventory,
    "ansible": lambda path: read_ansible(Path(path), lambda file: read_named(str(file))),
    "csv": _csv,
}


def _write(folder: Path, scenarios: list[tuple[str, dict[str, Any]]]) -> None:
    taken: set[str] = set()
    try:
        for name, document in scenarios:
            path = folder / f"{folder_name(name, taken)}.json"
            write_file(path, f"{json.dumps(document, indent=2)}\n".encode())
            print(path)
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror}") from error


def _send(server: str, inventory: Inventory, scenarios: list[tuple[str, dict[str, Any]]]) -> int:
    """Post in batches; each is one transaction, so an interrupted import is whole up to a batch. How many were refused.

    A node that the service refuses, or that is too large for any body, is named; the others are kept.
    """
    from hugeplan.cli.service_client import ServiceClient  # noqa: PLC0415 - no HTTP client where nothing is sent

    client = ServiceClient(server, option="--to")
    refused = []
    items: list[tuple[str, str]] = []
    for name, document in scenarios:
        item = json.dumps({"name": f"{name} (imported)", "scenario": document})
        if len(item) > _MOST_BYTES or _values(item) > _MOST_VALUES:
            expected = f"at most {_MOST_BYTES} bytes and {_MOST_VALUES} commas and opening brackets"
            refused.append(
                (name, f"{len(item)} bytes, {_values(item)} commas and opening brackets; expected {expected}")
            )
        else:
            items.append((name, item))
    for batch in _batches(items):
        refused += _keep(client, inventory.source[:500], batch)
    for name, reason in refused:
        sys.stderr.write(f"hugeplan import: {name} is not kept: {reason}\n")
    return len(refused)


def _keep(client: ServiceClient, source: str, batch: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Names and reasons of those that are refused. What is too much at a time for a service goes in halves."""
    from hugeplan.cli.service_client import RefusedError  # noqa: PLC0415 - as above

    body = f'{{"source": {json.dumps(source)}, "scenarios": [{",".join(item for _, item in batch)}]}}'
    try:
        answer = client.ask("imports/scenarios", body=body.encode())
    except RefusedError as error:
        half = len(batch) // 2
        if not half:
            return [(batch[0][0], str(error))]
        return [*_keep(client, source, batch[:half]), *_keep(client, source, batch[half:])]
    with client.understood():
        receipt = json.loads(answer.content)
        for kept in receipt["scenarios"]:
            what = "created" if kept["created"] else "replaced"
            print(f"{one_line(kept['name'], 80)}: {what}, {one_line(kept['id'], 80)}")
        return [(one["name"], one["reason"]) for one in receipt.get("refused", ())]


def _batches(items: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Scenarios as JSON, as many at a time as fit well into a body; one that is larger than that goes alone."""
    batch: list[tuple[str, str]] = []
    size = values = 0
    for name, item in items:
        size, values = size + len(item), values + _values(item)
        if batch and (len(batch) == _BATCH or size > _BATCH_BYTES or values > _BATCH_VALUES):
            yield batch
            batch, size, values = [], len(item), _values(item)
        batch.append((name, item))
    if batch:
        yield batch


def _values(text: str) -> int:
    return sum(text.count(sign) for sign in ",{[")
