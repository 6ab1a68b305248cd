"""All tables. Importing this package fills ``Base.metadata``."""

from hugeplan.db.models.access import BrowserSession, Token
from hugeplan.db.models.benchmarks import CurveRow, RunRow
from hugeplan.db.models.fleet import NodeRow, ReportDocumentRow, ReportRow, SampleHourRow, SampleRow
from hugeplan.db.models.scenarios import PlanRow, ScenarioRow

__all__ = [
    "BrowserSession",
    "CurveRow",
    "NodeRow",
    "PlanRow",
    "ReportDocumentRow",
    "ReportRow",
    "RunRow",
    "SampleHourRow",
    "SampleRow",
    "ScenarioRow",
    "Token",
]
