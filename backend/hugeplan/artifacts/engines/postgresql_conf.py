"""postgresql.conf: a file for conf.d, or lines to paste.

The folders are the server's user's, who may put links there at any time: every command that leads through them runs as
that user, whose name is fixed when the plan is made. Where the server was seen on this node, they name its folders,
port and programs; Debian's names of services name them, too. Else each server has a variable of its own, and its port
is what its folder says: commands pasted for one server reach no other.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from hugeplan.artifacts.base import INSTALLER, Artifact, Restart, all_of, as_user, mark, one_line, put, put_back, slug
from hugeplan.artifacts.engines.common import (
    changed_settings,
    commented,
    left_to_a_person,
    per_instance,
    servers_on_host,
    service_of,
)
from hugeplan.planner.demand import counted_settings
from hugeplan.planner.model import DatabaseInstance, InstancePlan, ObservedDatabase, Plan, PlanRequest, SettingAdvice

#: Asks the server of the folder $1, by its own port and socket, which in /tmp may be another user's.
_ASK = shlex.quote(
    '{ read -r _; read -r _; read -r _; read -r port; read -r host; } < "$1/postmaster.pid"'
    ' && exec env PGREQUIREPEER="$(id -un)" psql -XAt -d postgres -p "$port" -h "$host" -c "$2"'
)
#: Whether the server of the folder $1 runs in the service $2, which would else be another's to restart.
_OF_SERVICE = shlex.quote(
    'test -e "$1/postmaster.pid" && read -r pid < "$1/postmaster.pid" && grep -qsF "/$2" "/proc/$pid/cgroup"'
)
#: Whether the service $1 does not run, and its unit names the folder $2: a stopped server says nothing itself.
_NAMES_FOLDER = shlex.quote(
    '! systemctl is-active --quiet "$1" && systemctl show --property Environment --property ExecStart "$1"'
    """ | tr ' "=' '\\n' | sed 's,//*$,,' | grep -qxF "$(printf %s "$2" | sed 's,//*$,,')\""""
)
#: Whether the process $1, a service's main one, is the user $2's and works in the folder $3, as a postmaster does.
_IS_MAIN = shlex.quote('test "$(stat -c %u "/proc/$1")" = "$2" && test "/proc/$1/cwd" -ef "$3"')
_NO_VARIABLES = "# The restart gives it no variables: what archive_command, for one, needs of them belongs in a file.\n"
#: Services that run one PostgreSQL and nothing else; another may run a server only among others.
_USUAL = re.compile(r"edb|.*(?:postgres|pgsql)")
#: What runs a server that is neither the system's nor a login's: Patroni, a container, a user's own manager.
_APART = re.compile(r"systemd:[^/]*patroni.*|container:.*|systemd:[^/]*/.*\.service")


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per PostgreSQL."""
    servers = {planned.name: request.server(planned.runs_as) for planned in plan.instances}
    several = servers_on_host(plan, request, "postgresql") > 1

    def write(
        kind: str, instance: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]
    ) -> Artifact:
        own = kind.partition("-")[2] or slug(planned.name)
        variable = f"PGDATA_{own.upper().replace('-', '_')}" if several else "PGDATA"
        commands = _Commands() if request.reservations.kubernetes else _Commands.of(servers[planned.name], variable)
        file = _write(kind, instance, planned, advice, servers[planned.name], commands=commands)
        unit = getattr(servers[planned.name], "unit", None) or ""
        if request.reservations.kubernetes or not _APART.fullmatch(unit):
            return file
        lines = (
            f"{'Lines' if planned.page_bytes is not None else 'Before the numbered steps: lines'} for the configuration"
            f" of {one_line(planned.name)}, which Patroni, a container or a user's own manager starts."
        )
        return left_to_a_person(file, unit, lines, "socket, for what the lines say")

    return per_instance("postgresql_conf", ("postgresql",), plan, request, write)


@dataclass(frozen=True, slots=True)
class _Commands:
    """How the server is reached: ``data``, ``folder`` and ``main_file`` are words for a shell."""

    data: str = '"$PGDATA"'
    folder: str = '"$PGDATA/conf.d"'
    main_file: str = '"$PGDATA/postgresql.conf"'
    user: str = as_user("postgres")
    note: str = ""
    programs: str = ""
    psql: str = "psql -XAtc"
    service: str | None = None
    guards: tuple[str, ...] = ()
    is_named: bool = False

    @classmethod
    def of(cls, server: ObservedDatabase | None, variable: str = "PGDATA") -> _Commands:
        place = None if server is None else server.place
        service = service_of((server and server.unit) or "")
        if server is None or place is None:
            return cls._unplaced(service, variable)
        user, programs = _as(place.user, place.uid), ""
        options = (("-p", server.port), ("-h", place.socket_directory))
        where = "".join(f" {name} {shlex.quote(str(value))}" for name, value in options if value is not None)
        if place.programs_directory is not None:  # Debian keeps pg_ctl where no PATH leads
            programs = f'env PATH={shlex.quote(place.programs_directory)}:"$PATH" '
        if server.port not in {None, 5432}:  # perhaps no file's, but a variable's
            programs = f"{programs or 'env '}PGPORT={server.port} "
        peer = f"{programs or 'env '}PGREQUIREPEER={shlex.quote(place.user)} " if place.user else programs
        main = PurePosixPath(place.config_file or f"{place.data_directory}/postgresql.conf")
        return cls(
            data=shlex.quote(place.data_directory),
            folder=shlex.quote(str(main.parent / "conf.d")),
            main_file=shlex.quote(str(main)),
            user=user,
            note=f"# check first: {shlex.quote(one_line(place.refused))}" if place.refused else "",
            programs=programs,
            psql=f"{user} run {peer}psql -XAt -d postgres{where} -c",
            service=service,
            is_named=True,
        )

    @classmethod
    def _unplaced(cls, service: str | None, variable: str) -> _Commands:
        """By Debian's name of its service, else by a variable that must be exported."""
        user, note = as_user("postgres"), "# another user than postgres runs it: write that name"
        cluster = re.fullmatch(r"postgresql@([0-9]+(?:\.[0-9]+)?)-([A-Za-z0-9_]+)\.service", service or "")
        if cluster:
            version, name = cluster.groups()
            folder = f"/etc/postgresql/{version}/{name}"
            return cls(
                data=f'"$({user} run pg_conftool -s {version} {name} show data_directory)"',
                folder=f"{folder}/conf.d",
                main_file=f"{folder}/postgresql.conf",
                note=note,
                psql=f"{user} run psql --cluster {version}/{name} -XAt -d postgres -c",
                service=service,
                is_named=True,
            )
        data = f'"${{{variable}:?export it}}"'
        guards = [f': "${{{variable}:?export it: the data directory of this one server}}"']
        if service is not None:
            own = shlex.quote(service)
            said = f'echo {own} "does not run the server of {data[1:-1]}" >&2; false'
            guards.append(
                f"{{ {user} run sh -c {_OF_SERVICE} sh {data} {own} || sh -c {_NAMES_FOLDER} sh {own} {data}"
                f" || {{ {said}; }}; }}"
            )
        return cls(
            data=data,
            folder=f"{data}/conf.d",
            main_file=f"{data}/postgresql.conf",
            note=note,
            psql=f"{user} run sh -c {_ASK} sh {data}",
            service=service,
            guards=tuple(guards),
            is_named=True,
        )

    @property
    def may_restart(self) -> list[str]:
        """Of a service of any name: a restart of cron's, or of a supervisor's, would not be this server's alone.

        One that is stopped has no main process, and interrupts nobody when it starts. Without a service: pg_ctl.
        """
        if self.service is None:  # and in no cluster
            return [f"{self.user} run {self.programs}{INSTALLER} starts-alike {self.data}"] * self.is_named
        if _USUAL.match(self.service):
            return []
        service = shlex.quote(self.service)
        said = shlex.quote(f"{self.service} is not this server's alone: restart it by what starts it")
        main = f'"$(systemctl show --property MainPID --value {service})"'
        check = f'sh -c {_IS_MAIN} sh {main} "$({self.user} run id -u)" {self.data}'
        stopped = f"! systemctl is-active --quiet {service}"
        return [f"{{ {check} || {stopped} || {{ echo {said} >&2; false; }}; }}"]

    @property
    def may_stop(self) -> list[str]:
        """The same before a way back: what does not run may need it to start at all, and is asked before its start."""
        return [f"{one} runs" if self.service is None else one for one in self.may_restart]

    @property
    def auto_file(self) -> str:
        """What ALTER SYSTEM writes."""
        return f"{self.data}/postgresql.auto.conf"

    @property
    def restart(self) -> str:
        """Through systemd where that runs it: a postmaster that pg_ctl starts is none of its service."""
        if self.service is not None:
            return f"systemctl restart {shlex.quote(self.service)}"
        # A postmaster keeps what it was started with: its own log. Its checkpoint, or its recovery, may take hours.
        return f"{self.user} run {self.programs}pg_ctl -D {self.data} -t 86400 -l {self.data}/startup.log restart"


