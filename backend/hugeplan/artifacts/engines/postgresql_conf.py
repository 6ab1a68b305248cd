"""postgresql.conf: a file for conf.d, or lines to paste.

pg_ctl refuses root, and a file of another user is not read: the commands run as the owner of the data directory. Where
the server was seen on this node, they name its folders, port and programs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from hugeplan.artifacts.base import Artifact, Restart, all_of, one_line, slug
from hugeplan.artifacts.engines.common import changed_settings, commented, per_instance, server_of
from hugeplan.planner.model import DatabaseInstance, InstancePlan, ObservedDatabase, Plan, PlanRequest, SettingAdvice

_OWNER = '"$(stat -c %U "$PGDATA")"'


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per PostgreSQL."""
    servers = {planned.name: server_of(planned, request) for planned in plan.instances}

    def write(
        kind: str, instance: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]
    ) -> Artifact:
        return _write(kind, instance, planned, advice, servers[planned.name])

    return per_instance("postgresql_conf", ("postgresql",), plan, request, write)


@dataclass(frozen=True, slots=True)
class _Commands:
    """How the server's programs are called: ``exports`` first, ``configuration`` is the folder of its main file."""

    exports: str
    programs: str
    configuration: str
    main_file: str
    psql: str
    service: str | None = None

    @classmethod
    def of(cls, server: ObservedDatabase | None) -> _Commands:
        place = None if server is None else server.place
        if server is None or place is None:
            return cls("", "", '"$PGDATA/conf.d/{name}"', '"$PGDATA/postgresql.conf"', "psql -XAtc")
        names = {"PGDATA": place.data_directory, "PGPORT": server.port, "PGHOST": place.socket_directory}
        given = [f"{name}={shlex.quote(str(value))}" for name, value in names.items() if value is not None]
        main = PurePosixPath(place.config_file or f"{place.data_directory}/postgresql.conf")
        # A name with a brace in it must not be taken for a field.
        folder = shlex.quote(str(main.parent / "conf.d")).replace("{", "{{").replace("}", "}}")
        programs = "" if place.programs_directory is None else f"{shlex.quote(place.programs_directory)}/"
        return cls(
            f"export {' '.join(given)}\n",
            programs,
            f"{folder}/{{name}}",
            shlex.quote(str(main)),
            f"runuser -u {_OWNER} -- {programs}psql -XAt -d postgres -c",
            _service_of(server.unit or ""),
        )

    @property
    def restart(self) -> str:
        """Through systemd where that runs it: a postmaster that pg_ctl starts is none of its service."""
        if self.service is not None:
            return f"systemctl restart {shlex.quote(self.service)}"
        return self.as_owner('pg_ctl -D "$PGDATA" restart')

    def as_owner(self, program: str) -> str:
        """One of the server's programs, run by the owner of its data."""
        return f"runuser -u {_OWNER} -- {self.programs}{program}"


def _service_of(unit: str) -> str | None:
    last = unit.rpartition("/")[2]
    return last if re.fullmatch(r"(postgres|pgsql|edb)[^/]*\.service", last) else None


def _counted_for(instance: DatabaseInstance) -> list[str]:
    """What the pages depend on: this file does not set it, and a reader may believe that it does."""
    given = ", ".join(f"{one_line(name)} = {one_line(value)}" for name, value in sorted(instance.settings.items()))
    return [f"# Its pages are counted for {given}; plan again before one of them is changed."] if given else []


def _stronger(names: Iterable[str], server: ObservedDatabase | None, psql: str) -> tuple[list[str], list[str]]:
    """What goes before this file: commands that take it out of postgresql.auto.conf, comments for the command line."""
    sources = {} if server is None else server.sources
    by_file = [name for name in names if sources.get(name) == "postgresql.auto.conf"]
    by_words = [name for name in names if sources.get(name) == "command line"]
    resets = [f"{psql} {shlex.quote(f'ALTER SYSTEM RESET {name}')}" for name in by_file]
    notes = [
        f"# {name} is on the server's command line, which goes before this file: change it there." for name in by_words
    ]
    return resets, notes


def _write(
    kind: str,
    instance: DatabaseInstance,
    planned: InstancePlan,
    advice: tuple[SettingAdvice, ...],
    server: ObservedDatabase | None,
) -> Artifact:
    name = f"{slug(planned.name)}-hugepages.conf"
    commands = _Commands.of(server)
    psql = commands.psql
    changed = {item.name for item in changed_settings(instance, server)}
    wanted = {item.name: item.value for item in advice}
    resets, notes = _stronger(wanted, server, psql)
    checks = [f"test \"$({psql} 'SHOW {key}')\" = {value}" for key, value in wanted.items() if key == "huge_pages"]
    if wanted.get("huge_pages") == "on":
        # A server with huge_pages = on that answers has its pages; the status says so since PostgreSQL 17.
        checks.append(f'{{ test "$({psql} "SELECT current_setting(\'huge_pages_status\', true)")" != off; }}')
    path = commands.configuration.format(name=name)
    folder, conf = commands.exports, commands.main_file
    restart = commands.restart
    lines = [
        *commented(
            planned, advice, lambda i: f"{i.name} = {_quoted(i.value) if i.name in changed else one_line(i.value)}"
        ),
        *notes,
        *_counted_for(instance),
        "",
    ]
    return Artifact(
        kind=kind,
        filename=name,
        path=shlex.split(path)[0] if folder else path.strip('"'),
        media_type="text/plain",
        content="\n".join(lines),
        summary=f"Puts the shared memory of {one_line(planned.name)} on its planned pages."
        if planned.page_bytes is not None
        else f"Keeps {one_line(planned.name)} on base pages, as planned.",
        install=folder
        + "\n".join(
            [
                f"install -D -m 0600 -o {_OWNER} {name} {path}",
                f'chown {_OWNER} "$(dirname {path})"',
                f"grep -q '^ *include_dir.*conf[.]d' {conf} || echo \"include_dir = 'conf.d'\" >> {conf}",
                *resets,
                restart,
            ]
        ),
        verify=folder + (all_of(checks) if checks else f"{psql} 'SHOW shared_buffers'"),
        rollback=f"{folder}rm -f {path}\n{restart}",
        restart=Restart.ENGINE,
        avoid_when="An operator or Patroni writes the configuration: set the parameters there.",
    )


def _quoted(value: str) -> str:
    """A value as postgresql.conf takes any of them."""
    return "'" + one_line(value).replace("'", "''") + "'"
