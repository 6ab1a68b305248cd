"""Text, JSON and SARIF say the same, and the command's exit status is what its help promises."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest

from hugeplan.cli import main
from hugeplan.lint import Source, lint
from hugeplan.lint.detect import OBJECT_KINDS, TEXT_KINDS
from hugeplan.lint.output import as_sarif

WRONG = "quiet hugepages=8 hugepagesz=1G\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        status = main(["lint", *words])
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def wrong_file(tmp_path: Path) -> Path:
    path = tmp_path / "cmdline"
    path.write_text(WRONG)
    return path


def test_kinds_are_unique() -> None:
    names = [kind.name for kind in (*TEXT_KINDS, *OBJECT_KINDS)]
    assert len(set(names)) == len(names)


def test_text_says_effect_rule_source_and_fix(capsys: pytest.CaptureFixture[str], wrong_file: Path) -> None:
    status, out, _ = run(capsys, str(wrong_file))
    assert status == 1
    assert "reserves 8 pages of 2M (16 MiB)" in out
    assert ":1: wrong: hugepages=8 comes before hugepagesz=1G" in out
    assert "mm/hugetlb.c hugepages_setup()" in out
    assert "Write hugepagesz=1G hugepages=8." in out


def test_fix_writes_the_file(capsys: pytest.CaptureFixture[str], wrong_file: Path) -> None:
    wrong_file.chmod(0o640)
    assert run(capsys, "--fix", str(wrong_file))[0] == 1
    assert wrong_file.read_text() == "quiet hugepagesz=1G hugepages=8\n"
    assert wrong_file.stat().st_mode & 0o777 == 0o640
    assert run(capsys, str(wrong_file))[0] == 0


def test_fix_leaves_a_word_that_is_valid(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without a pool a server with huge_pages = on does not start, and one with try does."""
    path = tmp_path / "postgresql.conf"
    path.write_text("shared_buffers = 8GB\nhuge_pages = try\n")
    status, out, err = run(capsys, "--fix", "--diff", str(path))
    assert (status, err, path.read_text()) == (0, "", "shared_buffers = 8GB\nhuge_pages = try\n")
    assert "fix:  Write huge_pages = on in production.\n" in out


def test_fix_keeps_the_line_ends_of_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "postgresql.conf"
    path.write_bytes(b"shared_buffers = 8GB\r\nhuge_pages = on\r\nhuge_page_size = 2M\r\n")
    assert run(capsys, "--fix", str(path))[0] == 1
    assert path.read_bytes() == b"shared_buffers = 8GB\r\nhuge_pages = on\r\nhuge_page_size = 2MB\r\n"


