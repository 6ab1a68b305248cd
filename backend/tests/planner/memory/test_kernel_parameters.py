"""The kernel's reading of huge page words, by the examples of hugetlbpage.rst and the code of mm/hugetlb.c."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.memory.kernel_parameters import BootPools, boot_pools
from hugeplan.planner.model import GIB, MIB

M2 = 2 * MIB


def read(line: str, default: int = M2) -> BootPools:
    return boot_pools(line, (M2, GIB), default, (0, 1))


class TestDocumentation:
    @pytest.mark.parametrize(
        "line", ["hugepages=256", "default_hugepagesz=2M hugepages=256", "hugepages=256 default_hugepagesz=2M"]
    )
    def test_three_ways_to_256_pages(self, line: str) -> None:
        found = read(line)
        assert found.pools == {M2: {None: 256}}
        assert found.ignored == ()

    def test_a_leading_count_wins(self) -> None:
        found = read("hugepages=256 hugepagesz=2M hugepages=512")
        assert found.pools == {M2: {None: 256}}
        assert [i.word for i in found.ignored] == ["hugepages=512"]

    @pytest.mark.parametrize("count", ["²", "0:²", "²:1"])
    def test_a_digit_that_is_no_number_is_ignored(self, count: str) -> None:
        found = read(f"hugepages={count}")
        assert found.pools == {}
        assert [i.word for i in found.ignored] == [f"hugepages={count}"]

    def test_counts_per_node(self) -> None:
        assert read("hugepagesz=2M hugepages=0:1,1:2").pools == {M2: {0: 1, 1: 2}}

    def test_two_sizes(self) -> None:
        found = read("default_hugepagesz=1G hugepagesz=1G hugepages=0:8,1:8 hugepagesz=2M hugepages=0:512,1:512")
        assert found.default_page_bytes == GIB
        assert found.pools == {GIB: {0: 8, 1: 8}, M2: {0: 512, 1: 512}}
        assert found.ignored == ()


class TestIgnored:
    @pytest.mark.parametrize(
        ("line", "word", "pools"),
        [
            ("hugepagesz=2M hugepages=1 hugepages=2", "hugepages=2", {M2: {None: 1}}),
            ("hugepagesz=2M hugepages=1 hugepagesz=2M hugepages=2", "hugepagesz=2M", {M2: {None: 1}}),
            ("hugepagesz=16M hugepages=4 hugepagesz=2M hugepages=1", "hugepagesz=16M", {M2: {None: 1}}),
            ("hugepagesz=2M hugepages=5,0:2", "hugepages=5,0:2", {M2: {None: 5}}),
            ("hugepagesz=2M hugepages=0:2,5", "hugepages=0:2,5", {}),
            ("hugepagesz=2M hugepages=7:1", "hugepages=7:1", {}),
            ("default_hugepagesz=1G default_hugepagesz=2M hugepages=2", "default_hugepagesz=2M", {}),
        ],
    )
    def test_word_and_effect(self, line: str, word: str, pools: object) -> None:
        found = read(line)
        assert found.ignored[0].word == word
        assert found.pools == pools

    @given(st.lists(st.sampled_from(
        ["hugepages=1", "hugepages=0:1", "hugepages=x", "hugepagesz=2M", "hugepagesz=1G", "hugepagesz=", "quiet",
         "default_hugepagesz=2M", "default_hugepagesz=1G", "default_hugepagesz=3M"])))  # fmt: skip
    def test_any_line_is_read(self, words: list[str]) -> None:
        found = read(" ".join(words))
        counts = sum(word.startswith("hugepages=") for word in words)
        kept = len(found.pools)
        assert kept <= counts
        assert len(found.ignored) <= len(words)
