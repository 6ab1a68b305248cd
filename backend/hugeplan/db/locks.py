"""The advisory locks of the service, each with a number of its own: whoever takes one waits for nobody else's work."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Final


@unique
class AdvisoryLock(IntEnum):
    """What is done by one process at a time, over all replicas."""

    MIGRATION = 4_811_252_263_001
    MAINTENANCE = 4_811_252_263_002
    EVENTS = 4_811_252_263_003
    BOOTSTRAP = 4_811_252_263_004
    SEALING = 4_811_252_263_005


MACHINE_SEED: Final = 4_811_252_263
"""Seed of the hash that makes the lock of a machine from its id: any number, so it may meet another in 2^64."""
