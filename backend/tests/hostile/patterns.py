"""Every regular expression of service and agent, and texts that make bad ones go back over what they have read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hugeplan_agent

import hugeplan

PACKAGES = [Path(str(package.__file__)).parent for package in (hugeplan, hugeplan_agent)]
USES = frozenset({"compile", "match", "search", "fullmatch", "sub", "findall", "finditer", "split"})


@dataclass(frozen=True)
class Found:
    """A pattern and its place."""

    place: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]
    """The functions of ``re`` that it is used with; all where that cannot be seen."""


def all_patterns() -> Iterator[Found]:
    """Every pattern that the packages' text spells in full. Parts that a program fills in stand for a word."""
    for path in (path for package in PACKAGES for path in sorted(package.rglob("*.py"))):
        tree = ast.parse(path.read_text())
        named = dict(_names(tree))
        for node in ast.walk(tree):
            is_use = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in USES
            if not is_use or not isinstance(node.func.value, ast.Name) or node.func.value.id != "re":
                continue
            source = _text(node.args[0])
            if source is None:
                continue
            flags = re.NOFLAG
            for argument in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
                for name in ast.walk(argument):
                    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "re":
                        flag = getattr(re, name.attr)
                        flags |= flag if isinstance(flag, re.RegexFlag) else re.NOFLAG
            yield Found(
                f"{path.parts[-2]}/{path.name}:{node.lineno}", re.compile(source, flags), _uses(tree, node, named)
            )


def _names(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """What is assigned to a name, and the name."""
    for node in ast.walk(tree):
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if isinstance(target, ast.Name) and node.value is not None:
            yield node.value, target.id


def _uses(tree: ast.Module, made: ast.Call, named: dict[ast.expr, str]) -> frozenset[str]:
    assert isinstance(made.func, ast.Attribute)
    if made.func.attr != "compile":
        return frozenset({made.func.attr})
    found = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == named.get(made)
    }
    return frozenset(found & USES) or USES


def _text(node: ast.expr) -> str | bytes | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "word" for part in node.values)
    if isinstance(node, ast.BinOp):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else left + right
    return "word" if isinstance(node, ast.Call) else None


UNITS = (
    *"\t \n'\"[](){}\\0a9.-_=:,;#/$@<>|+*&x",
    "\r\n", "''", "'\"", "\\'", "\\\"", "a ", " a", "a=", "a=1 ", "1,", "1:", "1 ", ".1", "a.", "a/", "a-", "[a]", "- ",
    "a:\n",    " \n", "\t\n", "\n#",
    "${", "$(a)", "x=y\n", "vm.", "--", "-X", "kB", "0x", "é", "\u2028", "\ufeff",
)  # fmt: skip


def literals(pattern: re.Pattern[Any]) -> list[str]:
    """Texts that lead into a pattern: a name, and what it spells, up to where it repeats something."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    words = re.findall(r"[A-Za-z_=.:/-]{2,}", re.sub(r"\\[a-zA-Z]|\(\?P<\w+>|\(\?[a-zA-Z:!=<]+", " ", source))
    return list(dict.fromkeys(["", "a", *words[:6]]))


def hostile(lead: str, unit: str, size: int) -> Iterator[str]:
    """A lead and a repeated unit, of about ``size`` characters, that ends well, badly, or begins again and again."""
    body = unit * (size // len(unit))
    yield lead + body
    yield lead + body + "\x01"
    if lead:
        again = lead + unit
        yield again * (size // len(again)) + "\x01"
