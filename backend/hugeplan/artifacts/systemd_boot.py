"""Kernel command line for systemd-boot and unified kernel images: words that are joined with /etc/kernel/cmdline.

kernel-install and ukify read that one file (systemd src/kernel-install/90-loaderentry.install); they know no folder of
drop-ins, so the words are merged into it and the file that was there is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, mark, pool_checks
from hugeplan.artifacts.kernel_command_line import has_words, parameters, pool_words
from hugeplan.planner.model import Plan, PlanRequest

FILENAME = "60-hugeplan-cmdline.conf"
_CMDLINE = "/etc/kernel/cmdline"
#: What a loader adds by itself, and the words whose order counts: all of them come from the plan.
_REPLACED = "BOOT_IMAGE|initrd|default_hugepagesz|hugepagesz|hugepages|hugetlb_free_vmemmap|transparent_hugepage"
#: The end of commands in a subshell: their variables are none of whoever pastes them.
_ENTRIES = (
    'for image in "/usr/lib/modules/$(uname -r)/vmlinuz" "/boot/vmlinuz-$(uname -r)"; do\n'
    '  if test -e "$image"; then kernel-install add "$(uname -r)" "$image"; break; fi\n'
    "done\nreboot\n)"
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The words alone, and commands that merge them."""
    if not has_words(plan, request):
        return
    words = pool_words(plan, request)
    names = " ".join(parameters(plan, request).split())
    before = f"{_CMDLINE}.before-{mark(names)}"
    yield Artifact(
        kind="systemd_boot",
        filename=FILENAME,
        path=None,
        content=f"{names}\n",
        summary="Reserves all pools at boot on nodes that start by systemd-boot or a unified kernel image.",
        install=(
            f"(\nnow={_CMDLINE}\n"
            "test -e $now || now=/proc/cmdline\n"
            f"rest=$(tr -s ' \\n' '\\n\\n' < $now | grep -Ev '^({_REPLACED})=' | tr '\\n' ' ')\n"
            # In front: what comes behind -- is for init.
            f'new="$(cat {FILENAME}) $rest"\n'
            # Not of itself; an empty copy says that there was no such file.
            f"if test ! -e {_CMDLINE}; then : > {before}\n"
            f'elif test "$new" != "$(cat {_CMDLINE})"; then cp {_CMDLINE} {before}; fi\n'
            f'echo "$new" > {_CMDLINE}\n{_ENTRIES}'
        ),
        verify=all_of([f"grep -qw -- {word} /proc/cmdline" for word in words] + pool_checks(plan)),
        rollback=f"(\nif test -s {before}; then mv {before} {_CMDLINE}\n"
        f"elif test -e {before}; then rm -f {_CMDLINE} {before}; fi\n{_ENTRIES}",
        restart=Restart.REBOOT,
        avoid_when="The node boots by GRUB.",
    )
