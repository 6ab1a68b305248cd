"""Every broken file of the corpus is found, by the rule it breaks; no clean file is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hugeplan.lint import Context, FileReport, Severity, Source, lint

CORPUS = Path(__file__).parent / "corpus"
EXPECTED: dict[str, Any] = yaml.safe_load((CORPUS / "expected.yaml").read_text(encoding="utf-8"))


def cases(kind: str) -> list[str]:
    return sorted(folder.name for folder in (CORPUS / kind).iterdir())


def context_of(options: dict[str, Any]) -> Context:
    fields: dict[str, Any] = {}
    if "kernel" in options:
        major, minor = options["kernel"].split(".")
        fields["kernel"] = (int(major), int(minor))
    if "numa_nodes" in options:
        fields["numa_nodes"] = tuple(options["numa_nodes"])
    if "memory" in options:
        fields["mem_total_bytes"] = options["memory"]
    if "default_page" in options:
        fields["default_page_bytes"] = options["default_page"]
    if "arch" in options:
        fields["arch"] = options["arch"]
        fields["base_page_bytes"] = 65536 if options["arch"] == "aarch64" else 4096
    return Context(**fields)


def sources(kind: str, name: str) -> list[Source]:
    return [Source(p.name, p.read_text(encoding="utf-8")) for p in sorted((CORPUS / kind / name).iterdir())]


def check(kind: str, name: str) -> tuple[FileReport, ...]:
    key = name if kind == "broken" else f"clean/{name}"
    options = EXPECTED.get(key, {}).get("options", {})
    return lint(sources(kind, name), context_of(options))


@pytest.mark.parametrize("name", cases("broken"))
def test_the_fault_is_found(name: str) -> None:
    reports = check("broken", name)
    assert all(report.unreadable is None for report in reports), [r.unreadable for r in reports]
    found = {p.rule.id: p for report in reports for p in report.problems}
    rule = EXPECTED[name]["rule"]
    assert rule in found, sorted(found)
    severity = EXPECTED[name].get("severity", "wrong")
    assert found[rule].rule.severity is Severity(severity)
    problem = found[rule]
    assert problem.message.endswith(".")
    assert problem.fix
    assert problem.rule.source


@pytest.mark.parametrize("name", cases("broken"))
def test_a_fixed_file_is_clean_and_stays(name: str) -> None:
    """Where every wrong has edits, the fixed files have nothing wrong, and fixing them again changes nothing."""
    options = context_of(EXPECTED[name].get("options", {}))
    reports = check("broken", name)
    again = lint([Source(r.source.name, r.fixed_text or r.source.text) for r in reports], options)
    wrong = [p for report in again for p in report.problems if p.rule.severity is Severity.WRONG]
    if all(p.edits for report in reports for p in report.problems):
        assert not wrong
    assert all(not p.edits for p in wrong)
    assert all(report.fixed_text is None for report in again)


@pytest.mark.parametrize("name", cases("clean"))
def test_nothing_is_raised_on_a_clean_file(name: str) -> None:
    reports = check("clean", name)
    assert [(p.rule.id, p.message) for r in reports for p in r.problems] == []
    assert all(report.unreadable is None for report in reports)
    assert all(report.fixed_text is None for report in reports)


def test_the_corpus_is_large_enough() -> None:
    assert len(cases("broken")) >= 40
    assert len(cases("clean")) >= 25
    assert set(cases("broken")) == {name for name in EXPECTED if not name.startswith("clean/")}


#: What is written there is a line moved or commented out, which a person reads in words.
_IN_WORDS = {"mycnf-large-page-size", "mycnf-section", "redis-unknown-setting"}


@pytest.mark.parametrize("name", cases("broken"))
def test_the_text_of_a_fix_is_what_the_fix_writes(name: str) -> None:
    """512 was said where 4096 was written: whatever an edit puts into the file stands in the text of the fix."""
    for problem in (p for report in check("broken", name) for p in report.problems):
        written = [edit.text.strip().strip('"') for edit in problem.edits if edit.text.strip()]
        if problem.rule.id not in _IN_WORDS:
            assert [one for one in written if one not in problem.fix] == [], problem.fix


def test_kernel_arguments_of_a_list_are_one_command_line() -> None:
    (report,) = check("broken", "profile-one-command-line")
    effects = [text for reading in report.readings for text in reading.effects]
    assert "the kernel reserves 16 pages of 2M (32 MiB), 4096 pages of 1G (4 TiB) at boot" in effects
    (problem,) = report.problems
    assert problem.fix == "Write hugepagesz=2M hugepages=16 hugepagesz=1G hugepages=4096."


@pytest.mark.parametrize("name", ["thread-talos-sorted-arguments", "thread-image-factory-order"])
def test_words_that_a_program_sorted_are_not_paired_by_guess(name: str) -> None:
    """--fix kept one size with the other's count: 9,000 pages of 1G."""
    (report,) = check("broken", name)
    assert report.fixed_text is None
    assert all(not problem.edits for problem in report.problems)
