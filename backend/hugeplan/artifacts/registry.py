"""The table of artifacts: one row per renderer, and the recommended path of each platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Final

from hugeplan.artifacts import (
    aks,
    ansible,
    cloud_config,
    eks,
    gke,
    installer,
    kernel_command_line,
    kubelet_configuration,
    memlock,
    monitoring,
    node_label,
    numa_files,
    openshift,
    operators,
    outside,
    pod,
    sysctl,
    systemd_boot,
    systemd_unit,
    thp,
    tuned_profile,
)
from hugeplan.artifacts.base import Artifact, planned_pools, require_sound, with_pool, with_warning
from hugeplan.artifacts.engines import db2, jvm, my_cnf, oracle, other, postgresql_conf, redis_conf
from hugeplan.artifacts.engines.common import settings_to_write
from hugeplan.artifacts.kernel_command_line import alone
from hugeplan.artifacts.order import in_order, joined, without_file
from hugeplan.artifacts.owners import Needs, needs, objects, without_room
from hugeplan.artifacts.provenance import of_one_plan
from hugeplan.planner.demand import counted_settings
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.recognition.operators import Owner


@dataclass(frozen=True, slots=True)
class Row:
    """A renderer and the kinds that it renders; a kind of several instances ends with the instance's name.

    ``patches``: it also takes what the pods of each object need.
    """

    render: Callable[..., Iterable[Artifact]]
    kinds: tuple[str, ...]
    patches: bool = False


ROWS: Final = (
    Row(kernel_command_line.render, ("kernel_command_line",)),
    Row(systemd_boot.render, ("systemd_boot",)),
    Row(sysctl.render, ("sysctl",)),
    Row(numa_files.render, ("numa_script", "tmpfiles")),
    Row(systemd_unit.render, ("systemd_unit",)),
    Row(thp.render, ("thp_tmpfiles",)),
    Row(memlock.render, ("limits_d", "memlock_dropin")),
    Row(tuned_profile.render, ("tuned_profile",)),
    Row(cloud_config.render, ("cloud_config",)),
    Row(ansible.render, ("ansible_playbook",)),
    Row(kubelet_configuration.render, ("kubelet_configuration",)),
    Row(pod.render, ("pod", "statefulset_patch", pod.SNIPPET), patches=True),
    Row(node_label.render, ("node_label", "node_feature_rule")),
    Row(openshift.render, ("performance_profile", "openshift_tuned", "machine_config")),
    Row(gke.render, ("gke_system_config", "terraform_gke")),
    Row(eks.render, ("eks_user_data", "bottlerocket_settings", "karpenter_node_overlay")),
    Row(aks.render, ("aks_daemonset", "aks_node_config")),
    Row(monitoring.render, ("prometheus_rules", "grafana_dashboard")),
    Row(postgresql_conf.render, ("postgresql_conf", "postgresql_conf_snippet")),
    Row(my_cnf.render, ("my_cnf", "my_cnf_snippet")),
    Row(my_cnf.render_mariadb, ("mariadb_cnf", "mariadb_cnf_snippet")),
    Row(oracle.render, ("oracle_parameters",)),
    Row(db2.render, ("db2_settings",)),
    Row(jvm.render, ("jvm_options",)),
    Row(redis_conf.render, ("redis_conf", "redis_conf_snippet")),
    Row(other.render, ("engine_settings",)),
    *(Row(render, (kind,), patches=True) for kind, render in operators.renderers().items()),
)
KINDS: Final = (*(kind for row in ROWS for kind in row.kinds), installer.KIND)
#: The first kinds of rows whose files are documents, which take long to write: not rendered for :func:`files_key`.
_DOCUMENTS: Final = {
    "cloud_config", "ansible_playbook", "kubelet_configuration", "pod", "node_label", "performance_profile",
    "eks_user_data", "aks_daemonset", "prometheus_rules", *operators.renderers(),
}  # fmt: skip


class Platform(StrEnum):
    """Where the node runs; it decides the recommended path."""

    LINUX = "linux"
    SYSTEMD_BOOT = "systemd-boot"
    CLOUD_IMAGE = "cloud-image"
    KUBEADM = "kubeadm"
    OPENSHIFT = "openshift"
    GKE = "gke"
    EKS = "eks"
    AKS = "aks"
    BOTTLEROCKET = "bottlerocket"
    KARPENTER = "karpenter"
    ANSIBLE = "ansible"
    TERRAFORM = "terraform"


_ENGINES: Final = (
    "thp_tmpfiles",
    "limits_d",
    "postgresql_conf",
    "my_cnf",
    "mariadb_cnf",
    "oracle_parameters",
    "db2_settings",
    "jvm_options",
    "redis_conf",
    "engine_settings",
)
#: In a pod the node's files of a login or a service do not act.
_POD: Final = (
    "statefulset_patch",
    *operators.renderers(),
    *(kind for kind in _ENGINES if kind not in {"limits_d", "thp_tmpfiles"}),
)
_AT_RUN_TIME: Final = ("numa_script", "systemd_unit")
#: The first of them that is recommended has the last word at boot; the script, where no pages are left to reserve.
_AT_BOOT: Final = ("kernel_command_line", "systemd_boot", "systemd_unit", "numa_script")
#: The recommended path of each platform, in order; kinds that a plan does not have are skipped.
PATHS: Final[Mapping[Platform, Mapping[str, Sequence[str]]]] = {
    Platform.LINUX: {
        "boot": ("kernel_command_line", *_ENGINES, "prometheus_rules"),
        "runtime": (*_AT_RUN_TIME, *_ENGINES, "prometheus_rules"),
    },
    Platform.SYSTEMD_BOOT: {
        "boot": ("systemd_boot", *_ENGINES, "prometheus_rules"),
        "runtime": (*_AT_RUN_TIME, *_ENGINES, "prometheus_rules"),
    },
    Platform.CLOUD_IMAGE: {
        "boot": ("cloud_config", *_ENGINES, "prometheus_rules"),
        "runtime": (*_AT_RUN_TIME, *_ENGINES, "prometheus_rules"),
    },
    Platform.KUBEADM: {
        "boot": ("kernel_command_line", "kubelet_configuration", *_POD),
        "runtime": (*_AT_RUN_TIME, "kubelet_configuration", *_POD),
    },
    Platform.OPENSHIFT: {"boot": ("performance_profile", *_POD), "runtime": ("performance_profile", *_POD)},
    Platform.GKE: {"boot": ("gke_system_config", *_POD), "runtime": ("gke_system_config", *_POD)},
    Platform.EKS: {"boot": ("eks_user_data", *_POD), "runtime": ("eks_user_data", *_POD)},
    Platform.AKS: {"boot": ("aks_daemonset", *_POD), "runtime": ("aks_daemonset", *_POD)},
    Platform.BOTTLEROCKET: {"boot": ("bottlerocket_settings", *_POD), "runtime": ("bottlerocket_settings", *_POD)},
    Platform.KARPENTER: {
        "boot": ("eks_user_data", "karpenter_node_overlay", *_POD),
        "runtime": ("eks_user_data", "karpenter_node_overlay", *_POD),
    },
    Platform.ANSIBLE: {"boot": ("ansible_playbook", *_ENGINES), "runtime": ("ansible_playbook", *_ENGINES)},
    Platform.TERRAFORM: {"boot": ("terraform_gke", *_POD), "runtime": ("terraform_gke", *_POD)},
}
_KUBERNETES: Final = frozenset(
    {
        Platform.KUBEADM,
        Platform.OPENSHIFT,
        Platform.GKE,
        Platform.EKS,
        Platform.AKS,
        Platform.BOTTLEROCKET,
        Platform.KARPENTER,
        Platform.TERRAFORM,
    }
)


def platform_of(request: PlanRequest) -> Platform:
    """The platform that the request tells: a provider, Kubernetes, or plain Linux."""
    if not request.reservations.kubernetes:
        return Platform.LINUX
    provider = request.reservations.provider
    return Platform(provider) if provider is not None else Platform.KUBEADM


def withheld(
    plan: Plan, request: PlanRequest | None = None, of_objects: Mapping[Owner, Needs] | None = None
) -> str | None:
    """Why no file is handed out without force: the plan is not known to fit the node, its pools to hold what the
    pods of an object there are to ask for, or the node to have room for these pods. None where all is known.
    """
    if plan.fits:
        if request is None:
            return None
        why = without_room(plan, request, of_objects or objects([(plan, request)]))
        why = why or pod.never_scheduled(plan, request)
        return why and f"{why}, so no file is handed out without force."
    reason = "" if plan.shortfall is None else f" {plan.shortfall.reason}"
    what = "The plan does not fit" if plan.fits is False else "Whether the plan fits is not known"
    return f"{what}, so no file is handed out without force.{reason}"


def render(
    plan: Plan,
    request: PlanRequest,
    platform: Platform | None = None,
    *,
    force: bool = False,
    of_objects: Mapping[Owner, Needs] | None = None,
) -> tuple[Artifact, ...]:
    """All files that apply ``plan``: the recommended path of the platform first, in its order, then the others.

    Each kind occurs once. ``platform`` None is told by the request. A platform of Kubernetes on a node without it, or
    one that contradicts the provider, is a PlannerError. A plan that is not known to fit has no files without
    ``force``; with it each starts with a warning. A plan whose names :func:`outside.refused` refuses has none at all.
    ``of_objects``: what the pods of each object need on all nodes; None: on this one.
    """
    where = platform_of(request) if platform is None else platform
    _require_possible(where, request)
    if (withheld(plan, request, of_objects) is not None and not force) or outside.refused(plan, request) is not None:
        return ()
    if where is Platform.ANSIBLE and not outside.is_plain_host(plan.node):
        raise PlannerError(
            "node.name", plan.node, "a host's own name: Ansible takes this one for a group or for itself"
        )
    plan, request = outside.tamed(plan, request)
    needed = objects([(plan, request)]) | {**(of_objects or {})}
    rendered = [
        artifact
        for row in ROWS
        for artifact in (row.render(plan, request, needed) if row.patches else row.render(plan, request))
    ]
    rendered = of_one_plan(rendered)
    playbook = {a.kind: a for a in ansible.render(plan, request, {a.kind: a for a in rendered})}
    rendered = [playbook.get(a.kind, a) for a in rendered]
    if installer.is_needed(rendered):
        rendered.append(installer.render())
    if not plan.fits:
        rendered = [with_warning(artifact, plan.headline) for artifact in rendered]
    require_sound(rendered)
    path = PATHS[where][request.policy.reserve_at if kernel_command_line.has_words(plan, request) else "runtime"]
    if not kernel_command_line.has_pages(plan):  # a unit that writes 0 would write it under a later plan, too
        path = [kind for kind in path if kind != "systemd_unit"]
    recommended = [a for kind in path for a in rendered if a.kind == kind or a.kind.startswith(f"{kind}-")]
    speaks = next((kind for kind in _AT_BOOT if kind in path), None)
    recommended = [alone(a, a.path or systemd_boot.CMDLINE)[1] if a.kind == speaks else a for a in recommended]
    recommended = in_order(recommended)
    if installer.is_needed(recommended):
        recommended.insert(0, next(a for a in rendered if a.kind == installer.KIND))
    steps = {artifact.kind: number for number, artifact in enumerate(recommended, start=1)}
    first = [replace(a, recommended=True, step=steps[a.kind]) for a in recommended]
    first, others = joined(first, [a for a in rendered if a.kind not in steps])
    return tuple(without_file([*first, *others], plan, request))


def _require_possible(platform: Platform, request: PlanRequest) -> None:
    reservations = request.reservations
    if platform in _KUBERNETES and not reservations.kubernetes:
        raise PlannerError(
            "platform", platform.value, "linux, systemd-boot, cloud-image or ansible: no Kubernetes node"
        )
    wanted = {
        Platform.GKE: "gke",
        Platform.TERRAFORM: "gke",
        Platform.EKS: "eks",
        Platform.BOTTLEROCKET: "eks",
        Platform.KARPENTER: "eks",
        Platform.AKS: "aks",
    }.get(platform)
    if wanted is not None and reservations.provider not in {None, wanted}:
        raise PlannerError("platform", platform.value, f"a platform of the node's provider {reservations.provider}")


def files_key(plan: Plan, request: PlanRequest) -> str | None:
    """Equal for nodes that get the same files but for their names; None where the plan does not fit, so has none.

    Documents are not rendered: what they are made of, beside what the other files say, stands for them.
    """
    if plan.fits is False:
        return None
    plan, request = replace(plan, node="node"), replace(request, node=replace(request.node, name="node"))
    node, given = request.node, request.reservations
    read: list[object] = [file for row in ROWS if row.kinds[0] not in _DOCUMENTS for file in row.render(plan, request)]
    read += [plan.fits, given.provider, given.kubernetes, request.policy.reserve_at, len(node.numa), node.thp_enabled]
    read += [node.base_page_bytes, node.default_huge_page_bytes]
    if given.kubernetes and planned_pools(plan):
        read += kubelet_configuration.configuration(plan, request) if kubelet_configuration.is_ours(request) else ()
        read += [
            (one.name, one.engine, one.stateful_set, one.container, one.operator_object, one.pod_hugepages_limit_bytes,
             pod.resources(needs(plan, one, planned)), settings_to_write(one, planned), counted_settings(one))
            for one, planned in with_pool(plan, request)
        ]  # fmt: skip
    return sha256(repr(read).encode()).hexdigest()
