"""What the planner remembers of work done before: the one place, bounded, and emptied whole by :func:`forget`.

Every function here is pure and every key is all that it depends on, so an answer never depends on what was remembered
(``tests/planner/test_plan_is_pure.py``). Remembering alone makes a plan cheap whose neighbours were planned before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_FORGET: Final[list[Callable[[], object]]] = []


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A pure function whose latest ``most`` answers are kept."""
    return partial(_keep, most)


def _keep(most: int, function: Callable[P, T]) -> Callable[P, T]:
    kept: Any = lru_cache(maxsize=most)(function)
    _FORGET.append(kept.cache_clear)
    return cast(Callable[P, T], kept)


class Key:
    """What an answer depends on, as a key: its hash is made once, however often it is looked up."""

    __slots__ = ("_hash", "content")

    def __init__(self, content: Hashable) -> None:
        self.content = content
        self._hash = hash(content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.content == other.content


class Answers(dict[K, T]):
    """Answers of work that is done for many keys at once; all are dropped before there are more than ``most``."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        _FORGET.append(self.clear)

    def keep(self, answers: dict[K, T]) -> None:
        """Add answers."""
        if len(self) + len(answers) > self._most:
            self.clear()
        self.update(answers)


class Latest(Generic[K, T]):
    """What was kept or asked for last, within so many bytes, by the size that is given with each. A larger one is not
    kept. For what follows from what others send: as many as a number allows may be as large as they like.
    """

    def __init__(self, most_bytes: int) -> None:
        self._kept: OrderedDict[K, tuple[T, int]] = OrderedDict()
        self._most_bytes = self._left_bytes = most_bytes

    def get(self, key: K) -> T | None:
        """What is kept; None: nothing."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def drop(self, key: K) -> None:
        """Keep it no longer."""
        self._left_bytes += self._kept.pop(key, (None, 0))[1]

    def keep(self, key: K, value: T, size_bytes: int) -> None:
        """Keep it in place of what there was, and drop what was not asked for the longest until there is room."""
        self.drop(key)
        if size_bytes <= self._most_bytes:
            self._kept[key] = value, size_bytes
            self._left_bytes -= size_bytes
        while self._left_bytes < 0:
            self._left_bytes += self._kept.popitem(last=False)[1][1]


def forget() -> None:
    """Drop everything, as in a process that has planned nothing."""
    for each in _FORGET:
        each()
