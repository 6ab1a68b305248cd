"""docker-compose.yml against the Compose specification, and its commands against the programs they call."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from hugeplan_agent.cli import parser as agent_parser
from hugeplan_agent.config import PREFIX, resolve

REPOSITORY = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}")


def interpolate(text: str, environment: dict[str, str]) -> str:
    """Fill in ${NAME}, ${NAME:-default} and ${NAME:?message} as Compose does."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if environment.get(name):
            return environment[name]
        if kind == ":-":
            return rest
        raise KeyError(f"{name}: {rest}")

    return VARIABLE.sub(value, text)


def load(environment: dict[str, str] | None = None) -> dict[str, Any]:
    loaded = yaml.safe_load(interpolate((REPOSITORY / "docker-compose.yml").read_text(), environment or {}))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as a fresh clone reads it: nothing is set."""
    return load()


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """The Compose specification's own schema, which the package check-jsonschema carries."""
    spec = importlib.util.find_spec("check_jsonschema")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "builtin_schemas/vendor/compose-spec.json"
    return Draft202012Validator(json.loads(path.read_text()))


def test_it_is_a_compose_file(compose: dict[str, Any], validator: Draft202012Validator) -> None:
    assert [error.message for error in validator.iter_errors(compose)] == []


def test_the_schema_would_find_a_mistake(compose: dict[str, Any], validator: Draft202012Validator) -> None:
    broken = {**compose, "services": {**compose["services"], "backend": {"comand": ["serve"]}}}
    assert list(validator.iter_errors(broken))


def test_no_service_relies_on_an_order_that_an_engine_may_not_keep(compose: dict[str, Any]) -> None:
    """podman 4.3 knows no "healthy", and no engine waits when the machine starts again: each step waits by itself."""
    services = compose["services"]
    assert list(services) == [
        "secrets", "postgres", "roles", "migrate", "backend", "welcome", "agent", "demo-fleet"
    ]  # fmt: skip
    assert [name for name, service in services.items() if "depends_on" in service] == []
    for name in ("migrate", "backend", "welcome"):
        assert services[name]["command"][0] == "wait", name
        assert (services[name]["command"][1] == "--migrated") == (name != "migrate"), name
    assert services["demo-fleet"]["entrypoint"][-1].startswith("hugeplan wait --migrated && ")
    assert services["postgres"]["entrypoint"][-1].startswith("until test -s /run/hugeplan/database-password; ")


def test_there_is_no_synthetic_fleet_unless_it_is_asked_for(compose: dict[str, Any]) -> None:
    profiles = {name: service["profiles"] for name, service in compose["services"].items() if "profiles" in service}
    assert profiles == {"demo-fleet": ["demo"]}


def test_every_container_has_a_limit_of_memory_of_processes_and_of_logs(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"\d+[gm]", service["mem_limit"]), name
        assert service["pids_limit"] == 512, name
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "10"}}, name
    lasting = {name for name, service in compose["services"].items() if service.get("restart") == "unless-stopped"}
    assert lasting == {"postgres", "roles", "backend", "agent", "demo-fleet"}


def test_a_fresh_clone_starts_without_a_file_and_holds_no_secret(compose: dict[str, Any]) -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    assert ":?" not in text
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not re.search("PASSWORD|TOKEN", name) or name.endswith("_FILE") or not value, name


