"""A bundle: all files of a plan in a layout for a GitOps repository, with a README, the same bytes for the same plan.

::

    README.md            order, who restarts what, verify, roll back
    verify.sh            checks the pools and every step whose file is installed; reads only, fails while one is not
                         in force
    roll-back.sh         the ways back of the recommended path, in reverse order, as comments to run one by one
    1-kernel_command_line/60-hugeplan.cfg    the steps, in their order
    2-pod/pod.yaml
    alternatives/sysctl/60-hugeplan.conf     instead of a step: use one
    nodes.txt                                for a group of nodes: their names that are host names, one per line
"""

from __future__ import annotations

import difflib
import io
import re
import shlex
import zipfile
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Literal

from hugeplan.artifacts.base import INSTALLER, Artifact, Restart, left_as_comments, require_sound, with_first_line
from hugeplan.artifacts.outside import is_listed_host, markdown, quoted
from hugeplan.artifacts.provenance import Provenance

_KEPT_BEFORE: Final = (
    "The first install of a patch writes what stood in the object into `NAME-fields-before.yaml` beside this file,",
    "which is the way back: keep it, also when you plan again. Where an earlier plan was installed from another",
    "folder, copy its files of that name here first: the way back would else end at that plan's state.",
    "",
)
#: How a bundle's README begins.
TITLE: Final = "# Huge pages of "
#: The paths that a bundle's files can have, and its folders.
FILE_PATH: Final = re.compile(
    r"README\.md|verify\.sh|roll-back\.sh|nodes\.txt|(alternatives/|[0-9]{1,4}-)[a-z0-9_-]+/[A-Za-z0-9_][A-Za-z0-9_.@-]*"
)
FOLDER_PATH: Final = re.compile(r"alternatives(/[a-z0-9_-]+)?|[0-9]{1,4}-[a-z0-9_-]+")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_RESTARTS = {
    Restart.NOTHING: "nothing",
    Restart.ENGINE: "the database engine",
    Restart.KUBELET: "the kubelet",
    Restart.REBOOT: "the node (reboot)",
    Restart.NODES: "the nodes are replaced",
}


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of a bundle: its path with slashes, its text, and whether it is a program."""

    path: str
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A file that differs between two bundles: added, removed or changed, with a unified diff."""

    path: str
    change: Literal["added", "removed", "changed"]
    diff: str


def bundle(
    node: str,
    headline: str,
    artifacts: Sequence[Artifact],
    *,
    provenance: Provenance | None = None,
    group: Sequence[str] = (),
) -> tuple[BundleFile, ...]:
    """The files of a bundle, sorted by path. ``provenance``: which kept plan README and scripts are of. ``group``: the
    names of all nodes that the files are for, where they were made for ``node`` as one of several.

    PlannerError for a file that may not be handed out.
    """
    require_sound(artifacts)
    files = [BundleFile(a.place, a.content, a.media_type == "text/x-shellscript") for a in artifacts]
    recommended = [a for a in artifacts if a.recommended]
    files += [
        BundleFile("README.md", _readme(node, headline, artifacts, provenance, group)),
        BundleFile("verify.sh", _named(_verify(recommended), provenance), executable=True),
        BundleFile("roll-back.sh", _named(_roll_back(recommended), provenance), executable=True),
    ]
    if group:
        files.append(BundleFile("nodes.txt", "".join(f"{name}\n" for name in group if is_listed_host(name))))
    return tuple(sorted(files, key=lambda file: file.path))


def _named(script: str, provenance: Provenance | None) -> str:
    if provenance is None:
        return script
    return with_first_line(script, "text/x-shellscript", provenance.line(), member="")


def as_zip(files: Sequence[BundleFile]) -> bytes:
    """The bundle as a zip archive: fixed times, fixed order, no compression, so that equal plans are equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in files:
            info = zipfile.ZipInfo(file.path, _EPOCH)
            info.create_system = 3
            info.external_attr = (0o100755 if file.executable else 0o100644) << 16
            archive.writestr(info, file.text.encode())
    return buffer.getvalue()


def changes(old: Sequence[BundleFile], new: Sequence[BundleFile]) -> tuple[Change, ...]:
    """The files that differ, sorted by path."""
    before, after = {f.path: f.text for f in old}, {f.path: f.text for f in new}
    found = []
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path), after.get(path)
        if was == now:
            continue
        change: Literal["added", "removed", "changed"] = (
            "added" if was is None else "removed" if now is None else "changed"
        )
        names = (
            "--- /dev/null" if was is None else f"--- in force/{path}",
            "+++ /dev/null" if now is None else f"+++ planned/{path}",
        )
        lines = hunks((was or "").splitlines(keepends=True), (now or "").splitlines(keepends=True))
        shown = (line if line.endswith("\n") else line + "\n" for line in (*names, *lines))
        found.append(Change(path, change, "".join(shown)))
    return tuple(found)


def hunks(was: list[str], now: list[str]) -> Iterator[str]:
    """The lines of a unified diff after its two names."""
    for group in _Lines(was, now).get_grouped_opcodes():
        (_, i, _, j, _), (_, _, i_end, _, j_end) = group[0], group[-1]
        # An empty range is named by the line before it.
        yield f"@@ -{i + (i < i_end)},{i_end - i} +{j + (j < j_end)},{j_end - j} @@"
        for tag, i, i_end, j, j_end in group:
            yield from ((" " if tag == "equal" else "-") + line for line in was[i:i_end])
            yield from ("+" + line for line in now[j:j_end] if tag != "equal")


class _Lines(difflib.SequenceMatcher[str]):
    """difflib's own search begins again at each place that differs: a pool of each NUMA node may be such a place."""

    def __init__(self, was: list[str], now: list[str]) -> None:
        super().__init__(None, was, now)
        self._was, self._now, self._pairs = was, now, _in_one_order(was, now)

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """The middle one of the pairs within a range; without any what begins alike, else what ends alike."""
        was, now = self._was[alo:ahi], self._now[blo:bhi]
        first, end = bisect_left(self._pairs, (alo, 0)), bisect_left(self._pairs, (alo + len(was), 0))
        if first < end:
            return difflib.Match(*self._pairs[(first + end) // 2], 1)
        if size := _alike(was, now):
            return difflib.Match(alo, blo, size)
        size = _alike(was[::-1], now[::-1])
        return difflib.Match(alo + len(was) - size, blo + len(now) - size, size)


def _alike(was: list[str], now: list[str]) -> int:
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False))])


