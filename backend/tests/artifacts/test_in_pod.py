"""On Kubernetes an engine's settings reach its pod: nothing is installed on the node, checks run in the container."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace
from hashlib import sha256

import pytest

from hugeplan.artifacts import Artifact
from hugeplan.artifacts.base import slug
from hugeplan.planner.model import PlanRequest
from tests.artifacts.samples import instance, rendered, request_of

FILES = {
    "postgresql": "postgresql_conf",
    "mysql": "my_cnf",
    "mariadb": "mariadb_cnf",
    "oracle": "oracle_parameters",
    "db2": "db2_settings",
    "jvm": "jvm_options",
    "redis": "redis_conf",
}


def files_of(request: PlanRequest, engine: str) -> Artifact:
    return rendered(request)[1][FILES[engine]]


@pytest.mark.parametrize("engine", FILES)
class TestEveryEngine:
    def test_on_a_host_nothing_asks_kubectl(self, engine: str) -> None:
        found = files_of(request_of(engine, kubernetes=False), engine)
        assert "kubectl" not in found.install + found.verify + found.rollback

    def test_in_a_pod_every_command_is_kubectls(self, engine: str) -> None:
        found = files_of(request_of(engine, kubernetes=True), engine)
        assert found.path is None
        commands = [line for line in (found.install + "\n" + found.rollback).splitlines() if not line.startswith("#")]
        # What follows a command's first line is inside its quotes.
        first = [line for line in commands if re.match(r"[a-z]", line)]
        assert first
        joined = "\n".join(commands)
        assert all(line.startswith("kubectl ") or joined.count("sh -c '") for line in first)
        assert "systemctl" not in joined
        assert f"statefulset/{engine}" in found.install

    def test_the_check_in_the_container_is_the_check_of_a_host(self, engine: str) -> None:
        host = files_of(request_of(engine, kubernetes=False), engine).verify
        if engine == "postgresql":  # first whose answer it is, of several servers of a host
            host = re.sub(r'</dev/null.*?export it}"', "psql -XAtc", host.partition("\n")[2])
        words = shlex.split(files_of(request_of(engine, kubernetes=True), engine).verify)
        assert words[:3] == ["kubectl", "exec", f"statefulset/{engine}"]
        assert words[-3:-1] == ["sh", "-c"]
        # A container has no other user's programs.
        assert words[-1].endswith(re.sub(r"pgrep .*java\)", "pidof -s java)", host))

    def test_a_shell_reads_the_commands(self, engine: str) -> None:
        found = files_of(request_of(engine, kubernetes=True), engine)
        for script in (found.install, found.verify, found.rollback):
            done = subprocess.run(["/bin/bash", "-n"], input=script, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def test_namespace_and_container_of_the_instance_are_used() -> None:
    asked = request_of("postgresql", kubernetes=True)
    known = instance("postgresql", stateful_set="shop/pg-main", container="database")
    found = files_of(replace(asked, databases=(known,)), "postgresql")
    start = "kubectl exec --namespace shop statefulset/pg-main --container database -- "
    assert found.verify.startswith(start)
    assert "kubectl rollout restart --namespace shop statefulset/pg-main" in found.install


def test_long_names_that_begin_alike_share_no_config_map() -> None:
    """Helm names both by release and chart: the second's would overwrite the first's."""
    asked = request_of("mysql", "jvm", kubernetes=True)
    release = "production-eu-central-1/billing-platform-mysql-cluster"
    names = [f"{release}-{end}" for end in ("primary-0", "read-0")]
    both = tuple(replace(one, name=name) for one, name in zip(asked.databases, names, strict=True))
    files = [a for kind, a in rendered(replace(asked, databases=both))[1].items() if kind in FILES.values()]
    maps = [re.findall(r"configmap ([a-z0-9-]{1,63}) ", file.install)[0] for file in files]
    assert len(set(maps)) == len({file.filename for file in files}) == 2
    assert all(len(name) <= 63 for name in maps)
    assert len({slug(name) for name in names}) == 2
    assert slug("a" * 50) == "a" * 50


def test_no_two_pods_share_a_config_map() -> None:
    """Found: the settings of pg.a-0 and of pg-a-0 of one namespace took turns in one ConfigMap."""
    asked = request_of("postgresql", kubernetes=True)
    names = ["pg-a-0", "pg.a-0", "pg-a.0", "pg_a_0", "PG-A-0", "pg--a-0", "x" * 51, f"{'x' * 50}y"]
    names += [f"pg-a-0-{sha256(b'pg.a-0').hexdigest()[:8]}"]
    installs = [
        files_of(replace(asked, databases=(instance("postgresql", name=name),)), "postgresql").install for name in names
    ]
    maps = [re.findall(r"create configmap ([a-z0-9-]{1,63}) ", install)[0] for install in installs]
    assert maps[0] == "pg-a-0-hugepages"
    assert len(set(maps)) == len(names)


def test_the_content_is_the_same_in_a_pod_and_on_a_host() -> None:
    of_host = files_of(request_of("postgresql", kubernetes=False), "postgresql")
    of_pod = files_of(request_of("postgresql", kubernetes=True), "postgresql")
    assert of_pod.content == of_host.content


def test_a_command_in_the_container_knows_the_database_that_it_names() -> None:
    found = files_of(request_of("db2", kubernetes=True), "db2")
    assert '"$DB"' in found.content
    assert "-- env DB=name sh -s < db2-db2.sh" in found.install
    assert shlex.split(found.rollback.split("kubectl rollout")[0])[-1].startswith("DB=name; ")
