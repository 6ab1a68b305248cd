"""Forged tokens by the thousand: none is let in, none costs memory that stays, and agents go on."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from pathlib import Path

import httpx

from tools.chaos.rig import CLIENT, Outcome, Server, world

CLIENTS = 8
MAX_GROWTH_BYTES = 32 * 1024**2
WARM_UP = 200


def forged_tokens(folder: Path, *, tokens: int) -> Outcome:
    """Show ``tokens`` different forged tokens, from several connections."""
    with world(folder, environment={"HUGEPLAN_REFUSAL_DELAY_SECONDS": "0"}) as running:
        _show(running.server, WARM_UP)
        before = running.server.resident_bytes()
        begun = running.acknowledged()
        answers = _show(running.server, tokens)
        grown = running.server.resident_bytes() - before
        alongside = running.acknowledged() - begun
        text, wrong = running.judge()
    for status, count in answers.items():
        if status not in {401, 429}:
            wrong.append(f"{count} forged tokens were answered {status}")
    if grown > MAX_GROWTH_BYTES:
        wrong.append(f"the server grew by {grown} bytes")
    if not alongside:
        wrong.append("no report was acknowledged beside them")
    counts = ", ".join(f"{count} times {status}" for status, count in sorted(answers.items()))
    return Outcome(f"{tokens} forged tokens: {counts}; {grown / 1024**2:.1f} MiB grown; {text}", wrong)


def _show(server: Server, tokens: int) -> Counter[int]:
    answers: Counter[int] = Counter()
    left = iter(range(tokens))
    lock = threading.Lock()

    def client() -> None:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            path = ("/api/v1/nodes", "/api/v1/reports")[number % 2]
            headers = {"Authorization": f"Bearer hp_{secrets.token_urlsafe(32)}"}
            try:
                status = CLIENT.request(("GET", "POST")[number % 2], server.url + path, headers=headers).status_code
            except httpx.HTTPError:
                status = 0
            with lock:
                answers[status] += 1

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
