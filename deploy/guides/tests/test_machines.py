"""The guides for machines, typed line by line into fresh Debian machines: bare metal, no network, the agent, README.

Nothing is prepared on the machines: what a line needs, an earlier line of the page brought. They reach Debian's
archive, PyPI and npm's registry, and where a page is about no network, nothing.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clone_images import clone_into
from hugeplan_agent.pool_reservation import reservation
from journey import Journey
from nspawn_rig import CLEAN, TRUSTED, Machine, NotAvailableError, machine, reaching
from session import Done, Session

REGISTRIES = (
    "deb.debian.org:80", "pypi.org:443", "files.pythonhosted.org:443", "registry.npmjs.org:443",
)  # fmt: skip
#: So that clients trust what this machine trusts; nothing else is said to them.
VARIABLES = tuple(f"{name}={TRUSTED}" for name in ("PIP_CERT", "NODE_EXTRA_CA_CERTS"))
CHECKOUT = "/root/hugeplan"


def cloned(node: Machine) -> None:
    """A checkout on the machine, as git clone leaves it."""
    folder = node.root / CHECKOUT.lstrip("/")
    folder.mkdir()
    clone_into(folder)
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "checkout"]):
        identity = ["-c", "user.name=test", "-c", "user.email=test@invalid"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)


@contextlib.contextmanager
def fresh(folder: Path, **more: Any) -> Iterator[Machine]:
    """A fresh machine, or SKIP."""
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            node = stack.enter_context(machine(folder, {}, tree=CLEAN, **more))
        except NotAvailableError as error:
            pytest.skip(f"SKIP: {error}")
        yield node


def session(node: Machine) -> Session:
    """A shell of root in the checkout or at home."""
    return Session(node.entering(*VARIABLES), node.root / "root/.typed", "/root/.typed")


def interrupted(words: str) -> Callable[[Session, str], Done]:
    """A command that stays in the foreground until Ctrl-C, once it has said this."""

    def run(shell: Session, command: str) -> Done:
        done = shell.until(command, words)
        assert done.status in {0, 130}, f"{command} ended with status {done.status}:\n{done.output[-3000:]}"
        return done

    return run


def certificate(node: Machine) -> None:
    """What the reader has: a certificate for the service's name, of an authority that the reader's machines trust."""
    node.shell(
        "openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=hugeplan.example"
        " -addext subjectAltName=DNS:hugeplan.example -keyout /etc/ssl/private/hugeplan.example.key"
        " -out /etc/ssl/hugeplan.example.pem 2>/dev/null"
    )
    certified(node, (node.root / "etc/ssl/hugeplan.example.pem").read_bytes())


def certified(node: Machine, authority: bytes) -> None:
    """The machine trusts this authority."""
    (node.root / "usr/local/share/ca-certificates/example.crt").write_bytes(authority)
    node.run("update-ca-certificates")


def asked(node: Machine, query: str, database: str = "hugeplan") -> str:
    """What the guide's PostgreSQL answers."""
    psql = ("psql", "--no-align", "--tuples-only", "--dbname", database, "--command", query)
    return node.run("runuser", "-u", "postgres", "--", *psql)


def last_reports(node: Machine) -> dict[str, str | None]:
    """When each node last reported, from the database of the guide."""
    told = asked(node, "SELECT json_object_agg(name, last_report_at) FROM nodes")
    found: dict[str, str | None] = json.loads(told or "{}") or {}
    return found


def reports_go_on(node: Machine, name: str) -> None:
    before = last_reports(node).get(name)
    node.until(lambda: last_reports(node).get(name) not in {None, before}, f"a new report of {name}")


def reachable_by_ssh(node: Machine, server: Machine) -> None:
    """The reader's other machine: it has Python, and takes the key of root on the server."""
    node.shell("apt-get update && apt-get install --yes --no-install-recommends python3 openssh-server")
    server.shell("apt-get install --yes --no-install-recommends openssh-client")
    server.shell("ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519")
    key = server.run("cat", "/root/.ssh/id_ed25519.pub")
    node.shell(f"install -d -m 0700 /root/.ssh; echo '{key}' > /root/.ssh/authorized_keys")
    node.shell("systemctl unmask ssh.service; systemctl start ssh.service")
    server.shell("ssh-keyscan 127.0.0.1 > /root/.ssh/known_hosts 2>/dev/null")


