#!/usr/bin/env python3
"""Build the agent's packages: a wheel, a deb and an rpm per architecture, each with a static tlbbench.

    python agent/packaging/build.py --out DIR [--arch x86_64|aarch64] [--kinds wheel,deb,rpm]

The same sources give the same bytes: files are sorted, owned by root, and dated by SOURCE_DATE_EPOCH (default: the time
of the newest commit, else 1980). The rpm needs rpmbuild; everything else needs Python, meson and a C compiler.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

AGENT = Path(__file__).resolve().parent.parent
NAME, PACKAGE = "hugeplan-agent", "hugeplan_agent"
KINDS = ("wheel", "deb", "rpm")
EARLIEST = 315_532_800  # 1980-01-01: a zip file can hold nothing older
SUMMARY = "Observes a node, measures it with tlbbench, and sends what it saw to a hugeplan server."


@dataclass(frozen=True)
class Architecture:
    """One architecture as the kernel, the compiler, Debian, RPM and wheels name it."""

    machine: str
    triple: str
    debian: str
    cpu: str

    @property
    def wheel_tags(self) -> tuple[str, ...]:
        """A static program runs with any C library, so both families of tags hold."""
        return tuple(f"py3-none-{libc}_{self.machine}" for libc in ("manylinux_2_17", "musllinux_1_1"))


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", "x86_64-linux-gnu", "amd64", "x86_64"),
    "aarch64": Architecture("aarch64", "aarch64-linux-gnu", "arm64", "armv8"),
}


class PackagingError(Exception):
    """One sentence for the terminal."""


@dataclass(frozen=True)
class File:
    """A file of a package: its place without the leading slash, its content, whether it can be executed."""

    path: str
    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


def version() -> str:
    """The agent's version, from its own package."""
    text = (AGENT / PACKAGE / "__init__.py").read_text(encoding="ascii")
    return text.partition('__version__ = "')[2].partition('"')[0]


def epoch() -> int:
    """The date of everything in the packages."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        asked = subprocess.run(
            ["git", "-C", str(AGENT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
        )
        given = asked.stdout.strip() or str(EARLIEST)
    return max(EARLIEST, int(given))


def tlbbench(architecture: Architecture, work: Path) -> bytes:
    """Build tlbbench statically and strip it. Raises PackagingError with the compiler's last words."""
    native = platform.machine() == architecture.machine
    prefix = "" if native and shutil.which(f"{architecture.triple}-gcc") is None else f"{architecture.triple}-"
    compiler, strip = f"{prefix}gcc", f"{prefix}strip"
    for program in (compiler, strip, "meson", "ninja"):
        if shutil.which(program) is None:
            raise PackagingError(f"{program} is not installed, so tlbbench cannot be built for {architecture.machine}")
    cross = work / "cross.ini"
    cross.write_text(
        f"[binaries]\nc = '{compiler}'\nstrip = '{strip}'\n[host_machine]\nsystem = 'linux'\n"
        f"cpu_family = '{architecture.machine}'\ncpu = '{architecture.cpu}'\nendian = 'little'\n"
    )
    build = work / "build"
    # Neither the folder of the sources nor that of the build may show in the program.
    flags = f"-ffile-prefix-map={AGENT}=. -ffile-prefix-map={build}=. -fdebug-prefix-map={build}=."
    words = ["meson", "setup", str(build), str(AGENT / "tlbbench"), "--buildtype=release", "-Dstatic=true"]
    if not native:
        words += ["--cross-file", str(cross)]
    environment = {**os.environ, "CFLAGS": flags, "CC": compiler, "SOURCE_DATE_EPOCH": str(epoch())}
    _run([*words, f"-Dc_args={flags}"], environment)
    _run(["ninja", "-C", str(build), "tlbbench"], environment)
    _run([strip, "--strip-all", "--remove-section=.note.gnu.build-id", str(build / "tlbbench")], environment)
    return (build / "tlbbench").read_bytes()


