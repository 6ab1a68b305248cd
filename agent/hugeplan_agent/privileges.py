"""Root becomes the service's own user for what is that user's affair: what works then works for the service."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from hugeplan_agent.config import Config, read_token
from hugeplan_agent.errors import AgentError
from hugeplan_agent.ownership import SYSTEM_SPOOL_DIR, adopt, service_user

UNIT = "hugeplan-agent.service"
ASK_SECONDS = 5.0
CAPABILITIES = (  # noqa: SIM905 - by their numbers (linux/capability.h)
    "chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service"
    " net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin"
    " sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override"
    " mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore"
).split()
PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAPABILITY_VERSION_3 = 8, 47, 2, 0x20080522
KEYCTL, KEYCTL_JOIN_SESSION_KEYRING = {"x86_64": 250, "ppc64le": 271, "s390x": 280}.get(os.uname().machine, 219), 1


@dataclass(frozen=True)
class Rights:
    """What systemd gives the daemon: its user, and the numbers of its capabilities."""

    user: pwd.struct_passwd
    capabilities: frozenset[int]

    @property
    def words(self) -> str:
        """The user and the capabilities, for a person."""
        names = " ".join(f"CAP_{CAPABILITIES[number].upper()}" for number in sorted(self.capabilities))
        return f"{self.user.pw_name} with {names}" if names else f"{self.user.pw_name} without capabilities"


def rights_of_the_unit() -> Rights | None:
    """What the unit with all its drop-ins gives; None where systemd does not run the agent."""
    names = ("LoadState", "User", "AmbientCapabilities", "CapabilityBoundingSet", "PrivateUsers")
    words = ["systemctl", "show", UNIT, *(f"--property={name}" for name in names)]
    try:
        done = subprocess.run(  # noqa: S603 - systemd's own program, without a shell
            words, capture_output=True, text=True, timeout=ASK_SECONDS, check=False
        )
        found = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
        if found.get("LoadState") != "loaded":
            return None
        return rights_of(found, pwd.getpwnam(found.get("User") or "root"))
    except (OSError, subprocess.TimeoutExpired, KeyError):
        return None


def rights_of(unit: dict[str, str], user: pwd.struct_passwd) -> Rights:
    """From the unit's properties: in a user namespace of its own no capability counts; root has its bound."""

    def numbers(name: str) -> frozenset[int]:
        known = (word.lower().replace("cap_", "", 1) for word in unit.get(name, "").split())
        return frozenset(CAPABILITIES.index(word) for word in known if word in CAPABILITIES)

    bound = numbers("CapabilityBoundingSet")
    given = bound if user.pw_uid == 0 else bound & numbers("AmbientCapabilities")
    return Rights(user, frozenset() if unit.get("PrivateUsers") == "yes" else given)


def step_down(config: Config, *, as_daemon: bool = False) -> Config:
    """As root, become the service's user for good, when the command is about the service's folder.

    What only root may read is read before, but for what does as the daemon does, with its user and capabilities.
    A token file elsewhere is root's own affair: then root stays. Raises AgentError.
    """
    is_service = config.spool_dir == Path(SYSTEM_SPOOL_DIR) and config.token_file.parent == config.spool_dir
    if os.geteuid() != 0 or not is_service:
        return config
    rights = rights_of_the_unit()
    user = service_user() if rights is None else rights.user
    if user is None:
        return config
    if not as_daemon and config.enrolment_token is None and config.enrolment_token_file.exists():
        token = read_token(config.enrolment_token_file, "--enrolment-token-file")
        config = replace(config, enrolment_token=token)
    try:
        if not config.spool_dir.exists():
            config.spool_dir.mkdir(mode=0o700, parents=True)
            adopt(config.spool_dir)
        os.setgroups([])
        os.setgid(user.pw_gid)
        _become(user.pw_uid, rights.capabilities if rights is not None and as_daemon else None)
    except OSError as error:
        raise AgentError(f"{user.pw_name}: root cannot become this user: {error.strerror}") from error
    os.environ["HOME"] = user.pw_dir
    return config


def _become(uid: int, capabilities: frozenset[int] | None) -> None:
    """Change to a user, with exactly these capabilities where they are given; its programs inherit them.

    Raises OSError. A capability that this kernel or container lacks is an error, too: nothing is judged with fewer.
    """
    import ctypes  # noqa: PLC0415 - the daemon does without

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None)  # root's would give root's keys; some kernels have none
    if capabilities is None:
        os.setuid(uid)
        return
    mask = sum(1 << number for number in capabilities)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    # The header is a version and a process (0: this one); then effective, permitted and inheritable, twice 32 bits.
    header, sets = (
        (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0),
        (ctypes.c_uint32 * 6)(low, low, low, high, high, high),
    )
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setuid(uid)
    if libc.capset(header, sets) or any(
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) for number in capabilities
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
