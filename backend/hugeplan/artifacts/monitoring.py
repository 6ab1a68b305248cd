"""Prometheus alert rules and a Grafana dashboard: the pool short, idle, exceeded, and what no metric shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from hugeplan.artifacts.base import (
    Artifact,
    as_owner_of,
    object_name,
    planned_pools,
    put,
    put_back,
    totals_by_size,
    yaml_text,
)
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import kubernetes_resource_name, page_label

_AS_OWNER = as_owner_of("/etc/prometheus/rules")


def _quoted(text: str) -> str:
    """``text`` inside a PromQL string in double quotes; what is not printable ASCII becomes a question mark."""
    return re.sub(r"[^\x20-\x7e]", "?", text).replace("\\", "\\\\").replace('"', '\\"')


def _matcher(plan: Plan) -> str:
    """instance= of node_exporter: the node's name with any port."""
    name = re.escape(re.sub(r"[^\x20-\x7e]", "?", plan.node)).replace("\\ ", " ").replace("\\-", "-")
    return f'instance=~"{_quoted(name)}(:[0-9]+)?"'


def _alert(name: str, expression: str, when: tuple[str, str], summary: str, description: str) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "for": when[0],
        "labels": {"severity": when[1]},
        "annotations": {"summary": summary, "description": description},
    }


def _rules(plan: Plan, request: PlanRequest) -> tuple[list[dict[str, Any]], list[str]]:
    where = _matcher(plan)
    totals = totals_by_size(plan)
    default = request.node.default_huge_page_bytes
    rules: list[dict[str, Any]] = []
    comments: list[str] = []
    fix = "hugeplan verify says which NUMA node is short; fragmentation calls for a reboot or compaction."
    if default in totals:
        total = f"node_memory_HugePages_Total{{{where}}}"
        free, held = f"node_memory_HugePages_Free{{{where}}}", f"node_memory_HugePages_Rsvd{{{where}}}"
        rules += [
            _alert(
                "HugePagePoolShort",
                f"{total} < {totals[default]}",
                ("5m", "critical"),
                "The pool has fewer pages than planned",
                f"{totals[default]:,} pages of {page_label(default)} are planned. {fix}",
            ),
            _alert(
                "HugePagePoolLargerThanPlanned",
                f"{total} > {totals[default]}",
                ("15m", "warning"),
                "The pool has more pages than planned",
                "Somebody else reserves pages: they are lost to everybody.",
            ),
            _alert(
                "HugePagePoolIdle",
                f"({free} - {held}) / {total} > 0.5",
                ("1d", "warning"),
                "More than half of the pool is neither used nor reserved",
                "The engine fell back to base pages or does not run: check huge_pages_status or its log.",
            ),
            _alert(
                "HugePageSurplus",
                f"node_memory_HugePages_Surp{{{where}}} > 0",
                ("15m", "warning"),
                "Pages beyond the pool are in use",
                "nr_overcommit_hugepages lets an engine take memory from the others.",
            ),
        ]
    others = [size for size in totals if size != default]
    if others:
        sizes = ", ".join(page_label(size) for size in others)
        comments.append(f"node_exporter has no metric for pools of {sizes}: only kube-state-metrics sees them.")
    if request.reservations.kubernetes:
        for size, pages in totals.items():
            resource = re.sub(r"[^a-zA-Z0-9_]", "_", kubernetes_resource_name(size))
            node = _quoted(plan.node)
            rules.append(
                _alert(
                    "HugePageCapacityNotAsPlanned",
                    f'kube_node_status_capacity{{node="{node}",resource="{resource}",unit="byte"}} != {pages * size}',
                    ("10m", "critical"),
                    f"The cluster sees another capacity of {resource} than planned",
                    "The kubelet reads pools at its start only: restart it after a change.",
                )
            )
    tables = f"node_memory_PageTables_bytes{{{where}}} / node_memory_MemTotal_bytes{{{where}}} > 0.05"
    rules.append(
        _alert(
            "PageTablesLarge",
            tables,
            ("30m", "warning"),
            "Page tables take more than 5 % of memory",
            "Many processes map a large segment with base pages: an engine has fallen back.",
        )
    )
    return rules, comments


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """Both files, when the plan reserves anything."""
    if not totals_by_size(plan) or not planned_pools(plan):
        return
    rules, comments = _rules(plan, request)
    # One Prometheus has the files of many nodes.
    name = object_name(plan.node)
    path = f"/etc/prometheus/rules/{name}.yaml"
    content = yaml_text(
        [f"Alert rules for the plan of {plan.node}; instance and node are taken to be its name.", *comments],
        {"groups": [{"name": name, "rules": rules}]},
    )
    yield Artifact(
        kind="prometheus_rules",
        filename="hugeplan-alerts.yaml",
        path=path,
        media_type="application/yaml",
        content=content,
        summary="Alerts when the pool is short of the plan, idle, exceeded, or unknown to the cluster.",
        install=f"{put('hugeplan-alerts.yaml', path, content, _AS_OWNER)} &&\nsystemctl kill --signal=HUP prometheus",
        verify=f"{_AS_OWNER} run promtool check rules {path}",
        rollback=put_back(path, content, "systemctl kill --signal=HUP prometheus", user=_AS_OWNER),
        avoid_when="The Prometheus Operator is used: put the groups into a PrometheusRule.",
    )
    yield _dashboard(plan)


