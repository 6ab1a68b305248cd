"""The built web interface: its files, and its index page for every other address (history fallback)."""

from __future__ import annotations

import mimetypes
import secrets
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from hugeplan.bundled import bundled
from hugeplan.settings import Settings

NONCE_PLACEHOLDER = "__CSP_NONCE__"
_IMMUTABLE = "public, max-age=31536000, immutable"


def ui_dir(settings: Settings) -> Path:
    """The folder of the built interface: the configured one, else the wheel's or the checkout's."""
    return settings.ui_dir or bundled("ui", "frontend/dist")


def content_security_policy(nonce: str) -> str:
    """Scripts, styles, images and connections from this origin only; style sheets made at run time need the nonce.

    Style attributes are allowed: charts place their parts with them, and they cannot run or load anything.
    """
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


#: Compressed files that the build puts beside the originals, the smallest first.
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


def accepted_encodings(header: str) -> set[str]:
    """The content codings that an Accept-Encoding header allows; ``q=0`` forbids one (RFC 9110, 12.5.3)."""
    found = set()
    for item in header.lower().split(","):
        name, _, parameters = item.strip().partition(";")
        quality = parameters.strip().removeprefix("q=")
        if name and not (parameters and quality.strip("0.") == ""):
            found.add(name.strip())
    return found


class UserInterface:
    """ASGI application for every path that no route takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = StaticFiles(directory=folder, check_dir=False)
        self._known: frozenset[str] = frozenset()
        self._built = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A file, the index page, or 404."""
        if scope["type"] != "http":
            raise HTTPException(404)
        await (await self.answer(scope))(scope, receive, send)

    async def answer(self, scope: Scope) -> Response:
        """A file or the index page; HTTPException 404 or 405 where there is none."""
        path: str = scope["path"]
        if path == "/api" or path.startswith("/api/"):
            raise HTTPException(404)
        if scope["method"] not in {"GET", "HEAD"}:
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        response = await self._file(path, scope)
        if response is None:
            # A missing file is missing; only addresses of pages fall back to the index.
            if "." in path.rsplit("/", 1)[-1]:
                raise HTTPException(404)
            response = self._index()
        return response

    async def _file(self, path: str, scope: Scope) -> Response | None:
        relative = path.lstrip("/")
        if not relative or relative == "index.html":
            return None if not relative else self._index()
        wanted = self._files.get_path({**scope, "root_path": ""})
        if wanted not in self._names():
            return None
        response = await self._compressed(wanted, scope) or await self._stored(wanted, scope)
        if response is None:
            return None
        response.headers["Cache-Control"] = _IMMUTABLE if relative.startswith("assets/") else "no-cache"
        response.headers["Vary"] = "Accept-Encoding"
        return response

    def _names(self) -> frozenset[str]:
        """The files of the build, listed once per build: an address that is no file costs no look at the disk."""
        try:
            built = (self._folder / "index.html").stat().st_mtime_ns
        except OSError:
            return frozenset()
        if built != self._built:
            found = (file.relative_to(self._folder) for file in self._folder.rglob("*") if file.is_file())
            self._known, self._built = frozenset(map(str, found)), built
        return self._known

    async def _stored(self, path: str, scope: Scope) -> Response | None:
        try:
            response = await self._files.get_response(path, scope)
        except (HTTPException, ValueError):
            return None
        return response if response.status_code in {200, 206, 304} else None

    async def _compressed(self, path: str, scope: Scope) -> Response | None:
        """The file as it was compressed by the build, in the best way that the client takes; None without one.

        A range is of the file itself, so it is answered without compression.
        """
        headers = Headers(scope=scope)
        if "range" in headers:
            return None
        accepted = accepted_encodings(headers.get("accept-encoding", ""))
        for encoding, suffix in _ENCODINGS:
            if encoding not in accepted:
                continue
            response = await self._stored(path + suffix, scope)
            if response is not None:
                kind, _ = mimetypes.guess_type(path)
                response.headers["Content-Type"] = kind or "application/octet-stream"
                response.headers["Content-Encoding"] = encoding
                return response
        return None

    def _index(self) -> Response:
        try:
            page = (self._folder / "index.html").read_text(encoding="utf-8")
        except OSError as error:
            raise HTTPException(404) from error
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": content_security_policy(nonce), "Cache-Control": "no-cache"}
        return HTMLResponse(page.replace(NONCE_PLACEHOLDER, nonce), headers=headers)


def install(app: FastAPI, settings: Settings) -> UserInterface:
    """Serve the interface where no route matches."""
    pages = UserInterface(ui_dir(settings))
    app.router.default = pages
    return pages
