"""The agent, which needs nothing but the standard library, reads option files as the service's formats do."""

from __future__ import annotations

import re

from hugeplan_agent.collectors.engines import mysql, postgresql
from hugeplan_agent.collectors.engines.base import Settings
from hypothesis import example, given
from hypothesis import strategies as st

from hugeplan.formats import option_files, postgresql_conf
from hugeplan.recognition.config_files import my_cnf

_VALUES = st.one_of(
    st.from_regex(r"[0-9]{1,4}[kMG]?B?", fullmatch=True),
    st.from_regex(r"'[a-z0-9 #=]{0,8}'", fullmatch=True),
    st.sampled_from(["'it''s'", "on", "try", "'8GB' # half", "8GB#half", "8GB # it's half", '"8G"', "'a # b'"]),
)
_LINES = st.one_of(
    st.builds(
        lambda name, between, value: f"{name}{between}{value}",
        st.sampled_from(["shared_buffers", "huge_pages", "loose-large-pages", "innodb-buffer-pool-size", "a.b"]),
        st.sampled_from(["=", " = ", " "]),
        _VALUES,
    ),
    st.sampled_from(["# a comment", "", "[mysqld]", "[mysqldump]", "[client]", "[server]", "  ; x", "large-pages"]),
)


@given(st.lists(_LINES, max_size=8))
@example(["shared_buffers = 8GB#half"])
def test_postgresql_conf(lines: list[str]) -> None:
    text = "\n".join(line for line in lines if "-" not in line and not line.startswith("large"))
    own = {setting.name.lower(): setting.value for setting in postgresql_conf.settings_of(text)}
    assert dict(postgresql.parse_lines(text, Settings(frozenset()))) == own


@given(st.lists(_LINES, max_size=8))
@example(["[mysqld]", "innodb-buffer-pool-size=8G#half"])
@example(["[mysqld]", "innodb-buffer-pool-size='a # b'"])
def test_my_cnf(lines: list[str]) -> None:
    lines = [line for line in lines if re.match(r"\[|#|\s*;|large-pages$|$", line) or "=" in line]
    text = "\n".join(["[mysqld]", *lines])
    settings, _ = my_cnf(text)
    read = {}
    applies = False
    for line in text.splitlines():
        if line.startswith("["):
            applies = option_files.is_server_section(line[1:-1])
            assert applies == (mysql.sections_of("mysql", None, "").fullmatch(line[1:-1]) is not None)
        elif applies and (option := mysql.option_of(line)):
            read[option[0]] = option[1]
    switches = {"large_pages"}
    assert {name: value for name, value in read.items() if name not in switches} == {
        name: value for name, value in settings.items() if name not in switches
    }
