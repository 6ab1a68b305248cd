"""cloud-config for cloud images: the command line is written at the first boot, and one reboot follows."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts import kernel_command_line
from hugeplan.artifacts.base import INSTALLER, Artifact, Restart, all_of, pool_checks, yaml_text
from hugeplan.artifacts.installer import text
from hugeplan.planner.model import Plan, PlanRequest


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """User data for cloud-init, when the plan reserves anything."""
    grub = next(iter(kernel_command_line.render(plan, request)), None)
    if grub is None:
        return
    document = {
        "write_files": [
            {"path": kernel_command_line.PATH, "permissions": "0644", "content": grub.content},
            {"path": INSTALLER, "permissions": "0755", "content": text()},
        ],
        "runcmd": [["sh", "-c", kernel_command_line.UPDATE]],
        "power_state": {"mode": "reboot", "message": "huge pages are reserved at boot", "condition": True},
    }
    yield Artifact(
        kind="cloud_config",
        filename="hugeplan-user-data.yaml",
        media_type="text/cloud-config",
        content="#cloud-config\n" + yaml_text([f"Pools of {plan.node}, reserved at the second boot."], document),
        summary="Reserves the pools on a new machine from a cloud image, with one reboot at its first start.",
        install="# give it as the machine's user data when the machine is made",
        verify=all_of(["cloud-init status --wait > /dev/null", *pool_checks(plan)]),
        rollback=grub.rollback,
        restart=Restart.REBOOT,
        avoid_when="The machine exists already: user data runs at the first boot only. Clouds take 16 KiB of it.",
    )
