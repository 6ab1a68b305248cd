#!/usr/bin/env python3
"""Build the agent's packages: a wheel, a deb and an rpm per architecture, each with a static tlbbench.

    python agent/packaging/build.py --out DIR [--arch x86_64|aarch64] [--kinds wheel,deb,rpm]

The same sources give the same bytes: files are sorted, owned by root, and dated by SOURCE_DATE_EPOCH (default: the time
of the newest commit, else 1980). The rpm needs rpmbuild; everything else needs Python, meson and a C compiler.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from formats import File, Package, PackagingError, build_deb, build_rpm, epoch, run, service_scripts, zip_time

AGENT = Path(__file__).resolve().parent.parent
NAME, PACKAGE = "hugeplan-agent", "hugeplan_agent"
KINDS = ("wheel", "deb", "rpm")
DESCRIPTION = """Observes a node's memory and huge pages, measures its TLB with tlbbench when it
is idle, and sends what it saw to a hugeplan server. It runs as a user of its
own, needs no inbound port, and keeps its reports on disk while the server is
away."""
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


def version() -> str:
    """The agent's version, from its own package; HUGEPLAN_PACKAGE_VERSION is for tests of upgrades."""
    given = os.environ.get("HUGEPLAN_PACKAGE_VERSION")
    if given:
        return given
    text = (AGENT / PACKAGE / "__init__.py").read_text(encoding="ascii")
    return text.partition('__version__ = "')[2].partition('"')[0]


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
    run([*words, f"-Dc_args={flags}"], environment)
    run(["ninja", "-C", str(build), "tlbbench"], environment)
    run([strip, "--strip-all", "--remove-section=.note.gnu.build-id", str(build / "tlbbench")], environment)
    return (build / "tlbbench").read_bytes()


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
            entry_info = zipfile.ZipInfo(file.path, zip_time()[:6])
            entry_info.external_attr = (0o100000 | file.mode) << 16
            entry_info.compress_type = zipfile.ZIP_DEFLATED
            entry_info.create_system = 3
            archive.writestr(entry_info, file.content)
    return target


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode("ascii")


def system_files(files: list[File]) -> list[File]:
    """What a deb and an rpm install: the package in a folder of its own, the command, units, drop-ins, settings."""
    command = (
        # B: root must not leave compiled files beside the package's own.
        "#!/usr/bin/python3 -IB\nimport sys\n\n"
        f'sys.path.insert(0, "/usr/lib/{NAME}")\nfrom {PACKAGE}.cli import main\n\nsys.exit(main())\n'
    )
    settings = (
        "# Settings of hugeplan-agent; every flag has a variable: hugeplan-agent run --help\n"
        "#HUGEPLAN_AGENT_SERVER=https://hugeplan.example\n"
    )
    # Drop-ins are the administrator's to put into place.
    folders = {".service": "usr/lib/systemd/system", ".timer": "usr/lib/systemd/system", ".conf": f"usr/share/{NAME}"}
    units = [
        File(f"{folders[path.suffix]}/{path.name}", path.read_bytes())
        for path in sorted((AGENT / "deploy").iterdir())
        if path.suffix in folders
    ]
    found = [
        *(File(f"usr/lib/{NAME}/{file.path}", file.content, file.executable) for file in files),
        File(f"usr/bin/{NAME}", command.encode(), executable=True),
        File("usr/bin/tlbbench", link=f"../lib/{NAME}/{PACKAGE}/bin/tlbbench"),
        *units,
        File("etc/hugeplan/agent.env", settings.encode()),
    ]
    return sorted(found, key=lambda file: file.path)


UNITS = ("hugeplan-agent.service", "hugeplan-agent-measure.timer")
STATE = f"/var/lib/{NAME}"
DROP_INS = f"/etc/systemd/system/{UNITS[0]}.d"
FORMER_TOKEN = "/etc/hugeplan/agent-token"  # noqa: S105 - a path
ADOPT_FORMER_TOKEN = f"""if [ -f {FORMER_TOKEN} ] && [ ! -e {STATE}/token ]; then
  install -m 0600 -o {NAME} -g {NAME} {FORMER_TOKEN} {STATE}/token && rm -f {FORMER_TOKEN}
fi
if [ -f /etc/hugeplan/enrolment-token ]; then
  chgrp {NAME} /etc/hugeplan/enrolment-token && chmod 0640 /etc/hugeplan/enrolment-token
fi
"""
"""The releases before kept the token where systemd copied it from at each start."""


def drop_ins() -> list[str]:
    """What docs/agent.md puts beside the unit. They give rights, which a later agent must not find there."""
    return sorted(path.name for path in (AGENT / "deploy").glob("*.conf"))


def package(files: list[File], architecture: Architecture) -> Package:
    """What the deb and the rpm hold."""
    deb, rpm = service_scripts(
        NAME,
        STATE,
        UNITS,
        before=ADOPT_FORMER_TOKEN,
        leftovers=(FORMER_TOKEN, "/etc/hugeplan/enrolment-token", *(f"{DROP_INS}/{one}" for one in drop_ins())),
        folders=(DROP_INS,),
    )
    return Package(
        name=NAME,
        version=version(),
        debian_architecture=architecture.debian,
        machine=architecture.machine,
        summary="observe and measure a node for hugeplan",
        description=DESCRIPTION,
        debian_depends="python3 (>= 3.9), passwd",
        rpm_requires="python3 >= 3.9, shadow-utils",
        files=system_files(files),
        deb_scripts=deb,
        rpm_scripts=rpm,
        lintian_overrides=(
            # One program for every C library; it links nothing that a distribution would update.
            f"statically-linked-binary [usr/lib/{NAME}/{PACKAGE}/bin/tlbbench]",
        ),
    )


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
            made.append(build_deb(package(files, architecture), out))
        if "rpm" in kinds:
            made.append(build_rpm(package(files, architecture), out, work))
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
    # meson and ninja are beside the Python that runs this, whether its environment is activated or not.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    try:
        for path in build(kinds, ARCHITECTURES[given.arch], given.out):
            print(f"{path.name}  {path.stat().st_size} bytes  sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    except PackagingError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
