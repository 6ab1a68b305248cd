"""crun without what a caller that lacks CAP_SYS_RESOURCE may not do. container_rig.py installs this as the runtime."""

import json
import os
import sys
from pathlib import Path


def drop_limits(bundle: Path) -> None:
    """Remove raised limits and the capability that would raise them from an OCI bundle's config.json."""
    path = bundle / "config.json"
    config = json.loads(path.read_text())
    process = config.get("process", {})
    process.pop("rlimits", None)
    process.pop("oomScoreAdj", None)
    for names in process.get("capabilities", {}).values():
        if "CAP_SYS_RESOURCE" in names:
            names.remove("CAP_SYS_RESOURCE")
    path.write_text(json.dumps(config))


if __name__ == "__main__":
    words = sys.argv[1:]
    for index, word in enumerate(words):
        if word in {"--bundle", "-b"}:
            drop_limits(Path(words[index + 1]))
        elif word.startswith("--bundle="):
            drop_limits(Path(word.partition("=")[2]))
    os.execvp("crun", ["crun", *words])  # noqa: S606 - the wrapped runtime, found on PATH
