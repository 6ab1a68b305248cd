"""catalogue.complete: the catalogue fills what is unknown and never replaces what is known."""

from __future__ import annotations

from hugeplan.hardware.catalogue import complete
from hugeplan.planner.model import HardwareFacts, Source, TlbLevel

TURIN = HardwareFacts(vendor="AuthenticAMD", family=26, model=2, virtualised=True)


def test_a_known_processor_gets_its_levels_and_name() -> None:
    found = complete(TURIN)
    assert found.catalogue_id == "amd-zen5-turin"
    assert found.uarch is not None
    assert {level.source for level in found.levels} == {Source.CATALOGUE}
    assert found.vendor == "AuthenticAMD"
    assert found.virtualised is True


def test_the_id_of_an_entry_is_enough() -> None:
    found = complete(HardwareFacts(catalogue_id="amd-zen5-turin"))
    assert found.levels == complete(TURIN).levels


def test_measured_levels_are_kept() -> None:
    measured = TlbLevel(level=1, kind="data", page_bytes=4096, entries=96, source=Source.MEASURED)
    facts = HardwareFacts(vendor="AuthenticAMD", family=26, model=2, levels=(measured,), l2_hit_penalty_ns=2.5)
    found = complete(facts)
    assert found.levels == (measured,)
    assert found.l2_hit_penalty_ns == 2.5


def test_an_unknown_processor_stays_as_it_is() -> None:
    for facts in (HardwareFacts(), HardwareFacts(vendor="Nobody", family=1, model=1), HardwareFacts(catalogue_id="x")):
        assert complete(facts) == facts
