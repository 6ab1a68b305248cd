"""What works here, what does not, and what would help: one line per check, for a person at the terminal."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass

from hugeplan_agent import __version__, health, tlbbench
from hugeplan_agent.apart import Apart
from hugeplan_agent.config import Config, read_token, unknown_variables
from hugeplan_agent.enrolment import ENROL, has_enrolment_token
from hugeplan_agent.errors import AgentError, ConfigurationError, MeasureError
from hugeplan_agent.host import Host
from hugeplan_agent.idle import why_busy
from hugeplan_agent.ownership import service_user
from hugeplan_agent.privileges import UNIT, rights_of_the_unit
from hugeplan_agent.sender import Outcome, Sender
from hugeplan_agent.service import MAX_CLOCK_OFFSET_SECONDS
from hugeplan_agent.spool import Spool
from hugeplan_agent.walk_counters import WalkCounters

OK, NOTE, WRONG = "ok", "note", "wrong"
MIN_FREE_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class Check:
    """One line: what was checked, how it is, and in words why or what would help."""

    state: str
    subject: str
    words: str


def checks(config: Config) -> Iterator[Check]:
    """All checks, one after the other. Nothing is changed, but for one empty request to the server."""
    yield Check(OK, "agent", f"{__version__} on Python {platform.python_version()}, {platform.machine()}")
    yield from _user()
    yield from (Check(NOTE, "settings", text) for text in unknown_variables(os.environ))
    yield from _collectors(config)
    yield from _spool(config)
    yield from _server(config)
    yield from _benchmark(config)
    yield _page_walks(config)


def _user() -> Iterator[Check]:
    """Who is judged: what this user may do is what the rest of the checks see."""
    rights = rights_of_the_unit()
    user = service_user() if rights is None else rights.user
    if user is None:
        return
    if user.pw_uid == os.geteuid():
        as_the_unit_has_it = "" if rights is None else f": {UNIT} gives {rights.words}"
        yield Check(OK, "user", f"checked as {user.pw_name}, which the service runs as{as_the_unit_has_it}")
    else:
        yield Check(
            NOTE, "user", f"checked as user {os.geteuid()}, and the service runs as {user.pw_name}: ask as root, with"
            " the service's own folder, and the checks are that user's",
        )  # fmt: skip


def _collectors(config: Config) -> Iterator[Check]:
    with Apart(config.root) as apart:
        results = apart.collect(Host(config.root)).results
    for result in results:
        words = result["reason"] or f"{1000 * result['duration_seconds']:.1f} ms"
        if result["status"] == "failed":
            yield Check(WRONG, result["name"], words)
        else:
            quiet = result["status"] == "ok" and result["reason"] is None
            yield Check(OK if quiet else NOTE, result["name"], words)
    if os.geteuid() != 0 and not _may_look_into_others():
        yield Check(
            NOTE,
            "permission",
            "other users' processes cannot be read: settings and mappings of databases stay unknown;"
            " root or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH would help",
        )


def _may_look_into_others() -> bool:
    try:
        os.readlink("/proc/1/exe")  # noqa: PTH115 - only whether it may be read
    except OSError:
        return False
    return True


def _spool(config: Config) -> Iterator[Check]:
    if not config.spool_dir.exists():
        yield Check(NOTE, "spool", f"{config.spool_dir} does not exist yet; the first report makes it")
        return
    try:
        spool = Spool(config.spool_dir, config.bounds)
    except AgentError as error:
        yield Check(WRONG, "spool", str(error))
        return
    counts = spool.summary()
    free_bytes = shutil.disk_usage(config.spool_dir).free
    dropped = sum(count for name, count in counts.items() if name.startswith("dropped_"))
    words = f"{config.spool_dir}: {counts['pending']} wait, {counts['rejected']} refused, {dropped} given up"
    yield Check(NOTE if dropped or counts["rejected"] else OK, "spool", words)
    if free_bytes < MIN_FREE_BYTES:
        yield Check(NOTE, "disk", f"{free_bytes >> 20} MiB are free beside the spool")


def _server(config: Config) -> Iterator[Check]:
    if config.server is None:
        yield Check(NOTE, "server", "--server is not given: nothing can be sent")
        return
    has_token = config.token_file.exists()
    if config.enrolment_token is None and has_enrolment_token(config):
        try:
            read_token(config.enrolment_token_file, "--enrolment-token-file")
        except ConfigurationError as error:
            yield Check(NOTE if has_token else WRONG, "enrolment token", str(error))
            if not has_token:
                return
    if not has_token:
        if has_enrolment_token(config):
            yield Check(NOTE, "token", "there is no agent token yet; the enrolment token will be exchanged for one")
        else:
            yield Check(WRONG, "token", f"there is none: {ENROL}")
        return
    try:
        sender = Sender(config.server, read_token(config.token_file), config.timeout_seconds, config.ca_file)
    except (ConfigurationError, OSError) as error:
        yield Check(WRONG, "token", str(error))
        return
    # An empty report is refused as invalid by a server that knows the token, and changes nothing.
    with sender:
        answer = sender.post("/api/v1/reports", b"{}")
    if answer.outcome is Outcome.REJECTED:
        yield Check(OK, "server", f"{config.server} answers and takes this token")
    elif answer.outcome is Outcome.FORBIDDEN:
        yield Check(WRONG, "token", f"the server refuses it ({answer.detail}). Run: {ENROL}")
    else:
        yield Check(WRONG, "server", answer.detail)
    offset = sender.clock_offset_seconds
    if offset is not None and abs(offset) > MAX_CLOCK_OFFSET_SECONDS:
        yield Check(WRONG, "clock", f"{abs(offset):.0f} s away from the server's")


def _benchmark(config: Config) -> Iterator[Check]:
    try:
        yield Check(OK, "tlbbench", tlbbench.find(config.tlbbench))
    except MeasureError as error:
        yield Check(NOTE if config.measure == "none" else WRONG, "tlbbench", str(error))
    reason = why_busy(Host(config.root), time.sleep)
    yield Check(OK if reason is None else NOTE, "idle", reason or "idle enough to be measured")


def _page_walks(config: Config) -> Check:
    """What the running agent found, if one runs: it may have a capability that this command has not."""
    if config.count_walks_every_seconds == 0:
        return Check(NOTE, "page walks", "not counted: --count-walks-every is 0s")
    told = health.read(str(config.spool_dir)) or {}
    # Where it is unknown whether that agent still runs, this command says what it may do itself.
    is_of_a_running_one = told.get("is_running") is True and health.live(told, health.now())[0]
    found = told.get("counting") if is_of_a_running_one else None
    who = "the running agent"
    if not isinstance(found, dict):
        found = WalkCounters(config.tlbbench, 0, lambda: False, Host(config.root)).trial()
        who = "this user"
    if found.get("status") in ("ok", "stopped"):
        return Check(OK, "page walks", f"{who} may count them, by the events of {found.get('event_set')}")
    off = "; off unless you turn it on: docs/agent.md" if found.get("status") == "not_permitted" else ""
    return Check(NOTE, "page walks", f"{who} cannot count them: {found.get('reason')}{off}")
