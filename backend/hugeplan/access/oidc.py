"""Logging in with an OpenID provider: the authorization code flow with PKCE, and roles from groups.

Source: OpenID Connect Core 1.0, sections 3.1 and 3.1.3.7; RFC 7636 (PKCE).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from hugeplan.access import repository
from hugeplan.access.schemas import Role
from hugeplan.access.service import hash_secret, new_secret
from hugeplan.db.locks import LockOfOne, lock_one
from hugeplan.db.models import OidcLogin, Token
from hugeplan.db.session import Database, WriteSession
from hugeplan.errors import ForbiddenError, NotFoundError, UnauthenticatedError, UnavailableError
from hugeplan.here import is_here
from hugeplan.planner.host_names import is_loopback
from hugeplan.planner.printable import printable
from hugeplan.settings import Settings

if TYPE_CHECKING:
    import ssl

    from joserfc.jwk import KeySet

STATE_COOKIE = "hugeplan_oidc"
CALLBACK = "/api/v1/oidc/callback"
LOGIN_SECONDS = 600
METADATA_SECONDS = 3600.0
TIMEOUT_SECONDS = 10.0
ANSWER_SECONDS = 20.0
"""Of a whole answer; TIMEOUT_SECONDS are those of each of its pieces."""
MAX_ANSWER_BYTES = 256 * 1024
LEEWAY_SECONDS = 60
MOST_SUBJECT = 255  # OpenID Connect Core 1.0, section 2
_NOT_CONFIRMED = "The OpenID provider did not confirm this login. Begin again."
_AS_IT_IS = {"Accept": "application/json", "Accept-Encoding": "identity"}  # what is packed has no bound
_ADDRESSES = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# Signatures that need the provider's private key. "none" and the symmetric ones are never among them.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


@dataclass(frozen=True, slots=True)
class Person:
    """Who the provider says has logged in."""

    subject: str
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Started:
    """Where to send the browser, and the state that it must bring back."""

    url: str
    state: str


class Provider:
    """The configured provider. Its metadata and keys are fetched when they are first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metadata: dict[str, Any] | None = None
        self._keys: KeySet | None = None
        self._until = 0.0
        self._tls: ssl.SSLContext | None = None
        # Only a service with a provider has them, from its start on: a login would hold up others while it reads them.
        for library in ("httpx", "authlib.oidc.core") if self.is_configured else ():
            import_module(library)

    @property
    def is_configured(self) -> bool:
        """Whether there is a provider."""
        return self._settings.oidc_issuer is not None and self._settings.oidc_client_id is not None

    async def start(self, session: WriteSession) -> Started:
        """A new login. NotFoundError without a provider, UnavailableError while it is away."""
        metadata = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(size) for size in (32, 32, 48))
        row = OidcLogin(
            state_sha256=hash_secret(state),
            nonce=nonce,
            code_verifier=verifier,
            expires_at=datetime.now(UTC) + timedelta(seconds=LOGIN_SECONDS),
        )
        await repository.add(session, row)
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self._settings.oidc_scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        endpoint = str(metadata["authorization_endpoint"])
        return Started(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", state)

    async def finish(self, database: Database, *, code: str | None, state: str, cookie: str | None) -> Person:
        """The person who comes back. The login is used up first, confirmed or not.

        The provider is asked without a database connection: anybody may call back, and the pool is for all.
        UnauthenticatedError for a login that is not confirmed, ForbiddenError for a person without a role.
        """
        if cookie is None or hash_secret(cookie) != hash_secret(state):
            raise UnauthenticatedError("This login was not begun in this browser. Begin again.")
        async with database.write() as session:
            begun = await repository.use_oidc_login(session, hash_secret(state), datetime.now(UTC))
        if begun is None:
            raise UnauthenticatedError("This login was used already, or took too long. Begin again.")
        if code is None:
            raise UnauthenticatedError(_NOT_CONFIRMED)
        nonce, verifier = begun
        claims = await self._confirm(code, nonce, verifier)
        return person_of(claims, self._settings)

    @property
    def _redirect_uri(self) -> str:
        return self._settings.browser_url() + CALLBACK

    async def _confirm(self, code: str, nonce: str, verifier: str) -> dict[str, Any]:
        metadata = await self._discover()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        client_id, secret = self._settings.oidc_client_id or "", self._settings.oidc_client_secret
        given = None
        if secret is None:
            form["client_id"] = client_id
        else:
            given = (quote(client_id, safe=""), quote(secret.get_secret_value(), safe=""))  # RFC 6749, section 2.3.1
        answer = await self._request("POST", str(metadata["token_endpoint"]), data=form, auth=given)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise UnauthenticatedError(_NOT_CONFIRMED)
        from joserfc.errors import JoseError  # noqa: PLC0415 - __init__ says why

        try:
            claims = await self._claims(token, nonce, answer.get("access_token"))
        except (JoseError, ValueError, KeyError) as error:
            raise UnauthenticatedError(
                f"The OpenID provider's ID token is not valid ({type(error).__name__}). Begin again."
            ) from error
        return claims if self._settings.oidc_role_claim in claims else await self._user_info(claims, answer)

    async def _user_info(self, claims: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """The claims, and what the provider tells of the person elsewhere: many keep an ID token short.

        Source: OpenID Connect Core 1.0, sections 5.3 and 5.4.
        """
        address, token = (await self._discover()).get("userinfo_endpoint"), answer.get("access_token")
        if not isinstance(address, str) or not isinstance(token, str):
            return claims
        told = await self._request("GET", address, headers={"Authorization": f"Bearer {token}"})
        if told.get("sub") != claims.get("sub"):  # section 5.3.2: it may be about somebody else
            raise UnauthenticatedError(_NOT_CONFIRMED)
        return told | claims

    async def _claims(self, token: str, nonce: str, access_token: object) -> dict[str, Any]:
        from authlib.oidc.core import CodeIDToken  # noqa: PLC0415 - __init__ says why
        from joserfc import jwt  # noqa: PLC0415
        from joserfc.errors import InvalidKeyIdError  # noqa: PLC0415
        from joserfc.jws import JWSRegistry  # noqa: PLC0415

        metadata = await self._discover()
        registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        try:
            decoded = jwt.decode(token, await self._key_set(), registry=registry)
        except InvalidKeyIdError:
            # The provider has new keys.
            self._keys = None
            decoded = jwt.decode(token, await self._key_set(), registry=registry)
        options = {
            "iss": {"essential": True, "value": metadata["issuer"]},
            "aud": {"essential": True, "value": self._settings.oidc_client_id},
        }
        parameters = {"nonce": nonce, "client_id": self._settings.oidc_client_id}
        if isinstance(access_token, str):
            parameters["access_token"] = access_token
        claims = CodeIDToken(decoded.claims, decoded.header, options, parameters)
        claims.validate(leeway=LEEWAY_SECONDS)
        return dict(decoded.claims)

    async def _discover(self) -> dict[str, Any]:
        if not self.is_configured:
            raise NotFoundError("No OpenID provider is configured (HUGEPLAN_OIDC_ISSUER).")
        if self._metadata is None or self._until < time.monotonic():
            issuer = str(self._settings.oidc_issuer).rstrip("/")
            found = await self._request("GET", f"{issuer}/.well-known/openid-configuration")
            if str(found.get("issuer", "")).rstrip("/") != issuer:
                raise UnavailableError("The OpenID provider names another issuer than HUGEPLAN_OIDC_ISSUER.")
            # Before it is kept: one bad answer would else be used for an hour.
            if not all(isinstance(found.get(name), str) for name in _ADDRESSES):
                raise UnavailableError(f"The OpenID provider's metadata lacks one of {', '.join(_ADDRESSES)}.")
            self._metadata, self._keys = found, None
            self._until = time.monotonic() + METADATA_SECONDS
        return self._metadata

    async def _key_set(self) -> KeySet:
        from joserfc.jwk import KeySet  # noqa: PLC0415 - __init__ says why

        if self._keys is None:
            metadata = await self._discover()
            found: Any = await self._request("GET", str(metadata["jwks_uri"]))
            self._keys = KeySet.import_key_set(found)
        return self._keys

    async def _request(
        self, method: str, url: str, headers: dict[str, str] | None = None, **rest: Any
    ) -> dict[str, Any]:
        import httpx  # noqa: PLC0415 - __init__ says why

        parts = urlsplit(url)
        is_near = is_here(parts.hostname or "")
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise UnavailableError("The OpenID provider has an address without TLS.")
        try:
            # A proxy of the environment leads out of the machine, never back into it.
            self._tls = self._tls or httpx.create_ssl_context()  # the system's certificates are read once
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                httpx.AsyncClient(verify=self._tls, timeout=TIMEOUT_SECONDS, trust_env=not is_near) as client,
                client.stream(method, url, headers=_AS_IT_IS | (headers or {}), **rest) as answer,
            ):
                content = bytearray()
                async for piece in answer.aiter_raw():
                    content += piece
                    if len(content) > MAX_ANSWER_BYTES:
                        break
        except (httpx.HTTPError, TimeoutError) as error:
            raise UnavailableError("The OpenID provider cannot be reached. Try again later.") from error
        if len(content) > MAX_ANSWER_BYTES or answer.status_code >= 500:
            raise UnavailableError("The OpenID provider has a fault. Try again later.")
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if answer.status_code >= 400 or not isinstance(document, dict):
            raise UnauthenticatedError(_NOT_CONFIRMED)
        return document


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def person_of(claims: dict[str, Any], settings: Settings) -> Person:
    """The person of an ID token. ForbiddenError when none of their groups has a role."""
    groups = claims.get(settings.oidc_role_claim)
    listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    named = {group for group in listed if isinstance(group, str)}
    roles = [Role(settings.oidc_role_map[group]) for group in named if group in settings.oidc_role_map]
    if not roles:
        raise ForbiddenError("You are known to the OpenID provider, but none of your groups has a role here.")
    order = list(Role)
    sub = claims.get("sub")
    if (
        not sub or not isinstance(sub, str) or printable(sub, MOST_SUBJECT) != sub
    ):  # PostgreSQL takes no NUL and no surrogate
        raise UnauthenticatedError(
            f"The OpenID provider's ID token is not valid (sub: a text of at most {MOST_SUBJECT} printable characters)."
        )
    name = next((str(claims[key]) for key in ("email", "preferred_username", "name") if claims.get(key)), sub)
    subject = f"{str(settings.oidc_issuer).rstrip('/')} {sub}"
    return Person(subject=subject, name=printable(name)[:253], role=max(roles, key=order.index))


async def row_of(session: WriteSession, person: Person) -> Token:
    """The row of a person, made at the first login; its role is that of now. ForbiddenError for a revoked one."""
    await lock_one(session, LockOfOne.TOKEN_LINE, person.subject)  # of several tabs one makes the row
    row = await repository.token_of_person(session, person.subject)
    if row is None:
        row = Token(
            id=uuid.uuid4(),
            name=person.name,
            role=person.role.value,
            # Nobody knows it: a person logs in at the provider only.
            secret_sha256=hash_secret(new_secret()),
            created_at=datetime.now(UTC),
            oidc_subject=person.subject,
        )
        await repository.add(session, row)
    elif row.revoked_at is not None:
        raise ForbiddenError("An administrator has revoked your access.")
    row.name, row.role = person.name, person.role.value
    await session.flush()
    return row
