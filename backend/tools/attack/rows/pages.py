"""The interface's files and the API's description: ranges, conditions, encodings and addresses of all kinds."""

from __future__ import annotations

from functools import partial

from tools.attack.rig import Attack, Target, WrongAnswerError

RANGES = {
    "100 ranges": "bytes=" + ",".join(f"{2 * number}-{2 * number}" for number in range(100)),
    "6,000 ranges": "bytes=" + ",".join("0-0" for _ in range(6_000)),
    "100 overlapping ranges": "bytes=" + ",".join("0-" for _ in range(100)),
    "a range of 4,000 digits": "bytes=0-" + "9" * 4_000,
    "a range of 20,000 digits": "bytes=-" + "9" * 20_000,
    "30,000 spaces": "bytes=" + " " * 30_000 + "0-0",
    "30,000 commas": "bytes=" + "," * 30_000,
}
ADDRESSES = (
    "/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/..%5c..%5c", "/%00",
    "//etc/passwd", "/assets/%c0%ae%c0%ae/", "/.git/config",
    "/assets/" + "a/" * 6_000, "/" + "%" * 9_000, "/;.js", "/index.html/..",
)  # fmt: skip
LARGEST = 2 * 1024**2


def _get(running: Target, path: str, **headers: str) -> tuple[int, int]:
    """Status and size of a file."""
    with running.client(None) as client:
        answer = client.get(path, headers=headers)
    if answer.status_code >= 500:
        raise WrongAnswerError(f"{path[:60]} was answered {answer.status_code}")
    if len(answer.content) > LARGEST:
        raise WrongAnswerError(f"{path[:60]} was answered with {len(answer.content)} bytes")
    return answer.status_code, len(answer.content)


def _ranges(value: str, running: Target) -> str:
    found = [_get(running, path, Range=value)[0] for path in ("/api/openapi.json", "/api/docs", "/favicon.svg", "/")]
    return ", ".join(map(str, found))


def _addresses(running: Target) -> str:
    """Nothing outside of the build is answered, and no address costs a walk over the disk."""
    for path in ADDRESSES:
        with running.connect() as opened:
            opened.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while part := opened.recv(65536):
                answer += part
        if b"root:" in answer or b"[core]" in answer or answer[9:10] == b"5":
            raise WrongAnswerError(f"{path[:60]} was answered {answer[:80]!r}")
    return f"{len(ADDRESSES)} addresses"


def _conditions(running: Target) -> str:
    """Conditions and encodings as long as a head may be."""
    tags = ", ".join(f'"{number:030d}"' for number in range(850))
    encodings = ", ".join(f"x{number};q=0.{number}" for number in range(2_000))
    found = [
        _get(running, "/api/openapi.json", **{"If-None-Match": tags})[0],
        _get(running, "/", **{"If-None-Match": tags})[0],
        _get(running, "/", **{"Accept-Encoding": encodings})[0],
        _get(running, "/", **{"If-Modified-Since": "x" * 30_000})[0],
        _get(running, "/", **{"If-Range": '"' + "x" * 30_000, "Range": "bytes=0-"})[0],
    ]
    return ", ".join(map(str, found))


ROWS = (
    *(Attack(f"files: {what}", partial(_ranges, value), requests=4) for what, value in RANGES.items()),
    Attack("files: addresses outside of the build", _addresses, requests=len(ADDRESSES)),
    Attack("files: long conditions and encodings", _conditions, requests=5),
)
