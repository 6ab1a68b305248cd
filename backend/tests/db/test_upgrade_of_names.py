"""Migration 0028 settles whose a name is: as the service does, and in a time that grows as the fleet does."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from conftest import MIGRATIONS

from hugeplan.access.machines import told_apart
from hugeplan.db import migrate
from hugeplan.planner.host_names import is_one_host
from hugeplan.settings import Settings

BEFORE = "0027_undelivered"
INSERT = (
    "INSERT INTO nodes (id, machine_id, name, synthetic, architecture, mem_total_bytes, numa_node_count,"
    " agent_version, first_report_at, last_report_at, sampled_at)"
    " SELECT gen_random_uuid(), {machine}, {name}, false, 'x86_64', 1, 1, '1', {first}, {last}, now() FROM {source}"
)


def upgraded(url: str, revision: str, *, within: str = "0") -> None:
    """Migrate. A statement that takes longer than ``within`` ends it."""
    limited = f"{url}{'&' if '?' in url else '?'}options=-c%20statement_timeout%3D{within}"
    migrate.upgrade(Settings.model_validate({"database_url": limited}).sqlalchemy_url(), MIGRATIONS, revision)


def test_a_name_stays_with_the_first_of_those_that_are_one_host(own_database_url: str) -> None:
    upgraded(own_database_url, BEFORE)
    chance = random.Random(7)
    now = datetime.now(UTC)
    parts = ["a", "A", "b", "10", "a-b", "", "a1"]
    said = [".".join(chance.choices(parts, k=length)) for length in (1, 2, 3) for _ in range(150)]
    ago = [(timedelta(hours=chance.choice([1, 2, 40])), timedelta(days=chance.randint(0, 9))) for _ in said]
    ages = [(now - last, now - first) for last, first in ago]
    machines = [f"{number:032x}" for number in range(len(said))]
    with psycopg.connect(own_database_url) as connection, connection.cursor() as cursor:
        cursor.executemany(
            INSERT.format(machine="%s", name="%s", last="%s", first="%s", source="(VALUES (1)) one"),
            [(machine, name, first, last) for machine, name, (last, first) in zip(machines, said, ages, strict=True)],
        )
    upgraded(own_database_url, "0028_names")
    turn = {
        machine: (last <= now - timedelta(days=1), first, machine)
        for machine, (last, first) in zip(machines, ages, strict=True)
    }
    named = dict(zip(machines, said, strict=True))
    expected = {
        machine: told_apart(name, machine)
        if any(turn[other] < turn[machine] and is_one_host(its, name) for other, its in named.items())
        else name
        for machine, name in named.items()
    }
    with psycopg.connect(own_database_url) as connection:
        assert dict(connection.execute("SELECT machine_id, name FROM nodes").fetchall()) == expected
    assert 0 < sum(named[machine] == name for machine, name in expected.items()) < len(named)


ADDRESS = "i / 65536 || '.' || i / 256 % 256 || '.' || i % 256"


@pytest.mark.parametrize(
    "name",
    [
        f"'cn-x.10.' || {ADDRESS}",
        f"'10.' || {ADDRESS}",
        "'db'",
        "'db.' || i || '.example.com'",
        "'db' || CASE WHEN i % 2 = 0 THEN '' ELSE '.x' || i END",
    ],
)
def test_many_nodes_whose_names_begin_alike_are_upgraded_in_seconds(own_database_url: str, name: str) -> None:
    """Names of cloud providers' nodes begin with their region. Each was compared with all: 222 s for as many."""
    upgraded(own_database_url, BEFORE)
    with psycopg.connect(own_database_url) as connection:
        source = "generate_series(1, 20000) AS numbers(i)"
        moment = "now() - i * interval '1 s'"
        connection.execute(INSERT.format(machine="md5(i::text)", name=name, first=moment, last=moment, source=source))
    upgraded(own_database_url, "head", within="5s")
