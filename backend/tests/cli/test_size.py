"""``hugeplan size`` as a person and as a script use it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hugeplan.cli import COMMANDS, Command, main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command."""
    try:
        status = main(list(words))
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(
        capsys, "size", "postgresql", "--version", "18", "--set", "shared_buffers=8GB",
        "--set", "max_connections=200", "--page-size", "2M", "--json",
    )  # fmt: skip
    document = json.loads(out)
    assert (status, err) == (0, "")
    assert next(iter(document)) == "enough_pages"
    assert document["enough_pages"] == document["pages"] + document["error_pages"]
    assert list(document)[1:8] == ["engine", "version", "segment_bytes", "page_bytes", "pages", "error_pages", "notes"]
    assert (document["engine"], document["version"], document["page_bytes"]) == ("postgresql", "18", 2097152)
    assert document["pages"] == document["segment_bytes"] // 2097152 + 1
    assert isinstance(document["notes"], list)


def test_the_count_that_is_always_enough_goes_first(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("size", "postgresql", "--version", "16", "--set", "shared_preload_libraries=somebody_elses")
    document = json.loads(run(capsys, *words, "--json")[1])
    assert document["error_pages"] >= 4
    lines = run(capsys, *words)[1].splitlines()
    assert lines[1].startswith(f"  {document['enough_pages']} pages of 2M = ")
    assert lines[1].endswith(": always enough")
    assert lines[2] == f"  the rule's count is {document['pages']}, give or take {document['error_pages']}"


def test_mysql_of_the_issue(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(
        capsys, "size", "mysql", "--version", "8.0", "--set", "innodb_buffer_pool_size=64G",
        "--set", "innodb_buffer_pool_instances=8", "--page-size", "2M", "--json",
    )  # fmt: skip
    assert (status, json.loads(out)["pages"]) == (0, 33792)


def test_readable_form_puts_the_count_first(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "size", "postgresql", "--set", "shared_buffers=8GB", "--page-size", "1G")
    assert status == 0
    assert out.splitlines()[:2] == ["PostgreSQL 18", "  9 pages of 1G = 9GiB: always enough"]
    assert "shrink shared_buffers to" in out
    assert "set huge_pages = on" in out


def test_page_sizes_of_other_architectures(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "size", "postgresql", "--page-size", "16M", "--set", "shared_buffers=8GB", "--json")
    assert (status, json.loads(out)["pages"]) == (0, 528)
    status, out, _ = run(
        capsys, "size", "postgresql", "--arch", "arm64", "--base-page-size", "64K", "--page-size", "512M"
    )
    assert (status, "1 page of 512M" in out) == (0, True)


def test_base_pages(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "size", "postgresql", "--page-size", "base", "--json")
    assert (status, json.loads(out)["page_bytes"]) == (0, 4096)


def test_no_pool(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "size", "redis")
    assert (status, "No huge page pool" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "needles"),
    [
        (("postgresql", "--set", "shared_bufers=8GB"), ("shared_bufers", "did you mean shared_buffers")),
        (("postgresql", "--set", "shared_buffers=8gb"), ("settings.shared_buffers", "'8gb'", "8GB")),
        (("postgresql", "--set", "max_connections=0"), ("settings.max_connections", "'0'", "1 to 262143")),
        (("postgresql", "--set", "shared_buffers"), ("--set", "'shared_buffers'", "NAME=VALUE")),
        (("postgresql", "--version", "9"), ("version", "'9'", "10 to 18")),
        (("postgresql", "--page-size", "4M"), ("page_size", "'4M'", "4K, 2M, 1G")),
        (("postgresql", "--page-size", "big"), ("--page-size", "'big'", "2M")),
        (("postgresql", "--arch", "vax"), ("--arch", "'vax'", "x86_64")),
        (("postgresql", "--cpus", "0"), ("--cpus", "'0'", "1 to 65536")),
        (("postgresql", "--memory", "64GB"), ("--memory", "'64GB'", "64GiB")),
        (("postgresql", "--default-page-size", "16M"), ("--default-page-size", "16M", "2M, 1G")),
        (("postgresl",), ("engine", "'postgresl'", "postgresql, mysql", "did you mean postgresql")),
        (("jvm",), ("settings.Xmx", "8g")),
        (("postgresql", "--no-such-option"), ("--no-such-option",)),
        ((), ("engine",)),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], needles: tuple[str, ...]
) -> None:
    status, out, err = run(capsys, "size", *words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("hugeplan")
    for needle in needles:
        assert needle in err


def test_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "size", "postgresql", "--list-settings")
    assert status == 0
    assert out.splitlines()[0].startswith("shared_buffers")
    assert "Default 128MB." in out


def test_no_command_shows_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys)
    assert status == 2
    for row in COMMANDS:
        assert row.name in out


def test_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "siez")
    assert (status, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], row: Command) -> None:
    status, out, _ = run(capsys, row.name, "--help")
    assert status == 0
    assert "usage: hugeplan" in out


def test_sizing_needs_no_server_and_no_database() -> None:
    """The command imports the core alone: no web framework, no database driver."""
    code = (
        "import sys; from hugeplan.cli import main; main(['size', 'postgresql', '--json']);"
        "print([m for m in ('fastapi', 'sqlalchemy', 'psycopg', 'pydantic') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{sys.executable} -m hugeplan.cli size postgresql --list-settings | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("shared_buffers")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arch", "base", "default"), [("aarch64", "64K", "512M"), ("aarch64", "16K", "32M"), ("s390x", "4K", "1M")]
)
def test_the_default_size_follows_the_base_page(
    capsys: pytest.CaptureFixture[str], arch: str, base: str, default: str
) -> None:
    assert main(["size", "mysql", "--arch", arch, "--base-page-size", base]) == 0
    printed = capsys.readouterr().out
    assert f"pages of {default}" in printed or f"page of {default}" in printed
    assert "need default_hugepagesz" not in printed


def test_a_setting_may_begin_with_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "jvm", "--set", "-Xmx=8g", "--set", "-XX:+UseZGC=true", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["segments"][0]["segment_bytes"] == 8 * 1024**3
