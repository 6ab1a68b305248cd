"""Settings from flags and from the environment (HUGEPLAN_AGENT_*); a flag wins."""

from __future__ import annotations

import argparse
import os
import re
import stat
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hugeplan_agent.connection import is_loopback
from hugeplan_agent.errors import ConfigurationError
from hugeplan_agent.idle import Window, parse_window
from hugeplan_agent.ownership import SYSTEM_SPOOL_DIR
from hugeplan_agent.spool import Bounds
from hugeplan_agent.tlbbench import LIMIT_SECONDS
from hugeplan_agent.whole_files import read_file

PREFIX = "HUGEPLAN_AGENT_"
SYSTEM_SETTINGS = Path("/etc/hugeplan/agent.env")
"""What the packages' units read; the commands that an administrator types read it too."""
SYSTEM_ENROLMENT_TOKEN = Path("/etc/hugeplan/enrolment-token")
INJECTED = re.compile(r"\w+_(SERVICE_(HOST|PORT\w*)|PORT_\d+_(TCP|UDP|SCTP)\w*)=.*|\w+=(tcp|udp|sctp)://.*")
"""What Kubernetes tells each container of a Service that is called hugeplan, or hugeplan-agent."""
MOST_SHOWN = 80
PROFILES = ("none", "quick", "full")
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
SIZE = re.compile(r"(\d{1,18})\s*(B|KiB|MiB|GiB)?")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, None: 1}
BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, None: 1}


