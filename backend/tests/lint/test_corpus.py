"""Every broken file of the corpus is found, by the rule it breaks; no clean file is."""

from __future__ import annotations

import re
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
    threads = {name: entry.get("thread") for name, entry in EXPECTED.items() if name.startswith("thread-")}
    assert len(threads) >= 65
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread or "") for thread in threads.values()), threads
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
    assert "the kernel reserves 16 pages of 2M (32 MiB), 4,096 pages of 1G (4 TiB) at boot" in effects
    (problem,) = report.problems
    assert problem.fix == "Write hugepagesz=2M hugepages=16 hugepagesz=1G hugepages=4096."


@pytest.mark.parametrize("name", ["thread-talos-sorted-arguments", "thread-image-factory-order"])
def test_words_that_a_program_sorted_are_not_paired_by_guess(name: str) -> None:
    """--fix kept one size with the other's count: 9,000 pages of 1G."""
    (report,) = check("broken", name)
    assert report.fixed_text is None
    assert all(not problem.edits for problem in report.problems)


def together(**files: str) -> dict[str, list[str]]:
    """The rules that files break when they are given together, by the file's name (``__`` is a dot)."""
    texts = [Source(name.replace("__", "."), text) for name, text in files.items()]
    return {report.source.name: [p.rule.id for p in report.problems] for report in lint(texts)}


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [(1200, 1200, []), (1200, 700, ["sysctl-set-twice"]), (1200, 120, ["sysctl-set-again-smaller"])],
)
def test_a_later_file_of_sysctl_d_wins(first: int, second: int, rule: list[str]) -> None:
    """The order is that of the names, wherever the files lie; the database beside them gets the last count."""
    given = {f"z{n}__conf": f"vm.nr_hugepages = {pages}\n" for n, pages in ((90, second), (10, first))}
    assert together(**given) == {"z90.conf": rule, "z10.conf": []}
    database = together(**given, postgresql__conf="shared_buffers = 2GB\nhuge_pages = on\n")
    assert database["postgresql.conf"] == ([] if second == 1200 else ["pool-below-segment"])


NODE0 = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"
TOTAL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
UNIT = "[Unit]\nDescription=pages\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo {pages} > {path}'\n"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("60__conf", "vm.nr_hugepages = 100\n", ["sysctl-set-again-smaller"]),
        ("60__conf", "vm.nr_hugepages = 1000\n", []),
        ("60__conf", f"w {TOTAL} - - - - 100\n", ["sysctl-set-again-smaller"]),
        ("60__conf", f"w {NODE0} - - - - 800\n", ["sysctl-set-twice"]),
        ("60__conf", f"d {NODE0} - - - - 8\n", ["tmpfiles-type"]),
        ("60__service", UNIT.format(pages=100, path=TOTAL), ["sysctl-set-again-smaller"]),
    ],
)
def test_what_writes_after_the_command_line_wins(name: str, text: str, rule: list[str]) -> None:
    """Found: 1,000 pages of the command line, of which sysctl.d left 100, and "no rule is broken" for 1 GiB beside."""
    line = 'GRUB_CMDLINE_LINUX="default_hugepagesz=2M hugepagesz=2M hugepages=1000"\n'
    database = "shared_buffers = 1GB\nhuge_pages = on\n"
    found = together(grub=line, **{name: text}, postgresql__conf=database)
    short = ["pool-below-segment"] if rule == ["sysctl-set-again-smaller"] else []
    assert found == {"grub": [], name.replace("__", "."): rule, "postgresql.conf": short}


@pytest.mark.parametrize(("first", "second"), [("10", "60"), ("60", "10")])
def test_the_first_line_of_a_path_wins_over_all_files(first: str, second: str) -> None:
    """Found: "ok: no rule is broken" of a file whose line systemd-tmpfiles ignores, since an older file has it."""
    given = {f"{first}__conf": f"w {NODE0} - - - - 50\n", f"{second}__conf": f"w {NODE0} - - - - 900\n"}
    found = together(**given, postgresql__conf="shared_buffers = 1GB\nhuge_pages = on\n")
    short = ["pool-below-segment"] if first == "10" else []
    assert found == {"10.conf": [], "60.conf": ["tmpfiles-path-twice"], "postgresql.conf": short}


@pytest.mark.parametrize(("first", "second"), [("850", "100"), ("100", "850")])
@pytest.mark.parametrize("files", [1, 2])
def test_each_line_of_w_plus_counts(first: str, second: str, files: int) -> None:
    """Found: --fix deleted the line whose count systemd-tmpfiles ends with, as ignored."""
    lines = [f"w+ {NODE0} - - - - {count}\n" for count in (first, second)]
    given = {"10__conf": "".join(lines)} if files == 1 else dict(zip(("10__conf", "60__conf"), lines, strict=True))
    found = together(**given, postgresql__conf="shared_buffers = 1GB\nhuge_pages = on\n")
    short = ["pool-below-segment"] if second == "100" else []
    said = [rule for name, rules in found.items() if name != "postgresql.conf" for rule in rules]
    assert (said[:1], found["postgresql.conf"]) == (
        ["sysctl-set-again-smaller"] if short else ["sysctl-set-twice"] * (files == 1), short
    )  # fmt: skip
    reports = lint([Source(name.replace("__", "."), text) for name, text in given.items()])
    assert all(report.fixed_text is None for report in reports)


