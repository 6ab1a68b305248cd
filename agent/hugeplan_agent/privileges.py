"""Root becomes the service's own user for what is that user's affair: what works then works for the service."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from hugeplan_agent.config import Config, read_token
from hugeplan_agent.errors import AgentError
from hugeplan_agent.ownership import SERVICE_USER, SYSTEM_SPOOL_DIR, adopt, service_user


def step_down(config: Config) -> Config:
    """As root, become the service's user for good, when the command is about the service's folder.

    What only root may read is read before. A token file elsewhere is root's own affair: then root stays.
    Raises AgentError.
    """
    user = service_user()
    is_service = config.spool_dir == Path(SYSTEM_SPOOL_DIR) and config.token_file.parent == config.spool_dir
    if os.geteuid() != 0 or user is None or not is_service:
        return config
    if config.enrolment_token is None and config.enrolment_token_file.exists():
        token = read_token(config.enrolment_token_file, "--enrolment-token-file")
        config = replace(config, enrolment_token=token)
    try:
        if not config.spool_dir.exists():
            config.spool_dir.mkdir(mode=0o700, parents=True)
            adopt(config.spool_dir)
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    except OSError as error:
        raise AgentError(f"{SERVICE_USER}: root cannot become this user: {error.strerror}") from error
    os.environ["HOME"] = user.pw_dir
    return config
