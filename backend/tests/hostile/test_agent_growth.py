"""The agent's readers of what a node's users write take time in proportion to the text, line by line and as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hostile.patterns import UNITS, hostile
from hugeplan_agent.collectors import keyvalue, kubelet, mappings, simple_yaml, unit_names
from hugeplan_agent.collectors.buddyinfo import parse as parse_buddyinfo
from hugeplan_agent.collectors.cgroup_tree import parse_membership
from hugeplan_agent.collectors.engines import base, jvm, mysql, oracle, postgresql
from hugeplan_agent.collectors.kernel import relevant_words
from hugeplan_agent.collectors.process_table import Process, add_status, parse_stat

READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "postgresql.conf": (postgresql.LINE.match, ("a='", "a\\", "include=")),
    "postgres": (lambda text: postgresql.parse_arguments(text.split(" ")), ("-c", "--a=", "-D")),
    "my.cnf": (lambda text: [mysql.option_of(line) for line in text.splitlines()], ("a=", "a='", "a=\\", "loose-")),
    "mysqld": (lambda text: mysql.command_line(text.split(" ")), ("--port", "--a=", "--skip-")),
    "init.ora": (lambda text: oracle.parse_parameters(text, base.Settings(frozenset())), ("*.a", "a=")),
    "oracle": (oracle.sid_of, ("ora_a_", "oracle")),
    "java": (lambda text: jvm.product_of(text.split(" ")), ("-Xmx1", "org.apache.")),
    "java's place": (jvm.version_of, ("java", "jdk-")),
    "command line": (lambda text: base.option_pairs(text.split(" ")), ("--a", "--a=")),
    "lines": (lambda text: list(base.plain_lines(text, base.Settings(frozenset()))), ()),
    "yaml": (simple_yaml.leaves, ("a:", "- a", "- ", '"a', "a: {", "a: [", "a: '", '{"a": ', '{"a": [')),
    "kubelet": (kubelet.read_config, ("kind: KubeletConfiguration\na", "evictionHard: {")),
    "memory_manager_state": (kubelet.parse_memory_state, ('{"a": ',)),
    "cgroup": (parse_membership, ("0::/", "1:a")),
    "name of a cgroup": (unit_names.name_of, ("/kubepods", "/kubepods/pod", "/lxc/", "/crio-conmon-", "/docker-")),
    "maps": (lambda text: mappings.parse_maps(text.encode().splitlines(), 4096, []), ("0-f rw-s 0 0:0 0", "0-f")),
    "smaps": (lambda it: mappings.page_sizes(it.encode().splitlines(), [0]), ("0-f rw-s 0 0:0 0\nKernelPageSize:",)),
    "status": (lambda text: add_status(Process(1, None, None, "a", 0), text), ("Name:",)),
    "stat": (lambda text: parse_stat(text, 4096), ("1 (", "1 (a) S ")),
    "amounts": (keyvalue.parse_amounts, ("A:", "Node 0", "A: 1")),
    "buddyinfo": (parse_buddyinfo, ("Node 0, zone a", "Node 0, zone a 1")),
    "selected": (keyvalue.parse_selected, ("[",)),
    "kernel": (relevant_words, ("hugepages=", 'mem="')),
}  # fmt: skip
SIZES = (4_000, 16_000)
NEGLIGIBLE_SECONDS = 0.02
"""A linear reader takes less for 16,000 characters; one by the square takes longer."""
MOST_GROWTH = 8.0
"""Four times the text: a linear reader takes four times as long, a quadratic one sixteen times."""


def seconds(read: Callable[[str], Any], text: str, repeats: int = 1) -> float:
    """The shortest of some readings: what else the machine does only adds."""
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        read(text)
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_time_in_proportion_to_its_text(name: str) -> None:
    read, leads = READERS[name]
    for lead in ("", "a", *leads):
        for unit in UNITS:
            for small, large in zip(*(hostile(lead, unit, size) for size in SIZES), strict=True):
                for ending in ("#", "b"):
                    if seconds(read, large + ending) < NEGLIGIBLE_SECONDS:
                        continue
                    growth = seconds(read, large + ending, 3) / seconds(read, small + ending, 3)
                    assert growth < MOST_GROWTH, f"{lead!r} + {unit!r} + {ending!r}: {growth:.1f} times"


def test_a_long_name_above_many_short_ones_is_not_written_out_for_each() -> None:
    short = ", ".join(f'"{number}": "x"' for number in range(10_000))
    text = f'{{"{"a" * 100_000}": {{{short}}}}}'
    assert sum(map(len, simple_yaml.leaves(text))) < len(text)
