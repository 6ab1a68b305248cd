"""Counting the tests of a suite: from JUnit XML and from a closing line."""

from __future__ import annotations

import pytest

from results import SuiteResult, failure, from_junit, from_output, skip

JUNIT = """<?xml version="1.0"?>
<testsuites><testsuite name="s" tests="5">
  <testcase classname="a" name="passes"/>
  <testcase classname="a" name="fails"><failure message="1 != 2">trace</failure></testcase>
  <testcase classname="a" name="errors"><error message="boom"/></testcase>
  <testcase classname="a" name="skips"><skipped message="no free 2M page"/></testcase>
  <testcase classname="b" name="skips too">
    <properties><property name="skip" value="no browser"/></properties><skipped/>
  </testcase>
</testsuite></testsuites>"""


def test_junit_counts_every_kind_of_end() -> None:
    result = from_junit(JUNIT)
    assert (result.passed, result.failed, result.skipped) == (1, 2, 2)
    assert result.failures == ("a fails: 1 != 2", "a errors: boom")
    assert result.skips == ("a skips: no free 2M page", "b skips too: no browser")


@pytest.mark.parametrize("text", ["", "<testsuites/>", "<testsuite><testcase", "not xml"])
def test_junit_without_a_test_is_not_a_result(text: str) -> None:
    with pytest.raises(ValueError, match="JUnit"):
        from_junit(text)


def test_the_last_closing_line_counts() -> None:
    text = (
        "gcc: 3 passed, 0 failed\nSKIP rows: no free page\nFAIL geometry: 95 entries\n10 passed, 1 failed, 2 skipped\n"
    )
    assert from_output(text) == SuiteResult(10, 1, 2, ("geometry: 95 entries",), ("rows: no free page",))


@pytest.mark.parametrize("text", ["", "all good\n", "0 passed, 0 failed, 0 skipped\n", "x 1 passed, 0 failed today\n"])
def test_output_without_a_count_is_not_a_result(text: str) -> None:
    with pytest.raises(ValueError, match="suite"):
        from_output(text)


def test_results_add_up_to_the_closing_line() -> None:
    total = SuiteResult(passed=7) + failure("x") + skip("y") + SuiteResult(passed=1, skipped=1)
    assert total.closing_line() == "8 passed, 1 failed, 2 skipped"
