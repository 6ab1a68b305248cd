"""Responses about runs and curves."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from hugeplan.api.schemas import RequestModel, ResponseModel, Text
from hugeplan.documents.tlbbench import Curve, Environment, Geometry, PairedDelta, Pressure, Rows, Scatter


class RunSection(ResponseModel):
    """How one part of a run ended; ``reason`` is null when it ended well."""

    name: str
    status: str
    reason: str | None


class Run(ResponseModel):
    """One execution of tlbbench on a node. ``bad``: somebody marked it, and nothing is concluded from it.
    ``synthetic``: its node's reports were made by hand.
    """

    id: UUID
    node_id: UUID
    node_name: str
    synthetic: bool
    started_at: datetime
    profile: str | None
    command: str
    tool_version: str
    duration_seconds: float | None
    bad: bool
    bad_reason: str | None
    sections: list[RunSection]


class RunCurve(Curve):
    """A curve with its section (geometry, latency, walks, scatter).

    ``beside_backing``: in scatter, base pages are measured once for each larger size, with lines as far apart as its
    pages; this names that size. Null elsewhere.
    """

    section: str
    beside_backing: str | None = None


class RunDetail(Run):
    """A run with everything it measured. ``geometry`` and ``scatter`` leave their curves to ``curves``.

    ``scatter_loses_from_lines``: the fewest hot lines from which on the size of ``scatter.crossing`` was slower than
    base pages at every measured count up to the confirmed one; null without a confirmed crossing.
    ``walks_cpu_node``: the NUMA node that the section ``walks`` was measured from.
    """

    environment: Environment | None
    geometry: Geometry | None
    curves: list[RunCurve]
    paired_deltas: list[PairedDelta]
    pressure: Pressure | None
    walks_cpu_node: int | None
    rows: Rows | None
    scatter: Scatter | None
    scatter_loses_from_lines: int | None


class ComparedCurve(ResponseModel):
    """The same measurement on several runs: ``curves[i]`` belongs to ``runs[i]``, null where it has none."""

    section: str
    name: str
    x_name: str
    backing: str
    layout: str | None
    curves: list[RunCurve | None]


class RunComparison(ResponseModel):
    """Runs side by side. Geometry, pressure and curves are in the order in which the runs were asked for."""

    runs: list[Run]
    geometries: list[Geometry | None]
    pressures: list[Pressure | None]
    curves: list[ComparedCurve]


class RunMark(RequestModel):
    """Whether a run is bad, and why: nothing is concluded from a bad run."""

    bad: bool
    reason: Text | None = None
