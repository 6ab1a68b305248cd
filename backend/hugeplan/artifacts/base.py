"""An artifact: text that a node or a cluster accepts, with the commands that install, verify and roll it back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

import yaml

from hugeplan.artifacts.outside import quoted, sql_comment
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, PoolPlan
from hugeplan.planner.pages import kubernetes_resource_name, sysfs_directory_name
from hugeplan.planner.printable import printable
from hugeplan.planner.units import format_kubernetes_bytes

_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,199}")
_KIND: Final = re.compile(r"[a-z0-9_-]{1,100}")


class Restart(StrEnum):
    """What must be restarted for a file to take effect."""

    NOTHING = "nothing"
    ENGINE = "engine"
    KUBELET = "kubelet"
    REBOOT = "reboot"
    NODES = "nodes"  # the nodes of a pool are replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One file that applies a part of the plan. ``kind`` is unique within a plan.

    Attributes:
        filename: its name in a folder of artifacts.
        path: where it goes on the node, "A or B" where only the node knows; None for what is applied to a cluster or
            kept elsewhere.
        summary: what it does, in one sentence.
        install, verify, rollback: shell commands; ``verify`` only reads, and fails while the plan is not in force.
        restart: what must be restarted for it to take effect.
        avoid_when: when not to use it.
        recommended: whether it is on the recommended path of the node's platform; ``step`` is its place there, from 1.
    """

    kind: str
    filename: str
    media_type: str = "text/plain"
    content: str
    verify: str
    rollback: str
    path: str | None = None
    summary: str = ""
    install: str = ""
    restart: Restart = Restart.NOTHING
    avoid_when: str = ""
    recommended: bool = False
    step: int | None = None

    @property
    def place(self) -> str:
        """Where it lies in a folder of the plan's files: a step has a folder of its own."""
        return f"{'alternatives/' if self.step is None else f'{self.step}-'}{self.kind}/{self.filename}"


class GivesBack(Artifact):
    """The file of a database that needs fewer pages than it has: see :mod:`hugeplan.artifacts.order`."""

    __slots__ = ()


class ChangesSize(Artifact):
    """The file of a database that runs on pages of another size than the planned one."""

    __slots__ = ()


Renderer = Callable[[Plan, PlanRequest], Iterable[Artifact]]


def flaw(artifact: Artifact) -> str | None:
    """Why a file is not handed out whoever rendered it: a name that is a path, a character that has no place there.

    None for a sound one. Stored files and those of a plan document are asked too: an older renderer made them.
    """
    if not _KIND.fullmatch(artifact.kind):
        return f"the kind {quoted(artifact.kind)} is not lower-case letters, digits, - and _"
    if not _FILE_NAME.fullmatch(artifact.filename):
        return f"{artifact.kind}: the file name {quoted(artifact.filename)} is not one of letters, digits, . - and _"
    of_lines = (artifact.content, artifact.install, artifact.verify, artifact.rollback)
    lines = [line.replace("\t", " ") for text in of_lines for line in text.split("\n")]
    for line in (*lines, artifact.summary, artifact.avoid_when, artifact.path or "", artifact.media_type):
        if not line.isprintable():
            bad = next(c for c in line if not c.isprintable())
            return f"{artifact.kind}: the file holds the character U+{ord(bad):04X}"
    return None


def require_sound(artifacts: Iterable[Artifact]) -> None:
    """PlannerError for the first file with a :func:`flaw`."""
    for artifact in artifacts:
        found = flaw(artifact)
        if found is not None:
            raise PlannerError("artifacts", found, "files without control characters, in their own folder")


def planned_pools(plan: Plan) -> tuple[PoolPlan, ...]:
    """Pools to write: planned ones, and present ones that the plan releases (zero pages)."""
    return tuple(pool for pool in plan.pools if pool.pages or pool.present_pages)


def pages_by_size(plan: Plan) -> Mapping[int, Mapping[int, int]]:
    """page size -> NUMA node -> pages, sizes and nodes in rising order."""
    found: dict[int, dict[int, int]] = {}
    for pool in sorted(planned_pools(plan), key=lambda p: (p.page_bytes, p.numa_node)):
        found.setdefault(pool.page_bytes, {})[pool.numa_node] = pool.pages
    return found


def totals_by_size(plan: Plan) -> dict[int, int]:
    """page size -> pages of all NUMA nodes, sizes without pages left out."""
    totals = {size: sum(by_node.values()) for size, by_node in pages_by_size(plan).items()}
    return {size: pages for size, pages in totals.items() if pages}


