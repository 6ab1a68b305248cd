"""The bundle: layout, deterministic bytes, README, diff; over the command line and over REST."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest
from artifacts.samples import request_of
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.artifacts import installer, render
from hugeplan.artifacts.bundle import BundleFile, as_zip, bundle, changes
from hugeplan.cli import main
from hugeplan.planner.model import PlanRequest
from hugeplan.planner.plan import plan


def document(request: PlanRequest) -> str:
    found = plan(request)
    return json.dumps({"plan": asdict(found), "request": asdict(request)})


def files_of(request: PlanRequest):  # type: ignore[no-untyped-def]
    found = plan(request)
    return bundle(found.node, found.headline, render(found, request))


def patched(old: list[str], diff: str) -> list[str]:
    """What a unified diff makes of lines; every line that it names must be there."""
    made, at = [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            before = int(start) - (count != "0")
            made += old[at:before]
            at = before
            continue
        if line[0] != "+":
            assert old[at] == line[1:]
            at += 1
        if line[0] != "-":
            made.append(line[1:])
    return made + old[at:]


def verify_script() -> str:
    return str(next(f.text for f in files_of(request_of("postgresql")) if f.path == "verify.sh"))


def run_verify(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    script = folder / "verify.sh"
    script.write_text(text or verify_script())
    (folder / "1-installer").mkdir(exist_ok=True)
    (folder / "1-installer/hugeplan-file").write_text(installer.text())
    own = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PGDATA": str(folder)}
    return subprocess.run(["/bin/sh", str(script)], env=own, capture_output=True, text=True, check=False)


class TestBundle:
    def test_equal_plans_are_equal_bytes(self) -> None:
        assert as_zip(files_of(request_of("postgresql"))) == as_zip(files_of(request_of("postgresql")))

    def test_every_file_of_the_plan_is_in_it_once(self) -> None:
        request = request_of("postgresql", "redis", kubernetes=True)
        files = files_of(request)
        assert len({f.path for f in files}) == len(files)
        assert len(files) == len(render(plan(request), request)) + 3

    def test_the_readme_has_every_step_and_command(self) -> None:
        request = request_of("postgresql")
        artifacts = render(plan(request), request)
        readme = next(f.text for f in files_of(request) if f.path == "README.md")
        for artifact in artifacts:
            assert artifact.filename in readme
            for line in (
                *artifact.install.splitlines(),
                *artifact.verify.splitlines(),
                *artifact.rollback.splitlines(),
            ):
                assert line in readme

    def test_verify_fails_while_the_plan_is_not_in_force(self, tmp_path: Path) -> None:
        done = run_verify(tmp_path, "")
        assert done.returncode == 1
        assert "not in force: pools" in done.stderr
        assert "not installed, not checked: kernel_command_line" in done.stdout

    def test_verify_checks_what_was_applied(self, tmp_path: Path) -> None:
        """The pools were made at run time; a file counts from the moment that it is installed."""
        pools = tmp_path / "sys"
        pools.mkdir()
        text = verify_script()
        counts = re.findall(r'test "\$\(cat (/sys/\S+)\)" -eq (\d+)', text)
        assert counts
        for number, (path, pages) in enumerate(dict(counts).items()):
            (pools / str(number)).write_text(f"{pages}\n")
            text = text.replace(path, str(pools / str(number)))
        # PostgreSQL does not run here; its check has no file to go by and is always made.
        (tmp_path / "postmaster.pid").write_text("1\n\n\n5432\n/run\n")
        answer = f'case "$*" in *data_directory*) echo {tmp_path};; *) echo on;; esac'
        for name, script in (("psql", answer), ("runuser", 'shift 3; exec "$@"')):
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
        text = text.replace("/etc/", f"{tmp_path}/etc/")
        done = run_verify(tmp_path, text)
        assert done.returncode == 0, done.stderr
        (installed,) = re.findall(r"kernel_command_line \(([^)]+)\)", done.stdout)
        Path(installed).parent.mkdir(parents=True)
        Path(installed).write_text("installed, and the node has not booted with it\n")
        done = run_verify(tmp_path, text)
        assert done.returncode == 1
        assert done.stderr == "not in force: kernel_command_line\n"

    def test_a_difference_names_added_removed_and_changed(self) -> None:
        found = changes(files_of(request_of("postgresql")), files_of(request_of("mysql")))
        assert {c.change for c in found} == {"added", "removed", "changed"}
        assert changes(files_of(request_of("mysql")), files_of(request_of("mysql"))) == ()

    @pytest.mark.parametrize("every", [1, 2, 3, 700])
    def test_files_that_differ_in_many_places_are_compared_in_proportion_to_their_lines(self, every: int) -> None:
        # A line per NUMA node, some of which differ: each may be a place of its own.
        old = [f"pool {at}\n" for at in range(20_000)]
        new = ["first\n", *(f"pool {at}, more\n" if at % every == 0 else line for at, line in enumerate(old[:-1]))]
        begun = time.process_time()
        (found,) = changes([BundleFile("f", "".join(old))], [BundleFile("f", "".join(new))])
        assert time.process_time() - begun < 1
        removed = sum(line.startswith("-pool") for line in found.diff.splitlines())
        assert removed == sum(at % every == 0 for at in range(19_999)) + 1
        assert patched(old, found.diff) == new

    @given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
    def test_a_diff_makes_the_new_file_of_the_old_one(self, old: list[str], new: list[str]) -> None:
        was, now = ([f"{line}\n" for line in lines] for lines in (old, new))
        for found in changes([BundleFile("f", "".join(was))], [BundleFile("f", "".join(now))]):
            assert patched(was, found.diff) == now


class TestCommand:
    def run(self, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
        status = main(["artifacts", *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    def test_out_zip_and_diff(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        path = tmp_path / "plan.json"
        path.write_text(document(request_of("postgresql")))
        out, archive = tmp_path / "out", tmp_path / "b.zip"
        assert self.run(capsys, str(path), "--out", str(out), "--zip", str(archive))[0] == 0
        assert (out / "README.md").exists()
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                assert (out / name).read_bytes() == opened.read(name)
        assert self.run(capsys, str(path), "--diff", str(out)) == (0, "", "")
        other = tmp_path / "other.json"
        other.write_text(document(request_of("postgresql", nodes=1)))
        status, text, _ = self.run(capsys, str(other), "--diff", str(path))
        assert status == 1
        assert "changed: 2-kernel_command_line/60-hugeplan.cfg" in text

    def written(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> tuple[str, Path]:
        path, out = tmp_path / "plan.json", tmp_path / "out"
        path.write_text(document(request_of("postgresql")))
        assert self.run(capsys, str(path), "--out", str(out))[0] == 0
        return str(path), out

    @pytest.mark.parametrize("name", ["README.md", "9-x/pod.yaml", "notes", ".git", "8-x"])
    def test_a_diff_follows_no_link_and_reads_what_a_bundle_can_have(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
    ) -> None:
        """Printed was what a link in a user's folder led to, as root may read it."""
        path, out = self.written(capsys, tmp_path)
        (tmp_path / "x").mkdir()
        (tmp_path / "x/pod.yaml").write_text("secret")
        (out / "9-x").mkdir()
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(tmp_path / "x" if name in {".git", "8-x"} else tmp_path / "x/pod.yaml")
        status, text, err = self.run(capsys, path, "--diff", str(out))
        assert "secret" not in text + err
        if name in {"README.md", "9-x/pod.yaml"}:
            assert (status, text, err.count("\n")) == (2, "", 1)
            assert f"{out / name} is not a regular file" in err
        else:
            assert (status, text) == (0, "")
            assert err == f"hugeplan: {out}: not read, as no bundle has such names: {name}\n"

    def test_an_empty_file_is_changed(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        path, out = self.written(capsys, tmp_path)
        (out / "verify.sh").write_bytes(b"")
        status, text, _ = self.run(capsys, path, "--diff", str(out))
        assert (status, text.splitlines()[0]) == (1, "changed: verify.sh")

    @pytest.mark.parametrize(
        ("sizes", "named"),
        [
            ([3 << 20], "0: it has more than 2 MiB"),
            ([300 << 20] * 5, "0: it has more than 2 MiB"),
            ([2 << 20] * 8, "7: it has more than 2 MiB, or 16 MiB with the files before it"),
            ([0] * 4001, "more than 4000 names"),
        ],
    )
    def test_a_folder_of_more_than_a_bundle_can_hold_is_not_read(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, sizes: list[int], named: str
    ) -> None:
        """Of five files of 300 MB, which take 4 kB on the disk, root's memory took 6 GB."""
        path, out = self.written(capsys, tmp_path)
        (out / "9-x").mkdir()
        for number, size in enumerate(sizes):
            with (out / f"9-x/{number}").open("wb") as file:
                file.truncate(size)
        status, text, err = self.run(capsys, path, "--diff", str(out))
        assert (status, text, err.count("\n")) == (2, "", 1)
        assert named in err

    def test_what_is_no_file_in_the_place_of_a_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        os.mkfifo(tmp_path / "out" / "README.md")
        path = tmp_path / "plan.json"
        path.write_text(document(request_of("postgresql")))
        words = [sys.executable, "-m", "hugeplan.cli", "artifacts", str(path), "--out", str(tmp_path / "out")]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "README.md is not a regular file" in done.stderr

    def test_a_platform_chooses_the_path(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        path = tmp_path / "plan.json"
        path.write_text(document(request_of("postgresql", kubernetes=True)))
        _, out, _ = self.run(capsys, str(path), "--platform", "openshift")
        assert out.lstrip().startswith("1. performance_profile")

    @pytest.mark.parametrize(("text", "named"), [("{", "not JSON"), ("[]", "not a plan"), ('{"plan": {}}', "plan")])
    def test_wrong_input_is_one_line(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, named: str
    ) -> None:
        path = tmp_path / "plan.json"
        path.write_text(text)
        status, _, err = self.run(capsys, str(path))
        assert status == 2
        assert named in err
        assert err.count("\n") == 1


async def test_over_rest(planner: httpx.AsyncClient) -> None:
    scenario = {
        "node": {"numa_nodes": [{"id": 0, "memory": "64GiB"}]},
        "databases": [{"name": "main", "engine": "postgresql", "settings": {"shared_buffers": "8GB"}}],
    }
    made = (await planner.post("/api/v1/scenarios", json={"name": "zip", "scenario": scenario})).json()
    first = (await planner.post(f"/api/v1/scenarios/{made['id']}/plans")).json()
    assert first["artifacts"][0]["recommended"] is True
    assert [file["restart"] for file in first["artifacts"][:2]] == ["nothing", "reboot"]
    answer = await planner.get(f"/api/v1/plans/{first['id']}/artifacts.zip")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as opened:
        assert "README.md" in opened.namelist()
        assert len(opened.namelist()) == len(first["artifacts"]) + 3
    again = await planner.get(f"/api/v1/plans/{first['id']}/artifacts.zip")
    assert again.content == answer.content
    same = await planner.get(f"/api/v1/plans/{first['id']}/artifacts-diff", params={"against": first["id"]})
    assert same.json()["items"] == []
    large = {
        **scenario,
        "databases": [{**scenario["databases"][0], "settings": {"shared_buffers": "900GB"}, "page_size": "2MiB"}],
    }
    preview = (await planner.post("/api/v1/plans/preview", json={"scenario": large})).json()
    assert preview["artifacts"] == []
    assert "does not fit" in preview["artifacts_withheld"]
    forced = (await planner.post("/api/v1/plans/preview", json={"scenario": large, "force": True})).json()
    assert forced["artifacts"]
