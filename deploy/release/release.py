"""Everything of a release in one folder, byte for byte the same from the same sources: `make release`.

    python deploy/release/release.py --out DIR [--images]

Wheels, debs, rpm, the chart, man pages, one requirements file with hashes, two CycloneDX documents (Python and user
interface), third-party notices, SHA256SUMS; with --images the two images as OCI archives, where an engine is. Files are
dated by SOURCE_DATE_EPOCH, by default the time of the newest commit.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import manpages
from version import REPOSITORY, differing, version

CHART = REPOSITORY / "deploy/kubernetes/chart/hugeplan"
LOCK = REPOSITORY / "deploy/python/wheel.txt"
STATIC_NOTICES = REPOSITORY / "deploy/release/tlbbench-notices.txt"
UI_NOTICES = REPOSITORY / "frontend/dist/third-party-notices.txt"


class ReleaseError(Exception):
    """One sentence for the terminal."""


def epoch() -> int:
    """The date of everything in the release: SOURCE_DATE_EPOCH, else the newest commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        words = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
        given = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    if not given.isdigit():
        raise ReleaseError("SOURCE_DATE_EPOCH is not set and this is no git checkout; set it to seconds since 1970")
    return int(given)


def run(*words: str, folder: Path = REPOSITORY, **more: str) -> str:
    """Run a program with the release's date; what it prints. ReleaseError with its last lines."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch()), **more}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise ReleaseError(f"{' '.join(words[:3])} failed:\n{last}")
    return done.stdout


def archive(target: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """A tar.gz of files sorted by name, owned by root, dated by the release."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), epoch(), 0o644
            tar.addfile(member, io.BytesIO(content))
    target.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def packages(out: Path) -> None:
    """The service's wheel with interface and migrations, its deb, and the agent's packages with a static tlbbench."""
    build = REPOSITORY / "backend/build"
    shutil.rmtree(build, ignore_errors=True)
    words = (
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(out),
        "./backend",
    )
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", *words)
    shutil.rmtree(build, ignore_errors=True)
    kinds = "wheel,deb,rpm" if shutil.which("rpmbuild") else "wheel,deb"
    if kinds == "wheel,deb":
        print("rpmbuild is not installed (Debian: apt-get install rpm), so there is no rpm")
    run(sys.executable, "agent/packaging/build.py", "--out", str(out), "--kinds", kinds)
    (wheel,) = out.glob("hugeplan-*.whl")
    run(sys.executable, "deploy/packaging/server.py", "--wheel", str(wheel), "--out", str(out))


