"""The risk as somebody reads it who decides: what one sample cannot say is said to be unknown."""

from __future__ import annotations

import pytest

from hugeplan.planner.model import Range, Risk
from hugeplan.planner.sentences import risk_sentence


def risk(likely: float, high: float, *, meets: bool | None) -> Risk:
    return Risk(probability=Range(low=0.0, likely=likely, high=high), policy=0.01, meets_policy=meets, basis="x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            risk(0.0, 1 / 2, meets=None),
            "unknown, only one sample. From tomorrow a running agent knows it to within 4 %, after 5 days to the"
            " accepted 1 %.",
        ),
        (risk(0.0, 1 / 4, meets=None), "unknown, only 3 samples. From tomorrow"),
        (risk(0.002, 0.4, meets=None), "0.2 % by what was seen, 40 % at worst; whether that is within"),
        (risk(0.0, 0.004, meets=True), "0 %, at most 0.4 %; within the accepted 1 %."),
        (risk(0.3, 0.5, meets=False), "30 %, at most 50 %; above the accepted 1 %."),
        (Risk(probability=None, policy=0.01, meets_policy=None, basis="nothing is known of x"), "unknown; nothing is"),
    ],
)
def test_the_risk_in_one_sentence(given: Risk, said: str) -> None:
    text = risk_sentence(given)
    assert text.startswith(f"Risk that ordinary memory runs out: {said}")
    assert text.count(". ") <= 1
