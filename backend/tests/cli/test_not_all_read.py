"""What could not be read has an exit status of its own, whichever command and whichever source: a script can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubernetes_objects import container, listing, node, pod

from hugeplan.cli import main

Json = dict[str, Any]

SOUND = (node("a", pools={"2Mi": "0", "1Gi": "0"}), pod("web-0", "a", container(requests={"memory": "1Gi"})))


def changed(item: Json, *path: str, to: object) -> Json:
    """A copy of an object with one field replaced, or taken away with None."""
    copy: Json = json.loads(json.dumps(item))
    part = copy
    for step in path[:-1]:
        part = part[step]
    if to is None:
        del part[path[-1]]
    else:
        part[path[-1]] = to
    return copy


BROKEN = {
    "an object of another form": changed(SOUND[1], "metadata", "labels", to=["x"]),
    "a quantity": pod("q-0", "a", container(requests={"memory": "lots"})),
    "a node without capacity": changed(node("b"), "status", "capacity", to=None),
    "a pool that is no quantity": changed(node("b"), "status", "capacity", "hugepages-2Mi", to="64GiB"),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(list(words))
    captured = capsys.readouterr()
    return status, captured.out + captured.err


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_objects_of_a_cluster(broken: Json, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"cluster.{form}"
    for items, status in (((*SOUND,), 0), ((*SOUND, broken), 6)):
        text = listing(*items)
        path.write_text(text if form == "json" else yaml.safe_dump(json.loads(text)))
        found, said = run(capsys, "plan", str(path))
        assert found == status, said
        found, said = run(capsys, "plan", str(path), "--json")
        assert found == status, said
        found, said = run(capsys, "import", "kubernetes", str(path), "--all")
        assert found == status, said


def test_a_node_of_another_system_is_left_out_on_purpose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    windows = changed(node("w"), "status", "nodeInfo", "operatingSystem", to="windows")
    path = tmp_path / "cluster.json"
    path.write_text(listing(*SOUND, windows))
    status, said = run(capsys, "plan", str(path))
    assert (status, "only Linux has huge page pools" in said) == (0, True), said


def test_a_host_without_facts_of_ansible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"ansible_memtotal_mb": 65536, "ansible_architecture": "x86_64", "ansible_system": "Linux"}
    (tmp_path / "a").write_text(json.dumps({"ansible_facts": facts}))
    assert run(capsys, "import", "ansible", str(tmp_path), "--all")[0] == 0
    (tmp_path / "b").write_text(json.dumps({"ansible_facts": {"ansible_architecture": "x86_64"}}))
    status, said = run(capsys, "import", "ansible", str(tmp_path), "--all")
    assert (status, "host b is left out" in said) == (6, True), said


def test_what_does_not_fit_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finding that says wrong is no less wrong for what could not be read."""
    path = tmp_path / "cluster.json"
    wrong = pod("db-0", "a", container("mysql", "mysql:8.4", args=["--large-pages", "--innodb-buffer-pool-size=4G"]))
    path.write_text(listing(*SOUND, wrong, BROKEN["a quantity"]))
    assert run(capsys, "plan", str(path))[0] in {4, 5}
