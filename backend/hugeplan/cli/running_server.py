"""Flags of ``--node this`` over the server that runs: it is the default for everything that a flag does not name.

A server is chosen by ``port``, ``pid`` or ``data_directory``; ``server=new`` describes one that does not run yet. What
was taken from where stands in :class:`Basis`, so that the plan can say it beside its page count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from hugeplan.cli import InputError
from hugeplan.planner.demand import ENGINES, DemandContext, demand_of
from hugeplan.planner.errors import SettingValueError
from hugeplan.planner.model import DatabaseInstance, NodeSample, ObservedDatabase
from hugeplan.planner.observation.databases import (
    as_instance,
    canonical_engine,
    instance_names,
    pool_bytes_of,
    server_name,
)
from hugeplan.planner.observation.server_owners import ServerOwners

_SWITCHES: Final = {
    "postgresql": "huge_pages",
    "mysql": "large_pages",
    "mariadb": "large_pages",
    "oracle": "use_large_pages",
    "jvm": "UseLargePages",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which running server an option means: its words, all None where it names none."""

    port: int | None = None
    pid: int | None = None
    data_directory: str | None = None
    is_new: bool = False

    @property
    def words(self) -> str:
        """As they were given; empty where nothing was."""
        given = {"port": self.port, "pid": self.pid, "data_directory": self.data_directory}
        return ",".join(f"{name}={value}" for name, value in given.items() if value is not None)

    def fits(self, database: ObservedDatabase) -> bool:
        """Whether all that was given is true of a server; a folder may be written with a slash at its end."""
        own, folder = database.place, self.data_directory
        return (
            self.port in (None, database.port)
            and self.pid in (None, database.pid)
            and (folder is None or (own is not None and _same_path(own.data_directory, folder)))
        )


