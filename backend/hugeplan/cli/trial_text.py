"""A trial in words, as a table and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from hugeplan.measuring.batches import Pair
from hugeplan.measuring.confidence import Interval
from hugeplan.measuring.trial import EQUAL, USABLE_POINTS, Arm, Measured
from hugeplan.planner.units import format_change, format_share

_QUIET_SHARE: Final = 0.1
"""Other work that takes less than this share of the CPUs is not named as the cause of noise."""


def percent(interval: Interval) -> str:
    """``+7.5 % (+6.6 to +8.4)``."""
    if not math.isfinite(interval.width):
        return f"{format_change(interval.likely / 100)} (too few blocks for an interval)"
    low, likely, high = (value / 100 for value in (interval.low, interval.likely, interval.high))
    return f"{format_change(likely)} ({format_change(low, '')} to {format_change(high, '')})"


def sentence(measured: Measured, base: str) -> str:
    """One answer per page size, and what equal pages differ by."""
    found = [_answer(measured, arm, base) for arm in measured.arms if arm.name != EQUAL]
    floor = measured.equal
    if floor.blocks:
        found.append(f"{base} against {base}: {percent(floor.gain(by_cpu=measured.by_cpu))}.")
    return " ".join(found)


def _answer(measured: Measured, arm: Arm, base: str) -> str:
    if not arm.blocks:
        return f"{arm.name}: not measured: {measured.why_none(arm)}."
    gain = arm.gain(by_cpu=measured.by_cpu)
    unit = "work per CPU second" if measured.by_cpu else "work per second"
    if measured.is_usable(arm):
        return f"{arm.name} pages: {percent(gain)} more {unit} than {base} pages, in {len(arm.blocks)} blocks."
    if measured.noise_refutes():
        why = f"{base} pages differ from {base} pages as well"
    elif math.isfinite(gain.width):
        why = f"after {measured.seconds / 60:.1f} minutes the interval is {gain.width:.1f} points wide"
    else:
        why = f"{len(arm.blocks)} blocks in {measured.seconds / 60:.1f} minutes are too few for an interval"
    return f"too noisy: {arm.name} pages: {percent(gain)}; {why}.{_remedy(measured, arm)}"


def _remedy(measured: Measured, arm: Arm) -> str:
    """What would help: less other work, or so much time."""
    share, needed = measured.others_share, measured.seconds_for_usable(arm)
    busy = f" Other work took {format_share(share)} of the CPUs." if share is not None and share >= _QUIET_SHARE else ""
    if needed is None:
        return f"{busy} Measure at a quieter hour, or give it more --minutes."
    return f"{busy} At this noise {USABLE_POINTS:g} points need about --minutes {math.ceil(needed / 60)}."


def table(measured: Measured) -> str:
    """One line per page size."""
    line = "{:<8}{:>7}{:>7}  {:<26}  {:<26}  {}"
    rows = [line.format("pages", "blocks", "pairs", "CPU per operation %", "rate %", "").rstrip()]
    for arm in measured.arms:
        if not arm.blocks:
            rows.append(line.format(arm.name, 0, 0, "", "", arm.skipped or ""))
            continue
        pairs = sum(len(block.pairs) for block in arm.blocks)
        gains = [percent(arm.gain(by_cpu=by_cpu)) for by_cpu in (True, False)]
        cpu, rate = (words.replace(" %", "").replace(" for an interval", "") for words in gains)
        rows.append(line.format(arm.name, len(arm.blocks), pairs, cpu, rate, arm.skipped or "").rstrip())
    return "\n".join(rows)


_WIDTH: Final = 760
_PANEL: Final = 170
_LEFT: Final = 60


def picture(measured: Measured, title: str) -> str:
    """Every pair as a dot, every block's median as a bar, the interval as a band: one panel per page size, as SVG."""
    arms = [arm for arm in measured.arms if arm.blocks]
    height = 40 + _PANEL * len(arms)
    top = _scale(measured, arms)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for number, arm in enumerate(arms):
        parts += _panel(measured, arm, 40 + number * _PANEL, top)
    return "\n".join([*parts, "</svg>\n"])


def _scale(measured: Measured, arms: Sequence[Arm]) -> float:
    """The largest gain or loss, in per cent, that the panels show; nine of ten dots and every interval fit."""
    found = [1.0]
    for arm in arms:
        ratios = sorted(abs(value) for block in arm.blocks for value in _gains(measured, block.pairs))
        found.append(ratios[int(0.9 * (len(ratios) - 1))])
        gain = arm.gain(by_cpu=measured.by_cpu)
        found += [abs(end) for end in (gain.low, gain.high) if math.isfinite(end) and abs(end) < 1000]
    return 1.15 * max(found)


def _gains(measured: Measured, pairs: Sequence[Pair]) -> list[float]:
    return [100.0 * ((pair.speedup if measured.by_cpu else pair.throughput_ratio) - 1.0) for pair in pairs]


def _panel(measured: Measured, arm: Arm, top: int, scale: float) -> list[str]:
    inner, width = _PANEL - 50, _WIDTH - _LEFT - 20

    def y(gain: float) -> float:
        return round(top + 10 + inner * (1.0 - (max(-scale, min(scale, gain)) + scale) / (2 * scale)), 1)

    gain, each = arm.gain(by_cpu=measured.by_cpu), width / len(arm.blocks)
    parts = [f'<text x="4" y="{top + 4}">{escape(arm.name)}</text>']
    if math.isfinite(gain.width):
        band = max(1.0, y(gain.low) - y(gain.high))
        parts.append(f'<rect x="{_LEFT}" y="{y(gain.high)}" width="{width}" height="{band}" fill="#cfe3f7"/>')
    for tick in (-scale / 1.15, 0.0, scale / 1.15):
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 4}" text-anchor="end" fill="#555">{tick:+z.1f}</text>')
    parts.append(
        f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y(0)}" y2="{y(0)}" stroke="#555" stroke-dasharray="4 3"/>'
    )
    for number, block in enumerate(arm.blocks):
        left = _LEFT + number * each
        values = _gains(measured, block.pairs)
        for index, value in enumerate(values):
            x = round(left + each * (index + 0.5) / len(values), 1)
            parts.append(f'<circle cx="{x}" cy="{y(value)}" r="1.6" fill="#7a869a"/>')
        median = y(100.0 * math.expm1(block.value(by_cpu=measured.by_cpu)))
        parts.append(
            f'<line x1="{left + 1:.1f}" x2="{left + each - 1:.1f}" y1="{median}" y2="{median}" '
            'stroke="#0b5cad" stroke-width="2"/>'
        )
    parts.append(f'<text x="{_LEFT}" y="{top + inner + 30}" fill="#555">{escape(percent(gain))}</text>')
    return parts
