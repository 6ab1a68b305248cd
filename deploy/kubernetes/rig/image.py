"""A container image without a registry: a few programs of this machine, the libraries they need, and a PostgreSQL.

The image is a stand-in for tests. It is written in the layout of ``docker save``, which ``ctr images import`` takes.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

#: The one user of the image besides root; PostgreSQL refuses to run as root.
USER_ID = 10001
_PROGRAMS = ("sh", "sleep", "cat", "mkdir", "ls", "rm")
_PASSWD = f"root:x:0:0:root:/:/bin/sh\npostgres:x:{USER_ID}:{USER_ID}:postgres:/data:/bin/sh\n"


def libraries(program: Path) -> set[Path]:
    """The shared libraries that a program loads, and the loader itself."""
    found = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return {Path(match) for match in re.findall(r"(/\S+) \(0x", found)}


def write_image(target: Path, name: str, postgresql: Path) -> None:
    """Write an image ``name`` with a shell and ``postgresql`` (a folder with bin, lib and share) to ``target``."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "tmp", "data", "etc", "proc", "sys", "dev", "run", "var"):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(info)
        _add_text(tar, "etc/passwd", _PASSWD)
        _add_text(tar, "etc/group", f"root:x:0:\npostgres:x:{USER_ID}:\n")
        programs = [Path("/bin") / program for program in _PROGRAMS]
        for program in programs:
            tar.add(program.resolve(), arcname=f"bin/{program.name}")
        for library in _closure([*programs, *(postgresql / "bin" / one for one in ("postgres", "initdb", "psql"))]):
            # A wheel's programs name their libraries relative to the wheel: one folder for all finds them anywhere.
            loader = library.name.startswith("ld-")
            tar.add(library.resolve(), arcname=str(library).lstrip("/") if loader else f"lib/rig/{library.name}")
        tar.add(postgresql, arcname="opt/postgresql", filter=_as_root)
    data = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        # The pod sandbox runs the image as it is, and a pod its own command.
        "config": {
            "Env": ["PATH=/opt/postgresql/bin:/bin", "LD_LIBRARY_PATH=/lib/rig"],
            "Cmd": ["sleep", "infinity"],
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(target, mode="w") as out:
        _add_text(out, "config.json", json.dumps(config))
        _add_text(out, "manifest.json", json.dumps(manifest))
        info = tarfile.TarInfo("layer.tar")
        info.size = len(data)
        out.addfile(info, io.BytesIO(data))


def _closure(programs: Iterable[Path]) -> set[Path]:
    return {library for program in programs for library in libraries(program.resolve())}


def _as_root(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return None if "/include" in info.name else info


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))
