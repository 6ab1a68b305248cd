"""What more buffer pool buys: a curve fitted to throughput over pool size, its knee and its slope.

``X(B) = [Xc^-4 + (max(0, ln(D / B)) / C)^4]^(-1/4)``: Xc is the processor's limit, D the pool size where misses end,
C the slope while misses limit. The miss ratio falls about as ln(D / B) under Zipf popularity with s = 1; the fourth
power joins both limits smoothly. Chosen over two simpler shapes on six measured series (sheet section 8).
The curve is a description of the points it was fitted to: outside them every answer says that it is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, BenefitPoint
from hugeplan.planner.remembered import remembered

MIN_POINTS = 4
"""A fit of three parameters needs at least one point more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Throughput at one pool size. ``extrapolated``: the size lies outside the fitted points, and ``note`` says so."""

    buffer_pool_bytes: int
    throughput: float
    extrapolated: bool
    note: str


@dataclass(frozen=True, slots=True)
class Knee:
    """Where a share of the best throughput is reached.

    ``measured_bytes``: the smallest measured pool at or above the share; ``fitted_bytes``: where the curve crosses it,
    None when it does so outside the measured sizes.
    """

    share: float
    measured_bytes: int
    fitted_bytes: int | None


@dataclass(frozen=True, slots=True)
class BenefitCurve:
    """A fitted curve: ``limit`` (Xc) and ``slope`` (C) in the table's throughput unit, ``end_bytes`` is D.

    ``nrmse`` is the root mean square residual over the largest throughput; ``points`` are the fitted ones, by size.
    """

    limit: float
    slope: float
    end_bytes: float
    nrmse: float
    points: tuple[BenefitPoint, ...]

    @property
    def first_bytes(self) -> int:
        """The smallest measured pool."""
        return self.points[0].pool_bytes

    @property
    def last_bytes(self) -> int:
        """The largest measured pool."""
        return self.points[-1].pool_bytes

    @property
    def best(self) -> float:
        """The largest measured throughput; it need not be at the largest pool."""
        return max(point.throughput for point in self.points)

    def throughput(self, buffer_pool_bytes: float) -> float:
        """X(B), wherever asked; ``estimate`` says whether the size was measured."""
        misses = max(0.0, math.log(self.end_bytes / buffer_pool_bytes)) / self.slope
        return float((self.limit**-4 + misses**4) ** -0.25)

    def marginal_per_gib(self, buffer_pool_bytes: float) -> float:
        """dX/dB in throughput per GiB; zero from D on."""
        if buffer_pool_bytes >= self.end_bytes:
            return 0.0
        misses = math.log(self.end_bytes / buffer_pool_bytes)
        value = self.throughput(buffer_pool_bytes)
        return value**5 * misses**3 / self.slope**4 / buffer_pool_bytes * GIB

    def estimate(self, buffer_pool_bytes: int) -> Estimate:
        """The throughput at one pool size; beyond the largest measured pool never above the best measured value."""
        value = self.throughput(buffer_pool_bytes)
        if self.first_bytes <= buffer_pool_bytes <= self.last_bytes:
            return Estimate(buffer_pool_bytes, value, extrapolated=False, note="inside the measured pool sizes")
        span = f"{self.first_bytes / GIB:g} to {self.last_bytes / GIB:g} GiB"
        if buffer_pool_bytes > self.last_bytes:
            value = min(value, max(self.best, self.throughput(self.last_bytes)))
        return Estimate(
            buffer_pool_bytes,
            value,
            extrapolated=True,
            note=f"{buffer_pool_bytes / GIB:g} GiB lies outside the measured {span}",
        )

    def knee(self, share: float) -> Knee:
        """The pool size that reaches ``share`` (0 to 1) of the best measured throughput."""
        if not 0.0 < share <= 1.0:
            raise PlannerError("share", share, "more than 0, at most 1")
        wanted = share * self.best
        measured = next(p.pool_bytes for p in self.points if p.throughput >= wanted)
        return Knee(share, measured, self._crossing(wanted))

    def _crossing(self, wanted: float) -> int | None:
        """Pool size where the curve reaches ``wanted``; None outside the measured sizes."""
        if wanted >= self.limit:
            return None
        misses = self.slope * (wanted**-4 - self.limit**-4) ** 0.25
        size = self.end_bytes * math.exp(-misses)
        return int(size) if self.first_bytes <= size <= self.last_bytes else None

    def worth_less_than(self, throughput_per_gib: float) -> int:
        """The pool size from which one more GiB brings less than ``throughput_per_gib``; at most the largest measured.

        The slope is not monotone where storage limits (the curve is convex there), so this is the last such size.
        """
        sizes = np.linspace(self.first_bytes, self.last_bytes, 512)
        worth = [float(b) for b in sizes if self.marginal_per_gib(float(b)) >= throughput_per_gib]
        return int(worth[-1]) if worth else self.first_bytes


def _model(log_parameters: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """X(B) over its limit's unit, parameters as logarithms (Xc, C, D), so that they stay positive."""
    limit, slope, end = np.exp(log_parameters)
    misses = np.maximum(0.0, np.log(end / sizes)) / slope
    return np.asarray((limit**-4 + misses**4) ** -0.25)


