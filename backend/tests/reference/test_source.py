"""What a name may hold where a finding is made: the reference lists no sentence of another branch."""

from __future__ import annotations

import ast
import textwrap
from types import ModuleType

import pytest

from tools.reference.source import Source


def texts(body: str) -> list[str]:
    """The wordings of the last call's argument in a function with this body."""
    module = ModuleType("made")
    source = Source.__new__(Source)
    source.module = module
    source.tree = ast.parse("def check(a, b):\n" + textwrap.indent(body, "    "))
    source.functions = {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}
    call, function = list(source.calls())[-1]
    return source.texts(call.args[0], function)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x = 'one'\nx = 'two'\nsay(x)", ["two"]),
        ("if a:\n    x = 'one'\n    say(x)\nelse:\n    x = 'two'\n    say(x)", ["two"]),
        ("x = 'one'\nif a:\n    x = 'two'\nsay(x)", ["one", "two"]),
        ("if a:\n    x = 'one'\nelse:\n    x = 'two'\nsay(x)", ["one", "two"]),
        ("x = 'one'\nif a:\n    x, y = 'two', 3\n    if b:\n        say(x)", ["two"]),
        ("for x in a:\n    x = 'one'\n    say(x)", ["one"]),
    ],
)
def test_a_name_holds_what_was_given_to_it_on_the_way(body: str, said: list[str]) -> None:
    assert sorted(texts(body)) == sorted(said)
