"""The validation's own arithmetic: sizes, noise, verdicts. Measuring itself is ``make validate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hugeplan.hardware.catalogue import by_id, hardware_facts
from hugeplan.measuring.batches import Batch, Pair, clients_per_cpu
from hugeplan.measuring.pools import CannotReserveError, pool_folder, reserved
from hugeplan.measuring.postgresql_clients import Case, cases
from hugeplan.measuring.postgresql_server import GIB, Shape
from validate.compare import Prediction, judge, median_speedup, noise_of, predict, standard_error
from validate.matrix import cells, meets_bar, table
from validate.matrix import main as matrix_main

CASE = Case("nested loop", 0, (0,))
M2 = 2 << 20


def pairs(first_ns: float, second_ns: float, spread: float = 0.0) -> list[Pair]:
    """Twelve pairs with the given CPU time per operation; every other second batch is dearer by ``spread``."""
    return [
        Pair(Batch(1e9 / first_ns, first_ns), Batch(1e9 / second_ns, second_ns * (1 + spread * (n % 2))))
        for n in range(12)
    ]


def prediction(calibration: list[Pair]) -> Prediction:
    entry = by_id("amd-zen5-turin")
    assert entry is not None
    return predict(
        case=CASE,
        shape=Shape(6 * GIB, 100, 8 * GIB),
        data_bytes=6 * GIB,
        page_bytes=M2,
        hardware=hardware_facts(entry, virtualised=False),
        calibration=calibration,
    )


def test_rows_fill_the_wanted_bytes() -> None:
    """A real PostgreSQL 15: 39,000,000 rows of 100 bytes took 5253 MiB of heap and 835 MiB of index."""
    assert Shape((5253 + 835) << 20, 100, 8 * GIB).rows == pytest.approx(39_000_000, rel=0.002)
    wide, narrow = Shape(6 * GIB, 8000, 8 * GIB).rows, Shape(6 * GIB, 1000, 8 * GIB).rows
    assert 6 * GIB / 8600 < wide < 6 * GIB / 8000
    assert narrow == pytest.approx(6 * GIB / (8192 / 7 + 22.5), rel=0.001)


def test_one_client_and_the_nested_loop_stay_on_one_cpu() -> None:
    made = {case.name: case for case in cases([1, 8], nested_loop=True)}
    assert list(made) == ["1 client", "8 clients", "nested loop"]
    assert len(made["1 client"].cpus) == len(made["nested loop"].cpus) == 1
    assert made["nested loop"].operation_class == "nested_loop"


def test_noise_is_the_distance_from_one_or_the_scatter() -> None:
    assert noise_of(pairs(4000, 4000)) == 0.0
    assert noise_of(pairs(4100, 4000)) == pytest.approx(0.025)
    assert noise_of(pairs(4000, 4000, spread=0.2)) > 0.05
    assert standard_error(pairs(4000, 4000, spread=0.2)) > 0.0


def test_a_noisy_machine_widens_what_is_expected_and_not_the_model() -> None:
    quiet, noisy = prediction(pairs(4000, 4000)), prediction(pairs(4100, 3900))
    assert quiet.gain.speedup == noisy.gain.speedup
    assert quiet.expected.low > noisy.expected.low
    assert quiet.expected.high < noisy.expected.high


def test_verdicts_compare_the_median_of_all_rounds() -> None:
    said = prediction(pairs(4000, 4000))
    assert said.gain.speedup is not None
    huge = 4000 / said.gain.speedup.likely
    rounds = [{CASE.name: pairs(4000, ns)} for ns in (huge, 1000, huge)]
    inside = judge([said], rounds)[0]
    assert inside.measured == pytest.approx(said.gain.speedup.likely)
    assert inside.by_round[1] == pytest.approx(4.0)
    assert inside.inside_model
    assert inside.saved_ns == pytest.approx(4000 - huge)
    assert median_speedup(pairs(4000, 8000)) == 0.5
    outside = judge([said], [{CASE.name: pairs(4000, 8000)}])[0]
    assert not outside.inside_model
    assert not outside.inside_expected


def test_pages_that_do_not_exist_are_refused_by_name() -> None:
    assert pool_folder(M2) == Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
    with pytest.raises(CannotReserveError, match="12288"), reserved(12288, 1):
        pytest.fail("no such page size")


@pytest.mark.parametrize(
    ("clients", "cpus", "expected"),
    [(8, (0, 1), {0: 4, 1: 4}), (5, (0, 1), {0: 3, 1: 2}), (1, (3,), {3: 1}), (2, (0, 1, 2), {0: 1, 1: 1})],
)
def test_every_cpu_has_its_share_of_clients(clients: int, cpus: tuple[int, ...], expected: dict[int, int]) -> None:
    assert clients_per_cpu(clients, cpus) == expected


def _part(ns: float, huge_ns: float, pairs_of: int = 4) -> list[dict[str, dict[str, float]]]:
    pair = {"first": {"rate": 1e9 / ns, "cpu_ns": ns}, "second": {"rate": 1e9 / huge_ns, "cpu_ns": huge_ns}}
    return [pair] * pairs_of


def _matrix(measured: dict[str, float], low: float, high: float) -> dict[str, object]:
    parts: dict[str, object] = {"curves": "curves.json"}
    for case, speedup in measured.items():
        said = {"low": low, "likely": (low + high) / 2, "high": high}
        parts[f"128 prediction {case}"] = {"row_bytes": 128, "case": case, "speedup": said, "noise": 0.01}
        parts[f"128 round 1 {case}"] = _part(1000.0 * speedup, 1000.0)
        parts[f"128 round 2 {case}"] = _part(1000.0 * speedup, 1000.0)
    return parts


def test_the_matrix_counts_cpu_and_throughput_of_every_cell() -> None:
    found = cells(_matrix({"1 client": 1.05, "8 clients": 1.2}, 1.0, 1.1))
    assert [(cell.case, cell.pairs, round(cell.cpu, 6), round(cell.throughput, 6)) for cell in found] == [
        ("1 client", 8, 1.05, 1.05),
        ("8 clients", 8, 1.2, 1.2),
    ]
    assert not meets_bar(found)  # two of four values lie inside
    assert "inside: 1 of 2 as CPU per operation, 1 of 2 as throughput" in table(found)


def test_the_bar_wants_narrow_ranges_too() -> None:
    assert meets_bar(cells(_matrix({"1 client": 1.05}, 1.0, 1.2)))
    assert not meets_bar(cells(_matrix({"1 client": 1.05}, 0.99, 1.2)))  # 21 points hold nearly anything
    assert not meets_bar([])  # nothing measured shows nothing


def test_a_matrix_goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Finished parts are read back; a cell without a prediction is no cell, and missing parts are said."""
    parts = _matrix({"1 client": 1.05}, 1.0, 1.1) | {"128 round 1 8 clients": _part(1000.0, 900.0)}
    (tmp_path / "matrix.json").write_text(json.dumps(parts), encoding="utf-8")
    assert matrix_main(["--report", "--work-dir", str(tmp_path)]) == 0
    assert "8 clients" not in capsys.readouterr().out
    assert matrix_main(["--parts", "0", "--work-dir", str(tmp_path)]) == 3
    assert matrix_main(["--report", "--work-dir", str(tmp_path / "none")]) == 3
