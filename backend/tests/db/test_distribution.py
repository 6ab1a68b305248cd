"""What is stored per node can be spread over machines by node_id: each key holds it, and no reference leaves its node.

The rules are those of engines that distribute tables by a column. A table that is not spread stands here with its
reason, and so does each exception; docs/scaling.md tells operators the same.
"""

from __future__ import annotations

from sqlalchemy import Table, UniqueConstraint

from hugeplan.db.base import PARTITIONED_TABLES, Base

#: Table -> the column that it is spread by.
SPREAD = {"nodes": "id"} | dict.fromkeys(
    (
        "node_findings", "node_states", "plans_in_force", "report_documents", "report_references", "reports",
        "run_wins", "runs", "sample_days", "sample_hours", "samples", "sealed_documents", "sealed_samples", "trials",
    ),
    "node_id",
)  # fmt: skip
#: Tables with a node_id that are in one place.
TOGETHER = {
    "events": "who reads by rising id misses none: one order of commits",
    "fleet_plan_nodes": "rows of a plan of many nodes, read by the plan",
    "plans": "kept plans are read by their own id and by digest; a few per node and month",
    "scenario_versions": "of a scenario, read by it",
    "scenarios": "read by their own id; a few per node",
}
#: (table, columns) of unique keys without the node.
KEYS = {("nodes", ("machine_id",)): "a report names its machine, and finds its node by it"}
#: (table, table referred to) of references that leave the node.
REFERENCES = {("plans_in_force", "plans"): "a plan in force keeps its pools when the plan itself is deleted"}


def unique_keys(table: Table) -> list[tuple[str, ...]]:
    """The columns of each unique key."""
    keys = [tuple(column.name for column in table.primary_key)]
    keys += [tuple(column.name for column in index.columns) for index in table.indexes if index.unique]
    unique = (constraint for constraint in table.constraints if isinstance(constraint, UniqueConstraint))
    return keys + [tuple(column.name for column in constraint.columns) for constraint in unique]


def test_every_table_with_a_node_is_spread_or_says_why_not() -> None:
    with_node = {name for name, table in Base.metadata.tables.items() if "node_id" in table.columns}
    assert with_node | {"nodes"} == SPREAD.keys() | TOGETHER.keys()
    assert set(PARTITIONED_TABLES) <= SPREAD.keys()


def test_each_unique_key_holds_the_node() -> None:
    without = {
        (name, key) for name, column in SPREAD.items() for key in unique_keys(Base.metadata.tables[name])
        if column not in key
    }  # fmt: skip
    assert without == KEYS.keys()


def test_tables_lead_with_the_node() -> None:
    assert {name: unique_keys(Base.metadata.tables[name])[0][0] for name in SPREAD} == SPREAD


def test_no_reference_leaves_its_node() -> None:
    leaving = set()
    for name, column in SPREAD.items():
        for reference in Base.metadata.tables[name].foreign_key_constraints:
            to = reference.referred_table.name
            pairs = {(element.parent.name, element.column.name) for element in reference.elements}
            if (column, SPREAD.get(to)) not in pairs:
                leaving.add((name, to))
    assert leaving == REFERENCES.keys()
