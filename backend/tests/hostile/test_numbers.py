"""No number, however large, small or long, is an internal error: it is planned with, or refused by its field."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hugeplan.cli import main
from hugeplan.documents.decoding import convert
from hugeplan.documents.report import Inventory, Sample
from hugeplan.errors import InvalidInputError
from hugeplan.fleet.facts import IncompleteReportError, node_facts
from hugeplan.fleet.observation import node_sample
from hugeplan.formats.quantities import parse_quantity
from hugeplan.lint import Source, lint
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.findings.container_limits import RESERVATION, counter_of_kubelet
from hugeplan.planner.memory.kernel_words import memparse, scan_count
from hugeplan.planner.model import DatabaseInstance
from hugeplan.planner.observation.databases import as_instance
from hugeplan.recognition.config_files import mongod_conf
from hugeplan.recognition.engines.mongodb import cache_size
from hugeplan.recognition.pasted import read_pasted
from hugeplan.scenarios import work

EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.yaml"))
CORPUS = sorted(path for path in (Path(__file__).parents[1] / "lint" / "corpus").rglob("*") if path.is_file())
NUMBERS: tuple[Any, ...] = (10**400, 2**64 - 1, 1e308, 1e-320, -1, "9" * 400 + "GiB")
DIGITS = ("9" * 5000, "9" * 400, "18446744073709551616")
MOST_CHARACTERS = 4000
REPORT = Path(__file__).parents[3] / "docs" / "report.example.json"


def numbers_in(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has a number, or a text that begins with one."""
    if isinstance(document, dict | list):
        for key, member in document.items() if isinstance(document, dict) else enumerate(document):
            yield from numbers_in(member, (*path, key))
    elif isinstance(document, int | float) or (isinstance(document, str) and re.match(r"\d", document)):
        yield path


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_scenario_with_an_absurd_number_is_planned_or_refused(example: Path) -> None:
    document = yaml.safe_load(example.read_text())
    for *above, last in numbers_in(document):
        for number in NUMBERS:
            changed = copy.deepcopy(document)
            place = changed
            for key in above:
                place = place[key]
            place[last] = number
            try:
                work.compute(pickle.dumps((work.Question(changed), work.Files(force=True))))
            except (InvalidInputError, PlannerError):
                pass
            except Exception as error:
                pytest.fail(f"{[*above, last]} = {str(number)[:30]}: {error!r}")


@pytest.mark.parametrize("digits", DIGITS, ids=lambda digits: f"{len(digits)} digits")
def test_a_file_with_an_absurd_number_is_read_or_refused(digits: str) -> None:
    for path in CORPUS:
        text = path.read_text(errors="replace")
        if len(text) > MOST_CHARACTERS:
            continue
        for found in list(re.finditer(r"\d+", text))[:12]:
            try:
                lint([Source("a", text[: found.start()] + digits + text[found.end() :])])
            except Exception as error:
                pytest.fail(f"{path}: {found[0]} at {found.start()}: {error!r}")


@pytest.mark.parametrize("digits", DIGITS, ids=lambda digits: f"{len(digits)} digits")
def test_a_pasted_row_and_a_version_with_an_absurd_number_are_read_or_refused(digits: str) -> None:
    for row in (f"shared_buffers | {digits} | 8kB", f"shared_buffers | 7 | {digits}kB"):
        assert read_pasted(f"name | setting | unit\n{row}\nserver_version | 17.2 | \n") is not None
    for number in (digits, "0x" + "f" * len(digits)):
        cache_size(mongod_conf(f"storage: {{wiredTiger: {{engineConfig: {{cacheSizeGB: {number}}}}}}}"))
    assert counter_of_kubelet(f"v1.{digits}") in {None, RESERVATION}
    with pytest.raises(PlannerError):
        demand_of(DatabaseInstance(name="d", engine="db2", settings={"database_memory": digits}), 1 << 24)


@pytest.mark.parametrize("command", ["plan", "artifacts", "verify"])
def test_a_document_with_an_absurd_number_is_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (f'{{"node": {{"memory": "8GiB", "cpus": {DIGITS[0]}}}}}', '{"plan": ' + "[" * 100_000):
        (tmp_path / "n.json").write_text(text)
        assert (
            main([command, str(tmp_path / "n.json"), *(["--out", str(tmp_path / "o")] * (command == "artifacts"))]) == 2
        )
        said = capsys.readouterr().err
        assert (said.count("\n"), "internal error" in said) == (1, False), said


def texts_in(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has a text."""
    if isinstance(document, dict | list):
        for key, member in document.items() if isinstance(document, dict) else enumerate(document):
            yield from texts_in(member, (*path, key))
    elif isinstance(document, str):
        yield path


@pytest.mark.parametrize(
    "text", ["1e3000000", "1e-3000000", "1e3000000%", "1e3000000GB", "9" * 3_000, "9" * 3_000 + "%"]
)
def test_no_text_of_a_report_is_a_number_without_bound(text: str) -> None:
    """What is computed of a node's own words is computed for everybody, at each report and each plan."""
    report = json.loads(REPORT.read_text())
    report["sample"]["kubelet"]["config"] |= {
        "kubeReserved": {"memory": "1Gi"},
        "systemReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
    }
    report["sample"]["processes"] = []
    for *above, last in list(texts_in({name: report[name] for name in ("inventory", "sample")})):
        place = report
        for key in above:
            place = place[key]
        usual, place[last] = place[last], text
        begun = time.thread_time()
        with contextlib.suppress(ValidationError, IncompleteReportError, PlannerError):
            inventory, sample = convert(Inventory, report["inventory"]), convert(Sample, report["sample"])
            node_facts("n", inventory, sample, measured=None)
            seen = node_sample(inventory, sample, [])
            for database in seen.databases or ():
                demand_of(as_instance(database, "db", DemandContext()), 2 << 20, DemandContext())
        assert time.thread_time() - begun < 0.3, [*above, last]
        place[last] = usual


def test_a_number_of_the_kernel_has_64_bits() -> None:
    # simple_strtoull() goes on multiplying: of 10**64 nothing is left in 64 bits.
    assert scan_count("9" * 5000) == (int("9" * 64) % 2**64, 5000)
    assert memparse("0x" + "f" * 5000) == 2**64 - 1
    assert memparse("18446744073709551617") == 1
    assert memparse("16E") == 0
    assert memparse("2M") == 2 * 1024**2


def test_a_quantity_of_kubernetes_has_63_bits() -> None:
    assert parse_quantity("9" * 30) == parse_quantity("1e40") == 2**63 - 1
