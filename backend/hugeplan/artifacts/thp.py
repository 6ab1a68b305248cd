"""Transparent huge pages by tmpfiles.d: what engines ask for, and madvise where ``always`` stands beside a pool."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, all_of, one_line, put, put_back
from hugeplan.planner.model import Plan, PlanRequest

PATH = "/etc/tmpfiles.d/61-hugeplan-thp.conf"
_FOLDER = "/sys/kernel/mm/"


def wanted(plan: Plan, request: PlanRequest) -> tuple[dict[str, str], list[str]]:
    """File below /sys/kernel/mm -> value, and comments on engines that ask for different values."""
    asked: dict[str, dict[str, list[str]]] = {}
    for planned in plan.instances:
        for item in planned.demand.settings:
            if item.name.startswith("transparent_hugepage/"):
                asked.setdefault(item.name, {}).setdefault(item.value, []).append(planned.name)
    values, comments = {}, []
    for name, by_value in asked.items():
        if len(by_value) == 1:
            values[name] = next(iter(by_value))
        else:
            said = "; ".join(f"{value} for {', '.join(names)}" for value, names in by_value.items())
            comments.append(f"{name}: engines differ ({said}); madvise lets each ask for itself.")
            if name.endswith("/enabled"):
                values[name] = "madvise"
    enabled = "transparent_hugepage/enabled"
    if enabled not in values and request.node.thp_enabled == "always" and any(i.page_bytes for i in plan.instances):
        values[enabled] = "madvise"
    return values, comments


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The file, when something is asked for."""
    values, comments = wanted(plan, request)
    if not values:
        return
    lines = [f"# {PATH}: transparent huge pages of {one_line(plan.node)}", *(f"# {one_line(c)}" for c in comments)]
    lines += [f"w {_FOLDER}{name} - - - - {value}" for name, value in values.items()]
    checks = [
        f"grep -q '\\[{value}\\]' {_FOLDER}{name}"
        if not value.isdecimal()
        else f'test "$(cat {_FOLDER}{name})" = {value}'
        for name, value in values.items()
    ]
    before = request.node.thp_enabled
    undo = (
        [f"echo {before} > {_FOLDER}transparent_hugepage/enabled"] if before else ["# the previous value is not known"]
    )
    content = "\n".join([*lines, ""])
    yield Artifact(
        kind="thp_tmpfiles",
        filename="61-hugeplan-thp.conf",
        path=PATH,
        content=content,
        summary="Sets transparent huge pages at each boot as the plan's engines want them.",
        install=all_of([put("61-hugeplan-thp.conf", PATH, content), f"systemd-tmpfiles --create {PATH}"]),
        verify=all_of(checks),
        rollback=put_back(PATH, content, *undo),
        avoid_when="transparent_hugepage= on the command line or a TuneD profile sets it already.",
    )