def _in_one_order(was: Sequence[str], now: Sequence[str]) -> list[tuple[int, int]]:
    """The longest rising row of places of equal lines, where the first of several is paired with the first."""
    places: dict[str, deque[int]] = {}
    for j, line in enumerate(now):
        places.setdefault(line, deque()).append(j)
    lowest: list[int] = []  # where the rows of each length end, in ``now``
    rows: list[Any] = []  # their last pair, and the row before it
    for i, line in enumerate(was):
        if places.get(line):
            j = places[line].popleft()
            length = bisect_left(lowest, j)
            rows[length : length + 1] = [(i, j, rows[length - 1] if length else None)]
            lowest[length : length + 1] = [j]
    row, found = rows[-1] if rows else None, []
    while row is not None:
        *pair, row = row
        found.append(tuple(pair))
    return found[::-1]


def _readme(
    node: str, headline: str, artifacts: Sequence[Artifact], provenance: Provenance | None, group: Sequence[str]
) -> str:
    recommended = [a for a in artifacts if a.recommended]
    lines = [
        f"{TITLE}{markdown(node)}",
        "",
        markdown(headline),
        *(_for_a_group(node, group) if group else ()),
        *(() if provenance is None else ("", f"{markdown(provenance.line())}; digest {provenance.digest}")),
        "",
        "Apply the numbered folders in the order of their numbers. Commands of a file are run in its folder; each row",
        "says what must be restarted. Then run `sh verify.sh` on the node: it only reads, and it fails while the pools",
        "or an installed file are not in force. `roll-back.sh` lists the ways back, last step first: in this",
        "order a server that starts finds its pages.",
        "Use one way to reserve the pages: the alternatives do the same elsewhere, and two of them contradict each",
        "other as soon as one is changed. Another file with a count (sysctl.conf, sysctl.d, tmpfiles.d) wins over the",
        "command line: `hugeplan verify` on the node names it.",
        "",
        *(_KEPT_BEFORE if any("-fields-before.yaml" in a.rollback for a in recommended) else ()),
        *_left_to_you(artifacts),
        "## Recommended",
        "",
        "| step | file | what it does | goes to | restart |",
        "|---|---|---|---|---|",
    ]
    for a in recommended:
        where = (
            _path(a.path) if a.path else "the cluster" if a.content and "kubectl" in a.install else "see its commands"
        )
        lines.append(f"| {a.step} | `{a.place}` | {markdown(a.summary)} | {where} | {_RESTARTS[a.restart]} |")
    for a in recommended:
        lines += ["", f"### {a.step}. {a.kind}", "", *_commands(a)]
    others = [a for a in artifacts if not a.recommended]
    if program := next((a for a in others if a.path == INSTALLER), None):
        others.remove(program)
        lines += ["", "## For the commands below", "", f"`{program.place}`: {markdown(program.summary)}"]
        lines += ["", *_commands(program)]
    if others:
        lines += [
            "",
            "## Alternatives (use one)",
            "",
            "Each takes the place of a numbered step. Never install one beside the step that it replaces.",
            "",
            "| file | what it does | when not to use it | restart |",
            "|---|---|---|---|",
        ]
        for a in others:
            lines.append(f"| `{a.place}` | {markdown(a.summary)} | {markdown(a.avoid_when)} | {_RESTARTS[a.restart]} |")
        for a in others:
            lines += ["", f"### {a.kind}", "", *_commands(a)]
    return "\n".join([*lines, ""])


def _path(path: str) -> str:
    """A path in a Markdown line: within marks of code nothing of a folder's name could be escaped."""
    return f"`{path}`" if re.fullmatch(r"[\w./@:+$ -]+", path) else markdown(path)


