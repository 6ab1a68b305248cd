"""Typed settings, read once at start from the environment (prefix ``HUGEPLAN_``).

docs/settings.md is generated from this class; a test fails when it is stale.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, PrivateAttr, SecretStr, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SecretsSettingsSource, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hugeplan.planner.host_names import is_loopback

ENV_PREFIX = "HUGEPLAN_"
SECRETS_DIR_VARIABLE = ENV_PREFIX + "SECRETS_DIR"


def _is_of_libpq(url: str) -> bool:
    """Whether libpq reads a URL as one: else its error repeats a part of it, which may be of the password.

    A password with ``@``, ``/`` or ``%`` that is not percent-encoded puts its end into the host or the port.
    """
    try:
        found = conninfo_to_dict(url.replace("postgresql+psycopg://", "postgresql://", 1))
    except ProgrammingError:
        return False
    hosts, ports = str(found.get("host", "")).split(","), str(found.get("port", "")).split(",")
    # A leading @ is an abstract socket.
    return all("@" not in host[1:] for host in hosts) and all(not port or port.isdecimal() for port in ports)


Count = Annotated[int, Field(ge=1, le=10**6)]
Days = Annotated[int, Field(ge=1, le=3660)]


class Settings(BaseSettings):
    """Every setting of the service. Times, sizes and counts carry their unit in the name."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True)

    _url_in_file: tuple[Path, str | None] = PrivateAttr((Path(os.devnull), None))

    database_url: Annotated[
        SecretStr,
        Field(description="PostgreSQL to use, as `postgresql://user:password@host/database`. `hugeplan demo` sets it."),
    ] = SecretStr("postgresql:///hugeplan")
    database_pool_size: Annotated[int, Field(ge=1, le=200, description="Connections kept open by each process.")] = 8
    database_pool_overflow: Annotated[
        int, Field(ge=0, le=200, description="Connections opened above the pool when all are busy.")
    ] = 8
    database_timeout_seconds: Annotated[
        float,
        Field(
            ge=0.1,
            le=300,
            description="How long a request waits for a connection, and a report for PostgreSQL, before 503.",
        ),
    ] = 5.0
    statement_timeout_seconds: Annotated[
        float,
        Field(
            ge=0.1,
            le=3600,
            description="PostgreSQL ends a statement that runs longer than this; a second later the service does.",
        ),
    ] = 15.0

    host: Annotated[str, Field(min_length=1, max_length=253, description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535, description="TCP port to listen on.")] = 8000
    state_dir: Annotated[
        Path, Field(description="Folder of the embedded PostgreSQL and the token files of `hugeplan demo`.")
    ] = Path(".state")
    ui_dir: Annotated[
        Path | None,
        Field(
            description="Folder of the built web interface; by default the wheel's, or `frontend/dist` of a checkout."
        ),
    ] = None
    migrations_dir: Annotated[
        Path | None, Field(description="Folder of the Alembic migrations; by default the wheel's or the checkout's.")
    ] = None

    max_body_bytes: Annotated[
        int, Field(ge=1024, le=256 * 1024**2, description="Largest request body; a larger one is answered 413.")
    ] = 8 * 1024**2
    body_timeout_seconds: Annotated[
        float, Field(ge=0.1, le=600, description="How long a request body may take, before what its size buys it.")
    ] = 10.0
    min_body_bytes_per_second: Annotated[
        int, Field(ge=1, le=10**9, description="Slowest rate of a body: so many bytes buy one second more.")
    ] = 16 * 1024
    header_timeout_seconds: Annotated[
        float, Field(ge=0.1, le=600, description="How long a connection may take to send the head of a request.")
    ] = 10.0
    write_timeout_seconds: Annotated[
        float,
        Field(
            ge=0.1,
            le=600,
            description="A connection ends when its client takes less than 32 KiB of a waiting answer in this time.",
        ),
    ] = 20.0
    connections_per_address: Annotated[
        Count,
        Field(description="Connections from one address on one process, closed ones until their answers are taken."),
    ] = 512
    max_json_depth: Annotated[int, Field(ge=4, le=200, description="Deepest nesting of a JSON body.")] = 32
    max_json_items: Annotated[
        int, Field(ge=100, le=10**7, description="Most elements of one JSON array or members of one object.")
    ] = 100_000
    max_json_values: Annotated[
        int, Field(ge=1000, le=10**7, description="Most commas and opening brackets of a JSON body.")
    ] = 150_000
    max_json_string_characters: Annotated[
        int, Field(ge=1024, le=10**8, description="Longest string in a JSON body.")
    ] = 1_000_000
    report_reader_process: Annotated[
        bool,
        Field(
            description="Read reports with runs in a process of its own (about 70 MiB) while many come, on a second"
            " core."
        ),
    ] = True

    trusted_proxies: Annotated[
        tuple[IPv4Network | IPv6Network, ...],
        Field(
            description='Networks of the proxies before the service, as JSON: `["10.0.0.0/8"]`. A request from one has'
            " the client's address in a header, which limits and the audit log then take. Empty: it is the peer."
        ),
    ] = ()
    trusted_proxy_header: Annotated[
        Literal["x-forwarded-for", "forwarded"],
        Field(description="The header that those proxies write: `x-forwarded-for`, or `forwarded` (RFC 7239)."),
    ] = "x-forwarded-for"
    requests_per_minute: Annotated[
        Count, Field(description="Requests per minute that one credential may make on one process.")
    ] = 1200
    report_bytes_per_day: Annotated[
        int,
        Field(
            ge=1024**2,
            le=10**13,
            description="Bytes of reports, compressed, that an agent token may have kept per day on one process;"
            " the rest waits in the agent's spool. A report each minute with a run each hour is about 10 MB.",
        ),
    ] = 256 * 1024**2
    changes_per_minute: Annotated[
        Count,
        Field(
            description="Changes per minute, each with its line in the audit log, that one credential may make on one"
            " process. Reports are not counted; of enrolments HUGEPLAN_MOST_MACHINES more may come at once.",
        ),
    ] = 120
    most_machines: Annotated[
        Count,
        Field(
            description="Agent tokens in force that were made or used within 30 days; another machine that comes with"
            " an enrolment token is answered 409. Known machines and an administrator's enrolments go on."
        ),
    ] = 20_000
    max_scenarios: Annotated[
        int, Field(ge=1, le=10**7, description="Scenarios that are kept in all; another is answered 409.")
    ] = 50_000
    max_open_plans: Annotated[
        int,
        Field(
            ge=1,
            le=10**7,
            description="Drafts and proposals that one credential may have kept; another plan is answered 409 until"
            " some are deleted or approved.",
        ),
    ] = 20_000
    max_fleet_plans: Annotated[
        int,
        Field(
            ge=4,
            le=10**6,
            description="Fleet plans that are kept in all, a quarter of one credential; past it the oldest goes.",
        ),
    ] = 1_000
    max_fleet_plans_bytes: Annotated[
        int,
        Field(
            ge=10**6,
            le=10**15,
            description="Bytes of them in PostgreSQL, a quarter of one credential; past it the oldest goes.",
        ),
    ] = 8_000_000_000
    fleet_plan_cpu_seconds: Annotated[
        float,
        Field(gt=0, le=10**6, description="Processor time that a fleet plan of 10,000 nodes may take."),
    ] = 300.0
    fleet_plan_memory_bytes: Annotated[
        int, Field(ge=16 * 1024**2, le=10**12, description="Memory that each of its processes may add.")
    ] = 512 * 1024**2
    max_trials_per_node: Annotated[
        Count, Field(description="Trials that are kept of one node; past it the oldest go, its agent's own last.")
    ] = 500
    max_runs_per_node: Annotated[
        int,
        Field(
            ge=1000,
            le=10**7,
            description="Runs that are kept of one node; past it the oldest go but those that its facts come from.",
        ),
    ] = 20_000
    logins_per_minute: Annotated[
        int,
        Field(
            ge=1,
            le=10**4,
            description="Failed credentials per minute from one address on one process; and a third of the logins that"
            " one token may make.",
        ),
    ] = 20
    refusals_per_minute: Annotated[
        Count,
        Field(
            description="Errors per minute that one address without a valid credential, or its agents, get at once on"
            " one process."
        ),
    ] = 300
    refusal_delay_seconds: Annotated[
        float, Field(ge=0, le=60, description="How long an error waits past them, give or take a half.")
    ] = 2.0
    session_hours: Annotated[int, Field(ge=1, le=24 * 366, description="How long a browser login lasts.")] = 24 * 14
    cookie_secure: Annotated[
        bool | None,
        Field(
            description="Mark the session cookie Secure, so that browsers send it over TLS only."
            " By default it is unless `HUGEPLAN_HOST` is a loopback address and `HUGEPLAN_PUBLIC_URL` no https."
        ),
    ] = None
    public_url: Annotated[
        str | None,
        Field(
            pattern=r"^https?://[^/?#]+$",
            description="Address that browsers use, such as `https://hugeplan.example`; providers send them there.",
        ),
    ] = None
    oidc_issuer: Annotated[
        str | None, Field(pattern=r"^https?://", description="Issuer of an OpenID provider whose people may log in.")
    ] = None
    oidc_client_id: Annotated[str | None, Field(description="Client id of this service at the provider.")] = None
    oidc_client_secret: Annotated[
        SecretStr | None, Field(description="Client secret of this service at the provider; none for a public client.")
    ] = None
    oidc_scopes: Annotated[str, Field(description="Scopes to ask for.")] = "openid profile email"
    oidc_role_claim: Annotated[
        str,
        Field(
            min_length=1,
            description="Claim of the ID token, or else of UserInfo, that holds a person's groups: a text or a list.",
        ),
    ] = "groups"
    oidc_role_map: Annotated[
        dict[str, Literal["viewer", "planner", "approver", "admin"]],
        Field(description="Role of each group, as JSON; of several the highest counts. Others may not log in."),
    ] = {}
    oidc_session_hours: Annotated[
        int,
        Field(
            ge=1,
            le=24 * 366,
            description="How long a login of such a person lasts at most. Whoever is removed at the provider keeps it"
            " until its end.",
        ),
    ] = 12
    approval_by_second_person: Annotated[
        bool, Field(description="A plan is approved by somebody else than who kept or proposed it.")
    ] = False
    webhook_allowed_networks: Annotated[
        tuple[IPv4Network | IPv6Network, ...],
        Field(
            description="Networks that webhooks may reach although they are loopback, link-local or a cloud's metadata,"
            ' as JSON: `["127.0.0.0/8"]`. All others but those are reached without it.'
        ),
    ] = ()
    metrics_public: Annotated[
        bool,
        Field(
            description="Answer `/metrics` without a credential to who comes directly; through a proxy it needs one."
        ),
    ] = False
    bootstrap_enrolment_token: Annotated[
        SecretStr | None,
        Field(description="An enrolment token (32 characters or more) to register at start, for unattended agents."),
    ] = None

    reenrolment_silence_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=86400,
            description="How long a machine's agent must have been silent before a replacement is recognised without"
            " its token. Two intervals of the agents at least: an agent that is heard is never replaced.",
        ),
    ] = 150.0

    sample_retention_days: Annotated[Days, Field(description="How long memory samples are kept.")] = 30
    document_retention_days: Annotated[Days, Field(description="How long raw reports are kept.")] = 30
    rollup_retention_days: Annotated[Days, Field(description="How long hourly roll-ups of samples are kept.")] = 400
    day_rollup_retention_days: Annotated[Days, Field(description="How long daily roll-ups of samples are kept.")] = 1200
    run_retention_days: Annotated[
        Days, Field(description="How long runs are kept; those that a node's facts come from stay with the node.")
    ] = 400
    event_retention_days: Annotated[Days, Field(description="How long events and finished deliveries are kept.")] = 90
    silent_node_retention_days: Annotated[
        int, Field(ge=0, le=3660, description="Days after its last report that a node is removed; 0: never.")
    ] = 0
    token_retention_days: Annotated[
        Days,
        Field(
            description="How long expired tokens are listed before they are removed. Revoked and rotated ones, and"
            " enrolment tokens, stay: they would come back, as by the restore of a backup."
        ),
    ] = 90
    retention_max_share: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            description="The share of what is kept that one round of retention may delete; of more it deletes nothing"
            " and says so. 1 trusts the clock, whatever PostgreSQL and recent reports say.",
        ),
    ] = 0.5
    event_stream_seconds: Annotated[
        float, Field(ge=0.1, le=86400, description="A stream of events ends after this time; its client comes back.")
    ] = 900.0
    seal_after_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=30 * 86400,
            description="Age from which six hours of a node's documents and samples become one row each; 0: never.",
        ),
    ] = 3600.0
    maintenance_interval_seconds: Annotated[
        float, Field(ge=1, le=86400, description="Time between two rounds of partition and retention work.")
    ] = 3600.0

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="Least severe log line that is written.")
    ] = "info"
    log_format: Annotated[Literal["json", "text"], Field(description="Form of a log line.")] = "json"

    @field_validator("port", mode="before")
    @classmethod
    def _not_of_kubernetes(cls, value: object) -> object:
        """Kubernetes tells a pod beside a Service called hugeplan where that is, in a variable of this name."""
        return cls.model_fields["port"].default if str(value).startswith("tcp://") else value

    @field_validator("database_url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        try:
            is_right = make_url(text).drivername in {"postgresql", "postgres", "postgresql+psycopg"} and _is_of_libpq(
                text
            )
        except (ArgumentError, ValueError):  # a port that is no number; its text may be the password
            is_right = False
        if not is_right:
            raise ValueError(
                "a URL such as postgresql://user:password@host/database, with @ : / # ? and % in a password written as"
                " %40 %3A %2F %23 %3F and %25"
            )
        return value

    @field_validator("bootstrap_enrolment_token")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < 32:
            raise ValueError("32 characters or more")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given, then the environment, then the files of HUGEPLAN_SECRETS_DIR: in all processes alike."""
        del dotenv_settings, file_secret_settings
        given = os.environ.get(SECRETS_DIR_VARIABLE)
        secrets_dir = given if given and Path(given).is_dir() else None  # commands refuse what is no folder
        return init_settings, env_settings, SecretsSettingsSource(settings_cls, secrets_dir=secrets_dir)

    def browser_url(self) -> str:
        """The address that browsers use, without a slash at its end."""
        return self.public_url or self.local_url()

    def local_url(self) -> str:
        """The address for programs and browsers of this machine, without a slash at its end."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - asked, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def is_cookie_secure(self) -> bool:
        """Whether the session cookie is for TLS only: as configured, else off loopback and where browsers use https."""
        if self.cookie_secure is not None:
            return self.cookie_secure
        return not is_loopback(self.host) or (self.public_url or "").startswith("https://")

    def model_post_init(self, _: object, /) -> None:
        """Remember the file that the database URL is from, if it is from one."""
        file = Path(os.environ.get(SECRETS_DIR_VARIABLE) or os.devnull) / f"{ENV_PREFIX}DATABASE_URL".lower()
        with suppress(OSError, ValueError):
            self._url_in_file = (file, file.read_text().strip())

    def _url_now(self) -> str:
        """The database URL, as its file says now where it is from one: a changed password needs no restart."""
        url = self.database_url.get_secret_value()
        file, former = self._url_in_file
        with suppress(OSError, ValueError):
            return self._is_postgresql(SecretStr(file.read_text().strip())).get_secret_value() if url == former else url
        return url

    def sqlalchemy_url(self) -> str:
        """The database URL with the psycopg driver named."""
        return re.sub("^postgres(ql)?://", "postgresql+psycopg://", self._url_now())

    def psycopg_url(self) -> str:
        """The database URL as psycopg and libpq read it."""
        return self._url_now().replace("postgresql+psycopg://", "postgresql://", 1)
