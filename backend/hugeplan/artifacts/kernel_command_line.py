"""Kernel command line for GRUB: the pools reserved at boot, in the order that mm/hugetlb.c parses.

Each hugepages= follows its hugepagesz=; counts per NUMA node are written ``node:count`` (Linux 5.16 and later) and
never mixed with plain counts. The linter reads the words back to the plan's pools (tests/artifacts).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hugeplan.artifacts.base import (
    INSTALLER,
    Artifact,
    Restart,
    all_of,
    mark,
    one_line,
    pages_by_size,
    pool_checks,
    put,
    put_back,
)
from hugeplan.planner.memory.kernel_parameters import kernel_version
from hugeplan.planner.memory.kernel_replay import MAX_HSTATES
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import page_label

PATH = "/etc/default/grub.d/60-hugeplan.cfg"
COUNTS_PER_NODE_SINCE = (5, 16)
_WITHOUT_OTHERS = (
    "for words in GRUB_CMDLINE_LINUX GRUB_CMDLINE_LINUX_DEFAULT; do",
    r"""  eval "$words=\$(printf '%s\n' \"\${$words-}\" | """  # dash's echo reads backslashes
    r"""sed -E 's/(^|[[:space:]])((default_)?hugepagesz|hugepages)=[^[:space:]]*//g')" """[:-1],
    "done",
)
#: GRUB's own program reads no such folder; Debian's does, and those of who took its change over.
IS_READ: Final = 'grep -qs default/grub.d "$(command -v grub-mkconfig || command -v grub2-mkconfig)"'
_REBOOT: Final = " &&\nreboot"
_SAY: Final = 'echo "GRUB reads no /etc/default/grub.d here: plan for run time (policy.reserve_at)" >&2; false'
#: Ends with an error where GRUB does not read the file.
MUST_BE_READ: Final = f"{{ {IS_READ} || {{ {_SAY}; }}; }}"
#: What each distribution runs after a change of GRUB's defaults.
UPDATE = "if command -v update-grub > /dev/null; then update-grub; else grub2-mkconfig -o /boot/grub2/grub.cfg; fi"


def pool_words(plan: Plan, request: PlanRequest) -> list[str]:
    """The huge page words alone: ``default_hugepagesz=2M hugepagesz=2M hugepages=0:512,1:512``.

    The default size comes first, so that Linux 6.15, which keeps a limited number of words, drops the least.
    """
    node = request.node
    default = node.default_huge_page_bytes
    sizes = {size: by_node for size, by_node in pages_by_size(plan).items() if any(by_node.values())}
    words = [f"default_hugepagesz={page_label(default)}"]
    for size, by_node in sorted(sizes.items(), key=lambda item: (item[0] != default, item[0])):
        counts = ",".join(f"{numa}:{pages}" for numa, pages in by_node.items() if pages)
        words.append(f"hugepagesz={page_label(size)}")
        words.append(f"hugepages={sum(by_node.values()) if len(node.numa) == 1 else counts}")
    return words


def parameters(plan: Plan, request: PlanRequest) -> str:
    """All parameters of the plan: pools, HVO where a finding asks for it, THP where it is ``always``."""
    words = pool_words(plan, request)
    if wants_hvo(plan, request):
        words.append("hugetlb_free_vmemmap=on")
    if request.node.thp_enabled == "always" and any(i.page_bytes for i in plan.instances):
        words.append("transparent_hugepage=madvise")
    return " ".join(words)


def wants_hvo(plan: Plan, request: PlanRequest) -> bool:
    """Whether HVO is off and the plan's finding says what it would return."""
    return request.node.hvo_enabled is False and any(
        finding.code == "hvo_off" and finding.fix is not None for finding in plan.findings
    )


def has_pages(plan: Plan) -> bool:
    """Whether the plan reserves any page."""
    return any(pages for by_node in pages_by_size(plan).values() for pages in by_node.values())


def has_words(plan: Plan, request: PlanRequest) -> bool:
    """The same, where the kernel is not known to read no counts per NUMA node: before 5.16 they are no pages at all."""
    version = kernel_version(request.node.kernel_release)
    return has_pages(plan) and (len(request.node.numa) == 1 or version is None or version >= COUNTS_PER_NODE_SINCE)


def remarks(plan: Plan, request: PlanRequest) -> list[str]:
    """Comments that every file with the command line carries."""
    lines = []
    if len(request.node.numa) > 1:
        lines.append("Counts per NUMA node (node:count) need Linux 5.16 or later.")
    if len(pool_words(plan, request)) > 2 * MAX_HSTATES.get(request.node.arch, 1) + 1:
        lines.append("Linux 6.15 and later keep fewer words than these: reserve the last size by the systemd unit.")
    return lines


def where_read(commands: str) -> str:
    """The commands, none of which runs where GRUB does not read the file."""
    return f"if {IS_READ}; then\n{commands}\nelse {_SAY}; fi"


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """A GRUB fragment, when the plan reserves anything."""
    if not has_words(plan, request):
        return
    lines = [
        f"# {PATH}: pools of {one_line(plan.node)}, reserved at boot",
        *(f"# {line}" for line in remarks(plan, request)),
        "# Other such words go: the kernel reads them in order, and takes each size once.",
        *_WITHOUT_OTHERS,
        f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {parameters(plan, request)}"',
        "",
    ]
    words, content = pool_words(plan, request), "\n".join(lines)
    yield Artifact(
        kind="kernel_command_line",
        filename="60-hugeplan.cfg",
        path=PATH,
        content=content,
        summary="Reserves all pools at boot, before memory is fragmented.",
        install=all_of([put("60-hugeplan.cfg", PATH, content), UPDATE, "reboot"]),
        verify=all_of([f"grep -qw -- {word} /proc/cmdline" for word in words] + pool_checks(plan)),
        rollback=put_back(PATH, content, UPDATE, last="reboot"),
        restart=Restart.REBOOT,
        avoid_when="The node does not boot by GRUB, or its boot loader does not read /etc/default/grub.d.",
    )


def alone(artifact: Artifact, path: str) -> tuple[str, Artifact]:
    """The command that puts the counts aside that an earlier plan has boot write in files of other kinds; and the file
    at ``path``, whose own commands do so, and put them back.
    """
    file = f"{mark(artifact.content)} {path}"
    away = f"{INSTALLER} alone {file}"
    # They go when this one is in its place: what ends before that leaves what reserved the pages so far.
    install, reboots, _ = artifact.install.partition(_REBOOT)
    install += f" &&\n{away}" + reboots
    if artifact.kind == "kernel_command_line":
        install = where_read(install)
    rollback = artifact.rollback.replace(f"{INSTALLER} back {file}", f"{INSTALLER} back-alone {file}")
    return away, replace(artifact, install=install, rollback=rollback)
