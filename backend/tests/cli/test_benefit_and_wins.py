"""``hugeplan benefit`` and ``hugeplan wins``: pasted tables and sets of runs, without a server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hugeplan.cli import main
from hugeplan.planner.model import GIB

# Percona 2016, tpcc-mysql NOTPM over buffer pool size in GiB (published_results.json, article C, PM1725, 16K).
SERIES = """42427.57 78991.67 108077.56 122582.17 127828.82 130724.59
    131901.38 133184.7 133058.5 133553.49 134021.26 134037.09"""
ROWS = [(size, value) for size, value in zip(range(5, 116, 10), SERIES.split(), strict=True)]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "text",
    [
        "pool_gib,notpm\n" + "\n".join(f"{b},{x}" for b, x in ROWS),
        "\ufeffPool (MiB);NOTPM\r\n" + "\r\n".join(f"{b * 1024};{x.replace('.', ',')}" for b, x in ROWS),
        "| pool | notpm | error |\n|---|---:|---|\n" + "\n".join(f"| {b} GB | {x} | 3 |" for b, x in ROWS),
        '"size"\t"tps"\n' + "\n".join(f'"{b}GiB"\t"{x}"' for b, x in ROWS),
        "# measured on Monday\n\n" + "\n".join(f"{b}   {x}" for b, x in reversed(ROWS)),
        "bytes,tps\n" + "\n".join(f"{b * GIB},{x}" for b, x in ROWS),
    ],
)
def test_one_table_in_many_shapes(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reference fit within 2 % of each parameter, its knees, and a word where the data end."""
    asked = ["--at", "40GiB", "--at", "400GiB", "--worth", "200", "--json"]
    assert main(["benefit", write(tmp_path / "t.csv", text), *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["limit"] == pytest.approx(132334.1, rel=0.02)
    assert found["slope"] == pytest.approx(118863.95, rel=0.02)
    assert found["end_bytes"] / GIB == pytest.approx(66.51, rel=0.02)
    assert [knee["measured_bytes"] // GIB for knee in found["knees"]] == [45, 75]
    inside, outside = found["at"]
    assert (inside["extrapolated"], outside["extrapolated"]) == (False, True)
    assert outside["per_gib"] == 0.0
    assert 40 * GIB < found["worth_less_bytes"] < 50 * GIB


def test_the_readable_form_says_where_the_data_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.csv", "\n".join(f"{b},{x}" for b, x in ROWS))
    assert main(["benefit", path, "--at", "400GiB", "--worth", "200"]) == 0
    printed = capsys.readouterr().out
    assert "extrapolated: 400 GiB lies outside the measured 5 to 115 GiB" in printed
    assert "95 % of the best: 45 GiB measured" in printed
    assert "one GiB more brings less than 200" in printed
    begun = time.process_time()
    path = write(tmp_path / "t.csv", "\n".join(f"{20 + i},{100 + i * 3 + i % 7 * 9}" for i in range(2_000)))
    assert main(["benefit", path]) == 0
    assert time.process_time() - begun < 2  # 4 s, where each point looked at all


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5,42,427.57\n15,78,991.67\n25,90\n35,91", "line 1"),
        ("5;1,234\n15;1,300", "line 1"),
        ("pool;tps\n5;1,234\n15;1,300", "line 2"),
        ("5 10\n15 20\n25 nan\n35 30", "line 3"),
        ("5 10\n15 20\n1e400 25\n35 30", "line 3"),
        ("tps,pool (GiB)\n10,5\n20,15", "the pool size in the first column"),
        ("5 10\n15 20\n25 30", "at least 4 pool sizes"),
        ("5 10\n15 20\n25 30\n25 31", "each size once"),
        ("", "lines of a pool size and a throughput"),
        ("5 10 0.1\n15 20 0.1", "more columns need a heading"),
        ("pool,tps\n5,10\n15,20,3", "line 3"),
        ("5 0\n15 20\n25 30\n35 30", "line 1"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benefit", write(tmp_path / "t.csv", text)]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert said in caught.err
    assert caught.err.count("\n") == 1


def document(ns: dict[str, tuple[float, float, float]], rates: dict[str, float]) -> dict[str, Any]:
    """A run with one latency point and one kind of rows, measured with these page sizes."""
    sizes = {"4K": 4096, "2M": 2 << 20, "1G": 1 << 30}
    curves = [
        {
            "backing": backing, "page_bytes": sizes[backing], "layout": "random_64b", "x_name": "footprint_bytes",
            "name": "latency",
            "status": "ok", "points": [{"x": GIB, "ns_p50": p50, "ns_p10": low, "ns_p90": high}],
        }
        for backing, (p50, low, high) in ns.items()
    ]  # fmt: skip
    rows = [
        {"backing": backing, "page_bytes": sizes[backing], "row_bytes": 128, "workers": 8, "rows_per_second": rate}
        for backing, rate in rates.items()
    ]
    head = {
        "schema_version": 1,
        "tool": {"name": "tlbbench", "version": "0.1.0"},
        "command": "run",
        "started_at": "2026-11-20T12:00:00Z",
    }
    return head | {"latency": {"curves": curves}, "rows": {"measurements": rows}}


def test_shares_and_means_over_two_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = document({"4K": (100, 98, 102), "2M": (50, 49, 51)}, {"4K": 1e6, "2M": 1.005e6})
    second = document({"4K": (100, 98, 102), "1G": (200, 190, 210)}, {"4K": 1e6, "1G": 2e6})
    paths = [write(tmp_path / f"{i}.json", json.dumps(run)) for i, run in enumerate((first, second))]
    assert main(["wins", paths[0], f"rack={paths[1]}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cases"] == 4
    assert found["shares"] == {"4K": 0.25, "2M": 0.25, "1G": 0.25, "tie": 0.25}  # half a per cent of rows is a tie
    assert found["lowest"] == {"4K": 0.25, "2M": 0.5, "1G": 0.25}
    machines = {machine["machine"]: machine for machine in found["machines"]}
    assert machines["0"]["best"] == "2M"
    assert machines["rack"]["mean_delta_percent"]["1G"] == pytest.approx(0.0)  # twice as slow and twice as fast
    assert main(["wins", *paths]) == 0
    assert "4 cases, won with intervals apart" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a tlbbench document"),
        ('{"schema_version": 2}', "schema_version 1"),
        ('{"schema_version": 1, "geometry": {"levels": [{"x": 1}]}}', "wrong or missing field: tool"),
        (json.dumps(document({}, {}) | {"rows": {"measurements": [{"page_bytes": 4096}]}}), "measurements.0.backing"),
    ],
)
def test_a_broken_run_is_one_line(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wins", write(tmp_path / "r.json", text)]) == 2
    caught = capsys.readouterr()
    assert said in caught.err
    assert caught.err.count("\n") == 1


def test_runs_without_two_sizes_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wins", write(tmp_path / "r.json", json.dumps(document({"4K": (1, 1, 1)}, {})))]) == 0
    assert "No point" in capsys.readouterr().out


def test_a_scenario_takes_the_pasted_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan says what the planned pool reaches, where the knees are, and that it does not know beyond the data."""
    rows = "\n".join(f"        {b}, {x}" for b, x in ROWS)
    text = f"""node: {{memory: 256GiB}}
databases:
- name: shop
  engine: mysql
  settings: {{innodb_buffer_pool_size: 40G}}
  workload:
    benefit_table: |
{rows}
"""
    assert main(["plan", write(tmp_path / "s.yaml", text), "--json"]) == 0
    (instance,) = json.loads(capsys.readouterr().out)["plan"]["instances"]
    benefit = instance["pool_benefit"]
    assert benefit["points"] == 12
    assert benefit["limit"] == pytest.approx(132334.1, rel=0.02)
    assert 30 * GIB < benefit["knee_95_bytes"] < benefit["knee_99_bytes"] <= 75 * GIB
    assert benefit["extrapolated"] is False
    assert main(["plan", write(tmp_path / "s.yaml", text.replace("40G}", "160G}")), "--verbose"]) == 0
    assert "outside the measured 5 to 115 GiB, so this is extrapolated" in " ".join(capsys.readouterr().out.split())
    broken = text.replace("        15, 78991.67", "        15, many")
    assert main(["plan", write(tmp_path / "s.yaml", broken)]) == 2
    said = capsys.readouterr().err
    assert "databases[0].workload.benefit_table" in said
    assert "line 2" in said
