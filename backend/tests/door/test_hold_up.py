"""The judge of attacks tells a service that holds others up from a machine that does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.folders import folder_for_all

from hugeplan.access.schemas import Role
from tools.attack import judge
from tools.attack.rig import Attack, Target, expect, target
from tools.chaos.rig import Server


class SlowServer(Server):
    """A service that has the handler of ``slow_handler.py`` too."""

    command = (str(Path(__file__).with_name("slow_handler.py")),)


@pytest.fixture(scope="module")
def slow() -> Iterator[Target]:
    """The real service with one handler more, which is slow as that of an attack might be."""
    with folder_for_all() as folder, target(folder) as made:
        server = SlowServer(made.server.database_url, folder / "slow.log")
        server.start()
        attacked = replace(made, server=server, memory={})
        try:
            server.wait_until_ready()
            yield attacked
        finally:
            attacked.end_neighbour()
            server.kill()


HELD_UP, COMPUTED = "held a neighbour up for", "of processor time"
SEEN_BY = {"blocks": (HELD_UP,), "computes": (HELD_UP, COMPUTED), "computes beside the loop": (HELD_UP, COMPUTED)}


@pytest.mark.parametrize("way", SEEN_BY)
def test_a_service_that_holds_others_up_is_seen(slow: Target, way: str) -> None:
    """On a busy machine a wait for who computes cannot be told from one for a processor: then its cost tells it."""

    def attack(_: Target) -> str:
        return expect(slow.ask(Role.VIEWER, "GET", "/slow", params={"way": way}), 200)

    found = judge.measure(slow, Attack(way, attack), 1)
    print(judge.HEADING, judge.line_of(found), sep="\n")
    assert found.answered == "200"
    assert any(sign in text for text in found.wrong for sign in SEEN_BY[way])


def test_one_that_does_nothing_is_not(slow: Target) -> None:
    found = judge.measure(slow, Attack("nothing", lambda _: "nothing"), 1)
    print(judge.HEADING, judge.line_of(found), sep="\n")
    assert found.wrong == []
