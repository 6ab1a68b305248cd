"""Settings and secret files with anything in them: one sentence that names the setting, or they are valid."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import REPOSITORY

from hugeplan.cli import COMMANDS, InputError, main, postgres_programs, service_settings
from hugeplan.cli.service_settings import load_settings
from hugeplan.settings import Settings

GARBAGE = (
    "", " ", "\n", "garbage", "é", "\udcff", "[", "{}", "[]", "[1]", '["x"]', '{"a": 1}', "null", "true", "-1", "1e999",
    "nan", "9" * 5000, "x" * 100_000, "/dev/null/x", "10.0.0.0/8",
)  # fmt: skip
BYTES = (b"\xff\xfe", b"", b"\0", b"[", b"garbage\n", b"x" * 100_000)
#: A connection that is refused at once, with a password that no sentence repeats.
NOWHERE = "postgresql://somebody:hush-hush@127.0.0.1:1/hugeplan"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUGEPLAN_"):
            monkeypatch.delenv(name)


def sentence_about(setting: str) -> str | None:
    """What is said of the settings as they are; None where they are valid."""
    try:
        load_settings()
    except InputError as error:
        said = str(error)
        assert f"HUGEPLAN_{setting.upper()}" in said, said
        assert "expected" in said or "is not UTF-8 text" in said or "cannot be read" in said, said
        assert "\n" not in said
        assert len(said) < 500, said[:500]
        return said
    return None


@contextmanager
def as_somebody_else(folder: Path) -> Iterator[None]:
    """As a user who may enter the folder and read none of its files. Root only; else the files are closed instead."""
    files = [file for file in folder.iterdir() if file.is_file()]
    for file in files:
        file.chmod(0o000)
    for each in (folder, *folder.parents[:2]):
        each.chmod(each.stat().st_mode | 0o055)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for file in files:
            file.chmod(0o600)


@pytest.mark.parametrize("setting", Settings.model_fields)
def test_a_variable_may_hold_anything(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in GARBAGE:
        monkeypatch.setenv(f"HUGEPLAN_{setting.upper()}", value)
        sentence_about(setting)


@pytest.mark.parametrize("setting", Settings.model_fields)
def test_a_secret_file_may_hold_anything(setting: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HUGEPLAN_SECRETS_DIR", str(tmp_path))
    file = tmp_path / f"hugeplan_{setting}"
    for content in BYTES:
        file.write_bytes(content)
        sentence_about(setting)
    file.write_bytes(BYTES[0])
    said = sentence_about(setting)
    assert said is not None
    assert f"the file {file} is not UTF-8 text" in said
    with as_somebody_else(tmp_path):
        said = sentence_about(setting)
    assert said is not None
    assert f"{file} cannot be read: Permission denied" in said
    assert f"chmod 640 {file}" in said
    file.unlink()
    file.mkdir()
    said = sentence_about(setting)
    assert said is not None
    assert f"{file} is a folder" in said


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TRUSTED_PROXIES", "10.0.0.0/8", """HUGEPLAN_TRUSTED_PROXIES is '10.0.0.0/8': expected JSON, such as ["10."""),
        ("TRUSTED_PROXIES", '["x"]', "HUGEPLAN_TRUSTED_PROXIES is 'x': expected a valid IPv"),
        ("WEBHOOK_ALLOWED_NETWORKS", "[", "HUGEPLAN_WEBHOOK_ALLOWED_NETWORKS is '[': expected JSON, such as ["),
        ("OIDC_ROLE_MAP", "dba=planner", """expected JSON, such as {"dba": "planner"}"""),
        ("OIDC_ROLE_MAP", '{"dba": "king"}', "HUGEPLAN_OIDC_ROLE_MAP is 'king': expected 'viewer', 'planner'"),
        ("PORT", "65536", "HUGEPLAN_PORT is '65536': expected"),
    ],
)
def test_the_sentence_has_the_name_the_value_and_what_is_valid(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"HUGEPLAN_{variable}", value)
    for command in ("serve", "migrate", "doctor"):
        assert main([command]) == 2
        printed = capsys.readouterr().err
        assert said in printed
        assert printed.startswith(f"hugeplan {command}: HUGEPLAN_{variable}")


