"""Browser sessions: requests of another site, cookies that were not given, and logins that race."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx

from hugeplan.access.gate import SESSION_COOKIE
from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, WrongAnswerError, expect
from tools.attack.warm import SCENARIO

RACERS = 8
COOKIES = "; ".join(f"c{number}={'x' * 20}" for number in range(900))
QUOTED = 'c="' + r"\"" * 15_000 + '"'
CHANGE = {"name": "of another site", "scenario": SCENARIO}
FORMS = {
    "a form": {"content": b"name=x&scenario=y", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
    "JSON as plain text": {"content": b'{"name": "x"}', "headers": {"Content-Type": "text/plain"}},
    "JSON without a token": {"json": CHANGE},
    "an empty token": {"json": CHANGE, "headers": {"X-CSRF-Token": ""}},
    "a token of another session": {"json": CHANGE, "headers": {"X-CSRF-Token": "0" * 64}},
    "a token that is no ASCII": {"json": CHANGE, "headers": {"X-CSRF-Token": b"\xc3\xa9" * 64}},
    "another method in a header": {"json": CHANGE, "headers": {"X-HTTP-Method-Override": "GET"}},
}


def _log_in(running: Target) -> None:
    """A browser of a planner; its cookie."""
    opened = running.ask(None, "POST", "/session", json={"token": running.tokens[Role.PLANNER]})
    expect(opened, 201)
    running.memory["cookie"] = opened.cookies[SESSION_COOKIE]


def _as_browser(running: Target, method: str, path: str, **more: object) -> httpx.Response:
    headers = {"Cookie": f"{SESSION_COOKIE}={running.memory['cookie']}", **more.pop("headers", {})}  # type: ignore[dict-item]
    return running.ask(None, method, path, headers=headers, **more)


def _of_another_site(form: dict[str, object], running: Target) -> str:
    """What another site can make a browser send with its cookie changes nothing."""
    answer = _as_browser(running, "POST", "/scenarios", **form)
    word = expect(answer, 403, 415)
    listed = _as_browser(running, "GET", "/scenarios?limit=1").json()["items"]
    if listed and listed[0]["name"] == CHANGE["name"]:
        raise WrongAnswerError("the change was made")
    return word


def _cookie(text: Callable[[Target], str], running: Target) -> str:
    return expect(running.ask(None, "GET", "/nodes", headers={"Cookie": text(running)}), 401, 429)


def _chosen_cookie(running: Target) -> str:
    """Whoever logs in with a cookie that somebody else chose gets another one."""
    headers = {"Cookie": f"{SESSION_COOKIE}=chosen"}
    opened = running.ask(None, "POST", "/session", json={"token": running.tokens[Role.VIEWER]}, headers=headers)
    word = expect(opened, 201, 429)
    if opened.status_code == 201:
        given = opened.headers["Set-Cookie"]
        if "=chosen" in given or not all(part in given for part in ("HttpOnly", "SameSite=strict", "Path=/")):
            raise WrongAnswerError(f"the cookie is {given.partition('=')[2][-60:]}")
    return word


def _one_link_many_browsers(running: Target) -> str:
    """A login link works once, however many use it together."""
    made = running.ask(Role.PLANNER, "POST", "/login-links")
    if made.status_code == 429:  # the limit of a credential's logins, when the row is measured often
        return expect(made, 429)
    expect(made, 201)

    def use(_: int) -> int:
        return running.ask(None, "POST", "/session", json={"token": made.json()["token"]}).status_code

    with ThreadPoolExecutor(RACERS) as browsers:
        found = sorted(browsers.map(use, range(RACERS)))
    if found.count(201) > 1 or not set(found) <= {201, 401, 429}:
        raise WrongAnswerError(f"a link that works once was answered {found}")
    return f"{found.count(201)} of {RACERS}"


def _after_logout(running: Target) -> str:
    _log_in(running)
    token = _as_browser(running, "GET", "/session").json()["csrf_token"]
    expect(_as_browser(running, "DELETE", "/session", headers={"X-CSRF-Token": token}), 204)
    return expect(_as_browser(running, "GET", "/nodes"), 401, 429)


ROWS = (
    *(
        Attack(f"session: {what} of another site", partial(_of_another_site, form), requests=2, prepare=_log_in)
        for what, form in FORMS.items()
    ),
    Attack("session: 900 cookies", partial(_cookie, lambda _: COOKIES)),
    Attack("session: a cookie of 15,000 quotes", partial(_cookie, lambda _: QUOTED)),
    Attack(
        "session: a bearer token as a cookie",
        partial(_cookie, lambda running: f"{SESSION_COOKIE}={running.tokens[Role.ADMIN]}"),
    ),
    Attack("session: a cookie that somebody chose", _chosen_cookie),
    Attack(f"session: a login link used {RACERS} times at once", _one_link_many_browsers, requests=RACERS + 1),
    Attack("session: a cookie after its logout", _after_logout, requests=4),
)