def _least_squares(
    start: NDArray[np.float64], sizes: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """(sum of squared residuals, log parameters) of a Levenberg-Marquardt descent from ``start``."""
    parameters, damping = start.copy(), 1e-2
    residuals = _model(parameters, sizes) - values
    cost = float(residuals @ residuals)
    for _ in range(200):
        jacobian = np.column_stack(
            [(_model(parameters + step, sizes) - values - residuals) / 1e-7 for step in 1e-7 * np.eye(3)]
        )
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ residuals
        # The small constant keeps the system solvable where a parameter has no effect (D below every size).
        step = np.linalg.solve(normal + damping * (np.diag(np.diag(normal)) + 1e-9 * np.eye(3)), -gradient)
        candidate = parameters + np.clip(step, -1.0, 1.0)
        trial = _model(candidate, sizes) - values
        trial_cost = float(trial @ trial)
        if trial_cost < cost:
            settled = cost - trial_cost <= 1e-12 * cost
            parameters, residuals, cost, damping = candidate, trial, trial_cost, max(damping / 5.0, 1e-12)
            if settled:
                break
        else:
            damping *= 4.0
            if damping > 1e8:
                break
    return cost, parameters


@remembered(256)
def fit_benefit(points: tuple[BenefitPoint, ...]) -> BenefitCurve:
    """Least squares of the three parameters over the given points, started from several values of D.

    Raises PlannerError with fewer than four sizes, a size or throughput that is not positive, or a size twice.
    """
    ordered = tuple(sorted(points, key=lambda point: point.pool_bytes))
    _check(ordered)
    sizes = np.array([point.pool_bytes / GIB for point in ordered])
    values = np.array([point.throughput for point in ordered])
    scale = float(values.max())
    best_cost, best = math.inf, np.zeros(3)
    for start in np.geomspace(sizes[0] * 1.1, sizes[-1] * 2.0, 8):
        slope = max(1e-6, float(values[0]) / scale * math.log(start / sizes[0]))
        cost, found = _least_squares(np.log([1.0, slope, start]), sizes, values / scale)
        if cost < best_cost * (1.0 - 1e-9):
            best_cost, best = cost, found
    limit, slope, end = (float(v) for v in np.exp(best))
    nrmse = math.sqrt(best_cost / len(ordered))
    return BenefitCurve(limit * scale, slope * scale, end * GIB, nrmse, ordered)


def _check(points: Sequence[BenefitPoint]) -> None:
    if len(points) < MIN_POINTS:
        raise PlannerError("benefit", len(points), f"at least {MIN_POINTS} pool sizes")
    for point in points:
        if point.pool_bytes <= 0:
            raise PlannerError("benefit.pool", point.pool_bytes, "more than 0 bytes")
        if not (math.isfinite(point.throughput) and point.throughput > 0.0):
            raise PlannerError("benefit.throughput", point.throughput, "a number above 0")
    if len({point.pool_bytes for point in points}) < len(points):
        raise PlannerError("benefit.pool", "a pool size given twice", "each size once")
