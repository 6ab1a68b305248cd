"""How a node comes to its own token: an enrolment token is exchanged for it once."""

from __future__ import annotations

import http
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from hugeplan_agent import machine
from hugeplan_agent.collectors import clone_hints
from hugeplan_agent.config import Config, read_token
from hugeplan_agent.errors import AgentError, ConfigurationError, NoData
from hugeplan_agent.host import Host
from hugeplan_agent.sender import Answer, Outcome, Sender
from hugeplan_agent.spool import Spool

ENROLMENTS = "/api/v1/enrolments"
UNPROCESSABLE = http.HTTPStatus.UNPROCESSABLE_ENTITY


class EnrolmentError(AgentError):
    """The server gave no token; ``answer`` says why and when to ask again."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the server gave no agent token ({answer.detail})")
        self.answer = answer


def check_server_and_token(config: Config) -> tuple[str, Path]:
    """The server and the token file. Raises ConfigurationError when one is not given."""
    if config.server is None:
        raise ConfigurationError("--server is missing: give the address of the hugeplan server")
    if config.token_file is None:
        raise ConfigurationError("--token-file is missing: give the file that holds this node's agent token")
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
    body = {
        "machine_id": machine.machine_id(host, config.spool_dir),
        "node_name": machine.node_name(host, config.node_name),
    }
    with _sender(config, server, enrolment_token) as sender:
        answer = sender.post(ENROLMENTS, json.dumps({**body, **_proof(config, host)}).encode())
        if answer.status == UNPROCESSABLE:
            # A server from before these fields refuses what it does not know.
            answer = sender.post(ENROLMENTS, json.dumps(body).encode())
    token = answer.document.get("token")
    if answer.outcome is not Outcome.DELIVERED or not isinstance(token, str):
        raise EnrolmentError(answer)
    write_token(token_file, token)


def _proof(config: Config, host: Host) -> dict[str, Any]:
    """What tells this machine from a clone with its id, and the token that it has so far. Unknown parts are absent."""
    found: dict[str, Any] = {"boot_id": (machine.boot_id(host) or "").strip() or None}
    with suppress(NoData, OSError):
        found["clone_hints"] = clone_hints.collect(host).inventory["clone_hints"]
    if config.token_file is not None and config.token_file.exists():
        with suppress(ConfigurationError):
            found["current_token"] = read_token(config.token_file)
    return {name: value for name, value in found.items() if value is not None}


def _enrolment_token(config: Config) -> str:
    if config.enrolment_token_file is not None:
        return read_token(config.enrolment_token_file, "--enrolment-token-file")
    if config.enrolment_token is not None:
        return config.enrolment_token
    raise ConfigurationError(
        "--enrolment-token-file is missing: give the file that holds the enrolment token,"
        " or the token in HUGEPLAN_AGENT_ENROLMENT_TOKEN"
    )


def can_enrol(config: Config) -> bool:
    """Whether an enrolment token was given and there is no agent token yet."""
    has_enrolment = config.enrolment_token_file is not None or config.enrolment_token is not None
    return has_enrolment and config.token_file is not None and not config.token_file.exists()


def _sender(config: Config, server: str, token: str) -> Sender:
    try:
        return Sender(server, token, config.timeout_seconds, config.ca_file)
    except OSError as error:
        raise ConfigurationError(f"--ca-file: {config.ca_file} cannot be used: {error}") from error


def write_token(path: Path, token: str) -> None:
    """Write the token so that nobody else can read it at any moment. Raises AgentError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise AgentError(f"{path} cannot be written: {error.strerror}") from error
