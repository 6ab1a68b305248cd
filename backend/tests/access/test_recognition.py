"""A machine that is known and enrols again: what lets it in by itself, what waits for a person, what is turned away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem

from hugeplan.access import enrolment_repository
from hugeplan.access.machines import Hints, told_apart
from hugeplan.access.recognition import Asked, Remembered, judge
from hugeplan.access.schemas import Role
from hugeplan.db.models import EnrolmentRequestRow, Machine

API = "/api/v1"
ENROL = f"{API}/enrolments"
BOOT, OTHER_BOOT = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
SILENCE = timedelta(seconds=150)
MAC, OTHER_MAC = "a" * 64, "b" * 64


def asking(**changed: Any) -> dict[str, Any]:
    """What a replacement sends, whose state folder is empty."""
    body = {
        "machine_id": MACHINE_ID,
        "node_name": "db-7",
        "boot_id": BOOT,
        "clone_hints": {"dmi_sha256": None, "mac_sha256": [MAC]},
    }
    return {name: value for name, value in (body | changed).items() if value is not None}


async def silent(service: Service) -> None:
    """As if the machine's agent had last been heard an hour ago."""
    async with service.database.write() as session:
        await session.execute(
            text(
                "UPDATE tokens SET created_at = created_at - interval '1 hour',"
                " last_used_at = last_used_at - interval '1 hour' WHERE role = 'agent'"
            )
        )
        await session.execute(text("UPDATE nodes SET last_report_at = last_report_at - interval '1 hour'"))
    await service.listens(hours=1)


@pytest.fixture
async def enroller(service: Service) -> httpx.AsyncClient:
    """A client with an enrolment token."""
    return await service.client_as(Role.ENROLMENT)


@pytest.fixture
async def enrolled(service: Service, enroller: httpx.AsyncClient) -> str:
    """The token of an agent that has enrolled, reported once, and is silent since."""
    token: str = (await enroller.post(ENROL, json=asking())).json()["token"]
    made = report(machine_id=MACHINE_ID, node_name="db-7")
    made["inventory"] |= {"boot_id": BOOT, "clone_hints": {"dmi_sha256": None, "mac_sha256": [MAC]}}
    assert (await service.client(token).post(f"{API}/reports", json=made)).status_code == 201
    await silent(service)
    return token


async def requests(admin: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await admin.get(f"{ENROL}/requests")).json()["items"]
    return found