def count_path(numa_node: int, page_bytes: int) -> str:
    """The file that holds a pool's page count."""
    return f"/sys/devices/system/node/node{numa_node}/hugepages/{sysfs_directory_name(page_bytes)}/nr_hugepages"


def with_pool(plan: Plan, request: PlanRequest) -> list[tuple[DatabaseInstance, InstancePlan]]:
    """Instances that get huge pages, with their plans."""
    pairs = zip(request.databases, plan.instances, strict=True)
    return [(instance, planned) for instance, planned in pairs if planned.page_bytes is not None]


def is_kernel_setting(name: str) -> bool:
    """Whether an engine's advice is a sysctl, a file of /sys or a limit (``kernel.shmmax``, ``memlock``), and not a
    setting of its own.
    """
    return name.startswith(("kernel.", "vm.", "transparent_hugepage/")) or name == "memlock"


def one_line(text: str) -> str:
    """``text`` safe inside a comment: printable, on one line."""
    return printable(text, 2000)


def slug(text: str, *, kept: str = "_", longest: int = 50) -> str:
    """``text`` as part of a name, which no other text has: lower-case letters, digits, dashes and ``kept``.

    What is such a name already stays as it is; all else ends in its digest, of which nobody makes a second one.
    """
    own = _readable(text, kept)
    if own == text and len(own) <= longest and not re.search(r"-[0-9a-f]{16}$", own):
        return own
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{own[: longest - 17].strip('-')}-{digest}"


def object_name(text: str, *, longest: int = 59) -> str:
    """``hugeplan-NAME`` for what one node, or one pool of nodes, has in a cluster: no other host has this name."""
    return f"hugeplan-{slug(text.lower(), kept='', longest=longest - 9)}"


def _readable(text: str, kept: str = "") -> str:
    return re.sub(f"[^a-z0-9{kept}]+", "-", text.lower()).strip("-") or "instance"


def unique_kinds(kind: str, names: Iterable[str]) -> list[str]:
    """One kind for each name: ``kind`` alone when there is one, else with the name's slug, made unique."""
    given = list(names)
    if len(given) == 1:
        return [kind]
    kinds: list[str] = []
    for name in given:
        candidate = own = f"{kind}-{slug(_readable(name))}"
        number = 2
        while candidate in kinds:
            candidate = f"{own}-{number}"
            number += 1
        kinds.append(candidate)
    return kinds


# --- commands -----------------------------------------------------------------------------------


#: The program of :mod:`hugeplan.artifacts.installer`, on the node.
INSTALLER: Final = "/usr/local/sbin/hugeplan-file"


def mark(content: str) -> str:
    """What tells a file of a plan from all others: how its SHA-256 begins."""
    return sha256(content.encode()).hexdigest()[:16]


def put(name: str, path: str, content: str, user: str = "") -> str:
    """The command that copies the file ``name`` to ``path``, a word of a shell; what was there stays beside it.

    ``user``: of :func:`as_user`, for a folder that is not root's.
    """
    return f"{user or INSTALLER} put {mark(content)} {path} < {name}"


def put_back(
    path: str, content: str, *after: str, first: Sequence[str] = (), line: str = "", last: str = "", user: str = ""
) -> str:
    """The way back of :func:`put`: the file goes, what was there before it comes back, and the commands ``after`` run,
    none of them without ``first``.

    None does where another plan's file is there: that stays. What ended before ``last``, a reboot, can be run again.
    ``line``: a file and the line in it that includes this one, two words of a shell: the line goes first.
    """
    notes = [line for line in after if line.startswith("#")]
    file = f"{mark(content)} {path}"
    own = user or INSTALLER
    steps = (*first, f"{own} back {file} {line}".rstrip(), *after, f"{own} end {file}", last)
    return "\n".join([*notes, all_of([line for line in steps if line and line not in notes])])


def with_content(artifact: Artifact, content: str) -> Artifact:
    """The file with another text, which its commands know it by."""
    old, new = mark(artifact.content), mark(content)
    commands = {name: getattr(artifact, name).replace(old, new) for name in ("install", "rollback")}
    return replace(artifact, content=content, **commands)


def as_user(user: str) -> str:
    """The start of a command of the installer for ``user``, a word of a shell: ``uid:1001`` is who has no name."""
    return f"{INSTALLER} as {user}"


def as_owner_of(folder: str) -> str:
    """The same for who may write in the folder of the file, which the program judges: a word of a shell."""
    return as_user(f"owner:{folder}")


def left_as_comments(commands: str) -> str:
    """Commands that a person runs once the placeholders in them are filled in, or reads first."""
    return "\n".join(f"#   {line}" for line in commands.splitlines())


