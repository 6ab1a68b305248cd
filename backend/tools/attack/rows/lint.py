"""Texts for the linter: patterns that go back over what they read, and YAML that is small and means much."""

from __future__ import annotations

from functools import partial

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, expect

ALIASES = "kind: Pod\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS = {
    "1,600 tabs in a sysctl line": "vm.nr_hugepages\t" + "\t" * 1600 + "x y\n",
    "200,000 tabs in a sysctl file": "vm.nr_hugepages = 1\nvm.x" + "\t" * 190_000,
    "20,000 newlines": "\n" * 20_000 + "x",
    "190,000 newlines": "\n" * 190_000 + "x",
    "a long kernel command line": "hugepages=" + "1:" * 90_000,
    "a command line of quotes": 'GRUB_CMDLINE_LINUX="' + "hugepagesz=1G " * 6_000 + "\\" * 50_000,
    "an alias bomb": ALIASES,
    "190,000 brackets": "kind: Pod\nx: " + "[" * 190_000,
    "90,000 flow items": "kind: Pod\nx: [" + "a," * 90_000 + "a]",
    "90,000 equal keys": "kind: Pod\n" + "a:\n" * 60_000,
    "60,000 documents": "---\nkind: Pod\n" * 13_000,
    "a PostgreSQL line of quotes": "shared_buffers = '" + "''" * 90_000,
    "a JVM line": "-XX:" + "+" * 190_000,
    "many wrong lines of sysctl": "vm.nr_hugepages = x\n" * 9_000,
    "many limits of one user": "* soft memlock 1\n" * 11_000,
    "many tmpfiles": "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - x\n" * 2_800,
    "a byte order mark and a list": "\ufeff- " * 60_000,
}


def _lint(text: str, running: Target) -> str:
    body = {"files": [{"name": "a", "text": text}]}
    return expect(running.ask(Role.VIEWER, "POST", "/lint", json=body), 200, 422)


def _lint_many(running: Target) -> str:
    files = [{"name": str(number), "text": "vm.nr_hugepages = x\n" * 240} for number in range(40)]
    return expect(running.ask(Role.VIEWER, "POST", "/lint", json={"files": files}), 200, 422)


ROWS = (
    *(Attack(f"lint: {name}", partial(_lint, text)) for name, text in TEXTS.items()),
    Attack("lint: forty files of wrong lines", _lint_many),
)
