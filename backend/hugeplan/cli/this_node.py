"""``--node this``: facts and a sample of the machine the command runs on, by the agent's collectors.

The agent reads /proc, /sys and the cgroup tree; this module only turns what it found into what the planner takes, by
the same functions that read a stored report. Nothing is written.
"""

from __future__ import annotations

import os
import platform
import pwd
import stat
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from hugeplan.cli import InputError
from hugeplan.documents.decoding import convert
from hugeplan.documents.report import Inventory, Sample
from hugeplan.fleet.facts import IncompleteReportError, node_facts
from hugeplan.fleet.observation import node_sample
from hugeplan.planner.model import HardwareFacts, NodeFacts, NodeSample, ServerPlace
from hugeplan.unprivileged import users_mounts

_ASKED = frozenset({"databases", "processes", "units", "pools"})
"""Without one of these a plan would say that there is nothing to plan for."""


def observe(root: str = "/", hardware: HardwareFacts | None = None) -> tuple[NodeFacts, NodeSample]:
    """Facts and a sample of the machine whose /proc and /sys lie under ``root``.

    ``hardware`` from a tlbbench document replaces what /proc/cpuinfo and the catalogue say. InputError when the
    machine's memory or one of ``_ASKED`` cannot be read, or the agent's collectors are not installed.
    """
    try:
        apart, host = import_module("hugeplan_agent.apart"), import_module("hugeplan_agent.host")
    except ImportError as error:
        raise InputError(
            "--node this: the package hugeplan-agent is not installed; install it (pip install ./agent), or describe"
            " the node in a scenario file"
        ) from error
    places: list[tuple[int, dict[str, Any]]] = []
    with apart.Apart(root, {"places": _places}) as child:
        collected = child.collect(host.Host(root))
        if collected.sample.get("databases"):
            with suppress(import_module("hugeplan_agent.errors").CollectError):  # the servers' own folders stay unknown
                places = child.ask("places")
    if not collected.sample.get("memory"):
        raise InputError("--node this: /proc/meminfo cannot be read; describe the node in a scenario file instead")
    for result in collected.results:
        if result["name"] in _ASKED and result["status"] == "failed":
            what, why = result["name"], result["reason"]
            raise InputError(
                f"--node this: {what} of this node could not be read ({why}); describe it in a scenario file"
            )
    inventory = convert(Inventory, collected.inventory)
    sample = convert(Sample, {"taken_at": datetime.now(UTC).isoformat(), **collected.sample})
    try:
        facts = node_facts(platform.node(), inventory, sample, measured=hardware)
    except IncompleteReportError as error:
        raise InputError(f"--node this: {error} Describe the node in a scenario file instead.") from error
    place_of = {pid: ServerPlace(**place) for pid, place in places}
    seen = node_sample(inventory, sample, sample.processes)
    placed = (replace(database, place=place_of.get(database.pid or 0)) for database in seen.databases or ())
    return facts, replace(seen, databases=tuple(placed)) if seen.databases else seen


def _places(host: Any) -> list[tuple[int, dict[str, Any]]]:
    """The folders of each server by pid: no report holds them, because paths stay on their node."""
    servers = import_module("hugeplan_agent.collectors.servers")
    places = []
    for one in servers.servers_of(host).found:
        with suppress(OSError), host.look(f"{one.server.root}/"):  # its folders may be on what its user serves
            if place := _place(host, one, servers.facts_of(host, one)):
                places.append((one.server.main.pid, place))
    return places


def _place(host: Any, one: Any, facts: Any) -> dict[str, Any] | None:
    user = one.server.main.user
    # In a container the same folder may be mounted, but its processes are not those that a command here finds.
    is_ours = facts.instance is not None and user and not one.server.main.is_below
    if not is_ours or not _is_here(host, one.server.root, facts.instance, user):
        return None
    folder, refused = _programs_of(host, _printable(one.server.executable), user)
    main, version = _printable(facts.config_file), f"{facts.instance}/PG_VERSION"
    return {
        "data_directory": facts.instance,
        "config_file": main,
        "socket_directory": _printable(facts.socket_folder),
        "programs_directory": folder,
        "programs_refused": refused,
        "uid": user,
        "user": _name_of(user),
        "refused": _open_to_others(host, (main or version, version), user),
    }


def _printable(path: str | None) -> str | None:
    """A path that a command may name; None for one that no file or terminal shows as it is."""
    return path if path and path.isprintable() else None


def _name_of(user: int) -> str | None:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return None


def _open_to_others(host: Any, files: Iterable[str], user: int) -> str | None:
    """The first thing on the way to a server's files that others than root and its user could change."""
    for file in files:
        try:
            if found := _changeable(host, file, {0, user}):
                return f"others can change {found}"
        except OSError as error:
            return f"{file}: {error.strerror}"
    return None


def _is_here(host: Any, root: str, folder: str, user: int) -> bool:
    """Whether a server's folder is the node's own folder of that name (in a container it is another one), and its
    user's: a server of anybody may name the folder of somebody else.
    """
    try:
        own = host.path(folder[1:])
        if not folder.isprintable() or not folder.startswith("/"):
            return False
        return own.stat().st_uid == user and bool(host.is_same_inside(root, folder))
    except OSError:
        return False


def _programs_of(host: Any, program: str | None, user: int) -> tuple[str | None, str | None]:
    """The folder of a server's program, for its user to run, and what who asks must not run of it; None: not here."""
    try:
        if program is None:
            return None, None
        own = {0, os.geteuid()}
        foreign = _changeable(host, program, own | {user})
        return (None if foreign else str(PurePosixPath(program).parent)), _changeable(host, program, own)
    except OSError:  # in a container, or removed
        return None, None


def _changeable(host: Any, file: str, own: Set[int]) -> str | None:
    """What others than these users could change on the way to a file. OSError."""
    top = host.root.resolve()
    path, served = top / file[1:], users_mounts()
    for each in map(os.path.normpath, (path, *path.parents)):
        if served.get(each, 0) not in own:  # what such a mount says of owners is its user's word
            return f"{each} (a mount of user {served[each]})"
    for above, each in enumerate((path, *path.parents)):
        at = each.lstat()  # a link's bits say that everybody may write
        is_kept = above > 1 and at.st_mode & stat.S_ISVTX  # /tmp: what is in it stays its owner's
        is_open = at.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_kept
        if each.is_relative_to(top) and (at.st_uid not in own or is_open):
            return f"{each} (owner {at.st_uid}, mode {stat.filemode(at.st_mode)})"
    return None
