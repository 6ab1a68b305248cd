"""The program that installs files and takes them back: one file of a bundle, which the commands of the others call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from hugeplan.artifacts.base import INSTALLER, Artifact, all_of

KIND: Final = "installer"
#: These carry the program by themselves.
_CARRY: Final = {"ansible_playbook", "cloud_config"}


@cache
def text() -> str:
    """The program, for any POSIX shell; :func:`as_user` needs bash."""
    return files("hugeplan.artifacts").joinpath("hugeplan-file").read_text()


def is_needed(artifacts: Iterable[Artifact]) -> bool:
    """Whether a command of these files calls the program."""
    return any(a.kind not in _CARRY and INSTALLER in a.install + a.verify + a.rollback for a in artifacts)


def outdated(artifacts: Sequence[Artifact]) -> str | None:
    """Why kept files for a node are not handed out: an older renderer made them. Root runs their commands, and what was
    mended since (who is asked as root, whose programs run, with which rights) reaches no file that was kept."""
    on_node = [a.filename for a in artifacts if a.kind not in _CARRY and (a.path or "").startswith("/")]
    kept = iter(
        "\n".join(a.content for a in artifacts if a.kind == KIND).split("\n")
    )  # with lines that say of what plan
    if not on_node or all(line in kept for line in text().split("\n")):
        return None
    return f"{on_node[0]}: an older release made it, and its commands were mended since"


def render() -> Artifact:
    """The program as a file of a bundle."""
    return Artifact(
        kind=KIND,
        filename="hugeplan-file",
        path=INSTALLER,
        media_type="text/x-shellscript",
        content=text(),
        summary="Installs the other files and takes them back: what stood in their place is kept beside them.",
        # With nothing less: an empty program would do nothing, and end with 0.
        install=all_of(
            [
                f"mkdir -p {INSTALLER.rpartition('/')[0]}",
                f"cp hugeplan-file {INSTALLER}.part",
                f"chmod 0755 {INSTALLER}.part",
                f"sync {INSTALLER}.part",
                f"mv -f {INSTALLER}.part {INSTALLER}",
            ]
        ),
        verify=f"{INSTALLER} help | grep -q MARK",
        rollback="# It stays: the ways back of other plans call it.",
        avoid_when="A tool of your own installs the files, and takes them back.",
    )