class TestAReplacement:
    @pytest.mark.parametrize(
        "changed",
        [
            {},
            {"clone_hints": None},
            {"boot_id": OTHER_BOOT},
            {"boot_id": OTHER_BOOT, "clone_hints": {"dmi_sha256": "c" * 64, "mac_sha256": [MAC, OTHER_MAC]}},
        ],
        ids=["same pod", "boot alone", "after a reboot", "as root"],
    )
    async def test_of_a_silent_agent_enrols_by_itself(
        self, service: Service, enroller: httpx.AsyncClient, admin: httpx.AsyncClient, enrolled: str, changed: Any
    ) -> None:
        answer = await enroller.post(ENROL, json=asking(**changed))
        assert answer.status_code == 201, answer.text
        assert answer.json()["machine_id"] == MACHINE_ID
        made = report(machine_id=MACHINE_ID, node_name="db-7")
        assert (await service.client(answer.json()["token"]).post(f"{API}/reports", json=made)).status_code == 201
        assert (await service.client(enrolled).post(f"{API}/reports", json=made)).status_code == 401
        events = (await admin.get(f"{API}/audit", params={"action": "enrolments_create"})).json()["items"]
        assert events[0]["detail"]["how"].startswith("recognised by ")
        assert await requests(admin) == []

    async def test_of_an_agent_that_is_heard_waits_and_is_told_how_long(
        self, service: Service, enroller: httpx.AsyncClient, enrolled: str, admin: httpx.AsyncClient
    ) -> None:
        made = report(machine_id=MACHINE_ID, node_name="db-7")
        assert (await service.client(enrolled).post(f"{API}/reports", json=made)).status_code == 201
        answer = await enroller.post(ENROL, json=asking())
        assert_problem(answer, 409, "conflict")
        assert 1 <= int(answer.headers["Retry-After"]) <= 151
        assert (await service.client(enrolled).post(f"{API}/reports", json=made)).status_code in {200, 201}
        assert len(await requests(admin)) == 1

    @pytest.mark.parametrize(
        ("cause", "seconds"),
        [
            ("UPDATE listening SET since = now()", 450),  # away for longer than an agent may be silent
            # PostgreSQL is back, or its clock has moved.
            ("UPDATE listening SET until = now() - interval '1 minute'", 450),
            ("DELETE FROM listening", 450),
            (
                "UPDATE tokens SET last_used_at = now()",
                150,
            ),  # the clock of the service that takes its reports is behind
        ],
    )
    async def test_of_an_agent_that_could_not_be_heard_waits(
        self, service: Service, enroller: httpx.AsyncClient, enrolled: str, cause: str, seconds: int
    ) -> None:
        async with service.database.write() as session:
            await session.execute(text(cause))
        answer = await enroller.post(ENROL, json=asking())
        assert_problem(answer, 409, "conflict")
        assert seconds - 10 <= int(answer.headers["Retry-After"]) <= seconds + 1
        made = report(machine_id=MACHINE_ID, node_name="db-7")
        assert (await service.client(enrolled).post(f"{API}/reports", json=made)).status_code in {200, 201}
        await silent(service)
        assert (await enroller.post(ENROL, json=asking())).status_code == 201

    @pytest.mark.usefixtures("enrolled")
    async def test_of_a_machine_whose_name_another_has_enrols_by_itself_too(
        self, service: Service, enroller: httpx.AsyncClient
    ) -> None:
        async with service.database.write() as session:
            await session.execute(text("UPDATE nodes SET name = :name"), {"name": told_apart("db-7", MACHINE_ID)})
        assert (await enroller.post(ENROL, json=asking())).status_code == 201

    @pytest.mark.usefixtures("enrolled")
    @pytest.mark.parametrize(
        ("changed", "word"),
        [
            ({"boot_id": OTHER_BOOT, "clone_hints": None}, "boot id"),
            ({"boot_id": None, "clone_hints": None}, "boot id"),
            ({"node_name": "db-8"}, "its name is 'db-8'"),
            ({"mem_total_bytes": 1 << 30}, "its memory"),
            ({"cpu_brand": "another"}, "its processor"),
        ],
    )
    async def test_that_differs_waits_for_a_person(
        self, admin: httpx.AsyncClient, enroller: httpx.AsyncClient, changed: Any, word: str
    ) -> None:
        assert_problem(await enroller.post(ENROL, json=asking(**changed)), 409, "conflict")
        (asked,) = await requests(admin)
        assert word in asked["reason"]

    async def test_with_other_hardware_gets_another_node_and_nothing_of_the_known_one(
        self, service: Service, enroller: httpx.AsyncClient, enrolled: str
    ) -> None:
        clone = asking(boot_id=OTHER_BOOT, clone_hints={"dmi_sha256": None, "mac_sha256": [OTHER_MAC]})
        answer = await enroller.post(ENROL, json=clone)
        assert answer.json()["machine_id"].startswith(f"{MACHINE_ID}~")
        made = report(machine_id=MACHINE_ID, node_name="db-7")
        assert (await service.client(enrolled).post(f"{API}/reports", json=made)).status_code in {200, 201}

    async def test_after_an_administrator_revoked_its_token_waits_for_a_person(
        self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient, enrolled: str
    ) -> None:
        tokens = (await admin.get(f"{API}/tokens")).json()["items"]
        (own,) = [token for token in tokens if token["machine_id"] == MACHINE_ID]
        assert (await admin.delete(f"{API}/tokens/{own['id']}")).status_code == 200
        assert_problem(await enroller.post(ENROL, json=asking(current_token=enrolled)), 409, "conflict")
        assert "revoked" in (await requests(admin))[0]["reason"]


class TestTheClaim:
    async def test_gets_the_token_again_when_the_answer_was_lost(
        self, service: Service, enroller: httpx.AsyncClient
    ) -> None:
        body = asking(claim="c" * 43, boot_id=None, clone_hints=None)
        first, second = [(await enroller.post(ENROL, json=body)).json()["token"] for _ in range(2)]
        made = report(machine_id=MACHINE_ID)
        assert (await service.client(first).post(f"{API}/reports", json=made)).status_code == 401
        assert (await service.client(second).post(f"{API}/reports", json=made)).status_code == 201

    async def test_gets_no_tokens_without_end(self, service: Service, enroller: httpx.AsyncClient) -> None:
        body = asking(claim="c" * 43, boot_id=None, clone_hints=None)
        answers = [await enroller.post(ENROL, json=body) for _ in range(21)]
        assert [answer.status_code for answer in answers] == [201] * 20 + [429]
        assert answers[-1].headers["retry-after"] == "3600"
        made = report(machine_id=MACHINE_ID)
        usable = service.client(answers[-2].json()["token"])
        assert (await usable.post(f"{API}/reports", json=made)).status_code == 201, "who has one goes on"

    async def test_of_another_machine_is_none(self, enroller: httpx.AsyncClient) -> None:
        body = asking(claim="c" * 43, boot_id=None, clone_hints=None)
        await enroller.post(ENROL, json=body)
        await enroller.post(ENROL, json=body | {"machine_id": "e" * 32, "claim": "d" * 43})
        assert_problem(await enroller.post(ENROL, json=body | {"claim": "d" * 43}), 409, "conflict")


@pytest.mark.usefixtures("enrolled")
class TestTheAdministratorsWord:
    async def test_lets_exactly_the_asker_in(self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
        asker = asking(boot_id=None, clone_hints=None, claim="c" * 43)
        thief = asker | {"claim": "d" * 43}
        for body in (asker, thief, asker):
            assert (await enroller.post(ENROL, json=body)).status_code == 409
        by_attempts = {asked["attempts"]: asked["id"] for asked in await requests(admin)}
        word = await admin.post(f"{ENROL}/requests/{by_attempts[2]}/decision", json={"decision": "approved"})
        assert word.json()["decided_by"]
        assert (await enroller.post(ENROL, json=thief)).status_code == 409
        assert (await enroller.post(ENROL, json=asker)).status_code == 201
        assert await requests(admin) == []

    async def test_at_the_moment_of_the_enrolment_is_kept_or_came_too_late(
        self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        for n in range(20):
            asker = asking(boot_id=None, clone_hints=None, claim=f"{n:043}")
            assert (await enroller.post(ENROL, json=asker)).status_code == 409
            (asked,) = [one for one in await requests(admin) if one["decision"] is None]
            word = f"{ENROL}/requests/{asked['id']}/decision"
            assert (await admin.post(word, json={"decision": "approved"})).status_code == 200
            enrolled, refused = await asyncio.gather(
                enroller.post(ENROL, json=asker), admin.post(word, json={"decision": "refused"})
            )
            assert (enrolled.status_code, refused.status_code) in {(201, 404), (403, 200)}

    async def test_turns_away(self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
        assert (await enroller.post(ENROL, json=asking(node_name="x"))).status_code == 409
        (asked,) = await requests(admin)
        await admin.post(f"{ENROL}/requests/{asked['id']}/decision", json={"decision": "refused"})
        # Refused stays refused, whatever it says of itself now.
        problem = assert_problem(await enroller.post(ENROL, json=asking()), 403, "forbidden")
        assert asked["id"] in problem["detail"]

    async def test_on_no_request_is_404(self, admin: httpx.AsyncClient) -> None:
        unknown = f"{ENROL}/requests/{'0' * 8}-0000-4000-8000-{'0' * 12}/decision"
        assert_problem(await admin.post(unknown, json={"decision": "approved"}), 404, "not-found")

    async def test_no_machine_fills_the_table(self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
        for number in range(25):
            body = asking(node_name="x", claim=f"{number:043}")
            assert (await enroller.post(ENROL, json=body)).status_code == 409
        assert len(await requests(admin)) == 20

    @pytest.mark.parametrize("many", ["192.0.2.3", "2001:db8::{:x}"])  # an IPv6 host has all addresses of a /64
    async def test_many_made_up_requests_keep_no_other_out_of_the_list(
        self, service: Service, admin: httpx.AsyncClient, many: str
    ) -> None:
        async def ask(address: str, number: int, decision: str | None = None) -> None:
            now = datetime.now(UTC)
            row = EnrolmentRequestRow(
                id=uuid4(), node_machine_id=MACHINE_ID, machine_id=MACHINE_ID, claim_sha256=number.to_bytes(32),
                node_name="db-7", reason="r", address=address, token_name=address, attempts=1, first_asked_at=now,
                last_asked_at=now, decision=decision,
            )  # fmt: skip
            async with service.database.write() as session:
                await enrolment_repository.keep(session, row)

        await ask("192.0.2.1", 1, "approved")
        await ask("192.0.2.2", 2)
        for number in range(3, 60):
            await ask(many.format(number), number, "refused")
        await ask("192.0.2.1", 60)
        asked = [(item["address"], item["decision"]) for item in await requests(admin)]
        assert len(asked) == 20
        assert {("192.0.2.1", "approved"), ("192.0.2.2", None), ("192.0.2.1", None)} < set(asked)

    async def test_turns_an_asker_away_whatever_claim_it_makes_up(
        self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        """Recognition lets nobody in, who is right about the hardware or not, and the refusal stays."""
        stranger = asking(claim="x" * 43, boot_id=None, clone_hints=None)
        assert (await enroller.post(ENROL, json=stranger)).status_code == 409
        (asked,) = await requests(admin)
        word = await admin.post(f"{ENROL}/requests/{asked['id']}/decision", json={"decision": "refused"})
        assert word.status_code == 200
        answer = await enroller.post(ENROL, json=asking(claim="y" * 43))
        assert "refused a machine that says" in assert_problem(answer, 409, "conflict")["detail"]
        assert {item["decision"] for item in await requests(admin)} == {"refused", None}

    async def test_on_who_sends_no_claim_lets_nobody_in(
        self, enroller: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        body = asking(node_name="renamed", boot_id=None, clone_hints=None)
        assert (await enroller.post(ENROL, json=body)).status_code == 409
        (asked,) = await requests(admin)
        word = await admin.post(f"{ENROL}/requests/{asked['id']}/decision", json={"decision": "approved"})
        assert "enrolments/approvals" in assert_problem(word, 409, "conflict")["detail"]
        assert (await enroller.post(ENROL, json=body | {"node_name": "whoever"})).status_code == 409


class TestAnEnrolmentToken:
    async def token(self, service: Service, admin: httpx.AsyncClient, **limits: Any) -> httpx.AsyncClient:
        body = {"name": "nodes", "role": "enrolment", "limits": limits}
        made = (await admin.post(f"{API}/tokens", json=body)).json()
        assert {name: made[name] for name in limits} == limits
        return service.client(made["token"])

    async def test_enrols_so_many_machines_and_no_more(self, service: Service, admin: httpx.AsyncClient) -> None:
        client = await self.token(service, admin, max_enrolments=2)
        for number, status in ((1, 201), (2, 201), (3, 403)):
            body = asking(machine_id=f"{number:032x}", claim=f"{number:043}")
            answer = await client.post(ENROL, json=body)
            assert answer.status_code == status, answer.text
        assert "all of its 2 machines" in answer.json()["detail"]
        # Who is known costs nothing.
        assert (await client.post(ENROL, json=asking(machine_id=f"{1:032x}", claim=f"{1:043}"))).status_code == 201

    async def test_enrols_only_names_like_its_pattern(self, service: Service, admin: httpx.AsyncClient) -> None:
        client = await self.token(service, admin, name_pattern="db-*")
        assert (await client.post(ENROL, json=asking(node_name="web-1"))).status_code == 403
        assert (await client.post(ENROL, json=asking(node_name="db-1"))).status_code == 201

    async def test_alone_has_limits(self, admin: httpx.AsyncClient) -> None:
        body = {"name": "n", "role": "viewer", "limits": {"max_enrolments": 1}}
        assert_problem(await admin.post(f"{API}/tokens", json=body), 422, "invalid-input")


def known(**changed: Any) -> Remembered:
    machine = Machine(boot_id=BOOT, mac_sha256=[MAC], boots_interleaved=changed.pop("boots_interleaved", False))
    facts = {"node_name": "n", "cpu_brand": "c", "mem_total_bytes": 10**9, "silent_for": timedelta(hours=1)}
    return Remembered(machine=machine, has_usable_token=True, **(facts | changed))


def test_interleaved_boots_are_a_doubt() -> None:
    asked = Asked("n", Hints(boot_id=BOOT), "c", 10**9)
    assert judge(asked, known(), SILENCE).is_recognised
    assert judge(asked, known(boots_interleaved=True), SILENCE).doubts


@pytest.mark.parametrize(("bytes_", "is_recognised"), [(10**9 + 10**7, True), (9 * 10**8, False), (None, True)])
def test_another_kernel_may_leave_a_little_more_memory(bytes_: int | None, is_recognised: bool) -> None:
    judged = judge(Asked("n", Hints(boot_id=BOOT), None, bytes_), known(), SILENCE)
    assert judged.is_recognised is is_recognised


def test_the_wait_ends_with_the_silence() -> None:
    asked = Asked("n", Hints(boot_id=BOOT))
    assert judge(asked, known(silent_for=timedelta(seconds=100)), SILENCE).wait_seconds == 50
    assert judge(asked, known(silent_for=SILENCE), SILENCE).is_recognised
