"""OpenShift: a PerformanceProfile patch, a Tuned object, and a MachineConfig, each a way to the same command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hugeplan.artifacts.base import Artifact, Restart, all_of, node_checks, object_name, pages_by_size, yaml_text
from hugeplan.artifacts.kernel_command_line import has_pages, parameters
from hugeplan.artifacts.owners import saved_once
from hugeplan.artifacts.tuned_profile import profile_text
from hugeplan.planner.model import KIB, Plan, PlanRequest
from hugeplan.planner.pages import page_label


def _size(page_bytes: int) -> str:
    """PerformanceProfile's spelling: 2M, 1G, but 64k."""
    return page_label(page_bytes).replace("K", "k")


def _profile(plan: Plan, request: PlanRequest) -> dict[str, Any]:
    several = len(request.node.numa) > 1
    pages = [
        {"size": _size(size), "count": count, **({"node": numa} if several else {})}
        for size, by_node in pages_by_size(plan).items()
        for numa, count in by_node.items()
        if count
    ]
    spec: dict[str, Any] = {
        "hugepages": {"defaultHugepagesSize": _size(request.node.default_huge_page_bytes), "pages": pages}
    }
    if request.node.base_page_bytes == 64 * KIB:
        spec["kernelPageSize"] = "64k"
    return {
        "apiVersion": "performance.openshift.io/v2",
        "kind": "PerformanceProfile",
        "metadata": {"name": object_name(plan.node)},
        "spec": spec,
    }


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The three objects, on Kubernetes nodes without another provider, when the plan reserves anything."""
    if not request.reservations.kubernetes or request.reservations.provider is not None or not has_pages(plan):
        return
    profile = _profile(plan, request)
    name = profile["metadata"]["name"]
    verify, ours = all_of(node_checks(plan)), {"spec": dict.fromkeys(profile["spec"])}
    save, before = saved_once(f"oc get performanceprofile {name}", ours, name, nulls=True)
    yield Artifact(
        kind="performance_profile",
        filename="performance-profile-patch.yaml",
        media_type="application/yaml",
        content=yaml_text(
            [
                "Merge patch for the PerformanceProfile of the node's machine config pool.",
                "spec.cpu, spec.nodeSelector and spec.numa: left out, the plan does "
                "not hold them; the profile has them.",
            ],
            profile,
        ),
        summary="Lets the Node Tuning Operator reserve the pools: units per NUMA node, the rest on the command line.",
        install=f"{save}oc patch performanceprofile {name} --type merge --patch-file performance-profile-patch.yaml",
        verify=verify,
        rollback=f"oc patch performanceprofile {name} --type merge --patch-file {before} && rm {before}",
        restart=Restart.REBOOT,
        avoid_when="There is no PerformanceProfile for the pool, or its name is another: put it in place of ours.",
    )
    yield from _tuned(plan, request, name, verify)
    yield from _machine_config(plan, request, name, verify)


def _tuned(plan: Plan, request: PlanRequest, name: str, verify: str) -> Iterable[Artifact]:
    document = {
        "apiVersion": "tuned.openshift.io/v1",
        "kind": "Tuned",
        "metadata": {"name": name, "namespace": "openshift-cluster-node-tuning-operator"},
        "spec": {
            "profile": [{"name": name, "data": profile_text(plan, request)}],
            "recommend": [
                {
                    "machineConfigLabels": {"machineconfiguration.openshift.io/role": name},
                    "priority": 20,
                    "profile": name,
                }
            ],
        },
    }
    yield Artifact(
        kind="openshift_tuned",
        filename="openshift-tuned.yaml",
        media_type="application/yaml",
        content=yaml_text(
            [
                "The machine config pool's role is not in the plan: give the pool's MachineConfigs the label below.",
            ],
            document,
        ),
        summary="Reserves the pools through a TuneD profile on a machine config pool.",
        install="oc apply -f openshift-tuned.yaml",
        verify=verify,
        rollback=f"oc delete tuned -n openshift-cluster-node-tuning-operator {name}",
        restart=Restart.REBOOT,
        avoid_when="A PerformanceProfile manages the same nodes.",
    )


def _machine_config(plan: Plan, request: PlanRequest, name: str, verify: str) -> Iterable[Artifact]:
    document = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": f"60-{name}", "labels": {"machineconfiguration.openshift.io/role": name}},
        "spec": {"kernelArguments": [parameters(plan, request)]},
    }
    yield Artifact(
        kind="machine_config",
        filename="machine-config.yaml",
        media_type="application/yaml",
        content=yaml_text(
            ["All words stand in one element, because their order counts.", "The pool's role is not in the plan."],
            document,
        ),
        summary="Writes the command line of a machine config pool's nodes, which reboot one after the other.",
        install="oc apply -f machine-config.yaml",
        verify=verify,
        rollback=f"oc delete machineconfig 60-{name}",
        restart=Restart.REBOOT,
        avoid_when="A PerformanceProfile or a Tuned object writes huge page words for the same nodes.",
    )
