#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the folders of src/ use only those before them, that no two modules use each other, and that no file
includes what another of its includes brings.

    tests/check_layers.py [SOURCE_FOLDER]    default: src/ beside this folder

A module is what shares a path but for its suffix: knee.c and knee.h. It uses what it includes, and what it calls: one
header may declare the functions of several files, so the calls are read too. Prints one line per breach and exits with
1, or nothing and 0.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LAYERS = (
    "base", "machine", "memory", "timing", "geometry", "latency", "pressure", "rows", "scatter", "counters", "output",
    "cli",
)  # fmt: skip
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ANY_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)

DEFINITION = re.compile(r"^(?!static|typedef|#)[a-z][\w \*]*?\b(\w+)\([^;{}]*\)\s*\n\{", re.MULTILINE)
NOT_CODE = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def module_of(path: str) -> str:
    return path.rsplit(".", 1)[0]


def read_includes(source: Path, pattern: re.Pattern[str] = INCLUDE) -> dict[str, list[str]]:
    """Includes of every C file below `source`, the quoted ones alone by default; paths are relative to it."""
    files = (path for suffix in ("*.c", "*.h", "*.inc") for path in source.rglob(suffix))
    return {str(path.relative_to(source)): pattern.findall(path.read_text(encoding="utf-8")) for path in sorted(files)}


def read_calls(source: Path) -> dict[str, set[str]]:
    """The C files whose functions each C file names."""
    code = {str(path.relative_to(source)): path.read_text(encoding="utf-8") for path in source.rglob("*.c")}
    code = {file: NOT_CODE.sub(" ", text) for file, text in code.items()}
    owner = {name: file for file, text in code.items() for name in DEFINITION.findall(text)}
    words = {file: set(re.findall(r"\w+", text)) for file, text in code.items()}
    return {file: {owner[word] for word in words[file] & owner.keys()} for file in code}


def layer_breaches(includes: dict[str, list[str]]) -> list[str]:
    found = []
    for file, used in includes.items():
        layer = file.split("/")[0]
        if "/" not in file or layer not in LAYERS:
            found.append(f"{file}: lies in no layer; layers: {' '.join(LAYERS)}")
            continue
        for target in used:
            if target not in includes:
                found.append(f"{file}: includes {target}, which is not below src/ by that path")
            elif target.split("/")[0] in LAYERS and LAYERS.index(target.split("/")[0]) > LAYERS.index(layer):
                found.append(f"{file}: includes {target}: {layer} comes before {target.split('/')[0]}")
    return found


def cycles(includes: dict[str, list[str]], calls: dict[str, set[str]]) -> list[str]:
    """One line per ring of modules that use each other."""
    uses: dict[str, set[str]] = {}
    for file, used in [*includes.items(), *calls.items()]:
        uses.setdefault(module_of(file), set()).update(module_of(target) for target in used if target in includes)
    found = []
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            found.append("modules use each other: " + " -> ".join([*path[path.index(module) :], module]))
        elif module not in done:
            for target in sorted(uses.get(module, set()) - {module}):
                visit(target, [*path, module])
            done.add(module)

    for module in sorted(uses):
        visit(module, [])
    return found


def repeated(includes: dict[str, list[str]]) -> list[str]:
    """One line per include that another one of the same file brings."""

    def brought_by(names: list[str], seen: set[str]) -> set[str]:
        for name in set(names) - seen:
            seen.add(name)
            brought_by(includes.get(name, []), seen)
        return seen

    found = []
    for file, used in includes.items():
        for target in used:
            others = [other for other in used if other != target]
            if used.count(target) > 1 or target in brought_by(others, set()):
                found.append(f"{file}: includes {target}, which another of its includes brings")
    return found


def main() -> int:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "src"
    includes = read_includes(source)
    breaches = layer_breaches(includes) + cycles(includes, read_calls(source))
    if not breaches:
        breaches = repeated(read_includes(source, ANY_INCLUDE))
    if not includes:
        breaches.append(f"{source}: no C file found")
    print("\n".join(breaches), end="\n" if breaches else "")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
