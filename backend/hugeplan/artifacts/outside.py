"""Text from outside into a file: the one place that says which names a file may use, and how all others are shown.

Names of nodes, StatefulSets and containers come from reports, imports and scenarios: from strangers. An operator
applies the files with the rights of root. So a name that a file uses (a host of a playbook, an object of ``kubectl``)
has the form that such names have, or no file is handed out; every other text stands in a comment, printable and on one
line (:func:`hugeplan.artifacts.base.flaw` looks at every rendered file once more).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from functools import cache
from hashlib import sha256
from ipaddress import ip_address
from itertools import count
from operator import is_
from typing import Any, Final, TypeVar, cast

from hugeplan.planner.errors import shown_value
from hugeplan.planner.host_names import is_here_by_name
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.printable import printable
from hugeplan.recognition.operators import LABEL, is_stateful_set, names_of_object

T = TypeVar("T")

#: RFC 1123, and the underscores and capitals that machines have all the same.
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*")
_MOST_OF_A_HOST: Final = 253
#: A last part that makes resolvers read a name as an address, as 0x7f000001 or 127.1.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
#: Names that are no one host: Ansible's groups of all hosts, what /etc/hosts of Debian, SUSE, macOS and others calls
#: local or many, and the machine around a container that Ansible may run in.
_NO_ONES: Final = re.compile(
    r"all|ungrouped|localhost\..+|loopback|broadcasthost|ipv?6-(localnet|mcastprefix|all(nodes|routers|hosts))"
    r"|(host|gateway|kubernetes)\.(docker|containers|minikube)\.internal"
)
#: A setting's name and value, as the planner's engines write them: nothing that a shell, SQL or an option file reads.
_SETTING_NAME: Final = re.compile(r"[A-Za-z0-9_.:+/-]{1,128}")
_SETTING_VALUE: Final = re.compile(r"[A-Za-z0-9_.,:+/=%@*-]*(?: [A-Za-z0-9_.,:+/=%@*-]+)*")
_NO_TEXTS: Final = frozenset({int, float, bool, type(None)})
_COMMENT_OF_SQL: Final = re.compile(r"[^A-Za-z0-9 ,._:/()%+=]")


def is_host_name(name: str) -> bool:
    """Whether ``name`` has the form of a host's name: letters, digits, dashes, underscores and dots."""
    return len(name) <= _MOST_OF_A_HOST and _HOST.fullmatch(name) is not None


def is_plain_host(name: str) -> bool:
    """Whether Ansible, wherever it runs, takes ``name`` for one host: no group, nor what leads to where it runs."""
    low = name.lower()
    if not is_host_name(name) or is_here_by_name(low) or _NO_ONES.fullmatch(low) is not None:
        return False
    if _NUMBER.fullmatch(low.rpartition(".")[2]) is None:
        return True
    try:
        address = ip_address(low)
    except ValueError:  # an address all the same to who asks for it
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_link_local or address.is_multicast)


def is_listed_host(name: str) -> bool:
    """Whether a list of hosts may have ``name``: a plain host that is no address. A report may say another's address,
    under which nobody reports who could keep it."""
    return is_plain_host(name) and _NUMBER.fullmatch(name.lower().rpartition(".")[2]) is None


def refused_names(node: str, databases: Iterable[Mapping[str, Any]]) -> str | None:
    """Why no file is handed out: the first name that a file would use and that does not have the form of its kind.

    ``databases`` are mappings with ``stateful_set``, ``container`` and ``operator_object``, None where unknown. None
    when all names will do.
    """
    found = [("node", node, is_host_name(node), "a host name: letters, digits, dashes, underscores and dots")]
    for database in databases:
        stateful_set, container = database.get("stateful_set"), database.get("container")
        if stateful_set is not None:
            right = is_stateful_set(stateful_set)
            found.append(("StatefulSet", stateful_set, right, "NAMESPACE/NAME as Kubernetes spells them"))
        if container is not None:
            right = LABEL.fullmatch(container) is not None
            found.append(("container", container, right, "a name as Kubernetes spells it"))
        found += names_of_object(database.get("operator_object") or {})
    for what, name, is_right, expected in found:
        if not is_right:
            return (
                f"The {what}'s name {quoted(name)} is not {expected}, so no file is handed out: files are applied as "
                "root and use the name. Give it another name."
            )
    return None


