"""The built interface is handed out as its build compressed it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from support.service import Service

from hugeplan.api.ui import accepted_encodings
from hugeplan.main import create_app
from hugeplan.settings import Settings

SCRIPT = "let a = 1;\n" * 200


@pytest.fixture
def ui(settings: Settings, tmp_path: Path) -> Service:
    """A service with a built interface; the second file was too small to compress."""
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>hugeplan</title>")
    (assets / "app-1234.js").write_text(SCRIPT)
    (assets / "app-1234.js.br").write_bytes(b"brotli bytes")
    (assets / "app-1234.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (assets / "small-1.js").write_text("1")
    return Service(create_app(settings.model_copy(update={"ui_dir": tmp_path})))


async def test_the_best_encoding_that_the_client_takes(ui: Service) -> None:
    path = "/assets/app-1234.js"
    best = await ui.client().get(path, headers={"Accept-Encoding": "gzip, br"})
    assert best.headers["content-encoding"] == "br"
    assert best.headers["content-type"].startswith("text/javascript")
    assert best.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert best.headers["vary"] == "Accept-Encoding"
    zipped = await ui.client().get(path, headers={"Accept-Encoding": "gzip;q=0.5, br;q=0"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.text == SCRIPT
    plain = await ui.client().get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == SCRIPT
    assert len({answer.headers["etag"] for answer in (best, zipped, plain)}) == 3


async def test_what_was_not_compressed_and_ranges_are_sent_as_they_are(ui: Service) -> None:
    small = await ui.client().get("/assets/small-1.js", headers={"Accept-Encoding": "br"})
    assert "content-encoding" not in small.headers
    assert small.text == "1"
    part = await ui.client().get("/assets/app-1234.js", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-9"})
    assert part.status_code == 206
    assert part.text == SCRIPT[:10]


def test_a_quality_of_zero_forbids() -> None:
    assert accepted_encodings("gzip, br;q=0.0, deflate;q=0.3") == {"gzip", "deflate"}
    assert accepted_encodings("") == set()
