"""Credentials that exist before anyone can log in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import text

from hugeplan.access import logins, repository, service
from hugeplan.access.gate import Gate
from hugeplan.access.machines import CLONE_MARK
from hugeplan.access.schemas import Role
from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.session import Database, WriteSession
from hugeplan.settings import Settings

LOGIN_LINK_SECONDS = logins.LOGIN_LINK_SECONDS
APPROVAL = timedelta(hours=1)
REMEMBER_SECONDS = 20.0


async def _lock(session: WriteSession) -> None:
    """Let replicas that start together do this one after the other."""
    await session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(AdvisoryLock.BOOTSTRAP)})


async def create_first_admin(database: Database, keep: Callable[[str], None]) -> bool:
    """Whether the first admin token was made, as there was no usable one; not where ``keep`` of its secret raises."""
    async with database.write() as session:
        await _lock(session)
        if await repository.has_admin(session, datetime.now(UTC)):
            return False
        keep((await service.mint(session, name="first admin", role=Role.ADMIN)).token)
        return True


async def create_login_link(database: Database, token: str) -> str:
    """The secret of a login link for a token: it works once, for LOGIN_LINK_SECONDS."""
    async with database.write() as session:
        row = await repository.token_by_secret(session, service.hash_secret(token), datetime.now(UTC))
        if row is None:
            raise LookupError("the token is not usable")
        return (await logins.create_login_link(session, row.id)).secret


async def is_usable(database: Database, secret: str, role: Role) -> bool:
    """Whether a secret is a usable token of this role."""
    async with database.read() as session:
        row = await repository.token_by_secret(session, service.hash_secret(secret), datetime.now(UTC))
        return row is not None and row.role == role.value


async def replace_token(database: Database, name: str, role: Role) -> str:
    """The secret of a new token that takes the place of all tokens with this name and role."""
    async with database.write() as session:
        await _lock(session)
        now = datetime.now(UTC)
        machines = await repository.machines_of_named(session, name, role.value)
        await repository.revoke_named(session, name, role.value, now)
        # Who starts the demo owns the database: the machine that the previous token was bound to may bind the new one.
        for machine_id in machines:
            plain = machine_id.partition(CLONE_MARK)[0]
            await repository.approve_enrolment(session, plain, name, now, now + APPROVAL)
        return (await service.mint(session, name=name, role=role)).token


class TokenMemory:
    """Lets the gate know the usable tokens, and those that are made from now on, here or by another process."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._since: datetime | None = None

    async def look(self) -> None:
        """Learn what was made since the last look."""
        begun = datetime.now(UTC)
        await self._gate.load(self._since)
        self._since = begun - timedelta(minutes=5)  # replicas' clocks differ


BOOTSTRAP_NAME: Final = "bootstrap enrolment"


async def register_enrolment_token(database: Database, settings: Settings) -> None:
    """Store the configured enrolment token unless it is there: a restored database may know another one."""
    if settings.bootstrap_enrolment_token is None:
        return
    secret = settings.bootstrap_enrolment_token.get_secret_value()
    digest = service.hash_secret(secret)
    async with database.read() as session:
        if await repository.is_known(session, digest):
            return
    async with database.write() as session:
        await _lock(session)
        # A revoked one stays revoked: the administrator's word is newer than the environment's.
        if not await repository.is_known(session, digest):
            # Who changes a secret in the environment does not want the one before to be good any longer.
            await repository.revoke_named(session, BOOTSTRAP_NAME, Role.ENROLMENT.value, datetime.now(UTC))
            await service.mint(session, name=BOOTSTRAP_NAME, role=Role.ENROLMENT, secret=secret)
