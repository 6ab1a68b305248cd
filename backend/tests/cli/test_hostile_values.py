"""No value of a stranger's is a line of its own in what a command prints, nor looks like one."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from support.http_server import answering
from support.service import Service

from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.cli import main
from hugeplan.db.models import EnrolmentRequestRow
from hugeplan.planner.printable import one_line, printable, printable_name
from hugeplan.settings import Settings

Printed = Callable[[list[str]], str]
FAKE = "99999999-2222-3333-4444-555555555555"
HOSTILE = FAKE.join(("web-7" + " " * 60, "  waits\n", "  waits\r", "\u2028", "\x1b[2J", "\u3164" * 60, ""))


def _judge(said: str) -> str:
    """``said``, where nothing that a name makes up begins a line, nor is led to the next line of the terminal."""
    assert "web-7" in said, said
    for line in said.splitlines():
        assert not line.startswith((FAKE, f"  {FAKE}")), said
        assert "\u3164" * 6 not in line
        assert f"web-7{' ' * 6}" not in line
    assert "\x1b" not in said
    return said


UNSEEN = "\u034f\ufe0f\u180b\u17b4\U000e0100"


@pytest.mark.parametrize("mark", [*UNSEEN, "\u0301", "\u20dd", "\u3164", "\u2800"], ids=ascii)
def test_marks_and_letters_that_are_not_seen_lengthen_no_blanks(mark: str) -> None:
    shown = one_line(f"a{f'     {mark}' * 40}b")
    assert mark not in shown, shown
    assert " " * 6 not in shown
    assert len(shown) < 10 or shown.count("\\u") >= 40, shown


@pytest.mark.parametrize("unseen", [*UNSEEN, *"\u1160\u3164\uffa0\U00016fe4\u2800\U0001d159\U00013441"], ids=ascii)
def test_a_name_with_what_is_not_seen_looks_like_no_other(unseen: str) -> None:
    for name in (f"db{unseen}-7", f"db-7{unseen}"):
        for shown in (printable(name), one_line(name)):
            assert unseen not in shown
            assert "\\u" in shown


@pytest.mark.parametrize(
    "odd",
    [" db-2 a", "db-2 a ", " ", "  ", "db-2  a", "db-2   a", "db\u20112 a", "db\u20102 a", "db\u22122 a"],
    ids=ascii,
)
def test_a_nodes_name_looks_like_no_other(odd: str) -> None:
    shown = printable_name(odd)
    assert "\\u" in shown
    assert shown == " ".join(shown.split())
    assert "-" not in shown or odd.count("-") == shown.count("-")
    assert printable_name(shown) == shown
    for usual in ("db-2 a", "db-2.example.org", "Büro – 3 (links)"):
        assert printable_name(usual) == usual


@pytest.mark.parametrize(("letter", "columns"), [("a", 1), ("é", 1), ("표", 2), ("😀", 2), ("\uff21", 2)])
def test_a_value_is_cut_at_a_width(letter: str, columns: int) -> None:
    assert one_line(letter * (60 // columns), 60) == letter * (60 // columns)
    assert one_line(letter * 1_000, 60) == letter * (59 // columns) + "…"
    assert one_line("e\u0301" * 1_000, 60) == "e\u0301" * 29 + "e…"


async def _keep(service: Service) -> str:
    """Rows as a version wrote them that took any name. The id of the request."""
    now, asked = datetime.now(UTC), uuid.uuid4()
    async with service.database.write() as session:
        await access.mint(session, name="db-7", role=Role.AGENT, machine_id="a" * 32)
        soon = timedelta(days=2)
        await access.mint(session, name=HOSTILE, role=Role.VIEWER, expires_in=soon)
        said = dict.fromkeys(("node_name", "reason", "address", "token_name"), HOSTILE)
        moments = dict.fromkeys(("first_asked_at", "last_asked_at"), now)
        one = {"id": asked, "machine_id": "a" * 32, "node_machine_id": "a" * 32, "claim_sha256": b"c" * 32}
        session.add(EnrolmentRequestRow(**one, **said, **moments, attempts=1))
    return str(asked)


async def test_lists_of_the_database(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = await _keep(service)
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", settings.database_url.get_secret_value())
    for command in (["token", "list"], ["doctor"]):
        await asyncio.to_thread(main, command)
        _judge(capsys.readouterr().out)
    assert await asyncio.to_thread(main, ["enrolment", "list"]) == 0
    said = _judge(capsys.readouterr().out)
    assert said.startswith(f"{asked}  db-7  waits\n"), said
    assert all(line.startswith("    ") and len(line) <= 78 for line in said.splitlines()[3:]), said
    assert await asyncio.to_thread(main, ["enrolment", "approve", asked]) == 0
    assert capsys.readouterr().out == f"db-7 (machine {'a' * 32}) is approved.\n"


async def test_the_door_keeps_such_names_out(service: Service) -> None:
    admin = await service.client_as(Role.ADMIN)
    refused = await admin.post("/api/v1/tokens", json={"name": "a\nb", "role": "viewer"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "name: expected one line of printable characters, got a\nb."
    enroller = await service.client_as(Role.ENROLMENT)
    body = {"machine_id": "a" * 32, "node_name": "a\nb"}
    assert (await enroller.post("/api/v1/enrolments", json=body)).json()["name"] == r"a\u000ab"


def _kubernetes(folder: Path, _: object) -> list[str]:
    node = {"capacity": {"memory": "64Gi", "cpu": "8"}, "nodeInfo": {"kernelVersion": HOSTILE, "architecture": "amd64"}}
    box = {"name": HOSTILE, "image": f"postgres:17{HOSTILE}", "args": ["-c", f"shared_buffers=1GB{HOSTILE}"]}
    box["resources"] = {"limits": {"memory": HOSTILE}}
    spec = {"nodeName": HOSTILE, "containers": [box]}
    items = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": HOSTILE}, "status": node},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": HOSTILE, "namespace": HOSTILE}, "spec": spec},
    ]
    (folder / "k.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return ["plan", str(folder / "k.json"), "--verbose"]


def _verified(folder: Path, printed: Printed) -> list[str]:
    (folder / "s.yaml").write_text("node: {memory: 64GiB}\ndatabases: [{name: db, engine: postgresql}]\n")
    plan = folder / "plan.json"
    plan.write_text(printed(["plan", str(folder / "s.yaml"), "--json"]).replace('"db"', json.dumps(HOSTILE)))
    (folder / "report.json").write_text(json.dumps({"inventory": {}, "sample": {}}))
    return ["verify", str(plan), "--report", str(folder / "report.json")]


def _linted(folder: Path, _: object) -> list[str]:
    (folder / f"{HOSTILE[:75]}\nx.conf").write_text("vm.nr_hugepages = x\n")
    return ["lint", str(folder)]


@pytest.mark.parametrize("made", [_kubernetes, _verified, _linted])
def test_what_files_say(
    made: Callable[[Path, Printed], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(command: list[str]) -> str:
        main(command)
        return capsys.readouterr().out

    _judge(printed(made(tmp_path, printed)))


def test_what_a_service_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    range_ = {"low": 1, "likely": 2, "high": 3}
    size = {"page_size": HOSTILE, "text": "t", "gain": range_, "predicted": range_ | {"error_class": HOSTILE}}
    row = {"machine_type": HOSTILE, "started_at": HOSTILE, "node_name": HOSTILE, "engine": HOSTILE, "version": HOSTILE}
    listed = {"items": [row | {"page_sizes": [size]}], "next_cursor": None}
    kept = {"scenarios": [{"name": HOSTILE, "created": True, "id": HOSTILE}]}

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(listed if self.command == "GET" else kept).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - as the server looks it up

        def log_message(self, *_: object) -> None:
            """Quiet."""

    (tmp_path / "t.csv").write_text("host,memory,engine\nh1,64GiB,postgresql\n")
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    with answering(Hostile) as address:
        for command in (["backtest", "--trials"], ["import", "csv", str(tmp_path / "t.csv"), "--to"]):
            assert main([*command, f"http://{address}"]) == 0
            _judge(capsys.readouterr().out)
