"""`tlbbench info`: captured trees against golden outputs, the running machine, the capture script.

With --update the golden files are written anew; look at the difference before committing it.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import json
import os
import platform
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
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
    assert made["thp"] == {
        "enabled": None,
        "defrag": None,
        "shmem_enabled": None,
        "page_bytes": None,
        "multi_size": None,
    }
    assert made["memory"]["hugetlb_bytes"] is None
    assert set(made["cgroup"].values()) == {None}
    assert made["numa_nodes"] == []


def hierarchical_limit() -> None:
    """A limit on a parent binds: the container itself has none."""
    made = environment("cgroup-v1")
    assert made["cgroup"] == {
        "version": 1,
        "memory_limit_bytes": 4 << 30,
        "memory_current_bytes": 3 << 30,
        "memory_limit_name": "memory.limit_in_bytes",
        "cpu_quota": 1.5,
    }
    # Of the parent's gigabyte of promises four megabytes are left.
    assert made["huge_pages"]["sizes"][0]["cgroup_left_bytes"] == 4 << 20


def high_binds_before_max() -> None:
    """Past memory.high a group is throttled until it makes no progress; a page may not even be promised here."""
    made = environment("cgroup-v2")
    assert made["cgroup"] == {
        "version": 2,
        "memory_limit_bytes": 6 << 30,
        "memory_current_bytes": 2 << 30,
        "memory_limit_name": "memory.high",
        "cpu_quota": 0.5,
    }
    left = {pool["page_bytes"]: pool["cgroup_left_bytes"] for pool in made["huge_pages"]["sizes"]}
    assert left[2 << 20] == 0
    assert left.get(1 << 30) is None


def conditions_are_recorded() -> None:
    """What changes a time without being measured; a captured tree cannot be asked for an address."""
    assert environment("x86-two-numa-nodes")["conditions"] == {
        "governor": "powersave",
        "clock_source": "tsc",
        "boost": 1,
        "numa_balancing": 1,
        "page_table_isolation": 1,
        "page_table_levels": None,
        "smt_active": 1,
        "second_level_cache_bytes": None,
        "last_level_cache_bytes": 36 << 20,
    }
    assert set(environment("no-hugetlb")["conditions"].values()) == {None}


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


def no_sys_is_no_claim() -> None:
    """Where /sys cannot be read, nothing is said of what the kernel has."""
    with suite.temporary() as directory:
        root = suite.unpack("x86-4k-1g-pools", directory)
        shutil.rmtree(Path(root) / "sys")
        report = suite.run("info", "--text", "--root", root).stdout
    assert report.count("unknown: /sys cannot be read") == 2, report
    assert "this kernel" not in report, report


def this_machine() -> None:
    made = suite.document("info", "--processes")
    assert made["command"] == "info"
    assert made["environment"]["base_page_bytes"] >= 4096
    assert made["environment"]["memory"]["mem_total_bytes"] > 0
    assert made["environment"]["processes"], "not even this process is listed"


def is_fast() -> None:
    if os.environ.get("TLBBENCH_RUNNER"):
        raise suite.Skip("the budget is that of the hardware, not of an emulator")
    if "ASAN_OPTIONS" in os.environ:
        raise suite.Skip("the budget is that of the program, not of a sanitizer's start")
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
            subprocess.run(
                [*script, "--whole-command-line", "--tlbbench", suite.tlbbench()[-1]], stdout=out, check=True
            )
        subprocess.run([*script, "--unpack", str(tree), f"{directory}/root"], check=True)
        replayed = suite.document("info", "--root", f"{directory}/root")
    direct = suite.document("info")
    for key in ("processor", "hypervisor", "kernel", "base_page_bytes", "thp", "cpuid_tlb"):
        assert replayed["environment"][key] == direct["environment"][key], key
    assert replayed["geometry"]["levels"] == direct["geometry"]["levels"]
    assert replayed["environment"]["cgroup"]["version"] == direct["environment"]["cgroup"]["version"]


def shells() -> list[list[str]]:
    """Shells that users have; sh is one of the first two."""
    found = [[path] for name in ("dash", "bash") if (path := shutil.which(name))]
    if busybox := shutil.which("busybox"):
        found.append([busybox, "sh"])
    return found


def capture_in(shell: list[str], *options: str) -> str:
    done = subprocess.run(
        [*shell, str(suite.HOME / "capture.sh"), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return done.stdout


def capture_keeps_secrets() -> None:
    """No value of a kernel parameter but those of memory and processors, no group's name, no host, no address."""
    command_line = Path("/proc/cmdline").read_text(encoding="utf-8").split()
    groups = {name for line in Path("/proc/self/cgroup").read_text().splitlines() for name in line.split("/")[1:]}
    for shell in shells():
        text = capture_in(shell, "--processes")
        parts = dict(part.split("\n", 1) for part in text.split("=== ")[1:])
        words = parts["proc/cmdline"].strip().removeprefix("|").split()
        of_init = False
        for captured, real in zip(words, command_line, strict=True):
            of_init = of_init or real == "--"
            name, _, value = captured.partition("=")
            if of_init:
                assert captured == ("--" if real == "--" else "..."), captured
            elif value not in ("", "..."):
                assert name in PARAMETERS, captured
                assert captured == real, captured
        for name in groups - {""}:
            assert name not in parts["proc/self/cgroup"], name
            assert all(f"/{name}/" not in path.split("\n", 1)[0] for path in parts), name
        assert platform.node() not in text or len(platform.node()) < 4
        assert not re.search(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b", text), "a hardware address"
        for path, content in parts.items():
            if path.startswith("proc/") and path.endswith("/status"):
                assert {line.split(":")[0] for line in content.splitlines()} <= STATUS_LINES, content


STATUS_LINES = {"|Name", "|VmSize", "|VmRSS", "|VmPTE", "|HugetlbPages"}
# The names in capture.sh, which must be those that the report prints.
PARAMETERS = re.search(r"^parameters='([^']*)'", (suite.HOME / "capture.sh").read_text(), re.MULTILINE)[1].split()


def command_line_is_short() -> None:
    """The report prints the parameters that matter here and counts the others; the document holds all."""
    with suite.temporary() as directory:
        root = suite.unpack("no-hugetlb", directory)
        words = [f"{name}=1" for name in PARAMETERS] + ["nosmt", "quiet", "root=UUID=1", "--", "mem=secret"]
        (Path(root) / "proc" / "cmdline").write_text(" ".join(words) + "\n")
        report = " ".join(suite.run("info", "--text", "--root", root).stdout.split())
        made = suite.document("info", "--root", root)
    expected = " ".join(words[: len(PARAMETERS) + 1])
    assert f"command line {expected} and 4 other words" in report, report
    assert made["environment"]["kernel"]["command_line"] == " ".join(words)


def shells_capture_alike() -> None:
    """What does not move is the same from every shell."""
    seen = []
    for shell in shells():
        parts = dict(part.split("\n", 1) for part in capture_in(shell).split("=== ")[1:])
        seen.append({key: parts.get(key) for key in ("capture.txt", "proc/cmdline", "proc/self/cgroup")})
        with suite.temporary() as directory:
            roots = []
            for name in NAMES:
                root = f"{directory}/{name} $(touch {directory}/x)"
                command = [
                    *shell,
                    str(suite.HOME / "capture.sh"),
                    "--unpack",
                    str(suite.FIXTURES / f"{name}.tree"),
                    root,
                ]
                subprocess.run(command, check=True)
                roots.append(root)
                other = suite.unpack(name, directory)
                assert subprocess.run(["diff", "-r", root, other], capture_output=True, check=False).returncode == 0
            assert not Path(f"{directory}/x").exists()
    assert seen, "no shell was found"
    assert all(item == seen[0] for item in seen), seen


def bad_trees_neither_crash_nor_invent() -> None:
    """Files that are gone, empty, garbage, enormous or no files: what is then said is unknown, not zero."""
    changes: dict[str, Callable[[Path], object]] = {
        "gone": Path.unlink,
        "empty": lambda path: path.write_bytes(b""),
        "garbage": lambda path: path.write_bytes(bytes(range(256)) * 16),
        "NUL bytes": lambda path: path.write_bytes(b"\0" * 5000),
        "digits": lambda path: path.write_bytes(b"9" * 1_000_000 + b"\n"),
        "escapes": lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\x1b[31m\x07\n")),
        "a folder": lambda path: (path.unlink(), path.mkdir()),
        "a loop": lambda path: (path.unlink(), path.symlink_to(path)),
        "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    }
    with suite.temporary() as directory:
        root = Path(suite.unpack("x86-two-numa-nodes", directory))
        whole = suite.document("info", "--root", str(root))["environment"]
        files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for name, change in changes.items():
            for path in files:
                change(path)
            made = suite.document("info", "--processes", "--root", str(root))["environment"]
            report = suite.run("info", "--text", "--processes", "--root", str(root))
            assert report.returncode == 0, (name, report.stderr)
            assert report.stdout.replace("\n", "").isprintable(), (name, report.stdout)
            if name != "escapes":
                assert made["memory"] == dict.fromkeys(whole["memory"]), (name, made["memory"])
                assert made["processor"]["family"] is None, name
                for pool in made["huge_pages"]["sizes"]:
                    assert [pool[key] for key in ("nr", "free", "reserved")] == [None] * 3, (name, pool)
            for path, content in files.items():
                restore(path, content)


def restore(path: Path, content: bytes) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(content)


def terminals_get_lines_that_fit() -> None:
    """No line is longer than the terminal, and none than 80 columns where there is no terminal."""
    with suite.temporary() as directory:
        root = suite.unpack("x86-two-numa-nodes", directory)
        command = [*suite.tlbbench(), "info", "--text", "--root", root]
        for columns, longest in ((40, 60), (60, 60), (80, 80), (100, 100), (200, 100)):
            main, child = pty.openpty()
            fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            subprocess.run(command, stdout=child, check=True)
            os.close(child)
            text = b""
            with contextlib.suppress(OSError):
                while part := os.read(main, 65536):
                    text += part
            os.close(main)
            lines = text.decode().replace("\r", "").splitlines()
            assert max(map(len, lines)) <= longest, (columns, max(lines, key=len))
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert max(map(len, lines)) <= 80, max(lines, key=len)


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
    ("memory.high and promises bind", high_binds_before_max),
    ("conditions are recorded", conditions_are_recorded),
    ("hidden geometry is named", hidden_geometry_is_named),
    ("a masked multiplier is a disagreement", masked_multiplier_is_a_disagreement),
    ("trees without capture.sh's facts replay", trees_of_others_replay),
    ("no /sys is no claim", no_sys_is_no_claim),
    ("this machine", this_machine),
    ("takes less than 100 ms", is_fast),
    ("capture.sh replays the same", capture_replays_the_same),
    ("capture.sh keeps secrets", capture_keeps_secrets),
    ("capture.sh works in every shell", shells_capture_alike),
    ("capture.sh --unpack stays below its folder", unpack_refuses_to_leave),
    ("bad trees neither crash nor invent", bad_trees_neither_crash_nor_invent),
    ("the command line is short in the report", command_line_is_short),
    ("lines fit the terminal", terminals_get_lines_that_fit),
    ("an output error is a failure", output_errors_are_failures),
]

if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        update()
    else:
        suite.main("info", CASES)
