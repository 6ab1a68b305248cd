"""YAML or JSON text as plain values, with the line of every field.

Scalars of a YAML file are typed by their text, with one exception: below keys whose values belong to an engine
(``settings``, ``version``) the text is kept, so that ``version: 8.10`` and ``huge_pages: on`` arrive as written.
Anchors and aliases are refused: a scenario has no use for them and they can blow a small file up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from hugeplan.documents.yaml_nodes import PlainLoader, YamlBoundsError, compose_all
from hugeplan.scenario_file.errors import FieldProblem, ScenarioFileError

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 20

FieldPath = tuple[str | int, ...]
_VERBATIM_KEYS = frozenset({"version"})
_VERBATIM_PARENTS = frozenset({"settings"})
_YAML_12_BOOLEANS = frozenset({"true", "false"})


def field_name(path: FieldPath) -> str:
    """``('databases', 0, 'settings', 'x')`` -> ``databases[0].settings.x``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def parse_text(text: str, path: str) -> tuple[Any, Mapping[FieldPath, int]]:
    """The value of ``text`` and the line (from 1) of every field in it; ScenarioFileError when it cannot be read."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _broken(path, f"{len(text)} characters", f"at most {MAX_BYTES} bytes", None)
    node = _compose(text, path)
    if node is None:
        raise _broken(path, "an empty file", "a mapping with the keys node, databases, ...", 1)
    reader = _Reader(path)
    return reader.value(node, ()), reader.lines


def _compose(text: str, path: str) -> yaml.Node | None:
    if text.lstrip().startswith("{"):
        try:
            json.loads(text, parse_int=str)  # what its numbers are is for the reader
        except json.JSONDecodeError as error:
            raise _broken(path, f"column {error.colno}", f"valid JSON ({error.msg})", error.lineno) from error
        except RecursionError as error:
            raise _broken(path, "deep nesting", f"at most {MAX_DEPTH} levels", None) from error
        text = text.replace("\t", " ")  # legal between JSON tokens, not in YAML
    try:
        documents = compose_all(text, with_aliases=False)
        if len(documents) > 1:
            raise _broken(path, f"{len(documents)} documents", "one document", documents[1].start_mark.line + 1)
        return documents[0] if documents else None
    except YamlBoundsError as error:
        mark = error.problem_mark
        raise _broken(path, "the text", str(error.problem).removeprefix("expected "), mark.line + 1) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise _broken(path, error.problem or "text", "valid YAML", line) from error
    except yaml.YAMLError as error:
        raise _broken(path, str(error).splitlines()[0], "valid YAML", None) from error
    except RecursionError as error:
        raise _broken(path, "deep nesting", f"at most {MAX_DEPTH} levels", None) from error


def _broken(path: str, value: str, expected: str, line: int | None) -> ScenarioFileError:
    return ScenarioFileError(path, (FieldProblem("", value, expected, line),))


class _Reader:
    """Walks the node tree once, collecting values and lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[FieldPath, int] = {}
        self._constructor = PlainLoader("")

    def value(self, node: yaml.Node, at: FieldPath) -> Any:
        """The plain value of a node."""
        line = node.start_mark.line + 1
        self.lines.setdefault(at, line)
        if len(at) > MAX_DEPTH:
            raise self._problem(at, "deep nesting", f"at most {MAX_DEPTH} levels", line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*at, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, at, line)

    def _mapping(self, node: yaml.MappingNode, at: FieldPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._problem(at, "a key that is not text", "plain keys", line)
            key = str(key_node.value)
            if key in result:
                raise self._problem((*at, key), "given twice", "each key once", line)
            self.lines[(*at, key)] = line
            result[key] = self.value(value_node, (*at, key))
        return result

    def _scalar(self, node: yaml.Node, at: FieldPath, line: int) -> Any:
        last = at[-1] if at else None
        engine_text = last in _VERBATIM_KEYS or (len(at) > 1 and at[-2] in _VERBATIM_PARENTS)
        is_null = node.tag == "tag:yaml.org,2002:null"
        if engine_text and not is_null:
            return str(node.value)
        if node.tag == "tag:yaml.org,2002:timestamp":
            return str(node.value)
        if node.tag == "tag:yaml.org,2002:bool" and node.value.lower() not in _YAML_12_BOOLEANS:
            return str(node.value)  # yes, no, on, off are words here, as in YAML 1.2
        try:
            return self._constructor.construct_object(node)
        except yaml.YAMLError as error:
            raise self._problem(at, str(node.value), "a plain value", line) from error

    def _problem(self, at: FieldPath, value: str, expected: str, line: int) -> ScenarioFileError:
        return ScenarioFileError(self.path, (FieldProblem(field_name(at), value, expected, line),))
