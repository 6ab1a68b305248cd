"""Counts the lines of the backend's package and holds them against a budget: ``python deploy/suites/weight.py``.

A line is code, an import, a docstring, a comment or blank. Code that fits in fewer lines is cheaper to read only where
nothing else grows, so files and repeated runs are counted beside the lines. ``weight.json`` is the budget. It may only
fall: `deploy/tests/test_weight.py` reads every value that it ever had.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "backend/hugeplan"
BUDGET = Path(__file__).with_suffix(".json")
RUN_LINES = 6
"""So many lines alike in two places are a repeated run. Imports, docstrings, comments and blank lines do not count."""
SMALL_LINES = 25
_LAYOUT = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Source:
    """One module: how many lines of each kind, and its lines of code with their numbers."""

    path: Path
    counts: Counter[str]
    code: tuple[tuple[int, str], ...]


def read(path: Path) -> Source:
    """Count one module. A line with code and a comment is code."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    kinds = ["blank"] * len(lines)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            kind = "comments" if token.type == tokenize.COMMENT else "code"
            for number in range(token.start[0] - 1, token.end[0]):
                kinds[number] = "code" if "code" in {kind, kinds[number]} else kind
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _mark(kinds, node, "imports")
        elif isinstance(node, _DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
            _mark(kinds, node.body[0], "docstrings")
    code = [(number + 1, line.strip()) for number, line in enumerate(lines) if kinds[number] == "code"]
    return Source(path, Counter(kinds), tuple(code))


def _mark(kinds: list[str], node: ast.stmt, kind: str) -> None:
    last = node.lineno if node.end_lineno is None else node.end_lineno
    kinds[node.lineno - 1 : last] = [kind] * (last - node.lineno + 1)


def repeated_runs(sources: list[Source]) -> list[str]:
    """Pairs of places with :data:`RUN_LINES` lines alike or more, each pair once, the longest first."""
    places: dict[tuple[str, ...], list[tuple[Source, int]]] = defaultdict(list)
    for source in sources:
        for start in range(len(source.code) - RUN_LINES + 1):
            run = tuple(line for _, line in source.code[start : start + RUN_LINES])
            places[run].append((source, start))
    found = []
    for same in places.values():
        for (one, i), (other, j) in combinations(same, 2):
            overlap = one is other and abs(i - j) < RUN_LINES
            goes_on = i > 0 and j > 0 and one.code[i - 1][1] == other.code[j - 1][1]  # counted where it begins
            if not overlap and not goes_on:
                where = [f"{at.path.relative_to(PACKAGE)}:{at.code[k][0]}" for at, k in ((one, i), (other, j))]
                found.append((_length(one, i, other, j), " and ".join(where)))
    return [f"{length} lines: {where}" for length, where in sorted(found, reverse=True)]


def _length(one: Source, i: int, other: Source, j: int) -> int:
    length = RUN_LINES
    while i + length < len(one.code) and j + length < len(other.code):
        if one.code[i + length][1] != other.code[j + length][1]:
            break
        length += 1
    return length


def measure(sources: list[Source]) -> dict[str, int]:
    """What the budget bounds, in the words of ``weight.json``."""
    total = sum((source.counts for source in sources), Counter[str]())
    small = [one for one in sources if one.counts.total() < SMALL_LINES and one.path.name != "__init__.py"]
    return {
        "lines": total.total(),
        "lines of code": total["code"] + total["imports"],
        "files": len(sources),
        "files under 25 lines": len(small),
        "repeated runs": len(repeated_runs(sources)),
    }


def above(measured: dict[str, int], budget: dict[str, int]) -> list[str]:
    """What is above the budget, one sentence per value."""
    return [
        f"{name}: {measured[name]:,}, the budget is {most:,}: {measured[name] - most:,} too many"
        for name, most in budget.items()
        if measured[name] > most
    ]


def sources() -> list[Source]:
    """Every module of the package."""
    return [read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def main() -> int:
    """Print the counts per folder, the repeated runs, and what is above the budget; 1 where something is."""
    found = sources()
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for source in found:
        folders[source.path.relative_to(PACKAGE).parts[0]] += source.counts + Counter(files=1)
    columns = ("files", "code", "imports", "docstrings", "comments", "blank")
    print(f"{'':16}{'lines':>8}" + "".join(f"{name:>12}" for name in columns))
    for name, counts in sorted(folders.items(), key=lambda item: -item[1].total()):
        lines = counts.total() - counts["files"]
        print(f"{name:16}{lines:8}" + "".join(f"{counts[column]:12}" for column in columns))
    measured, budget = measure(found), json.loads(BUDGET.read_text(encoding="utf-8"))
    print("\nrepeated runs of six lines and more:", *repeated_runs(found), sep="\n  ")
    print("\n" + "\n".join(f"{name:24}{measured[name]:8,}  budget {most:8,}" for name, most in budget.items()))
    problems = above(measured, budget)
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
