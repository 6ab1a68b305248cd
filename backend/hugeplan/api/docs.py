"""The API's documentation: the OpenAPI document and a page that reads it. Nothing is loaded from elsewhere."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response

from hugeplan.bundled import bundled
from hugeplan.errors import NotFoundError

STATIC = Path(__file__).parent / "static"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-cache"}
_FILES = {
    "docs.html": "text/html; charset=utf-8",
    "docs.js": "text/javascript; charset=utf-8",
    "docs.css": "text/css; charset=utf-8",
    "findings.html": "text/html; charset=utf-8",
}


async def docs_page(_: Request) -> Response:
    """The page."""
    return FileResponse(STATIC / "docs.html", media_type=_FILES["docs.html"], headers=_HEADERS)


async def docs_file(request: Request) -> Response:
    """The page's script and style, and the page of findings that the interface links to."""
    name = request.path_params["name"]
    if name not in _FILES:
        raise NotFoundError(f"There is nothing at {request.url.path}.")
    return FileResponse(STATIC / name, media_type=_FILES[name], headers=_HEADERS)


@cache
def _document() -> tuple[bytes, str]:
    """The OpenAPI document and its ETag: as it is committed, since building it from the routes takes a second."""
    text = bundled("openapi.json", "backend/openapi.json").read_bytes()
    content = msgspec.json.format(text, indent=-1)
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


async def document(request: Request) -> Response:
    """The OpenAPI document, or that the client has it."""
    content, etag = _document()
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if etag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def install(app: FastAPI) -> None:
    """Register the page and the document. Both describe the API and hold no data, so they need no credential."""
    app.add_route("/api/docs", docs_page, include_in_schema=False)
    app.add_route("/api/docs/{name}", docs_file, include_in_schema=False)
    app.add_route("/api/openapi.json", document, include_in_schema=False)
