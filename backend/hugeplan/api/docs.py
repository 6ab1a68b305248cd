"""The API's documentation: the OpenAPI document and a page that reads it. Nothing is loaded from elsewhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response

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


class _Document:
    """The OpenAPI document, written once: it is 400 kB, and building it takes a second."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._made: tuple[bytes, str] | None = None

    async def answer(self, request: Request) -> Response:
        """The document, or that the client has it."""
        if self._made is None:
            self._made = await anyio.to_thread.run_sync(self._make)
        content, etag = self._made
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if etag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type="application/json", headers=headers)

    def _make(self) -> tuple[bytes, str]:
        content = JSONResponse(self._app.openapi()).body
        return bytes(content), f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def install(app: FastAPI) -> None:
    """Register the page and the document. Both describe the API and hold no data, so they need no credential."""

    document = _Document(app)
    app.add_route("/api/docs", docs_page, include_in_schema=False)
    app.add_route("/api/docs/{name}", docs_file, include_in_schema=False)
    app.add_route("/api/openapi.json", document.answer, include_in_schema=False)
