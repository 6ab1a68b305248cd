"""Migration 0030 reads from plans of before which approvals had ended, and from trials a node's newest prediction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
from alembic import command
from conftest import MIGRATIONS
from sqlalchemy import create_engine, pool

from hugeplan.db import migrate
from hugeplan.settings import Settings

DAY = datetime(2026, 11, 1, tzinfo=UTC)


def at_release_before(url: str) -> str:
    """A database at the migration before, and its URL for migrations."""
    made = Settings.model_validate({"database_url": url}).sqlalchemy_url()
    migrate.upgrade(made, MIGRATIONS)
    downgrade(made)
    return made


def downgrade(url: str) -> None:
    config = migrate.alembic_config(MIGRATIONS)
    with create_engine(url, poolclass=pool.NullPool).connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0029_tokens_in_force")


def test_an_approval_after_which_another_was_given_has_ended(own_database_url: str) -> None:
    url = at_release_before(own_database_url)
    # By node: name, state, day of its approval, day of its state, source of what is in force and since which day.
    nodes: list[list[tuple[str, str, int | None, int, str | None, int]]] = [
        [("first", "approved", 1, 5, None, 0), ("second", "approved", 3, 3, None, 0)],
        [("labelled", "in_force", 1, 5, "label", 5), ("standing", "approved", 3, 3, None, 0)],
        [("by hand", "in_force", 1, 2, "hand", 2), ("next", "approved", 3, 3, None, 0)],
        [("former", "superseded", 1, 4, None, 0), ("now", "in_force", 3, 4, "label", 4)],
        [("unseen", "superseded", None, 4, None, 0), ("a draft", "draft", None, 1, None, 0)],
        [("alone", "approved", 1, 1, None, 0)],
        [("held", "in_force", 1, 2, "label", 2), ("later", "proposed", None, 3, None, 0)],
    ]
    with psycopg.connect(own_database_url) as connection:
        connection.execute("SET session_replication_role = replica")  # the nodes are not there
        for plans in nodes:
            node = uuid4()
            for name, state, approved, state_at, source, since in plans:
                plan = uuid4()
                connection.execute(
                    "INSERT INTO plans (id, node_id, node_name, created_at, headline, plan, artifacts, state, state_at,"
                    " approved_at) VALUES (%s, %s, %s, %s, 'h', '{}', '[]', %s, %s, %s)",
                    [
                        *(plan, node, name, DAY, state, DAY + timedelta(days=state_at)),
                        approved and DAY + timedelta(days=approved),
                    ],
                )
                if source:
                    connection.execute(
                        "INSERT INTO plans_in_force (node_id, plan_id, pools, source, since, set_by)"
                        " VALUES (%s, %s, '[]', %s, %s, 'x')",
                        [node, plan, source, DAY + timedelta(days=since)],
                    )
    migrate.upgrade(url, MIGRATIONS)
    with psycopg.connect(own_database_url) as connection:
        rows = connection.execute(
            "SELECT p.node_name, p.state, p.approval_ended_at, b.node_name, p.approved_at IS NOT NULL,"
            " p.approval_ended_at = p.state_at"
            " FROM plans p LEFT JOIN plans b ON b.id = p.superseded_by"
        ).fetchall()
    found = {name: (state, at and (at - DAY).days, by) for name, state, at, by, *_ in rows}
    assert found == {
        "first": ("superseded", 3, "second"),
        "second": ("approved", None, None),
        "labelled": ("in_force", 3, "standing"),
        "standing": ("approved", None, None),
        "by hand": ("in_force", None, None),
        "next": ("approved", None, None),
        "former": ("superseded", 3, None),
        "now": ("in_force", None, None),
        "unseen": ("superseded", None, None),
        "a draft": ("draft", None, None),
        "alone": ("approved", None, None),
        "held": ("in_force", None, None),
        "later": ("proposed", None, None),
    }
    was_approved = {name for plans in nodes for name, _, approved, *_ in plans if approved}
    assert {name for name, *_, approved, _ in rows if approved} == was_approved, "who approved what stays"
    assert not any(by_what_replaced_it for *_, by_what_replaced_it in rows), "taking that back would give it back"
    downgrade(url)


def test_a_nodes_newest_prediction_is_known_and_who_sent_its_trials_is_not(own_database_url: str) -> None:
    url = at_release_before(own_database_url)
    tried, untried = UUID(int=1), UUID(int=2)
    with psycopg.connect(own_database_url) as connection:
        for node in (tried, untried):
            connection.execute(
                "INSERT INTO nodes (id, machine_id, name, synthetic, architecture, mem_total_bytes, numa_node_count,"
                " agent_version, first_report_at, last_report_at, sampled_at)"
                " VALUES (%s, %s, 'n', false, 'x86_64', 1, 1, '1', now(), now(), now())",
                [node, node.hex],
            )
            for day in range(3):
                predicted = '{"predicted": {"2M": 1}}' if node == tried and day < 2 else '{"predicted": {}}'
                connection.execute(
                    "INSERT INTO trials (node_id, id, started_at, ordered_at, stored_at, content_sha256, summary,"
                    " document) VALUES (%s, gen_random_uuid(), now(), %s, now(), '', %s, '')",
                    [node, DAY + timedelta(days=day), predicted],
                )
    migrate.upgrade(url, MIGRATIONS)
    newest = "SELECT id, tried_at FROM nodes"
    with psycopg.connect(own_database_url) as connection:
        assert dict(connection.execute(newest).fetchall()) == {tried: DAY + timedelta(days=1), untried: None}
        assert connection.execute("SELECT DISTINCT is_own FROM trials").fetchall() == [(None,)]
        connection.execute("DELETE FROM trials WHERE ordered_at >= %s", [DAY + timedelta(days=1)])
        assert dict(connection.execute(newest).fetchall()) == {tried: DAY, untried: None}
        own = "SELECT own_tried_at FROM nodes WHERE tried_at IS NOT NULL"
        assert connection.execute(own).fetchall() == [(DAY,)], "that nobody else sent it"
        connection.execute("UPDATE trials SET is_own = false, ordered_at = ordered_at")
        assert connection.execute(own).fetchall() == [(None,)]
        connection.execute("UPDATE trials SET summary = '{}'")
        assert dict(connection.execute(newest).fetchall()) == {tried: None, untried: None}
        connection.execute("DELETE FROM nodes")
    downgrade(url)
