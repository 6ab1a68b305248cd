"""The first scenario of a node: its databases as they run today."""

from __future__ import annotations

from hugeplan.planner.demand import DemandContext
from hugeplan.planner.memory.kubernetes import observed_reservations
from hugeplan.planner.model import NodeFacts, NodeSample
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.scenario_file.documents import DatabaseDocument, ReservationsDocument, ScenarioDocument, WorkloadDocument


def scenario_as_it_runs(facts: NodeFacts, sample: NodeSample) -> ScenarioDocument:
    """The databases that run, and whether a kubelet runs there. Workloads come from the sample by themselves."""
    cluster = observed_reservations(sample)
    return ScenarioDocument(
        reservations=ReservationsDocument.model_validate(
            {"kubernetes": cluster.kubernetes, "provider": cluster.provider}
        ),
        databases=[
            DatabaseDocument(
                name=database.name,
                engine=database.engine,
                version=database.version,
                settings=dict(database.settings),
                page_size=database.page_bytes,
                workload=WorkloadDocument(active_connections=database.workload.active_connections),
                runs_as=database.runs_as,
                unread_settings=list(database.unread_settings),
            )
            for database in as_it_runs(sample, DemandContext.of_node(facts))
        ],
    )
