"""``hugeplan secrets``: made once, kept afterwards, never printed, readable by their owner only."""

from __future__ import annotations

from pathlib import Path

import pytest

from hugeplan.cli import main
from hugeplan.cli.service_settings import load_settings
from hugeplan.settings import Settings


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    for name in ("HUGEPLAN_DATABASE_PASSWORD", "HUGEPLAN_ENROLMENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    database, enrolment = tmp_path / "database", tmp_path / "enrolment"
    database.mkdir()
    enrolment.mkdir()
    return database, enrolment


def make(folders: tuple[Path, Path]) -> int:
    return main(["secrets", "--database-dir", str(folders[0]), "--enrolment-dir", str(folders[1])])


def contents(folders: tuple[Path, Path]) -> dict[str, str]:
    return {path.name: path.read_text() for folder in folders for path in folder.iterdir()}


def test_a_second_start_keeps_what_the_first_made(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert make(folders) == 0
    first = contents(folders)
    assert set(first) == {"database-password", "passfile", "hugeplan_bootstrap_enrolment_token"}
    assert first["passfile"].strip() == f"*:*:*:*:{first['database-password'].strip()}"
    assert all(path.stat().st_mode & 0o037 == 0 for folder in folders for path in folder.iterdir())
    assert make(folders) == 0
    assert contents(folders) == first
    printed = capsys.readouterr()
    assert not any(value.strip() in printed.out + printed.err for value in first.values())


def test_a_password_of_the_environment_wins_and_is_escaped_for_libpq(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(folders)
    monkeypatch.setenv("HUGEPLAN_DATABASE_PASSWORD", "a:b\\c")
    assert make(folders) == 0
    assert contents(folders)["database-password"] == "a:b\\c\n"
    assert contents(folders)["passfile"] == "*:*:*:*:a\\:b\\\\c\n"


def test_a_short_enrolment_token_is_refused_without_repeating_it(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUGEPLAN_ENROLMENT_TOKEN", "hush-hush")
    assert make(folders) == 2
    said = capsys.readouterr().err
    assert "HUGEPLAN_ENROLMENT_TOKEN" in said
    assert "32" in said
    assert "hush-hush" not in said


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make((tmp_path / "none", tmp_path)) == 2
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_the_service_reads_the_token_from_the_folder(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(folders)
    monkeypatch.setenv("HUGEPLAN_SECRETS_DIR", str(folders[1]))
    found = load_settings().bootstrap_enrolment_token
    assert found is not None
    assert found.get_secret_value() == contents(folders)["hugeplan_bootstrap_enrolment_token"].strip()


def test_every_process_of_the_service_reads_the_folder(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker processes make their settings themselves; they used to read the environment alone."""
    make(folders)
    monkeypatch.setenv("HUGEPLAN_SECRETS_DIR", str(folders[1]))
    assert Settings().bootstrap_enrolment_token == load_settings().bootstrap_enrolment_token
    (folders[1] / "hugeplan_database_url").write_text("postgresql://u:p@h/d\n")
    assert Settings().psycopg_url() == "postgresql://u:p@h/d"
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", "postgresql:///mine")
    assert Settings().psycopg_url() == "postgresql:///mine"


def test_the_enrolment_token_is_for_the_group_and_the_password_is_not(folders: tuple[Path, Path]) -> None:
    make(folders)
    modes = {path.name: path.stat().st_mode & 0o777 for folder in folders for path in folder.iterdir()}
    assert modes == {"database-password": 0o600, "passfile": 0o600, "hugeplan_bootstrap_enrolment_token": 0o640}


def test_the_services_role_has_a_password_of_its_own(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made once and kept; changed by its own variable, and the owner's stays."""
    service = tmp_path / "service"
    service.mkdir()
    given = ["--database-dir", str(folders[0]), "--service-dir", str(service), "--enrolment-dir", str(folders[1])]
    assert main(["secrets", *given]) == 0
    owner, first = ((folder / "database-password").read_text() for folder in (folders[0], service))
    assert owner != first
    assert main(["secrets", *given]) == 0
    assert (service / "database-password").read_text() == first
    monkeypatch.setenv("HUGEPLAN_DATABASE_SERVICE_PASSWORD", "an:other")
    assert main(["secrets", *given]) == 0
    assert (service / "passfile").read_text() == "*:*:*:*:an\\:other\n"
    assert (folders[0] / "database-password").read_text() == owner
