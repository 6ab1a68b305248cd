"""What one process has served, for Prometheus. Labels are operation ids, so their number is bounded."""

from __future__ import annotations

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hugeplan import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DURATION_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one application, in a registry of its own. Others register theirs at ``registry``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        PlatformCollector(registry=self.registry)
        ProcessCollector(namespace="hugeplan", registry=self.registry)
        build = Info("hugeplan_build", "Release of the service and of its Python.", registry=self.registry)
        build.info({"version": __version__, "python": platform.python_version()})
        self._requests = Counter(
            "hugeplan_requests",
            "Requests answered, by operation and status.",
            ("method", "operation", "status"),
            registry=self.registry,
        )
        self._durations = Histogram(
            "hugeplan_request_duration_seconds",
            "Time from the request's head to the end of its answer.",
            ("method", "operation"),
            buckets=DURATION_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self._reports = Counter(
            "hugeplan_reports", "Reports from agents: created, or seen before.", ("result",), registry=self.registry
        )
        for result in ("created", "seen"):
            self._reports.labels(result)
        self._retention_refused = Gauge(
            "hugeplan_retention_refused",
            "1 while retention deletes nothing because the clock or the amount is in doubt; the log says why.",
            registry=self.registry,
        )
        self.requests_in_progress = Gauge(
            "hugeplan_requests_in_progress", "Requests that are being answered.", registry=self.registry
        )
        self.database_connections_in_use = Gauge(
            "hugeplan_database_connections_in_use", "Connections of the pool in use.", registry=self.registry
        )

    def note_retention(self, is_refused: bool) -> None:
        """Say whether the last round of retention deleted nothing because it was not sure."""
        self._retention_refused.set(int(is_refused))

    def observe(self, method: str, operation: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(method, operation, str(status)).inc()
        self._durations.labels(method, operation).observe(seconds)

    def count_report(self, *, created: bool) -> None:
        """Count a stored or repeated report."""
        self._reports.labels("created" if created else "seen").inc()

    def render(self) -> bytes:
        """All metrics."""
        return generate_latest(self.registry)