def _same_path(one: str, other: str) -> bool:
    """Whether two names are one folder: the server's own is real, a person's may be a link to it."""
    return one.rstrip("/") == other.rstrip("/") or one == os.path.realpath(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An instance as the flags say it, and the server that they choose."""

    instance: DatabaseInstance
    choice: Choice = field(default_factory=Choice)
    is_named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Where an instance's values come from: ``given`` by flags or file, ``read`` from the server with its source.

    ``server`` names the running server, None without one. ``complete``: whether all of its settings could be read.
    ``not_understood``: settings of the server that count, with values that the rule refuses; the plan lacks them.
    """

    given: Mapping[str, str]
    read: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    server: str | None = None
    complete: bool | None = None
    not_understood: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def over_running(
    described: Sequence[Described], sample: NodeSample, context: DemandContext
) -> tuple[tuple[DatabaseInstance, ...], dict[str, Basis]]:
    """The described instances over the servers that run, and where each one's values come from.

    InputError where a choice fits no server, or several servers run and none is chosen.
    """
    for one in described:
        # A name or value that the engine does not have is said before the question which server is meant.
        with suppress(SettingValueError):  # alone it may contradict a default that the server does not have
            demand_of(one.instance, context.base_page_bytes, context)
    running = [d for d in sample.databases or () if canonical_engine(d.engine) in ENGINES]
    names = instance_names(running)
    chosen = _chosen(described, running, context, ServerOwners.of(sample))
    instances: list[DatabaseInstance] = []
    basis: dict[str, Basis] = {}
    for one, server in zip(described, chosen, strict=True):
        name = one.instance.name
        if not one.is_named and server is not None:
            name = names[server.key]
        while any(other.name == name for other in instances):
            name = f"{one.instance.name}-{len(instances) + 1}"
        instance = replace(one.instance, name=name)
        given = _given(instance, server)
        if server is None:
            instances.append(instance)
            basis[name] = Basis(given=given)
            continue
        found = _without_refusal(as_instance(server, name, context))
        instances.append(_merged(instance, found, server))
        basis[name] = _basis(given, found, server)
    return tuple(instances), basis


def basis_of_running(instances: Sequence[DatabaseInstance], sample: NodeSample) -> dict[str, Basis]:
    """The same for instances that are servers as they run."""
    by_key = {d.key: d for d in sample.databases or ()}
    found = {}
    for instance in instances:
        server = by_key.get(instance.runs_as or "")
        if server is not None:
            found[instance.name] = _basis({}, instance, server)
    return found


def _basis(given: Mapping[str, str], instance: DatabaseInstance, server: ObservedDatabase) -> Basis:
    def sourced(settings: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        return {n: (v, server.sources.get(n, "its files")) for n, v in settings.items() if n not in given}

    counted = {spec.name for spec in ENGINES[instance.engine].settings if spec.matters}
    counted -= {_SWITCHES.get(instance.engine, "")}  # left out on purpose where it keeps the server off huge pages
    refused = {n: v for n, v in server.settings.items() if n in counted and n not in instance.settings}
    return Basis(
        given=given,
        read=sourced(instance.settings) | _version(given, instance, server),
        server=server_name(server),
        complete=server.settings_complete,
        not_understood=sourced(refused),
    )


def _given(instance: DatabaseInstance, server: ObservedDatabase | None) -> dict[str, str]:
    """What the option names: settings, connections, and the version with the one that runs where they differ."""
    given = dict(instance.settings)
    if instance.connections is not None:
        given["connections"] = str(instance.connections)
    if instance.version is not None:
        runs = None if server is None else server.version
        same = runs is None or runs.split(".")[0] == instance.version.split(".")[0]
        given["version"] = instance.version if same else f"{instance.version} ({runs} runs)"
    return given


def _version(
    given: Mapping[str, str], instance: DatabaseInstance, server: ObservedDatabase
) -> dict[str, tuple[str, str]]:
    if server.version is None or "version" in given:
        return {}
    if instance.version is None:
        return {"version": (server.version, "not one that the rule knows")}
    return {"version": (server.version, server.sources.get("version", "as it runs"))}


def _without_refusal(instance: DatabaseInstance) -> DatabaseInstance:
    """The server without the switch that keeps it off huge pages: the plan's own file sets that one."""
    rules = ENGINES[instance.engine].ruled_out
    switch = _SWITCHES.get(instance.engine)
    if switch not in instance.settings or rules(instance) is None:
        return instance
    return replace(instance, settings={n: v for n, v in instance.settings.items() if n != switch})


def _merged(instance: DatabaseInstance, found: DatabaseInstance, server: ObservedDatabase) -> DatabaseInstance:
    """The flags over the server's own settings. A setting that the rule of a flag's version refuses is left out."""
    return replace(
        instance,
        version=instance.version or found.version,
        settings={**found.settings, **instance.settings},
        workload=found.workload,
        runs_as=server.key,
        unread_settings=found.unread_settings,
    )


def _chosen(
    described: Sequence[Described], running: Sequence[ObservedDatabase], context: DemandContext, owners: ServerOwners
) -> list[ObservedDatabase | None]:
    """The server of each instance, None where it is a new one."""
    found = _chosen_by_words(described, running)
    taken = {d.key for d in found.values() if d is not None}
    for index, one in enumerate(described):
        if index in found:
            continue
        known = [d for d in _of_engine(running, one.instance.engine) if d.key not in taken]
        # What who asks started is his own. Not root's: anybody starts a program that becomes root.
        left = [d for d in known if d.owner_uid == os.geteuid() != 0 or owners.may_be(one.instance, d)]
        if known and not left:
            raise _cannot_tell(one, known, ", of a user of this machine or in a pod")
        rivals = [d for i, d in enumerate(described) if i not in found and d.instance.engine == one.instance.engine]
        if left and not len(left) == len(rivals) == 1:
            left = _same_pool(one, left, rivals, context)
        found[index] = left[0] if left else None
        taken |= {d.key for d in left}
    return [found[index] for index in range(len(described))]


def _chosen_by_words(
    described: Sequence[Described], running: Sequence[ObservedDatabase]
) -> dict[int, ObservedDatabase | None]:
    """The servers that options name, by the option's place; None for a new one. InputError where two name one."""
    found: dict[int, ObservedDatabase | None] = {}
    for index, one in enumerate(described):
        if one.choice.is_new:
            found[index] = None
        elif one.instance.runs_as is not None or one.choice.words:
            found[index] = _named(one, _of_engine(running, one.instance.engine))
    named = [d for d in found.values() if d is not None]
    for server in named:
        if named.count(server) > 1:
            raise InputError(f"--{server.engine}: two options name one server: {server_name(server)}")
    return found


def _named(one: Described, own: Sequence[ObservedDatabase]) -> ObservedDatabase:
    """The server that an option names by its key or by other words. InputError where none or several fit."""
    key = one.instance.runs_as
    fits = [d for d in own if (one.choice.fits(d) if key is None else d.key == key)]
    if not fits:
        raise _no_such(one, one.choice.words if key is None else f"runs_as={key}", own)
    if len(fits) > 1:
        raise _cannot_tell(one, fits)
    return fits[0]


def _same_pool(
    one: Described, left: Sequence[ObservedDatabase], rivals: Sequence[Described], context: DemandContext
) -> list[ObservedDatabase]:
    """The one server with the buffer pool of the flags, where no other option has it. InputError: the user chooses."""
    size = pool_bytes_of(one.instance, context)
    same = [d for d in left if pool_bytes_of(as_instance(d, d.key, context), context) == size]
    alike = [rival for rival in rivals if pool_bytes_of(rival.instance, context) == size]
    if size is not None and len(same) == len(alike) == 1:
        return same
    raise _cannot_tell(one, left)


def _cannot_tell(one: Described, servers: Sequence[ObservedDatabase], why: str = "") -> InputError:
    """Several servers fit: the words that tell these apart. A port is no such word where several have the same."""
    values: dict[str, Sequence[object]] = {"port": [d.port for d in servers], "pid": [d.pid for d in servers]}
    values["data_directory"] = [d.place.data_directory for d in servers if d.place is not None]
    words = [f"{n}=" for n, own in values.items() if len({v for v in own if v is not None}) == len(servers)] or ["pid="]
    listed = ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]
    each = "; ".join(server_name(d) for d in servers)
    return InputError(
        f"--{one.instance.engine}: which server is meant cannot be told ({each}{why}): add {listed} to the option,"
        " or server=new for one that does not run yet"
    )


def _no_such(one: Described, words: str, own: Sequence[ObservedDatabase]) -> InputError:
    title = ENGINES[one.instance.engine].title
    runs = "; ".join(server_name(d) for d in own)
    what = f"of {title} run here: {runs}" if runs else f"of {title} run here"
    return InputError(
        f"--{one.instance.engine} {words}: no such server; {'these' if runs else 'none'} {what}."
        " server=new describes one that does not run yet"
    )


def _of_engine(running: Sequence[ObservedDatabase], engine: str) -> list[ObservedDatabase]:
    return [d for d in running if canonical_engine(d.engine) == canonical_engine(engine)]
