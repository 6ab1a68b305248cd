"""Command lines as containers hold them: programs, options, and shell scripts that start a server."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
#: Wrappers that start the program that follows them.
_WRAPPERS = frozenset(
    {"exec", "tini", "dumb-init", "gosu", "su-exec", "setpriv", "numactl", "env", "nice", "docker-entrypoint.sh", "--"}
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
#: A script longer than this is a program of its own, not a command line.
_SCRIPT_MAX = 20_000
#: A value longer than this is none that a server takes; references to long variables multiply.
_EXPANDED_MAX = 4_096
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


def words_of(words: Sequence[str]) -> tuple[str, ...]:
    """The words that are run: those inside ``sh -c "..."`` too, without the shell around them."""
    return _words_of(tuple(words))


@lru_cache(maxsize=4096)
def _words_of(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        return ()
    if base_name(words[0]) in _SHELLS:
        script = next((words[i + 1] for i, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c", word)), None)
        if script is not None:
            return _script_words(script)
    return words


def _script_words(script: str) -> tuple[str, ...]:
    """The words of a shell script, its operators dropped; nothing is expanded."""
    try:
        lexer = shlex.shlex(script[:_SCRIPT_MAX], posix=True, punctuation_chars=";&|\n")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        return tuple(word for word in lexer if word.strip(";&|\n"))
    except ValueError:
        return tuple(script.split())


def base_name(path: str) -> str:
    """``postgres`` of ``/usr/lib/postgresql/16/bin/postgres``."""
    return PurePosixPath(path).name


def programs(words: Sequence[str]) -> Iterator[str]:
    """Base names of the words that may be programs: the first, and whatever follows a wrapper or an assignment."""
    expecting = True
    for word in words_of(words):
        name = base_name(word)
        if expecting and _ASSIGNMENT.match(word):
            continue
        if expecting or name in _WRAPPERS:
            yield name
        expecting = name in _WRAPPERS or (expecting and word.startswith("-"))


def long_options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """``--name=value``, ``--name value`` and ``--name``: name without dashes, value or None."""
    found = words_of(words)
    for index, word in enumerate(found):
        if not word.startswith("--") or word == "--":
            continue
        name, separator, value = word[2:].partition("=")
        if separator:
            yield name, value
        elif index + 1 < len(found) and not found[index + 1].startswith("-"):
            yield name, found[index + 1]
        else:
            yield name, None


def expand(text: str, environment: Mapping[str, str | None]) -> str | None:
    """``$(NAME)`` as the kubelet expands it; None when a variable's value is not in the input, or it is too long."""
    found, length, end = [], 0, 0
    for match in _REFERENCE.finditer(text):
        # The kubelet leaves what is not defined as it is.
        value = environment.get(match[1], match[0])
        length += match.start() - end + len(value or "")
        if value is None or length > _EXPANDED_MAX:
            return None
        found += [text[end : match.start()], value]
        end = match.end()
    return "".join((*found, text[end:]))