def readme_of_none(node: str, reason: str) -> str:
    """The README of a folder whose files are of an earlier plan, where the newest has none."""
    return (
        f"{TITLE}{markdown(node)}\n\n**Install nothing from this folder.** {markdown(reason)}\n\nIts numbered folders,"
        " `alternatives` and scripts are of an earlier plan. They stay for their ways back (`roll-back.sh`).\n"
    )


def _left_to_you(artifacts: Sequence[Artifact]) -> tuple[str, ...]:
    """A paragraph per database that no step serves: its object, or the file that it alone reads, is not known."""
    forms = (a for a in artifacts if "_snippet" in a.kind)
    return tuple(f"**Left to you:** {markdown(a.summary)} See `{a.place}`.\n" for a in forms)


def _for_a_group(node: str, group: Sequence[str]) -> tuple[str, ...]:
    others = [quoted(name) for name in group if not is_listed_host(name)]
    shown = ", ".join(others[:10]) + (", ..." if len(others) > 10 else "")
    left_out = (
        f"{len(others)} of the {len(group)} nodes are left out of `nodes.txt`, gone, silent, renamed, changed since or"
        " not called by a host's name: "
    )
    same = (
        "",
        f"The files are for {len(group)} nodes that get the same files; `nodes.txt` names them. They were made for"
        f" {markdown(node)},",
        "which has the least memory of those. Where a command names it, put each node's own name.",
    )
    return (*(same if len(group) > 1 else ()), *(("", left_out + markdown(shown)) if others else ()))


def _commands(artifact: Artifact) -> list[str]:
    lines = [f"Not to be used when: {markdown(artifact.avoid_when)}"] if artifact.avoid_when else []
    for title, text in (("Install", artifact.install), ("Verify", artifact.verify), ("Roll back", artifact.rollback)):
        if text:
            lines += ["", f"{title}:", "", *(f"    {line}" for line in text.splitlines())]
    return lines


def _verify(recommended: Sequence[Artifact]) -> str:
    """The pools first, whoever made them; then each file that lies where it goes.

    `hugeplan apply` makes the pools until the next boot and installs no file. So a file that is not installed is no
    fault of what was applied: it is said, and its check is left out.
    """
    lines = [
        "#!/bin/sh",
        "# Checks what was applied: the pools, and every step whose file is installed. Reads only; exits with 1 when",
        "# one fails. A step whose file is not installed is named, and not checked.",
        "failed=0",
    ]
    pools = _pool_checks(recommended)
    if pools:
        lines += ["", *_check("pools", " &&\n".join(pools))]
    program = next((a for a in recommended if a.path == INSTALLER), None)
    if program is not None and any(INSTALLER in a.verify for a in recommended if a is not program):
        # A server can be asked before any file is installed.
        beside = f'program="$(dirname "$0")/{program.place}"'
        lines += ["", f"program={INSTALLER}", f"[ -x $program ] || {beside}", 'hugeplan_file() { sh "$program" "$@"; }']
    for a in recommended:
        if not a.verify.strip() or a.verify.lstrip().startswith("#"):
            continue
        own = _check(a.kind, a.verify if a is program else a.verify.replace(f"{INSTALLER} ", "hugeplan_file "))
        if "hugeplan_file " in "\n".join(own):
            missing = f"not checked, hugeplan-file is neither installed nor beside verify.sh: {a.kind}"
            own = ['if [ ! -e "$program" ]; then', f"    echo {shlex.quote(missing)}", "else", *own, "fi"]
        if a.path is None or not a.path.startswith("/"):
            lines += ["", *own]
            continue
        # Theirs alone has several, of constant folders: another's folder may be called `a or b`.
        paths = a.path.split(" or ") if a.kind.startswith(("my_cnf", "mariadb_cnf")) else [a.path]
        lines += [
            "",
            f"if {' && '.join(f'[ ! -e {shlex.quote(path)} ]' for path in paths)}; then",
            f"    echo {shlex.quote(f'not installed, not checked: {a.kind} ({a.path})')}",
            "else",
            *own,
            "fi",
        ]
    return "\n".join([*lines, "", "exit $failed", ""])


def _check(name: str, commands: str) -> list[str]:
    return [f"if ! (\n{commands}\n); then", f'    echo "not in force: {name}" >&2', "    failed=1", "fi"]


def _pool_checks(artifacts: Sequence[Artifact]) -> list[str]:
    """The lines of all checks that read a pool's count, each once."""
    lines = (line.removesuffix(" &&") for a in artifacts for line in a.verify.splitlines())
    return list(dict.fromkeys(line for line in lines if line.startswith("test ") and "/nr_hugepages" in line))


def _roll_back(recommended: Sequence[Artifact]) -> str:
    lines = [
        "#!/bin/sh",
        "# The ways back, last step first. Nothing runs by itself: read each part, then run it by hand.",
    ]
    for a in reversed(recommended):
        lines += [
            "",
            f"# {a.step}. {a.kind}: restarts {_RESTARTS[a.restart]}",
            left_as_comments(a.rollback),
        ]
    return "\n".join([*lines, ""])
