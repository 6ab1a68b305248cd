"""All tables. Importing this package fills ``Base.metadata``."""

from hugeplan.db.models.access import (
    AuditEvent,
    BrowserSession,
    EnrolmentApproval,
    EnrolmentRequestRow,
    LoginLink,
    Machine,
    OidcLogin,
    Token,
)
from hugeplan.db.models.benchmarks import RunRow, RunWinsRow
from hugeplan.db.models.fleet import (
    EventRow,
    ListeningRow,
    NodeFindingRow,
    NodeRow,
    NodeStateRow,
    PlanInForceRow,
    ReportDocumentRow,
    ReportReferenceRow,
    ReportRow,
    SampleDayRow,
    SampleHourRow,
    SampleRow,
    SealedDocumentsRow,
    SealedSamplesRow,
)
from hugeplan.db.models.fleet_plans import FleetPlanGroupRow, FleetPlanNodeRow, FleetPlanRow
from hugeplan.db.models.scenarios import PlanRow, ScenarioRow, ScenarioVersionRow
from hugeplan.db.models.trials import TrialRow
from hugeplan.db.models.webhooks import WebhookDeliveryRow, WebhookRow

__all__ = [
    "AuditEvent",
    "BrowserSession",
    "EnrolmentApproval",
    "EnrolmentRequestRow",
    "EventRow",
    "FleetPlanGroupRow",
    "FleetPlanNodeRow",
    "FleetPlanRow",
    "ListeningRow",
    "LoginLink",
    "Machine",
    "NodeFindingRow",
    "NodeRow",
    "NodeStateRow",
    "OidcLogin",
    "PlanInForceRow",
    "PlanRow",
    "ReportDocumentRow",
    "ReportReferenceRow",
    "ReportRow",
    "RunRow",
    "RunWinsRow",
    "SampleDayRow",
    "SampleHourRow",
    "SampleRow",
    "ScenarioRow",
    "ScenarioVersionRow",
    "SealedDocumentsRow",
    "SealedSamplesRow",
    "Token",
    "TrialRow",
    "WebhookDeliveryRow",
    "WebhookRow",
]
