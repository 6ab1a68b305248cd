"""Who may send a body: every request is judged by its head, before a byte of its body is read.

A credential that was good a moment ago is remembered, so that judging it needs no database; the handler asks the
database again, in its own transaction, so that a revoked one ends at once. What is not remembered is looked up, a few
at a time, of each address one, and only while its address has not guessed too often: of a flood of forged credentials,
one per second reaches a statement.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar
from uuid import UUID

from fastapi import Request
from fastapi.security.utils import get_authorization_scheme_param

from hugeplan.access import repository, service
from hugeplan.access.schemas import Role
from hugeplan.access.service import Credential
from hugeplan.api.forwarded import limit_key
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.db.session import Database
from hugeplan.errors import ForbiddenError, RateLimitedError
from hugeplan.settings import Settings
from hugeplan.shares import Line

_Value = TypeVar("_Value")

SESSION_COOKIE = "hugeplan_session"
LOOKUPS_AT_A_TIME = 2
MAX_REMEMBERED = 50_000
NEWCOMERS_PER_MINUTE = 60
ENROLS = "enrolments_create"
UNKNOWN_COOKIE_SECONDS = 30.0
"""How long a cookie without a session is answered without a database query: a browser asks on after its session."""

_ROLES: Final = frozenset(role.value for role in Role)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A credential that was good when it was last looked up. What is bounded is counted by ``line_id``."""

    token_id: str
    line_id: str
    role: Role

    @property
    def is_machine(self) -> bool:
        """Whether it is one of those of which a single enrolment token makes as many as it likes."""
        return self.role in {Role.AGENT, Role.ENROLMENT}


def client_address(request: Request) -> str:
    """The client's address: the peer's, or what a trusted proxy says."""
    return request.client.host if request.client else "unknown"


def address_key(request: Request) -> str:
    """What limits by address count a request by."""
    return limit_key(client_address(request))


def credential_of(request: Request) -> Credential | None:
    """The bearer token, else the session cookie."""
    scheme, parameter = get_authorization_scheme_param(request.headers.get("Authorization"))
    if scheme.lower() == "bearer" and parameter:
        return Credential(secret=parameter, is_session=False)
    cookie = request.cookies.get(SESSION_COOKIE)
    return Credential(secret=cookie, is_session=True) if cookie else None


def refuse_role(role: Role, allowed: frozenset[Role]) -> None:
    """Raise ForbiddenError unless the role is one of those."""
    if role not in allowed:
        wanted = " or ".join(each for each in Role if each in allowed)
        raise ForbiddenError(f"This needs the role {wanted}; the credential has the role {role}.")


