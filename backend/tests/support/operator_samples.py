"""One cluster per operator: its custom resource, a pod as the operator makes it, and what must be recognised.

Labels and container names are those of the operators' sources. ``definition`` is the file of published custom resource
definitions that accepts the resource, where one is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support.kubernetes_objects import container, pod

Json = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """``settings`` must be recognised exactly; ``engine`` and ``version`` too."""

    operator: str
    engine: str
    version: str | None
    settings: dict[str, str]
    resource: Json
    pod: Json
    definition: str | None = None
    further: tuple[Json, ...] = field(default=())


def _resource(api_version: str, kind: str, name: str, spec: Json) -> Json:
    metadata: Json = {"name": name, "namespace": "db"}
    if kind in {"KafkaNodePool"}:
        metadata["labels"] = {"strimzi.io/cluster": "events"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _pod(name: str, labels: dict[str, str], *containers: Json) -> Json:
    return pod(name, "worker-1", *containers, namespace="db", labels=labels, owner=("StatefulSet", name[:-2]))


def _storage(size: str) -> Json:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}


_CRUNCHY_SPEC: Json = {
    "postgresVersion": 16,
    "instances": [{"name": "one", "replicas": 2, "dataVolumeClaimSpec": _storage("100Gi"),
                   "resources": {"limits": {"memory": "24Gi", "hugepages-2Mi": "8400Mi"}}}],
    "backups": {"pgbackrest": {"repos": [{"name": "repo1", "volume": {"volumeClaimSpec": _storage("10Gi")}}]}},
    "patroni": {"dynamicConfiguration": {"postgresql": {"parameters": {"shared_buffers": "8GB", "work_mem": "16MB",
                                                                      "max_connections": 300}}}},
}  # fmt: skip
_CRUNCHY_LABELS = {
    "postgres-operator.crunchydata.com/cluster": "hippo",
    "postgres-operator.crunchydata.com/instance": "hippo-one-abcd",
    "postgres-operator.crunchydata.com/instance-set": "one",
    "postgres-operator.crunchydata.com/role": "master",
}
_CRUNCHY_SETTINGS = {"shared_buffers": "8GB", "work_mem": "16MB", "max_connections": "300"}

SAMPLES = (
    Sample(
        operator="CloudNativePG",
        engine="postgresql",
        version="16.4",
        settings={
            "shared_buffers": "4GB", "max_connections": "250", "max_worker_processes": "32",
            "max_replication_slots": "32",
        },
        resource=_resource("postgresql.cnpg.io/v1", "Cluster", "orders", {
            "instances": 3, "imageName": "ghcr.io/cloudnative-pg/postgresql:16.4-bookworm",
            "postgresql": {"parameters": {"shared_buffers": "4GB", "max_connections": "250"}},
            "resources": {"limits": {"memory": "16Gi", "hugepages-2Mi": "4300Mi"}}, "storage": {"size": "50Gi"},
        }),
        pod=_pod("orders-1", {"cnpg.io/cluster": "orders", "cnpg.io/instanceName": "orders-1", "role": "primary"},
                 container("postgres", "ghcr.io/cloudnative-pg/postgresql:16.4-bookworm",
                           command=["/controller/manager", "instance", "run"],
                           limits={"memory": "16Gi", "hugepages-2Mi": "4300Mi"})),
        definition="cloudnative-pg-clusters.yaml",
    ),
    Sample(
        operator="Crunchy PGO",
        engine="postgresql",
        version="16",
        settings={**_CRUNCHY_SETTINGS, "shared_buffers": "10GB"},
        resource=_resource("postgres-operator.crunchydata.com/v1beta1", "PostgresCluster", "hippo",
                           {**_CRUNCHY_SPEC, "config": {"parameters": {"shared_buffers": "10GB"}}}),
        pod=_pod("hippo-one-abcd-0", _CRUNCHY_LABELS,
                 container("database", "registry.example/crunchy-postgres:ubi9-16.8-2516",
                           command=["patroni", "/etc/patroni"]),
                 container("replication-cert-copy", "registry.example/crunchy-postgres:ubi9-16.8-2516",
                           command=["bash", "-ceu", "--", "monitor() { true; }; monitor"])),
        definition="crunchy-postgresclusters.yaml",
    ),
    Sample(
        operator="Percona Operator for PostgreSQL",
        engine="postgresql",
        version="16",
        settings=_CRUNCHY_SETTINGS,
        resource=_resource("pgv2.percona.com/v2", "PerconaPGCluster", "hippo",
                           {**_CRUNCHY_SPEC, "crVersion": "2.7.0"}),
        pod=_pod("hippo-one-abcd-0", {**_CRUNCHY_LABELS, "pgv2.percona.com/version": "2.7.0"},
                 container("database", "docker.io/percona/percona-distribution-postgresql:16.8",
                           command=["patroni", "/etc/patroni"])),
        definition="percona-perconapgclusters.yaml",
    ),
    Sample(
        operator="Zalando postgres-operator",
        engine="postgresql",
        version="15",
        settings={"shared_buffers": "32MB", "max_connections": "10", "log_statement": "all"},
        resource=_resource("acid.zalan.do/v1", "postgresql", "acid-minimal", {
            "teamId": "acid", "numberOfInstances": 2, "volume": {"size": "1Gi"},
            "postgresql": {"version": "15", "parameters": {"shared_buffers": "32MB", "max_connections": "10",
                                                           "log_statement": "all"}},
            "resources": {"requests": {"cpu": "10m", "memory": "100Mi"},
                          "limits": {"cpu": "500m", "memory": "500Mi", "hugepages-2Mi": "128Mi"}},
        }),
        pod=_pod("acid-minimal-0", {"application": "spilo", "cluster-name": "acid-minimal", "spilo-role": "master"},
                 container("postgres", "ghcr.io/zalando/spilo-16:3.2-p3", limits={"memory": "500Mi"})),
        definition="zalando-postgresqls.yaml",
    ),
    Sample(
        operator="mariadb-operator",
        engine="mariadb",
        version="11.4.5",
        settings={"innodb_buffer_pool_size": "10G", "large_pages": "on", "max_allowed_packet": "256M"},
        resource=_resource("k8s.mariadb.com/v1alpha1", "MariaDB", "shop", {
            "image": "docker-registry1.mariadb.com/library/mariadb:11.4.5",
            "rootPasswordSecretKeyRef": {"name": "mariadb", "key": "root-password"},
            "storage": {"size": "10Gi"},
            "myCnf": "[mariadb]\nlarge-pages\ninnodb_buffer_pool_size=10G  # most of it\nmax_allowed_packet=256M\n"
                     "[client]\nport=1\n",
        }),
        pod=_pod("shop-0", {"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": "shop"},
                 container("mariadb", "docker-registry1.mariadb.com/library/mariadb:11.4.5")),
        definition="mariadb-operator-mariadbs.yaml",
    ),
    Sample(
        operator="Strimzi",
        engine="jvm",
        version=None,
        settings={"Xmx": "6g", "Xms": "6g", "UseG1GC": "on"},
        resource=_resource("kafka.strimzi.io/v1beta2", "KafkaNodePool", "brokers", {
            "replicas": 3, "roles": ["broker"], "storage": {"type": "ephemeral"},
            "jvmOptions": {"-Xmx": "6g", "-Xms": "6g", "-XX": {"UseG1GC": True}},
        }),
        pod=_pod("events-brokers-0",
                 {"strimzi.io/cluster": "events", "strimzi.io/kind": "Kafka", "strimzi.io/name": "events-kafka",
                  "strimzi.io/pool-name": "brokers"},
                 container("kafka", "quay.io/strimzi/kafka:0.45.0-kafka-3.9.0",
                           command=["/opt/kafka/kafka_run.sh"])),
    ),
    Sample(
        operator="MySQL Operator",
        engine="mysql",
        version="9.1.0",
        settings={"innodb_buffer_pool_size": "8G", "large_pages": "ON"},
        resource=_resource("mysql.oracle.com/v2", "InnoDBCluster", "books", {
            "instances": 3, "version": "9.1.0", "secretName": "books",
            "mycnf": "[mysqld]\ninnodb-buffer-pool-size=8G\nlarge-pages=ON\n",
        }),
        pod=_pod("books-0", {"component": "mysqld", "mysql.oracle.com/cluster": "books", "tier": "mysql"},
                 container("sidecar", "container-registry.oracle.com/mysql/community-operator:9.1.0-2.2.2"),
                 container("mysql", "container-registry.oracle.com/mysql/community-server:9.1.0", args=["mysqld"])),
    ),
    Sample(
        operator="Percona Operator for MySQL",
        engine="mysql",
        version="8.0.36",
        settings={"innodb_buffer_pool_size": "4G", "max_connections": "250"},
        resource=_resource("pxc.percona.com/v1", "PerconaXtraDBCluster", "cart", {
            "pxc": {"size": 3, "image": "percona/percona-xtradb-cluster:8.0.36-28.1",
                    "configuration": "[mysqld]\nmax_connections=250\ninnodb_buffer_pool_size=4G\n"},
        }),
        pod=_pod("cart-pxc-0",
                 {"app.kubernetes.io/name": "percona-xtradb-cluster", "app.kubernetes.io/instance": "cart",
                  "app.kubernetes.io/component": "pxc"},
                 container("logs", "percona/percona-xtradb-cluster-operator:1.15.0-logcollector"),
                 container("pxc", "percona/percona-xtradb-cluster:8.0.36-28.1")),
    ),
    Sample(
        operator="Bitpoke MySQL operator",
        engine="mysql",
        version="8.0",
        settings={"innodb_buffer_pool_size": "2G"},
        resource=_resource("mysql.presslabs.org/v1alpha1", "MysqlCluster", "blog", {
            "mysqlVersion": "8.0", "secretName": "blog", "mysqlConf": {"innodb-buffer-pool-size": "2G"},
        }),
        pod=_pod("blog-mysql-0", {"mysql.presslabs.org/cluster": "blog"},
                 container("mysql", "percona:8.0.36")),
    ),
    Sample(
        operator="Oracle Database Operator",
        engine="oracle",
        version="19.3.0.0",
        settings={"sga_target": "3072M", "sga_max_size": "3072M", "pga_aggregate_target": "1024M",
                  "processes": "640"},
        resource=_resource("database.oracle.com/v1alpha1", "SingleInstanceDatabase", "erp", {
            "sid": "ERP", "edition": "enterprise",
            "image": {"pullFrom": "container-registry.oracle.com/database/enterprise:19.3.0.0"},
            "initParams": {"sgaTarget": 3072, "pgaAggregateTarget": 1024, "processes": 640, "cpuCount": 0},
        }),
        pod=_pod("erp-x7k2p", {"app": "erp", "version": "abc"},
                 container("erp", "container-registry.oracle.com/database/enterprise:19.3.0.0")),
    ),
    Sample(
        operator="Redis operator",
        engine="redis",
        version="7.2.4",
        settings={"maxmemory": "3gb"},
        resource=_resource("databases.spotahome.com/v1", "RedisFailover", "cache", {
            "redis": {"replicas": 3, "customConfig": ["maxmemory 3gb", "hz 50"]}, "sentinel": {"replicas": 3},
        }),
        pod=_pod("rfr-cache-0",
                 {"redisfailovers.databases.spotahome.com/name": "cache", "app.kubernetes.io/component": "redis"},
                 container("redis", "redis:7.2.4-alpine", command=["redis-server", "/redis/redis.conf"])),
    ),
    Sample(
        operator="MongoDB operator",
        engine="mongodb",
        version="7.0.12",
        settings={"wiredTigerCacheSizeGB": "2.5"},
        resource=_resource("psmdb.percona.com/v1", "PerconaServerMongoDB", "docs", {
            "image": "percona/percona-server-mongodb:7.0.12-7",
            "replsets": [{"name": "rs0", "size": 3,
                          "configuration": "storage:\n  wiredTiger:\n    engineConfig:\n      cacheSizeGB: 2.5\n"}],
        }),
        pod=_pod("docs-rs0-0",
                 {"app.kubernetes.io/name": "percona-server-mongodb", "app.kubernetes.io/instance": "docs",
                  "app.kubernetes.io/component": "mongod", "app.kubernetes.io/replset": "rs0"},
                 container("mongod", "percona/percona-server-mongodb:7.0.12-7")),
    ),
    Sample(
        operator="MongoDB operator",
        engine="mongodb",
        version="6.0.5",
        settings={"wiredTigerCacheSizeGB": "1"},
        resource=_resource("mongodbcommunity.mongodb.com/v1", "MongoDBCommunity", "wiki", {
            "members": 3, "type": "ReplicaSet", "version": "6.0.5",
            "additionalMongodConfig": {"storage.wiredTiger.engineConfig.cacheSizeGB": 1},
        }),
        pod=_pod("wiki-0", {"app": "wiki-svc"},
                 container("mongod", "quay.io/mongodb/mongodb-community-server:6.0.5-ubi8"),
                 container("mongodb-agent", "quay.io/mongodb/mongodb-agent-ubi:108")),
    ),
    Sample(
        operator="cass-operator",
        engine="jvm",
        version=None,
        settings={"Xmx": "8G", "UseLargePages": "on"},
        resource=_resource("cassandra.datastax.com/v1beta1", "CassandraDatacenter", "dc1", {
            "clusterName": "metrics", "serverType": "cassandra", "serverVersion": "4.1.5", "size": 3,
            "config": {"jvm-server-options": {"max_heap_size": "8G", "additional-jvm-opts": ["-XX:+UseLargePages"]}},
        }),
        pod=_pod("metrics-dc1-r1-sts-0", {"cassandra.datastax.com/datacenter": "dc1"},
                 container("cassandra", "k8ssandra/cass-management-api:4.1.5")),
    ),
)  # fmt: skip
