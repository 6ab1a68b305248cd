"""Configuration files in YAML's block style, without a library: maps, lists and plain or quoted words.

Anchors, tags, block texts and nested flow collections are not read: their value is None, which means unknown.
JSON is a subset of YAML and is read whole.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_LINES = 20_000
MAX_DEPTH = 16
"""A report with parts in parts to more than twice this is refused as a whole."""
MAX_PATH_CHARACTERS = 256
KEY = re.compile(
    r"""(?P<key>"[^"]*"\s*|'[^']*'\s*|[^\s#"'\[\]{},&*!|>%@`-][^#:]*|-[^\s:][^:]*):(?:\s+(?P<rest>\S.*)?)?$"""
)
"""The key with the blanks behind it: blanks that two parts of a pattern might take are read again for each of them."""


@dataclass
class _Line:
    indent: int
    text: str


def parse(text: str) -> Any:
    """The document as dictionaries, lists and strings; None for a value that is not understood."""
    stripped = text.lstrip()
    if stripped.startswith(("{", "[")):
        try:
            return _as_text(json.loads(stripped))
        except (ValueError, RecursionError):
            return None
    lines = []
    for raw in islice(io.StringIO(text), MAX_LINES):
        body = _without_comment(raw.rstrip("\n"))
        if body.strip() in ("", "---", "...") or body.startswith("%"):
            continue
        lines.append(_Line(len(body) - len(body.lstrip(" ")), body.strip()))
    value, _ = _block(lines, 0, lines[0].indent if lines else 0, 0)
    return value


def leaves(text: str) -> dict[str, str]:
    """The document's words by dotted path; lists, and paths of more than MAX_PATH_CHARACTERS, are left out."""
    found: dict[str, str] = {}
    waiting = [("", parse(text))]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, str):
            found[path] = part
        elif isinstance(part, dict):
            # A long name above many short ones would be written out for each of them.
            waiting.extend(
                (f"{path}.{name}" if path else name, value)
                for name, value in reversed(part.items())
                if len(path) + len(name) < MAX_PATH_CHARACTERS
            )
    return found


def _as_text(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {str(name): _as_text(part, depth + 1) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_text(part, depth + 1) for part in value]
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _without_comment(line: str) -> str:
    quote = ""
    for position, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and (position == 0 or line[position - 1] in " :-[{,"):
            quote = character
        elif character == "#" and (position == 0 or line[position - 1] in " \t"):
            return line[:position].rstrip()
    return line.rstrip()


def _block(lines: list[_Line], start: int, indent: int, depth: int) -> tuple[Any, int]:
    """The map or list that begins at ``start``, and the line after it."""
    if start >= len(lines) or depth > MAX_DEPTH:
        return None, len(lines)
    if lines[start].text == "-" or lines[start].text.startswith("- "):
        return _list(lines, start, indent, depth)
    return _map(lines, start, indent, depth)


def _map(lines: list[_Line], start: int, indent: int, depth: int) -> tuple[Any, int]:
    found: dict[str, Any] = {}
    at = start
    while at < len(lines) and lines[at].indent == indent:
        match = KEY.match(lines[at].text)
        if match is None:
            return (found or None), _skip(lines, at, indent)
        name, rest = _word(match["key"].rstrip()), match["rest"]
        at += 1
        if rest:
            found[name] = _scalar(rest)
            at = _skip_deeper(lines, at, indent)
        elif at < len(lines) and (
            lines[at].indent > indent or (lines[at].indent == indent and lines[at].text.startswith("-"))
        ):
            found[name], at = _block(lines, at, lines[at].indent, depth + 1)
        else:
            found[name] = None
    return found, at


def _list(lines: list[_Line], start: int, indent: int, depth: int) -> tuple[Any, int]:
    found: list[Any] = []
    at = start
    while at < len(lines) and lines[at].indent == indent and lines[at].text.startswith("-"):
        text = lines[at].text[1:]
        rest = text.strip()
        if not rest:
            at += 1
            if at < len(lines) and lines[at].indent > indent:
                value, at = _block(lines, at, lines[at].indent, depth + 1)
                found.append(value)
            else:
                found.append(None)
        elif KEY.match(rest) and not rest.startswith(("{", "[")):
            # "- name: value": a map that begins on the line of the hyphen.
            inner = indent + 1 + len(text) - len(text.lstrip(" "))
            lines[at] = _Line(inner, rest)
            value, at = _map(lines, at, inner, depth + 1)
            found.append(value)
        else:
            found.append(_scalar(rest))
            at = _skip_deeper(lines, at + 1, indent)
    return found, at


def _skip_deeper(lines: list[_Line], at: int, indent: int) -> int:
    while at < len(lines) and lines[at].indent > indent:
        at += 1
    return at


def _skip(lines: list[_Line], at: int, indent: int) -> int:
    while at < len(lines) and lines[at].indent >= indent:
        at += 1
    return at


def _scalar(text: str) -> Any:
    text = text.strip()
    if text in ("null", "~"):
        return None
    if text[:1] in "{[":
        return _flow(text)
    if text[:1] in "&*!|>%@`":
        return None
    return _word(text)


def _flow(text: str) -> Any:
    """A flow collection of plain words, one level deep: ``{memory: 1Gi}``, ``[pods, kube-reserved]``."""
    inner = text[1:-1].strip()
    if text[-1:] not in "]}" or any(character in inner for character in "[]{}"):
        return None
    parts = [part.strip() for part in inner.split(",") if part.strip()]
    if text[0] == "[":
        return [_word(part) for part in parts]
    found = {}
    for part in parts:
        name, colon, value = part.partition(":")
        if not colon:
            return None
        found[_word(name.strip())] = _word(value.strip())
    return found


def _word(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
