"""What one test suite did, read from its JUnit file or from its closing line. Pure parsing, no processes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace

CLOSING_LINE = re.compile(r"^(?:[\w-]+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
SKIP_LINE = re.compile(r"^SKIP:? (.+)$")
FAIL_LINE = re.compile(r"^(?:FAIL|not ok):? (.+)$")


@dataclass(frozen=True)
class SuiteResult:
    """Counts of one suite, and a line for each test that failed or was skipped (with its reason)."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    # Tests that failed beside other suites and passed alone, with what failed.
    late: tuple[str, ...] = ()

    def __add__(self, other: SuiteResult) -> SuiteResult:
        return SuiteResult(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.failures + other.failures,
            self.skips + other.skips,
            self.late + other.late,
        )

    def closing_line(self) -> str:
        """The line that continuous integration reads."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def failure(reason: str) -> SuiteResult:
    """A suite that could not do its work counts as one failed test."""
    return SuiteResult(failed=1, failures=(reason,))


def skip(reason: str) -> SuiteResult:
    """A suite that cannot run on this machine counts as one skipped test."""
    return SuiteResult(skipped=1, skips=(reason,))


def second_try(first: SuiteResult, second: SuiteResult, *, whole: bool) -> SuiteResult:
    """What a suite comes to after its failed tests ran once more alone; `whole` if all of its tests did.

    A test that fails again, or that the second try does not reach, has failed. One that passes is named with what
    failed at first.
    """
    before = SuiteResult() if whole else SuiteResult(passed=first.passed, skipped=first.skipped, skips=first.skips)
    counted = before + second
    missing = 0 if whole else first.failed - (second.passed + second.failed + second.skipped)
    if missing:
        counted += failure(f"the second try reached {first.failed - missing} of {first.failed} failed tests")
    if counted.failed:
        return counted if second.failed else counted + SuiteResult(failures=first.failures)
    return counted + SuiteResult(late=first.failures)


def from_junit(text: str) -> SuiteResult:
    """Count the test cases of a JUnit XML document (pytest, Vitest and Playwright write it).

    Raises ValueError when the text is not such a document or holds no test case.
    """
    try:
        root = ET.fromstring(text)  # noqa: S314 - the file was written by our own test runner a moment ago
    except ET.ParseError as error:
        raise ValueError(f"the JUnit file is not XML: {error}") from error
    cases = list(root.iter("testcase"))
    if not cases:
        raise ValueError("the JUnit file holds no test case")
    return sum((_from_case(case) for case in cases), SuiteResult())


def _from_case(case: ET.Element) -> SuiteResult:
    name = " ".join(filter(None, (case.get("classname"), case.get("name"))))
    broken = case.find("failure")
    if broken is None:
        broken = case.find("error")
    if broken is not None:
        message = (broken.get("message") or broken.text or "failed").strip().splitlines()
        return failure(f"{name}: {message[0] if message else 'failed'}")
    skipped = case.find("skipped")
    if skipped is not None:
        return skip(f"{name}: {_skip_reason(case, skipped)}")
    return SuiteResult(passed=1)


def _skip_reason(case: ET.Element, skipped: ET.Element) -> str:
    """The reason of a skip: pytest puts it in the message, Playwright in a property named skip."""
    reason = skipped.get("message") or (skipped.text or "").strip()
    for entry in case.iter("property"):
        if not reason and entry.get("name") == "skip":
            reason = entry.get("value") or ""
    return reason or "no reason given"


def from_output(text: str) -> SuiteResult:
    """Read the last closing line `N passed, N failed, N skipped` and the SKIP and FAIL lines above it.

    Raises ValueError when there is no closing line, or it counts no test.
    """
    lines = [line.strip() for line in text.splitlines()]
    closing = [match for match in map(CLOSING_LINE.match, lines) if match]
    if not closing:
        raise ValueError("the suite printed no closing line")
    passed, failed, skipped = (int(group or 0) for group in closing[-1].groups())
    if passed + failed + skipped == 0:
        raise ValueError("the suite ran no test")
    return replace(from_lines(text), passed=passed, failed=failed, skipped=skipped)


def from_lines(text: str) -> SuiteResult:
    """Count the lines PASS, FAIL and SKIP of a suite that did not come to its closing line."""
    lines = [line.strip() for line in text.splitlines()]
    failures = tuple(match[1] for match in map(FAIL_LINE.match, lines) if match)
    skips = tuple(match[1] for match in map(SKIP_LINE.match, lines) if match)
    return SuiteResult(sum(line.startswith("PASS ") for line in lines), len(failures), len(skips), failures, skips)
