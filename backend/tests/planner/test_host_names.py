"""Whether two names are one host's, asked of two and of many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hugeplan.access.machines import told_apart
from hugeplan.planner.host_names import HostNames, is_one_host

NAME = st.text("aA.1 ", max_size=5)


@given(st.lists(NAME, max_size=8), NAME)
def test_what_is_found_under_a_name_is_each_that_is_one_host_with_it(names: list[str], asked: str) -> None:
    held = HostNames[int]()
    for number, name in enumerate(names):
        held.add(name, number)
    assert sorted(held.of(asked)) == [number for number, name in enumerate(names) if is_one_host(name, asked)]


@given(NAME, NAME)
def test_a_name_that_was_told_apart_is_no_hosts(one: str, other: str) -> None:
    assert not is_one_host(told_apart(f"{one}.1", "11" * 16), other)
