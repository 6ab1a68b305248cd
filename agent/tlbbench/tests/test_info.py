"""`tlbbench info`: captured trees against golden outputs, the running machine, the capture script.

With --update the golden files are written anew; look at the difference before committing it.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import suite

# From issue text: what each tree must show besides its golden output.
NAMES = sorted(path.stem for path in suite.FIXTURES.glob("*.tree"))
BUDGET_SECONDS = 0.1


def outputs(name: str) -> dict[str, str]:
    """The readable report and the machine-independent parts of the document of one captured tree."""
    with suite.temporary() as directory:
        root = suite.unpack(name, directory)
        report = suite.run("info", "--text", "--processes", "--root", root)
        assert report.returncode == 0, report.stderr
        made = suite.document("info", "--processes", "--root", root)
    kept = {key: made[key] for key in ("environment", "geometry")}
    return {f"{name}.txt": report.stdout, f"{name}.json": json.dumps(kept, indent=1) + "\n"}


def compare(name: str) -> None:
    for file, text in outputs(name).items():
        expected = (suite.GOLDEN / file).read_text(encoding="utf-8")
        difference = list(difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "now", lineterm=""))
        assert not difference, f"{file} differs:\n" + "\n".join(difference[:30])


def environment(name: str) -> dict:
    with suite.temporary() as directory:
        return suite.document("info", "--root", suite.unpack(name, directory))["environment"]


def unknown_is_null() -> None:
    made = environment("no-hugetlb")
    assert made["huge_pages"] == {"default_bytes": None, "sizes": []}
    assert made["thp"] == {"enabled": None, "defrag": None, "shmem_enabled": None, "page_bytes": None}
    assert made["memory"]["hugetlb_bytes"] is None
    assert made["cgroup"] == {"version": None, "memory_limit_bytes": None, "memory_current_bytes": None}
    assert made["numa_nodes"] == []


def hierarchical_limit() -> None:
    """A limit on a parent binds: the container itself has none."""
    assert environment("cgroup-v1")["cgroup"] == {
        "version": 1,
        "memory_limit_bytes": 4 << 30,
        "memory_current_bytes": 3 << 30,
    }


def hidden_geometry_is_named() -> None:
    with suite.temporary() as directory:
        geometry = suite.document("info", "--root", suite.unpack("x86-4k-1g-pools", directory))["geometry"]
    assert geometry["status"] == "cpuid_hidden"
    assert {level["source"] for level in geometry["levels"]} == {"catalogue"}


def masked_multiplier_is_a_disagreement() -> None:
    """A Zen 5 guest without the x32 bit claims 128 entries where the hardware has 4096."""
    with suite.temporary() as directory:
        geometry = suite.document("info", "--root", suite.unpack("cgroup-v1", directory))["geometry"]
    found = {(item["level"], item["page_bytes"]): item["values"] for item in geometry["disagreements"]}
    assert found == {
        (2, 4096): {"cpuid": 128, "catalogue": 4096},
        (2, 2 << 20): {"cpuid": 128, "catalogue": 4096},
    }, found


def trees_of_others_replay() -> None:
    """A tree of plain proc and sys, without what capture.sh adds, says less but nothing else."""
    for name, base_page_bytes in (("arm64-64k", 65536), ("x86-two-numa-nodes", 4096), ("ppc64le-power9", None)):
        with suite.temporary() as directory:
            root = suite.unpack(name, directory)
            whole = suite.document("info", "--root", root)["environment"]
            for extra in ("capture.txt", "cpuid.txt"):
                (Path(root) / extra).unlink(missing_ok=True)
            less = suite.document("info", "--root", root)["environment"]
        assert less["base_page_bytes"] == base_page_bytes, name
        assert less["processor"]["catalogue_id"] == whole["processor"]["catalogue_id"], name
        assert less["processor"]["architecture"] == whole["processor"]["architecture"], name
        for key in ("huge_pages", "memory", "numa_nodes", "cgroup", "thp"):
            assert less[key] == whole[key], (name, key)


def this_machine() -> None:
    made = suite.document("info", "--processes")
    assert made["command"] == "info"
    assert made["environment"]["base_page_bytes"] >= 4096
    assert made["environment"]["memory"]["mem_total_bytes"] > 0
    assert made["environment"]["processes"], "not even this process is listed"


def is_fast() -> None:
    if os.environ.get("TLBBENCH_RUNNER"):
        raise suite.Skip("the budget is that of the hardware, not of an emulator")
    times = []
    for _ in range(5):
        start = time.monotonic()
        assert suite.run("info").returncode == 0
        times.append(time.monotonic() - start)
    assert min(times) < BUDGET_SECONDS, f"fastest of five: {min(times):.3f} s"


def capture_replays_the_same() -> None:
    """What capture.sh takes of this machine must replay to what the machine itself says (but for what moves)."""
    if os.environ.get("TLBBENCH_RUNNER"):
        raise suite.Skip("capture.sh takes this machine, the program is for another architecture")
    with suite.temporary() as directory:
        tree = Path(directory) / "node.tree"
        script = ["sh", str(suite.HOME / "capture.sh")]
        with tree.open("w") as out:
            subprocess.run([*script, "--tlbbench", suite.tlbbench()[-1]], stdout=out, check=True)
        subprocess.run([*script, "--unpack", str(tree), f"{directory}/root"], check=True)
        replayed = suite.document("info", "--root", f"{directory}/root")
    direct = suite.document("info")
    for key in ("processor", "hypervisor", "kernel", "base_page_bytes", "thp", "cpuid_tlb"):
        assert replayed["environment"][key] == direct["environment"][key], key
    assert replayed["geometry"]["levels"] == direct["geometry"]["levels"]
    assert replayed["environment"]["cgroup"]["version"] == direct["environment"]["cgroup"]["version"]


def unpack_refuses_to_leave() -> None:
    with suite.temporary() as directory:
        for name in ("../outside", "/etc/outside", "a/../../outside", "a b", "a$(touch x)"):
            tree = Path(directory) / "bad.tree"
            tree.write_text(f"=== {name}\n|text\n")
            done = subprocess.run(
                ["sh", str(suite.HOME / "capture.sh"), "--unpack", str(tree), f"{directory}/root"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert not (Path(directory) / "outside").exists(), name
            if name != "a b":  # a blank ends the path
                assert done.returncode != 0, name


def output_errors_are_failures() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*suite.tlbbench(), "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


def update() -> None:
    suite.GOLDEN.mkdir(exist_ok=True)
    for name in NAMES:
        for file, text in outputs(name).items():
            (suite.GOLDEN / file).write_text(text, encoding="utf-8")


CASES: list[tuple[str, Callable[[], None]]] = [
    *((f"tree {name} matches its golden output", partial(compare, name)) for name in NAMES),
    ("what is absent is null", unknown_is_null),
    ("a limit on a parent group binds", hierarchical_limit),
    ("hidden geometry is named", hidden_geometry_is_named),
    ("a masked multiplier is a disagreement", masked_multiplier_is_a_disagreement),
    ("trees without capture.sh's facts replay", trees_of_others_replay),
    ("this machine", this_machine),
    ("takes less than 100 ms", is_fast),
    ("capture.sh replays the same", capture_replays_the_same),
    ("capture.sh --unpack stays below its folder", unpack_refuses_to_leave),
    ("an output error is a failure", output_errors_are_failures),
]

if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        update()
    else:
        suite.main("info", CASES)
