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
    made["command"], made["profile"] = "latency", "quick"
    made["latency"] = {"status": "ok", "reason": None, "curves": [], "paired_deltas": []}
    suite.validate(made)
    made["latency"]["pressure"] = PRESSURE
    suite.validate(made)
    for name, change in PRESSURE_BREAKS.items():
        broken = copy.deepcopy(made)
        change(broken["latency"]["pressure"])
        assert suite.schema_problems(broken), f"{name} passed"


POINT = {
    "x": 65536,
    "ns_min": 1.0,
    "ns_p10": 1.1,
    "ns_p50": 1.2,
    "ns_p90": 1.3,
    "ns_mad": 0.1,
    "batches": 5,
    "dropped": 0,
}
CURVE = {
    "name": "latency line_per_page 2M",
    "x_name": "footprint_bytes",
    "backing": "2M",
    "backing_kind": "hugetlb",
    "page_bytes": 2097152,
    "layout": "line_per_page",
    "granted_fraction": 1,
    "status": "ok",
    "reason": None,
    "points": [POINT],
}
WALKS = {
    "status": "ok",
    "reason": None,
    "cpu_node": 0,
    "curves": [
        {**CURVE, "name": f"walks {name} 4K", "x_name": name, "footprint_bytes": 134217728}
        for name in ("chases", "numa_node", "table_bytes", "stride_bytes")
    ],
    "duration_seconds": 1.5,
}
ROW = {
    "row_bytes": 128,
    "keys": "uniform",
    "read": "header",
    "workers": 8,
    "mode": "processes",
    "backing": "4K",
    "backing_kind": "base",
    "page_bytes": 4096,
    "segment_bytes": 268435456,
    "rows_per_second": 1e6,
    "ns_p50": 100,
    "ns_p90": 200,
    "ns_p99": 300,
    "vm_pte_bytes_per_process": 524288,
    "vm_pte_bytes_total": 4194304,
    "first_touch_seconds": 0.1,
    "status": "ok",
    "reason": None,
}
BREAK_EVEN = {
    "page_bytes": 2097152,
    "segment_bytes": 268435456,
    "connections": 4,
    "connections_per_idle_page": 4,
    "saved_bytes_per_connection": 524288,
    "rounding_bytes": 0,
    "idle_pool_bytes": 0,
    "text": "2M pages save 512 KiB per connection",
}
DELTA = {
    "backing": "2M",
    "layout": "line_per_page",
    "x": 65536,
    "delta_ns": -1,
    "ci95_low_ns": -2,
    "ci95_high_ns": -0.5,
    "pairs": 5,
}


def measured() -> Any:
    """A document as `run` writes it: every part is there."""
    made = example()
    made["command"], made["profile"] = "run", "quick"
    made["rss_outside_bytes"] = 3588096
    made["sections"] = [
        {"name": name, "status": "ok", "reason": None, "duration_seconds": 1.5}
        for name in ("geometry", "latency", "rows", "scatter")
    ]
    part = {"status": "ok", "reason": None, "peak_mapped_bytes": 4194304}
    made["geometry"] |= {
        "method": "aliased",
        "alias_cost_ns": 0.1,
        "core_alone_fraction": 0.75,
        "coalescing_seen": False,
        "coalescing": "no",
        "counted_walks": {
            "status": "ok",
            "reason": None,
            "held_pages": 2073,
            "held_fraction": 0.001,
            "missed_pages": 6758,
            "missed_fraction": 0.97,
        },
        "peak_mapped_bytes": 4194304,
        "effective_granule": [
            {
                "backing": "THP",
                "backing_kind": "thp",
                "page_bytes": 2097152,
                "granule_bytes": 4096,
                "status": "fractured",
                "reason": "one TLB entry covers 4096 bytes",
            }
        ],
        "penalty": [{"level": "l2_hit", "page_bytes": 4096, "ns": 1.6, "ns_min": 1.5, "ns_max": 1.7, "cycles": 7}],
        "clock": {"core_hz": 4e9, "l1_hit_ns": 1, "l1_hit_cycles": 4},
        "curves": [{**CURVE, "x_name": "pages"}],
    }
    made["latency"] = {**part, "curves": [CURVE], "paired_deltas": [DELTA], "pressure": PRESSURE, "walks": WALKS}
    made["rows"] = {**part, "measurements": [ROW], "break_even": [BREAK_EVEN]}
    made["scatter"] = {
        **part,
        "crossing": {"hot_lines": 64, "status": "ok", "backing": "2M", "tested_min": 4, "tested_max": 256},
        "curves": [{**CURVE, "x_name": "hot_lines"}],
    }
    return copy.deepcopy(made)


# Fields that documents of this schema_version may lack: they came later, or depend on something else.
MAY_LACK = {
    "environment.conditions",
    "cgroup.memory_limit_name",
    "cgroup.cpu_quota",
    "sizes.cgroup_left_bytes",
    "numa_nodes.mem_reclaimable_bytes",
    "ways_max",
    "latency.pressure",
    "latency.walks",
    "walks.duration_seconds",
    "curves.footprint_bytes",
    "thp.multi_size",
    "conditions.second_level_cache_bytes",
    "environment.processes",
    "pressure.duration_seconds",
    "rss_outside_bytes",
    "peak_mapped_bytes",
    "geometry.method",
    "geometry.alias_cost_ns",
    "geometry.core_alone_fraction",
    "geometry.coalescing_seen",
    "geometry.counted_walks",
    "geometry.coalescing",
    "measurements.backing_kind",
    "crossing.backing",
    "break_even.connections_per_idle_page",
    "break_even.saved_bytes_per_connection",
    "break_even.rounding_bytes",
    "break_even.idle_pool_bytes",
    "values.cpuid",
    "values.catalogue",
}


