"""A PostgreSQL of our own, for the demo and the tests: nothing here is used by a service with a database of its own."""

from hugeplan.embedded.postgres import (
    DEMO_SETTINGS,
    TEST_SETTINGS,
    EmbeddedPostgres,
    EmbeddedPostgresError,
    programs_dir,
    running,
    supervised,
)

__all__ = [
    "DEMO_SETTINGS",
    "TEST_SETTINGS",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "programs_dir",
    "running",
    "supervised",
]
