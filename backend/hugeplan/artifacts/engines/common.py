"""What every dialect shares: which settings are written, and one file per instance."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from hugeplan.artifacts.base import Artifact, is_kernel_setting, one_line, unique_kinds
from hugeplan.artifacts.engines.in_pod import in_pod
from hugeplan.artifacts.order import with_change
from hugeplan.artifacts.outside import is_setting_value
from hugeplan.planner.choice.pool_sizes import is_ranged, setting_text
from hugeplan.planner.demand import counted_settings, differs, engine_named, is_sized
from hugeplan.planner.demand.registry import FIXED
from hugeplan.planner.demand.settings import plain, underscored
from hugeplan.planner.model import DatabaseInstance, InstancePlan, ObservedDatabase, Plan, PlanRequest, SettingAdvice
from hugeplan.planner.observation.server_owners import ServerOwners
from hugeplan.planner.units import format_postgresql_bytes
from hugeplan.recognition.operators import patched

Write = Callable[[str, DatabaseInstance, InstancePlan, tuple[SettingAdvice, ...]], Artifact]
_MOST_OF_A_UNIT: Final = 255
#: Whose program runs files of its instance's user, as SQL*Plus does glogin.sql.
NOT_ROOT = '{ test "$(id -u)" != 0 || { echo "run this as the user of the instance, not as root" >&2; false; }; }'
FREE_FALLS = "grep -E '^HugePages_(Total|Free|Rsvd)' /proc/meminfo  # free must fall when the server starts"


def per_instance(
    kind: str, engines: Iterable[str], plan: Plan, request: PlanRequest, write: Write
) -> Iterable[Artifact]:
    """One file for each instance of these engines with a setting to change; on Kubernetes it is for the pod."""
    wanted = set(engines)
    pairs = zip(request.databases, plan.instances, strict=True)
    found = [(instance, planned) for instance, planned in pairs if planned.engine in wanted]
    if request.reservations.kubernetes:  # an operator's object that is patched has the settings as well
        found = [(instance, planned) for instance, planned in found if not (planned.page_bytes and patched(instance))]
    kinds = unique_kinds(kind, (planned.name for _, planned in found))
    for own_kind, (instance, planned) in zip(kinds, found, strict=True):
        server = request.server(planned.runs_as)
        now = _as_it_runs(instance, server)
        advice = (*settings_to_write(instance, planned), *_other_size(planned, now))
        said = {item.name for item in advice}
        changed = changed_settings(instance, server)
        unlike = [i.name for i in (*advice, *changed) if now.get(_own_name(i.name)) != plain(i.value)]
        if changed or unlike:
            others = (item for item in changed_settings(instance, server, kept=True) if item.name not in said)
            artifact = with_change(write(own_kind, instance, planned, (*advice, *others)), planned, request)
            if request.reservations.kubernetes:
                yield in_pod(artifact, instance, planned)
            else:
                yield _after_its_words(artifact, unlike, server)


def servers_on_host(plan: Plan, request: PlanRequest, *engines: str) -> int:
    """How many servers of these engines the host has, without those of its users that run none of the plan's."""
    planned = [one for one in plan.instances if one.engine in engines]
    uids, owners = {one.owner_uid for one in planned}, ServerOwners.of(request.sample)

    def counts(server: ObservedDatabase) -> bool:  # of any uid in a service of root's, which reads the host's files
        is_apart = server.owner_uid is not None and uids.isdisjoint({None, server.owner_uid})
        return server.engine in engines and not (is_apart and owners.is_of_user(server.key, server.unit, None))

    running = () if request.sample is None else request.sample.databases or ()
    return len(planned) + len({one.key for one in running if counts(one)} - {one.runs_as for one in planned})


def _other_size(planned: InstancePlan, now: Mapping[str, str]) -> tuple[SettingAdvice, ...]:
    """A PostgreSQL that names the size of its pages keeps it beside a plan with the default size, which names none."""
    size, advised = planned.page_bytes, {item.name for item in planned.demand.settings}
    if size is None or planned.engine != "postgresql" or "huge_page_size" in advised:
        return ()
    value = format_postgresql_bytes(size)
    if now.get("huge_page_size", "off") in {"off", plain(value)}:
        return ()
    return (SettingAdvice(name="huge_page_size", value=value, reason="The server names another size of its pages."),)


def service_of(unit: str) -> str | None:
    """The system's service of a unit's key; a unit of a user's own manager is none, whatever its name. Nor is what
    systemd gives no unit for a name (``unit_name_is_valid``).
    """
    found = re.fullmatch(r"systemd:(?!user@)([A-Za-z0-9:_.\\@-]+\.service)", unit)
    return found[1] if found and len(found[1]) <= _MOST_OF_A_UNIT else None


def left_to_a_person(file: Artifact, unit: str, summary: str, verify: str) -> Artifact:
    """The file as lines that a person copies, for a server of this unit."""
    where, restart = "where this one server reads them", "its own service"
    if "patroni" in unit:  # which starts the server, and writes its files
        where = "into postgresql.parameters of its own patroni.yml (max_connections: patronictl edit-config)"
        restart = "that member by patronictl"
    elif service := service_of(unit):
        restart += f": systemctl restart {shlex.quote(service)}"
    elif unit:  # some shells have no comments
        restart = f"it in {shlex.quote(one_line(unit))}"
    kind, dash, name = file.kind.partition("-")
    return replace(
        file,
        kind=f"{kind}_snippet{dash}{name}",
        path=None,
        summary=summary,
        install=f"# write the lines {where}, then restart {restart}",
        verify=f"# not as root, ask that server, by its own {verify}",
        rollback=f"# set the previous values and restart {restart}",
        avoid_when="Another server reads the same lines.",
    )