def parse_duration(text: str) -> float:
    """``90``, ``90s``, ``5m``, ``1.5h`` or ``7d`` in seconds. Raises ValueError."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("a duration such as 90s, 5m, 12h or 7d")
    return float(match[1]) * SECONDS[match[2]]


def parse_size(text: str) -> int:
    """``1048576``, ``64MiB`` or ``1GiB`` in bytes. Raises ValueError."""
    match = SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("a size such as 64MiB or 1GiB")
    return int(match[1]) * BYTES[match[2]]


def _between(low: float, high: float, what: str) -> Callable[[float], None]:
    def check(value: float) -> None:
        if not low <= value <= high:
            raise ValueError(what)

    return check


@dataclass(frozen=True)
class Option:
    """One setting: its flag, its default in text form, its help, how to read it and when to refuse it."""

    name: str
    default: str | None
    help: str
    metavar: str = "TEXT"
    parse: Callable[[str], object] = str
    check: Callable[[float], None] | None = None
    choices: tuple[str, ...] | None = None
    is_switch: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def default_spool_dir() -> str:
    """The system's place for a root service, the user's state folder for anybody else."""
    if os.geteuid() == 0:
        return SYSTEM_SPOOL_DIR
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return f"{home}/hugeplan-agent"


SEND_OPTIONS = (
    Option("server", None, "address of the hugeplan server, such as https://hugeplan.example", "URL"),
    Option(
        "token_file", None, "file with this node's agent token, readable by its owner only; default: token, in the"
        " spool folder", "FILE",
    ),
    Option(
        "enrolment_token_file", None, "file with an enrolment token, used while there is no good agent token;"
        f" default: {SYSTEM_ENROLMENT_TOKEN} where it exists", "FILE",
    ),
    Option(
        "allow_plain_http", None, "send to another machine without TLS: token and reports can be read on the way",
        is_switch=True,
    ),
    Option("ca_file", None, "certificates to trust in place of the system's", "FILE"),
    Option(
        "timeout", "10s", "longest wait for one answer", "TIME", parse_duration, _between(0.1, 600, "0.1s to 10m")
    ),
)  # fmt: skip
SPOOL_OPTIONS = (
    Option("spool_dir", None, "folder of the waiting reports; default: the system's or user's state", "DIR"),
    Option(
        "spool_max_size", "64MiB", "most that may wait", "SIZE", parse_size,
        _between(64 * 1024, 1024**4, "64KiB to 1024GiB"),
    ),
    Option(
        "spool_max_age", "7d", "longest that a report may wait", "TIME", parse_duration,
        _between(60, 366 * 86400, "1m to 366d"),
    ),
)  # fmt: skip
NODE_OPTIONS = (
    Option("root", "/", "read /proc, /sys and /etc below this folder", "DIR"),
    Option("node_name", None, "name of this node (default: its host name)"),
    Option("tlbbench", None, "path of the benchmark (default: the one on PATH)", "FILE"),
    Option("measure", "none", "benchmark profile", choices=PROFILES),
    Option(
        "measure_limit", None, "end the benchmark after this time and send what it has", "TIME", parse_duration,
        _between(1, 7200, "1s to 2h"),
    ),
)  # fmt: skip
RUN_OPTIONS = (
    Option("interval", "60s", "time between samples", "TIME", parse_duration, _between(1, 86400, "1s to 1d")),
    Option("measure_busy", None, "run the benchmark although the node is busy", is_switch=True),
    Option(
        "measure_window", None, "time of day for the benchmark, local time, such as 02:00-05:00", "TIMES", parse_window,
    ),
    Option(
        "measure_every", "30d", "measure again after this time, and after a boot", "TIME", parse_duration,
        _between(60, 3660 * 86400, "1m to 3660d"),
    ),
    Option(
        "count_walks_every", "1h", "count page walks of each database for two seconds after this time; 0s: never",
        "TIME", parse_duration, _between(0, 366 * 86400, "0s to 366d"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """Everything a command needs to know; a command without a setting sees its default."""

    server: str | None
    token_file: Path
    enrolment_token_file: Path
    enrolment_token: str | None
    ca_file: str | None
    timeout_seconds: float
    spool_dir: Path
    bounds: Bounds
    root: Path
    node_name: str | None
    tlbbench: str | None
    measure: str
    measure_limit_seconds: float
    interval_seconds: float
    measure_every_seconds: float
    count_walks_every_seconds: float
    measure_window: Window | None
    measure_busy: bool


def add_options(parser: argparse.ArgumentParser, options: tuple[Option, ...]) -> None:
    """Give a command its flags; each help text names the variable and the default."""
    for option in options:
        default = f"; default {option.default}" if option.default else ""
        if option.is_switch:
            parser.add_argument(
                option.flag, dest=option.name, action="store_const", const="yes",
                help=f"{option.help} [{option.variable}=yes]",
            )  # fmt: skip
            continue
        parser.add_argument(
            option.flag,
            dest=option.name,
            metavar=None if option.choices else option.metavar,
            choices=option.choices,
            help=f"{option.help} [{option.variable}{default}]",
        )


def resolve(given: Mapping[str, object], environment: Mapping[str, str]) -> Config:
    """Flags, then variables, then defaults, each checked. Raises ConfigurationError that names the setting."""
    values = {
        option.name: _value(option, given.get(option.name), environment)
        for option in (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS, *RUN_OPTIONS)
    }

    def text(name: str) -> str | None:
        value = values[name]
        return None if value is None else str(value)

    def number(name: str) -> float:
        value = values[name]
        assert isinstance(value, (int, float))
        return value

    measure = str(values["measure"])

    def path(name: str) -> Path | None:
        value = text(name)
        return Path(value) if value else None

    spool_dir = Path(text("spool_dir") or default_spool_dir())
    return Config(
        server=check_server(text("server"), allow_plain_http=bool(values["allow_plain_http"])),
        token_file=path("token_file") or spool_dir / "token",
        enrolment_token_file=path("enrolment_token_file") or SYSTEM_ENROLMENT_TOKEN,
        # A variable only: flags are readable by every user of the machine.
        enrolment_token=environment.get(f"{PREFIX}ENROLMENT_TOKEN") or None,
        ca_file=text("ca_file"),
        timeout_seconds=number("timeout"),
        spool_dir=spool_dir,
        bounds=Bounds(int(number("spool_max_size")), number("spool_max_age")),
        root=Path(text("root") or "/"),
        node_name=text("node_name"),
        tlbbench=text("tlbbench"),
        measure=measure,
        measure_limit_seconds=(
            LIMIT_SECONDS.get(measure, 0.0) if values["measure_limit"] is None else number("measure_limit")
        ),
        interval_seconds=number("interval"),
        measure_every_seconds=number("measure_every"),
        count_walks_every_seconds=number("count_walks_every"),
        measure_busy=bool(values["measure_busy"]),
        measure_window=window if isinstance(window := values["measure_window"], Window) else None,
    )


def with_system_settings(environment: Mapping[str, str], file: Path = SYSTEM_SETTINGS) -> dict[str, str]:
    """The environment over the settings of the packages' units, so that a command sees what the service sees.

    Raises ConfigurationError for a file that is no text: systemd would leave its lines out.
    """
    found = _assignments(file)
    return {**{name: value for name, value in found.items() if name.startswith(PREFIX)}, **environment}


def unknown_variables(environment: Mapping[str, str], file: Path = SYSTEM_SETTINGS) -> Iterator[str]:
    """A sentence for each variable that is called like a setting of the agent and is none, with the nearest one.

    What Kubernetes tells each container about a Service called hugeplan or hugeplan-agent is no misspelt setting.
    Raises ConfigurationError for a file that is no text.
    """
    options = (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS, *RUN_OPTIONS)
    known = [*(option.variable for option in options), f"{PREFIX}ENROLMENT_TOKEN"]
    in_file = _assignments(file)
    for name, value in sorted({**in_file, **environment}.items()):
        upper = name.upper()
        if name in known or not ("HUGEPLAN" in upper or "_AGENT_" in upper):
            continue
        if INJECTED.fullmatch(f"{upper}={value}"):
            continue
        import difflib  # noqa: PLC0415 - where every name is known, the daemon does without

        is_ours = upper.startswith(PREFIX) or (name in in_file and upper.startswith("HUGEPLAN"))
        cut = len(PREFIX) if upper.startswith(PREFIX) else 0
        near = difflib.get_close_matches(upper[cut:], [k[cut:] for k in known], n=1, cutoff=0.6 if is_ours else 0.8)
        if is_ours or near:
            meant = f"Is {upper[:cut]}{near[0]} meant?" if near else "hugeplan-agent run --help names all."
            yield f"{_shown(name)} is no setting of the agent, and nothing reads it. {meant}"


def _assignments(file: Path) -> dict[str, str]:
    """The lines NAME=VALUE of a file for systemd; empty where it cannot be read. Raises ConfigurationError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{file} is not UTF-8 text (byte {error.start}); expected lines such as HUGEPLAN_AGENT_SERVER=https://..."
        ) from error
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            text = value.strip()
            is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
            found[name.strip()] = text[1:-1] if is_quoted else text
    return found


