"""``hugeplan artifacts plan.json --out DIR``: the files that apply a plan, in a layout for a GitOps repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hugeplan.artifacts import Artifact, Platform, installer, outside, refused, render, withheld
from hugeplan.artifacts.bundle import BundleFile, as_zip, bundle, changes
from hugeplan.cli import EXIT_FAILED, InputError
from hugeplan.cli.apply_journal import IN_FORCE
from hugeplan.cli.bundle_files import read_bundle, write_bundle, write_none
from hugeplan.cli.files import write_file
from hugeplan.cli.plan_document import PlanDocument, read_plan
from hugeplan.planner.printable import one_line

EPILOG: Final = """\
exit status: 0 written (or no difference), 1 the plan does not fit or --diff found a difference, 2 wrong input

examples:
  hugeplan plan scenario.yaml --json > plan.json
  hugeplan artifacts plan.json --out huge-pages/db-7
  hugeplan artifacts plan.json --platform openshift --zip db-7.zip
  hugeplan artifacts plan.json --diff in-force
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``artifacts``."""
    parser.add_argument("plan", metavar="PLAN", help="what hugeplan plan --json wrote; - reads standard input")
    parser.add_argument("--out", metavar="DIR", help="write the bundle into this folder")
    parser.add_argument("--zip", metavar="FILE", help="write the bundle as a zip archive")
    parser.add_argument(
        "--diff",
        metavar="PLAN|DIR|in-force",
        help="print what differs from another plan, a written bundle, or the plan that hugeplan apply applied here",
    )
    parser.add_argument("--platform", metavar="NAME", help=f"one of {', '.join(Platform)} (default: told by the plan)")
    parser.add_argument("--force", action="store_true", help="hand out the files of a plan that does not fit")


def run(arguments: argparse.Namespace) -> int:
    """Write or compare the bundle; without an option list the files."""
    document = read_plan(arguments.plan)
    reason = None if arguments.force else withheld(document.plan, document.request)
    why_not = _refused(document) if reason is None else f"{reason} --force writes them all the same."
    if why_not is not None:
        sys.stderr.write(f"hugeplan artifacts: {why_not}\n")
        if arguments.out is not None:
            write_none(Path(arguments.out), document.plan.node, why_not, "--out")
        return EXIT_FAILED
    artifacts = rendered(document, arguments.platform, force=arguments.force)
    files = bundle(document.plan.node, document.plan.headline, artifacts)
    if arguments.out is not None:
        write_bundle(files, Path(arguments.out), "--out")
        print(f"{len(files)} files in {arguments.out}; begin with {Path(arguments.out) / 'README.md'}")
    if arguments.zip is not None:
        _write_zip(files, Path(arguments.zip))
    if arguments.diff is not None:
        return _print_diff(arguments, files)
    if arguments.out is None and arguments.zip is None:
        for artifact in artifacts:
            mark = f"{artifact.step:>2}." if artifact.step is not None else "   "
            print(f"{mark} {one_line(f'{artifact.kind}: {artifact.filename}: {artifact.summary}')}")
    return 0


def _refused(document: PlanDocument) -> str | None:
    """Why the names of a plan keep its files back, whoever rendered them."""
    if document.request is not None:
        return refused(document.plan, document.request)
    return outside.refused_names(document.plan.node, ())


def rendered(document: PlanDocument, platform: str | None, *, force: bool) -> tuple[Artifact, ...]:
    """The plan's files for a platform; a document of the service has its files stored, for its own platform."""
    chosen = None
    if platform is not None:
        if platform not in list(Platform):
            raise InputError(f"--platform: {platform!r} is not valid; expected one of {', '.join(Platform)}")
        chosen = Platform(platform)
    if document.request is not None and (document.digest is None or chosen is not None):
        return render(document.plan, document.request, chosen, force=force)
    if chosen is not None:
        raise InputError("--platform: this document of the service has no request; write one with hugeplan plan --json")
    if (why_not := installer.outdated(document.artifacts)) is not None:
        raise InputError(f"{why_not}; plan the scenario again")
    return document.artifacts


def _write_zip(files: Sequence[BundleFile], path: Path) -> None:
    try:
        write_file(path, as_zip(files))
    except OSError as error:
        raise InputError(f"--zip {path}: {error.strerror}") from error
    print(f"{len(files)} files in {path}")


def _print_diff(arguments: argparse.Namespace, files: Sequence[BundleFile]) -> int:
    if arguments.diff == "in-force" and not (Path("/") / IN_FORCE).exists():
        raise InputError("--diff in-force: hugeplan apply applied no plan on this node, or it was rolled back")
    old = Path("/") / IN_FORCE if arguments.diff == "in-force" else Path(arguments.diff)
    if old.is_dir():
        before = read_bundle(old, "--diff")
    else:
        document = read_plan(str(old), "--diff")
        artifacts = rendered(document, arguments.platform if document.request is not None else None, force=True)
        before = list(bundle(document.plan.node, document.plan.headline, artifacts))
    found = changes(before, files)
    for change in found:
        sys.stdout.write(f"{change.change}: {one_line(change.path)}\n{change.diff}")
    return EXIT_FAILED if found else 0
