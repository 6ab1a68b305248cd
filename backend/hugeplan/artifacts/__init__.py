"""Artifacts: a plan as files that a node or a cluster accepts. One file a renderer, one row a renderer."""

from __future__ import annotations

from hugeplan.artifacts import engine_settings, kernel_command_line, numa_files, pod, sysctl
from hugeplan.artifacts.base import Artifact, Renderer
from hugeplan.planner.model import Plan, PlanRequest

RENDERERS: tuple[Renderer, ...] = (
    sysctl.render,
    kernel_command_line.render,
    numa_files.render,
    pod.render,
    engine_settings.render,
)

__all__ = ["RENDERERS", "Artifact", "render"]


def render(plan: Plan, request: PlanRequest) -> tuple[Artifact, ...]:
    """All files that apply ``plan``, in the order of the table; each kind occurs once."""
    return tuple(artifact for renderer in RENDERERS for artifact in renderer(plan, request))
