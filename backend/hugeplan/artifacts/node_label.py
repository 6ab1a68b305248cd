"""A node label, and the NodeFeatureRule that sets it where the pools stand, so that pods find ready nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, object_name, totals_by_size, yaml_text
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_kubernetes_bytes

LABEL = "hugeplan.dev/pool-"


def labels(plan: Plan) -> dict[str, str]:
    """``hugeplan.dev/pool-2Mi: "512"`` per page size."""
    return {f"{LABEL}{format_kubernetes_bytes(size)}": str(pages) for size, pages in totals_by_size(plan).items()}


def _escaped(name: str) -> str:
    """A label's name in a jsonpath, where a dot would be a step."""
    return name.replace(".", "\\.")


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """Both, on Kubernetes nodes whose plan reserves pages."""
    if not request.reservations.kubernetes or not totals_by_size(plan):
        return
    wanted = labels(plan)
    node = shlex.quote(plan.node)
    words = " ".join(f"{name}={value}" for name, value in wanted.items())
    checks = [
        f"test \"$(kubectl get node {node} -o jsonpath='{{.metadata.labels.{_escaped(name)}}}')\" = {value}"
        for name, value in wanted.items()
    ]
    yield Artifact(
        kind="node_label",
        filename="node-label.sh",
        media_type="text/x-shellscript",
        content=f"#!/bin/sh\nset -eu\nkubectl label node {node} {words} --overwrite\n",
        summary="Labels the node with its planned pools, for nodeSelector and affinity.",
        install="sh node-label.sh",
        verify=all_of(checks),
        rollback=f"kubectl label node {node} {' '.join(f'{name}-' for name in wanted)}",
        avoid_when="Node Feature Discovery runs in the cluster: its rule checks the pools instead of trusting a label.",
    )
    rule = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": {"name": object_name(plan.node)},
        "spec": {
            "rules": [
                {
                    "name": f"pool-{format_kubernetes_bytes(size)}",
                    "labels": {f"{LABEL}{format_kubernetes_bytes(size)}": str(pages)},
                    "matchFeatures": [
                        {
                            "feature": "system.name",
                            "matchExpressions": {"nodename": {"op": "In", "value": [plan.node]}},
                        },
                        {
                            "feature": "memory.hugepages",
                            "matchExpressions": {
                                kubernetes_resource_name(size): {"op": "Gt", "value": [str(pages - 1)]}
                            },
                        },
                    ],
                }
                for size, pages in totals_by_size(plan).items()
            ]
        },
    }
    name = rule["metadata"]["name"]  # type: ignore[index]
    yield Artifact(
        kind="node_feature_rule",
        filename="node-feature-rule.yaml",
        media_type="application/yaml",
        content=yaml_text(
            [
                f"Labels {plan.node} while it has at least its planned pools.",
                "Add the names of nodes whose plan has the same counts to each nodename: of several rules that match,",
                "the last one says the label's value.",
            ],
            rule,
        ),
        summary="Labels the node while its pools are at least the planned ones.",
        install="kubectl apply -f node-feature-rule.yaml",
        verify=all_of(checks),
        rollback=f"kubectl delete nodefeaturerule {name}",
        restart=Restart.NOTHING,
        avoid_when="Node Feature Discovery is not installed.",
    )
