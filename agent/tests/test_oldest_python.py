"""The agent runs with Python 3.9: what a newer one alone takes fails there when the line is reached, not before."""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_packages import AGENT, pythons

OLDEST = (3, 9)
NEWER_WORDS = {"dataclass": {"slots", "kw_only"}, "field": {"kw_only"}, "zip": {"strict"}, "bisect_left": {"key"}}
NEWER_NAMES = {"aiter", "anext", "bit_count", "batched", "pairwise", "file_digest", "StrEnum", "ExceptionGroup", "UTC"}


def newer(source: str) -> Iterator[str]:
    """What Python 3.9 does not take of a module's code; annotations are text there, so anything may stand in them."""
    tree = ast.parse(source, feature_version=OLDEST)
    has_text = any(isinstance(one, ast.ImportFrom) and one.module == "__future__" for one in tree.body)
    annotations: set[ast.AST] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if has_text and isinstance(part, ast.AST):
                annotations.update(ast.walk(part))
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and node not in annotations:
            if is_type(node.left) or is_type(node.right):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in ("isinstance", "issubclass") and any(
                isinstance(one, ast.BinOp) for one in ast.walk(node.args[1])
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"
            for word in NEWER_WORDS.get(called, set()) & {word.arg for word in node.keywords if word.arg}:
                yield f"{node.lineno}: {called}({word}=)"
        elif isinstance(node, (ast.Attribute, ast.Name)) and ast.unparse(node).rpartition(".")[2] in NEWER_NAMES:
            yield f"{node.lineno}: {ast.unparse(node)}"


def is_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return is_type(node.value)
    name = node.id if isinstance(node, ast.Name) else ""
    is_none = isinstance(node, ast.Constant) and node.value is None
    return is_none or isinstance(getattr(builtins, name, None), type)


def test_nothing_needs_a_newer_python() -> None:
    files = sorted((AGENT / "hugeplan_agent").rglob("*.py"))
    assert len(files) > 50
    found = [f"{path.relative_to(AGENT)}:{word}" for path in files for word in newer(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(x, list | tuple)", "issubclass(x, (A | B, C))", "Y = int | None", "Y = dict[str, int] | A",
        "def f(x: int | None): pass", "zip(a, b, strict=True)", "@dataclasses.dataclass(slots=True)\nclass A: pass",
        "n.bit_count()", "datetime.UTC",
    ],
)  # fmt: skip
def test_what_is_newer_is_found(code: str) -> None:
    assert list(newer(code))
    assert not list(newer("from __future__ import annotations\ndef f(x: int | None) -> A | None: return a | 2"))


@pytest.mark.parametrize("python", pythons())
def test_a_report_with_a_mapped_emoji_goes_into_the_spool(python: str, tmp_path: Path) -> None:
    """Whoever has an account names a process so. JSON writes the emoji as two halves, and so it writes what no
    service stores: the report is looked through."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from hugeplan_agent.spool import Bounds, Spool
names = ["\\U0001f600", "\\udcff\\0", ("a",)]
report = {"report_id": "11111111-1111-4111-8111-111111111111", "sample": {"processes": [{"name": n} for n in names]}}
print(Spool(Path(sys.argv[2]), Bounds()).add(report, 1).path)
"""
    words = [python, "-Ic", code, str(AGENT), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = json.loads(Path(done.stdout.strip()).read_text())
    assert [one["name"] for one in kept["sample"]["processes"]] == ["\U0001f600", "\ufffd\ufffd", ["a"]]