@pytest.mark.parametrize(
    ("variable", "value", "meant"),
    [
        ("HUGEPLAN_DATABSE_URL", "postgresql://x/y", "Is HUGEPLAN_DATABASE_URL meant?"),
        ("HUGPLAN_PUBLIC_URL", "https://x", "Is HUGEPLAN_PUBLIC_URL meant?"),
        ("hugeplan_public_ur", "https://x", "Is HUGEPLAN_PUBLIC_URL meant?"),
        ("HUGEPLAN_HTTP_PORT", "8000", "Is HUGEPLAN_PORT meant?"),
        ("HUGEPLAN_QQQ", "1", "docs/settings.md has all."),
    ],
)
def test_a_misspelt_name_is_a_warning_with_the_one_that_is_meant(
    variable: str, value: str, meant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", NOWHERE)
    for command in ("serve", "migrate", "doctor"):
        if command == "serve":
            monkeypatch.setenv("HUGEPLAN_PORT", "x")  # else it would serve
        main([command])
        monkeypatch.delenv("HUGEPLAN_PORT", raising=False)
        said = f"warning: {variable} is no setting of hugeplan, and nothing reads it. {meant}\n"
        assert capsys.readouterr().err.startswith(said)


def test_a_misspelt_file_of_a_secret_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HUGEPLAN_SECRETS_DIR", str(tmp_path))
    (tmp_path / "hugeplan_databse_url").write_text(NOWHERE)
    (tmp_path / "migrate").mkdir()
    (tmp_path / "hugeplan_oidc_client_secret").write_text("x")
    load_settings()
    assert capsys.readouterr().err == (
        f"warning: {tmp_path}/hugeplan_databse_url is no setting of hugeplan, and nothing reads it."
        " Is HUGEPLAN_DATABASE_URL meant?\n"
    )


def test_what_a_container_platform_puts_there_is_no_misspelt_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Services called hugeplan, hugeplan-postgres and hugeplan-http; and what the agent and other commands read."""
    address = "10.96.0.7"
    for service in ("HUGEPLAN", "HUGEPLAN_POSTGRES", "HUGEPLAN_HTTP"):
        told = {
            "SERVICE_HOST": address, "SERVICE_PORT": "80", "SERVICE_PORT_HTTP": "80",
            "PORT_80_TCP": f"tcp://{address}:80", "PORT_80_TCP_PROTO": "tcp", "PORT_80_TCP_PORT": "80",
            "PORT_80_TCP_ADDR": address,
        }  # fmt: skip
        if service != "HUGEPLAN":
            told["PORT"] = f"tcp://{address}:80"
        for name, value in told.items():
            monkeypatch.setenv(f"{service}_{name}", value)
    for name in ("AGENT_SERVER", "TOKEN", "PROMETHEUS_TOKEN", "DEBUG", "LOG_LEVEL"):
        monkeypatch.setenv(f"HUGEPLAN_{name}", "info")
    load_settings()
    assert capsys.readouterr().err == ""


def test_the_address_of_a_service_called_hugeplan_is_no_port_to_listen_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a pod of one's own, without enableServiceLinks: false. The workers read their settings without a word."""
    monkeypatch.setenv("HUGEPLAN_PORT", "tcp://10.96.0.7:80")
    monkeypatch.setenv("HUGEPLAN_SERVICE_HOST", "10.96.0.7")
    assert load_settings().port == Settings().port == 8000
    assert capsys.readouterr().err == (
        "warning: HUGEPLAN_PORT is 'tcp://10.96.0.7:80', which Kubernetes wrote there for a Service of that name: it is"
        " ignored\n"
    )
    monkeypatch.setenv("HUGEPLAN_HOST", "tcp://10.96.0.7")  # nobody injects this one: it is what it says
    assert load_settings().host == "tcp://10.96.0.7"


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:8000"), ("::", "http://[::1]:8000"), ("fe80::1", "http://[fe80::1]:8000")],  # noqa: S104
)
def test_a_link_has_an_address_that_can_be_opened(host: str, url: str) -> None:
    assert Settings(host=host).browser_url() == url


