"""One API server for all tests of this folder."""

from __future__ import annotations

from rig.fixtures import control_plane

__all__ = ["control_plane"]
