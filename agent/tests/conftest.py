"""Shared fixtures: captured machines, and a server on loopback that misbehaves on order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hugeplan_agent.host import Host
from tests.misbehaving_server import MisbehavingServer
from tests.tree import expand

FIXTURES = Path(__file__).parent / "fixtures"

# How long a busy machine takes to make an input says nothing about the product.
settings.register_profile("hugeplan", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hugeplan")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Host]:
    """A function that lays out a captured machine and answers its Host."""

    def lay_out(name: str) -> Host:
        folder = tmp_path / name
        expand((FIXTURES / f"{name}.tree").read_text(), folder)
        return Host(folder)

    return lay_out


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running