def test_differences_of_a_long_file_take_no_longer_than_its_reading(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A pull request may bring it: every other line is mended."""
    path = tmp_path / "security" / "limits.d" / "90.conf"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"# user {number}\nuser{number} soft memlock 64MB\n" for number in range(4_000)))
    taken = []
    for options in ((), ("--diff",)):
        began = time.process_time()
        assert run(capsys, *options, str(path))[0] == 1
        taken.append(time.process_time() - began)
    assert taken[1] < 3 * taken[0]


def test_a_folder_is_the_files_in_it_that_the_linter_knows(
    capsys: pytest.CaptureFixture[str], wrong_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "postgresql.conf").write_text("shared_buffers = 8GB\nhuge_pages = on\n")
    (tmp_path / "README.md").write_text("# What these files are for\n\nRead them in order.\n")
    (tmp_path / "picture").write_bytes(b"\x89PNG\x00\xff")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "cmdline").write_text(WRONG)
    status, out, err = run(capsys, str(tmp_path))
    assert status == 1
    assert f"{wrong_file}:1: wrong: hugepages=8 comes before hugepagesz=1G" in out
    assert "postgresql.conf" in out
    assert ".git" not in out
    assert err == f"hugeplan lint: {tmp_path}: 2 of 4 files are of no kind that it knows\n"
    assert run(capsys, "--fix", str(tmp_path))[0] == 1
    assert wrong_file.read_text() == "quiet hugepagesz=1G hugepages=8\n"


def test_a_folder_without_such_a_file_is_wrong_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "poem").write_text("roses are red\n")
    status, out, err = run(capsys, str(tmp_path))
    assert (status, out) == (2, "")
    assert "none of the 1 files in this folder is of a kind that the linter knows" in err


def test_a_damaged_file_of_a_folder_is_not_passed_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nspec: [unclosed\n")
    status, out, _ = run(capsys, str(tmp_path))
    assert status == 2
    assert "pod.yaml" in out


def test_sarif_says_what_was_not_read() -> None:
    """A log without results must not pass for a clean file."""
    (run_,) = as_sarif(lint([Source("a poem", "roses are red\n"), Source("cmdline", "quiet root=/dev/sda1\n")]), "0")[
        "runs"
    ]
    (invocation,) = run_["invocations"]
    assert run_["results"] == []
    assert invocation["executionSuccessful"] is False
    (said,) = invocation["toolExecutionNotifications"]
    assert said["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20poem"
    assert "not recognised" in said["message"]["text"]


def test_json_has_lines_and_fixed_text(capsys: pytest.CaptureFixture[str], wrong_file: Path) -> None:
    status, out, _ = run(capsys, "--format", "json", str(wrong_file))
    document = json.loads(out)
    assert status == 1
    assert document["wrong"] == 1
    assert document["files"][0]["problems"][0]["line"] == 1
    assert document["files"][0]["fixed_text"] == "quiet hugepagesz=1G hugepages=8\n"


def test_sarif_names_rule_place_and_fix() -> None:
    text = "# x\n" + WRONG
    log = as_sarif(lint([Source("dir/a b", text)]), "0")
    run_ = log["runs"][0]
    result = run_["results"][0]
    assert log["version"] == "2.1.0"
    assert run_["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "dir/a%20b"
    assert place["region"] == {"startLine": 2, "startColumn": 7}
    replacement = result["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]
    start = replacement["charOffset"]
    assert text[start : start + replacement["charLength"]] == "hugepages=8"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nothing-there"], "nothing-there"),
        (["--kernel", "six", "x"], "--kernel"),
        (["--numa-nodes", "0", "x"], "--numa-nodes"),
        (["--arch", "mips", "x"], "--arch"),
        (["--arch", "x86_64", "--base-page-size", "64K", "x"], "--base-page-size"),
        (["--default-page-size", "16M", "x"], "--default-page-size"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], words: list[str], named: str) -> None:
    status, _, err = run(capsys, *words)
    assert status == 2
    assert named in err
    assert err.count("\n") == 1


def test_a_file_of_no_kind_is_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "poem"
    path.write_text("roses are red\nviolets are blue\nand four lines\nare not a command line\n")
    status, out, _ = run(capsys, str(path))
    assert status == 2
    assert "not recognised" in out


async def test_the_route_answers_like_the_command(viewer: httpx.AsyncClient) -> None:
    body = {"files": [{"name": "cmdline", "text": WRONG}]}
    answer = await viewer.post("/api/v1/lint", json=body)
    assert answer.status_code == 200
    document = answer.json()
    assert document["wrong"] == 1
    assert document["files"][0]["problems"][0]["rule"] == "cmdline-count-before-size"
    assert document["files"][0]["fixed_text"] == "quiet hugepagesz=1G hugepages=8\n"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"files": []}, "files"),
        ({"files": [{"name": "a", "text": "x"}], "kernel": "new"}, "kernel"),
        ({"files": [{"name": "a", "text": "x"}], "base_page_bytes": 65536}, "base_page_bytes"),
        ({"files": [{"name": "a", "text": "x"}], "default_page_bytes": 4096}, "default_page_bytes"),
        ({"files": [{"name": "a", "text": "x" * 90_000}] * 3}, "files"),
    ],
)
async def test_the_route_names_a_wrong_field(viewer: httpx.AsyncClient, fields: dict[str, object], field: str) -> None:
    answer = await viewer.post("/api/v1/lint", json=fields)
    assert answer.status_code == 422
    assert field in answer.json()["errors"][0]["field"]