def _run(words: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise PackagingError(f"{' '.join(words[:2])} failed:\n{last}")


def sources(program: bytes) -> list[File]:
    """The Python package with the benchmark in it, sorted by path."""
    found = [File(f"{PACKAGE}/bin/tlbbench", program, executable=True)]
    for path in sorted((AGENT / PACKAGE).rglob("*")):
        relative = path.relative_to(AGENT)
        if (
            path.is_file() and path.suffix in {".py", ".json", ".typed"} and "__pycache__" not in relative.parts
        ) or path.name == "py.typed":
            found.append(File(str(relative), path.read_bytes()))
    return sorted(set(found), key=lambda file: file.path)


def build_wheel(files: list[File], architecture: Architecture, out: Path) -> Path:
    """A wheel as PEP 427 lays it out."""
    info = f"{PACKAGE}-{version()}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nSummary: {SUMMARY}\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\n"
    )
    tags = "".join(f"Tag: {tag}\n" for tag in architecture.wheel_tags)
    wheel = f"Wheel-Version: 1.0\nGenerator: hugeplan\nRoot-Is-Purelib: false\n{tags}"
    entry = f"[console_scripts]\n{NAME} = {PACKAGE}.cli:main\ntlbbench = {PACKAGE}.tlbbench:run_program\n"
    content = [
        *files,
        File(f"{info}/LICENSE", (AGENT.parent / "LICENSE").read_bytes()),
        File(f"{info}/METADATA", metadata.encode()),
        File(f"{info}/WHEEL", wheel.encode()),
        File(f"{info}/entry_points.txt", entry.encode()),
    ]
    record = "".join(f"{file.path},sha256={_digest(file.content)},{len(file.content)}\n" for file in content)
    content.append(File(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    platforms = ".".join(tag.rpartition("-")[2] for tag in architecture.wheel_tags)
    target = out / f"{PACKAGE}-{version()}-py3-none-{platforms}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in content:
            entry_info = zipfile.ZipInfo(file.path, time.gmtime(epoch())[:6])
            entry_info.external_attr = (0o100000 | file.mode) << 16
            entry_info.compress_type = zipfile.ZIP_DEFLATED
            entry_info.create_system = 3
            archive.writestr(entry_info, file.content)
    return target


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode("ascii")


def system_files(files: list[File]) -> list[File]:
    """What a deb and an rpm install: the package in a folder of its own, the command, units, settings, licence."""
    command = (
        "#!/usr/bin/python3 -I\nimport sys\n\n"
        f'sys.path.insert(0, "/usr/lib/{NAME}")\nfrom {PACKAGE}.cli import main\n\nsys.exit(main())\n'
    )
    settings = (
        "# Settings of hugeplan-agent; every flag has a variable: hugeplan-agent run --help\n"
        "#HUGEPLAN_AGENT_SERVER=https://hugeplan.example\n"
    )
    units = [
        File(f"usr/lib/systemd/system/{path.name}", path.read_bytes())
        for path in sorted((AGENT / "deploy").iterdir())
        if path.suffix in {".service", ".timer"}
    ]
    found = [
        *(File(f"usr/lib/{NAME}/{file.path}", file.content, file.executable) for file in files),
        File(f"usr/bin/{NAME}", command.encode(), executable=True),
        *units,
        File("etc/hugeplan/agent.env", settings.encode()),
        File(f"usr/share/doc/{NAME}/copyright", (AGENT.parent / "LICENSE").read_bytes()),
    ]
    return sorted(found, key=lambda file: file.path)


RELOAD = "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n"
STOP = (
    '#!/bin/sh\nset -e\nif [ -d /run/systemd/system ] && [ "$1" = remove -o "$1" = 0 ]; then\n'
    f"  systemctl --no-reload disable --now {NAME}.service {NAME}-measure.timer || true\nfi\n"
)


def build_deb(files: list[File], architecture: Architecture, out: Path) -> Path:
    """A Debian package (deb(5)): an ar archive of three members."""
    installed = system_files(files)
    size_kib = sum(-(-len(file.content) // 1024) for file in installed)
    control = (
        f"Package: {NAME}\nVersion: {version()}\nArchitecture: {architecture.debian}\nMaintainer: hugeplan\n"
        f"Installed-Size: {size_kib}\nDepends: python3 (>= 3.9)\nSection: admin\nPriority: optional\n"
        f"Description: {SUMMARY.rstrip('.')}\n"
    )
    # MD5 is what the format asks for; dpkg --verify reads it.
    sums = "".join(f"{hashlib.md5(file.content).hexdigest()}  {file.path}\n" for file in installed)  # noqa: S324
    about = [
        File("control", control.encode()),
        File("conffiles", b"/etc/hugeplan/agent.env\n"),
        File("md5sums", sums.encode()),
        File("postinst", RELOAD.encode(), executable=True),
        File("postrm", RELOAD.encode(), executable=True),
        File("prerm", STOP.encode(), executable=True),
    ]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", _tar_gz(about)),
        ("data.tar.gz", _tar_gz(installed)),
    ]
    target = out / f"{NAME}_{version()}_{architecture.debian}.deb"
    with target.open("wb") as archive:
        archive.write(b"!<arch>\n")
        for name, content in members:
            archive.write(f"{name:<16}{epoch():<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode("ascii"))
            archive.write(content + b"\n" * (len(content) % 2))
    return target


def _tar_gz(files: list[File]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        folders: set[str] = set()
        for file in files:
            for folder in [str(part) for part in reversed(Path(file.path).parents)][1:]:
                if folder not in folders:
                    folders.add(folder)
                    archive.addfile(_member(f"./{folder}/", 0o755, tarfile.DIRTYPE))
            member = _member(f"./{file.path}", file.mode, tarfile.REGTYPE)
            member.size = len(file.content)
            archive.addfile(member, io.BytesIO(file.content))
    return gzip.compress(packed.getvalue(), 9, mtime=0)


def _member(name: str, mode: int, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode, member.type, member.mtime = mode, kind, epoch()
    member.uname = member.gname = "root"
    return member


SPEC = """
Name: {name}
Version: {version}
Release: 1
Summary: {summary}
License: Apache-2.0
Requires: python3 >= 3.9
AutoReqProv: no
%description
{summary}
%install
cp -a {tree}/. %{{buildroot}}/
%post -p /bin/sh
{reload}
%postun -p /bin/sh
{reload}
%preun -p /bin/sh
{stop}
%files
%defattr(-,root,root,-)
{files}
"""


def build_rpm(files: list[File], architecture: Architecture, out: Path, work: Path) -> Path:
    """An RPM by rpmbuild, told to forget where and when it ran."""
    if shutil.which("rpmbuild") is None:
        raise PackagingError("rpmbuild is not installed, so there is no rpm")
    tree = work / "tree"
    installed = system_files(files)
    for file in installed:
        target = tree / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
        os.utime(target, (epoch(), epoch()))
    lines = [
        f"%config(noreplace) /{file.path}" if file.path.startswith("etc/") else f"/{file.path}" for file in installed
    ]
    spec = work / "agent.spec"
    spec.write_text(
        SPEC.format(
            name=NAME, version=version(), summary=SUMMARY.rstrip("."), tree=tree, files="\n".join(lines),
            reload=_body(RELOAD), stop=_body(STOP),
        )
    )  # fmt: skip
    macros = {
        "_topdir": str(work / "rpm"),
        "_rpmdir": str(work / "rpms"),
        "_buildhost": "hugeplan",
        "use_source_date_epoch_as_buildtime": "1",
        "clamp_mtime_to_source_date_epoch": "1",
        "source_date_epoch_from_changelog": "0",
        "__os_install_post": "%{nil}",
        "_build_id_links": "none",
        "debug_package": "%{nil}",
        "_binary_payload": "w9.gzdio",
    }
    defines = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    _run(
        ["rpmbuild", "-bb", "--target", f"{architecture.machine}-linux", *defines, str(spec)],
        {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())},
    )
    (made,) = (work / "rpms").rglob("*.rpm")
    target = out / made.name
    shutil.copyfile(made, target)
    return target


def _body(script: str) -> str:
    return script.partition("\n")[2]


def build(kinds: tuple[str, ...], architecture: Architecture, out: Path) -> list[Path]:
    """Build the packages; their paths. Raises PackagingError."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hugeplan-packages-") as folder:
        work = Path(folder)
        files = sources(tlbbench(architecture, work))
        made = []
        if "wheel" in kinds:
            made.append(build_wheel(files, architecture, out))
        if "deb" in kinds:
            made.append(build_deb(files, architecture, out))
        if "rpm" in kinds:
            made.append(build_rpm(files, architecture, out, work))
    return made


def main() -> int:
    """The command; a known error is one sentence and status 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the packages")
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), default=platform.machine())
    parser.add_argument("--kinds", default=",".join(KINDS), help="which of wheel, deb and rpm; default: all")
    given = parser.parse_args()
    kinds = tuple(given.kinds.split(","))
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong:
        parser.error(f"--kinds: {wrong[0]!r} is not valid; expected some of {', '.join(KINDS)}")
    try:
        for path in build(kinds, ARCHITECTURES[given.arch], given.out):
            print(f"{path.name}  {path.stat().st_size} bytes  sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    except PackagingError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
