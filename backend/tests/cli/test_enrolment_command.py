"""``hugeplan enrolment``: list, approve and refuse, over a real database."""

from __future__ import annotations

import asyncio

import pytest
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.cli import main
from hugeplan.settings import Settings

BODY = {"machine_id": "a" * 32, "node_name": "db-7"}
ASKER = BODY | {"claim": "c" * 43}


async def _call(settings: Settings, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", settings.database_url.get_secret_value())
    # The command has an event loop of its own.
    return await asyncio.to_thread(main, ["enrolment", *words])


async def test_lists_approves_and_lets_the_asker_in(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enroller = await service.client_as(Role.ENROLMENT)
    assert await _call(settings, monkeypatch, "list") == 0
    assert capsys.readouterr().out == "No machine waits for a decision.\n"
    assert (await enroller.post("/api/v1/enrolments", json=BODY)).status_code == 201
    assert (await enroller.post("/api/v1/enrolments", json=ASKER)).status_code == 409

    assert await _call(settings, monkeypatch, "list") == 0
    said = capsys.readouterr().out
    assert "db-7  waits" in said
    assert "neither its boot id nor its hardware addresses" in said
    asked = said.split()[0]
    assert await _call(settings, monkeypatch, "refuse", asked) == 0
    assert (await enroller.post("/api/v1/enrolments", json=ASKER)).status_code == 403
    assert await _call(settings, monkeypatch, "approve", asked) == 0
    assert (await enroller.post("/api/v1/enrolments", json=ASKER)).status_code == 201


async def test_an_unknown_id_is_one_sentence(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert service.clients == []
    unknown = "00000000-0000-4000-8000-000000000000"
    assert await _call(settings, monkeypatch, "approve", unknown) == 2
    said = capsys.readouterr().err
    assert said == (f"hugeplan enrolment: There is no enrolment request {unknown}. See: hugeplan enrolment list\n")
