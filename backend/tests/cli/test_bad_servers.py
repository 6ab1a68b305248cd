"""A server that turned bad costs a command a bounded time and memory, and one sentence."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path

import httpx
import pytest

from hugeplan import cli
from hugeplan.cli import InputError, backtest, doctor, import_inventory, service_client
from hugeplan.cli.service_client import ServiceClient
from hugeplan.http_answer import Answer
from hugeplan.inventory.model import InventoryError
from hugeplan.inventory.prometheus import believed, clusters, queries
from hugeplan.inventory.prometheus import client as client_module
from hugeplan.inventory.prometheus.client import PrometheusClient
from hugeplan.settings import Settings

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@contextmanager
def saying(first: bytes, *again: bytes, pause: float = 0.05) -> Iterator[str]:
    """The URL of a server that says this of every request; then, while anybody listens, the rest over and over."""
    stop = threading.Event()

    def say(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(first)
            for piece in cycle(again):
                if stop.wait(pause):
                    break
                connection.sendall(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=say, args=[server.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        stop.set()
        server.shutdown(socket.SHUT_RDWR)


def whole(document: object) -> bytes:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@pytest.fixture(autouse=True)
def _bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    monkeypatch.setattr(service_client, "SECONDS", 0.5)
    monkeypatch.setattr(service_client, "MOST_BYTES", 100_000)


@pytest.mark.parametrize("pieces", [(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
                                    (HEAD + b"\r\n", b" "), (b"", b"H", b"")],
                         ids=["head", "continue", "body", "word"])  # fmt: skip
def test_one_deadline_is_over_head_and_body(pieces: tuple[bytes, ...]) -> None:
    """Each piece comes within the limit of one read."""
    began = time.monotonic()
    with saying(*pieces) as url:
        with pytest.raises(InputError, match=rf"--to {url}: no answer within 0\.5 s$"):
            ServiceClient(url, option="--to").ask("trials")
        words = r"no answer within 0\.5 s to the query up$"
        with PrometheusClient(url, timeout_seconds=0.5) as client, pytest.raises(InventoryError, match=words):
            client.query("up")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("coding", [b"", b"content-encoding: gzip, gzip\r\n", b"content-encoding: zstd\r\n"])
def test_an_answer_has_a_bound_of_bytes(coding: bytes) -> None:
    """Also one that is packed twice, of which 64 kB make 64 GB."""
    words = "it has more than 100000 bytes" if not coding else "content-encoding"
    with saying(HEAD + coding + b"\r\n", b" " * 10_000, pause=0) as url:
        with pytest.raises(InputError, match=words):
            ServiceClient(url, option="--to").ask("trials")
        with PrometheusClient(url, body_max=100_000) as client, pytest.raises(InventoryError, match=words):
            client.query("up")


@pytest.mark.parametrize(("one", "words"), [
    (b"[" + b"[]," * 400_000 + b"[]]", "an answer with a series of more than 1048576 bytes"),
    (b'{"metric":{"a":{' + b'"b":[],' * 200_000 + b'"c":0}},"value":[1,"2"]}', "of more than 1048576 bytes"),
    (b",".join(b'{"metric":{"pod":"%d"},"value":[1,"2"]}' % pod for pod in range(30_000)), "take more than 10000000"),
    (b",".join([b'{"metric":{"pod":"a"},"values":[%b]}' % b",".join([b'[1,"2"]'] * 10_000)] * 20), "than 10000000"),
], ids=["lists", "labels", "series", "points"])  # fmt: skip
def test_what_an_answer_of_prometheus_takes_once_read_is_bounded(
    one: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of JSON is up to 17 of Python."""
    monkeypatch.setattr(client_module, "_KEPT_MAX", 10_000_000)
    monkeypatch.setattr(client_module, "_WHOLE_MAX", 2**20)
    said = whole(b'{"status":"success","data":{"result":[%b]}}' % one)
    with saying(said, b"") as url, PrometheusClient(url) as client, pytest.raises(InventoryError, match=words):
        client.query("up")


@pytest.mark.parametrize(("separators", "is_sorted"), [((",", ":"), False), ((", ", ": "), False), ((",", ":"), True)])
def test_an_answer_in_many_parts_is_whole(separators: tuple[str, str], is_sorted: bool) -> None:
    """No part ends within a text, and labels that nobody reads are dropped."""
    odd = {"pod": '},{"metric":', "uid": "x" * 300}
    every = [{"metric": {**odd, "node": f"n{at}"}, "value": [7, str(at)]} for at in range(10_000)]
    every[9_000]["metric"]["blob"] = "b" * 1_100_000  # type: ignore[index]
    body = json.dumps(
        {"status": "success", "data": {"result": every}}, separators=separators, sort_keys=is_sorted
    ).encode()
    with saying(whole(body), b"") as url, PrometheusClient(url) as client:
        found = client.query("up")
    assert [(one.labels, one.value) for one in found] == [
        ({"pod": odd["pod"], "node": f"n{at}"}, at) for at in range(10_000)
    ]


