"""my.cnf is read alike by recognition and linter, as the server reads it."""

from __future__ import annotations

import pytest

from hugeplan.formats.option_files import is_server_section, options
from hugeplan.lint import Source, lint
from hugeplan.recognition.config_files import my_cnf

TEXT = """\
[client]
large-pages
[mysqldump]
max_allowed_packet=16M   # for dumps
innodb_buffer_pool_size=1G
[mysqld]
innodb-buffer-pool-size = "8G"  # half of it
loose_large_pages='ON'
max_connections=200;x
init_connect='SET NAMES "a#b"'
"""


@pytest.mark.parametrize(
    ("section", "reads"),
    [
        ("mysqld", True), ("mysqld-8.4", True), ("mysqld2", True), ("mariadb-11.4", True), ("server", True),
        ("galera", True), ("mysqldump", False), ("mysqld_safe", False), ("mysqld_multi", False), ("mysql", False),
        ("mariadb-dump", False), ("client", False),
    ],
)  # fmt: skip
def test_which_sections_a_server_reads(section: str, reads: bool) -> None:
    assert is_server_section(section) is reads


def test_values_are_without_quotes_and_comments_and_have_their_places() -> None:
    found = {option.name: option for option in options(TEXT) if option.is_of_server}
    assert {name: option.value for name, option in found.items()} == {
        "innodb_buffer_pool_size": "8G",
        "large_pages": "ON",
        "max_connections": "200;x",
        "init_connect": 'SET NAMES "a#b"',
    }
    pool = found["innodb_buffer_pool_size"]
    assert TEXT[pool.key_start :].startswith("innodb-buffer-pool-size")
    assert TEXT[pool.value_start : pool.value_end] == '"8G"'


def test_recognition_and_linter_agree() -> None:
    text = TEXT.replace(";x", "")
    settings, _ = my_cnf(text)
    assert settings["innodb_buffer_pool_size"] == "8G"
    assert settings["large_pages"] == "ON"
    report = str(lint([Source(name="my.cnf", text=text)]))
    assert "does not start" not in report
    assert "innodb_buffer_pool_size is 8G" in report
