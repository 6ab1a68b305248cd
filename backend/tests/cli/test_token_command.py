"""``hugeplan token`` where its user has no name, as in the server's image: deploy/Dockerfile runs it as 10001."""

from __future__ import annotations

import os
import pwd

import pytest

from hugeplan.cli import token


def test_a_user_without_a_name_is_noted_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = 2**31 - 7
    with pytest.raises(KeyError):
        pwd.getpwuid(nameless)
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: nameless)
    assert token.user_name() == f"uid {nameless}"


def test_a_user_with_a_name_is_noted_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "operator")
    assert token.user_name() == "operator"
