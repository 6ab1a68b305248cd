"""What root types must leave nothing that the service's user cannot use."""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from hugeplan_agent import ownership, privileges
from hugeplan_agent.config import Config, resolve, with_system_settings
from hugeplan_agent.spool import Spool
from tests.factories import make_spool

NOBODY = pwd.getpwnam("nobody")
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root can write into folders of other users")


@AS_ROOT
def test_root_gives_what_it_makes_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    spool = Spool(folder, make_spool(tmp_path / "other").bounds)
    spool.keep("health.json", {})
    with spool.sending():
        pass
    made = [folder, *folder.rglob("*")]
    assert len(made) >= 5
    assert {path.stat().st_uid for path in made} == {NOBODY.pw_uid}


@AS_ROOT
def test_root_becomes_the_services_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    enrolment = tmp_path / "enrolment"
    enrolment.write_text("hp_enrolment\n")
    enrolment.chmod(0o600)
    for module in (ownership, privileges):
        monkeypatch.setattr(module, "SYSTEM_SPOOL_DIR", str(folder))
        monkeypatch.setattr(module, "service_user", lambda: NOBODY)
    words = {"spool_dir": str(folder), "enrolment_token_file": str(enrolment)}
    child = os.fork()  # who steps down cannot come back up
    if child == 0:
        config = privileges.step_down(resolve(words, {}))
        os._exit(0 if os.geteuid() == NOBODY.pw_uid and config.enrolment_token == "hp_enrolment" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.stat().st_uid == NOBODY.pw_uid


@AS_ROOT
def test_a_token_elsewhere_is_roots_affair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "SYSTEM_SPOOL_DIR", str(tmp_path))
    monkeypatch.setattr(privileges, "service_user", lambda: NOBODY)
    config: Config = resolve({"spool_dir": str(tmp_path), "token_file": "/etc/elsewhere"}, {})
    assert privileges.step_down(config) == replace(config)
    assert os.geteuid() == 0


def test_commands_see_the_settings_of_the_units(tmp_path: Path) -> None:
    file = tmp_path / "agent.env"
    file.write_text(
        '# a comment\nHUGEPLAN_AGENT_SERVER=https://a.example\nHUGEPLAN_AGENT_INTERVAL="5m"\nPATH=/nowhere\n'
    )
    found = with_system_settings({"HUGEPLAN_AGENT_INTERVAL": "1m"}, file)
    assert found == {"HUGEPLAN_AGENT_SERVER": "https://a.example", "HUGEPLAN_AGENT_INTERVAL": "1m"}
    assert with_system_settings({}, tmp_path / "absent") == {}