def all_of(commands: Sequence[str]) -> str:
    """Commands as one that fails with the first of them: joined by ``&&``, one per line."""
    return " &&\n".join(commands)


def pool_checks(plan: Plan) -> list[str]:
    """One test per pool that its count is the plan's."""
    pools = sorted(planned_pools(plan), key=lambda p: (p.page_bytes, p.numa_node))
    return [f'test "$(cat {count_path(p.numa_node, p.page_bytes)})" -eq {p.pages}' for p in pools]


def restore_counts(plan: Plan) -> list[str]:
    """Commands that write the counts that were there before the plan; planned pools shrink first."""
    pools = sorted(planned_pools(plan), key=lambda p: ((p.present_pages or 0) > p.pages, p.page_bytes, p.numa_node))
    lines = []
    for pool in pools:
        path = count_path(pool.numa_node, pool.page_bytes)
        before = previous_pages(pool)
        known = f"echo {before} > {path}"
        lines.append(f"# the previous count of {path} is not known: left as it is" if before is None else known)
    return lines


def previous_pages(pool: PoolPlan) -> int | None:
    """The count that ``nr_hugepages`` was written with before the plan: present pages but surplus ones."""
    return None if pool.present_pages is None else pool.present_pages - pool.surplus_pages


#: How a comment starts, by media type; ``#`` in all others. JSON has none.
_COMMENTS: Mapping[str, str | None] = {"application/json": None, "application/sql": "--"}


def with_warning(artifact: Artifact, warning: str) -> Artifact:
    """The file with a warning as its first comment; in JSON, which has none, as its first member ``_warning``."""
    text = f"WARNING: {one_line(warning)}"
    content = with_first_line(artifact.content, artifact.media_type, text, member="_warning")
    return replace(with_content(artifact, content), summary=f"{text} {artifact.summary}")


def with_first_line(content: str, media_type: str, text: str, *, member: str) -> str:
    """``content`` with ``text`` as its first comment; in JSON, which has none, as its first member ``member``.

    Grafana and the Azure command line read the members that they know and pass over others.
    """
    text = sql_comment(text) if media_type == "application/sql" else text
    mark = _COMMENTS.get(media_type, "#")
    if mark is None:
        return json.dumps({member: text, **json.loads(content)}, indent=2) + "\n"
    lines = content.split("\n")
    first = 0
    if lines[0].startswith("MIME-Version:"):
        # Among the headers of a message a comment would be a damaged header: it goes into the script it carries.
        first = next((at + 1 for at, line in enumerate(lines) if line.startswith("#!")), len(lines))
    elif lines[0].startswith(("#!", "#cloud-config")):
        first = 1  # must stay first
    return "\n".join([*lines[:first], f"{mark} {text}", *lines[first:]])


def node_checks(plan: Plan) -> list[str]:
    """One test per page size that the cluster sees the plan's pages on the node."""
    checks = []
    for size, pages in totals_by_size(plan).items():
        resource = kubernetes_resource_name(size)
        query = f"kubectl get node {shlex.quote(plan.node)} -o jsonpath='{{.status.capacity.{resource}}}'"
        checks.append(f'test "$({query})" = {format_kubernetes_bytes(pages * size)}')
    return checks


# --- YAML ---------------------------------------------------------------------------------------


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # yaml ships no types
    """libyaml's where it is built in: a preview renders every file. Long text is not folded, see below."""


#: Plain words that PyYAML writes and other readers take for a number or a boolean: YAML 1.2's, and Go's of YAML 1.1.
_NO_TEXT: Final = re.compile(r"[-+]?([0-9.][0-9_.:]*(e[-+]?[0-9]+)?|0[box][0-9a-f_]+|\.inf)|[yn]", re.IGNORECASE)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else "'" if _NO_TEXT.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


class Verbatim(str):
    """Text that Ansible copies as it is: the tag ``!unsafe`` keeps its templating away."""

    __slots__ = ()


def _verbatim(dumper: yaml.SafeDumper, text: Verbatim) -> yaml.Node:
    return dumper.represent_scalar("!unsafe", str(text), style="|" if "\n" in text else '"')


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Verbatim, _verbatim)


def yaml_text(comments: Sequence[str], *documents: Any) -> str:
    """Documents under comment lines. Keys keep their order."""
    head = "".join(f"# {one_line(line)}\n" for line in comments)
    bodies = [
        yaml.dump(d, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000, default_flow_style=False)
        for d in documents
    ]
    return head + "---\n".join(bodies)
