"""The examples of the documentation, planned as a user would: what each is there to show, and its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from hugeplan.cli import main

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
SHOWS = {
    "arm64-64k-pages": (0, "pages of 512M"),
    "bare-metal-postgresql": (0, "Reserve 33,894 pages of 2M"),
    "caches-without-a-pool": (0, "Reserve no huge pages"),
    "does-not-fit": (4, "Does not fit small-1"),
    "kubernetes-mysql-30-pods": (5, "its limit allows"),
    "kubernetes-postgresql-pod": (5, "its limit allows 512"),
    "mysql-1g-pages": (0, "pages of 1G"),
    "oracle-and-jvm": (0, "It buys the database search"),
    "power-db2": (0, "pages of 16M"),
    "two-engines-two-numa-nodes": (5, "on NUMA node 0"),
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(SHOWS)


@pytest.mark.parametrize("name", sorted(SHOWS))
def test_an_example_shows_what_it_is_there_for(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = SHOWS[name]
    found = main(["plan", str(EXAMPLES / f"{name}.yaml")])
    said = capsys.readouterr().out
    assert text in said
    assert found == status, said


@pytest.mark.parametrize("name", sorted(SHOWS))
def test_the_linter_finds_nothing_wrong_with_the_files_of_an_example(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", str(EXAMPLES / f"{name}.yaml"), "--artifacts", str(tmp_path), "--force"])
    capsys.readouterr()
    arch = {"arm64-64k-pages": ["--arch", "aarch64", "--base-page-size", "64K"], "power-db2": ["--arch", "ppc64le"]}
    assert main(["lint", str(tmp_path), *arch.get(name, [])]) in {0, 2}, capsys.readouterr().out
