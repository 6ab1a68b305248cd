"""Machines and those who claim to be them: enrolment again, unbound tokens, clones."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem, fields_of

from hugeplan.access import machine_registry, machines
from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.db.maintenance import maintain

ENROL, REPORTS = "/api/v1/enrolments", "/api/v1/reports"
BODY = {"machine_id": MACHINE_ID, "node_name": "db-7"}
BOOTS = ["11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"]


def hints(dmi: str | None = "a", *macs: str) -> dict[str, Any]:
    """What an agent sends to be told from its clones."""
    return {"dmi_sha256": dmi and dmi * 64, "mac_sha256": [mac * 64 for mac in macs] or None}


def seen(dmi: str | None = "a", *macs: str, boot: str = BOOTS[0], at: str | None = None) -> dict[str, Any]:
    """A report of a machine with this hardware and boot."""
    made = report()
    made["inventory"] |= {"boot_id": boot, "clone_hints": hints(dmi, *macs)}
    if at is not None:
        made["sample"]["taken_at"] = at
    return made


@pytest.fixture
async def enroller(service: Service) -> httpx.AsyncClient:
    """A client with an enrolment token."""
    return await service.client_as(Role.ENROLMENT)


async def nodes(viewer: httpx.AsyncClient) -> list[str]:
    """The machine ids of all nodes."""
    return sorted(node["machine_id"] for node in (await viewer.get("/api/v1/nodes")).json()["items"])


class TestEnrollingAgain:
    async def test_takes_nothing_over(self, service: Service, enroller: httpx.AsyncClient) -> None:
        first = (await enroller.post(ENROL, json=BODY)).json()
        stranger = await service.client_as(Role.ENROLMENT)
        problem = assert_problem(await stranger.post(ENROL, json=BODY), 409, "conflict")
        assert fields_of(problem) == ["machine_id"]
        assert (await service.client(first["token"]).post(REPORTS, json=report())).status_code == 201

    async def test_with_its_own_token_replaces_it(self, service: Service, enroller: httpx.AsyncClient) -> None:
        first = (await enroller.post(ENROL, json=BODY)).json()
        again = await enroller.post(ENROL, json=BODY | {"current_token": first["token"]})
        assert again.status_code == 201
        assert_problem(await service.client(first["token"]).post(REPORTS, json=report()), 401, "unauthenticated")
        assert (await service.client(again.json()["token"]).post(REPORTS, json=report())).status_code == 201

    async def test_with_the_token_of_another_machine_is_409(self, enroller: httpx.AsyncClient) -> None:
        await enroller.post(ENROL, json=BODY)
        other = (await enroller.post(ENROL, json=BODY | {"machine_id": "e" * 32})).json()
        answer = await enroller.post(ENROL, json=BODY | {"current_token": other["token"]})
        assert_problem(answer, 409, "conflict")

    async def test_with_a_yes_works_once(self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
        await enroller.post(ENROL, json=BODY)
        assert (await admin.post(f"{ENROL}/approvals", json={"machine_id": MACHINE_ID})).status_code == 201
        assert (await enroller.post(ENROL, json=BODY)).status_code == 201
        assert_problem(await enroller.post(ENROL, json=BODY), 409, "conflict")

    async def test_an_administrator_needs_no_other_yes(
        self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        await enroller.post(ENROL, json=BODY)
        assert (await admin.post(ENROL, json=BODY)).status_code == 201


class TestUnboundTokens:
    async def test_claim_no_known_machine(self, service: Service, agent: httpx.AsyncClient) -> None:
        assert (await agent.post(REPORTS, json=report())).status_code == 201
        thief = await service.client_as(Role.AGENT)
        problem = assert_problem(await thief.post(REPORTS, json=report()), 403, "forbidden")
        assert fields_of(problem) == ["machine_id"]
        assert (await agent.post(REPORTS, json=report())).status_code == 201

    async def test_claim_no_enrolled_machine(self, service: Service, enroller: httpx.AsyncClient) -> None:
        await enroller.post(ENROL, json=BODY)
        thief = await service.client_as(Role.AGENT)
        assert_problem(await thief.post(REPORTS, json=report()), 403, "forbidden")

    async def test_claim_a_known_machine_with_a_yes(
        self, service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        await agent.post(REPORTS, json=report())
        await admin.post(f"{ENROL}/approvals", json={"machine_id": MACHINE_ID})
        heir = await service.client_as(Role.AGENT)
        assert (await heir.post(REPORTS, json=report())).status_code == 201

    async def test_do_not_renew_themselves_before_a_machine_is_theirs(
        self, agent: httpx.AsyncClient, service: Service
    ) -> None:
        refused = assert_problem(await agent.post("/api/v1/token/rotate", json={}), 403, "forbidden")
        assert "bound to no machine" in refused["detail"]
        assert (await agent.post(REPORTS, json=report())).status_code == 201
        made = (await agent.post("/api/v1/token/rotate", json={})).json()
        assert made["machine_id"] == MACHINE_ID
        assert (await service.client(made["token"]).post(REPORTS, json=report())).status_code == 201

    @pytest.mark.parametrize("first", [0, 1])
    async def test_that_an_administrator_rotates_are_one_machines(
        self, service: Service, admin: httpx.AsyncClient, first: int
    ) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "a", "role": "agent"})).json()
        newer = (await admin.post(f"/api/v1/tokens/{made['id']}/rotate", json={"overlap_seconds": 60})).json()
        line = [service.client(one["token"]) for one in (made, newer)]
        assert (await line[first].post(REPORTS, json=report())).status_code == 201
        other = await line[1 - first].post(REPORTS, json=report(machine_id="e" * 32))
        assert_problem(other, 403, "forbidden")
        assert (await line[1 - first].post(REPORTS, json=report())).status_code == 201


@pytest.mark.parametrize(("boot_id", "expected"), [("boot-b", "b"), ("boot-a", "a"), ("boot-c", "a"), (None, "a")])
def test_of_clones_that_hardware_does_not_tell_apart_the_one_with_this_boot_is_meant(
    boot_id: str | None, expected: str
) -> None:
    """Else the oldest, which is the first."""
    known = [
        machines.Machine(node_machine_id=name, dmi_sha256=f"dmi of {name}", boot_id=f"boot-{name}") for name in "ab"
    ]
    found = machines.match(known, machines.Hints(boot_id=boot_id))
    assert found is not None
    assert found.node_machine_id == expected


class TestClones:
    async def test_with_one_token_are_two_nodes(self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
        for _ in range(2):
            assert (await agent.post(REPORTS, json=seen("a"))).status_code == 201
            assert (await agent.post(REPORTS, json=seen("b", boot=BOOTS[1]))).status_code == 201
        for node in (await viewer.get("/api/v1/nodes")).json()["items"]:
            assert node["findings_attention"] >= 1
        plain, clone = await nodes(viewer)
        assert plain == MACHINE_ID
        assert clone.startswith(f"{MACHINE_ID}~")

    async def test_are_told_apart_by_hardware_addresses_too(
        self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        for made in (seen(None, "a", "b"), seen(None, "b", "c"), seen(None, "d"), seen(None, "d")):
            assert (await agent.post(REPORTS, json=made)).status_code == 201
        assert len(await nodes(viewer)) == 2

    async def test_are_remembered_in_few_bytes_however_many_addresses_they_have(
        self, service: Service, agent: httpx.AsyncClient
    ) -> None:
        assert (await agent.post(REPORTS, json=seen(None, *"0123456789abcdef" * 4))).status_code == 201
        (senders,) = service.app.state.machines._known.values()
        assert all(len(repr(key)) < 300 for key in senders)

    @pytest.mark.parametrize("most", [2, 1])
    async def test_that_never_enrol_hold_nobody_up(
        self, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, most: int
    ) -> None:
        """Many at once take one connection, and none where the machine is remembered. Refused ones take turns."""
        monkeypatch.setattr(machines, "MAX_CLONES", most)
        assert (await agent.post(REPORTS, json=seen("a"))).status_code == 201
        real, asked, at_a_time = access.admit_machine, Counter[str](), [0]

        async def noted(*args: Any) -> machines.Machine:
            asked["in all"] += 1
            asked["now"] += 1
            at_a_time.append(asked["now"])
            try:
                return await real(*args)
            finally:
                asked["now"] -= 1

        monkeypatch.setattr(access, "admit_machine", noted)
        sent = [agent.post(REPORTS, json=seen("b", boot=BOOTS[number % 2])) for number in range(40)]
        answers = {answer.status_code for answer in await asyncio.gather(*sent)}
        assert (answers, max(at_a_time)) == ({201 if most == 2 else 403}, 1)
        assert asked["in all"] <= (2 if most == 2 else 40)

    async def test_of_two_boots_are_remembered_beside_each_other(
        self, service: Service, agent: httpx.AsyncClient
    ) -> None:
        for minute in range(4):
            made = seen(None, boot=BOOTS[minute % 2], at=f"2026-11-20T12:0{minute}:00Z")
            assert (await agent.post(REPORTS, json=made)).status_code == 201
        (senders,) = service.app.state.machines._known.values()
        assert len(senders) == 2

    async def test_take_no_more_memory_than_a_machine_has_clones(
        self, service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine_registry, "MAX_CLONES", 2)
        for mac in "abcdef":
            assert (await agent.post(REPORTS, json=seen(None, "0", mac))).status_code == 201
        (senders,) = service.app.state.machines._known.values()
        assert len(senders) == 4

    async def test_are_bounded_in_number_and_those_that_are_known_stay(
        self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machines, "MAX_CLONES", 3)
        for dmi in "abc":
            assert (await agent.post(REPORTS, json=seen(dmi))).status_code == 201
        refused = assert_problem(await agent.post(REPORTS, json=seen("d")), 403, "forbidden")
        assert "3 machines share this machine id" in refused["detail"]
        assert (await agent.post(REPORTS, json=seen("a"))).status_code == 201
        assert len(await nodes(viewer)) == 3

    async def test_that_are_gone_for_long_make_room(
        self, service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machines, "MAX_CLONES", 2)
        for dmi in "ab":
            assert (await agent.post(REPORTS, json=seen(dmi))).status_code == 201
        for node in (await admin.get("/api/v1/nodes")).json()["items"]:
            await admin.delete(f"/api/v1/nodes/{node['id']}")
        assert_problem(await agent.post(REPORTS, json=seen("c")), 403, "forbidden")
        async with service.database.write() as session:
            await session.execute(text("UPDATE machines SET last_seen_at = last_seen_at - interval '9 years'"))
        clones = text("SELECT count(*) FROM machines WHERE node_machine_id <> machine_id")
        async with asyncio.timeout(60):  # the service's own round may be at it
            left = 1
            while left:
                assert await maintain(service.database, service.app.state.settings, datetime.now(UTC)) is None
                async with service.database.read() as session:
                    left = await session.scalar(clones)
        # The first has a token, and is itself still.
        for dmi in "ca":
            assert (await agent.post(REPORTS, json=seen(dmi))).status_code == 201
        plain, clone = await nodes(admin)
        assert (plain, clone[: len(MACHINE_ID) + 1]) == (MACHINE_ID, f"{MACHINE_ID}~")

    async def test_enrol_beside_the_first_without_ending_it(
        self, service: Service, enroller: httpx.AsyncClient, viewer: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        tokens = {}
        for dmi in "ab":
            made = await enroller.post(ENROL, json=BODY | {"clone_hints": hints(dmi, *("c" if dmi == "b" else ""))})
            assert made.status_code == 201
            tokens[dmi] = made.json()["token"]
        for dmi, token in tokens.items():
            assert (await service.client(token).post(REPORTS, json=seen(dmi))).status_code == 201
        assert len(await nodes(viewer)) == 2
        # A clone's own token is for the clone.
        assert_problem(await service.client(tokens["b"]).post(REPORTS, json=seen("a")), 403, "forbidden")
        # Nor does the first's report for the clone, whatever it says of its hardware; revoking lets nobody else in.
        first = service.client(tokens["a"])
        for made in (seen("b"), seen(None, "c")):
            assert_problem(await first.post(REPORTS, json=made), 403, "forbidden")
        (own,) = (t for t in (await admin.get("/api/v1/tokens")).json()["items"] if "~" in (t["machine_id"] or ""))
        await admin.delete(f"/api/v1/tokens/{own['id']}")
        assert_problem(await first.post(REPORTS, json=seen("b")), 403, "forbidden")
        assert (await first.post(REPORTS, json=seen("a"))).status_code == 201

    async def test_comes_with_hardware_that_another_clone_had(
        self, service: Service, enroller: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        """Its node would have had the id of that clone's, and it could never enrol (500)."""
        tokens = []
        for dmi, *macs in (("a", "1"), (None, "2")):
            answer = await enroller.post(ENROL, json=BODY | {"clone_hints": hints(dmi, *macs)})
            tokens.append(answer.json()["token"])
        for made in (seen("b", "2"), seen("b", "3")):  # by its firmware it is the same one with other addresses
            assert (await service.client(tokens[1]).post(REPORTS, json=made)).status_code == 201
        answer = await enroller.post(ENROL, json=BODY | {"clone_hints": hints(None, "2")})
        assert answer.status_code == 201, answer.text
        third = service.client(answer.json()["token"])
        assert (await third.post(REPORTS, json=seen(None, "2"))).status_code == 201
        assert len(set(await nodes(viewer))) == 2

    async def test_that_enrols_takes_reports_of_its_own_token_from_then_on(
        self, service: Service, enroller: httpx.AsyncClient
    ) -> None:
        """Until then it reports with the token that was cloned with it, which is remembered for speed."""
        first = service.client((await enroller.post(ENROL, json=BODY | {"clone_hints": hints("a")})).json()["token"])
        for dmi in "aab":
            assert (await first.post(REPORTS, json=seen(dmi))).status_code == 201
        assert_problem(await enroller.post(ENROL, json=BODY | {"clone_hints": hints("b")}), 409, "conflict")
        admin = await service.client_as(Role.ADMIN)
        own = await admin.post(ENROL, json=BODY | {"clone_hints": hints("b")})
        # The memory of this process does not know it: another one may have enrolled the clone.
        assert_problem(await first.post(REPORTS, json=seen("b")), 403, "forbidden")
        assert (await service.client(own.json()["token"]).post(REPORTS, json=seen("b"))).status_code == 201
        assert (await first.post(REPORTS, json=seen("a"))).status_code == 201

    async def test_the_same_hardware_is_no_clone(self, enroller: httpx.AsyncClient) -> None:
        for status in (201, 409):
            answer = await enroller.post(ENROL, json=BODY | {"clone_hints": hints("a")})
            assert answer.status_code == status

    async def test_a_machine_that_learns_its_hardware_stays_one_node(
        self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        for made in (report(), seen(None), seen("a"), seen("a", "b"), report()):
            assert (await agent.post(REPORTS, json=made)).status_code == 201
        assert await nodes(viewer) == [MACHINE_ID]

    @pytest.mark.parametrize(
        ("boots", "is_cloned"),
        [([0, 1], False), ([0, 1, 1], False), ([0, 1, 0], True), ([0, 1, 0, 1], True)],
    )
    async def test_interleaved_boots_without_hardware_are_noted(
        self, service: Service, agent: httpx.AsyncClient, boots: list[int], is_cloned: bool
    ) -> None:
        for minute, boot in enumerate(boots):
            made = seen(None, boot=BOOTS[boot], at=f"2026-11-20T12:{minute:02}:00Z")
            assert (await agent.post(REPORTS, json=made)).status_code == 201
        async with service.database.read() as session:
            (machine,) = await machines.with_same_id(session, MACHINE_ID)
        assert machine.boots_interleaved is is_cloned

    async def test_a_late_report_of_an_earlier_boot_is_no_clone(
        self, service: Service, agent: httpx.AsyncClient
    ) -> None:
        for minute, boot in ((5, 0), (9, 1), (7, 0), (10, 1)):
            made = seen(None, boot=BOOTS[boot], at=f"2026-11-20T12:{minute:02}:00Z")
            assert (await agent.post(REPORTS, json=made)).status_code == 201
        async with service.database.read() as session:
            (machine,) = await machines.with_same_id(session, MACHINE_ID)
        assert machine.boots_interleaved is False
