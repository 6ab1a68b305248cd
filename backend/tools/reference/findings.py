"""Every finding and every rule of the linter, read from the source of the checks: there is no second text to keep."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final

from hugeplan.lint.model import Rule
from hugeplan.planner.findings import RULES
from hugeplan.planner.model import State
from tools.reference.source import ANYTHING, Function, Source, add, first_paragraph, modules_below

PLACES: Final = {
    "hugeplan.planner.findings": "plans",
    "hugeplan.proof.checks": "verify",
    "hugeplan.fleet.findings": "nodes that report",
    "hugeplan.fleet.watch": "nodes that report",
    "hugeplan.fleet.ingest.in_force": "nodes that report",
    "hugeplan.inventory.findings": "imports",
}
"""Modules whose checks find, and where what they find is shown."""
_ALSO: Final = {"sample": ["nodes that report"], "claims": ["imports", "verify", "lint"]}
"""Where else a rule of the planner runs, by a fact that it needs and a plan is not needed for."""
_STATES: Final = {state.value: state for state in State}
_TERMS: Final = frozenset({"given", "measured", "computed"})
_OR: Final = " Or: "
"""Between fixes of one answer: which of them is meant depends on what was found."""
_ORDER: Final = ("wrong", "attention", "unknown", "ok")


@dataclass(slots=True)
class Explanation:
    """What is known of a finding or a rule by its name. ``says``: state, titles and fixes, the worst first."""

    name: str
    asks: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    says: list[tuple[str, str, str]] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    source: str = ""


@cache
def findings() -> list[Explanation]:
    """All findings, by code."""
    found: dict[str, Explanation] = {}
    for package, place in PLACES.items():
        for module in modules_below(package):
            _read(_Checks(module), place, found)
    for rule in RULES:
        code = getattr(import_module(rule.check.__module__), "CODE", "")
        for place in (place for need in rule.needs for place in _ALSO.get(need, ())):
            add(found[code].places, place)
    return _sorted(found)


@cache
def rules() -> list[Explanation]:
    """All rules of the linter, by id."""
    found: dict[str, Explanation] = {}
    for module in modules_below("hugeplan.lint"):
        for value in vars(module).values():
            if isinstance(value, Rule):
                one = found.setdefault(value.id, Explanation(value.id, places=["lint"], source=value.source))
                add(one.asks, value.sentence)
                if not one.says:
                    one.says.append((value.severity.value, "", re.sub(r"\{\w+\}", ANYTHING, value.fix)))
    for module in modules_below("hugeplan.lint"):
        source = Source(module)
        for call, function in source.calls():
            for rule in _rules_of(call, function, source):
                fixes = [text for fix in _fixes(call) for text in source.texts(fix, function)]
                severity, _, before = found[rule.id].says[0]
                each = before.split(_OR) if before else []
                for fix in fixes:
                    add(each, fix if fix.strip(ANYTHING + ".") else "")
                found[rule.id].says[0] = (severity, "", _OR.join(each[:4]))
    return _sorted(found)


def _sorted(found: dict[str, Explanation]) -> list[Explanation]:
    for one in found.values():
        one.says.sort(key=lambda row: _ORDER.index(row[0]))
    return [found[name] for name in sorted(found)]


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return call.args[position] if len(call.args) > position else given


def _fixes(call: ast.Call) -> list[ast.expr | None]:
    """The words of a fix; ``notes.rewrite`` says ``Write`` and the text where it is given no others."""
    text, said = _argument(call, 4, "text"), [_argument(call, 5, name) for name in ("fix", "otherwise")]
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "rewrite"):
        return [_argument(call, 4, "fix")]
    if said[0] is not None or text is None:
        return said[:1]
    inner = {ast.Constant: [text], ast.JoinedStr: getattr(text, "values", [])}.get(
        type(text), [ast.FormattedValue(text, -1)]
    )
    whole = ast.copy_location(ast.JoinedStr([ast.Constant("Write "), *inner, ast.Constant(".")]), text)
    return [whole, *(words for words in said[1:] if words is not None)]


def _rules_of(call: ast.Call, function: Function, source: Source) -> list[Rule]:
    """The rules that a call of ``notes.problem``, ``notes.rewrite`` or ``Problem`` may name."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in {"problem", "rewrite"}) and not (
        isinstance(call.func, ast.Name) and call.func.id == "Problem"
    ):
        return []
    named = _argument(call, 0, "rule")
    values = [] if named is None else [value for value, _ in source.values(named, function)]
    found = [eval(ast.unparse(value), vars(source.module)) for value in values if _is_global(value, source)]  # noqa: S307
    return [rule for rule in found if isinstance(rule, Rule)]


