"""Kubernetes quantities in every notation that the API server reads.

``<signedNumber><suffix>`` with binary suffixes (Ki to Ei), decimal ones (n, u, m, none, k to E) or an exponent
(``1e3``, ``1E3``). A value is rounded up to a whole unit, as ``Quantity.Value()`` does, so ``0.5`` is 1, and what is
above 64 bits is the largest that they hold.
Source: apimachinery pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>\d+(?:\.\d*)?|\.\d+)(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d+))?\Z"
)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_EXPONENT_MAX: Final = 40
_TEXT_MAX: Final = 64
_VALUE_MAX: Final = 2**63 - 1


def parse_quantity(value: object) -> int | None:
    """Whole units of a quantity, rounded up; None for what is not a quantity or is negative."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, int) and value.bit_length() > 4 * _TEXT_MAX:  # its text would take long, or none is made
        return None
    text = str(value)
    return _parsed(text) if len(text) <= _TEXT_MAX else None


@lru_cache(maxsize=65536)
def _parsed(text: str) -> int | None:
    found = _QUANTITY.match(text.strip())
    if found is None:
        return None
    number = Fraction(found["number"])
    suffix, exponent = found["suffix"], found["exponent"]
    if exponent is not None:
        if abs(int(exponent)) > _EXPONENT_MAX:
            return None
        number *= Fraction(10) ** int(exponent)
    elif suffix in _BINARY:
        number *= 1024 ** _BINARY[suffix]
    elif suffix is not None:
        number *= Fraction(10) ** _DECIMAL[suffix]
    if found["sign"] == "-" and number:
        return None
    return min(_VALUE_MAX, -(-number.numerator // number.denominator))


def huge_page_size(resource: str) -> int | None:
    """Bytes of the page of a ``hugepages-2Mi`` resource; None for another resource."""
    prefix, _, size = resource.partition("hugepages-")
    if prefix or not size:
        return None
    return parse_quantity(size)
