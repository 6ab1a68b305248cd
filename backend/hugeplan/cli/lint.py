"""``hugeplan lint FILE...``: what files about huge pages will really do, and what is wrong with them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from hugeplan.artifacts.bundle import hunks
from hugeplan.cli import EXIT_FAILED, EXIT_WRONG_INPUT, InputError
from hugeplan.cli.files import decode_text, read_bytes, read_found, read_text, replace_file
from hugeplan.lint import Context, FileReport, Severity, Source, lint
from hugeplan.lint.detect import UnknownKindError, read_source
from hugeplan.lint.output import as_json, as_sarif, as_text
from hugeplan.planner.pages import base_page_sizes, canonical_architecture
from hugeplan.planner.units import parse_iec_bytes, parse_page_size

EPILOG: Final = """\
It knows kernel command lines (GRUB, boot loader entries, /proc/cmdline), sysctl.d, tmpfiles.d, limits.d, systemd units,
TuneD, pods and everything with a pod template, kubelet configurations, PerformanceProfiles, operators' custom
resources, postgresql.conf, my.cnf, JVM options and more, by content. Files given together are checked against each
other.

exit status: 0 nothing is wrong, 1 something is wrong, 2 wrong input (a file that cannot be read or recognised)

examples:
  hugeplan lint /etc/default/grub /etc/sysctl.d/*.conf
  hugeplan lint --kernel 5.14 --numa-nodes 2 /proc/cmdline
  hugeplan lint --fix statefulset.yaml postgresql.conf
  hugeplan lint deploy/                     # what hugeplan artifacts wrote, or a folder of manifests
  kubectl get statefulset db -o yaml | hugeplan lint -
"""
MAX_BYTES: Final = 4 * 2**20
MAX_FILES: Final = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``lint``."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE",
        help="a file to check; of a folder, every file below it that the linter knows; - reads standard input",
    )  # fmt: skip
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="what to print")
    parser.add_argument("--fix", action="store_true", help="write the fixed files in place")
    parser.add_argument("--diff", action="store_true", help="print what --fix would change")
    parser.add_argument("--kernel", metavar="X.Y", help="the kernel the files are for (default: the newest known)")
    parser.add_argument("--arch", default="x86_64", help="x86_64, aarch64, ppc64le, riscv64 or s390x")
    parser.add_argument("--base-page-size", metavar="SIZE", help="the kernel's base page size")
    parser.add_argument("--default-page-size", metavar="SIZE", help="the kernel's default huge page size")
    parser.add_argument("--numa-nodes", metavar="N|IDS", help="how many NUMA nodes, or their ids such as 0,1,8")
    parser.add_argument("--memory", metavar="SIZE", help="the node's memory such as 64GiB")


def run(arguments: argparse.Namespace) -> int:
    """Print the report; 1 when a rule is broken that makes a file wrong."""
    context = context_of(arguments)
    unread = list[Path]()
    reports = lint([source for name in arguments.files for source in _sources(name, context, unread)], context)
    if arguments.format == "json":
        print(json.dumps(as_json(reports), indent=2, ensure_ascii=False))
    elif arguments.format == "sarif":
        print(json.dumps(as_sarif(reports, version("hugeplan")), indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(as_text(reports))
    if arguments.diff:
        sys.stdout.writelines(_diff(reports))
    if arguments.fix:
        _write_fixed(reports)
    if unread or any(report.unreadable is not None for report in reports):
        return EXIT_WRONG_INPUT
    is_wrong = any(p.rule.severity is Severity.WRONG for report in reports for p in report.problems)
    return EXIT_FAILED if is_wrong else 0


def context_of(arguments: argparse.Namespace) -> Context:
    """What the options say of the machine."""
    arch = canonical_architecture(arguments.arch, "--arch")
    base = base_page_sizes(arch)[0]
    if arguments.base_page_size is not None:
        base = parse_page_size(arguments.base_page_size, "--base-page-size")
        if base not in base_page_sizes(arch):
            allowed = ", ".join(f"{size // 1024}K" for size in base_page_sizes(arch))
            raise InputError(f"--base-page-size: {arguments.base_page_size} is not valid on {arch}; expected {allowed}")
    context = Context(
        kernel=None if arguments.kernel is None else kernel_version(arguments.kernel),
        arch=arch,
        base_page_bytes=base,
        numa_nodes=None if arguments.numa_nodes is None else numa_nodes(arguments.numa_nodes),
        mem_total_bytes=None if arguments.memory is None else parse_iec_bytes(arguments.memory, "--memory"),
        default_page_bytes=None
        if arguments.default_page_size is None
        else parse_page_size(arguments.default_page_size, "--default-page-size"),
    )
    if context.default_page_bytes is not None and context.default_page_bytes not in context.sizes:
        raise InputError(f"--default-page-size: {arguments.default_page_size} is not a huge page size of {arch}")
    return context


def kernel_version(text: str) -> tuple[int, int]:
    """``6.1`` or ``5.14.0-427.el9`` as (major, minor)."""
    found = re.match(r"(\d{1,3})\.(\d{1,3})", text.strip())
    if found is None:
        raise InputError(f"--kernel: {text!r} is not valid; expected a version such as 6.1 or 5.14.0-427.el9")
    return int(found[1]), int(found[2])


def numa_nodes(text: str) -> tuple[int, ...]:
    """``2`` as (0, 1); ``0,1,8`` as it is."""
    if re.fullmatch(r"\d{1,4}", text.strip()) and 1 <= int(text) <= 1024:
        return tuple(range(int(text)))
    if re.fullmatch(r"\d{1,4}(,\d{1,4})+", text.strip()):
        return tuple(sorted({int(part) for part in text.split(",")}))
    raise InputError(f"--numa-nodes: {text!r} is not valid; expected a number from 1 to 1024, or ids such as 0,1,8")


def _sources(name: str, context: Context, unread: list[Path]) -> list[Source]:
    """The file of that name, or the files of a folder that are of a kind the linter knows.

    Which of these cannot be read is said and put into ``unread``: one hides no findings in the others.
    """
    folder = Path(name)
    if name == "-" or not folder.is_dir():
        return [_source(name)]
    paths = []
    for path in folder.rglob("*"):
        if _is_file(path) and not any(part.startswith(".") for part in path.relative_to(folder).parts[:-1]):
            paths.append(path)
        if len(paths) > MAX_FILES:
            raise InputError(f"{name}: more than {MAX_FILES} files; name a folder with fewer, or the files themselves")
    known = list[Source]()
    before = len(unread)
    for path in sorted(paths):
        try:
            known += filter(None, [_known(path, context)])
        except InputError as error:
            sys.stderr.write(f"hugeplan lint: {error}; this file is left out\n")
            unread.append(path)
    if not known:
        raise InputError(f"{name}: none of the {len(paths)} files in this folder is of a kind that the linter knows")
    if left_out := len(paths) - len(known) - len(unread) + before:
        sys.stderr.write(f"hugeplan lint: {name}: {left_out} of {len(paths)} files are of no kind that it knows\n")
    return known


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that may not be entered: who reads it says why
        return True


def _known(path: Path, context: Context) -> Source | None:
    """A file of a folder; None where it is of no kind that the linter knows, or is no text of a few MiB."""
    data = read_found(path, MAX_BYTES)
    if data is None or b"\0" in data:
        return None
    try:
        source = Source(str(path), decode_text(data, str(path)))
        read_source(source, context)
    except (UnknownKindError, InputError):
        return None
    except ValueError:
        return source  # of a known kind and damaged: the report says how
    return source


def _source(name: str) -> Source:
    text = read_text(name)
    if len(text) > MAX_BYTES:
        raise InputError(f"{name}: larger than {MAX_BYTES // 2**20} MiB")
    return Source("<stdin>" if name == "-" else name, text)


def _diff(reports: Sequence[FileReport]) -> list[str]:
    lines: list[str] = []
    for report in reports:
        if report.fixed_text is not None:
            was, now = (text.splitlines(keepends=True) for text in (report.source.text, report.fixed_text))
            lines += [f"--- {report.source.name}", f"+++ {report.source.name} (fixed)", *hunks(was, now)]
    return [line if line.endswith("\n") else line + "\n" for line in lines]


def _write_fixed(reports: Sequence[FileReport]) -> None:
    for report in reports:
        if report.fixed_text is None:
            continue
        if report.source.name == "<stdin>":
            sys.stdout.write(report.fixed_text)
            continue
        path = report.source.name
        old = read_bytes(path)
        if decode_text(old, path) != report.source.text:
            raise InputError(f"{path} was changed while it was checked; run this again")
        ends = "\r\n" if b"\r\n" in old and old.count(b"\r\n") == old.count(b"\n") else "\n"
        try:
            replace_file(Path(path), report.fixed_text.replace("\n", ends).encode(), old)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        sys.stderr.write(f"hugeplan lint: wrote {path}\n")
