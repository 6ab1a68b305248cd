"""Hardware facts for a scenario: the catalogue's entry of a named processor, and tlbbench documents as files."""

from __future__ import annotations

from dataclasses import replace

from hugeplan.hardware import catalogue
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import HardwareFacts


def with_catalogue(facts: HardwareFacts) -> HardwareFacts:
    """The facts, with TLB levels from the catalogue where the processor is in it; unchanged where it is not.

    A ``catalogue_id`` that the catalogue does not have is a PlannerError.
    """
    if facts.catalogue_id is not None:
        entry = catalogue.by_id(facts.catalogue_id)
        if entry is None:
            known = ", ".join(e.id for e in catalogue.catalogue())
            raise PlannerError("node.hardware.cpu.catalogue_id", facts.catalogue_id, f"one of {known}")
    else:
        entry = catalogue.by_cpuid(facts.vendor, facts.family, facts.model)
    if entry is None:
        return facts
    found = catalogue.hardware_facts(entry, virtualised=facts.virtualised, core_hz=facts.core_hz)
    return replace(found, family=facts.family, model=facts.model)
