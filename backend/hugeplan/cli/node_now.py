"""This node at this moment, through the agent's collectors, which are a distribution of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hugeplan.artifacts import numa_files, systemd_unit
from hugeplan.cli import InputError
from hugeplan.cli.page_files import without_process
from hugeplan.lint.kinds import sysctl, tmpfiles
from hugeplan.lint.model import Context, PoolFact, Source
from hugeplan.proof import Observation

NEEDED = (
    "pools", "meminfo", "numa", "thp", "cpu", "kernel", "boot", "tunables", "buddyinfo", "databases", "processes",
    "hugetlb_cgroups", "kubelet",
)  # fmt: skip


def observe(root: str = "/") -> Observation:
    """What the collectors see. InputError where the agent is not installed."""
    try:
        from hugeplan_agent.apart import Apart  # noqa: PLC0415 - an optional distribution
        from hugeplan_agent.collectors import COLLECTORS  # noqa: PLC0415
        from hugeplan_agent.errors import CollectError  # noqa: PLC0415
        from hugeplan_agent.host import Host  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "this command needs hugeplan-agent of the same release beside hugeplan (its extra is hugeplan[node])"
        ) from error
    pages: dict[str, Any] = {"huge_page_files": None, "sysv_segments": None}
    with Apart(root, {"pages": without_process}) as apart:
        found = apart.collect(Host(root), {name: COLLECTORS[name] for name in NEEDED})
        with suppress(CollectError):
            pages = apart.ask("pages")
    return Observation(found.inventory, {**found.sample, **pages}, boot_counts(root, found.inventory))


def boot_counts(root: str, inventory: Mapping[str, Any]) -> list[tuple[str, int | None, dict[int | None, int]]]:
    """Counts that sysctl.d, then tmpfiles.d and the unit of a plan write at boot, as the linter reads these files."""
    context = Context(
        arch=inventory.get("architecture") or "x86_64",
        base_page_bytes=inventory.get("base_page_bytes") or 4096,
        numa_nodes=tuple(node["id"] for node in inventory.get("numa_nodes") or () if "id" in node) or None,
    )
    sysctls = _in_order(root, "sysctl.d")
    if not Path(root, "usr/lib/systemd/systemd-sysctl").exists():  # which reads the old file by a link of sysctl.d
        sysctls.append(Path(root, "etc/sysctl.conf"))
    found: list[tuple[str, int | None, dict[int | None, int]]] = []
    for paths, kind in ((sysctls, sysctl), (_in_order(root, "tmpfiles.d"), tmpfiles)):
        writes: list[tuple[str, PoolFact]] = []
        for path in paths:
            with suppress(OSError):
                text = path.read_text(errors="replace") if path.is_file() else ""
                facts = kind.read(Source(path.name, text), context).facts
                writes += [(str(path), fact) for fact in facts if isinstance(fact, PoolFact)]
        made = kind.written(writes)
        found += [(path, fact.page_bytes, {fact.numa_node: fact.pages or 0}) for path, fact in made]
    enabled = Path(root, "etc/systemd/system/sysinit.target.wants", systemd_unit.NAME)
    script = Path(root, numa_files.SCRIPT_PATH.lstrip("/"))
    if enabled.exists() and script.is_file():
        by_size: dict[int, dict[int | None, int]] = {}
        for numa, kib, count in re.findall(r"^reserve (\d+) hugepages-(\d+)kB (\d+)$", script.read_text(), re.M):
            by_size.setdefault(int(kib) * 1024, {})[int(numa)] = int(count)
        found += [(str(script), size, by_node) for size, by_node in by_size.items()]
    return found


def _in_order(root: str, folder: str) -> list[Path]:
    """Files that systemd reads, in its order: by name, whatever their folder; of one name the first folder's alone."""
    by_name: dict[str, Path] = {}
    for parent in ("usr/lib", "usr/local/lib", "run", "etc"):
        by_name.update({path.name: path for path in Path(root, parent, folder).glob("[!.]*.conf")})
    return [by_name[name] for name in sorted(by_name)]
