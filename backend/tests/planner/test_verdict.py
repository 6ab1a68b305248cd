"""The verdict: one answer with its reason, and never red for a fault that the plan mends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.planner.model import (
    DatabaseInstance,
    Finding,
    KubernetesView,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    Plan,
    PlanRequest,
    Pool,
    Range,
    State,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.question import biggest_question
from hugeplan.planner.verdict import Answer, verdict

GIB = 1024**3


def made(*, memory_gib: int = 64, pages: int = 0) -> Plan:
    """The plan of one PostgreSQL on a node with so many pages of 2 MiB."""
    return plan(asked(memory_gib=memory_gib, pages=pages))


def asked(*, memory_gib: int = 64, pages: int = 0) -> PlanRequest:
    """What is planned: the processor is one of the catalogue, so that there is a gain."""
    pools = (Pool(page_bytes=2 * 1024**2, nr_hugepages=pages, free_hugepages=pages),)
    node = NodeFacts(
        name="db-7",
        arch="x86_64",
        base_page_bytes=4096,
        huge_page_sizes_bytes=(2 * 1024**2,),
        default_huge_page_bytes=2 * 1024**2,
        numa=(NumaNode(id=0, mem_total_bytes=memory_gib * GIB, pools=pools),),
    )
    database = DatabaseInstance(name="main", engine="postgresql", version="17", settings={"shared_buffers": "16GB"})
    return PlanRequest(node=node, databases=(database,))


def with_risk(found: Plan, *, meets_policy: bool | None) -> Plan:
    """The plan with another word on its risk."""
    return replace(found, risk=replace(found.risk, meets_policy=meets_policy))


def finding(code: str) -> Finding:
    """A fault of the node."""
    return Finding(code=code, subject="db-7", state=State.WRONG, title="It is wrong", reason="So.", fix="Mend it.")


def test_what_does_not_fit_is_not_done() -> None:
    found = verdict(made(memory_gib=8))
    assert found.answer is Answer.DONT
    assert found.reason


@pytest.mark.parametrize(
    ("meets_policy", "answer"), [(True, Answer.DO_IT), (False, Answer.DONT), (None, Answer.NOT_ENOUGH_KNOWN)]
)
def test_the_risk_decides(meets_policy: bool | None, answer: Answer) -> None:
    assert verdict(with_risk(made(), meets_policy=meets_policy)).answer is answer


def test_a_fault_that_the_plan_mends_holds_nothing_back() -> None:
    clean = with_risk(replace(made(), findings=()), meets_policy=True)
    assert verdict(replace(clean, findings=(finding("pool_short"),))).answer is Answer.DO_IT
    held = verdict(replace(clean, findings=(finding("fractured_guest"),)))
    assert (held.answer, held.after) == (Answer.DO_IT_AFTER, ("db-7: It is wrong. Mend it.",))


@pytest.mark.parametrize("pages", [1, 907, 8192, 8300])
def test_pages_that_the_plan_adds_hold_nothing_back(pages: int) -> None:
    """8,192 pages are the buffer pool alone: two findings call that wrong, and the plan mends both."""
    short = with_risk(made(pages=pages), meets_policy=True)
    assert any(f.state is State.WRONG for f in short.findings)
    assert verdict(short).answer is Answer.DO_IT


def test_a_limit_is_raised_by_the_files_of_a_plan_on_kubernetes_alone() -> None:
    bare = with_risk(replace(made(), findings=(finding("pod_limit_below_segment"),)), meets_policy=True)
    assert verdict(bare).answer is Answer.DO_IT_AFTER
    view = KubernetesView(capacity={}, allocatable={}, reserved_memory=(), phantom_eviction_bytes=0)
    assert verdict(replace(bare, kubernetes=view)).answer is Answer.DO_IT


def test_nothing_to_change_is_said() -> None:
    first = made()
    again = with_risk(made(pages=sum(pool.pages for pool in first.pools)), meets_policy=True)
    assert verdict(again).answer is Answer.DONT
    assert "nothing to change" in verdict(again).reason


def test_pages_already_in_use_are_no_gain() -> None:
    running = Finding(
        code="fallback_to_base_pages", subject="main", state=State.OK, title="It runs", reason="x", fix=""
    )
    found = verdict(with_risk(replace(made(), findings=(running,)), meets_policy=True))
    assert found.gains == ("main: already on huge pages, no speed change.",)
    assert "throughput" not in found.reason


def test_costs_say_what_is_needed_either_way_and_what_stays_available() -> None:
    found = verdict(made())
    text = " ".join(found.costs)
    assert "the databases need either way" in text
    assert "Available to programs:" in text
    assert found.available_planned_bytes is not None
    assert found.available_planned_bytes > 0
    assert found.available_now_bytes is None  # nobody has seen this node


def test_no_page_tables_come_back_of_a_database_that_nobody_saw_run() -> None:
    """They are less than on base pages; only what the node as seen has of them can come back."""
    text = " ".join(verdict(made()).costs)
    assert "come back" not in text
    assert "less than on base pages" in text
    # On a node that was seen without it, the database brings page tables of its own.
    memory = Meminfo(mem_total_bytes=64 * GIB, mem_free_bytes=60 * GIB, page_tables_bytes=GIB)
    seen = plan(replace(asked(), sample=NodeSample(memory=memory, databases=(), processes=())))
    assert seen.difference is not None
    assert not [line for line in verdict(seen).costs if "age tables" in line]


def test_the_question_narrows_the_range_and_its_answer_is_asked_no_more() -> None:
    request = asked()
    before = verdict(plan(request), request).question
    assert before is not None
    gain = next(one for one in plan(request).gains if one.is_chosen)
    assert gain.speedup is not None
    assert before.high - before.low < gain.speedup.high - gain.speedup.low
    assert before.instance == "main"
    given = {
        "operations_per_second_per_busy_core": 50_000.0,
        "active_connections": 64,
        "working_set_bytes": 16 * GIB,
        "row_bytes": 128,
    }
    name = "working_set_bytes" if before.field == "working_set" else before.field
    workload = replace(request.databases[0].workload, **{name: given[name]})
    answered = replace(request, databases=(replace(request.databases[0], workload=workload),))
    after = verdict(plan(answered), answered).question
    assert after is None or after.field != before.field


def test_nothing_is_asked_where_all_is_given_or_no_gain_is_known() -> None:
    request = asked()
    database = request.databases[0]
    workload = replace(
        database.workload, operations_per_second_per_busy_core=50_000.0, active_connections=64,
        working_set_bytes=16 * GIB, row_bytes=128,
    )  # fmt: skip
    answered = replace(request, databases=(replace(database, workload=workload),))
    found = plan(answered)
    assert next(one for one in found.gains if one.is_chosen).speedup is not None
    assert biggest_question(found, answered) is None
    assert biggest_question(replace(found, gains=()), answered) is None
    assert biggest_question(plan(request), request, without={"main"}) is None


def test_a_gain_is_said_in_nanoseconds_where_the_rate_is_not_known() -> None:
    found = made()
    unknown_rate = replace(found, gains=tuple(replace(gain, speedup=None) for gain in found.gains))
    (text,) = verdict(unknown_rate).gains
    assert text.startswith("main: ")
    assert " ns less per operation likely, " in text
    request = asked()
    off = replace(request.databases[0], settings={"shared_buffers": "16GB", "huge_pages": "off"})
    (text,) = verdict(plan(replace(request, databases=(off,)))).gains
    assert text == "main: stays on base pages, no change."


def test_a_risk_that_may_be_within_the_policy_is_not_enough_to_say_no() -> None:
    found = replace(with_risk(made(), meets_policy=False), findings=())
    for low, answer in ((found.risk.policy, Answer.NOT_ENOUGH_KNOWN), (2 * found.risk.policy, Answer.DONT)):
        probability = Range(low=low, likely=low, high=0.9)
        assert verdict(replace(found, risk=replace(found.risk, probability=probability))).answer is answer


def test_every_database_has_its_gain() -> None:
    assert [text.partition(":")[0] for text in verdict(made()).gains] == ["main"]
    assert verdict(made()).approve_if


@pytest.mark.parametrize("meets_policy", [False, None])
def test_memory_that_is_given_back_waits_for_no_risk(meets_policy: bool | None) -> None:
    found = verdict(with_risk(replace(made(pages=20_000), findings=()), meets_policy=meets_policy))
    assert found.answer is Answer.DO_IT
    assert "go back to everyone else" in found.reason


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_node_of_unknown_pools_is_not_said_to_have_them(known: int) -> None:
    request = asked()
    pools = (Pool(page_bytes=2 * 1024**2, nr_hugepages=0),)
    numa = tuple(
        NumaNode(id=each, mem_total_bytes=32 * GIB, pools=pools if each < known else None) for each in range(2)
    )
    nothing = replace(request, node=replace(request.node, numa=numa), databases=())
    found = verdict(plan(nothing), nothing)
    assert (found.answer is Answer.DONT) is (known == 2)
    assert ("the node has the planned pools already" in found.reason) is (known == 2)
    assert ("not known" in found.reason) is (known < 2)
    assert ("What is reserved today is not known." in found.costs) is (known < 2)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_reason_to_do_it_is_the_largest_gain(order: tuple[int, int]) -> None:
    request = asked()
    small = replace(request.databases[0], name="small", settings={"shared_buffers": "1GB"})
    databases = (small, request.databases[0])
    made_of_two = plan(replace(request, databases=tuple(databases[i] for i in order)))
    found = verdict(with_risk(made_of_two, meets_policy=True))
    assert found.answer is Answer.DO_IT
    best = max(
        (gain for gain in made_of_two.gains if gain.is_chosen and gain.backing_kind != "base"),
        key=lambda gain: gain.saving_ns_per_operation.likely,
    )
    assert found.reason.startswith(f"{best.instance}: ")
    assert found.reason in found.gains


def test_free_pages_that_go_are_a_condition() -> None:
    """Found: a second plan gave back the pages of a first one's database, which was stopped."""
    conditions = verdict(made(pages=20_000)).do_not_approve_if
    assert [text for text in conditions if "waits for its restart" in text] == [
        f"A server that is not described, and is stopped or waits for its restart, needs the "
        f"{20_000 - made().pools[0].pages:,} pages of 2M that go."
    ]
    assert not any("waits for its restart" in text for text in verdict(made()).do_not_approve_if)
