"""Configuration files of engines, read for their settings; whatever is not understood is passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_POSTGRESQL_LINE = re.compile(
    r"""^\s*(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*(?:=\s*|\s+)(?P<value>'(?:[^'\\]|''|\\.)*'|[^#\s]+)"""
)
_SECTION = re.compile(r"^\s*\[(?P<name>[^\]]+)\]\s*$")
_SERVER_SECTIONS = re.compile(r"^(mysqld?|server|mariadbd?|galera|embedded)([-_].*|\d.*)?$")


def postgresql_conf(text: str) -> tuple[dict[str, str], bool]:
    """Settings of a postgresql.conf, the last of a name counts; and whether it includes other files."""
    settings: dict[str, str] = {}
    includes = False
    for line in text.splitlines():
        found = _POSTGRESQL_LINE.match(line)
        if found is None:
            continue
        name, value = found["name"].lower(), found["value"]
        if name in {"include", "include_dir", "include_if_exists"}:
            includes = True
            continue
        if value.startswith("'"):
            value = value[1:-1].replace("''", "'")
        settings[name] = value
    return settings, includes


def my_cnf(text: str) -> tuple[dict[str, str], bool]:
    """Settings of the server's sections of a my.cnf, names with underscores; and whether it includes other files."""
    settings: dict[str, str] = {}
    includes, in_server = False, True
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("!include"):
            includes = True
        section = _SECTION.match(line)
        if section is not None:
            in_server = bool(_SERVER_SECTIONS.match(section["name"].strip().lower()))
            continue
        if not in_server or not stripped or stripped[0] in "#;!":
            continue
        name, separator, value = stripped.partition("=")
        value = re.split(r"\s[#;]", value, maxsplit=1)[0].strip().strip("'\"")
        settings[_mysql_name(name)] = value if separator else "on"
    return settings, includes


def _mysql_name(name: str) -> str:
    return name.strip().lower().replace("-", "_").removeprefix("loose_")


def redis_conf(text: str) -> dict[str, str]:
    """Directives of a redis.conf by name."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not words[0].startswith("#"):
            settings[words[0].lower()] = words[1].strip().strip("'\"")
    return settings


def mongod_conf(text: str) -> Mapping[str, Any]:
    """A mongod.conf as nested objects; empty when it is not one."""
    import yaml  # noqa: PLC0415 - few inputs hold such a file, and the parser takes a while to import

    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, Mapping) else {}


def properties(text: str) -> dict[str, str]:
    """``name=value`` lines, as jvm.options-like files and Java property files have them."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith(("#", "!")):
            settings[name.strip()] = value.strip()
    return settings
