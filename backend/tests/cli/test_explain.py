"""``hugeplan explain``: a finding or a rule in words, from the table that the reference pages are made of."""

from __future__ import annotations

import pytest

from hugeplan.cli import main


def test_a_finding_says_what_it_asks_its_answers_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "memory_fit"]) == 0
    said = capsys.readouterr().out
    for words in (
        "Does the plan fit the node's memory?",
        "wrong: The plan does not fit",
        "do: Shrink a pool",
        "evidence: ",
    ):
        assert words in said


def test_a_rule_says_its_source_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "sysctl-overcommit"]) == 0
    said = capsys.readouterr().out
    assert "do: Write vm.nr_overcommit_hugepages = 0" in said
    assert "source: Documentation/admin-guide/mm/hugetlbpage.rst" in said


def test_the_linters_name_of_a_shared_finding_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pod-limit-below-segment"]) == 0
    assert capsys.readouterr().out.startswith("pod_limit_below_segment\n")


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    names = capsys.readouterr().out.split()
    assert {"time_bomb", "verify_engine", "node_stale", "cmdline-order"} <= set(names)


def test_an_unknown_name_is_one_line_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "time_bom"]) == 2
    assert capsys.readouterr().err == (
        "hugeplan explain: name: 'time_bom' is no finding and no rule; did you mean: time_bomb\n"
    )
