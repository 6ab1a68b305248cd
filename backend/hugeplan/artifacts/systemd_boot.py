"""Kernel command line for systemd-boot and unified kernel images: words that are joined with /etc/kernel/cmdline.

kernel-install and ukify read that one file (systemd src/kernel-install/90-loaderentry.install); they know no folder of
drop-ins, so the words are merged into it and the file that was there is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, mark, pool_checks, put, put_back
from hugeplan.artifacts.kernel_command_line import has_words, parameters, pool_words
from hugeplan.planner.model import Plan, PlanRequest

FILENAME = "60-hugeplan-cmdline.conf"
CMDLINE = "/etc/kernel/cmdline"
#: What a loader adds by itself, and the words whose order counts: all of them come from the plan.
_REPLACED = (
    "BOOT_IMAGE|initrd|default_hugepagesz|hugepagesz|hugepages|hugetlb_free_vmemmap|transparent_hugepage|hugeplan.files"
)
_RUNNING = '{ for (i = 1; i <= NF; i++) if ($i !~ /^(BOOT_IMAGE|initrd)=/) printf "%s ", $i; print "" }'
_ENTRIES = (
    'for image in "/usr/lib/modules/$(uname -r)/vmlinuz" "/boot/vmlinuz-$(uname -r)"; do\n'
    '  if test -e "$image"; then break; fi\n'
    "done\n"
    'kernel-install add "$(uname -r)" "$image" || exit 1'  # it says which image is not there
)
_NO_ROOT = 'echo "the node booted with a root=, $now has none: it is left as it is" >&2; exit 1'


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The words alone, and commands that merge them."""
    if not has_words(plan, request):
        return
    words = pool_words(plan, request)
    names = " ".join(parameters(plan, request).split())
    content = f"{names}\n"
    # The file has no comments: a word says whose it is. With a point in its name the kernel takes it for a module's.
    new = f'"$words hugeplan.files={mark(content)} $rest"'
    others = f'{{ for (i = 1; i <= NF; i++) if ($i ~ /^({_REPLACED})=/) continue; else printf "%s ", $i }}'
    yield Artifact(
        kind="systemd_boot",
        filename=FILENAME,
        path=None,
        content=content,
        summary="Reserves all pools at boot on nodes that start by systemd-boot or a unified kernel image.",
        install=(
            # In a subshell: its variables are none of whoever pastes them.
            f"(\nnow={CMDLINE}\n"
            "test -e $now || now=/usr/lib/kernel/cmdline\n"
            # Without a file kernel-install takes the running line, which is the plan's after the reboot.
            f"if test ! -e $now; then\n  now={CMDLINE}\n  mkdir -p {CMDLINE.rpartition('/')[0]} &&\n"
            f"  awk '{_RUNNING}' /proc/cmdline > $now.part && mv $now.part $now || exit 1\nfi\n"
            # One program each, whose failure is seen: a node does not boot by half of its words.
            f"words=$(grep -v '^#' {FILENAME}) && rest=$(awk '{others}' $now) || exit 1\n"
            f'case " $rest" in *" root="*) ;; *)'
            f' if grep -qE "(^|[[:space:]])root=" /proc/cmdline; then {_NO_ROOT}; fi ;; esac\n'
            # In front: what comes behind -- is for init.
            f"printf '%s\\n' {new} | {put('/dev/stdin', CMDLINE, content)} || exit 1\n{_ENTRIES}\n) &&\nreboot"
        ),
        verify=all_of([f"grep -qw -- {word} /proc/cmdline" for word in words] + pool_checks(plan)),
        rollback=put_back(CMDLINE, content, f"(\n{_ENTRIES}\n)", last="reboot"),
        restart=Restart.REBOOT,
        avoid_when="The node boots by GRUB.",
    )
