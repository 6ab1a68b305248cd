"""What the guides print can be typed: whole commands without placeholders. `make test-install` types them."""

from __future__ import annotations

import re

import pytest

from printed import GUIDES, REPOSITORY, Block, commands, printed

WALKED = (
    "deploy/guides/tests/test_machines.py",
    "deploy/containers/compose_service.py",
    "deploy/kubernetes/tests/test_helm_release.py",
)
PLACEHOLDER = re.compile(r"(?<![\w-])(?:FILE|DIR|NAME|TOKEN|HOST|NAMESPACE)(?![\w=])|\.\.\.|<[a-z-]+>")


def test_every_guide_is_walked_by_a_test() -> None:
    pages = {f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("install-*.md")}
    assert pages | {"README.md", "docs/agent.md"} == set(GUIDES)
    texts = "".join((REPOSITORY / name).read_text() for name in WALKED)
    assert [page for page in GUIDES if f'"{page}"' not in texts] == []


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_prints_whole_commands_without_placeholders(page: str) -> None:
    found = [command for _, command in printed(page)]
    assert len(found) >= 7
    assert [command for command in found if PLACEHOLDER.search(command.partition("  #")[0])] == []


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_calls_python_by_a_name_that_debian_has(page: str) -> None:
    assert [command for _, command in printed(page) if re.match(r"(?:python|pip)\s", command)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a \\\n  b\nc\n", ["a \\\n  b", "c"]),
        ("(a;\n b)\n", ["(a;\n b)"]),
        ("cat <<'END'\nx\nEND\ny\n", ["cat <<'END'\nx\nEND", "y"]),
        ("# said\na  # why\n\n", ["a  # why"]),
    ],
)
def test_commands_are_split_where_a_shell_would_run_them(text: str, expected: list[str]) -> None:
    assert commands(Block("page", "section", "", 1, text)) == expected


def test_a_command_that_does_not_end_is_named() -> None:
    with pytest.raises(AssertionError, match="page:7: a command does not end"):
        commands(Block("page", "section", "", 7, "a \\\n"))
