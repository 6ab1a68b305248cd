"""my.cnf of MySQL and Percona Server, and MariaDB's, whose section and service differ.

Every server of a host reads the folder and the section. One whose unit gives it a section of its own gets that. Where
there are several, what another needs goes where only a person knows. A unit that is known is what is restarted; one
of another name than the distributions' may read other files, which a person knows, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final

from hugeplan.artifacts.base import Artifact, Restart, as_owner_of, mark, one_line, put, put_back, slug
from hugeplan.artifacts.engines.common import commented, left_to_a_person, per_instance, servers_on_host
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice

#: engine -> kind, section and service, what stands before a name in a section of its own, folders. The folders
#: of Debian and Ubuntu, of Red Hat and SUSE, and of images: which one a host's server reads, its main file says.
_DIALECTS = {
    "mysql": (
        "my_cnf", "mysqld", "@", ("/etc/mysql/mysql.conf.d", "/etc/my.cnf.d", "/etc/mysql/conf.d"),
    ),
    "mariadb": (
        "mariadb_cnf", "mariadb", ".", ("/etc/mysql/mariadb.conf.d", "/etc/my.cnf.d", "/etc/mysql/conf.d"),
    ),
}  # fmt: skip
_MAIN_FILES = "/etc/my.cnf /etc/mysql/my.cnf"
#: Services of the distributions, which read a usual folder; mysql@bootstrap would make another cluster of one's own.
_USUAL = re.compile(r"systemd:(mysql|(?:mysqld|mariadb)(?:@[^/@]+)?)\.service")
#: Huge pages in use. Root asks no server: its user may own the socket, and option files that name a library.
_PAGES_OF_SERVICE = "awk '/^HugetlbPages/ {print $2}' /proc/$(systemctl show --property MainPID --value SERVICE)/status"
PAGES_IN_CONTAINER: Final = (  # which has its own processes alone
    r"cat /proc/[0-9]*/status 2> /dev/null | awk '/^Name:/ {n = /\t(mysqld|mariadbd)$/}"
    " n && /^HugetlbPages/ {pages += $2} END {print pages}'"
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per MySQL."""
    return _files("mysql", plan, request)


def render_mariadb(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per MariaDB."""
    return _files("mariadb", plan, request)


def _files(engine: str, plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    # MariaDB reads [mysqld], too.
    shares = not request.reservations.kubernetes and servers_on_host(plan, request, *_DIALECTS) > 1

    def write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
        server = None if request.reservations.kubernetes else request.server(planned.runs_as)
        pages = PAGES_IN_CONTAINER if request.reservations.kubernetes else _PAGES_OF_SERVICE
        return _file(kind, planned, advice, (server and server.unit) or "", pages, shares=shares)

    return per_instance(_DIALECTS[engine][0], (engine,), plan, request, write)


def _into_the_folder_read(name: str, folders: Iterable[str], content: str) -> str:
    """No folder is made: a server reads none that its main file does not include."""
    several = " ".join(folders)
    none = f"None of {several} is included by {_MAIN_FILES}: write the lines into the file that the server reads."
    # In single quotes: an interactive bash takes any other ! for its history.
    included = f"""grep -D skip -qsE '^[[:space:]]*!includedir[[:space:]]+'"$d"'/*[[:space:]]*$' {_MAIN_FILES}"""
    own = put(name, f'"$d/zz-{name}"', content, as_owner_of('"$d"'))
    loop = f"for d in {several}; do {included} && exec {own}; done"
    return f"( {loop}; echo {shlex.quote(none)} >&2; exit 1 )"


def _from_the_folder_read(paths: Iterable[str], content: str, back: str) -> str:
    """The way back in the folder that has the file, or what was kept for it."""
    there = f'ls "$f" "$f".*-{mark(content)} 2> /dev/null | grep -q .'
    return f"( for f in {' '.join(paths)}; do {there} || continue\n{back}\nexit; done )"


def _back(content: str, service: str) -> str:
    return put_back('"$f"', content, f"systemctl restart {service}", user=as_owner_of('"${f%/*}"'))


def _file(
    kind: str, planned: InstancePlan, advice: tuple[SettingAdvice, ...], unit: str, pages: str, *, shares: bool
) -> Artifact:
    _, common, mark, folders = _DIALECTS[planned.engine]
    name, whose = f"{slug(planned.name)}-hugepages.cnf", one_line(planned.name)
    paths = [f"{folder}/zz-{name}" for folder in folders]  # the last of a folder wins
    on = any(item.name == "large_pages" and item.value == "ON" for item in advice)
    section, service = common, common
    head, *lines = commented(planned, advice, lambda i: f"{i.name} = {one_line(i.value)}")
    usual = _USUAL.fullmatch(unit)
    # systemd writes other characters of a name in its own way.
    its_own = re.fullmatch(rf"{service}@([A-Za-z0-9_]+)", usual[1]) if usual else None
    is_form = its_own is None and (shares or (usual is None and unit != ""))
    if is_form:  # lines that no server reads do no harm wherever they are copied
        section = f"{common}{mark}OWN_SECTION"
        head += f"\n# No server reads this section: write the lines into one that {whose} alone reads."
    if its_own is not None:
        section = f"{common}{mark}{its_own[1]}"
    if usual is not None:
        service = shlex.quote(usual[1])
    content = "\n".join([head, f"[{section}]", *lines, ""])
    file = Artifact(
        kind=kind,
        filename=name,
        path=" or ".join(paths),
        content=content,
        summary=f"Puts the buffer pool of {whose} on its planned pages."
        if planned.page_bytes is not None
        else f"Keeps {whose} on base pages, as planned.",
        install=f"{_into_the_folder_read(name, folders, content)} &&\nsystemctl restart {service}",
        verify=f'test "$({pages.replace("SERVICE", service)})" {"-gt" if on else "-eq"} 0',
        rollback=_from_the_folder_read(paths, content, _back(content, service)),
        restart=Restart.ENGINE,
        avoid_when="An operator writes the option file: set the values there.",
    )
    # Who insists on pages does not start while this one has them.
    summary = (
        f"{'Lines' if planned.page_bytes is not None else 'Before the numbered steps: lines'} for the option file or"
        f" section that {whose} alone reads, as another MySQL or MariaDB of this host may read [{common}], too."
    )
    return (
        left_to_a_person(file, unit, summary, f"socket: SELECT @@GLOBAL.large_pages is {int(on)}") if is_form else file
    )
