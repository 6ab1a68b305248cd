"""The data files beside the engines: what the servers list of their own settings, read when somebody first asks.

They are part of the package, as the modules are, and never change while it runs; the planner reads no other file.
"""

from __future__ import annotations

from pkgutil import get_data

from hugeplan.planner.remembered import remembered


def data_file(name: str) -> str:
    """The text of a file of ``planner/demand/engines``. Error: FileNotFoundError."""
    content = get_data("hugeplan.planner.demand.engines", name)
    if content is None:
        raise FileNotFoundError(name)
    return content.decode("utf-8")


@remembered(8)
def option_names(name: str) -> frozenset[str]:
    """The names in a file with one option per line; a line that starts with # is a comment."""
    return frozenset(line for line in data_file(name).splitlines() if not line.startswith("#"))
