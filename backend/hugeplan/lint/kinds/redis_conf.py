"""redis.conf: transparent huge pages under a server that forks to save."""

from __future__ import annotations

import re
from typing import Final

from hugeplan.formats.redis_conf import directives
from hugeplan.lint.model import Context, Notes, Reading, Source, attention, wrong

KIND: Final = "redis_conf"
THP: Final = attention(
    "redis-thp",
    "With THP a fork copies 2 MiB for each page written while a snapshot runs; disable-thp yes avoids it.",
    "redis.conf, disable-thp",
)
FOREIGN: Final = wrong(
    "redis-unknown-setting", "A directive that Redis does not have keeps it from starting.", "redis.conf"
)
VALUE: Final = wrong(
    "redis-thp-value", "disable-thp takes yes or no; another word keeps Redis from starting.", "redis.conf"
)
_WORDS: Final = re.compile(
    r"^[ \t]*+(maxmemory|appendonly|disable-thp|save|maxmemory-policy|tcp-backlog|appendfsync|dbfilename)\s", re.M
)


def detects(source: Source) -> bool:
    """Directives of Redis or Valkey."""
    return bool(_WORDS.search(source.text)) and "=" not in source.text.splitlines()[0]


def read(source: Source, _: Context) -> Reading:
    """Whether THP is kept away from the server."""
    notes = Notes()
    notes.effects.append("Redis uses no huge page pool")
    for found in directives(source.text):
        value = found.value.lower()
        if found.name in {"disable_thp", "disablethp", "thp-disable"} or (
            found.name == "disable-thp" and value not in {"yes", "no"}
        ):
            is_known = found.name == "disable-thp"
            lacks = f"does not know {value or 'an empty value'}" if is_known else f"has no directive {found.name}"
            said = f"Redis {lacks} and does not start."
            notes.rewrite(VALUE if is_known else FOREIGN, found, found.text, said, "disable-thp yes")
        elif found.name == "disable-thp" and value == "no":
            notes.rewrite(THP, found, found.text, "THP stays on for this server.", "disable-thp yes")
        elif re.fullmatch(r"(use-)?(huge|large)-?_?pages?(-enabled)?", found.name):
            said = f"Redis has no directive {found.name} and does not start."
            notes.rewrite(FOREIGN, found, found.name, said, f"# {found.text}", fix="Leave it out.")
    return notes.reading(KIND, "redis.conf")
