"""What a module's source may say: the wordings of an expression, with ``…`` for what only a run knows."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice, product
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Final

MOST: Final = 4
"""Wordings of one sentence that are listed; further ones differ in a word or two."""
ANYTHING: Final = "…"
STAND_INS: Final = {
    "NUMBER": "1,024", "SIZE": "4 GiB", "PAGE_SIZE": "2M", "NAME": "orders", "SETTING": "huge_pages", "VALUE": "on",
}  # fmt: skip
"""Words for what is put in, with an example of each."""
_KINDS: Final = (
    (re.compile(r"\bcounted_pages\("), "NUMBER pages of PAGE_SIZE"),
    (re.compile(r"\bformat_(kubernetes_|mysql_)?bytes\("), "SIZE"),
    (re.compile(r"\bpage_label\("), "PAGE_SIZE"),
    (re.compile(r":(,|\.0f)$|^len\(|\bpages$"), "NUMBER"),
    (re.compile(r"\b(instance|planned|d|tenant|facts|database|now|one)\.name:?$"), "NAME"),
    (re.compile(r"\b(setting|setting\.name|item\.name|limit\.name)$"), "SETTING"),
    (re.compile(r"\b(item|setting)\.value$"), "VALUE"),
)
"""The kind of an expression, by how it is written: its source with ``:`` and its format."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules_below(name: str) -> Iterator[ModuleType]:
    """A module and, where it is a package, all below it."""
    module = import_module(name)
    yield module
    for below in walk_packages(getattr(module, "__path__", ()), f"{name}."):
        yield import_module(below.name)


class Source:
    """One module, read as text and as it runs."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.tree = ast.parse(inspect.getsource(module))
        self.functions = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    def calls(self) -> Iterator[tuple[ast.Call, Function]]:
        """Every call with the function that it stands in, in the order of the text."""
        for function in ast.walk(self.tree):
            if isinstance(function, Function):
                found = (node for node in ast.walk(function) if isinstance(node, ast.Call))
                yield from ((call, function) for call in sorted(found, key=lambda call: call.lineno))

    def texts(self, node: ast.expr | None, within: Function, depth: int = 0) -> list[str]:
        """The wordings that an expression may have, at most a few; none: an empty one."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return [""]
        values = [] if depth > 2 else self.values(node, within)
        found = self._wordings(node, within, depth)
        if values != [(node, within)]:
            found = (text for value, inside in values for text in self.texts(value, inside, depth + 1))
        return list(dict.fromkeys(islice(found, MOST))) or [ANYTHING]

    def _wordings(self, node: ast.expr, within: Function, depth: int) -> Iterable[str]:
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return map("".join, product(*(self.texts(part, within, depth) for part in parts)))
            case ast.FormattedValue(value=ast.IfExp() as value):
                return self.texts(value, within, depth)
            case ast.FormattedValue(value=value, format_spec=form):
                return [_kind([one for one, _ in self.values(value, within)], form)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return map("".join, product(self.texts(left, within, depth), self.texts(right, within, depth)))
        constant = getattr(self.module, node.id, None) if isinstance(node, ast.Name) else None
        return [constant] if isinstance(constant, str) else []

    def values(self, node: ast.expr, within: Function) -> list[tuple[ast.expr, Function]]:
        """What an expression stands for: both sides of a choice, what a name was given, what a helper returns."""
        match node:
            case ast.IfExp(body=body, orelse=other):
                return [*self.values(body, within), *self.values(other, within)]
            case ast.Name(id=name) if given := _assigned(within, name, node.lineno):
                return [pair for value in given for pair in self.values(value, within)]
            case ast.Call(func=ast.Name(id=name)) if name in self.functions and self.functions[name] is not within:
                inner = self.functions[name]
                returns = [part.value for part in ast.walk(inner) if isinstance(part, ast.Return) and part.value]
                return [pair for value in returns for pair in self.values(value, inner)]
        return [(node, within)]

    def constant_doc(self, value: str) -> str | None:
        """The text below the constant that has this value."""
        for node, after in zip(self.tree.body, self.tree.body[1:], strict=False):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name) and getattr(self.module, target.id, None) == value:
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        return text
        return None


def _kind(values: list[ast.expr], form: ast.expr | None) -> str:
    """What stands for one of these with its format in a wording."""
    formats = [part.value for part in ast.walk(form) if isinstance(part, ast.Constant)] if form else []
    written = [ast.unparse(value) + "".join([":" * bool(formats), *map(str, formats)]) for value in values]
    return next((kind for text in written for pattern, kind in _KINDS if pattern.search(text)), ANYTHING)


def _assigned(function: Function, name: str, before_line: int) -> list[ast.expr]:
    """What a name may hold at a line: what was given to it since the last statement that leaves the function."""
    found: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.lineno < before_line:
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    found.append(node.value)
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                    found += [value for each, value in pairs if isinstance(each, ast.Name) and each.id == name]
    left = [node.lineno for node in ast.walk(function) if isinstance(node, ast.Return) and node.lineno < before_line]
    # Of the blocks around the line, an assignment that stands in one itself is always made: earlier ones do not count.
    sure = [value.lineno for value in found if any(_gives(one, value, before_line) for one in _blocks(function))]
    since = [value for value in found if value.lineno > max(left, default=0)] or found
    return [value for value in since if value.lineno >= max(sure, default=0)]


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    """Every list of statements of a function."""
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _gives(block: list[ast.stmt], value: ast.expr, line: int) -> bool:
    """Whether a block assigns the value itself, in a statement before the one that the line is in."""
    around = any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in block)
    return around and any(isinstance(one, ast.Assign) and value in {one.value, *_parts(one.value)} for one in block)


def _parts(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else []


def first_paragraph(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split()).replace("``", "`")


def add(items: list[Any], item: Any) -> None:
    """Append what is not there yet."""
    if item and item not in items:
        items.append(item)
