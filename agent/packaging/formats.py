"""A deb and an rpm from a list of files, the same bytes each time: sorted, of root, dated by SOURCE_DATE_EPOCH."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EARLIEST = 315_532_800  # 1980-01-01: a zip file can hold nothing older
MAINTAINER = "hugeplan maintainers <maintainers@hugeplan.dev>"
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hugeplan

Files: *
Copyright: The hugeplan authors
License: Apache-2.0
 On Debian systems the full text of the licence is in /usr/share/common-licenses/Apache-2.0.
"""


class PackagingError(Exception):
    """One sentence for the terminal."""


@dataclass(frozen=True)
class File:
    """A file of a package: its place without the leading slash, its content, whether it can be executed.

    With ``link`` it is a symbolic link to there.
    """

    path: str
    content: bytes = b""
    executable: bool = False
    link: str | None = None

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


@dataclass(frozen=True)
class Package:
    """What a deb and an rpm say of themselves. ``scripts`` are Debian's and RPM's maintainer scripts by name."""

    name: str
    version: str
    debian_architecture: str
    machine: str
    summary: str
    description: str
    debian_depends: str
    rpm_requires: str
    files: list[File]
    deb_scripts: Mapping[str, str] = field(default_factory=dict)
    rpm_scripts: Mapping[str, str] = field(default_factory=dict)
    lintian_overrides: tuple[str, ...] = ()

    @property
    def settings(self) -> list[str]:
        """Files that an administrator changes, and that an upgrade leaves alone."""
        return [file.path for file in self.files if file.path.startswith("etc/")]


def epoch() -> int:
    """The date of everything in the packages."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        asked = subprocess.run(
            ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
        )
        given = asked.stdout.strip() or str(EARLIEST)
    return max(EARLIEST, int(given))


def run(words: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a program of the build. Raises PackagingError with its last words."""
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise PackagingError(f"{' '.join(words[:2])} failed:\n{last}")


def _documents(package: Package) -> list[File]:
    """What Debian wants of every package."""
    moment = format_datetime(datetime.fromtimestamp(epoch(), timezone.utc))
    changes = (
        f"{package.name} ({package.version}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n"
        f" -- {MAINTAINER}  {moment}\n"
    )
    folder = f"usr/share/doc/{package.name}"
    found = [
        File(f"{folder}/copyright", COPYRIGHT.encode()),
        File(f"{folder}/changelog.gz", gzip.compress(changes.encode(), 9, mtime=0)),
    ]
    if package.lintian_overrides:
        lines = "".join(f"{package.name}: {line}\n" for line in package.lintian_overrides)
        found.append(File(f"usr/share/lintian/overrides/{package.name}", lines.encode()))
    return found