def refused(plan: Plan, request: PlanRequest) -> str | None:
    """:func:`refused_names` of a plan, and a setting that some reader of a file would take for something else."""
    databases = [
        {
            "stateful_set": each.stateful_set,
            "container": each.container,
            "operator_object": None if each.operator_object is None else asdict(each.operator_object),
        }
        for each in request.databases
    ]
    for instance in plan.instances:
        for advice in instance.demand.settings:
            if not (_SETTING_NAME.fullmatch(advice.name) and is_setting_value(advice.value)):
                setting = f"{quoted(advice.name)} = {quoted(advice.value)}"
                return f"The setting {setting} of {quoted(instance.name)} cannot be written, so no file is handed out."
    return refused_names(plan.node, databases)


def is_setting_value(value: str) -> bool:
    """Whether a shell, SQL and every option file read ``value`` as one value."""
    return len(value) <= 200 and _SETTING_VALUE.fullmatch(value) is not None


def quoted(name: str) -> str:
    """A name from outside in a sentence: in quotes, on one line, bounded."""
    return shown_value(printable(name, 80)) if name.isprintable() else f'"{printable(name, 80)}"'


def tamed(plan: Plan, request: PlanRequest) -> tuple[Plan, PlanRequest]:
    """Both as renderers take them: every text printable and on one line, the mode of THP one that the kernel has."""
    thp = request.node.thp_enabled
    node = replace(request.node, thp_enabled=thp if thp in {"always", "madvise", "never"} else None)
    return _printable(plan), _printable(replace(request, node=node))


def _printable(value: T) -> T:
    """``value`` with every text in it printable: of tuples, mappings and dataclasses, however deep. What is printable
    stays the same object: some fields do not count where two are compared.
    """
    if type(value) is str:  # not a StrEnum, whose members are ours
        return cast(T, printable(cast(str, value), 2000))
    if isinstance(value, tuple):
        items = tuple(map(_printable, value))
        return value if all(map(is_, items, value)) else items  # type: ignore[return-value]
    if isinstance(value, Mapping):
        own = {_printable(key): _printable(item) for key, item in value.items()}
        is_same = all(map(is_, (*own, *own.values()), (*value, *value.values())))
        return value if is_same else own  # type: ignore[return-value]
    given = ((name, getattr(value, name)) for name in _fields_of(type(value)))  # type: ignore[arg-type]
    shown = {name: (item, _printable(item)) for name, item in given if type(item) not in _NO_TEXTS}
    changed = {name: new for name, (item, new) in shown.items() if new is not item}
    return replace(value, **changed) if changed else value  # type: ignore[type-var]


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.init) if is_dataclass(kind) else ()


def sql_comment(text: str) -> str:
    """``text`` in a comment that SQL*Plus reads: no ``&`` it would ask for, no ``;``, no dash at the line's end."""
    return _COMMENT_OF_SQL.sub("?", text)


def markdown(text: str) -> str:
    """``text`` inside a Markdown line, table cells included: printable, nothing of it a link, a tag or a new cell."""
    return re.sub(r"([\\`<>\[\]|&])", r"\\\1", printable(text, 2000))


def folder_name(name: str, taken: set[str]) -> str:
    """A name from outside as one folder or file name, never a path, and not one of ``taken``; it joins those.

    What is such a name already stays as it is, whoever comes first; all else ends in its digest (as in ``slug``).
    """
    own = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100].strip(".-") or "node"

    def with_digest(number: int) -> str:
        return f"{own}-{sha256((name + '/' * number).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    is_own = own == name and not re.search(r"-[0-9a-f]{16}$", name)
    found = name if is_own else with_digest(0)
    if found in taken:  # equal names took the first numbers; not all of them are tried
        most = next(2**i for i in count() if with_digest(2**i) not in taken)
        found = with_digest(bisect_left(range(most), True, key=lambda number: with_digest(number) not in taken))
    taken.add(found)
    return found
