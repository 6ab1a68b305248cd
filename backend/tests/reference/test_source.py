"""What a name may hold where a finding is made: the reference lists no sentence of another branch."""

from __future__ import annotations

import ast
import re
import textwrap
from types import ModuleType

import pytest

from tools.reference import pages
from tools.reference.source import STAND_INS, Source


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


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("s = f'{format_bytes(a)} of {b:,} pages'\nok(s)", "SIZE of NUMBER pages"),
        ("c = page_label(a)\ns = f'{c} pages'\nok(s)", "PAGE_SIZE pages"),
        ("s = f'{counted_pages(a, b)} are missing'\nok(s)", "NUMBER pages of PAGE_SIZE are missing"),
        ("s = f'{a.setting} = {words_of(a)}'\nok(s)", "SETTING = …"),
    ],
)
def test_what_is_put_in_is_named_by_its_kind(body: str, said: str) -> None:
    assert texts(body) == [said]


def test_each_word_that_stands_for_something_has_an_example_beneath() -> None:
    for part in (pages.findings_page() + pages.rules_page()).split("\n## ")[1:]:
        said, _, examples = part.partition("For example: ")
        answers = "".join(line for line in said.splitlines() if line.startswith("|"))
        for word, example in STAND_INS.items():
            assert (f"{word} {example}" in examples) == bool(re.search(rf"(?<![-\w]){word}\b", answers)), part
