"""One version in one file: deploy/release/VERSION. `make version` writes it wherever a literal must stand.

A wheel, a Meson project, a chart and a package.json must each name their version themselves, and the agent runs from a
bare folder without metadata. A test fails while one of them differs.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


@dataclass(frozen=True)
class Place:
    """A file that names the version, and what stands before and after it."""

    file: str
    before: str
    after: str = '"'

    def pattern(self) -> re.Pattern[str]:
        return re.compile(f"^({re.escape(self.before)}){FORM.pattern}({re.escape(self.after)})", re.MULTILINE)


PLACES = (
    Place("backend/pyproject.toml", 'version = "'),
    Place("backend/pyproject.toml", 'node = ["hugeplan-agent=='),
    Place("backend/hugeplan/__init__.py", '__version__ = "'),
    Place("agent/pyproject.toml", 'version = "'),
    Place("agent/hugeplan_agent/__init__.py", '__version__ = "'),
    Place("agent/tlbbench/meson.build", "  version: '", "'"),
    Place("frontend/package.json", '  "version": "'),
    Place("deploy/Dockerfile", "ARG VERSION=", "\n"),
    Place("deploy/kubernetes/chart/hugeplan/Chart.yaml", "version: ", "\n"),
    Place("deploy/kubernetes/chart/hugeplan/Chart.yaml", 'appVersion: "'),
)


def version() -> str:
    """The version of this tree."""
    return (REPOSITORY / "deploy/release/VERSION").read_text().strip()


def differing() -> list[str]:
    """The places that name another version than the file, or none."""
    found = []
    for place in PLACES:
        text = (REPOSITORY / place.file).read_text()
        names = [".".join(match.groups()[1:4]) for match in place.pattern().finditer(text)]
        if names != [version()]:
            found.append(f"{place.file}: {place.before}... names {', '.join(names) or 'none'}; expected {version()}")
    return found


def main() -> int:
    """Write the version everywhere."""
    new = version()
    if not FORM.fullmatch(new):
        sys.stderr.write(f"deploy/release/VERSION: {new!r} is not valid; expected MAJOR.MINOR.PATCH, such as 1.2.3\n")
        return 2
    for place in PLACES:
        path = REPOSITORY / place.file
        path.write_text(place.pattern().sub(rf"\g<1>{new}\g<5>", path.read_text()))
    for line in differing():
        sys.stderr.write(f"{line}\n")
    return 1 if differing() else 0


if __name__ == "__main__":
    sys.exit(main())