def build_deb(package: Package, out: Path) -> Path:
    """A Debian package (deb(5)): an ar archive of three members."""
    installed = sorted([*package.files, *_documents(package)], key=lambda file: file.path)
    size_kib = sum(-(-len(file.content) // 1024) for file in installed)
    control = (
        f"Package: {package.name}\nVersion: {package.version}\nArchitecture: {package.debian_architecture}\n"
        f"Maintainer: {MAINTAINER}\nInstalled-Size: {size_kib}\nDepends: {package.debian_depends}\nSection: admin\n"
        f"Priority: optional\nDescription: {package.summary}\n"
        + "".join(f" {line}\n" for line in package.description.splitlines())
    )
    # MD5 is what the format asks for; dpkg --verify reads it.
    sums = "".join(
        f"{hashlib.md5(file.content).hexdigest()}  {file.path}\n"  # noqa: S324
        for file in installed
        if file.link is None
    )
    about = [
        File("control", control.encode()),
        File("conffiles", "".join(f"/{path}\n" for path in package.settings).encode()),
        File("md5sums", sums.encode()),
        *(File(name, script.encode(), executable=True) for name, script in sorted(package.deb_scripts.items())),
    ]
    members = [("debian-binary", b"2.0\n"), ("control.tar.gz", tar_gz(about)), ("data.tar.gz", tar_gz(installed))]
    target = out / f"{package.name}_{package.version}_{package.debian_architecture}.deb"
    with target.open("wb") as archive:
        archive.write(b"!<arch>\n")
        for name, content in members:
            archive.write(f"{name:<16}{epoch():<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode("ascii"))
            archive.write(content + b"\n" * (len(content) % 2))
    return target


def tar_gz(files: list[File]) -> bytes:
    """A packed archive with the folders that the files lie in."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        folders: set[str] = set()
        for file in files:
            for folder in [str(part) for part in reversed(Path(file.path).parents)][1:]:
                if folder not in folders:
                    folders.add(folder)
                    archive.addfile(_member(f"./{folder}/", 0o755, tarfile.DIRTYPE))
            if file.link is not None:
                member = _member(f"./{file.path}", 0o777, tarfile.SYMTYPE)
                member.linkname = file.link
                archive.addfile(member)
                continue
            member = _member(f"./{file.path}", file.mode, tarfile.REGTYPE)
            member.size = len(file.content)
            archive.addfile(member, io.BytesIO(file.content))
    # The service's package holds 140 MB; the last two percent of its size would take four times as long.
    return gzip.compress(packed.getvalue(), 6, mtime=0)


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
Requires: {requires}
AutoReqProv: no
%description
{description}
%install
cp -a {tree}/. %{{buildroot}}/
{scripts}
%files
%defattr(-,root,root,-)
{files}
"""
MACROS = {
    "_buildhost": "hugeplan",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "__os_install_post": "%{nil}",
    "_build_id_links": "none",
    "debug_package": "%{nil}",
    "_binary_payload": "w9.gzdio",
}


def build_rpm(package: Package, out: Path, work: Path) -> Path:
    """An RPM by rpmbuild, told to forget where and when it ran."""
    if shutil.which("rpmbuild") is None:
        raise PackagingError("rpmbuild is not installed (Debian: apt-get install rpm); without: --kinds wheel,deb")
    tree = work / "tree"
    license_file = File(f"usr/share/licenses/{package.name}/LICENSE", (REPOSITORY / "LICENSE").read_bytes())
    installed = sorted([*package.files, license_file], key=lambda file: file.path)
    for file in installed:
        target = tree / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.link is not None:
            target.symlink_to(file.link)
            continue
        target.write_bytes(file.content)
        target.chmod(file.mode)
        os.utime(target, (epoch(), epoch()))
    lines = [
        f"%config(noreplace) /{file.path}" if file.path.startswith("etc/") else f"/{file.path}" for file in installed
    ]
    scripts = "\n".join(f"%{name} -p /bin/sh\n{body}" for name, body in sorted(package.rpm_scripts.items()))
    spec = work / f"{package.name}.spec"
    spec.write_text(
        SPEC.format(
            name=package.name, version=package.version, summary=package.summary, description=package.description,
            requires=package.rpm_requires, tree=tree, scripts=scripts, files="\n".join(lines),
        )
    )  # fmt: skip
    macros = {"_topdir": str(work / "rpm"), "_rpmdir": str(work / "rpms"), **MACROS}
    defines = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    run(
        ["rpmbuild", "-bb", "--target", f"{package.machine}-linux", *defines, str(spec)],
        {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())},
    )
    (made,) = (work / "rpms").rglob("*.rpm")
    target = out / made.name
    shutil.copyfile(made, target)
    return target


def service_scripts(
    user: str,
    state: str,
    units: tuple[str, ...],
    *,
    before: str = "",
    leftovers: tuple[str, ...] = (),
    folders: tuple[str, ...] = (),
) -> tuple[dict[str, str], dict[str, str]]:
    """Maintainer scripts, Debian's and RPM's, of a package with units that run as a user with a state folder.

    ``before`` runs as root at each installation, when the user and the folder are there. ``leftovers`` are removed by a
    purge beside the state folder, and ``folders`` where nothing else is in them. Nothing is enabled or started by an
    installation; an upgrade starts again what ran.
    """
    names = " ".join(units)
    prepare = (
        f"if ! getent passwd {user} >/dev/null; then\n"
        f"  useradd --system --user-group --home-dir {state} --no-create-home --shell /usr/sbin/nologin {user}\nfi\n"
        # With DynamicUser of earlier releases the folder is a link to a private one; systemd moves it back itself.
        f"if [ ! -e {state} ]; then install -d -m 0700 -o {user} -g {user} {state}; fi\n{before}"
    )
    reload = "if [ -d /run/systemd/system ]; then systemctl --system daemon-reload || true; fi\n"
    restart = f"if [ -d /run/systemd/system ]; then systemctl try-restart {names} || true; fi\n"
    stop = f"if [ -d /run/systemd/system ]; then systemctl --no-reload disable --now {names} || true; fi\n"
    purge = f"rm -rf {state} {state.replace('/lib/', '/lib/private/')} {state.replace('/lib/', '/cache/')}\n" + "".join(
        f"rm -f {path}\n" for path in leftovers
    )
    head = "#!/bin/sh\nset -e\n"
    deb = {
        "postinst": f'{head}if [ "$1" = configure ]; then\n{prepare}{reload}if [ -n "$2" ]; then\n{restart}fi\nfi\n',
        "prerm": f'{head}if [ "$1" = remove ]; then\n{stop}fi\n',
        "postrm": f'{head}if [ "$1" = purge ]; then\n{purge}rmdir --ignore-fail-on-non-empty'
        f" {' '.join(('/etc/hugeplan', *folders))} 2>/dev/null || true\nfi\n{reload}",
    }
    rpm = {
        "post": f"{prepare}{reload}",
        "preun": f'if [ "$1" = 0 ]; then\n{stop}fi\n',
        "postun": f'{reload}if [ "$1" -ge 1 ]; then\n{restart}fi\n',
    }
    return deb, rpm


def zip_time() -> time.struct_time:
    """The date of everything in a wheel."""
    return time.gmtime(epoch())
