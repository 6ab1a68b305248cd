"""A fix asks for no more memory than the file did: random files of the kinds that lint fixes."""

from __future__ import annotations

import random

import pytest

from hugeplan.lint import Context, FileReport, Source, lint
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, Demand


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
            assert more <= 0 or "The pool grows by up to" in problem.fix, (text, version)
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