def test_containers_are_unprivileged(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        # The image's own, 10001; in PostgreSQL's image, the user that reads the password files.
        assert service.get("user") == ("10001:10001" if name == "roles" else None), name
        # The entrypoint of PostgreSQL's image gives the data folder to the user postgres, and becomes it.
        needed = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"] if name == "postgres" else None
        assert service.get("cap_add") == needed, name


def test_each_image_is_built_once(compose: dict[str, Any]) -> None:
    built = [service["image"] for service in compose["services"].values() if "build" in service]
    assert sorted(built) == sorted(set(built)) == ["hugeplan-agent", "hugeplan-server"]


def test_ports_are_on_loopback(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8000:8000"]


def test_build_targets_are_stages_of_the_dockerfile(compose: dict[str, Any]) -> None:
    text = (REPOSITORY / "deploy/Dockerfile").read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    builds = [service["build"] for service in compose["services"].values() if "build" in service]
    assert {build["target"] for build in builds} == {"server", "agent"}
    assert all(build["dockerfile"] == "deploy/Dockerfile" and build["target"] in stages for build in builds)


@pytest.mark.parametrize("service", ["secrets", "migrate", "backend", "welcome"])
def test_server_commands_exist_and_their_settings_are_valid(
    compose: dict[str, Any], service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hugeplan.cli import COMMANDS  # noqa: PLC0415 - heavy imports stay with the test that needs them
    from hugeplan.cli.secrets import (  # noqa: PLC0415
        DATABASE_PASSWORD_VARIABLE,
        ENROLMENT_TOKEN_VARIABLE,
        SERVICE_PASSWORD_VARIABLE,
    )
    from hugeplan.settings import SECRETS_DIR_VARIABLE, Settings  # noqa: PLC0415

    assert compose["services"][service]["command"][0] in {row.name for row in COMMANDS}
    environment = compose["services"][service]["environment"]
    if service == "secrets":
        assert set(environment) == {DATABASE_PASSWORD_VARIABLE, SERVICE_PASSWORD_VARIABLE, ENROLMENT_TOKEN_VARIABLE}
        return
    names = {f"HUGEPLAN_{name.upper()}" for name in Settings.model_fields}
    assert set(environment) <= {*names, SECRETS_DIR_VARIABLE}
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value).lower() if isinstance(value, bool) else value)
    role, folder = ("hugeplan", "database") if service == "migrate" else ("hugeplan_service", "service")
    assert Settings().sqlalchemy_url() == (
        f"postgresql+psycopg://{role}@postgres/hugeplan?passfile=/var/lib/hugeplan/{folder}/passfile"
    )


def test_only_migrations_have_the_password_of_the_role_that_owns_the_tables(compose: dict[str, Any]) -> None:
    holders = {
        name for name, service in compose["services"].items()
        if any(str(one).startswith("database-secret:") for one in service.get("volumes", []))
    }  # fmt: skip
    assert holders == {"secrets", "postgres", "roles", "migrate"}
    sockets = {name for name, service in compose["services"].items() if "postgres-socket" in str(service["volumes"])}
    assert sockets == {"postgres", "roles"}
    # Over the socket it is the superuser: nobody reaches it, and it reaches nobody else.
    assert compose["services"]["roles"]["network_mode"] == "none"


def test_the_agents_command_and_variables_are_valid(compose: dict[str, Any]) -> None:
    service = compose["services"]["agent"]
    given = vars(agent_parser().parse_args(service["command"]))
    config = resolve(given, service["environment"])
    assert config.server == "http://backend:8000"
    assert config.measure == "quick"
    assert str(config.enrolment_token_file) == "/run/hugeplan/hugeplan_bootstrap_enrolment_token"
    known = {f"{PREFIX}{name.upper()}" for name in given}
    assert set(service["environment"]) <= known


def test_the_file_that_counts_page_walks_adds_one_capability(
    compose: dict[str, Any], validator: Draft202012Validator
) -> None:
    more = yaml.safe_load((REPOSITORY / "deploy/compose.count-walks.yml").read_text())
    assert [error.message for error in validator.iter_errors(more)] == []
    assert set(more["services"]) == {"agent"}
    agent = compose["services"]["agent"] | more["services"]["agent"]
    assert agent["cap_drop"] == ["ALL"]
    assert set(agent["cap_add"]) == {"PERFMON", "SETGID", "SETPCAP", "SETUID"}
    dockerfile = (REPOSITORY / "deploy/Dockerfile").read_text()
    entrypoint = json.loads(re.findall(r"^ENTRYPOINT (\[.*\])$", dockerfile, re.MULTILINE)[-1])
    assert agent["entrypoint"][agent["entrypoint"].index("--") + 1 :] == entrypoint
    user = re.findall(r"^USER (\d+):(\d+)$", dockerfile, re.MULTILINE)[-1]
    assert agent["entrypoint"][1:4] == [f"--reuid={user[0]}", f"--regid={user[1]}", f"--groups={agent['group_add'][0]}"]
