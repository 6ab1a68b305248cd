"""The application: ``create_app`` wires the routers, ``lifespan`` owns what needs closing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from hugeplan import __version__
from hugeplan.access import audit, bootstrap
from hugeplan.access.connection_turns import ConnectionTurns
from hugeplan.access.dependencies import CredentialCheck, require_viewer
from hugeplan.access.gate import Gate
from hugeplan.access.gate_app import Direct, GateApp
from hugeplan.access.gated_route import Intake
from hugeplan.access.machine_registry import MachineRegistry
from hugeplan.access.oidc import Provider
from hugeplan.access.router import router as access_router
from hugeplan.api import docs, health, openapi, problems, ui
from hugeplan.api.allow import Methods
from hugeplan.api.background import Supervisor
from hugeplan.api.body import BodyLimits
from hugeplan.api.dependencies import give_back
from hugeplan.api.forwarded import Proxies
from hugeplan.api.metrics import Metrics
from hugeplan.api.middleware import Refusals, RequestContext
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.benchmarks.router import router as benchmarks_router
from hugeplan.db.engine import create_engine
from hugeplan.db.maintenance import GONE_SECONDS, Maintenance, remove_gone
from hugeplan.db.retention import LISTEN_SECONDS, listen
from hugeplan.db.session import Database
from hugeplan.documents.report import Report
from hugeplan.events.delivery import deliver_forever
from hugeplan.events.feed import EventFeed
from hugeplan.events.router import router as events_router
from hugeplan.events.sending import Sender
from hugeplan.evidence.router import router as evidence_router
from hugeplan.fleet.ingest.again import SentAgain
from hugeplan.fleet.ingest.direct import answer_report
from hugeplan.fleet.ingest.reader import ReportReader
from hugeplan.fleet.ingest.writer import ReportWriter
from hugeplan.fleet.metrics import FleetMetrics, render_metrics
from hugeplan.fleet.overview_router import router as overview_router
from hugeplan.fleet.router import router as fleet_router
from hugeplan.fleet.sealing import SEAL_SECONDS, seal_and_give_back
from hugeplan.fleet.watch import LOOK_SECONDS as WATCH_SECONDS
from hugeplan.fleet.watch import watch
from hugeplan.fleet_plans.router import router as fleet_plans_router
from hugeplan.fleet_plans.runner import LOOK_SECONDS, FleetPlanRunner
from hugeplan.fleet_plans.service import Looks
from hugeplan.imports.router import router as imports_router
from hugeplan.linting.router import router as linting_router
from hugeplan.plans.router import router as plans_router
from hugeplan.plans.watch import LOOK_SECONDS as PLANS_SECONDS
from hugeplan.plans.watch import check_plans
from hugeplan.reference.router import router as reference_router
from hugeplan.sandbox.sandbox import Sandbox
from hugeplan.scenarios.router import router as scenarios_router
from hugeplan.settings import Settings
from hugeplan.trials.router import router as trials_router
from hugeplan.warm import warm

ROUTERS = (
    fleet_router,
    overview_router,
    fleet_plans_router,
    events_router,
    benchmarks_router,
    scenarios_router,
    plans_router,
    linting_router,
    imports_router,
    evidence_router,
    reference_router,
    access_router,
    trials_router,
)


DIRECT = {
    ("GET", "/healthz"): Direct(health.answer_health, needs_credential=False),
    ("GET", "/readyz"): Direct(health.answer_readiness, needs_credential=False),
    ("POST", f"{openapi.API_PREFIX}/reports"): Direct(answer_report, needs_credential=True),
}
"""What the gate answers without FastAPI. The routes are declared all the same, for the OpenAPI document."""


class Application(FastAPI):
    """FastAPI behind ``front``, which sees every request first and passes on what it does not answer."""

    front: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] == "http" and self.front is not None:
            scope["app"] = self
            await self.front(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """FastAPI itself, for what the front passes on."""
        await super().__call__(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Starlette's, without its own answer to errors that nobody knows: the front has one."""
        stack = super().build_middleware_stack()
        return stack.app if isinstance(stack, ServerErrorMiddleware) else stack