@pytest.mark.parametrize("setting", ["database_url", "bootstrap_enrolment_token"])
def test_a_secret_is_not_repeated(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"HUGEPLAN_{setting.upper()}", "hush")
    said = sentence_about(setting)
    assert said is not None
    assert "hush" not in said


def commands_of_the_database(tmp_path: Path) -> Iterator[list[str]]:
    dump = tmp_path / "all.dump"
    dump.write_bytes(b"PGDMP")
    yield from (["backup", str(tmp_path / "made.dump")], ["restore", "--replace", str(dump)], ["migrate"])
    yield from (["token", "list"], ["token", "login-link"], ["enrolment", "list"], ["export"], ["reparse"])


def test_every_command_of_the_database_says_that_it_is_away_and_what_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", NOWHERE)
    monkeypatch.setenv("HUGEPLAN_DATABASE_TIMEOUT_SECONDS", "2")
    for words in commands_of_the_database(tmp_path):
        assert main(words) == 2, words
        said = capsys.readouterr().err.strip()
        assert re.search("Connection refused.*; start PostgreSQL.*or correct the URL$", said), said
        assert "\n" not in said
        assert "hush-hush" not in said
        assert "internal error" not in said
    assert main(["doctor"]) == 1
    assert re.search("^wrong .*Connection refused; start PostgreSQL", capsys.readouterr().out, re.MULTILINE)
    assert {words[0] for words in commands_of_the_database(tmp_path)} <= {row.name for row in COMMANDS}


@pytest.mark.parametrize(
    ("environment", "made", "command"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ".dockerenv", "kubectl get pods"),
        ({}, ".dockerenv", "docker compose up --detach postgres"),
        ({}, "run/.containerenv", "docker compose up --detach postgres"),
        ({}, "run/systemd/system/x", "systemctl start postgresql"),
        ({}, "etc/x", "start PostgreSQL;"),
    ],
)
def test_what_starts_postgresql_fits_where_the_command_runs(
    environment: dict[str, str], made: str, command: str, tmp_path: Path
) -> None:
    (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / made).touch()
    assert command in postgres_programs.start_it(environment, tmp_path)


@pytest.mark.parametrize(
    "reason",
    [
        'connection to server at "10.0.0.1", port 5432 failed: timeout expired',
        "connection timeout expired",
        "failed to resolve host 'postgres': [Errno -2] Name or service not known",
        'could not translate host name "postgres" to address: Name or service not known',
        'connection to server on socket "/run/.s.PGSQL.5432" failed: No such file or directory',
        "server closed the connection unexpectedly",
        "FATAL:  the database system is starting up",
        "FATAL:  the database system is shutting down",
        'FATAL:  password authentication failed for user "hugeplan"',
        'FATAL:  database "hugeplan" does not exist',
    ],
)
def test_every_way_to_be_away_has_a_remedy(reason: str) -> None:
    assert postgres_programs.mending(reason)


@pytest.mark.parametrize("bound", ["lock", "statement"])
def test_a_server_that_gave_up_a_statement_is_not_away(bound: str) -> None:
    assert "start PostgreSQL" not in postgres_programs.mending(f"ERROR:  canceling statement due to {bound} timeout")


def test_what_our_own_programs_read_is_no_misspelt_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning too many and each command of the suites said two lines in place of one."""
    read = re.compile(r"""(?:environ(?:ment)?\W+(?:get\W+)?|Final = )"(HUGEPLAN_\w+[A-Z])\"""")
    folders = [
        REPOSITORY / "backend" / "hugeplan",
        REPOSITORY / "agent" / "hugeplan_agent",
        REPOSITORY / "deploy" / "suites",
    ]
    names = {
        name for folder in folders for file in folder.rglob("*.py") for name in read.findall(file.read_text("utf-8"))
    }
    assert {"HUGEPLAN_TOKEN", "HUGEPLAN_HUGE_PAGES_LOCK_SECONDS", "HUGEPLAN_INSTALL", "HUGEPLAN_TRIAL"} <= names
    for name in names:
        monkeypatch.setenv(name, "x")
    assert list(service_settings._unknown_variables({})) == []
