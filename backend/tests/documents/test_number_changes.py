"""Documents kept as changes of numbers: whatever they hold, each comes back byte for byte, and is sealed without its
text.
"""

from __future__ import annotations

import base64
import tracemalloc
import uuid
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.documents import numbers
from hugeplan.documents.columns import taken_apart
from hugeplan.documents.numbers import apart_of, base_of, changes, text_of
from hugeplan.documents.sealed import DamagedBlockError, seal_sized, unseal_some, without_id

#: Digits mostly, with all that could be taken for a part of the form: separators, zeros, bytes of no text.
BYTES = st.lists(st.sampled_from(list(b"0011234567899  ,.-{}x\x00\xff\n")), max_size=120).map(bytes)
#: As they are written canonically and not: leading zeros, exponents, signs, long ones, zeros behind the point.
NUMBERS = (
    st.integers(-(10**40), 10**40).map(lambda value: b"%d" % value)
    | st.integers(0, 10**18).map(lambda value: b"%d" % (4096 * value))
    | st.tuples(st.integers(0, 999), st.integers(1, 30)).map(lambda one: b"%0*d" % one[::-1])
    | st.sampled_from([b"-0", b"1e5", b"1E+05", b"0.10", b"00", b"9" * 18, b"9" * 19, b"9" * 4000, b"1e-05", b"0.0"])
)
SKELETONS = st.sampled_from(
    [b'{"a_bytes":%s,"at":"T%s.%sZ"}', b'[{"a":%s},{"b":%s},{"a":%s}]', b'{"c":%s,"d":[%s],%s}']
)
LIKE_REPORTS = st.tuples(SKELETONS, NUMBERS, NUMBERS, NUMBERS).map(lambda one: one[0] % one[1:])
TEXTS = st.lists(BYTES | LIKE_REPORTS, max_size=4).map(b"".join)


def read(kept: bytes, base: bytes) -> numbers.Changes:
    return numbers.read(kept, base_of(base), 1 << 18)


@given(TEXTS.filter(bool), TEXTS, st.integers(-1, 1 << 18))
def test_any_text_comes_back_beside_any_other(text: bytes, base: bytes, place: int) -> None:
    found = read(changes(text, place, base), base)
    assert (text_of(found), found.place) == (text, place)


@given(LIKE_REPORTS, st.lists(LIKE_REPORTS, min_size=1, max_size=9))
def test_texts_are_taken_apart_as_from_their_bytes(base: bytes, texts: list[bytes]) -> None:
    read_with = base_of(base)
    found = apart_of([numbers.read(changes(text, 0, base), read_with, 1 << 18) for text in texts])
    expected = taken_apart(texts)
    assert found.skeletons == expected.skeletons
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert np.array_equal(one, other)
    assert found.sizes_bytes() == list(map(len, texts))


@given(st.lists(st.tuples(LIKE_REPORTS, st.booleans(), st.booleans()), min_size=1, max_size=9), LIKE_REPORTS)
def test_a_block_holds_both_forms_in_their_order(given_ones: list[tuple[bytes, bool, bool]], base: bytes) -> None:
    ids = [uuid.UUID(int=number) for number in range(len(given_ones))]
    whole, kept, read_with = [], [], base_of(base)
    for (text, is_text, says_id), one in zip(given_ones, ids, strict=True):
        whole.append(b'{"id":"%s"}%s' % (str(one).encode(), text) if says_id else text)
        cut, place = without_id(whole[-1], one)
        kept.append(whole[-1] if is_text else numbers.read(changes(cut, place, base), read_with, 1 << 18))
    block, sizes = seal_sized(kept, ids)
    assert sizes == list(map(len, whole))
    assert unseal_some(block, sizes, range(len(ids)), ids) == whole


def test_a_number_costs_the_bits_of_its_change_and_one_that_stays_nearly_nothing() -> None:
    base = b",".join(b'{"size_bytes":%d,"limit":%d}' % (4096 * n * n, 9**n) for n in range(300))
    text = b",".join(b'{"size_bytes":%d,"limit":%d}' % (4096 * (n * n + 200 + n % 7), 9**n) for n in range(300))
    assert len(changes(text, -1, base)) < 300 * 1.3
    assert len(changes(base, -1, base)) < 40


def test_a_part_that_comes_or_goes_costs_itself() -> None:
    parts = [b'{"name":"n%s","size":%d}' % (bytes([97 + n % 26]) * (1 + n % 5), 10**9 + n) for n in range(200)]
    assert len(changes(b",".join([*parts[:90], b'{"new":12}', *parts[91:]]), -1, b",".join(parts))) < 130


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=3), st.booleans())
def test_damage_is_an_error_or_changes_nothing(at: int, damage: bytes, is_other: bool) -> None:
    text, base = b'{"a":12,"b":"7"}' * 90, b'{"a":15,"b":"x"}' * 90 if is_other else b'{"a":11,"b":"7"}' * 90
    kept = bytearray(changes(text, 3, base))
    at %= len(kept)
    kept[at : at + len(damage)] = damage
    try:
        found = read(bytes(kept), base)
    except DamagedBlockError:
        return
    assert text_of(found) == text


def test_beside_another_base_it_is_damaged() -> None:
    with pytest.raises(DamagedBlockError, match="checksum"):
        read(changes(b"1 2 3", -1, b"1 2 4"), b"1 2 5")


def test_what_claims_to_be_large_takes_no_memory() -> None:
    kept = changes(b"x" * 10**7, -1, b"1")
    with pytest.raises(DamagedBlockError, match="bytes in place of"):
        read(kept, b"1")


HOSTILE = {
    "numbers": b"1 " * (1 << 17),
    "numbers in braces": b"{1" * (1 << 17),
    "braces": b"{" * (1 << 18),
    "numbers of 4,000 digits": (b"9" * 4000 + b",") * 65,
    "one number": b"7" * (1 << 18),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_node_sends_takes_bounded_memory_and_few_parts(text: bytes) -> None:
    base = b"[" + text[1:]
    tracemalloc.start()
    try:
        with mock.patch.object(numbers, "forms_of", side_effect=numbers.forms_of) as forms:
            kept = changes(text, -1, base)
            found = text_of(read(kept, base))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == text
    assert peak < 150 * len(text)
    assert all(call.args[1] <= 2_000 for call in forms.mock_calls)


#: As this release keeps them: of another skeleton than the reference's, and of the same.
KEPT = {
    "ROPZg5P/xCEotS/9JEWlAABYLTB9LHsiYyI6MGUCAEiQvW6qIFd7z4DEEmNhYWKQYGBgYmBiYAAACADoTQ==": (
        b'{"at":"2026-01-09T09:05:10Z","of":[{"a_bytes":8192001,"n":-7},{"c":1e5},{"b":0.05}]}'
    ),
    "LoNqVZP/wMQPY2BgYGJgZWhg4GYEAOh5": b'{"at":"2026-01-10T08:15:09Z","of":[{"a_bytes":4096000,"n":7},{"b":0.5}]}',
}


@pytest.mark.parametrize(("kept", "text"), KEPT.items())
def test_what_is_kept_today_is_read_by_all_releases_to_come(kept: str, text: bytes) -> None:
    base = b'{"at":"2026-01-09T08:05:09Z","of":[{"a_bytes":8192000,"n":7},{"b":0.05}]}'
    assert text_of(read(base64.b64decode(kept), base)) == text
