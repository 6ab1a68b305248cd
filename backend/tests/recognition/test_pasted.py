"""Settings as a database's own client prints them."""

from __future__ import annotations

import csv
import io
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from support.service import Service, assert_problem

from hugeplan.recognition.pasted import read_pasted

URL = "/api/v1/engines/read-settings"

MYSQL_BOX = """mysql> SHOW GLOBAL VARIABLES;
+-------------------------+------------------------------+
| Variable_name           | Value                        |
+-------------------------+------------------------------+
| innodb_buffer_pool_size | 8589934592                   |
| innodb_log_buffer_size  | 16777216                     |
| large_pages             | ON                           |
| max_connections         | 400                          |
| no_such_variable        | 7                            |
| version                 | 8.4.3                        |
| version_comment         | MySQL Community Server - GPL |
+-------------------------+------------------------------+
7 rows in set (0.01 sec)
"""
MARIADB_BATCH = (
    "Variable_name\tValue\ninnodb_buffer_pool_size\t8589934592\nlarge_pages\tON\nversion\t10.11.6-MariaDB-0+deb12u1\n"
)
MYSQL_VERTICAL = """*************************** 1. row ***************************
Variable_name: innodb_buffer_pool_size
        Value: 8589934592
*************************** 2. row ***************************
Variable_name: version
        Value: 8.0.36
"""
ORACLE = """SQL> show parameter

NAME                                 TYPE        VALUE
------------------------------------ ----------- ------------------------------
db_name                              string      ORCL
sga_max_size                         big integer 24G
sga_target                           big integer 24G
use_large_pages                      string      ONLY
"""


def aligned(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Columns as psql prints them."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:], f"({len(rows)} rows)", ""])


def as_csv(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([head, *rows])
    return out.getvalue()


def expanded(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> str:
    lines: list[str] = []
    for number, row in enumerate(rows, start=1):
        lines.append(f"-[ RECORD {number} ]----")
        lines += [f"{name} | {cell}" for name, cell in zip(head, row, strict=True)]
    return "\n".join(lines)


async def listed(service: Service, statement: str) -> list[tuple[str, ...]]:
    """Rows of the tests' own server, as text."""
    async with service.database.read() as session:
        found: list[tuple[Any, ...]] = [tuple(row) for row in (await session.execute(text(statement))).all()]
    return [tuple("" if cell is None else str(cell) for cell in row) for row in found]


async def test_a_real_servers_lists_say_the_same_in_every_form(service: Service) -> None:
    shown = await listed(service, "SHOW ALL")
    settings = await listed(service, "SELECT name, setting, unit FROM pg_settings")
    (buffers,) = await listed(service, "SHOW shared_buffers")
    head = ("name", "setting", "unit")
    forms = [
        aligned(shown, ("name", "setting", "description")),
        "\n".join("|".join(row) for row in shown),
        *(form(settings, head) for form in (aligned, as_csv, expanded)),
    ]
    answers = [read_pasted(form) for form in forms]
    for answer in answers:
        assert answer is not None
        assert (answer.engine, answer.settings["shared_buffers"]) == ("postgresql", *buffers)
        assert answer.version is not None
        assert (answer.unknown, answer.refused) == ((), ())
        assert answer.settings == answers[0].settings  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pasted", "engine", "version", "settings"),
    [
        (MYSQL_BOX, "mysql", "8.4", {"innodb_buffer_pool_size": "8589934592", "large_pages": "ON"}),
        (MARIADB_BATCH, "mariadb", "10.11", {"innodb_buffer_pool_size": "8589934592", "large_pages": "ON"}),
        (MYSQL_VERTICAL, "mysql", "8.0", {"innodb_buffer_pool_size": "8589934592"}),
        (ORACLE, "oracle", None, {"sga_target": "24G", "use_large_pages": "ONLY"}),
        ("[mysqld]\ninnodb-buffer-pool-size = 8G\n", "mysql", None, {"innodb_buffer_pool_size": "8G"}),
        ("shared_buffers = 8GB\nmax_connections = 300\n", "postgresql", None, {"shared_buffers": "8GB"}),
    ],
)
def test_the_form_is_recognised(pasted: str, engine: str, version: str | None, settings: dict[str, str]) -> None:
    found = read_pasted(pasted)
    assert found is not None
    assert (found.engine, found.version) == (engine, version)
    assert settings.items() <= found.settings.items()


def test_what_is_no_setting_is_named_and_what_the_server_would_not_take_says_why() -> None:
    found = read_pasted(MYSQL_BOX.replace("400 ", "-1  "))
    assert found is not None
    assert found.unknown == ("no_such_variable",)
    assert [(one.name, one.value) for one in found.refused] == [("max_connections", "-1")]
    assert "expected" in found.refused[0].why


async def test_the_route_reads_in_the_sandbox_and_names_the_forms_it_knows(viewer: httpx.AsyncClient) -> None:
    answer = await viewer.post(URL, json={"text": ORACLE})
    assert answer.status_code == 200, answer.text
    assert answer.json()["settings"]["sga_target"] == "24G"
    problem = assert_problem(await viewer.post(URL, json={"text": "nothing of the kind"}), 422, "invalid-input")
    assert "SHOW ALL" in problem["errors"][0]["expected"]


def test_a_setting_that_needs_the_nodes_memory_is_taken_without_it() -> None:
    """What a dedicated server's pool is a share of is known once the settings have a node."""
    found = read_pasted("[mysqld]\ninnodb_dedicated_server=ON\nmax_connections=500\n")
    assert dict(found.settings) == {"innodb_dedicated_server": "ON", "max_connections": "500"}
    assert (found.without_effect, found.refused) == (0, ())
