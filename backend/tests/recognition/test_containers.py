"""Engines in containers without an operator: image, command, arguments, variables, ConfigMaps."""

from __future__ import annotations

from typing import Any

import pytest
from support.kubernetes_objects import container, listing, node, pod

from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.model import FoundDatabase
from hugeplan.planner.model import Confidence

Json = dict[str, Any]


def found_in(*items: Json) -> tuple[FoundDatabase, ...]:
    """The databases of one node with these objects."""
    (only,) = read_kubernetes(listing(node("worker-1"), *items).encode()).nodes
    return only.databases


def only_container(one: Json, **fields: Any) -> FoundDatabase:
    """The one database of a pod with one container."""
    (found,) = found_in(pod("p-0", "worker-1", one, **fields))
    return found


@pytest.mark.parametrize(
    ("image", "engine", "version"),
    [
        ("postgres:16.4-alpine", "postgresql", "16.4"),
        ("docker.io/library/postgres:17", "postgresql", "17"),
        ("registry.example:5000/mirror/postgres:15@sha256:" + "0" * 64, "postgresql", "15"),
        ("timescale/timescaledb:2.15.0-pg16", "postgresql", "16"),
        ("pgvector/pgvector:pg17", "postgresql", "17"),
        ("postgis/postgis:16-3.4", "postgresql", "16"),
        ("docker.io/bitnami/postgresql:16.3.0-debian-12-r14", "postgresql", "16.3.0"),
        ("ghcr.io/zalando/spilo-16:3.2-p3", "postgresql", "16"),
        ("mysql:8.4.2", "mysql", "8.4.2"),
        ("percona/percona-server:8.0.36", "mysql", "8.0.36"),
        ("mariadb:11.4", "mariadb", "11.4"),
        ("redis:7.2", "redis", "7.2"),
        ("valkey/valkey:8.0.1", "redis", "8.0.1"),
        ("mongo:7.0.5-jammy", "mongodb", "7.0.5"),
        ("container-registry.oracle.com/database/enterprise:19.3.0.0", "oracle", "19.3.0.0"),
        ("gvenzl/oracle-free:23.5-slim", "oracle", "23.5"),
        ("icr.io/db2_community/db2:11.5.9.0", "db2", "11.5.9.0"),
        ("mcr.microsoft.com/mssql/server:2022-latest", "sqlserver", "2022"),
    ],
)
def test_images(image: str, engine: str, version: str) -> None:
    found = only_container(container("db", image))
    assert (found.recognised.engine, found.recognised.version) == (engine, version)
    assert found.recognised.confidence is Confidence.MEDIUM
    assert found.recognised.source.startswith("image ")


@pytest.mark.parametrize(
    "image",
    [
        "quay.io/prometheuscommunity/postgres-exporter:v0.15",
        "oliver006/redis_exporter:v1.62",
        "dpage/pgadmin4:8",
        "bitnami/pgbouncer:1.23",
        "ghcr.io/cloudnative-pg/cloudnative-pg:1.24",
        "mysql/mysql-router:8.0",
        "registry.example/my-postgres-client:1",
        "registry.example/app:v1",
        "",
    ],
)
def test_images_that_hold_no_server(image: str) -> None:
    assert found_in(pod("p-0", "worker-1", container("c", image))) == ()


def test_a_digest_alone_leaves_the_version_unknown() -> None:
    found = only_container(container("db", "postgres@sha256:" + "a" * 64))
    assert found.recognised.version is None
    assert "version: the image's tag does not say it" in found.recognised.unknown


@pytest.mark.parametrize(
    "words",
    [
        {"args": ["-c", "shared_buffers=8GB", "-c", "max_connections=300"]},
        {"command": ["postgres"], "args": ["--shared-buffers=8GB", "--max_connections=300"]},
        {"command": ["docker-entrypoint.sh", "postgres", "-cshared_buffers=8GB", "-N", "300"]},
        {"command": ["sh", "-c", "exec postgres -c shared_buffers=8GB -c 'max_connections=300' # start"]},
        {"command": ["/bin/bash", "-ec", "chown x y && exec gosu postgres postgres -c shared_buffers=8GB -N 300"]},
        {
            "args": ["postgres", "-c", "shared_buffers=$(SB)", "-c", "max_connections=300"],
            "env": [{"name": "SB", "value": "8GB"}],
        },
    ],
)
def test_postgresql_options_in_every_spelling(words: Json) -> None:
    found = only_container(container("db", "postgres:16", **words))
    assert dict(found.instance.settings) == {"shared_buffers": "8GB", "max_connections": "300"}


