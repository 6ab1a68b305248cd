"""The runs of ``make validate`` as the table of docs/model-results.md: ``python -m validate.runs_table``.

The page keeps what stands between its two marks as this prints it (``backend/tests/evidence/test_routes.py``).
"""

from __future__ import annotations

from typing import Any

from hugeplan.evidence.published import validation_runs

HEAD = (
    "| date | processor | data, pool, row | case | predicted (range then), % | CPU per operation | throughput | range |"
)
_VERDICTS = {"inside": "holds it", "within_noise": "within the noise", "outside": "**misses it**"}


def table() -> str:
    """One row per run, in the order of the data; gains in percent, 2M pages over 4K."""
    rows = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    rows += ["| " + " | ".join(_cells(run)) + " |" for run in validation_runs()["items"]]
    return "\n".join(rows) + "\n"


def _cells(run: dict[str, Any]) -> list[str]:
    predicted = run["predicted_percent"]
    rounds = ", ".join(_signed(value) for value in run["measured_rounds_percent"])
    measured = _signed(run["measured_percent"])
    if rounds:
        measured = rounds if measured == "-" else f"{measured}: {rounds}"
    return [
        run["date"],
        " ".join(run["machine"].split(" KVM")[0].split()[-2:]),
        run["configuration"].replace(" of data, shared_buffers ", ", ").replace(", rows of ", ", "),
        run["case"],
        f"{_signed(predicted['likely'])} ({_signed(predicted['low'])} to {_signed(predicted['high'])})",
        measured,
        _signed(run["measured_throughput_percent"]),
        _VERDICTS[run["verdict"]],
    ]


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


if __name__ == "__main__":
    print(table(), end="")
