"""A feature's tables are its own. What crosses stands here with its reason; nothing else may, by model or by SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hugeplan.db import models
from hugeplan.db.base import Base

PACKAGE = Path(models.__file__).parents[2]
SQL = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN|TABLE|COPY)\s+([a-z_]+)\b")
TABLE_OF = {mapper.class_.__name__: mapper.class_.__tablename__ for mapper in Base.registry.mappers}

#: The feature of each table, by its prefix; the longest that fits.
OWNERS = {
    "audit_events": "access", "browser_sessions": "access", "enrolment_": "access", "login_links": "access",
    "machines": "access", "oidc_logins": "access", "tokens": "access",
    "run": "benchmarks", "events": "events", "webhook": "events", "fleet_plan": "fleet_plans",
    "node": "fleet", "report": "fleet", "sample": "fleet", "sealed_": "fleet", "plans_in_force": "fleet",
    "listening": "fleet",
    "plans": "scenarios", "scenario": "scenarios", "trials": "trials",
}  # fmt: skip
#: Everybody's: migrations, partitions and retention know all tables.
EVERYWHERE = {"db"}
#: (feature, table) -> why it does not ask the owner.
CROSSINGS = {
    ("access", "nodes"): "a machine that asks to enrol again is recognised by what its node was",
    ("benchmarks", "nodes"): "lists of runs are filtered by their node, in one statement",
    ("cli", "tokens"): "doctor looks into a database that it does not serve",
    ("events", "nodes"): "past changes are listed without those of synthetic nodes, in one statement",
    ("fleet", "tokens"): "a report's machine and its token are checked in the statement that stores it",
    ("fleet", "runs"): "a report stores its run in the same batch; summaries count them",
    ("fleet", "run_wins"): "a report stores its run in the same batch; summaries count them",
    ("fleet", "plans"): "a plan in force is read where a report is verified against it",
    ("plans", "fleet_plan_nodes"): "a row of a fleet plan becomes a kept plan",
    ("plans", "nodes"): "the node of a kept plan is locked while it is put in force",
    ("plans", "plans"): "states and signatures of the plans that scenarios keep",
    ("scenarios", "nodes"): "scenarios are listed with their node's name",
    ("scenarios", "plans_in_force"): "plans are listed with where they are in force",
    ("trials", "nodes"): "a trial is stored for the node that reports under its machine id",
    ("trials", "machines"): "of clones of a machine the one is found that a trial ran on, in one statement",
    ("scenarios", "runs"): "a plan names the run that it was made with",
}


def owner(table: str) -> str:
    """The feature that a table belongs to."""
    return OWNERS[max((prefix for prefix in OWNERS if table.startswith(prefix)), key=len)]


def tables_in(source: str) -> Iterator[str]:
    """Tables that a module names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hugeplan.db.models"):
            yield from (TABLE_OF[name.name] for name in node.names if name.name in TABLE_OF)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (name for name in SQL.findall(node.value) if name in TABLE_OF.values())


def crossings() -> dict[tuple[str, str], list[str]]:
    """(feature, table of another) -> modules."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE)
        feature = module.parts[0]
        for table in set(tables_in(path.read_text(encoding="utf-8"))):
            if feature not in EVERYWHERE and owner(table) != feature:
                found.setdefault((feature, table), []).append(str(module))
    return found


def test_every_table_has_an_owner() -> None:
    assert {owner(table) for table in TABLE_OF.values()} <= {path.name for path in PACKAGE.iterdir() if path.is_dir()}


def test_no_other_feature_has_statements_about_a_table() -> None:
    found = crossings()
    assert {key: modules for key, modules in found.items() if key not in CROSSINGS} == {}
    assert set(CROSSINGS) == set(found), "a crossing that is gone leaves the list, too"


@pytest.mark.parametrize(
    "source",
    [
        "from hugeplan.db.models import ScenarioRow",
        'QUERY = "SELECT name FROM scenarios"',
        'X = "UPDATE scenarios SET"',
    ],
)
def test_the_test_sees_models_and_texts(source: str) -> None:
    assert [owner(table) for table in tables_in(source)] == ["scenarios"]
