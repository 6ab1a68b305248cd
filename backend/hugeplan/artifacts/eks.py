"""EKS: user data that reserves pools before the kubelet starts, Bottlerocket settings, and Karpenter's NodeOverlay."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import (
    Artifact,
    Restart,
    all_of,
    node_checks,
    object_name,
    one_line,
    planned_pools,
    totals_by_size,
    yaml_text,
)
from hugeplan.artifacts.numa_files import script_text
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_kubernetes_bytes

_BOUNDARY = "hugeplan"


def applies(request: PlanRequest) -> bool:
    """Whether the node is, or may be, on EKS."""
    return request.reservations.kubernetes and request.reservations.provider in {None, "eks"}


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The three files, when the plan reserves anything."""
    if not applies(request) or not totals_by_size(plan):
        return
    yield from _user_data(plan)
    yield from _bottlerocket(plan, request)
    yield from _overlay(plan)


def _user_data(plan: Plan) -> Iterable[Artifact]:
    if not planned_pools(plan):
        return
    content = "\n".join(
        [
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
            "",
            f"--{_BOUNDARY}",
            'Content-Type: text/x-shellscript; charset="us-ascii"',
            "",
            script_text(plan).replace("exit $failed\n", "")
            + "# A node that is short of pages must not take pods: it fails here, before the kubelet starts.\n"
            "if [ $failed -ne 0 ]; then shutdown -h now; fi\n",
            f"--{_BOUNDARY}--",
            "",
        ]
    )
    yield Artifact(
        kind="eks_user_data",
        filename="eks-user-data.mime",
        content=content,
        summary="Reserves the pools on each new node before its kubelet starts; a node that gets fewer pages stops.",
        install="# give it as user data of the launch template; new nodes of the group run it",
        verify=all_of(node_checks(plan)),
        rollback="# set the launch template's previous version and replace the nodes",
        restart=Restart.NODES,
        avoid_when="The nodes run Bottlerocket, which has no shell: use its settings.",
    )


def _bottlerocket(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    lines = [f"# Bottlerocket 1.64 and later; pools of {one_line(plan.node)}, reserved at boot"]
    if len(request.node.numa) > 1:
        lines.append("# Counts per NUMA node: left out, Bottlerocket has no setting for them.")
    lines += ["[settings.kernel.hugepages.static]", "essential = true"]
    for size, pages in totals_by_size(plan).items():
        lines += [f'[settings.kernel.hugepages.static."{format_kubernetes_bytes(size)}"]', f'count = "{pages}"']
    yield Artifact(
        kind="bottlerocket_settings",
        filename="bottlerocket.toml",
        media_type="application/toml",
        content="\n".join([*lines, ""]),
        summary="Reserves the pools at boot on Bottlerocket nodes; the boot fails when pages are short.",
        install="# give it as user data, or: apiclient apply < bottlerocket.toml && apiclient reboot",
        verify=all_of(node_checks(plan)),
        rollback='apiclient set --json \'{"settings":{"kernel":{"hugepages":{"static":{}}}}}\'\napiclient reboot',
        restart=Restart.REBOOT,
        avoid_when="Bottlerocket is older than 1.64: use settings.kernel.sysctl with vm/nr_hugepages.",
    )


def _overlay(plan: Plan) -> Iterable[Artifact]:
    name = object_name(plan.node)
    capacity = {
        kubernetes_resource_name(size): format_kubernetes_bytes(size * pages)
        for size, pages in totals_by_size(plan).items()
    }
    document = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {
            "requirements": [{"key": "hugeplan.dev/plan", "operator": "In", "values": [name]}],
            "capacity": capacity,
        },
    }
    yield Artifact(
        kind="karpenter_node_overlay",
        filename="node-overlay.yaml",
        media_type="application/yaml",
        content=yaml_text(
            [
                "Tells Karpenter what its nodes will offer; their user data reserves the pages.",
                f"Put the label hugeplan.dev/plan: {name} into the NodePool's template.",
                "memory: left out, an overlay cannot lower it; set vmMemoryOverheadPercent or leave room in requests.",
            ],
            document,
        ),
        summary="Lets Karpenter make nodes for pods that ask for huge pages.",
        install="kubectl apply -f node-overlay.yaml",
        verify=all_of([f"kubectl get nodeoverlay {name} -o name > /dev/null", *node_checks(plan)]),
        rollback=f"kubectl delete nodeoverlay {name}",
        restart=Restart.NOTHING,
        avoid_when="Karpenter does not make the nodes, or its NodeOverlay feature gate is off.",
    )
