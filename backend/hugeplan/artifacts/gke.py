"""GKE: node system configuration for gcloud, and the same for Terraform. GKE has no counts per NUMA node."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, node_checks, object_name, totals_by_size, yaml_text
from hugeplan.planner.memory.kubernetes import gke_huge_page_cap_bytes
from hugeplan.planner.model import GIB, MIB, Plan, PlanRequest
from hugeplan.planner.pages import page_label

_KEYS = {2 * MIB: "hugepage_size2m", GIB: "hugepage_size1g"}
_TERRAFORM = {2 * MIB: "hugepage_size_2m", GIB: "hugepage_size_1g"}
_AVOID = "The machine type is not allowed 1G pages, or the pools exceed 60 % (below 30 GB) or 80 % of memory."


def _comments(request: PlanRequest, totals: dict[int, int]) -> list[str]:
    lines = []
    others = [page_label(size) for size in totals if size not in _KEYS]
    if others:
        lines.append(f"Pages of {', '.join(others)}: left out, GKE has no field for them.")
    if len(request.node.numa) > 1:
        lines.append("GKE spreads the pages over NUMA nodes by itself: check each node afterwards.")
    if GIB in totals:
        lines.append(
            "1G pages need a machine series that allows them (c2d, c3, c3d, h3, m2, m3, a2, a3, g2 and later)."
        )
    bytes_total = sum(size * pages for size, pages in totals.items())
    if bytes_total > gke_huge_page_cap_bytes(request.node.mem_total_bytes):
        lines.append("GKE refuses this: the pools exceed its share of memory for huge pages.")
    return lines


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """Both files, on GKE or where the provider is not named."""
    totals = totals_by_size(plan)
    fits = {size: pages for size, pages in totals.items() if size in _KEYS}
    reservations = request.reservations
    if not reservations.kubernetes or reservations.provider not in {None, "gke"} or not fits:
        return
    comments = _comments(request, totals)
    pool = object_name(plan.node, longest=40)  # GKE takes no longer one
    config = {_KEYS[size]: pages for size, pages in fits.items()}
    yield Artifact(
        kind="gke_system_config",
        filename="gke-system-config.yaml",
        media_type="application/yaml",
        content=yaml_text(["gcloud --system-config-from-file", *comments], {"linuxConfig": {"hugepageConfig": config}}),
        summary="Makes a node pool whose nodes reserve the pools when they are created.",
        install=f"gcloud container node-pools create {pool} --cluster=$CLUSTER --location=$LOCATION "
        "--system-config-from-file=gke-system-config.yaml",
        verify=all_of(node_checks(plan)),
        rollback=f"gcloud container node-pools delete {pool} --cluster=$CLUSTER --location=$LOCATION",
        restart=Restart.NODES,
        avoid_when=_AVOID,
    )
    lines = [
        f"# {line}"
        for line in ["Fragment of google_container_node_pool: the plan holds nothing else of it.", *comments]
    ]
    lines += [
        f'resource "google_container_node_pool" "{pool}" {{',
        "  node_config {",
        "    linux_node_config {",
        "      hugepages_config {",
        *(f"        {_TERRAFORM[size]} = {pages}" for size, pages in fits.items()),
        "      }",
        "    }",
        "  }",
        "}",
        "",
    ]
    yield Artifact(
        kind="terraform_gke",
        filename="gke-node-pool.tf",
        content="\n".join(lines),
        summary="The same node pool for Terraform.",
        install="# put the block into your google_container_node_pool, then: terraform apply",
        verify=all_of(node_checks(plan)),
        rollback="# remove the hugepages_config block, then: terraform apply",
        restart=Restart.NODES,
        avoid_when=_AVOID,
    )
