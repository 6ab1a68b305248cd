"""How a node comes to its own token: an enrolment token is exchanged for it.

A claim, made up and kept before the first question, lets the node ask again when the answer is lost (ADR 0029).
"""

from __future__ import annotations

import http
import json
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from hugeplan_agent import machine
from hugeplan_agent.collectors import clone_hints, cpu, meminfo
from hugeplan_agent.config import SYSTEM_ENROLMENT_TOKEN, Config, read_token
from hugeplan_agent.errors import AgentError, ConfigurationError, NoData
from hugeplan_agent.host import Host
from hugeplan_agent.ownership import as_owner_of
from hugeplan_agent.sender import Answer, Outcome, Sender
from hugeplan_agent.spool import Spool
from hugeplan_agent.whole_files import read_file, remove_leftovers, replace_file

ENROLMENTS = "/api/v1/enrolments"
UNPROCESSABLE = http.HTTPStatus.UNPROCESSABLE_ENTITY
CLAIM = "enrolment-claim"
ENROL = "hugeplan-agent enrol --enrolment-token-file FILE"
"""What mends a token that is missing or refused."""
TOKEN = re.compile(r"[!-~]{1,512}")
SINCE_CLAIMS = ("claim", "cpu_brand", "mem_total_bytes")
SINCE_PROOFS = ("boot_id", "clone_hints", "current_token")


class EnrolmentError(AgentError):
    """The server gave no token; ``answer`` says why and when to ask again."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the server gave no agent token ({answer.detail})")
        self.answer = answer


def check_server_and_token(config: Config) -> tuple[str, Path]:
    """The server and the token file. Raises ConfigurationError when one is not given."""
    if config.server is None:
        raise ConfigurationError(
            "--server is missing: give the address of the hugeplan server, for the service as"
            " HUGEPLAN_AGENT_SERVER in /etc/hugeplan/agent.env, then: systemctl restart hugeplan-agent"
        )
    return config.server, config.token_file


def make_sender(config: Config) -> Sender:
    """A sender with this node's token. Raises ConfigurationError when a part is missing or unusable."""
    server, token_file = check_server_and_token(config)
    return _sender(config, server, read_token(token_file))


def current_token(config: Config) -> str:
    """The token in the token file as it is now. Raises ConfigurationError."""
    return read_token(check_server_and_token(config)[1])


def enrol(config: Config) -> None:
    """Exchange the enrolment token and keep the agent token in the token file, mode 0600.

    Raises EnrolmentError with the server's answer, AgentError when the token cannot be kept.
    """
    server, token_file = check_server_and_token(config)
    enrolment_token = _enrolment_token(config)
    Spool(config.spool_dir, config.bounds)  # an id made here must be the one that reports carry
    host = Host(config.root)
    body: dict[str, Any] = {
        "machine_id": machine.machine_id(host, config.spool_dir),
        "node_name": machine.node_name(host, config.node_name),
        "claim": _claim(config.spool_dir / CLAIM),
        **_proof(config, host),
    }
    with _sender(config, server, enrolment_token) as sender:
        answer = sender.post(ENROLMENTS, json.dumps(body).encode())
        for newer in (SINCE_CLAIMS, SINCE_PROOFS):
            if answer.status == UNPROCESSABLE:
                # A server from before these fields refuses what it does not know.
                body = {name: value for name, value in body.items() if name not in newer}
                answer = sender.post(ENROLMENTS, json.dumps(body).encode())
    token = answer.document.get("token")
    if answer.outcome is not Outcome.DELIVERED or not isinstance(token, str):
        raise EnrolmentError(answer)
    if TOKEN.fullmatch(token) is None:
        raise EnrolmentError(Answer(Outcome.UNAVAILABLE, "what it sent is not one word of at most 512 characters"))
    write_token(token_file, token)


def _claim(path: Path) -> str:
    """What tells this asker from any other: made once, and on the disk before the server hears of it."""
    with suppress(OSError, UnicodeDecodeError):
        kept = read_file(path).decode("ascii").strip()
        if kept:
            return kept
    made = secrets.token_urlsafe(32)
    write_token(path, made)
    return made


def _proof(config: Config, host: Host) -> dict[str, Any]:
    """What tells this machine from a clone with its id, and the token that it has so far. Unknown parts are absent."""
    found: dict[str, Any] = {"boot_id": (machine.boot_id(host) or "").strip() or None}
    with suppress(NoData, OSError):
        found["clone_hints"] = clone_hints.collect(host).inventory["clone_hints"]
    with suppress(NoData, OSError, KeyError, TypeError):
        found["cpu_brand"] = cpu.collect(host).inventory["cpu"]["brand"]
    with suppress(NoData, OSError, KeyError, TypeError):
        found["mem_total_bytes"] = meminfo.collect(host).sample["memory"]["mem_total_bytes"]
    if config.token_file.exists():
        with suppress(ConfigurationError):
            found["current_token"] = read_token(config.token_file)
    return {name: value for name, value in found.items() if value is not None}


def _enrolment_token(config: Config) -> str:
    if config.enrolment_token is not None:
        if TOKEN.fullmatch(config.enrolment_token) is None:
            raise ConfigurationError(
                "HUGEPLAN_AGENT_ENROLMENT_TOKEN: expected one word of at most 512 ASCII characters"
            )
        return config.enrolment_token
    if config.enrolment_token_file != SYSTEM_ENROLMENT_TOKEN or config.enrolment_token_file.exists():
        return read_token(config.enrolment_token_file, "--enrolment-token-file")
    raise ConfigurationError(
        "--enrolment-token-file is missing: give the file that holds the enrolment token,"
        " or the token in HUGEPLAN_AGENT_ENROLMENT_TOKEN"
    )


def has_enrolment_token(config: Config) -> bool:
    """Whether this node may ask for a token."""
    return config.enrolment_token is not None or config.enrolment_token_file.exists()


def must_enrol(config: Config, refused_token: str | None) -> bool:
    """Whether to ask for a token: one can be asked for, and there is none, or it is the one that the server refused."""
    if not has_enrolment_token(config):
        return False
    if not _holds_anything(config.token_file):
        return True
    return refused_token is not None and refused_token == read_token(config.token_file)


def _holds_anything(path: Path) -> bool:
    """Whether a file is there with anything but space in it: what a crash of the machine emptied is no token."""
    try:
        return bool(read_file(path, follow=True).strip())
    except FileNotFoundError:
        return False
    except OSError:
        return True  # whoever reads it says why


def _sender(config: Config, server: str, token: str) -> Sender:
    try:
        return Sender(server, token, config.timeout_seconds, config.ca_file)
    except OSError as error:
        raise ConfigurationError(f"--ca-file: {config.ca_file} cannot be used: {error}") from error


def write_token(path: Path, token: str) -> None:
    """Write the token so that nobody else can read it at any moment. Raises AgentError."""
    try:
        with as_owner_of(path.parent, make=0o700):
            pass
        remove_leftovers(path.parent, of=path.name)
        replace_file(path, f"{token}\n".encode("ascii"))
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror}") from error
