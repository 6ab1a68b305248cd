"""On Kubernetes an engine's settings reach its pod: nothing is installed on the node, checks run in the container."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace

import pytest

from hugeplan.artifacts import Artifact
from hugeplan.artifacts.base import slug
from hugeplan.artifacts.bundle import bundle
from hugeplan.artifacts.engines.my_cnf import PAGES_IN_CONTAINER
from hugeplan.planner.model import PlanRequest
from tests.artifacts.samples import in_stateful_set, instance, rendered, request_of

FILES = {
    "postgresql": "postgresql_conf",
    "mysql": "my_cnf",
    "mariadb": "mariadb_cnf",
    "oracle": "oracle_parameters",
    "db2": "db2_settings",
    "jvm": "jvm_options",
    "redis": "redis_conf",
}


#: What is known of an instance's pod where one of the two names is missing.
PARTLY = ({}, {"stateful_set": "shop/pg"}, {"container": "db"})


def files_of(request: PlanRequest, engine: str) -> Artifact:
    return rendered(request)[1][FILES[engine]]


def known(engine: str) -> PlanRequest:
    return in_stateful_set(request_of(engine, kubernetes=True))


def commands(file: Artifact) -> list[str]:
    lines = "\n".join((file.install, file.verify, file.rollback)).splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("engine", FILES)
class TestEveryEngine:
    def test_on_a_host_nothing_asks_kubectl(self, engine: str) -> None:
        found = files_of(request_of(engine, kubernetes=False), engine)
        assert "kubectl" not in found.install + found.verify + found.rollback

    def test_in_a_pod_every_command_is_kubectls(self, engine: str) -> None:
        found = files_of(known(engine), engine)
        assert found.path is None
        lines = [line for line in (found.install + "\n" + found.rollback).splitlines() if not line.startswith("#")]
        # What follows a command's first line is inside its quotes.
        first = [line for line in lines if re.match(r"[a-z]", line)]
        assert first
        joined = "\n".join(lines)
        assert all(line.startswith("kubectl ") or joined.count("sh -c '") for line in first)
        assert "systemctl" not in joined
        assert f"--namespace hugeplan statefulset/{engine}" in found.install

    @pytest.mark.parametrize("names", PARTLY)
    def test_a_pod_that_nobody_knows_is_left_to_a_person(self, engine: str, names: dict[str, str]) -> None:
        """Found: what was called postgresql in the current namespace was restarted for a pod of another namespace."""
        asked = request_of(engine, kubernetes=True)
        request = replace(asked, databases=(replace(asked.databases[0], **names),))
        found = files_of(request, engine)
        assert found.path is None
        assert commands(found) == []
        namespace, _, own = names.get("stateful_set", "NAMESPACE/STATEFULSET_NAME").partition("/")
        container = f"--container {names.get('container', 'CONTAINER_NAME')}"
        assert f"#   kubectl exec --namespace {namespace} statefulset/{own} {container} -- sh -c " in found.verify
        for text in (found.install, found.rollback):
            assert f"#   kubectl rollout restart --namespace {namespace} statefulset/{own}\n" in f"{text}\n"
            assert not re.search(rf"(configmap|statefulset.|--container) ?{engine}", text)
        scripts = {file.path: file.text for file in bundle("db-7", "", tuple(rendered(request)[1].values()))}
        assert "kubectl exec" not in scripts["verify.sh"]

    def test_the_check_in_the_container_is_the_check_of_a_host(self, engine: str) -> None:
        host = files_of(request_of(engine, kubernetes=False), engine).verify
        if engine == "postgresql":  # first whose answer it is, of several servers of a host
            host = re.sub(r'/usr/local/sbin/hugeplan-file.*?export it}"', "psql -XAtc", host.partition("\n")[2])
        words = shlex.split(files_of(known(engine), engine).verify)
        assert words[:5] == ["kubectl", "exec", "--namespace", "hugeplan", f"statefulset/{engine}"]
        assert words[-3:-1] == ["sh", "-c"]
        # A container has no other user's programs.
        host = re.sub(r"pgrep .*java\)", "pidof -s java)", host)
        assert words[-1].endswith(
            re.sub(r"awk '[^']*' /proc/\$\(systemctl.*?status", lambda _: PAGES_IN_CONTAINER, host)
            .replace("$(systemctl show --property MainPID --value redis)", "[0-9]*")
            .replace("n = 1;", r"n = /\tredis-server$/;")
        )

    def test_a_shell_reads_the_commands(self, engine: str) -> None:
        found = files_of(known(engine), engine)
        for script in (found.install, found.verify, found.rollback):
            done = subprocess.run(["/bin/bash", "-n"], input=script, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def test_namespace_and_container_of_the_instance_are_used() -> None:
    asked = request_of("postgresql", kubernetes=True)
    own = instance("postgresql", stateful_set="shop/pg-main", container="database")
    found = files_of(replace(asked, databases=(own,)), "postgresql")
    start = "kubectl exec --namespace shop statefulset/pg-main --container database -- "
    assert found.verify.startswith(start)
    assert "kubectl rollout restart --namespace shop statefulset/pg-main" in found.install


def config_map(engine: str = "postgresql", name: str = "pg-0", **names: str) -> tuple[str, ...]:
    """Namespace, name and key of the ConfigMap that a file is put into; the same are deleted by its way back."""
    asked = replace(request_of(engine, kubernetes=True), databases=(instance(engine, name, **names),))
    found = files_of(asked, engine)
    made = re.match(r"kubectl create configmap (\S{1,63}) --namespace (\S+) --from-file=(\S+)=(\S+) ", found.install)
    assert made
    own, namespace, key, file = made.groups()
    assert file == found.filename
    assert found.rollback.endswith(f"kubectl delete configmap {own} --namespace {namespace}")
    return namespace, own, key


def test_the_pods_of_a_set_have_one_config_map_and_no_other_pod_has_it() -> None:
    """Found: its name and its key were made of the database's, so that of two sets was one, and that of one set two."""
    sets = ["shop/pg", "shop/pg-a", "shop/pg.a", "other/pg", f"shop/{'x' * 60}", f"shop/{'x' * 61}", "shop/pg-pg"]
    pairs = [(own, container) for own in sets for container in ("pg", "pg-a", "db")]
    pairs += [(f"shop/{config_map(stateful_set='shop/pg', container='pg')[1]}", "pg")]
    maps = [config_map(stateful_set=own, container=container) for own, container in pairs]
    assert len(set(maps)) == len(pairs)
    for (own, container), made in zip(pairs, maps, strict=True):
        assert made[0] == own.partition("/")[0]
        assert made == config_map(name="postgresql", stateful_set=own, container=container)
    # Two programs of one container would take turns in one ConfigMap.
    own, container = pairs[0]
    assert (
        len({config_map(each, stateful_set=own, container=container) for each in ("postgresql", "mysql", "jvm")}) == 3
    )


def test_where_a_file_is_mounted_is_the_name_that_the_config_map_has_it_by() -> None:
    install = files_of(known("postgresql"), "postgresql").install
    key = re.search(r"--from-file=(\S+)=", install)
    assert key
    assert f"($PGDATA/conf.d/{key[1]})" in install


def test_long_names_that_begin_alike_share_no_file() -> None:
    release = "production-eu-central-1/billing-platform-mysql-cluster"
    assert len({slug(f"{release}-{end}") for end in ("primary-0", "read-0")}) == 2
    assert slug("a" * 50) == "a" * 50


def test_the_content_is_the_same_in_a_pod_and_on_a_host() -> None:
    of_host = files_of(request_of("postgresql", kubernetes=False), "postgresql")
    of_pod = files_of(request_of("postgresql", kubernetes=True), "postgresql")
    assert of_pod.content == of_host.content.partition("\n")[2]  # which says whose it is


def test_a_command_in_the_container_knows_the_database_that_it_names() -> None:
    found = files_of(known("db2"), "db2")
    assert '"$DB"' in found.content
    assert "-- env DB=name sh -s < db2-db2.sh" in found.install
    assert shlex.split(found.rollback.split("kubectl rollout")[0])[-1].startswith("DB=name; ")