@pytest.mark.parametrize("later", ["vm.nr_hugepages = 4G\n", "-vm.nr_hugepages\n"])
def test_a_later_line_that_writes_no_count_leaves_none(later: str) -> None:
    """Found: a pool of 1,200 pages beside a later file whose value the kernel refuses: the next boot had none."""
    files = {"grub": 'GRUB_CMDLINE_LINUX="hugepagesz=2M hugepages=100"\n', "a10__conf": "vm.nr_hugepages = 1200\n"}
    found = together(**files, a99__conf=later, postgresql__conf="shared_buffers = 2GB\nhuge_pages = on\n")
    assert found["postgresql.conf"] == ["pool-below-segment"]
    assert "sysctl-set-again-smaller" in found["a99.conf"]


@pytest.mark.parametrize("kind", ["w+", "f+", "F", "w!"])
def test_types_that_write_are_right(kind: str) -> None:
    assert together(a__conf=f"{kind} {NODE0} - - - - 4\n") == {"a.conf": []}


@pytest.mark.parametrize(
    ("settings", "does"),
    [
        ("huge_pages = on", "does not start"),
        ("huge_pages = try", "nothing says so"),
        ("huge_pages = off", None),
        ("wal_level = replica", None),
    ],
)
def test_a_pool_below_a_segment_says_what_the_engine_does(settings: str, does: str | None) -> None:
    reports = lint([Source("a.conf", "vm.nr_hugepages = 500\n"),
                    Source("postgresql.conf", f"shared_buffers = 4GB\n{settings}\n")])  # fmt: skip
    said = [p.message for report in reports for p in report.problems if p.rule.id == "pool-below-segment"]
    assert (does is None and not said) or (does is not None and does in said[0])


@pytest.mark.parametrize(
    ("pages", "instances", "rules"),
    [(100, "", "pool-below-segment"), (5000, "", "pages-may-be-short"), (6138, "", ""),
     (5000, "innodb_buffer_pool_instances = 8\n", "")],
)  # fmt: skip
def test_a_pool_that_unknown_processors_may_make_short_is_told_both_counts_and_why(
    pages: int, instances: str, rules: str
) -> None:
    own = f"[mysqld]\nlarge-pages\ninnodb_buffer_pool_size = 8G\n{instances}"
    report, _ = lint([Source("my.cnf", own), Source("60.conf", f"vm.nr_hugepages = {pages}\n")])
    assert [p.rule.id for p in report.problems] == ([rules] if rules else [])
    for problem in report.problems:
        assert "4,224 pages of 2M, up to 6,138, since the processors are not known and innodb" in problem.message
        assert problem.fix == "Reserve 6,138 or more pages of 2M."


@pytest.mark.parametrize(
    ("limit", "rule"),
    [
        ("", "limit-missing"),
        ("hugepages-2Mi: 2Gi, ", "limit-below-segment"),
        ("hugepages-2Mi: 10Gi, ", "pages-may-be-short"),
        ("hugepages-2Mi: 12276Mi, ", None),
    ],
)
def test_a_limit_that_unknown_processors_may_make_short_is_told_both_counts_and_why(
    limit: str, rule: str | None
) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: a\n      image: mysql:8.4\n"
        "      args: [--large-pages, --innodb-buffer-pool-size=8G]\n"
        f"      resources: {{limits: {{{limit}memory: 2Gi}}}}\n"
    )
    (report,) = lint([Source("a.yaml", pod)])
    said = [p for p in report.problems if p.rule.id != "pod-without-requests"]
    assert [p.rule.id for p in said] == ([rule] if rule else [])
    for problem in said:
        assert "4,224 pages of 2M, up to 6,138, since the processors are not known and innodb" in problem.message
        assert "12276Mi" in problem.fix


@pytest.mark.parametrize(("collector", "does"), [("G1", "base pages"), ("Z", "the server does not start")])
def test_a_limit_below_a_heap_says_what_the_collector_does(collector: str, does: str) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: a\n      image: tomcat\n"
        f"      env: [{{name: JAVA_TOOL_OPTIONS, value: -Xms4g -Xmx4g -XX:+UseLargePages -XX:+Use{collector}GC}}]\n"
        "      resources: {limits: {memory: 2Gi, hugepages-2Mi: 1Gi}}\n"
    )
    (report,) = lint([Source("a.yaml", pod)])
    (problem,) = (p for p in report.problems if p.rule.id == "limit-below-segment")
    assert does in problem.message


def test_two_engines_draw_from_one_pool() -> None:
    """Each alone has room, both together have not."""
    pool, one = "vm.nr_hugepages = 1500\n", "shared_buffers = 2GB\nhuge_pages = on\nport = 5433\n"
    other = "[mysqld]\nlarge_pages = ON\ninnodb_buffer_pool_size = 1G\n"
    assert together(pool__conf=pool, a__conf=one)["a.conf"] == []
    assert together(pool__conf=pool, my__cnf=other)["my.cnf"] == []
    assert together(pool__conf=pool, a__conf=one, my__cnf=other)["a.conf"] == ["pool-below-segment"]


