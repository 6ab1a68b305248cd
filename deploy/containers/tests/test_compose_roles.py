"""The database's roles in docker-compose.yml for real: volumes of the release before, passwords, kills half way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from clone_images import built_images
from compose_service import Service, until
from hugeplan_agent.pool_reservation import reservation


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The project with its images, and nothing of it running."""
    with built_images(tmp_path_factory.mktemp("clone")) as built, reservation(wait_seconds=900):
        if isinstance(built, str):
            pytest.skip(built)
        yield Service(built)


FORMER = Path(__file__).parent / "former"
ROLES_SCRIPT = Path("deploy/kubernetes/chart/hugeplan/files/database-roles.sh")


def settled(service: Service, seen: list[str]) -> list[str]:
    """The node ids, once the service answers; the same as ``seen``, if any were."""
    until(service.answers, 180, "the service")
    service.login()
    until(lambda: len(service.nodes()) == 1, 120, "the node")
    found = [node["id"] for node in service.nodes()]
    assert seen in ([], found)
    return found


def test_volumes_of_the_release_before_get_the_services_role(service: Service) -> None:
    """Its service owned the tables. With data: today's file is put in its place, and nothing else is done."""
    clone, compose_run = service.project.clone, service.engine.compose_run
    today = {Path(name): (clone / name).read_text() for name in ("docker-compose.yml", str(ROLES_SCRIPT))}
    try:
        (clone / "docker-compose.yml").write_text((FORMER / "docker-compose.yml").read_text())
        (clone / ROLES_SCRIPT).write_text((FORMER / "database-roles.sh").read_text())
        compose_run("up", "--detach")
        known = settled(service, [])
        examined = service.engine.run("exec", service.container("backend"), "hugeplan", "doctor").stdout
        assert "attention The database's role hugeplan may make and drop tables" in examined, examined
        if service.engine.name == "podman":
            compose_run("down")  # podman-compose makes no container anew whose service has changed
    finally:
        for path, text in today.items():
            (clone / path).write_text(text)
    compose_run("up", "--detach")
    settled(service, known)
    examined = service.engine.run("exec", service.container("backend"), "hugeplan", "doctor").stdout
    assert "ok        The database's role hugeplan_service changes rows and no table." in examined, examined
    assert "wrong" not in examined


def test_a_password_is_changed_by_its_line_in_env(service: Service) -> None:
    """Both roles', while the service runs; whoever has the former password is refused."""
    compose_run = service.engine.compose_run
    known = settled(service, [])
    env = service.project.clone / ".env"
    env.write_text("HUGEPLAN_DATABASE_PASSWORD=owner's: new\nHUGEPLAN_DATABASE_SERVICE_PASSWORD=service's: new\n")
    try:
        if service.engine.name == "podman":
            compose_run("down")
        compose_run("up", "--detach")
        settled(service, known)

        def hashed() -> dict[str, str]:
            asked = "SELECT rolname, rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL"
            psql = ("psql", "--username", "postgres", "--no-align", "--tuples-only", "--command", asked)
            lines = service.engine.run("exec", service.container("postgres"), *psql).stdout.splitlines()
            return dict(line.split("|") for line in lines)

        def logs_in(role: str, password: str) -> bool:
            words = ("psql", "--host", "postgres", "--username", role, "--dbname", "hugeplan", "--command", "SELECT 1")
            given = ("exec", "--env", f"PGPASSWORD={password}", service.container("postgres"), *words)
            return service.engine.run(*given, check=False).returncode == 0

        for role, password in (("hugeplan", "owner's: new"), ("hugeplan_service", "service's: new")):
            until(lambda role=role, password=password: logs_in(role, password), 60, f"{role}'s new password")  # type: ignore[misc]
            assert not logs_in(role, "another"), role
        assert set(hashed()) == {"hugeplan", "hugeplan_service"}
        assert "new" not in service.engine.run("logs", service.container("postgres")).stdout
        examined = service.engine.run("exec", service.container("backend"), "hugeplan", "doctor").stdout
        assert "wrong" not in examined, examined
    finally:
        env.unlink()


def test_roles_that_were_killed_half_way_are_whole_afterwards(service: Service) -> None:
    """SIGKILL to who keeps the roles and to PostgreSQL, again and again, beside a change of the service's role."""
    known = settled(service, [])
    drop = "DROP OWNED BY hugeplan_service; DROP ROLE hugeplan_service"
    psql = ("psql", "--username", "postgres", "--dbname", "hugeplan", "--command", drop)

    def is_dropped() -> bool:
        return service.engine.run("exec", service.container("postgres"), *psql, check=False).returncode == 0

    for name in ("roles", "postgres", "roles"):
        os.kill(service.process(name), signal.SIGKILL)
        until(is_dropped, 60, "PostgreSQL")
        # Whoever starts PostgreSQL again gets the role, and migrations grant it.
        service.engine.run("restart", service.container("postgres"))
        service.engine.compose_run("run", "--rm", "--no-deps", "migrate")
        settled(service, known)
