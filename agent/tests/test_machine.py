"""The identity of a node is stable and never empty."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hugeplan_agent import machine as identity
from hugeplan_agent.host import Host

Machine = Callable[[str], Host]


def test_the_systems_machine_id(machine: Machine, tmp_path: Path) -> None:
    assert identity.machine_id(machine("xeon-two-sockets"), tmp_path) == "0123456789abcdef0123456789abcdef"


def test_without_one_the_firmwares_uuid(machine: Machine, tmp_path: Path) -> None:
    host = machine("riscv-bare")
    path = host.path("sys/class/dmi/id/product_uuid")
    path.parent.mkdir(parents=True)
    path.write_text("4C4C4544-0051-3610-8052-B4C04F4E3332\n")
    assert identity.machine_id(host, tmp_path) == "4c4c4544-0051-3610-8052-b4c04f4e3332"
    path.write_text("00000000-0000-0000-0000-000000000000\n")
    assert identity.machine_id(host, tmp_path) != "00000000-0000-0000-0000-000000000000"


def test_without_both_one_is_made_and_kept(machine: Machine, tmp_path: Path) -> None:
    host = machine("riscv-bare")
    host.path("etc").mkdir()
    host.path("etc/machine-id").write_text("uninitialized\n")
    made = identity.machine_id(host, tmp_path)
    assert re.fullmatch("[0-9a-f]{32}", made)
    assert identity.machine_id(host, tmp_path) == made


def test_name(machine: Machine) -> None:
    host = machine("xeon-two-sockets")
    assert identity.node_name(host, None) == "db-7"
    assert identity.node_name(host, "other") == "other"
    assert identity.node_name(machine("riscv-bare"), None) == "unnamed"


def test_a_container_is_not_taken_for_its_machine(tmp_path: Path) -> None:
    """The kernel's host name below a mounted /proc is the container's, and another one with each container."""
    for name, text in (("proc/sys/kernel/hostname", "413d762bc61d"), ("etc/hostname", "db-7")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert identity.node_name(Host(tmp_path), None) == "db-7"
    (tmp_path / "etc/hostname").unlink()
    assert identity.node_name(Host(tmp_path), None) == "413d762bc61d"
