"""A TuneD profile: pools on the command line, and THP as it is, which the profile that it includes turns on for all."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, one_line, pool_checks, put, put_back
from hugeplan.artifacts.kernel_command_line import has_words, parameters
from hugeplan.planner.model import Plan, PlanRequest

PATH = "/etc/tuned/hugeplan/tuned.conf"
_BEFORE = "echo throughput-performance"


def profile_text(plan: Plan, request: PlanRequest) -> str:
    """tuned.conf: includes throughput-performance, which the database profiles build on too."""
    words = parameters(plan, request)
    thp = request.node.thp_enabled or "madvise"
    lines = [
        f"# {PATH}: pools of {one_line(plan.node)}",
        "[main]",
        "summary=Huge pages by hugeplan",
        "include=throughput-performance",
        "",
        *(() if "transparent_hugepage=" in words else ("[vm]", f"transparent_hugepages={thp}", "")),
        "[bootloader]",
        f"cmdline_hugeplan=+{words}",
        "",
    ]
    return "\n".join(lines)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The profile, when the plan reserves anything."""
    if not has_words(plan, request):
        return
    content = profile_text(plan, request)
    yield Artifact(
        kind="tuned_profile",
        filename="tuned.conf",
        path=PATH,
        content=content,
        summary="Reserves the pools at boot through TuneD, on nodes whose command line TuneD manages.",
        install=all_of([put("tuned.conf", PATH, content), "tuned-adm profile hugeplan", "reboot"]),
        verify=all_of(["tuned-adm active | grep -qw hugeplan", *pool_checks(plan)]),
        rollback="# throughput-performance, or the profile that was active before:\n"
        + put_back(PATH, content, f"tuned-adm profile $(test -e {PATH} && echo hugeplan || {_BEFORE})", last="reboot"),
        restart=Restart.REBOOT,
        avoid_when="Another tool writes the command line: one owner only.",
    )
