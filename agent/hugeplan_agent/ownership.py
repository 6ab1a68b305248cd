"""Root leaves nothing behind that the service's own user cannot use.

``enrol`` and ``doctor`` are typed by an administrator, and the service runs as a user of its own. What root wrote into
its folder would lock it out: so root becomes that user where it can, and gives away what it makes where it must
stay (hugeplan_agent.privileges does the former).
"""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

SERVICE_USER = "hugeplan-agent"
SYSTEM_SPOOL_DIR = "/var/lib/hugeplan-agent"


def service_user() -> pwd.struct_passwd | None:
    """The user that the packages make; None where there is none."""
    try:
        return pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return None


def inherit(path: Path) -> None:
    """Give what root has just made to the owner of the folder that it lies in.

    That owner may have put a link in its place meanwhile: then it gets the link, and not what the link names.
    """
    if os.geteuid() != 0:
        return
    with suppress(OSError):
        folder, own = path.parent.stat(), path.lstat()
        if (own.st_uid, own.st_gid) != (folder.st_uid, folder.st_gid):
            os.chown(path, folder.st_uid, folder.st_gid, follow_symlinks=False)


def adopt(folder: Path) -> None:
    """Give the system's spool folder to the service's user, when root has just made it."""
    user = service_user()
    if os.geteuid() == 0 and user is not None and folder == Path(SYSTEM_SPOOL_DIR):
        with suppress(OSError):
            os.chown(folder, user.pw_uid, user.pw_gid)
