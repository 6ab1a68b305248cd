"""The catalogue's lookups, and reading a tlbbench document."""

from __future__ import annotations

from typing import Any

import pytest

from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.hardware import catalogue
from hugeplan.hardware.curves import hardware_facts_of
from hugeplan.planner.gain.walk_cost import granule_of, tlb_entries
from hugeplan.planner.model import Source

K4, M2, G1 = 4096, 2 << 20, 1 << 30


@pytest.mark.parametrize(
    ("catalogue_id", "page_bytes", "l1", "l2"),
    [
        ("intel-icelake-sp", K4, 64, 2048),
        ("intel-icelake-sp", M2, 32, 1024),
        ("intel-icelake-sp", G1, 8, 1024),
        ("intel-emerald-rapids", K4, 96, 2048),
        ("amd-zen3-milan", K4, 64, 2048),
        ("amd-zen3-milan", M2, 64, 2048),
        ("amd-zen5-turin", K4, 96, 4096),
        ("amd-opteron-k8-rev-e-f", M2, 8, None),
    ],
)
def test_data_entries_by_page_size(catalogue_id: str, page_bytes: int, l1: int, l2: int | None) -> None:
    """Structures that hold a size add up; store-only and instruction structures do not count."""
    entry = catalogue.by_id(catalogue_id)
    assert entry is not None
    facts = catalogue.hardware_facts(entry, virtualised=False)
    assert tlb_entries(facts, page_bytes) == (l1, l2, Source.CATALOGUE)


def test_lookups() -> None:
    assert getattr(catalogue.by_cpuid("AuthenticAMD", 26, 2), "id", None) == "amd-zen5-turin"
    assert getattr(catalogue.by_cpuid("GenuineIntel", 6, 85, 7), "id", None) == "intel-cascade-lake-sp"
    assert getattr(catalogue.by_cpuid("GenuineIntel", 6, 85, 4), "id", None) == "intel-skylake-sp"
    assert catalogue.by_cpuid("GenuineIntel", 6, 9999) is None
    assert getattr(catalogue.by_midr(0x413FD0C1), "id", None) == "arm-neoverse-n1"
    assert getattr(catalogue.by_pvr(0x004E1203), "id", None) == "ibm-power9"
    assert catalogue.by_midr(None) is None
    assert catalogue.by_pvr(None) is None


def test_every_entry_names_its_sources() -> None:
    assert len(catalogue.catalogue()) >= 28
    for entry in catalogue.catalogue():
        assert entry.raw["sources"], entry.id


HEAD = {
    "schema_version": 1,
    "tool": {"name": "tlbbench", "version": "0.1.0"},
    "command": "run",
    "started_at": "2026-11-20T12:00:00Z",
}


def document(**changes: Any) -> TlbbenchDocument:
    point = {"x": 1 << 30, "ns_min": 99.0, "ns_p10": 100.0, "ns_p50": 101.0, "ns_p90": 104.0, "ns_mad": 1.0}
    curve = {
        "name": "c",
        "x_name": "footprint_bytes",
        "backing": "4K",
        "backing_kind": "base",
        "page_bytes": K4,
        "layout": "random_64b",
        "granted_fraction": None,
        "status": "ok",
        "points": [point, {**point, "x": 1 << 20}],
    }
    content = {
        **HEAD,
        "environment": {
            "processor": {"architecture": "x86_64", "vendor": "AuthenticAMD", "family": 26, "model": 2, "stepping": 1},
            "hypervisor": {"present": True, "name": "KVM"},
        },
        "geometry": {
            "levels": [
                {
                    "level": 1,
                    "kind": "data",
                    "page_bytes": K4,
                    "entries": 95,
                    "source": "measured",
                    "confidence": "high",
                }
            ],
            "effective_granule": [
                {
                    "backing": "2M",
                    "backing_kind": "hugetlb",
                    "page_bytes": M2,
                    "granule_bytes": K4,
                    "status": "fractured",
                }
            ],
            "penalty": [{"level": "l2_hit", "page_bytes": K4, "ns": 2.4}],
            "clock": {"core_hz": 3e9},
        },
        "latency": {
            "curves": [curve, {**curve, "backing": "THP", "granted_fraction": 0.2}, {**curve, "status": "failed"}]
        },
        **changes,
    }
    return TlbbenchDocument.model_validate(content)


def test_a_document_becomes_facts() -> None:
    facts = hardware_facts_of(document())
    assert facts.catalogue_id == "amd-zen5-turin"
    assert facts.virtualised is True
    assert facts.l2_hit_penalty_ns == 2.4
    assert granule_of(facts, M2) == K4
    assert tlb_entries(facts, K4)[:2] == (95.0, 4096.0)  # measured first, catalogue for the gap
    assert len(facts.curves) == 1  # THP was not granted, the third failed
    assert [p.footprint_bytes for p in facts.curves[0].points] == [1 << 20, 1 << 30]


def test_absent_sections_stay_unknown() -> None:
    facts = hardware_facts_of(
        TlbbenchDocument.model_validate(HEAD | {"environment": {"processor": {}, "hypervisor": {"present": None}}})
    )
    assert facts.virtualised is None
    assert facts.levels == facts.granules == facts.curves == ()
    assert facts.l2_hit_penalty_ns is None


def test_what_cpuid_hides_in_a_guest_the_catalogue_fills() -> None:
    """Zen 5 guests see 128 second-level entries where the processor has 4096: the catalogue wins over CPUID."""
    hidden = {"level": 2, "kind": "data", "page_bytes": K4, "entries": 128, "source": "cpuid", "confidence": "low"}
    facts = hardware_facts_of(document(geometry={"levels": [hidden]}))
    assert tlb_entries(facts, K4) == (96.0, 4096.0, Source.CATALOGUE)
    measured = hidden | {"entries": 4001, "source": "measured"}
    facts = hardware_facts_of(document(geometry={"levels": [hidden, measured]}))
    assert tlb_entries(facts, K4)[1] == 4001.0
