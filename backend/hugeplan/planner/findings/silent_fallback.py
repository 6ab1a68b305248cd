"""Would the engine fall back without a word? huge_pages = try is the default of PostgreSQL and hides a short pool."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import OnShortage, engine_named
from hugeplan.planner.findings.base import FindingInputs, attention, given, ok
from hugeplan.planner.model import Finding

CODE = "silent_fallback"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool."""
    for instance, planned in inputs.with_pool:
        shortage = inputs.pool_uses[instance.name].on_shortage
        engine = engine_named(planned.engine)
        setting, refusing = engine.refusal or (None, None)
        if shortage is OnShortage.REFUSE:
            yield ok(
                CODE,
                instance.name,
                "A short pool will be noticed",
                "The engine refuses to start, so a short pool is noticed.",
            )
            continue
        how = "takes what there is" if shortage is OnShortage.PARTIAL else "silently uses base pages"
        fix = (
            f"Set {setting} = {refusing}." if setting else "Check the server's log and HugePages_Rsvd after each start."
        )
        default = next((spec.default for spec in engine.settings if spec.name == setting), None)
        value = instance.settings.get(setting, f"{default}, the default") if setting else "no setting refuses it"
        yield attention(
            CODE,
            instance.name,
            "A short pool may go unnoticed",
            f"With a short pool the engine {how}.",
            fix,
            evidence=(given(setting or "engine", value),),
        )
