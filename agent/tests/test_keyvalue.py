"""Line formats of /proc."""

from __future__ import annotations

import pytest

from hugeplan_agent.collectors.keyvalue import count_cpu_list, parse_amounts, parse_counters, parse_selected


def test_amounts_take_the_unit_into_account() -> None:
    text = "MemTotal:       24684084 kB\nHugePages_Total:    4100\nActive(anon):       1112 kB\nNode 0 MemFree: 8 kB\n"
    assert parse_amounts(text) == {
        "MemTotal": 24_684_084 * 1024,
        "HugePages_Total": 4100,
        "Active(anon)": 1112 * 1024,
        "MemFree": 8192,
    }


@pytest.mark.parametrize("line", ["", "MemTotal", "MemTotal: kB", "MemTotal: -1 kB", "Name:\tpostgres", "a: 1 MB"])
def test_other_lines_are_passed_over(line: str) -> None:
    assert parse_amounts(line) == {}


def test_counters() -> None:
    assert parse_counters("thp_fault_alloc 12\nbroken\nnegative -3\nsuperscript ²\n") == {"thp_fault_alloc": 12}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("always [madvise] never", "madvise"),
        ("[always] madvise never\n", "always"),
        ("always", None),
        ("", None),
        ("[]", None),
    ],
)
def test_selected_word(text: str, word: str | None) -> None:
    assert parse_selected(text) == word


@pytest.mark.parametrize(("text", "count"), [("0", 1), ("0-3", 4), ("0-1,4,6-7\n", 5), ("", 0)])
def test_cpu_list(text: str, count: int) -> None:
    assert count_cpu_list(text) == count


@pytest.mark.parametrize("text", ["a-b", "x", "-3"])
def test_a_broken_cpu_list_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        count_cpu_list(text)