def _is_global(value: ast.expr, source: Source) -> bool:
    return isinstance(value, ast.Name | ast.Attribute) and all(
        hasattr(source.module, part.id) for part in ast.walk(value) if isinstance(part, ast.Name)
    )


class _Checks(Source):
    """The checks of one module."""

    def said(self, call: ast.Call, function: Function) -> tuple[str, State, list[str], list[str], list[str]] | None:
        """Code, state, titles, fixes and names of the evidence of a call that makes a finding; None: it makes none."""
        name = call.func.id if isinstance(call.func, ast.Name) else None
        given = {keyword.arg or "": keyword.value for keyword in call.keywords}
        if name in _STATES and len(call.args) >= 4:
            state, code, title, fix = _STATES[name], call.args[0], call.args[2], _argument(call, 4, "fix")
        elif name == "finding" and len(call.args) >= 4:
            state, code, title, fix = _state(call.args[1]), call.args[0], call.args[3], given.get("fix")
        elif name == "Finding" and isinstance(given.get("state"), ast.Attribute):
            state, code, title, fix = _state(given["state"]), given["code"], given["title"], given.get("fix")
        else:
            return None
        codes = self.texts(code, function)
        if codes == [ANYTHING]:
            return None
        terms = [word.replace("_", " ") for word in given if word not in {"fix", "evidence", ""}]
        evidence = self._terms(given.get("evidence"), function)
        titles, fixes = self.texts(title, function), self.texts(fix, function)
        return codes[0], state, titles, fixes, [*(terms if name == "finding" else ()), *evidence]

    def asks(self, code: str, function: Function, is_one: bool) -> str:
        """What a finding asks: the text below its code, else that of the module where it is the only one, else of the
        check."""
        text = self.constant_doc(code) or ast.get_docstring(self.tree if is_one else self._check_of(function))
        return first_paragraph(text)

    def _check_of(self, function: Function) -> Function:
        """The public function that uses a private one."""
        users = (other for name, other in self.functions.items() if not name.startswith("_"))
        names = ((other, {node.id for node in ast.walk(other) if isinstance(node, ast.Name)}) for other in users)
        is_private = function.name.startswith("_")
        return next((other for other, used in names if is_private and function.name in used), function)

    def _terms(self, node: ast.expr | None, function: Function) -> list[str]:
        found: list[str] = []
        for value, within in [] if node is None else self.values(node, function):
            for part in ast.walk(value):
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _TERMS:
                    found += [text for text in self.texts(part.args[0], within) if text != ANYTHING]
                elif (
                    isinstance(part, ast.Name | ast.Call)
                    and part is not value
                    and self.values(part, within) != [(part, within)]
                ):
                    found += self._terms(part, within)
        return list(dict.fromkeys(found))


def _state(node: ast.expr) -> State:
    return State[next(part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute))]


def _read(source: _Checks, place: str, found: dict[str, Explanation]) -> None:
    """Add what each check of a module says."""
    said = [(function, what) for call, function in source.calls() if (what := source.said(call, function)) is not None]
    is_one = len({what[0] for _, what in said}) == 1
    for function, (code, state, titles, fixes, terms) in said:
        one = found.setdefault(code, Explanation(code))
        add(one.asks, source.asks(code, function, is_one))
        add(one.places, place)
        add(one.says, (state.value, " / ".join(titles), _OR.join(filter(None, fixes))))
        for term in terms:
            add(one.evidence, term)
