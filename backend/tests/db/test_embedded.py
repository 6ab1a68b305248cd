"""The embedded server: private, restartable, and without traces outside its folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hugeplan import embedded


def modes(path: Path) -> dict[Path, int]:
    """The permissions of a folder and all folders above it."""
    return {folder: stat.S_IMODE(folder.stat().st_mode) for folder in (path, *path.parents)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.EmbeddedPostgres]:
    """A server whose folder was left behind by an interrupted initdb."""
    data = tmp_path_factory.mktemp("embedded") / "data"
    data.mkdir()
    (data / "half").write_text("of an initdb")
    with embedded.running(data, embedded.TEST_SETTINGS) as running:
        yield running


def data_of(server: embedded.EmbeddedPostgres) -> Path:
    """The server's folder, as it names it itself."""
    with psycopg.connect(server.url("postgres")) as connection:
        ((folder,),) = connection.execute("SHOW data_directory").fetchall()
    return Path(str(folder))


def test_interrupted_initdb_begins_again(server: embedded.EmbeddedPostgres) -> None:
    assert server.pid is not None
    assert (data_of(server) / "PG_VERSION").exists()
    assert not (data_of(server) / "half").exists()


def test_it_does_not_run_as_root(server: embedded.EmbeddedPostgres) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has rights to give up")
    status = Path(f"/proc/{server.pid}/status").read_text()
    ids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    assert "0" not in ids
    # At most the right to read what it could not reach: CAP_DAC_READ_SEARCH, or the override where that is missing.
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    assert effective in {0, 1 << 2, 1 << 1}


def test_neither_its_making_nor_the_server_takes_pages_of_a_pool(server: embedded.EmbeddedPostgres) -> None:
    assert "huge_pages = off" in (data_of(server) / "postgresql.conf").read_text().replace("'", "")
    with psycopg.connect(server.url("postgres")) as connection:
        assert connection.execute("SHOW huge_pages").fetchone() == ("off",)


def test_it_listens_on_its_private_socket_only(server: embedded.EmbeddedPostgres) -> None:
    url = server.url("postgres")
    folder = Path(url.split("host=")[1])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(str(folder / ".s.PGSQL.5432")) < 100
    with psycopg.connect(url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_data_stays_over_a_restart_and_nothing_outside_its_folder(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    before = modes(private) | modes(embedded.programs_dir())
    with embedded.running(private / "data", embedded.TEST_SETTINGS) as server:
        socket_folder = Path(server.url("postgres").split("host=")[1])
        assert socket_folder.exists()
        server.ensure_database("kept")
        server.ensure_database("kept")
    assert not socket_folder.exists()
    assert modes(private) | modes(embedded.programs_dir()) == before
    with (
        embedded.running(private / "data", embedded.TEST_SETTINGS) as server,
        psycopg.connect(server.url("kept")) as c,
    ):
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    wrong = embedded.TEST_SETTINGS | {"shared_buffers": "eight elephants"}
    with (
        pytest.raises(embedded.EmbeddedPostgresError, match="shared_buffers"),
        embedded.running(tmp_path / "data", wrong),
    ):
        pass
    with embedded.running(tmp_path / "data", embedded.TEST_SETTINGS) as server:
        assert server.pid is not None
