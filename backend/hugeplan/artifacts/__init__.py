"""Artifacts: a plan as files that a node or a cluster accepts. One file a renderer, one row of the table a renderer."""

from __future__ import annotations

from hugeplan.artifacts.base import Artifact, Renderer, Restart
from hugeplan.artifacts.outside import refused
from hugeplan.artifacts.registry import KINDS, PATHS, ROWS, Platform, files_key, platform_of, render, withheld

__all__ = [
    "KINDS",
    "PATHS",
    "ROWS",
    "Artifact",
    "Platform",
    "Renderer",
    "Restart",
    "files_key",
    "platform_of",
    "refused",
    "render",
    "withheld",
]