def test_a_command_goes_before_a_strange_image() -> None:
    found = only_container(container("db", "registry.example/payments-store:v7", command=["postgres"]))
    assert found.recognised.engine == "postgresql"
    assert found.recognised.confidence is Confidence.HIGH


def test_a_value_from_a_secret_is_unknown_not_a_default() -> None:
    variable = {"name": "SB", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    found = only_container(container("db", "postgres:16", args=["-c", "shared_buffers=$(SB)"], env=[variable]))
    assert "shared_buffers" not in found.instance.settings
    assert any(text.startswith("shared_buffers: its value comes from a variable") for text in found.recognised.unknown)


def test_a_mounted_config_map_is_read_and_arguments_go_before_it() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "pg", "namespace": "default"},
        "data": {"my.conf": "shared_buffers = 4GB # a comment\nwork_mem='8MB'\ninclude_dir 'conf.d'\n", "other": "x"},
    }
    mount = {"name": "conf", "mountPath": "/etc/postgresql"}
    volume = {"name": "conf", "configMap": {"name": "pg", "items": [{"key": "my.conf", "path": "postgresql.conf"}]}}
    one = container("db", "postgres:16", args=["-c", "work_mem=64MB"], volumeMounts=[mount])
    (found,) = found_in(config, pod("p-0", "worker-1", one, volumes=[volume]))
    assert dict(found.instance.settings) == {"shared_buffers": "4GB", "work_mem": "64MB"}
    assert found.recognised.sources["shared_buffers"] == "ConfigMap pg my.conf"
    assert found.recognised.sources["work_mem"] == "arguments"
    assert any("includes files" in text for text in found.recognised.unknown)


def test_mysql_and_mariadb_share_programs_but_not_rules() -> None:
    mysql = only_container(container("db", "mysql:8.0.36", args=["mysqld", "--innodb-buffer-pool-size=8G"]))
    maria = only_container(container("db", "mariadb:10.11", args=["mysqld", "--innodb-buffer-pool-size=8G"]))
    assert (mysql.instance.engine, maria.instance.engine) == ("mysql", "mariadb")
    assert mysql.instance.settings["innodb_buffer_pool_size"] == "8G"


@pytest.mark.parametrize("spelling", ["--large-pages", "--large_pages=ON", "--loose-large-pages=1"])
def test_mysql_large_pages(spelling: str) -> None:
    found = only_container(container("db", "mysql:8.0.36", args=["mysqld", spelling]))
    assert found.instance.settings["large_pages"].lower() in {"on", "1"}


def test_a_data_store_on_the_jvm_is_a_database_and_an_application_is_not() -> None:
    search = container(
        "elasticsearch",
        "docker.elastic.co/elasticsearch/elasticsearch:8.15.0",
        env=[{"name": "ES_JAVA_OPTS", "value": "-Xms4g -Xmx4g"}],
    )
    application = container("app", "registry.example/app:v1", command=["java", "-Xmx2g", "-jar", "app.jar"])
    with_pages = container(
        "app",
        "registry.example/app:v1",
        command=["java"],
        env=[{"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx2g -XX:+UseLargePages"}],
    )
    assert dict(only_container(search).instance.settings) == {"Xms": "4g", "Xmx": "4g"}
    assert found_in(pod("p-0", "worker-1", application)) == ()
    assert dict(only_container(with_pages).instance.settings) == {"Xmx": "2g", "UseLargePages": "on"}


def test_what_the_rule_does_not_take_is_named() -> None:
    found = only_container(
        container("db", "postgres:99", args=["-c", "shared_buffers=lots", "-c", "max_connections=50"])
    )
    assert dict(found.instance.settings) == {"max_connections": "50"}
    assert found.instance.version is None
    assert any("shared_buffers = lots" in text for text in found.recognised.unknown)
    assert any(text.startswith("version 99") for text in found.recognised.unknown)


def test_two_engines_in_one_pod_are_two_databases() -> None:
    found = found_in(pod("p-0", "worker-1", container("a", "postgres:16"), container("b", "redis:7")))
    assert {one.recognised.container: one.instance.engine for one in found} == {"a": "postgresql", "b": "redis"}
    assert len({one.instance.name for one in found}) == 2
