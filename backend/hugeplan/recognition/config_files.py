"""Configuration files of engines, read for their settings; whatever is not understood is passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hugeplan.formats import option_files
from hugeplan.formats.redis_conf import directives

#: Paths of files that an engine's reader looks at.
MAY_CONFIGURE: Final = re.compile(r"\.(?:conf|cnf)$|my\.cnf|my\.ini|postgresql|mongo")


def my_cnf(text: str) -> tuple[dict[str, str], bool]:
    """Settings of the server's sections of a my.cnf, names with underscores; and whether it includes other files."""
    found = (option for option in option_files.options(text) if option.is_of_server)
    settings = {option.name: "on" if option.value is None else option.value for option in found}
    return settings, option_files.includes(text)


def redis_conf(text: str) -> dict[str, str]:
    """Directives of a redis.conf by name."""
    return {found.name: found.value for found in directives(text) if found.value}


def mongod_conf(text: str) -> Mapping[str, Any]:
    """A mongod.conf as nested objects; empty when it is not one."""
    # Few inputs hold such a file, and the parser takes a while to import.
    import yaml  # noqa: PLC0415

    from hugeplan.documents import yaml_nodes  # noqa: PLC0415

    try:
        found = yaml_nodes.load(text)
    except (yaml.YAMLError, ValueError):  # a number of thousands of digits
        return {}
    return found if isinstance(found, Mapping) else {}
