"""No cell of a CSV is a formula to a spreadsheet, however it begins."""

from __future__ import annotations

import re
import time
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
        assert cell(text).startswith("'"), ascii(text)
        assert cell(text).replace("'", "") == text.replace("'", ""), ascii(text)
        assert cell([text, "b"]).startswith("'")
        assert cell({text: "b"}).startswith("'")


@pytest.mark.parametrize("blanks", BLANKS, ids=ascii)
@pytest.mark.parametrize("separator", [";", ",", "\t", "\n", "\r", "|"], ids=ascii)
def test_no_part_behind_a_separator_of_another_locale_is_a_formula(separator: str, blanks: str) -> None:
    """A spreadsheet of many locales separates by semicolons: what comes behind one in a cell is a cell of its own."""
    for sign in SIGNS:
        for quote in ("", '"', '""'):
            text = f"a{separator}b c{separator}{blanks}{quote}{sign}1+1"
            last = re.split("[;,|\t-\r]", cell(text))[-1]
            assert last.startswith("'"), ascii(cell(text))
            assert cell(cell(text)) == cell(text)
            assert cell([text])[1:] == cell(text)[1:]


def test_texts_of_a_megabyte_are_guarded_in_one_pass() -> None:
    begun = time.process_time()
    for text in (";", ";=", "; ", " ", "\t", ";\u207a", "\u200b", '"'):
        cell("a" + text * (2**20 // len(text)))
    assert time.process_time() - begun < 8.0


def test_labels_full_of_separators_cost_little_more_than_letters() -> None:
    """Each part was searched, and their joined text once more: an export of one viewer held all others up."""

    def seconds(key: str, value: str) -> float:
        labels = {f"{at}{key}": value for at in range(3200)}
        begun = time.process_time()
        cell(labels)
        return time.process_time() - begun

    letters = min(seconds("abc" * 20, "abcd" * 64) for _ in range(3))
    assert min(seconds("; =" * 20, "; =-" * 64) for _ in range(3)) < letters + 0.1


def test_what_is_no_formula_stays_as_it_is() -> None:
    for text in ("", " ", "db-1", "a=b", " a+b", "\N{SNOWMAN}", "1-2", "'=1", "a; b, c", "7 %, (+3)", "a;'=1"):
        assert cell(text) == text
    for value in (-1, -0.5, 0, True):
        assert cell(value) is value
    assert cell(None) == ""