def test_bare_metal(tmp_path: Path) -> None:
    with (
        fresh(tmp_path / "server", name="planner", private=True) as node,
        reaching(node, REGISTRIES),
        fresh(tmp_path / "db-1", name="db-1", private=node) as other,
        session(node) as shell,
    ):
        cloned(node)
        shell.type(f"cd {CHECKOUT}")

        def inventory() -> None:
            with (node.root / "etc/hosts").open("a") as file:
                file.write("127.0.0.1 hugeplan.example\n")
            (other.root / "etc/hosts").write_text((node.root / "etc/hosts").read_text())
            certified(other, (node.root / "etc/ssl/hugeplan.example.pem").read_bytes())
            reachable_by_ssh(other, node)
            (node.root / CHECKOUT.lstrip("/") / "nodes.ini").write_text(
                "db-1 ansible_host=127.0.0.1 ansible_user=root\n"
            )

        def token_for_this_node() -> None:
            """Its name is outside the pattern of the page's token."""
            node.shell(
                f"cd {CHECKOUT}; rm enrolment-token; (umask 077; hugeplan token create --role enrolment --name one"
                " --count 1 > enrolment-token)"
            )

        def the_agents_page() -> None:
            both_report(node)
            with session(node) as second:
                second.type(f"cd {CHECKOUT}")
                Journey("docs/agent.md", second, before={"The node's identity": token_for_this_node}).walk()
            owners = node.run("find", "/var/lib/hugeplan-agent", "-printf", "%u:%g\n")
            assert set(owners.splitlines()) == {"hugeplan-agent:hugeplan-agent"}, owners
            both_report(node)

        def another_release() -> None:
            node.shell(
                f"cd {CHECKOUT}; mkdir former; mv dist/*.deb former; export HUGEPLAN_PACKAGE_VERSION=0.1.1"
                f" PATH={CHECKOUT}/.venv/bin:$PATH;"
                " python deploy/packaging/server.py --wheel dist/hugeplan-*.whl --out dist;"
                " python agent/packaging/build.py --kinds deb --out dist"
            )

        def upgraded() -> None:
            installed = node.run(
                "dpkg-query", "--show", "--showformat", "${Version} ", "hugeplan-server", "hugeplan-agent"
            )
            assert installed.split() == ["0.1.1", "0.1.1"]
            both_report(node)

        def nothing_left() -> None:
            for left in (
                "/var/lib/hugeplan-agent", "/var/lib/hugeplan-server", "/usr/lib/hugeplan-server", "/etc/hugeplan",
            ):  # fmt: skip
                assert node.call("ls", "-d", left).returncode != 0, left
            roles = "SELECT rolname FROM pg_roles WHERE rolname ~ '^hugeplan' UNION SELECT datname FROM pg_database"
            assert set(asked(node, roles, "postgres").split()) == {"postgres", "template0", "template1"}

        def token_of_the_node() -> None:
            listed = node.run("hugeplan", "token", "list").splitlines()
            (mine["revoke ID"],) = {f"revoke {line.split()[0]}" for line in listed if line.endswith(" planner")}

        def both_report(server: Machine) -> None:
            for name in ("db-1", "planner"):
                reports_go_on(server, name)

        mine: dict[str, str] = {}
        Journey(
            "docs/install-bare-metal.md", shell, mine=mine,
            special={"hugeplan-env/bin/hugeplan demo": interrupted("/login#token=")},
            before={
                "TLS before it": lambda: certificate(node),
                "Many nodes": inventory,
                "One node": token_for_this_node,
                "A new release": another_release,
                "Removing it": token_of_the_node,
            },
            after={
                "Many nodes": lambda: reports_go_on(node, "db-1"),
                "One node": the_agents_page,
                "A new release": upgraded,
                "The way back": lambda: both_report(node),
                "Removing it": nothing_left,
            },
        ).walk()  # fmt: skip


