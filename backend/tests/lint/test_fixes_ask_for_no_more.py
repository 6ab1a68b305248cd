"""A fix asks for no more memory than the file did: random files of the kinds that lint fixes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from hugeplan.lint import Context, FileReport, Severity, Source, lint
from hugeplan.lint.model import EngineFact, LimitFact, PoolFact
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, Demand
from hugeplan.planner.units import format_bytes


def checked(name: str, text: str, **known: object) -> FileReport:
    return lint([Source(name, text)], Context(**known))[0]  # type: ignore[arg-type]


def mysql(text: str, version: str, cpus: int, page: int) -> Demand:
    pairs = (line.split("=") for line in text.splitlines() if line.startswith("innodb"))
    instance = DatabaseInstance(name="db", engine="mysql", version=version, settings=dict(pairs))
    return demand_of(instance, page, DemandContext(cpus=cpus, default_huge_page_bytes=page, mem_total_bytes=512 * GIB))


def my_cnf(r: random.Random) -> str:
    sizes = ["128M", "1G", "3G", "5000M", "9G", "64G", "100G", f"{r.randrange(200, 90000)}M"]
    lines = ["[mysqld]", "large-pages=ON", f"innodb_buffer_pool_size={r.choice(sizes)}"]
    if r.random() < 0.5:
        lines.append(f"innodb_buffer_pool_instances={r.choice([1, 2, 4, 8, 16, 32, 64])}")
    chunk = r.choice(["128M", "1G", "2G", "256M", "1M", "64M", "1000M", "2000M"])
    return "\n".join([*lines, f"innodb_buffer_pool_chunk_size={chunk}", ""])


def test_a_chunk_that_is_written_makes_no_pool_take_more() -> None:
    """64 instances and chunks of 1000M made 128 GiB of a pool of 64; others stayed wasteful and were called whole."""
    r = random.Random(7)
    fixed = 0
    for _ in range(300):
        text, page = my_cnf(r), r.choice([2 * MIB, GIB])
        report = checked("my.cnf", text, default_page_bytes=page)
        if report.fixed_text is None:
            continue
        fixed += 1
        (problem,) = report.problems
        for version, cpus in (("8.0", 8), ("8.4", 4), ("8.4", 32), ("8.4", 192)):
            was, now = (mysql(one, version, cpus, page) for one in (text, report.fixed_text))
            assert now.pages <= was.pages, (text, version)
            more = (now.pool_bytes or 0) - (was.pool_bytes or 0)
            assert more * 8 <= (was.pool_bytes or 0), (text, version)
            assert more <= 0 or "The pool grows by an eighth at most" in problem.fix, (text, version)
        assert not checked("my.cnf", report.fixed_text, default_page_bytes=page).problems
    assert fixed > 30


@pytest.mark.parametrize(("pool", "instances", "chunk"), [("64G", 64, "64M"), ("9G", 16, "1G")])
def test_where_no_chunk_fills_its_pages_it_says_what_to_choose(pool: str, instances: int, chunk: str) -> None:
    text = (
        f"[mysqld]\nlarge-pages=ON\ninnodb_buffer_pool_size={pool}\ninnodb_buffer_pool_instances={instances}\n"
        f"innodb_buffer_pool_chunk_size={chunk}\n"
    )
    report = checked("my.cnf", text, default_page_bytes=GIB)
    (problem,) = report.problems
    assert (report.fixed_text, problem.edits) == (None, ())
    assert "Choose fewer innodb_buffer_pool_instances" in problem.fix


LAYOUTS = (None, (5, 14), (6, 1))


def command_line(r: random.Random) -> str:
    words = [f"{name}={value}" for name, values in {
        "hugepagesz": ("2M", "1G", "2M", "1G", "4M"),
        "hugepages": ("512", "8", "0:4,1:8", "5,0:2", "2:1", "40", "16G"),
        "default_hugepagesz": ("1G", "2M"),
        "hugepage": ("700",),
        "transparent_hugepage": ("madvise",),
    }.items() for value in values]  # fmt: skip
    return " ".join(["quiet", *(r.choice(words) for _ in range(r.randrange(1, 7)))]) + "\n"


def sysctl(r: random.Random) -> str:
    names = ("vm.nr_hugepages", "vm.nr_hugepage", "vm.hugepages", "vm.nr_overcommit_hugepages", "kernel.shmmax")
    values = ("512", "8G", "90G", "40000", "0x200", "512M", "on")
    lines = [f"{r.choice(names)}{r.choice((' = ', ' = ', ' '))}{r.choice(values)}" for _ in range(r.randrange(1, 4))]
    return "\n".join(["vm.swappiness = 1", *lines, ""])


def postgresql(r: random.Random) -> str:
    size = r.choice(("8GB", "8G", "90gb", "4096mb", "1TB", "70g"))
    pages = r.choice(("huge_pages", "large_pages", "hugepages", "huge_page"))
    return f"shared_buffers = {size}\n{pages} = {r.choice(('on', 'try', 'true', 'yes', 'maybe', 'off'))}\n"


def jvm(r: random.Random) -> str:
    flags = ("-XX:+UseLargePages", "-XX:UseLargePages", "-XX:+UseHugePages", "-XX:-UseLargePages", "-XX:+UseSHM",
             "-XX:LargePageSizeInBytes=1g", "-XX:LargePageSizeInBytes=2m", "-XX:+UseTransparentHugePages",
             "-XX:+UseZGC", "-Xmx8g", "-Xmx8gb", "-Xmx90g", "-Xmx70G", "-Xms1g")  # fmt: skip
    return "\n".join(r.choice(flags) for _ in range(r.randrange(2, 6))) + "\n"


def pod(r: random.Random) -> str:
    quantity = r.choice(("4Gi", "4G", "4GB", "8", "4096M", "3Gi", "100Gi", "512"))
    limit = r.choice(("1Gi", "4Gi", "90Gi", "3Mi"))
    size = r.choice(("hugepages-2Mi", "hugepages-1Gi", "hugepages-2M", "hugepage-2Mi"))
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: db}}
spec:
  containers:
    - name: db
      image: {r.choice(("postgres:17", "debian", "mysql:8.4"))}
      args: ["-c", "shared_buffers={r.choice(("2GB", "80GB"))}", "-c", "huge_pages=on"]
      resources:
        requests: {{cpu: 1, memory: 8Gi, {size}: {quantity}}}
        limits: {{cpu: 1, memory: 8Gi, {size}: {limit}}}
"""


