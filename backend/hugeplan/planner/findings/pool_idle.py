"""Is reserved memory idle, or held by something that the scenario does not describe?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, measured, ok, unknown
from hugeplan.planner.model import Finding, PoolPlan
from hugeplan.planner.observation.sizes_unread import not_read, settings_of
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_idle"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each pool that others hold, has more pages than planned, or is idle; else one for the node."""
    found = [finding for pool in inputs.pools for finding in _of_pool(inputs, pool)]
    if inputs.in_use.guessed:
        who = ", ".join(inputs.in_use.guessed)
        title = f"Whether the pages in use are those of {who} is not known"
        why = (
            f"What {who} maps could not be read: as many pages in use as its settings come to are taken to be its own."
        )
        fix = "Let the agent read its mappings (CAP_SYS_PTRACE); pages of others would then stay beside the plan."
        yield unknown(CODE, inputs.node.name, title, why, fix)
    if any(numa.pools is None for numa in inputs.node.numa):
        title, why = "Whether reserved pages are idle is not known", "What the node has reserved today is not known."
        yield unknown(CODE, inputs.node.name, title, why)
    elif not found:
        yield ok(CODE, inputs.node.name, "No more is reserved than planned", "No pool is larger than the plan.")
    yield from found


def _of_pool(inputs: FindingInputs, pool: PoolPlan) -> Iterable[Finding]:
    label = page_label(pool.page_bytes)
    subject = f"{label} on NUMA node {pool.numa_node}"
    if pool.held_pages:
        yield _held(inputs, pool, subject)
    if pool.present_pages is None:
        return
    more, state = pool.present_pages - pool.pages, inputs.state_of(pool)
    unread = inputs.unread
    pages = f"{more:,} pages of {label} ({format_bytes(max(0, more) * pool.page_bytes)})"
    evidence = (computed("planned", pool.pages), measured("present", pool.present_pages))
    if more > 0 and state is not None and state.idle is None:
        title = f"Whether {more:,} pages beyond the plan are idle is not known"
        why = f"{pages} may be promised to a process (HugePages_Rsvd): the pool's reserved count is not known."
        fix = f"Give the pool's reserved count; set nr_hugepages to {pool.pages} where it is 0."
        yield unknown(CODE, subject, title, why, fix, evidence=evidence)
    elif more > 0 and unread:
        title = f"Whether {more:,} pages beyond the plan are needed is not known"
        fix = f"Set {settings_of(unread)} as the server has it before pages are given back."
        yield unknown(
            CODE, subject, title, f"{pages} are beyond the plan, and {not_read(unread)}.", fix, evidence=evidence
        )
    elif state is not None and state.idle is not None and more > state.idle:
        title = f"{more:,} reserved pages are not needed once the plan's servers are restarted"
        why = f"{pages} are reserved beyond the plan; {more - state.idle:,} of them are in use until then."
        fix = f"Restart the servers with the plan's settings, then set nr_hugepages to {pool.pages}."
        yield attention(CODE, subject, title, why, fix, evidence=evidence)
    elif more > 0:
        title, why = f"{more:,} reserved pages are not needed", f"{pages} are reserved beyond the plan."
        fix = (
            f"Set nr_hugepages to {pool.pages}: these pages are free and not reserved. Where a server that is "
            "stopped, or waits for its restart, needs them, describe it first."
        )
        yield attention(CODE, subject, title, why, fix, evidence=evidence)
    elif not inputs.request.databases and pool.slack_pages:
        size = format_bytes(pool.slack_pages * pool.page_bytes)
        title = f"{pool.slack_pages:,} reserved pages are idle"
        why = f"{pool.slack_pages:,} pages of {label} ({size}) are free and not reserved."
        fix = "Describe the database that they are meant for, or release them."
        evidence = (measured("present", pool.present_pages), measured("idle", pool.slack_pages))
        yield attention(CODE, subject, title, why, fix, evidence=evidence)


def _held(inputs: FindingInputs, pool: PoolPlan, subject: str) -> Finding:
    """Pages that the plan keeps for others: in use by them, or nobody knows whether they are."""
    label = page_label(pool.page_bytes)
    state = inputs.state_of(pool)
    if state is None or state.in_use is None:
        title = f"Whether {pool.held_pages:,} reserved pages are in use is not known"
        why = f"The free count of the {label} pool is not known: {pool.held_pages:,} pages stay beside the plan's own."
        return unknown(CODE, subject, title, why, "Give the pool's free count, or let the agent report it.")
    who = ", ".join(pool.held_by) if pool.held_by else "something that the scenario does not describe"
    title = f"{pool.held_pages:,} pages are in use by something unknown" if not pool.held_by else f"{who} holds pages"
    why = f"{pool.held_pages:,} pages of {label} are mapped or reserved by {who}."
    fix = "Find out who maps them and add it to the scenario; the plan keeps these pages."
    return attention(CODE, subject, title, why, fix, evidence=(measured("in use", pool.held_pages),))