def statuses(*allowed: int) -> Callable[[Session, str], Done]:
    """A command whose exit status says what it found."""

    def run(shell: Session, command: str) -> Done:
        done = shell.type(command)
        assert done.status in allowed, f"{command} ended with status {done.status}:\n{done.output[-3000:]}"
        return done

    return run


#: What verify says of a plan that nobody applied.
NOT_IN_FORCE = (1, 3, *range(10, 20))


def elsewhere(_: Session, command: str) -> None:
    """Typed by another test, which has an engine: deploy/containers/tests/test_compose_up.py."""
    print(f"elsewhere: {command}")


def test_air_gapped(tmp_path: Path) -> None:
    """The second machine has nothing but loopback: whatever asks for a host fails."""
    page = "docs/install-air-gapped.md"
    with (
        fresh(tmp_path / "with", name="with", private=True) as outside,
        fresh(tmp_path / "without", name="without", private=True) as inside,
    ):
        cloned(outside)
        with reaching(outside, REGISTRIES), session(outside) as shell:
            shell.type(f"cd {CHECKOUT}")
            Journey(page, shell, only=("Where there is a network",)).walk()
        with reaching(inside, REGISTRIES):
            inside.shell("apt-get update && apt-get install --yes --no-install-recommends python3-venv")
        shutil.copytree(outside.root / CHECKOUT.lstrip("/") / "wheelhouse", inside.root / "root/wheelhouse")
        with session(inside) as shell:
            shell.type("cd /root")
            Journey(
                page, shell, only=("Where there is none", "Images"),
                special={
                    "hugeplan-env/bin/hugeplan demo": interrupted("/login#token="),
                    "hugeplan-env/bin/hugeplan plan": statuses(0, 4, 5),
                    "hugeplan-env/bin/hugeplan verify": statuses(0, *NOT_IN_FORCE),
                    "podman ": elsewhere,
                },
            ).walk()  # fmt: skip
        assert json.loads((inside.root / "root/report.json").read_text())["sample"]


def test_readme(tmp_path: Path) -> None:
    """What README prints but `make test`, which these tests are a part of. The counts of pages are this machine's."""
    with (
        contextlib.ExitStack() as pools,
        fresh(tmp_path / "me", name="me", private=True) as node,
        reaching(node, REGISTRIES),
        session(node) as shell,
    ):
        cloned(node)
        node.shell("apt-get update && apt-get install --yes git make gcc libc6-dev python3-venv nodejs npm")
        shell.type(f"cd {CHECKOUT}")
        # As on a machine: in a container the counts of huge pages cannot be written.
        for folder in ("/sys/devices", "/sys/kernel"):
            node.run("mount", "-o", "remount,rw", folder)
            node.run("mount", "-o", "remount,bind,rw", folder)
        node.run("mount", "-o", "remount,bind,rw", "/proc/sys")

        def apply(typed: Session, command: str) -> Done:
            pools.enter_context(reservation())
            # It asks on a terminal; 6: a database is to be restarted next, and none is here.
            return statuses(0, 3, 4, 6)(typed, f"script --quiet --return --command '{command}' /dev/null <<< yes")

        def roll_back(typed: Session, command: str) -> Done:
            done = statuses(0)(typed, command)
            pools.close()
            return done

        Journey(
            "README.md", shell,
            special={
                "make demo": interrupted("/login#token="),
                "make test": elsewhere,
                ".venv/bin/hugeplan plan": statuses(0, 4, 5),
                "sudo .venv/bin/hugeplan apply plan.json": apply,
                "sudo .venv/bin/hugeplan verify": statuses(0, *NOT_IN_FORCE),
                "sudo .venv/bin/hugeplan apply --roll-back": roll_back,
            },
        ).walk()  # fmt: skip
