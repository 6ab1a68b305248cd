"""Configuration files of engines, read for their settings; whatever is not understood is passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hugeplan.formats import option_files

_POSTGRESQL_LINE = re.compile(
    r"""^\s*+(?P<name>[A-Za-z_][A-Za-z0-9_.]*+)(?:\s*+=\s*+|\s++)(?P<value>'(?:[^'\\]|''|\\.)*'|[^#\s]+)"""
)


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
    found = (option for option in option_files.options(text) if option.is_of_server)
    settings = {option.name: "on" if option.value is None else option.value for option in found}
    return settings, option_files.includes(text)


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
    # Few inputs hold such a file, and the parser takes a while to import.
    import yaml  # noqa: PLC0415

    from hugeplan.documents import yaml_nodes  # noqa: PLC0415

    try:
        found = yaml_nodes.load(text)
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
