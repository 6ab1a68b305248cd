"""Fixtures for pytest. A test module or conftest takes one with ``from rig.fixtures import control_plane``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.binaries import NotAvailableError
from rig.control_plane import ControlPlane


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One API server for the whole session; tests use namespaces of their own. SKIP where it is not built."""
    try:
        cluster = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    except NotAvailableError as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster
