"""An Ansible playbook: the GRUB fragment or the unit with its script, a reboot where it is needed, and the check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hugeplan.artifacts import kernel_command_line, numa_files, systemd_unit
from hugeplan.artifacts.base import (
    INSTALLER,
    Artifact,
    Restart,
    Verbatim,
    all_of,
    mark,
    planned_pools,
    pool_checks,
    put_back,
    yaml_text,
)
from hugeplan.artifacts.installer import text
from hugeplan.artifacts.kernel_command_line import alone
from hugeplan.artifacts.outside import is_plain_host
from hugeplan.planner.model import Plan, PlanRequest

#: A group of the inventory may have the node's name: its other hosts are not the planned ones.
_ONLY_PLANNED = {
    "name": "Only the planned hosts, even where a group has the same name",
    "ansible.builtin.assert": {"that": "inventory_hostname in planned_hosts", "quiet": True},
}


#: It keeps what stood in a file's place.
_PROGRAM = {
    "name": "Program that keeps files and takes them back",
    "ansible.builtin.copy": {"dest": INSTALLER, "content": Verbatim(text()), "mode": "0755"},
}


def _copy(title: str, path: str, content: str, mode: str, register: str) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{title}: an earlier plan's stays beside it",
            "ansible.builtin.command": Verbatim(f"{INSTALLER} keep {mark(content)} {path}"),
            "changed_when": False,
        },
        {
            "name": title,
            "ansible.builtin.copy": {"dest": path, "content": Verbatim(content), "mode": mode},
            "register": register,
        },
    ]


def _boot_tasks(grub: Artifact, words: Sequence[str], others: dict[str, Any]) -> list[dict[str, Any]]:
    """What follows the copy depends on the node: a run may have ended right after it."""
    of_pages = [word for word in words if "hugepages" in word]
    found = "$(grep -oE '((default_)?hugepagesz|hugepages)=[^[:space:]]*' /proc/cmdline | xargs)"
    started = [f'test "{found}" = "{" ".join(of_pages)}"', *(f"grep -qw -- {word} /proc/cmdline" for word in words)]
    return [
        {
            "name": "Folder of GRUB fragments",
            "ansible.builtin.file": {"path": "/etc/default/grub.d", "state": "directory", "mode": "0755"},
        },
        *_copy("Kernel command line", kernel_command_line.PATH, grub.content, "0644", "command_line"),
        {
            "name": "Write GRUB's configuration",
            "ansible.builtin.shell": kernel_command_line.UPDATE,
            "changed_when": False,
        },
        others,
        {
            "name": "Words that the kernel was started with",
            "ansible.builtin.shell": all_of(started),
            "register": "started",
            "failed_when": False,
            "changed_when": False,
        },
        {"name": "Reboot", "ansible.builtin.reboot": {}, "when": "started.rc != 0"},
    ]


def _run_time_tasks(unit: Artifact, script: Artifact) -> list[dict[str, Any]]:
    return [
        *_copy("Script that reserves the pages", numa_files.SCRIPT_PATH, script.content, "0755", "script"),
        *_copy("Unit", systemd_unit.PATH, unit.content, "0644", "unit"),
        {
            "name": "Enable the unit and run it",
            "ansible.builtin.systemd_service": {
                "name": systemd_unit.NAME,
                "enabled": True,
                "daemon_reload": True,
                "state": "restarted",
            },
            "changed_when": "script.changed or unit.changed",
        },
    ]


def render(plan: Plan, request: PlanRequest, files: Mapping[str, Artifact] | None = None) -> Iterable[Artifact]:
    """The playbook, when the plan changes any pool; none for a node whose name Ansible reads in a way of its own.

    ``files``: those that it copies, by kind; None: as they are rendered.
    """
    if not planned_pools(plan) or not is_plain_host(plan.node):
        return
    at_boot = request.policy.reserve_at == "boot" and kernel_command_line.has_words(plan, request)
    renderers = (kernel_command_line.render, systemd_unit.render, numa_files.render)
    files = files or {a.kind: a for each in renderers for a in each(plan, request)}
    script = files["numa_script"]
    own = files["kernel_command_line" if at_boot else "systemd_unit"]
    away, way = alone(own, str(own.path))
    read = {"name": "GRUB reads fragments here", "ansible.builtin.shell": kernel_command_line.IS_READ}
    tasks = [*([read | {"changed_when": False}] if at_boot else []), _PROGRAM]
    others: dict[str, Any] = {
        "name": "Other counts of an earlier plan",
        "ansible.builtin.command": away,
        "changed_when": False,
    }
    words = kernel_command_line.parameters(plan, request).split()
    tasks += _boot_tasks(way, words, others) if at_boot else [*_run_time_tasks(way, script), others]
    tasks.append(
        {
            "name": "Every pool has the planned count",
            "ansible.builtin.shell": all_of(pool_checks(plan)),
            "changed_when": False,
        }
    )
    play = {
        "name": "Huge pages",
        "hosts": plan.node,
        "become": True,
        "gather_facts": False,
        "vars": {"planned_hosts": [plan.node]},
        "tasks": [_ONLY_PLANNED, *tasks],
    }
    remove = [] if at_boot else [put_back(numa_files.SCRIPT_PATH, script.content)]
    yield Artifact(
        kind="ansible_playbook",
        filename="hugeplan-playbook.yaml",
        media_type="application/yaml",
        content=yaml_text(["hosts and planned_hosts name the planned node: widen both to like nodes."], [play]),
        summary="Installs the recommended file on hosts, restarts what must be, and checks every count.",
        install="ansible-playbook hugeplan-playbook.yaml",
        verify=all_of(pool_checks(plan)),
        rollback="\n".join([way.rollback, *remove]),
        restart=Restart.REBOOT if at_boot else Restart.NOTHING,
        avoid_when="The nodes are managed by a cluster operator that owns the command line.",
    )