@pytest.mark.parametrize(("size", "short"), [("1G", False), ("2M", True)])
def test_counts_of_sysctl_d_are_of_the_size_that_the_command_line_names(size: str, short: bool) -> None:
    found = together(
        grub=f'GRUB_CMDLINE_LINUX="default_hugepagesz={size}"\n',
        a__conf="vm.nr_hugepages = 6\n",
        postgresql__conf="shared_buffers = 4GB\nhuge_pages = on\n",
    )
    assert found["postgresql.conf"] == (["pool-below-segment"] if short else [])


@pytest.mark.parametrize("text", ["7", "384", "1048576"])
def test_bytes_that_are_no_page_are_not_rounded_up_to_one(text: str) -> None:
    """--fix wrote one page where 384 MiB were meant: what was meant is for a person to say."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: a\n      image: debian\n"
    (report,) = lint([Source("a.yaml", f"{pod}      resources: {{limits: {{cpu: 1, hugepages-2Mi: {text}}}}}\n")])
    (problem,) = report.problems
    assert (problem.rule.id, problem.edits) == ("resource-not-whole-pages", ())
    assert f"{text}Mi" in problem.fix


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (
            "hugepagesz=1G hugepages=4 hugepages=512 hugepagesz=2M",
            "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512",
        ),
        ("hugepagesz=1G hugepages=4 hugepages=512 quiet hugepages=9 hugepagesz=2M", None),
        ("hugepagesz=2M hugepagesz=1G hugepages=4 hugepages=512", None),
    ],
)
def test_no_size_and_no_count_is_lost_by_a_fix(line: str, written: str | None) -> None:
    """--fix dropped 512 pages of 2M whose two words stood the wrong way round."""
    (report,) = lint([Source("grub", f'GRUB_CMDLINE_LINUX="{line}"\n')])
    assert report.fixed_text == (None if written is None else f'GRUB_CMDLINE_LINUX="{written}"\n')


def test_options_of_tuned_are_joined_by_their_names() -> None:
    """The bootloader plugin sorts them; + in front of a value is nothing, - takes words away."""
    text = "[main]\ninclude=a\n[bootloader]\ncmdline_b=hugepages=8\ncmdline_a=hugepagesz=1G quiet\ncmdline_c=-quiet\n"
    (report,) = lint([Source("tuned.conf", text)])
    assert report.problems == ()
    assert "the kernel reserves 8 pages of 1G (8 GiB) at boot" in report.readings[0].effects


def found(text: str, name: str = "x") -> list[tuple[str, str]]:
    """Rule and message of every problem of one text."""
    return [(p.rule.id, p.message) for report in lint([Source(name, text)], Context()) for p in report.problems]


def test_a_count_that_the_kernel_refuses_replaces_nothing() -> None:
    """``= lots`` after ``= 1000`` was said to replace it. systemd-sysctl writes the last line, here of 500."""
    rules = found("vm.nr_hugepages = 1000\nvm.nr_hugepages = lots\n")
    assert [rule for rule, _ in rules] == ["sysctl-not-a-count"]
    assert any(
        "500 replaces 1000" in message
        for _, message in found("vm.nr_hugepages = 1000\nvm.nr_hugepages = lots\nvm.nr_hugepages = 500\n")
    )


@pytest.mark.parametrize(
    "line",
    [
        "hugepagesz=32M hugepages=64 hugepagesz=2M hugepages=100",
        "hugepagesz=2M hugepages=100 hugepagesz=16G hugepages=1",
        "hugepages=1024 default_hugepagesz=1G hugepagesz=1G hugepages=16",
    ],
)
def test_no_count_is_dropped_or_made_absurd_by_a_fix(line: str) -> None:
    """Pages of a size that the machine lacks, and 1,024 pages of 1G for 16: what was meant is not told."""
    (report,) = lint([Source("cmdline", line)], Context())
    assert report.problems
    assert [p for p in report.problems if p.edits] == []


def test_a_size_that_is_absent_and_not_counted_is_left_out() -> None:
    (report,) = lint([Source("cmdline", "hugepagesz=32M hugepages=0 hugepagesz=2M hugepages=100")], Context())
    assert {edit.text for p in report.problems for edit in p.edits} >= {"hugepagesz=2M hugepages=100"}


def test_the_type_of_a_mount_unit_is_no_type_of_a_service() -> None:
    unit = "[Unit]\nDescription=x\n[Mount]\nWhat=hugetlbfs\nWhere=/dev/hugepages\nType=hugetlbfs\n"
    assert found(unit, "x.mount") == []


@pytest.mark.parametrize("name", cases("broken"))
def test_the_text_of_a_fix_that_is_written_offers_no_choice(name: str) -> None:
    """'Write on, off or try (--fix writes it)' does not say which of the three is written."""
    for problem in (p for report in check("broken", name) for p in report.problems if p.edits):
        assert not re.search(r"\b(or|one of|a number|such as)\b", problem.fix), problem.fix
