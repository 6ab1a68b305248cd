"""What each kernel makes of a command line, by the source of mm/hugetlb.c in 4.19, 5.10, 5.16, 6.12 and 6.15."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.memory.kernel_replay import Boot, Verdict, replay
from hugeplan.planner.memory.kernel_words import memparse, words_of
from hugeplan.planner.model import GIB, KIB, MIB

M2 = 2 * MIB
VERSIONS = ((4, 18), (5, 4), (5, 8), (5, 15), (5, 16), (6, 1), (6, 12), (6, 15), (6, 18))


def boot(line: str, version: tuple[int, int] = (6, 12), online: tuple[int, ...] | None = (0, 1)) -> Boot:
    return replay(words_of(line), sizes=(M2, GIB), pmd_bytes=M2, version=version, online=online)


def verdicts(found: Boot) -> list[Verdict]:
    return [step.verdict for step in found.steps]


class TestVersions:
    def test_counts_per_node_begin_with_5_16(self) -> None:
        line = "hugepagesz=2M hugepages=1:512,0:256"
        assert boot(line, (5, 16)).pools == {M2: {0: 256, 1: 512}}
        assert boot(line, (5, 15)).pools == {M2: {None: 1}}  # the digits before the colon

    def test_a_default_size_of_its_own_is_current_since_5_8(self) -> None:
        line = "hugepagesz=2M hugepages=512 default_hugepagesz=1G hugepages=4"
        assert boot(line, (5, 8)).pools == {M2: {None: 512}, GIB: {None: 4}}
        before = boot(line, (5, 4))
        assert before.pools == {M2: {None: 512}}
        assert before.default_page_bytes == GIB
        assert verdicts(before)[-1] is Verdict.COUNT_TWICE

    def test_gigantic_pages_by_a_leading_count_need_5_8(self) -> None:
        line = "default_hugepagesz=1G hugepages=8"
        assert boot(line, (5, 8)).pools == {GIB: {None: 8}}
        assert boot(line, (4, 18)).pools == {}

    def test_an_explicit_count_beats_a_leading_one_before_5_8_only(self) -> None:
        line = "hugepages=256 hugepagesz=2M hugepages=512"
        assert boot(line, (4, 18)).pools == {M2: {None: 512}}
        assert boot(line, (6, 12)).pools == {M2: {None: 256}}

    def test_a_leading_count_before_5_8_says_what_became_of_it(self) -> None:
        overruled = boot("hugepages=256 hugepagesz=2M hugepages=512", (5, 4))
        assert verdicts(overruled)[0] is Verdict.COUNT_OVERRULED
        assert overruled.steps[0].target_bytes == M2
        late = boot("hugepages=8 default_hugepagesz=1G", (5, 4))
        assert (late.pools, verdicts(late)[0]) == ({}, Verdict.GIGANTIC_TOO_LATE)

    def test_sizes_per_node_of_hugetlb_cma_begin_with_5_16(self) -> None:
        line = "hugetlb_cma=0:1G hugepagesz=1G hugepages=4"
        assert boot(line, (5, 16)).pools == {}
        assert boot(line, (5, 15)).pools == {GIB: {None: 4}}  # the digits before the colon: no CMA

    def test_five_words_since_6_15_on_x86(self) -> None:
        line = "default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=1G hugepagesz=2M hugepages=512"
        assert boot(line, (6, 12)).pools == {M2: {None: 512}, GIB: {None: 4}}
        assert boot(line, (6, 15)).pools == {GIB: {None: 4}}
        assert verdicts(boot(line, (6, 15)))[-1] is Verdict.DROPPED_LIMIT


class TestRules:
    @pytest.mark.parametrize(
        ("line", "pools"),
        [
            ("hugepages=256", {M2: {None: 256}}),
            ("hugepages=256 default_hugepagesz=1G", {GIB: {None: 256}}),
            ("default_hugepagesz=1G hugepagesz=1G hugepages=2", {GIB: {None: 2}}),
            ("default_hugepagesz=1G hugepages=2 hugepagesz=1G hugepages=4", {GIB: {None: 2}}),
            (
                "hugepagesz=1G hugepages=2 hugepagesz=2M default_hugepagesz=1G hugepages=64",
                {M2: {None: 64}, GIB: {None: 2}},
            ),
            ("hugepages=0:512,1:256", {M2: {0: 512, 1: 256}}),
            ("hugepages=0:512 default_hugepagesz=1G", {GIB: {0: 512}}),
            ("hugetlb_cma=4G hugepagesz=1G hugepages=0:4 hugepagesz=2M hugepages=3", {M2: {None: 3}}),
            ("hugepagesz=2MB hugepages=5", {M2: {None: 5}}),
            ("hugepagesz=2048k hugepages=5", {M2: {None: 5}}),
            ("hugepagesz=0x200000 hugepages=5", {M2: {None: 5}}),
            ("hugepagesz=2M hugepages=", {}),
            ("hugepagesz=2M hugepages=-5", {}),
            ("hugepagesz=2M hugepages=5,0:2", {M2: {None: 5}}),
            ("hugepagesz=2M hugepages=0:5,2", {}),
            ("hugepagesz=2M hugepages=0:5,2:1", {}),
            ("hugepagesz=2M hugepages=3 -- hugepagesz=1G hugepages=4", {M2: {None: 3}}),
            ("hugetlb_cma=4G hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=3", {M2: {None: 3}}),
            ('"hugepagesz=2M" hugepages="7"', {M2: {None: 7}}),
            ("default-hugepagesz=1G hugepages=7", {GIB: {None: 7}}),
        ],
    )  # fmt: skip
    def test_pools(self, line: str, pools: object) -> None:
        assert boot(line).pools == pools

    def test_a_refused_size_takes_its_count_with_it(self) -> None:
        found = boot("hugepagesz=16M hugepages=9 hugepages=4")
        assert verdicts(found) == [Verdict.SIZE_UNSUPPORTED, Verdict.COUNT_WITHOUT_SIZE, Verdict.TAKEN]
        assert found.pools == {M2: {None: 4}}

    def test_a_count_of_none_is_not_overruled_by_a_later_one(self) -> None:
        found = boot("default_hugepagesz=2M hugepages=0 hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=7")
        assert found.pools == {M2: {None: 7}, GIB: {None: 2}}
        assert set(verdicts(found)) == {Verdict.TAKEN}

    def test_runtime_cma_only_keeps_boot_pages(self) -> None:
        assert boot("hugetlb_cma=4G hugetlb_cma_only=1 hugepagesz=1G hugepages=4", (6, 15)).pools == {GIB: {None: 4}}

    @pytest.mark.parametrize(
        ("text", "size"), [("2M", M2), ("1g", GIB), ("64K", 64 * KIB), ("010", 8), ("", 0), ("M", 0), ("2 M", 2)]
    )
    def test_memparse(self, text: str, size: int) -> None:
        assert memparse(text) == size


WORDS = st.sampled_from(
    ["hugepages=1", "hugepages=0:1", "hugepages=0:1,1:2", "hugepages=7:1", "hugepages=x", "hugepages", "hugepagesz=2M",
     "hugepagesz=1G", "hugepagesz=", "quiet", "--", "default_hugepagesz=2M", "default_hugepagesz=1G", "hugetlb_cma=1G",
     "default_hugepagesz=3M"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=12), st.sampled_from(VERSIONS))
def test_any_line_on_any_kernel(words: list[str], version: tuple[int, int]) -> None:
    found = boot(" ".join(words), version)
    assert set(found.pools) <= {M2, GIB}
    assert all(pages > 0 for by_node in found.pools.values() for pages in by_node.values())
    asked = sum(word.startswith("hugepages=") for word in words)
    assert len(found.pools) <= asked
    if words.count("--"):
        assert boot(" ".join(words[: words.index("--")]), version).pools == found.pools