def _after_its_words(file: Artifact, changed: Iterable[str], server: ObservedDatabase | None) -> Artifact:
    """The file, left to a person where the server's command line, which goes before it, has what it changes."""
    words = {underscored(name) for name, source in server.sources.items() if source == "command line"} if server else ()
    stronger = [one_line(name) for name in changed if _own_name(name) in words]
    if server is None or not stronger:
        return file
    first = f"The server's command line has {' and '.join(stronger)}, which goes before every file: change it there."
    if file.path is not None:
        file = left_to_a_person(file, server.unit or "", file.summary, "socket, for what the lines say")
    return replace(file, summary=f"{first} {file.summary}")


#: Engines whose files take settings by name.
_TAKES_SETTINGS = frozenset({"postgresql", "mysql", "mariadb"})
#: In the names of the files that set more than a plan's own advice; a report has 64 characters of a name.
_OWN_FILE: Final = "-hugepages."


def changed_settings(
    instance: DatabaseInstance, server: ObservedDatabase | None, *, kept: bool = False
) -> tuple[SettingAdvice, ...]:
    """Settings that the plan counts with and the running server does not have: without them its pages are wrong.

    ``kept``: those, too, that it has from an earlier plan's file, whose place a new one takes, or nobody knows whence.
    """
    if server is None or instance.engine not in _TAKES_SETTINGS:
        return ()
    now, sources = ({underscored(name): text for name, text in of.items()} for of in (server.settings, server.sources))
    return tuple(
        SettingAdvice(name=name, value=value, reason=_change(now.get(name)))
        for name, value in counted_settings(instance, changeable=True).items()
        if is_setting_value(value)
        and name not in FIXED
        and (
            differs(instance.engine, name, value, now.get(name, ""))
            or (kept and _OWN_FILE in sources.get(name, _OWN_FILE))
        )
    )


def _change(now: str | None) -> str:
    return "The plan counts with it; " + ("the server has its default." if now is None else f"the server has {now}.")


#: What makes an engine ask for the planned pages, and a value that does so and starts without a pool; "" is the plan's
#: own. None: only the plan's value does.
_ASKS: Final[Mapping[str, str | None]] = {
    "huge_pages": "try", "huge_page_size": None, "shared_memory_type": None, "large_pages": "", "uselargepages": "",
    "largepagesizeinbytes": None, "db2_large_page_mem": "", "use_large_pages": "TRUE", "memory_target": None,
}  # fmt: skip


def unsaid(instance: DatabaseInstance, planned: InstancePlan, *, sets: bool) -> list[str]:
    """What the input must say before a file lowers a pod's memory: the size of the engine, and what makes it ask.

    Until then its pool may be ordinary memory. No default counts: the server may have another value where nobody reads
    it. ``sets``: the same file sets what the plan advises.
    """
    given = {_bare_name(name): value for name, value in instance.settings.items()}
    rule = engine_named(instance.engine)
    is_sized_here = planned.demand.pool_bytes is not None and is_ranged(instance)
    missing = [] if is_sized_here or is_sized(rule, instance) else [*rule.sized_by[:1]]
    for item in () if sets else settings_to_write(instance, planned):
        name = _bare_name(item.name)
        milder, now = _ASKS.get(name), plain(given.get(name, ""))
        if name not in _ASKS:
            is_said = not is_sized_here or item.name != rule.pool_setting
        else:
            is_said = now == plain(item.value) if milder is None else now not in {"off", ""}
        if not is_said:
            values = dict.fromkeys(value for value in (milder, item.value) if value)
            missing.append(" = ".join(filter(None, (item.name, " or ".join(values)))))
    return missing


def _bare_name(name: str) -> str:
    return name.lower().lstrip("-").removeprefix("xx:").lstrip("+")


def _as_it_runs(instance: DatabaseInstance, server: ObservedDatabase | None) -> dict[str, str]:
    """Settings before the plan: the running server's where they were read, else as given."""
    known = [instance.settings]
    if server is not None and instance.engine in _TAKES_SETTINGS:
        known = [server.settings] if server.settings_complete else [*known, server.settings]
    return {_own_name(name): plain(value) for settings in known for name, value in settings.items()}


def _own_name(name: str) -> str:
    return underscored(name.lstrip("-"))


def settings_to_write(instance: DatabaseInstance, planned: InstancePlan) -> tuple[SettingAdvice, ...]:
    """The engine's advice, after the buffer pool where the planner sized it."""
    advice = tuple(item for item in planned.demand.settings if not is_kernel_setting(item.name))
    if planned.demand.pool_bytes is None or not is_ranged(instance):
        return advice
    name, value = pool_setting(planned)
    return (SettingAdvice(name=name, value=value, reason="Sized by the plan between the given bounds."), *advice)


def pool_setting(planned: InstancePlan) -> tuple[str, str]:
    """Name and value of the instance's buffer pool setting, as the engine writes it."""
    engine = engine_named(planned.engine)
    assert engine.pool_setting is not None
    assert planned.demand.pool_bytes is not None
    return engine.pool_setting, setting_text(engine, planned.demand.pool_bytes)


def commented(
    planned: InstancePlan, advice: Iterable[SettingAdvice], line: Callable[[SettingAdvice], str]
) -> list[str]:
    """A head comment, then each setting under its reason."""
    lines = [f"# {one_line(planned.name)}: settings of its plan"]
    for item in advice:
        lines += [f"# {one_line(item.reason)}", line(item)]
    return lines
