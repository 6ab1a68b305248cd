"""What a trial measures and where its programs are: a plan's instance, a running server's, or the flags alone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hugeplan.cli import InputError
from hugeplan.cli.plan_document import read_plan
from hugeplan.cli.this_node import observe
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import DatabaseInstance, ObservedDatabase
from hugeplan.planner.observation.databases import as_instance, canonical_engine, instance_names
from hugeplan.planner.observation.server_owners import ServerOwners

DEFAULT_ROW_BYTES = 128
DEFAULT_CLIENTS = 8
SET_BY_THE_TRIAL = frozenset(
    {
        *("shared_buffers", "huge_pages", "huge_page_size", "listen_addresses", "port"),
        *("innodb_buffer_pool_size", "innodb_buffer_pool_chunk_size", "large_pages", "super_large_pages"),
        *("datadir", "socket", "pid_file", "skip_networking", "bootstrap"),
    }
)
"""A running server's other settings are not taken over: some of them name its files."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An instance to measure like, and the folder of its programs where it runs here; both None without one."""

    instance: DatabaseInstance | None
    programs: Path | None

    @property
    def row_bytes(self) -> int:
        """The workload's, else the default."""
        return (self.instance.workload.row_bytes if self.instance else None) or DEFAULT_ROW_BYTES

    @property
    def clients(self) -> int:
        """The workload's active connections, else the default."""
        return (self.instance.workload.active_connections if self.instance else None) or DEFAULT_CLIENTS

    @property
    def working_set_bytes(self) -> int | None:
        """Bytes that are touched again and again, where they are known."""
        return self.instance.workload.working_set_bytes if self.instance else None


def wanted(arguments: argparse.Namespace, engine: str) -> Wanted:
    """From ``--from``, ``--instance`` and the servers that run. InputError where a name fits none or several."""
    given = Path(arguments.bin_dir).absolute() if arguments.bin_dir else None
    if arguments.plan is not None:
        request = read_plan(arguments.plan, "--from").request
        if request is None:
            raise InputError(f"--from {arguments.plan}: it holds no request; write it with hugeplan plan --json")
        found = _named([d for d in request.databases if d.engine == engine], arguments.instance, arguments.plan, engine)
        return Wanted(found, given or _programs_of_running(found.name, engine))
    if arguments.instance is not None:
        names, running, _ = _running(engine)
        instances = [as_instance(d, names[d.key], DemandContext()) for d in running]
        found = _named(instances, arguments.instance, "this node", engine)
        server = next(d for d in running if names[d.key] == found.name)
        return Wanted(found, given or _programs(server))
    return Wanted(None, given or _programs_of_running(None, engine))


def _named(found: Sequence[DatabaseInstance], name: str | None, where: str, engine: str) -> DatabaseInstance:
    names = ", ".join(d.name for d in found) or "none"
    if name is not None:
        chosen = [d for d in found if d.name == name]
        if not chosen:
            raise InputError(f"--instance {name}: {where} has no {engine} of that name (it has: {names})")
        return chosen[0]
    if len(found) != 1:
        raise InputError(f"{where} has {len(found)} instances of {engine} ({names}): choose one by --instance")
    return found[0]


def _running(engine: str) -> tuple[Mapping[str, str], list[ObservedDatabase], list[ObservedDatabase]]:
    """The servers' names, all of them, and those that no other user may have started."""
    _, sample = observe()
    known = [d for d in sample.databases or () if canonical_engine(d.engine) == engine]
    is_of_user = ServerOwners.of(sample).is_of_user
    own = [d for d in known if d.owner_uid == os.geteuid() != 0 or not is_of_user(d.key, d.unit, d.owner_uid)]
    return instance_names(known), known, own


def _programs_of_running(name: str | None, engine: str) -> Path | None:
    """The programs of the running server of that name, else of the only one; None where none runs or several do."""
    names, _, running = _running(engine)  # a stranger stops no trial
    chosen = [d for d in running if names[d.key] == name] or running
    usable = [d for d in chosen if not (d.place and d.place.programs_refused)] or chosen
    folders = {folder for d in usable if (folder := _programs(d)) is not None}
    return folders.pop() if len(folders) == 1 else None


def _programs(server: ObservedDatabase) -> Path | None:
    """Their folder. InputError where another user could put other programs into it, to be run by who asks."""
    if server.place and server.place.programs_refused:
        raise InputError(
            f"the programs of the running server are not taken: {server.place.programs_refused} can be changed by"
            " another user. Name a folder that you trust with --bin-dir"
        )
    folder = server.place.programs_directory if server.place else None
    return None if folder is None else Path(folder)


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """``--set NAME=VALUE`` as a mapping. InputError names what is wrong or is the trial's own to set."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.replace("_", "").replace(".", "").isalnum() or "'" in value or "\n" in value:
            raise InputError(f"--set {word}: give NAME=VALUE, a setting of the server")
        if name in SET_BY_THE_TRIAL:
            raise InputError(f"--set {word}: the trial sets {name} itself")
        found[name] = value
    return found


def whole(given: int | None, default: int, option: str, low: int, high: int) -> int:
    """The given number, else the default. InputError names the option where it is out of range."""
    value = default if given is None else given
    if not low <= value <= high:
        raise InputError(f"{option} {value}: give {low} to {high}")
    return value