def test_every_label_that_is_asked_for_is_read() -> None:
    folder = Path(client_module.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    asked = set(re.findall(r"""labels(?:\.get\(|\[)"(\w+)\"""", text)) | {clusters.LABEL, *believed._OF_NODE}
    assert asked == set(queries.LABELS)


@pytest.mark.parametrize("answer", [{}, [1], b"{not", b"[" * 50_000, b"\xff", {"items": 1, "next_cursor": None},
                                    {"items": [1], "next_cursor": None}, {"items": [{}], "next_cursor": None},
                                    {"items": [], "next_cursor": 7}, {"items": [], "next_cursor": "the same"},
                                    {"items": [{"page_sizes": [{"text": "x", "page_size": "2M", "predicted": 1}],
                                                "machine_type": 1, "started_at": {}}], "next_cursor": None},
                                    {"items": [{"page_sizes": [{"text": "x", "page_size": "2M", "predicted": None,
                                                                "gain": []}], "machine_type": None,
                                                "started_at": "2026"}], "next_cursor": None}])  # fmt: skip
def test_a_list_of_odd_types_is_one_sentence(answer: object, capsys: pytest.CaptureFixture[str]) -> None:
    with saying(whole(answer)) as url:
        assert cli.main(["backtest", "--trials", url]) == 2
        with pytest.raises(InputError, match=f"^--to {url}: not an answer of hugeplan$"):
            import_inventory._keep(ServiceClient(url, option="--to"), "source", [("n", "{}")])
    assert capsys.readouterr().err == f"hugeplan backtest: --trials {url}: not an answer of hugeplan\n"


@pytest.mark.parametrize(("bound", "least"), [("LIST_SECONDS", 0.1), ("LIST_MOST_BYTES", 500)])
def test_a_list_without_end_ends(bound: str, least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_client, bound, least)
    numbers = count()

    def ask(*_: object, **__: object) -> Answer:
        return Answer(200, httpx.Headers(), json.dumps({"items": [], "next_cursor": f"{next(numbers)}"}).encode())

    monkeypatch.setattr(ServiceClient, "ask", ask)
    with pytest.raises(InputError, match="a list without end"):
        list(ServiceClient("http://x", option="--trials").items("trials"))


def test_a_list_that_is_one_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    gain = {"low": 1.0, "likely": 2.0, "high": 3.0}
    size = {"text": "t", "page_size": "2M", "gain": gain, "predicted": {**gain, "error_class": "clients"}}
    trial = {"page_sizes": [size, {**size, "predicted": None}], "started_at": "2026-01-02T03:04", "node_name": "n"}
    trials = [{**trial, "engine": "mysql", "version": None, "machine_type": kind} for kind in ("m", None)]
    with saying(whole({"items": trials, "next_cursor": None})) as url:
        assert cli.main(["backtest", "--trials", url]) == 0
    _, *lines, last = capsys.readouterr().out.splitlines()
    kinds = ["unknown machine type", "", "", "m", "", ""]
    assert [line if "mysql" not in line else "" for line in lines] == kinds
    assert last.startswith("4 measured page sizes of trials, 2 predicted")
    assert "2 inside" in last


@pytest.mark.parametrize("rest", [(b"x",), (b"x" * 1_000_000,)], ids=["drips", "never ends"])
def test_a_doctor_asks_who_listens_in_the_services_place(rest: tuple[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ANSWER_SECONDS", 0.5)
    with saying(HEAD + b"content-length: 99999999999\r\n\r\n", *rest, pause=0.01) as url:
        began = time.monotonic()
        (found,) = doctor.check_answer(Settings(port=int(url.rpartition(":")[2])))
    assert found.state == "attention"
    assert time.monotonic() - began < 10


def test_a_trial_of_more_page_sizes_than_any_machine_has_is_not_copied_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = {"page_size": "2M", "text": "x", "predicted": None, "gain": None}
    trial = {"machine_type": "m", "started_at": "x", "page_sizes": [size] * 500}
    monkeypatch.setattr(backtest, "_trial_line", lambda _: "")
    with saying(whole({"items": [trial], "next_cursor": None})) as url:
        assert cli.main(["backtest", "--trials", url, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 16
