"""Counters and histograms in Prometheus' text format. Labels are operation ids, so their number is bounded."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DURATION_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def _labels(pairs: Mapping[str, str]) -> str:
    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in pairs.items()) + "}"


class Metrics:
    """What one process has served since it started."""

    def __init__(self) -> None:
        self._started_seconds = time.time()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._durations: dict[tuple[str, str], list[int]] = {}
        self._duration_sums: dict[tuple[str, str], float] = defaultdict(float)
        self._reports: dict[str, int] = {"created": 0, "seen": 0}
        self.requests_in_progress = 0

    def observe(self, method: str, operation: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests[method, operation, status] += 1
        buckets = self._durations.setdefault((method, operation), [0] * (len(DURATION_BUCKETS_SECONDS) + 1))
        for index, bound in enumerate((*DURATION_BUCKETS_SECONDS, float("inf"))):
            if seconds <= bound:
                buckets[index] += 1
        self._duration_sums[method, operation] += seconds

    def count_report(self, *, created: bool) -> None:
        """Count a stored or repeated report."""
        self._reports["created" if created else "seen"] += 1

    def render(self, gauges: Mapping[str, float]) -> str:
        """All metrics; ``gauges`` are read by the caller at this moment."""
        lines = [
            "# HELP hugeplan_requests_total Requests answered, by operation and status.",
            "# TYPE hugeplan_requests_total counter",
        ]
        for (method, operation, status), count in sorted(self._requests.items()):
            labels = _labels({"method": method, "operation": operation, "status": str(status)})
            lines.append(f"hugeplan_requests_total{labels} {count}")
        lines += [
            "# HELP hugeplan_request_duration_seconds Time from the request's head to the end of its answer.",
            "# TYPE hugeplan_request_duration_seconds histogram",
        ]
        for (method, operation), buckets in sorted(self._durations.items()):
            names = [*map(str, DURATION_BUCKETS_SECONDS), "+Inf"]
            for name, count in zip(names, buckets, strict=True):
                labels = _labels({"method": method, "operation": operation, "le": name})
                lines.append(f"hugeplan_request_duration_seconds_bucket{labels} {count}")
            labels = _labels({"method": method, "operation": operation})
            lines.append(f"hugeplan_request_duration_seconds_sum{labels} {self._duration_sums[method, operation]:.6f}")
            lines.append(f"hugeplan_request_duration_seconds_count{labels} {buckets[-1]}")
        lines += [
            "# HELP hugeplan_reports_total Reports from agents: created, or seen before.",
            "# TYPE hugeplan_reports_total counter",
            *(f"hugeplan_reports_total{_labels({'result': name})} {count}" for name, count in self._reports.items()),
        ]
        own = {
            "hugeplan_requests_in_progress": float(self.requests_in_progress),
            "hugeplan_process_start_time_seconds": self._started_seconds,
        }
        for name, value in (own | dict(gauges)).items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:.10g}"]
        return "\n".join(lines) + "\n"