def asked(report: FileReport, default: int) -> int:
    """Bytes of huge pages by the facts that the file's own rules read out of it."""
    pools, most = 0, 0
    for fact in (fact for reading in report.readings for fact in reading.facts):
        if isinstance(fact, PoolFact):
            pools += (fact.pages or 0) * (fact.page_bytes or default)
        elif isinstance(fact, LimitFact):
            most = max(most, *(count for _, count in fact.hugepages), 0)
        elif isinstance(fact, EngineFact):
            settings = {name.lower(): value for name, value in fact.settings}
            heap = settings.get("xmx") if settings.get("uselargepages") == "true" else None
            buffers = None if settings.get("huge_pages") in {None, "off", "no"} else settings.get("shared_buffers")
            for text in filter(None, (heap, buffers)):
                number = re.fullmatch(r"(\d+)([kmgt])B?", text, re.I)
                most = max(most, int(number[1]) << 10 * (1 + "kmgt".index(number[2].lower())) if number else 0)
    return max(pools, most)


@pytest.mark.parametrize(
    ("name", "write"),
    [("cmdline", command_line), ("a.conf", sysctl), ("postgresql.conf", postgresql), ("jvm.options", jvm),
     ("pod.yaml", pod), ("my.cnf", my_cnf)],
)  # fmt: skip
@pytest.mark.parametrize("memory", [None, 64 * GIB])
def test_a_fix_asks_for_no_more_or_says_so(
    name: str, write: Callable[[random.Random], str], memory: int | None
) -> None:
    """``hugepages=512 hugepagesz=1G`` became 512 GiB of the 1 that it reserved, on a machine of 64."""
    r = random.Random(11)
    fixed = 0
    for _ in range(400):
        text = write(r)
        known = {"mem_total_bytes": memory, "kernel": r.choice(LAYOUTS), "numa_nodes": (0, 1)}
        report = checked(name, text, **known)
        if report.fixed_text is None:
            continue
        fixed += 1
        again = checked(name, report.fixed_text, **known)
        was, now = asked(report, 2 * MIB), asked(again, 2 * MIB)
        fixes = [problem.fix for problem in report.problems if problem.edits]
        assert now <= was * 1.05 or all(f"asks for {format_bytes(now)[:1]}" in fix for fix in fixes), (text, fixes)
        assert memory is None or now <= max(was, memory), text
        assert not again.problems or again.fixed_text is None, (text, report.fixed_text)
        new = {p.rule.id for p in again.problems if p.rule.severity is Severity.WRONG} - {
            p.rule.id for p in report.problems
        }
        assert not new, (text, report.fixed_text, new)
    assert fixed > 10


@pytest.mark.parametrize("memory", [None, 64 * GIB])
def test_a_count_that_may_be_meant_as_it_is_keeps_its_pages(memory: int | None) -> None:
    text = 'GRUB_CMDLINE_LINUX="quiet hugepages=512 hugepagesz=1G"\n'
    report = checked("grub", text, mem_total_bytes=memory)
    assert (report.fixed_text, [p for p in report.problems if p.edits]) == (None, [])
    assert "Write hugepagesz=1G hugepages=512, or hugepagesz=2M in front to keep these." in [
        p.fix for p in report.problems
    ]


def test_what_memory_does_not_hold_is_not_written() -> None:
    report = checked("a.conf", "vm.nr_hugepage = 40000\n", mem_total_bytes=64 * GIB)
    assert report.fixed_text is None
    assert [p.fix for p in report.problems] == [
        "Write vm.nr_hugepages. The file then asks for 78.1 GiB of huge pages, not for 0 B."
        " --fix does not write it, because of memory, sysctl-more-than-memory."
    ]


@pytest.mark.parametrize(
    "line",
    [
        "w /sys/kernel/mm/hugepages/hugepages-2M/nr_hugepages - - - - 1000000",
        "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages 1000000",
        "d /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 1000000",
    ],
)
def test_a_line_that_writes_nothing_asks_for_nothing_until_it_is_fixed(line: str) -> None:
    """Found: --fix made such a line write 1.91 TiB on a node of 64 GiB, without a word."""
    report = checked("a.conf", f"{line}\n", mem_total_bytes=64 * GIB)
    assert [reading.effects for reading in report.readings] == [()]
    assert report.fixed_text is None
    assert all(problem.fix.endswith(" --fix does not write it, because of memory.") for problem in report.problems)
    report = checked("a.conf", f"{line}\n")
    assert "The file then asks for 1.91 TiB of huge pages, not for 0 B." in report.problems[0].fix
    assert report.fixed_text is not None
