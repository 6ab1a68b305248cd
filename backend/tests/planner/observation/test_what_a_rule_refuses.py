"""A running server whose settings or version no rule accepts is read as far as it can be."""

from __future__ import annotations

import pytest

from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import GIB, DatabaseInstance, ObservedDatabase, ObservedSegment
from hugeplan.planner.observation.databases import (
    as_instance,
    canonical_engine,
    instance_names,
    pages_as_set,
    pages_of,
    pool_bytes_of,
    server_name,
)

CONTEXT = DemandContext()


def server(engine: str = "postgresql", **fields: object) -> ObservedDatabase:
    return ObservedDatabase(**{"key": "k", "engine": engine} | fields)


def test_a_setting_and_a_version_that_the_rule_refuses_are_left_out() -> None:
    found = as_instance(
        server(version="99", settings={"shared_buffers": "8GB", "max_connections": "many"}), "main", CONTEXT
    )
    assert (found.version, found.settings) == (None, {"shared_buffers": "8GB"})
    assert pool_bytes_of(found, CONTEXT) == 8 * GIB
    assert pool_bytes_of(DatabaseInstance(name="a", engine="postgresql", version="99"), CONTEXT) is None


def test_an_engine_without_rules_keeps_its_name_and_takes_no_pages() -> None:
    other = server("tarantool", port=3301)
    assert canonical_engine("tarantool") == "tarantool"
    assert as_instance(other, "t", CONTEXT).settings == {}
    assert pages_as_set(other, CONTEXT) == {}
    assert server_name(other) == "tarantool on port 3301"


@pytest.mark.parametrize(
    ("fields", "pages"),
    [
        ({"settings": {"shared_buffers": "8GB"}, "huge_pages_status": "off"}, {}),
        ({"settings": {"shared_buffers": "8GB", "huge_pages": "off"}}, {}),
    ],
)
def test_pages_that_a_server_would_take(fields: dict[str, object], pages: dict[int, int]) -> None:
    assert pages_as_set(server(**fields), CONTEXT) == pages
    (count,) = pages_as_set(server(settings={"shared_buffers": "8GB", "huge_pages": "try"}), CONTEXT).values()
    assert 4096 < count < 4400


def test_pages_that_a_server_maps() -> None:
    size = CONTEXT.default_huge_page_bytes
    segments = tuple(ObservedSegment(bytes=size, backing="hugetlb", page_bytes=page) for page in (size, None))
    assert pages_of(server(segments=segments), size) == {size: 2}
    assert pages_of(server(hugetlb_bytes=3 * size - 1), size) == {size: 3}
    assert pages_of(server(hugetlb_bytes=0), size) == {}
    assert pages_of(server(), size) is None


def test_servers_of_one_engine_are_told_apart_by_port_then_pid_then_place() -> None:
    same = [server(key=str(n), port=5432, pid=pid) for n, pid in enumerate((11, None))]
    named = instance_names([*same, server(key="2", port=5433), server("mysql", key="3")])
    assert named == {"0": "postgresql-pid-11", "1": "postgresql-2", "2": "postgresql-5433", "3": "mysql"}