def places(made: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every field of the document, of lists only the first item."""
    found = [path] if path else []
    items = made.items() if isinstance(made, dict) else list(enumerate(made))[:1] if isinstance(made, list) else []
    for key, value in items:
        found += places(value, (*path, key))
    return found


def first_items(made: Any) -> Any:
    """The document with one item in each list: the others are checked as the first is, and take their time.

    All sections stay: each asks for its part of the document.
    """
    if isinstance(made, dict):
        return {key: value if key == "sections" else first_items(value) for key, value in made.items()}
    return [first_items(item) for item in made[:1]] if isinstance(made, list) else made


def name_of(path: tuple[Any, ...]) -> tuple[str, str]:
    """The field's name, and with that of what holds it."""
    words = [str(key) for key in path if not isinstance(key, int)]
    return words[-1], ".".join(words[-2:])


def wrong_values(field: str, kept: Any) -> dict[str, Any]:
    """What must not stand where `kept` stands, by name."""
    wrong: dict[str, Any] = {"object": {} if isinstance(kept, dict) else {"x": 1}, "infinity": float("inf")}
    if isinstance(kept, str):
        wrong |= {"number": 7, "empty": ""}
    elif isinstance(kept, bool):
        wrong |= {"text": "yes"}
    elif isinstance(kept, (int, float)):
        wrong |= {"text": str(kept), "true": True}
        if field not in ("delta_ns", "ci95_low_ns", "ci95_high_ns", "alias_cost_ns"):
            wrong["negative"] = -1
    elif isinstance(kept, (list, dict)):
        wrong |= {"text": "x", "null": None}
    return wrong


def every_field_is_guarded() -> None:
    """Mutation: no field of a real document can be dropped, become an object, an infinity or a wrong sign unseen."""
    whole = first_items(measured())
    suite.validate(whole)
    passed = []
    for path in places(whole):
        holder = whole
        for key in path[:-1]:
            holder = holder[key]
        kept = holder[path[-1]]
        field, full = name_of(path)
        if isinstance(holder, dict) and not MAY_LACK & {field, full}:
            del holder[path[-1]]
            if suite.is_valid(whole):
                passed.append((".".join(map(str, path)), "dropped"))
        for name, value in wrong_values(field, kept).items():
            holder[path[-1]] = value
            if full not in MAY_BE.get(name, ()) and suite.is_valid(whole):
                passed.append((".".join(map(str, path)), name))
        holder[path[-1]] = kept
    assert not passed, passed


# A null clock was not measured; a memory-only node has no CPUs; ways are a word or a number.
MAY_BE = {
    "null": {"geometry.clock", "latency.pressure"},
    "empty": {"numa_nodes.cpus", "processes.name"},
    "number": {"levels.ways", "structures.ways"},
}


def values_follow_the_status() -> None:
    """Something that is "ok" has its numbers, something else its reason."""
    for name, change in {
        "a granule without its size": replace(["geometry", "effective_granule", 0, "granule_bytes"], None),
        "a curve without points": replace(["latency", "curves", 0, "points"], []),
        "a point without its median": replace(["latency", "curves", 0, "points", 0, "ns_p50"], None),
        "rows without their speed": replace(["rows", "measurements", 0, "rows_per_second"], None),
        "no rows per second": replace(["rows", "measurements", 0, "rows_per_second"], 0),
        "a crossing that is nowhere": replace(["scatter", "crossing", "hot_lines"], None),
        "a crossing that was not reached": replace(["scatter", "crossing", "status"], "not_reached"),
        "a section without its reason": replace(["sections", 0, "status"], "stopped"),
        "entries without their interval": replace(["geometry", "levels", 0, "entries_min"], None),
        "a clock of no speed": replace(["geometry", "clock", "core_hz"], 0),
        "a run without a profile": replace(["profile"], None),
        "no sections": replace(["sections"], []),
        "a backing that is none": replace(["latency", "curves", 0, "backing"], "huge"),
        "no memory": replace(["environment", "memory", "mem_total_bytes"], 0),
    }.items():
        made = measured()
        change(made)
        assert suite.schema_problems(made), f"{name} passed"


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
    """The names that the sources print are exactly those that the schema lists."""
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((suite.HOME / "src").rglob("*.c")))
    definitions = schema()["$defs"]
    for prefix, listed in {
        "STATUS_": definitions["status"]["enum"],
        "SOURCE_": definitions["source"]["enum"],
        "CONFIDENCE_": definitions["confidence"]["enum"],
        "TLB_": definitions["kind"]["enum"],
        "BACKING_": definitions["backing_kind"]["enum"],
    }.items():
        printed = re.findall(rf"\[{prefix}\w+\] = {{?\"(\w+)\"", source)
        assert sorted(printed) == sorted(listed), f"{prefix}: printed {printed}, listed {listed}"


if __name__ == "__main__":
    suite.main(
        "schema",
        [
            ("is a schema", is_a_schema),
            ("broken documents are caught", breaks_are_caught),
            ("the pressure is checked, and may be absent", pressure_is_checked),
            ("every field is guarded", every_field_is_guarded),
            ("values follow the status", values_follow_the_status),
            ("extra fields are allowed", extra_fields_are_allowed),
            ("names match the source", names_match_the_source),
        ],
    )