def _as(name: str | None, uid: int | None) -> str:
    """A user without a name has no groups to keep: the command gets nogroup, which owns no file."""
    if name is None and uid is not None:
        return as_user(f"uid:{uid}")
    return as_user(shlex.quote(name or "postgres"))


def _counted_for(instance: DatabaseInstance, wanted: Iterable[str]) -> list[str]:
    """What the pages depend on: this file does not set it, and a reader may believe that it does."""
    given = ", ".join(
        f"{one_line(name)} = {one_line(value)}"
        for name, value in sorted(counted_settings(instance).items())
        if name not in wanted
    )
    return [f"# Its pages are counted for {given}; plan again before one of them is changed."] if given else []


def _stronger(names: Iterable[str], server: ObservedDatabase | None) -> tuple[list[str], list[str]]:
    """What goes before this file: its names in postgresql.auto.conf; comments for the command line."""
    sources = {} if server is None else server.sources
    by_file = [name for name in names if sources.get(name) == "postgresql.auto.conf"]
    by_words = [name for name in names if sources.get(name) == "command line"]
    notes = [
        f"# {name} is on the server's command line, which goes before this file: change it there." for name in by_words
    ]
    return by_file, notes


def _write(
    kind: str,
    instance: DatabaseInstance,
    planned: InstancePlan,
    advice: tuple[SettingAdvice, ...],
    server: ObservedDatabase | None,
    *,
    commands: _Commands,
) -> Artifact:
    name = f"{slug(planned.name)}-hugepages.conf"
    psql = commands.psql
    counted = {item.name for item in changed_settings(instance, server, kept=True)}
    wanted = {item.name: item.value for item in advice}
    path = f"{commands.folder}/{name}"
    by_file, notes = _stronger(wanted, server)
    checks = [f"test \"$({psql} 'SHOW {key}')\" = {value}" for key, value in wanted.items() if key == "huge_pages"]
    if wanted.get("huge_pages") == "on":
        # A server with huge_pages = on that answers has its pages; the status says so since PostgreSQL 17.
        checks.append(f'{{ test "$({psql} "SELECT current_setting(\'huge_pages_status\', true)")" != off; }}')
    if commands.is_named:
        checks = [f"test \"$({psql} 'SHOW data_directory')\" -ef {commands.data}", *commands.guards[1:], *checks]
    lines = [
        *commented(
            planned, advice, lambda i: f"{i.name} = {_quoted(i.value) if i.name in counted else one_line(i.value)}"
        ),
        *notes,
        *_counted_for(instance, wanted),
        "",
    ]
    content, user = "\n".join(lines), commands.user
    file = f"{mark(content)} {path} {commands.auto_file}"
    resets = [f"{psql} {shlex.quote(f'ALTER SYSTEM RESET {key}')}" for key in by_file]
    if resets:
        names = shlex.quote("|".join(by_file))
        resets.insert(0, f"{user} keep-lines {file} {names}")
    back = [f"{user} lines-back {file}"] * (server is not None)
    back += commands.may_restart if commands.service is None else []
    return Artifact(
        kind=kind,
        filename=name,
        path=re.sub(r"\A\$\{(\w+):[^}]*\}", r"$\1", shlex.split(path)[0]),
        content=content,
        summary=f"Puts the shared memory of {one_line(planned.name)} on its planned pages."
        if planned.page_bytes is not None
        else f"Keeps {one_line(planned.name)} on base pages, as planned.",
        install=(f"{commands.note}\n" if commands.note else "")
        + (_NO_VARIABLES if commands.service is None and commands.is_named else "")
        + all_of(
            [
                *commands.guards,
                *commands.may_restart,
                put(name, path, content, user),
                # Where no other line beats what it includes.
                f"{user} last-line {commands.main_file} \"include_if_exists = 'conf.d/{name}'\"",
                *resets,
                commands.restart,
            ]
        ),
        verify=all_of(checks) if checks else f"{psql} 'SHOW shared_buffers'",
        rollback=put_back(path, content, *back, commands.restart, first=commands.may_stop, user=user),
        restart=Restart.ENGINE,
        avoid_when="An operator or Patroni writes the configuration: set the parameters there.",
    )


def _quoted(value: str) -> str:
    """A value as postgresql.conf takes any of them."""
    return "'" + one_line(value).replace("'", "''") + "'"
