"""What the planner says when it is given something it cannot use.

Every error is one line that names the field, the value and the valid range. The command line prints it as it
is and exits with status 2; the API turns ``field``, ``value`` and ``expected`` into a problem document.
"""

from __future__ import annotations

import math

_VALUE_WIDTH = 80


def shown_value(value: object) -> str:
    """The value as one short line: a long or multi-line one is cut, so that the message stays one line."""
    text = repr(value) if isinstance(value, str) else str(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"


class PlannerError(ValueError):
    """A field whose value the planner cannot use.

    ``field`` is the path of the field as its owner spells it (``databases[0].settings.shared_buffers``),
    ``value`` what was given, ``expected`` the valid range in words.
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"{field}: {shown_value(value)} is not valid; expected {expected}")

    def within(self, parent: str) -> PlannerError:
        """The same error with its field named from further out: ``settings.x`` within ``databases[0]``."""
        return type(self)(f"{parent}.{self.field}", self.value, self.expected)


class UnitError(PlannerError):
    """A size, count or share that cannot be read, or that is outside its range."""


class UnknownEngineError(PlannerError):
    """An engine that is not in the registry."""


class UnknownVersionError(PlannerError):
    """A version that the engine's rules do not cover."""


class UnknownSettingError(PlannerError):
    """A setting that the engine does not have, or that the planner has no rule for."""


class SettingValueError(PlannerError):
    """A setting whose value its engine would refuse."""


class PageSizeError(PlannerError):
    """A page size that the architecture, the node or the engine does not have."""


class NodeFactsError(PlannerError):
    """A fact of the node that contradicts another, or is outside its range."""


class TenantError(PlannerError):
    """A workload that cannot be accounted for."""


class PolicyError(PlannerError):
    """A policy outside its range."""


class WorkloadError(PlannerError):
    """A workload description that cannot be used."""


def require_finite(field: str, value: float, expected: str) -> float:
    """``value`` if it is a finite number, else a PlannerError."""
    if not math.isfinite(value):
        raise PlannerError(field, value, expected)
    return value