class Gate:
    """The judge of one application. ``limiter`` is asked for each time, because tests replace it."""

    def __init__(self, database: Database, settings: Settings, limiter: Callable[[], RateLimiter]) -> None:
        self._database = database
        self._settings = settings
        self._limiter = limiter
        self._known: OrderedDict[bytes, Admitted] = OrderedDict()
        self._unknown_cookies: OrderedDict[bytes, float] = OrderedDict()
        self._lookups = Line(LOOKUPS_AT_A_TIME)

    async def identify(self, request: Request, allowed: frozenset[Role] = frozenset(Role)) -> Admitted:
        """Whose credential a request has, or 401 or 429. Once for each request.

        Past its rate, who may not do this at all learns that: coming back in a minute is of no use.
        """
        credential = credential_of(request)
        if credential is None:
            raise service.no_credential()
        key = _key(credential)
        known = self._known.get(key)
        if known is None:
            known = await self._look_up(request, credential, key)
        else:
            self._known.move_to_end(key)
        try:
            self._limiter().spend("token", known.line_id, self._settings.requests_per_minute)
        except RateLimitedError:
            refuse_role(known.role, allowed)
            raise
        state = request.state
        state.admitted, state.actor_id, state.line_id = known, known.token_id, known.line_id
        state.is_agent, state.is_machine = known.role is Role.AGENT, known.is_machine
        return known

    def remembered(self, request: Request) -> Admitted | None:
        """Whose good credential a request has, where that is known without asking the database."""
        credential = credential_of(request)
        return None if credential is None else self._known.get(_key(credential))

    async def admit(self, request: Request, allowed: frozenset[Role]) -> Admitted:
        """Let a request pass whose credential has an allowed role, or raise 401, 403 or 429."""
        known: Admitted | None = getattr(request.state, "admitted", None)
        if known is None:
            known = await self.identify(request, allowed)
        if known.role not in allowed and (credential := credential_of(request)) and credential.is_session:
            # A person's role may have changed since it was looked up; a token keeps its own.
            known = await self._look_up(request, credential, _key(credential))
        refuse_role(known.role, allowed)
        return known

    async def prove(self, request: Request, allowed: frozenset[Role]) -> None:
        """As :meth:`admit`, for an answer without a handler that asks the database."""
        await self.admit(request, allowed)
        if (credential := credential_of(request)) is not None:
            refuse_role((await self._look_up(request, credential, _key(credential))).role, allowed)

    def refuse_guessing(self, request: Request, secret: str) -> None:
        """Raise RateLimitedError when this address has shown too many wrong credentials.

        A token that was good a moment ago is no guess: who guesses behind the same proxy keeps nobody out. Of other
        secrets a few a minute are looked up all the same.
        """
        try:
            self._limiter().refuse_exhausted("login", address_key(request), self._settings.logins_per_minute)
        except RateLimitedError:
            if _key(Credential(secret=secret, is_session=False)) not in self._known:
                self._limiter().spend("newcomer login", "", NEWCOMERS_PER_MINUTE)

    def count_guess(self, request: Request, credential: Credential) -> None:
        """Note a wrong credential: forget it, and take it from its address' bucket."""
        self._known.pop(_key(credential), None)
        # Cookies have a bucket of their own: browsers whose sessions have ended must not keep others from logging in.
        kind = "cookie" if credential.is_session else "login"
        self._limiter().spend(kind, address_key(request), self._settings.logins_per_minute)

    async def _look_up(self, request: Request, credential: Credential, key: bytes) -> Admitted:
        if credential.is_session and self._unknown_cookies.get(key, 0.0) > time.monotonic():
            raise service.wrong_credential(credential)
        kind = "cookie" if credential.is_session else "login"
        limiter = self._limiter()
        try:
            limiter.refuse_exhausted(kind, address_key(request), self._settings.logins_per_minute)
        except RateLimitedError:
            # A good credential that is new here may come from the address of one who guesses: a few are looked up.
            limiter.spend(f"newcomer {kind}", "", NEWCOMERS_PER_MINUTE)
        in_line = self._lookups.turn(credential.secret, address_key(request))
        async with in_line, self._database.read() as session:
            try:
                actor = await service.authenticate(session, credential)
            except service.WrongCredentialError:
                self.count_guess(request, credential)
                if credential.is_session:
                    _remember(self._unknown_cookies, key, time.monotonic() + UNKNOWN_COOKIE_SECONDS)
                raise
        found = Admitted(str(actor.token_id), str(actor.line_id), actor.role)
        _remember(self._known, key, found)
        return found

    def remember(self, secret: str, line_id: UUID, token_id: UUID, role: Role, *, is_session: bool = False) -> None:
        """Know what this process makes at once, not only from the next look on."""
        _remember(self._known, _key(Credential(secret, is_session)), Admitted(str(token_id), str(line_id), role))

    async def load(self, since: datetime | None = None) -> None:
        """Remember usable tokens and sessions (those made after ``since``), so that a flood keeps none of them out."""
        now, most = datetime.now(UTC), MAX_REMEMBERED // 2
        async with self._database.read() as session:
            tokens = await repository.usable_tokens(session, now, most, since)
            sessions = await repository.usable_sessions(session, now, most, since)
        for mark, rows in ((b"s", sessions), (b"t", tokens)):
            for secret_sha256, token_id, line_id, role in rows:
                if role in _ROLES:  # a later version of the service may have stored others
                    _remember(self._known, mark + secret_sha256, Admitted(str(token_id), str(line_id), Role(role)))

    def count_change(self, request: Request) -> None:
        """Take one change from the credential's bucket, or raise RateLimitedError: each leaves a line for good."""
        admitted: Admitted = request.state.admitted
        # A fleet enrols at once: counted where it leaves a line.
        if admitted.role is not Role.ENROLMENT or getattr(request.scope.get("route"), "name", "") != ENROLS:
            self._limiter().spend("change", admitted.line_id, self._settings.changes_per_minute)


def _key(credential: Credential) -> bytes:
    return (b"s" if credential.is_session else b"t") + service.hash_secret(credential.secret)


def _remember(memory: OrderedDict[bytes, _Value], key: bytes, value: _Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