def _shown(value: object) -> str:
    """A value in an error: enough to know it by."""
    text = ascii(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... ({len(text)} characters)"


def _value(option: Option, given: object, environment: Mapping[str, str]) -> object:
    raw, origin = given, option.flag
    if option.is_switch:
        return _switch(option, raw if raw is not None else environment.get(option.variable))
    if raw is None:
        raw, origin = environment.get(option.variable) or None, option.variable
    if raw is None:
        raw = option.default
    if raw is None:
        return None
    try:
        value = option.parse(str(raw))
        if option.check is not None and isinstance(value, (int, float)):
            option.check(value)
    except ValueError as error:
        raise ConfigurationError(f"{origin}: {_shown(raw)} is not valid; expected {error}") from None
    if option.choices and value not in option.choices:
        raise ConfigurationError(f"{origin}: {_shown(raw)} is not valid; expected one of {', '.join(option.choices)}")
    return value


def _switch(option: Option, word: object) -> bool:
    """Raises ConfigurationError for a word that is neither yes nor no."""
    text = str(word or "no").strip().lower()
    if text in ("yes", "true", "1", "on"):
        return True
    if text in ("no", "false", "0", "off"):
        return False
    raise ConfigurationError(f"{option.variable}: {_shown(word)} is not valid; expected yes or no")


def check_server(server: str | None, *, allow_plain_http: bool = False) -> str | None:
    """The server's address without a final slash.

    Raises ConfigurationError unless it is https with a host, or http to this machine or as ``allow_plain_http`` says.
    """
    if server is None:
        return None
    try:
        parts = urllib.parse.urlsplit(server)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigurationError(f"--server: {_shown(server)} is not valid; expected http://HOST:PORT or https://HOST")
    if parts.scheme == "http" and not (allow_plain_http or is_loopback(server)):
        raise ConfigurationError(
            f"--server: {_shown(server)} would send the token and the reports unencrypted; use https, or"
            " --allow-plain-http"
        )
    return server.rstrip("/")


def _remedy(path: Path, flag: str, error: Exception) -> str:
    """The command that helps, where there is one."""
    if isinstance(error, FileNotFoundError) and flag == "--token-file":
        return "; enrol this node: hugeplan-agent enrol --enrolment-token-file FILE"
    if isinstance(error, PermissionError) and not os.access(path.parent, os.X_OK):
        return f"; nothing in {path.parent} can be seen by this user: put the file elsewhere, such as /etc/hugeplan"
    if isinstance(error, PermissionError) and os.geteuid() == 0:
        return "; the user who can lead root elsewhere there may not read it: put it into root's folder /etc/hugeplan"
    if isinstance(error, PermissionError):
        return f"; let its group read it: chgrp hugeplan-agent {path} && chmod 640 {path}"
    return ""


def read_token(path: Path, flag: str = "--token-file") -> str:
    """The token in a file that only its owner (and perhaps a group) may read. Raises ConfigurationError."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        token = read_file(path, follow=True).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise ConfigurationError(f"{flag}: {path} cannot be read: {reason}{_remedy(path, flag, error)}") from error
    if mode & 0o037:
        raise ConfigurationError(f"{flag}: {path} has mode {mode:04o}, so others can use the token; chmod 600 it")
    if not token or len(token.split()) != 1:
        raise ConfigurationError(f"{flag}: {path} holds no token; expected one word")
    return token