def requirements(out: Path) -> None:
    """One file that installs the service with hashes. Our own wheels are paths: no index is asked for their names."""
    lines = ["# In this folder: pip install --require-hashes --requirement requirements.txt"]
    for path in sorted(out.glob("*.whl")):
        extras = "[demo,node]" if path.name.startswith("hugeplan-") else ""
        marker = f' ; platform_machine == "{machine}"' if (machine := _machine_of(path)) else ""
        lines.append(f"./{path.name}{extras}{marker} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
    shutil.copyfile(LOCK, out / "lock.txt")
    (out / "requirements.txt").write_text("\n".join(lines) + "\n" + LOCK.read_text())


def _machine_of(wheel: Path) -> str | None:
    return next((name for name in ("x86_64", "aarch64") if name in wheel.name), None)


def chart(out: Path) -> None:
    """The chart as helm packages it, but dated by the release."""
    files = [path for path in CHART.rglob("*") if path.is_file()]
    target = out / f"hugeplan-chart-{version()}.tgz"
    archive(target, ((f"hugeplan/{path.relative_to(CHART)}", path.read_bytes()) for path in files))


def bills_of_materials(out: Path) -> None:
    """CycloneDX documents: cyclonedx-bom reads Python's lock; npm's lock is read here."""
    cyclonedx = str(Path(sys.executable).parent / "cyclonedx-py")
    python = json.loads(run(cyclonedx, "requirements", "--output-reproducible", "--of", "JSON", str(LOCK)))
    ui = interface_components(json.loads((REPOSITORY / "frontend/package-lock.json").read_text())["packages"])
    for name, document in (("python", python), ("ui", ui)):
        # A serial number and a time would differ with each run.
        document.pop("serialNumber", None)
        document.get("metadata", {}).pop("timestamp", None)
        document.setdefault("metadata", {})["component"] = {
            "type": "application", "name": f"hugeplan-{name}", "version": version(), "bom-ref": f"hugeplan-{name}",
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }  # fmt: skip
        document["dependencies"] = _without_old_root(document.get("dependencies", []), document)
        text = json.dumps(document, indent=1, sort_keys=True) + "\n"
        (out / f"hugeplan-{version()}-{name}.cdx.json").write_text(text)
        print(f"SBOM of {name}: {len(document['components'])} components")


def interface_components(locked: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What is in the interface, from npm's lock: `npm sbom` is not in Debian's npm, and mistakes React for a tool."""
    shipped = {
        path: about for path, about in locked.items() if path and not about.get("dev") and not about.get("devOptional")
    }

    def reference(path: str) -> str:
        return f"{path.rpartition('node_modules/')[2]}@{shipped[path]['version']}"

    components, dependencies = [], []
    for path, about in shipped.items():
        name = path.rpartition("node_modules/")[2]
        _, _, digest = about["integrity"].partition("sha512-")
        components.append(
            {
                "type": "library", "bom-ref": reference(path), "name": name, "version": about["version"],
                "purl": f"pkg:npm/{quote(name, safe='/')}@{about['version']}",
                "licenses": [{"expression": about["license"]}] if "license" in about else [],
                "hashes": [{"alg": "SHA-512", "content": b64decode(digest).hex()}],
            }
        )  # fmt: skip
        found = {_resolved(path, other, shipped) for other in about.get("dependencies", {})} - {None}
        dependencies.append({"ref": reference(path), "dependsOn": sorted(reference(one) for one in found if one)})
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "components": components, "dependencies": dependencies,
    }  # fmt: skip


def _resolved(path: str, name: str, known: Mapping[str, Any]) -> str | None:
    """Where Node finds a package that the one at ``path`` imports: beside it, then in each folder above."""
    folder = path
    while f"{folder}/node_modules/{name}".lstrip("/") not in known:
        if not folder:
            return None
        folder = folder.rpartition("/node_modules/")[0]
    return f"{folder}/node_modules/{name}".lstrip("/")


def _without_old_root(dependencies: list[dict[str, Any]], document: dict[str, Any]) -> list[dict[str, Any]]:
    """What depends on what among the components, without the root that was renamed and what was left out."""
    known = {part["bom-ref"] for part in document["components"]}
    return [
        {"ref": one["ref"], "dependsOn": sorted(known & set(one.get("dependsOn", ())))}
        for one in dependencies
        if one["ref"] in known
    ]


def notices(out: Path) -> None:
    """What others wrote and a file of the release contains: the interface's bundle and the static tlbbench."""
    if not UI_NOTICES.is_file():
        raise ReleaseError(f"{UI_NOTICES} is missing: run `make frontend` first")
    parts = [STATIC_NOTICES.read_text().rstrip(), UI_NOTICES.read_text().rstrip()]
    (out / "THIRD-PARTY-NOTICES.txt").write_text(f"\n\n{'=' * 100}\n\n".join(parts) + "\n")
    shutil.copyfile(REPOSITORY / "LICENSE", out / "LICENSE")


def images(out: Path) -> None:
    """The two images as OCI archives. Their layers hold the times of their build: these files alone differ."""
    sys.path.insert(0, str(REPOSITORY / "deploy/containers"))
    from clone_images import oci_archives  # noqa: PLC0415 - a release without images needs no engine
    from container_rig import RigError  # noqa: PLC0415

    try:
        for line in oci_archives(out, version()):
            print(line)
    except RigError as error:
        raise ReleaseError(f"no images: {error}; without them: make release RELEASE=") from error


def sums(out: Path) -> None:
    """SHA256SUMS of everything else, as sha256sum --check reads it."""
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(lines))


def release(out: Path, *, with_images: bool) -> None:
    """Make the folder anew, whole or not at all."""
    if wrong := differing():
        raise ReleaseError(f"{wrong[0]}. Run: make version")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".release-") as folder:
        fresh = Path(folder) / "release"
        fresh.mkdir(mode=0o755)
        for step in (packages, requirements, chart, bills_of_materials, notices):
            step(fresh)
        archive(fresh / f"hugeplan-{version()}-man.tar.gz", manpages.pages())
        if with_images:
            images(fresh)
        sums(fresh)
        shutil.rmtree(out, ignore_errors=True)
        fresh.rename(out)


def main() -> int:
    """The command; a known error is one sentence and status 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the release; what was there is replaced")
    parser.add_argument("--images", action="store_true", help="the images, too, as OCI archives (needs an engine)")
    given = parser.parse_args()
    try:
        release(given.out.resolve(), with_images=given.images)
    except ReleaseError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    for path in sorted(given.out.iterdir()):
        print(f"{path.stat().st_size:>12}  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
