"""Which releases of PostgreSQL the service runs on (docs/support.md), and how it says so."""

from __future__ import annotations

from typing import Final

OLDEST: Final = 16
#: The newest that the tests run on. A newer one is used, and said to be untried.
NEWEST_TESTED: Final = 18


class ServerReleaseError(Exception):
    """The server is older than the service can use. One sentence."""


def require_supported(server_version: int) -> str | None:
    """Judge a server by libpq's number (180004 is 18.4): None, or a remark on one that is newer than the tests'.

    Raises ServerReleaseError for one that is too old.
    """
    major = server_version // 10000
    if major < OLDEST:
        raise ServerReleaseError(
            f"the database is PostgreSQL {major}; expected {OLDEST} to {NEWEST_TESTED}. "
            "Upgrade the server with pg_upgrade, or restore a backup into a newer one"
        )
    if major > NEWEST_TESTED:
        return f"PostgreSQL {major} is newer than those this release was tested with ({OLDEST} to {NEWEST_TESTED})."
    return None