def _dashboard(plan: Plan) -> Artifact:
    where = _matcher(plan)
    panels = [
        (
            "Pool of the default size (pages)",
            "none",
            {
                "total": f"node_memory_HugePages_Total{{{where}}}",
                "free": f"node_memory_HugePages_Free{{{where}}}",
                "reserved": f"node_memory_HugePages_Rsvd{{{where}}}",
                "surplus": f"node_memory_HugePages_Surp{{{where}}}",
            },
        ),
        (
            "Available memory",
            "bytes",
            {
                "available": f"node_memory_MemAvailable_bytes{{{where}}}",
                "total": f"node_memory_MemTotal_bytes{{{where}}}",
            },
        ),
        ("Page tables", "bytes", {"page tables": f"node_memory_PageTables_bytes{{{where}}}"}),
        ("Transparent huge pages", "bytes", {"anonymous": f"node_memory_AnonHugePages_bytes{{{where}}}"}),
    ]
    planned = {page_label(size): pages for size, pages in totals_by_size(plan).items()}
    text = ", ".join(f"{pages:,} pages of {label}" for label, pages in planned.items())
    dashboard = {
        "title": f"Huge pages of {plan.node}",
        "uid": None,
        "schemaVersion": 39,
        "tags": ["hugeplan"],
        "description": f"Planned: {text}",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [
            {
                "id": number,
                "title": title,
                "type": "timeseries",
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
                "gridPos": {"h": 8, "w": 12, "x": 12 * ((number - 1) % 2), "y": 8 * ((number - 1) // 2)},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(65 + i), "expr": expression, "legendFormat": legend}
                    for i, (legend, expression) in enumerate(targets.items())
                ],
            }
            for number, (title, unit, targets) in enumerate(panels, start=1)
        ],
    }
    return Artifact(
        kind="grafana_dashboard",
        filename="hugeplan-dashboard.json",
        media_type="application/json",
        content=json.dumps(dashboard, indent=2, ensure_ascii=True) + "\n",
        summary="Shows pool, available memory, page tables and transparent huge pages of the node over time.",
        install="# Grafana: Dashboards, New, Import; or put it into a provisioned folder",
        verify="# the panel of the pool shows the planned total: " + text,
        rollback="# delete the dashboard in Grafana",
        avoid_when="The pools are of another size than the default: node_exporter does not export them.",
    )
