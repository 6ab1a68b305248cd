"""Hostile names in every file for Kubernetes, read back by kubectl itself."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from artifacts.samples import EVERYTHING, loaded
from artifacts.test_kinds import needs, run
from artifacts.test_outside import HOSTILE, MARK, PLAIN, TEXTS, all_files, named, shape
from hypothesis import HealthCheck, given, settings

from hugeplan.artifacts import Artifact


def is_kubernetes(artifact: Artifact) -> bool:
    """Whether a file holds objects of Kubernetes and nothing else."""
    if "yaml" not in artifact.media_type:
        return False
    found = objects_of([artifact])
    return bool(found) and all(isinstance(each, dict) and {"apiVersion", "kind"} <= set(each) for each in found)


def objects_of(files: list[Artifact]) -> list[Any]:
    return [each for artifact in files for each in loaded(artifact.content) if each is not None]


def cover() -> list[int]:
    """Requests that have every kind of file for Kubernetes between them."""
    chosen, seen = [], set()
    for at, files in enumerate(PLAIN):
        kinds = {artifact.kind for artifact in files if is_kubernetes(artifact)}
        if kinds - seen:
            chosen.append(at)
            seen |= kinds
    return chosen


IN_CLUSTER = cover()


def read_by_kubectl(folder: Path, files: list[Artifact]) -> list[Any]:
    """The objects of the files as kubectl understands them: it writes back what it read, with one label more."""
    for number, artifact in enumerate(files):
        (folder / f"{number:05d}.yaml").write_text(artifact.content)
    done = run(needs("kubectl"), "label", "--local", "-f", str(folder), "-o", "json", f"{MARK}=read", cwd=folder)
    assert done.returncode == 0, done.stderr
    found, at, text = [], 0, done.stdout.strip()
    while at < len(text):
        read, at = json.JSONDecoder().raw_decode(text, at)
        at += text[at : at + 1] == "\n"
        assert read["metadata"]["labels"].pop(MARK) == "read"
        if not read["metadata"]["labels"]:
            del read["metadata"]["labels"]
        if not read["metadata"]:  # where the file has none
            del read["metadata"]
        found.append(read)
    return found


def check(folder: Path, names: list[str]) -> int:
    """kubectl reads of every file what PyYAML reads of it, and what a harmless name has in its place."""
    mild: list[Artifact] = []
    wild: list[Artifact] = []
    for name in names:
        for at in IN_CLUSTER:
            files = all_files(named(EVERYTHING[at], name))
            if files:
                kept = [number for number, artifact in enumerate(PLAIN[at]) if is_kubernetes(artifact)]
                mild += [PLAIN[at][number] for number in kept]
                wild += [files[number] for number in kept]
    if not wild:
        return 0
    read = read_by_kubectl(folder, wild)
    assert read == objects_of(wild)
    assert [shape(each) for each in read] == [shape(each) for each in objects_of(mild)]
    assert [(each["apiVersion"], each["kind"]) for each in read] == [
        (each["apiVersion"], each["kind"]) for each in objects_of(mild)
    ]
    return len(read)


def test_kubectl_reads_the_same_objects_whatever_the_name(tmp_path: Path) -> None:
    needs("kubectl")
    assert check(tmp_path, list(HOSTILE)) > len(HOSTILE)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS)
def test_kubectl_reads_the_same_objects_for_any_text(name: str) -> None:
    needs("kubectl")
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), [name])


def test_a_smuggled_object_would_be_seen(tmp_path: Path) -> None:
    """The comparison can fail: a second document in a name is one object more."""
    needs("kubectl")
    one = next(artifact for at in IN_CLUSTER for artifact in PLAIN[at] if is_kubernetes(artifact))
    folder = tmp_path / "files"
    folder.mkdir()
    text = "\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n"
    (folder / "a.yaml").write_text(one.content + text)
    done = run(needs("kubectl"), "label", "--local", "-f", str(folder), "-o", "json", f"{MARK}=read", cwd=folder)
    assert '"kind": "Secret"' in done.stdout
