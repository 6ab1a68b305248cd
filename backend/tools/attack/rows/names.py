"""Names, credentials and receivers: what a stranger behind a report, a login form or a webhook can do."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import MACHINE_ID, Attack, Target, WrongAnswerError, expect
from tools.attack.warm import SCENARIO

NAMES = {
    "Jinja": "{{ lookup('pipe', 'id') }}",
    "a command": "$(reboot)",
    "a line separator": "x\u2028runcmd: [id]",
    "a path": "../../etc/cron.d/x",
    "terminal codes": "\u009b2J\u202e",
    "190 brackets": "[" * 190,
}
GUESSES = 60
CHANGES = 200
SLOW_SECONDS = 30.0


def _preview_of_node(name: str, running: Target) -> str:
    scenario = {**SCENARIO, "node": {**SCENARIO["node"], "name": name}}
    answer = running.ask(Role.VIEWER, "POST", "/plans/preview", json={"scenario": scenario})
    word = expect(answer, 200, 422)
    if answer.status_code == 200:
        found = answer.json()
        if (
            found["artifacts"]
            or not (found["artifacts_withheld"] or "").isprintable()
            or not found["artifacts_withheld"]
        ):
            raise WrongAnswerError("files of a node whose name is no host's")
    return word


def _preview_of_database(name: str, running: Target) -> str:
    scenario = {**SCENARIO, "databases": [{**SCENARIO["databases"][0], "name": name}]}
    answer = running.ask(Role.VIEWER, "POST", "/plans/preview", json={"scenario": scenario})
    word = expect(answer, 200, 422)
    if answer.status_code == 200:
        texts = [text for file in answer.json()["artifacts"] for text in file.values() if isinstance(text, str)]
        if not all(line.replace("\t", " ").isprintable() for text in texts for line in text.split("\n")):
            raise WrongAnswerError("a control, format or separator character in a file")
    return word


def _report(name: str, ahead: timedelta, running: Target) -> str:
    now = (datetime.now(UTC) + ahead).isoformat()
    body: dict[str, Any] = {
        "schema_version": 1, "report_id": str(uuid.uuid4()), "machine_id": MACHINE_ID, "node_name": name,
        "created_at": now, "agent_version": "0",
        "inventory": {"architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [2 << 20]},
        "sample": {"taken_at": now, "memory": {"mem_total_bytes": 1 << 36}},
    }  # fmt: skip
    return expect(running.ask(Role.AGENT, "POST", "/reports", json=body), 201, 422)


def _guesses(running: Target) -> str:
    """Wrong tokens, and then a good one from the same address."""
    statuses = set()
    with running.client(None) as client:
        for number in range(GUESSES):
            answer = client.post("/api/v1/session", json={"token": f"hp_{number:040d}"})
            statuses.add(answer.status_code)
        good = client.post("/api/v1/session", json={"token": running.tokens[Role.VIEWER]})
    if not statuses <= {401, 429}:
        raise WrongAnswerError(f"wrong tokens were answered {statuses}")
    # 429 by the limit of this token's own logins is as it should be when the row is measured often.
    return f"{sorted(statuses)}, then {expect(good, 201, 429)}"


def _changes(running: Target) -> str:
    statuses = []
    with running.client(Role.PLANNER) as client:
        begun = time.monotonic()
        for _ in range(CHANGES):
            answer = client.post("/api/v1/scenarios", json={"name": "flood", "scenario": SCENARIO})
            statuses.append(answer.status_code)
    # A machine that takes a minute for them has taken no more than so many per minute.
    is_slow = time.monotonic() - begun > SLOW_SECONDS
    if not set(statuses) <= {201, 429} or (429 not in statuses and not is_slow):
        raise WrongAnswerError(f"changes were answered {sorted(set(statuses))}")
    return f"{statuses.count(201)} of {CHANGES} taken"


def _receiver(url: str, running: Target) -> str:
    made = running.ask(Role.ADMIN, "POST", "/webhooks", json={"name": "bad", "url": url})
    word = expect(made, 201, 422, 429)
    if made.status_code == 201:
        expect(running.ask(Role.ADMIN, "DELETE", f"/webhooks/{made.json()['id']}"), 204, 429)
    return word


ROWS = (
    *(Attack(f"name of a node: {what}", partial(_preview_of_node, name)) for what, name in NAMES.items()),
    *(Attack(f"name of a database: {what}", partial(_preview_of_database, name)) for what, name in NAMES.items()),
    Attack("name in a report: terminal codes", partial(_report, "\x1b]0;x\x07\u202e", timedelta())),
    Attack("report: two days ahead", partial(_report, "db-1", timedelta(days=2))),
    Attack("login: sixty guesses and a good token", _guesses, requests=GUESSES + 1),
    Attack("changes: two hundred of one credential", _changes, requests=CHANGES),
    Attack("webhook: a URL that cannot be read", partial(_receiver, "http://[::1"), requests=2),
    Attack("webhook: a cloud's metadata", partial(_receiver, "http://169.254.169.254/"), requests=2),
)
