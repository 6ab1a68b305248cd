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

HOUSE = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"HUGEPLAN_DATABASE_PASSWORD": "secret", "HUGEPLAN_ENROLMENT_TOKEN": "x" * 40}
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


def load(environment: dict[str, str]) -> dict[str, Any]:
    loaded = yaml.safe_load(interpolate((HOUSE / "docker-compose.yml").read_text(), environment))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return load(ENVIRONMENT)


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


def test_it_has_the_four_services_in_order(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert list(services) == ["postgres", "migrate", "backend", "agent"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["backend"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert services["agent"]["depends_on"] == {"backend": {"condition": "service_healthy"}}


@pytest.mark.parametrize("missing", sorted(ENVIRONMENT))
def test_no_secret_has_a_default(missing: str) -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != missing}
    with pytest.raises(KeyError, match=missing):
        load(environment)


def test_ports_are_on_loopback(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8000:8000"]


def test_build_targets_are_stages_of_the_dockerfile(compose: dict[str, Any]) -> None:
    text = (HOUSE / "deploy/Dockerfile").read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    builds = [service["build"] for service in compose["services"].values() if "build" in service]
    assert {build["target"] for build in builds} == {"server", "agent"}
    assert all(build["dockerfile"] == "deploy/Dockerfile" and build["target"] in stages for build in builds)


@pytest.mark.parametrize(("service", "command"), [("migrate", "migrate"), ("backend", "serve")])
def test_server_commands_exist_and_their_settings_are_valid(
    compose: dict[str, Any], service: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hugeplan.cli import COMMANDS  # noqa: PLC0415 - heavy imports stay with the test that needs them
    from hugeplan.settings import Settings  # noqa: PLC0415

    assert compose["services"][service]["command"] == [command]
    assert command in {row.name for row in COMMANDS}
    names = {f"HUGEPLAN_{name.upper()}" for name in Settings.model_fields}
    environment = compose["services"][service]["environment"]
    assert set(environment) <= names
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Settings().sqlalchemy_url() == "postgresql+psycopg://hugeplan:secret@postgres/hugeplan"


def test_the_agents_command_and_variables_are_valid(compose: dict[str, Any]) -> None:
    service = compose["services"]["agent"]
    given = vars(agent_parser().parse_args(service["command"]))
    config = resolve(given, service["environment"])
    assert config.server == "http://backend:8000"
    assert config.measure == "quick"
    assert config.enrolment_token == ENVIRONMENT["HUGEPLAN_ENROLMENT_TOKEN"]
    known = {f"{PREFIX}{name.upper()}" for name in (*given, "enrolment_token")}
    assert set(service["environment"]) <= known
