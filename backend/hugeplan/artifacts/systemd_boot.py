"""Kernel command line for systemd-boot, unified kernel images and kernel-install: one line of words."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, pool_checks
from hugeplan.artifacts.kernel_command_line import has_pages, parameters, pool_words
from hugeplan.planner.model import Plan, PlanRequest

PATH = "/etc/kernel/cmdline.d/60-hugeplan.conf"


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The words alone, which kernel-install and ukify join with /etc/kernel/cmdline."""
    if not has_pages(plan):
        return
    words = pool_words(plan, request)
    names = " ".join(parameters(plan, request).split())
    yield Artifact(
        kind="systemd_boot",
        filename="60-hugeplan-cmdline.conf",
        path=PATH,
        media_type="text/plain",
        content=f"{names}\n",
        summary="Reserves all pools at boot on nodes that start by systemd-boot or a unified kernel image.",
        install=(
            f"install -D -m 0644 60-hugeplan-cmdline.conf {PATH}\n"
            "test -e /etc/kernel/cmdline || cat /proc/cmdline > /etc/kernel/cmdline\n"
            'kernel-install add "$(uname -r)" "/usr/lib/modules/$(uname -r)/vmlinuz"\nreboot'
        ),
        verify=all_of([f"grep -qw -- {word} /proc/cmdline" for word in words] + pool_checks(plan)),
        rollback=(f'rm -f {PATH}\nkernel-install add "$(uname -r)" "/usr/lib/modules/$(uname -r)/vmlinuz"\nreboot'),
        restart=Restart.REBOOT,
        avoid_when="The node boots by GRUB; kernel-install without cmdline.d needs the words in /etc/kernel/cmdline.",
    )
