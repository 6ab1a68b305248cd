"""No cell of a CSV is a formula to a spreadsheet, however it begins."""

from __future__ import annotations

import unicodedata

import pytest

from hugeplan.api.csv_response import cell

SIGNS = [chr(point) for point in range(0x11_0000) if unicodedata.normalize("NFKC", chr(point))[:1] in "=+-@\u2212"]
BLANKS = (
    "",
    " ",
    "  ",
    "\t",
    "\r",
    "\n",
    "\u00a0",
    "\u3000",
    "\ufeff",
    "\u200b",
    " \t\u2028 ",
    "\x00",
    "\x1f",
    "\u00ad",
)


@pytest.mark.parametrize("blanks", BLANKS, ids=ascii)
def test_every_form_of_a_sign_is_quoted(blanks: str) -> None:
    assert {"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66", "\u2212"} <= set(SIGNS)
    for sign in SIGNS:
        text = f"{blanks}{sign}1+cmd|' /C calc'!A0"
        assert cell(text) == f"'{text}", ascii(text)
        assert cell([text, "b"]).startswith("'")
        assert cell({text: "b"}).startswith("'")


def test_what_is_no_formula_stays_as_it_is() -> None:
    for text in ("", " ", "db-1", "a=b", " a+b", "\N{SNOWMAN}", "1-2", "'=1"):
        assert cell(text) == text
    for value in (-1, -0.5, 0, True):
        assert cell(value) is value
    assert cell(None) == ""
