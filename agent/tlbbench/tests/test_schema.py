"""tlbbench.schema.json itself: well formed, and strict enough to catch what it is there for."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import suite


def is_a_schema() -> None:
    try:
        import jsonschema
    except ImportError as missing:
        raise suite.Skip("the Python package jsonschema is not installed") from missing
    jsonschema.Draft202012Validator.check_schema(schema())


def schema() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((suite.HOME / "tlbbench.schema.json").read_text(encoding="utf-8"))
    return made


def replace(path: list[Any], value: Any) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        for key in path[:-1]:
            made = made[key]
        made[path[-1]] = value

    return change


def remove(path: list[Any]) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        for key in path[:-1]:
            made = made[key]
        del made[path[-1]]

    return change


BREAKS = {
    "another schema version": replace(["schema_version"], 2),
    "an unknown command": replace(["command"], "guess"),
    "an exit status that is no document's": replace(["exit_status"], 1),
    "a time without a zone": replace(["started_at"], "2026-11-20 12:00:00"),
    "zero entries for unknown": replace(["geometry", "levels", 0, "entries"], 0),
    "a page of no bytes": replace(["geometry", "levels", 0, "page_bytes"], 0),
    "an invented source": replace(["geometry", "levels", 0, "source"], "guess"),
    "ways in words": replace(["geometry", "levels", 0, "ways"], "many"),
    "a status that is not listed": replace(["geometry", "status"], "fine"),
    "no reason field": remove(["geometry", "reason"]),
    "no environment": remove(["environment"]),
    "info without geometry": remove(["geometry"]),
    "a count as text": replace(["environment", "memory", "mem_total_bytes"], "24 GiB"),
    "a negative count": replace(["environment", "memory", "mem_total_bytes"], -1),
    "a cgroup version of the future": replace(["environment", "cgroup", "version"], 3),
    "a disagreement of one": replace(["geometry", "disagreements", 0, "values"], {"cpuid": 1}),
}


PRESSURE = {
    "status": "ok",
    "reason": None,
    "region_bytes": 536870912,
    "region_backing": "THP",
    "lines_per_page": 16,
    "points": [
        {
            "backing": "2M",
            "backing_kind": "hugetlb",
            "page_bytes": 2097152,
            "footprint_bytes": 67108864,
            "lines_between": 0,
            "wait_ns": 0,
            "period_ns": 1000.0,
            "base_ns_p50": 144.5,
            "ns_p50": 140,
            "delta_ns": -4.5,
            "ci95_low_ns": -6,
            "ci95_high_ns": -3,
            "pairs": 6,
        }
    ],
}
PRESSURE_BREAKS = {
    "no status": remove(["status"]),
    "no points": remove(["points"]),
    "a point without its footprint": remove(["points", 0, "footprint_bytes"]),
    "a page of no bytes": replace(["points", 0, "page_bytes"], 0),
    "less than no lines": replace(["points", 0, "lines_between"], -1),
    "a point without its period": remove(["points", 0, "period_ns"]),
    "a wait into the past": replace(["points", 0, "wait_ns"], -1),
    "an unknown kind": replace(["points", 0, "backing_kind"], "slab"),
    "a point of no pairs": replace(["points", 0, "pairs"], 0),
    "a difference in words": replace(["points", 0, "delta_ns"], "-4.5 ns"),
}


def pressure_is_checked() -> None:
    """Documents of programs before the pressure are valid, and so are those with it; broken ones are not."""
    made = example()
    made["latency"] = {"status": "ok", "reason": None, "curves": [], "paired_deltas": []}
    suite.validate(made)
    made["latency"]["pressure"] = PRESSURE
    suite.validate(made)
    for name, change in PRESSURE_BREAKS.items():
        broken = copy.deepcopy(made)
        change(broken["latency"]["pressure"])
        assert suite.schema_problems(broken), f"{name} passed"


def example() -> Any:
    with suite.temporary() as directory:
        return suite.document("info", "--root", suite.unpack("cgroup-v1", directory))


def breaks_are_caught() -> None:
    whole = example()
    for name, change in BREAKS.items():
        broken = copy.deepcopy(whole)
        change(broken)
        assert suite.schema_problems(broken), f"{name} passed"


def extra_fields_are_allowed() -> None:
    made = example()
    made["later"] = {"x": 1}
    made["geometry"]["levels"][0]["later"] = True
    suite.validate(made)


def names_match_the_source() -> None:
    """The names that results.c prints are exactly those that the schema lists."""
    source = (suite.HOME / "src" / "results.c").read_text(encoding="utf-8")
    definitions = schema()["$defs"]
    for prefix, listed in {
        "STATUS_": definitions["status"]["enum"],
        "SOURCE_": definitions["source"]["enum"],
        "CONFIDENCE_": definitions["confidence"]["enum"],
        "TLB_": definitions["kind"]["enum"],
        "BACKING_": definitions["backing_kind"]["enum"],
    }.items():
        printed = re.findall(rf"\[{prefix}\w+\] = \"(\w+)\"", source)
        assert sorted(printed) == sorted(listed), f"{prefix}: printed {printed}, listed {listed}"


if __name__ == "__main__":
    suite.main(
        "schema",
        [
            ("is a schema", is_a_schema),
            ("broken documents are caught", breaks_are_caught),
            ("the pressure is checked, and may be absent", pressure_is_checked),
            ("extra fields are allowed", extra_fields_are_allowed),
            ("names match the source", names_match_the_source),
        ],
    )