def _routes() -> Iterator[tuple[str, set[str]]]:
    """Path and methods of every route of the API."""
    for router in (*ROUTERS, health.router):
        for route in router.routes:
            if isinstance(route, APIRoute):
                yield route.path, set(route.methods or ())


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run the background work while the application serves, and close the connections at the end."""
    database: Database = app.state.database
    settings: Settings = app.state.settings
    writer: ReportWriter = app.state.report_writer
    reader: ReportReader = app.state.report_reader
    runner: FleetPlanRunner = app.state.fleet_plan_runner
    work: Supervisor = app.state.background
    await writer.open(work)
    work.start("listening", partial(listen, database), every=LISTEN_SECONDS)
    work.start("events", app.state.event_feed.run_forever)
    work.start("webhooks", partial(deliver_forever, database, Sender(settings.webhook_allowed_networks).post))
    maintenance = Maintenance(database, settings, app.state.metrics.note_retention)
    work.start("maintenance", maintenance.round, every=settings.maintenance_interval_seconds)
    work.start("gone scenarios", partial(remove_gone, database), every=GONE_SECONDS)
    work.start("sealing", partial(seal_and_give_back, database, settings), every=SEAL_SECONDS)
    work.start("silent nodes", partial(watch, database), every=WATCH_SECONDS)
    work.start("stale plans", partial(check_plans, database, app.state.sandbox), every=PLANS_SECONDS)
    work.start("fleet plans", runner.look_after, every=LOOK_SECONDS)
    enrolment = partial(bootstrap.register_enrolment_token, database, settings)
    work.start("bootstrap", enrolment, every=bootstrap.REMEMBER_SECONDS)
    work.start("tokens", bootstrap.TokenMemory(app.state.intake.gate).look, every=bootstrap.REMEMBER_SECONDS)
    try:
        yield
    finally:
        await work.close()
        await runner.close()
        await reader.close()
        await app.state.sandbox.close()
        await writer.close()
        await database.dispose()


def create_app(settings: Settings) -> Application:
    """The whole service for these settings. Nothing connects before the first request needs it."""
    app = Application(
        title="hugeplan",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=openapi.operation_id,
        separate_input_output_schemas=True,
        # A trailing slash is another path; a redirect would lose the body of a POST in some clients.
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.database = Database(create_engine(settings))
    app.state.rate_limiter = RateLimiter()
    app.state.metrics = Metrics()
    app.state.fleet_metrics = FleetMetrics(app.state.database)
    app.state.metrics.registry.register(app.state.fleet_metrics)
    app.state.background = Supervisor(app.state.metrics.registry)
    app.state.report_writer = ReportWriter(settings)
    app.state.report_reader = ReportReader(settings)
    app.state.reports_again = SentAgain(app.state.database)
    app.state.sandbox = Sandbox()
    app.state.event_feed = EventFeed(app.state.database)
    app.state.fleet_plan_runner = FleetPlanRunner(app.state.database, settings)
    app.state.fleet_plan_looks = Looks(app.state.database)
    app.state.methods = Methods(_routes())
    app.state.oidc = Provider(settings)
    app.state.machines = MachineRegistry(app.state.database)
    app.state.credential_check = CredentialCheck
    app.state.record_change = audit.record_request
    app.state.readiness = health.ReadinessProbe(app.state.database, settings, warm, app.state.background)

    def limiter() -> RateLimiter:
        found: RateLimiter = app.state.rate_limiter
        return found

    app.state.intake = Intake(
        Gate(app.state.database, settings, limiter),
        BodyLimits.of(settings),
        ConnectionTurns(settings),
    )

    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    guards = [] if settings.metrics_public else [Depends(require_viewer), Depends(give_back, scope="function")]
    app.add_api_route("/metrics", render_metrics, dependencies=guards, include_in_schema=False)
    openapi.install(app, {"ReportDocument": Report})
    problems.install(app)
    health.install(app)
    docs.install(app)
    pages = ui.install(app, settings)

    gate_app = GateApp(
        app.enter,
        intake=app.state.intake,
        pages=pages.answer,
        prefix=openapi.API_PREFIX + "/",
        routers=ROUTERS,
        methods=app.state.methods,
        other=("/healthz", "/readyz", "/metrics", "/api/docs", "/api/docs/", "/api/openapi.json"),
        gated=frozenset() if settings.metrics_public else frozenset({"/metrics"}),
        # Prometheus comes directly; an ingress for browsers passes /metrics on as any other path.
        direct_only=frozenset({"/metrics"}),
        direct=DIRECT,
    )
    app.front = RequestContext(
        gate_app,
        metrics=app.state.metrics,
        refusals=Refusals(settings, limiter),
        proxies=Proxies(settings),
        answers=app.state.intake.answers,
    )
    return app
