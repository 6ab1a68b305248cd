"""The OpenAPI document: problem+json for every error, and response fields that are always present."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from hugeplan.api.problems import MEDIA_TYPE, Problem
from hugeplan.planner import model

API_PREFIX = "/api/v1"
DESCRIPTION = (
    "How many huge pages should each Linux node reserve, of which size, and what will it buy? "
    "Every error is problem+json (RFC 9457) with a stable type."
)


def operation_id(route: APIRoute) -> str:
    """Operation ids are the handlers' names: stable, and unique by a test."""
    return route.name


def install(app: FastAPI, documents: dict[str, type[BaseModel]]) -> None:
    """Make ``app.openapi()`` build the document. ``documents`` are models of bodies parsed by hand, by name."""

    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, documents)
        return app.openapi_schema

    # FastAPI documents the replacement of this method as the way to extend the document.
    setattr(app, "openapi", build)  # noqa: B010 - mypy refuses an assignment to a method


def _build(app: FastAPI, documents: dict[str, type[BaseModel]]) -> dict[str, Any]:
    schema = get_openapi(
        title="hugeplan", version=app.version, description=DESCRIPTION, routes=app.routes, tags=app.openapi_tags
    )
    components = schema.setdefault("components", {}).setdefault("schemas", {})
    for name, document in documents.items():
        template = f"#/components/schemas/{name}_{{model}}"
        _, definitions = models_json_schema([(document, "validation")], ref_template=template)
        for key, value in definitions["$defs"].items():
            components[name if key == document.__name__ else f"{name}_{key}"] = value
    components["Problem"] = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    components.update(components["Problem"].pop("$defs"))
    for unused in ("HTTPValidationError", "ValidationError"):
        components.pop(unused, None)
    _require_planner_fields(components)
    _answer_problems(schema)
    return schema


def _require_planner_fields(components: dict[str, Any]) -> None:
    """The planner's dataclasses have defaults for those who build them; answers always hold every field."""
    names = {name for name, kind in vars(model).items() if dataclasses.is_dataclass(kind)}
    for name in names & components.keys():
        components[name]["required"] = list(components[name].get("properties", {}))


def _answer_problems(schema: dict[str, Any]) -> None:
    problem = {
        "description": "An error, as problem+json",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path in schema["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = problem


def dump(build: Callable[[], dict[str, Any]]) -> str:
    """The document as it is committed: indented, keys in the order of definition, one newline at the end."""
    return json.dumps(build(), indent=2, ensure_ascii=False) + "\n"
