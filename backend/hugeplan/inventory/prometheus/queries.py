"""What is asked of Prometheus. Names of metrics are those of node_exporter, kube-state-metrics and the exporters."""

from __future__ import annotations

import re
from typing import Final

#: kube-state-metrics; resources are written with underscores: ``hugepages_2Mi``.
NODE_INFO: Final = "kube_node_info"
CAPACITY: Final = 'kube_node_status_capacity{resource=~"memory|cpu|pods|hugepages_.*"}'
ALLOCATABLE: Final = 'kube_node_status_allocatable{resource=~"memory|hugepages_.*"}'
REQUESTS: Final = 'kube_pod_container_resource_requests{resource=~"memory|hugepages_.*"}'
LIMITS: Final = 'kube_pod_container_resource_limits{resource=~"memory|hugepages_.*"}'
CONTAINERS: Final = "kube_pod_container_info"
PHASES: Final = "kube_pod_status_phase == 1"
PODS: Final = "kube_pod_info"

#: node_exporter.
UNAME: Final = "node_uname_info"
MEMINFO: Final = (
    '{__name__=~"node_memory_(MemTotal|SUnreclaim|KernelStack|PageTables|AnonHugePages|Hugepagesize|MemAvailable)_bytes'
    '|node_memory_HugePages_(Total|Free|Rsvd|Surp)"}'
)
NUMA: Final = '{__name__=~"node_memory_numa_(MemTotal|HugePages_Total|HugePages_Free)"}'
CPUS: Final = 'count by (cluster, instance, job) (node_cpu_seconds_total{mode="idle"})'

#: cAdvisor, per pod and job: the largest working set of each hour, which is what evictions look at. Any program that is
#: scraped may say one: of a container the largest counts, and none that is below zero, no number or without end.
POD_USE: Final = (
    "clamp_max(sum by (cluster, namespace, pod, job) (max by (cluster, namespace, pod, job, container)"
    ' (max_over_time(container_memory_working_set_bytes{container!="",container!="POD"}[1h]) >= 0)), 2^60)'
)
#: A host without kube-state-metrics: the most of each hour that was in use and is not a huge page pool.
HOST_USE: Final = (
    "max_over_time(node_memory_MemTotal_bytes[1h]) - min_over_time(node_memory_MemAvailable_bytes[1h])"
    " - max_over_time(node_memory_HugePages_Total[1h]) * max_over_time(node_memory_Hugepagesize_bytes[1h])"
)

_WINDOW: Final = re.compile(r"\[\d+h\]")


def over_hours(expression: str, hours: int) -> str:
    """An expression that takes the most of each hour, for so many hours."""
    return _WINDOW.sub(f"[{hours}h]", expression)


#: Settings that database exporters report: (metric, engine, setting, suffix to write behind the number).
SETTINGS: Final = (
    ("pg_settings_shared_buffers_bytes", "postgresql", "shared_buffers", "B"),
    ("pg_settings_max_connections", "postgresql", "max_connections", ""),
    ("pg_settings_max_worker_processes", "postgresql", "max_worker_processes", ""),
    ("pg_settings_max_wal_senders", "postgresql", "max_wal_senders", ""),
    ("pg_settings_max_locks_per_transaction", "postgresql", "max_locks_per_transaction", ""),
    ("pg_settings_max_prepared_transactions", "postgresql", "max_prepared_transactions", ""),
    ("pg_settings_wal_buffers_bytes", "postgresql", "wal_buffers", "B"),
    ("mysql_global_variables_innodb_buffer_pool_size", "mysql", "innodb_buffer_pool_size", ""),
    ("mysql_global_variables_max_connections", "mysql", "max_connections", ""),
    ("mysql_global_variables_large_pages", "mysql", "large_pages", ""),
    ("redis_config_maxmemory", "redis", "maxmemory", ""),
)

#: The labels that name what a series tells of: without one of them it is not read. Any program may leave labels out,
#: and what has no name is not one thing.
NAMED_BY: Final = {
    **dict.fromkeys((NODE_INFO, CAPACITY, ALLOCATABLE), ("node",)),
    **dict.fromkeys((CONTAINERS, REQUESTS, LIMITS), ("namespace", "pod", "container")),
    **dict.fromkeys((PHASES, POD_USE), ("namespace", "pod")),
    PODS: ("namespace", "pod", "node"),  # a pod that waits for a node has none
    **dict.fromkeys((UNAME, MEMINFO, CPUS, HOST_USE), ("instance",)),
    NUMA: ("instance", "node"),
}


def named_by(expression: str) -> tuple[str, ...]:
    """These of an expression, over whatever time."""
    return NAMED_BY.get(_WINDOW.sub("[1h]", expression), ())


#: The labels that are read: of each series the others are dropped.
_READ: Final = (
    "__name__ cluster container exported_namespace exported_pod image image_spec instance internal_ip job"
    " kernel_version kubelet_version machine namespace node nodename phase pod provider_id release resource system_uuid"
)
LABELS: Final = {label: label for label in _READ.split()}

#: Of those the names of Kubernetes, and how long it lets them be: a series with a longer one is none of its objects'.
NAMES: Final = frozenset({"container", "exported_namespace", "exported_pod", "namespace", "node", "pod"})
MOST_OF_A_NAME: Final = 253
