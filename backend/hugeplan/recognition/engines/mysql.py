"""MySQL, Percona Server and MariaDB in a container: ``mysqld --name=value`` and mounted my.cnf files."""

from __future__ import annotations

import re

from hugeplan.formats.command_line import expand, long_options
from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading
from hugeplan.recognition.config_files import my_cnf

_NOT_SETTINGS = frozenset({"defaults_file", "defaults_extra_file", "user", "datadir", "socket", "port", "console"})


def read(container: ContainerView) -> Reading:
    """Options of the command go before mounted files."""
    files: dict[str, str] = {}
    sources: dict[str, str] = {}
    unknown: list[str] = []
    for file in container.files:
        if not re.search(r"\.cnf$|my\.cnf|my\.ini", file.path):
            continue
        settings, includes = my_cnf(file.text)
        files |= settings
        sources |= dict.fromkeys(settings, file.source)
        if includes and len(container.files) == 1:
            unknown.append(f"{file.path} includes files that the input does not hold")
    options: dict[str, str] = {}
    for name, value in long_options(container.words):
        plain = name.lower().replace("-", "_").removeprefix("loose_")
        expanded = expand(value, container.environment) if value is not None else "on"
        if plain in _NOT_SETTINGS:
            continue
        if expanded is None or "$" in expanded:
            unknown.append(f"{plain}: its value comes from a variable that the input does not hold")
            continue
        negated = plain.startswith("skip_") and plain.removeprefix("skip_") == "large_pages"
        options["large_pages" if negated else plain] = "off" if negated else expanded
    found = Reading(settings=files, sources=sources, unknown=tuple(unknown))
    return Reading.of("arguments", options).over(found)


ENGINE = ContainerEngine(
    engine="mysql",
    programs=frozenset({"mysqld", "mysqld_safe"}),
    images=frozenset(
        {
            "mysql", "mysql-server", "community-server", "enterprise-server", "percona", "percona-server",
            "percona-xtradb-cluster", "percona-xtradb-cluster-operator-pxc", "mysql-80", "mysql-57",
        }
    ),
    read=read,
    main_setting="innodb_buffer_pool_size",
)  # fmt: skip
MARIADB = ContainerEngine(
    engine="mariadb",
    programs=frozenset({"mariadbd", "mariadbd-safe"}),
    images=frozenset({"mariadb", "mariadb-galera", "mariadb-enterprise", "mariadb-enterprise-server"}),
    read=read,
    main_setting="innodb_buffer_pool_size",
)
