"""Facts of Ansible: what one host says of itself is no other's name, and no other's failure."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hugeplan.inventory import ansible
from hugeplan.inventory.ansible import read_ansible
from hugeplan.inventory.model import InventoryError


def names(path: Path) -> list[str]:
    """Of the hosts that are planned."""
    return [node.facts.name for node in read_ansible(path).nodes]


def test_a_host_is_called_what_the_operator_calls_it(tmp_path: Path) -> None:
    for host, memory in (("db-1.corp.test", 64_000), ("db-1.evil.test", 1_000), ("web-9", 1_000)):
        own = "db-1" if host != "db-1.corp.test" else host
        facts = {"ansible_facts": {"ansible_memtotal_mb": memory, "ansible_nodename": own}}
        (tmp_path / host).write_text(json.dumps(facts))
    assert names(tmp_path) == ["db-1.corp.test", "db-1.evil.test", "web-9"]


@pytest.mark.parametrize("what", ["1" * 5_000, "[" * 5_000 + "]" * 5_000, "", "\udcff"])
def test_one_hosts_broken_facts_leave_out_that_host(tmp_path: Path, what: str) -> None:
    def facts(extra: str) -> bytes:
        return f'{{"ansible_memtotal_mb": 1024, "ansible_local": {extra}}}'.encode(errors="surrogateescape")

    folder, output = tmp_path / "facts", tmp_path / "output"
    folder.mkdir()
    (folder / "a").write_bytes(facts("{}"))
    (folder / "evil").write_bytes(facts(what))
    output.write_bytes(b"evil | SUCCESS => %b\na | SUCCESS => %b\n" % (facts(what), facts("{}")))
    for path in (folder, output):
        assert names(path) == ["a"]
        (note,) = read_ansible(path).notes
        assert note.startswith("host evil is left out: ")


@pytest.mark.parametrize("what", ["1" * 5_000, "[" * 100_000 + "]" * 100_000, '"\\\\{\\"", "b": ' + "1" * 5_000])
def test_one_hosts_facts_leave_out_that_host_of_a_cache_in_one_document(tmp_path: Path, what: str) -> None:
    """They are JSON, as Ansible writes it, and more than is decoded."""
    good, evil = '{"ansible_memtotal_mb": 1024, "x": {"y": "{"}}', f'{{"z": {{"ansible_memtotal_mb": 1, "v": {what}}}}}'
    file = tmp_path / "all.json"
    file.write_text(f'{{"a": {good}, "evil" : {evil}, "b\\u0031": {good}}}')
    assert names(file) == ["a", "b1"]
    (note,) = read_ansible(file).notes
    assert note.startswith("host evil is left out: ")


LONG = "표" * 10**6


@pytest.mark.parametrize("says", [{"msg": LONG}, {"ansible_memtotal_mb": 9, "ansible_architecture": LONG}])
def test_what_one_host_says_of_itself_fills_no_screen(tmp_path: Path, says: dict[str, object]) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"a": {"ansible_facts": {"ansible_memtotal_mb": 1024}}, "evil": says, "h" * 10**6: {}}))
    notes = read_ansible(file).notes
    assert [note[-1] for note in notes] == ["…", "…"]
    assert max(map(len, notes)) <= 500


@pytest.mark.parametrize("end", ["", "\\", '"' + '\\"' * 100_000, " " * 200_000, '"\\x": {'])
def test_a_host_of_which_no_facts_are_decoded_names_no_others(tmp_path: Path, end: str) -> None:
    file = tmp_path / "one.json"
    file.write_text('{"ansible_local": {"x": ' + "1" * 5_000 + '}, "db-1": {"ansible_memtotal_mb": 1024}, ' + end)
    began = time.process_time()
    with pytest.raises(InventoryError, match="not valid JSON"):
        read_ansible(file)
    assert time.process_time() - began < 2


def test_facts_that_cannot_be_read_leave_out_their_host(tmp_path: Path) -> None:
    for host in "ab":
        (tmp_path / host).write_text('{"ansible_memtotal_mb": 1024}')

    def denied(path: Path) -> bytes:
        if path.name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return path.read_bytes()

    found = read_ansible(tmp_path, denied)
    assert [node.facts.name for node in found.nodes] == ["b"]
    assert "host a is left out: " in found.notes[0]


def test_what_nobody_foresaw_of_one_host_leaves_out_that_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own: Any = ansible._node
    monkeypatch.setattr(ansible, "_node", lambda host, one: own(host, one) if host == "b" else {}[host])
    for host in "ab":
        (tmp_path / host).write_text('{"ansible_memtotal_mb": 1024}')
    assert names(tmp_path) == ["b"]
    assert read_ansible(tmp_path).notes[0].startswith("host a is left out: internal error: KeyError")
