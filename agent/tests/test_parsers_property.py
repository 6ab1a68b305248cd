"""Laws of the parsers: no text makes one fail, and what it reads back is what was written."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from hugeplan_agent.backoff import CAP_SECONDS, MAX_RETRY_AFTER_SECONDS, delay_seconds
from hugeplan_agent.collectors.cpu import parse_cpuinfo, processor
from hugeplan_agent.collectors.keyvalue import parse_amounts, parse_counters, parse_selected
from hugeplan_agent.collectors.mappings import parse_maps
from hugeplan_agent.collectors.meminfo import FIELDS, parse
from hugeplan_agent.collectors.process_table import Process, add_status, parse_rollup, parse_stat

WORDS = st.text(string.ascii_letters + string.digits + "_()", min_size=1, max_size=20)
KIB_AMOUNTS = st.integers(0, 2**50)


@given(st.text())
def test_no_text_makes_a_parser_fail(text: str) -> None:
    assert all(value >= 0 for value in parse_amounts(text).values())
    assert all(value >= 0 for value in parse_counters(text).values())
    assert set(parse(text)[0]) == set(FIELDS)
    assert set(parse_rollup(text).values()) <= {*parse_amounts(text).values()}
    assert set(processor(parse_cpuinfo(text))) >= {"vendor", "family", "model"}
    parse_stat(text, 4096)
    add_status(Process(1, None, None, "one", 0), text)
    parse_selected(text)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), min_size=1))
def test_each_part_of_a_file_counts_once(parts: list[tuple[int, int]]) -> None:
    places = [(at << 23, size << 23) for at, size in parts]
    lines = [f"{size:x}-{2 * size:x} rw-s {at:x} 00:01 7 /dev/zero".encode() for at, size in places]
    (whole,) = parse_maps(lines, 4096, None)
    assert whole.bytes == len({place for at, size in parts for place in range(at, at + size)}) << 23


@given(st.dictionaries(WORDS, KIB_AMOUNTS, max_size=8))
def test_amounts_are_read_back_in_bytes(amounts: dict[str, int]) -> None:
    text = "".join(f"{word}: {kib:>15} kB\n" for word, kib in amounts.items())
    assert parse_amounts(text) == {word: kib * 1024 for word, kib in amounts.items()}


@given(WORDS, st.lists(WORDS, max_size=4), st.integers(0, 4))
def test_the_selected_word_is_found_wherever_it_stands(chosen: str, others: list[str], place: int) -> None:
    words = [*others[:place], f"[{chosen}]", *others[place:]]
    assert parse_selected(" ".join(words)) == chosen


@given(st.text(max_size=30), st.integers(0, 2**63))
def test_the_start_time_is_found_behind_any_name(name: str, ticks: int) -> None:
    fields = " ".join(str(number) for number in range(4, 22))
    process = parse_stat(f"1 ({name}) S {fields} {ticks} 4096 1 0", 4096)
    assert process is not None
    assert (process.pid, process.start_time_ticks, process.name) == (1, ticks, name or "pid 1")


@given(st.integers(1, 10**6), st.none() | st.floats(0, 1e9), st.floats(0, 1))
def test_waits_are_bounded_and_honour_the_server(failures: int, asked: float | None, place: float) -> None:
    wait = delay_seconds(failures, asked, lambda low, high: low + (high - low) * place)
    assert 0 < wait <= max(CAP_SECONDS, MAX_RETRY_AFTER_SECONDS)
    if asked is not None:
        assert wait >= min(asked, MAX_RETRY_AFTER_SECONDS)
