"""Texts as columns of numbers: whatever they hold, each comes back byte for byte."""

from __future__ import annotations

import base64
import random
import tracemalloc
import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.documents import columns
from hugeplan.documents.columns import forms_of, pack_columns, taken_apart, unpack_columns
from hugeplan.documents.sealed import DamagedBlockError, seal, seal_sized, unseal, unseal_all, weight_bytes

#: Digits mostly, with all that could be taken for a part of the form: separators, zeros, bytes of no text.
BYTES = st.lists(st.sampled_from(list(b"0011234567899  ,.-{}x\x00\xff\n")), max_size=120).map(bytes)
NUMBERS = st.integers(0, 10**40).map(lambda value: b"%d" % value) | st.integers(0, 999).map(
    lambda value: b"%04d" % value
)


@given(st.lists(BYTES, min_size=1, max_size=6), st.data())
def test_any_texts(texts: list[bytes], data: st.DataObject) -> None:
    packed = b"".join(bytes(part) for part in pack_columns(taken_apart(texts)))
    assert unpack_columns(packed) == texts
    wanted = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=4))
    assert unpack_columns(packed, wanted) == [texts[number] for number in wanted]
    assert unseal_all(seal(texts), wanted) == [texts[number] for number in wanted]


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_texts_of_one_skeleton(rows: list[tuple[bytes, bytes, bytes]]) -> None:
    texts = [b'{"a_bytes":%s,"at":"%s.%sZ"}' % row for row in rows]
    assert unseal_all(seal(texts)) == texts


@given(st.integers(0, 10**9), st.lists(st.integers(-(10**17), 10**17), min_size=2, max_size=30))
def test_differences_of_any_size(first: int, others: list[int]) -> None:
    texts = [b"x %d" % abs(number) for number in (first, *others)]
    assert unseal_all(seal(texts)) == texts


def test_a_number_that_changes_costs_two_bytes_and_what_stays_costs_nothing() -> None:
    chance = random.Random(3)
    texts = [b'{"free":%d,"total":135291469824}' % (65498251264 + 4096 * chance.randrange(60)) for _ in range(1500)]
    assert len(seal(texts)) < 1500 * 2


def test_the_id_of_a_document_is_not_in_its_block() -> None:
    ids = [uuid.uuid4() for _ in range(100)]
    documents = [b'{"id":"%s","n":%d}' % (str(one).encode(), n) for n, one in enumerate(ids)]
    documents[7] = b"without"
    block = seal(documents, ids)
    assert len(block) < 400
    sizes = [len(document) for document in documents]
    assert [unseal(block, sizes, number, ids) for number in range(100)] == documents


#: As a release before this one sealed them, with ids and without.
FORMER_WITH_IDS = (
    "Aii1L/1kXACVBgAiCyUiQGurAzjzMmGm0FmLAbKmiddRlANjFsMGdTdkOpDHgC1tCwk6AegghJIEUcqust0wjX4Nk88WTNSrKjTh6WPytoNrPTPv01"
    "pnTpz3u1aLrmFwc3fgM0UGF3YTZE3qmREfI7JG0xO0dLyFnhNfnhyuZQObntUNXvC0fJdCpesHhIPItINOQerjHASA1ZPA1dU65yACGCBAQsJUe5sy"
    "Yhd/w/ZFnQWAaSfSGTUbBh7zusItKo2AkgPHTRGWpThYLnB0bwbBXhDyiSMcF+RaCgoGmXCi"
)
FORMER = (
    "Aii1L/0kslUEANIHGx6AuQ0zwABvdLLxi/EdnUgUssiYAGz7JbEMlAJEOwUpUyaEkIIoRvhp3lf463Y3LzPmoDsJfxRsD6HbgLXKay7qttoFMgtsBa"
    "e7PjYMQbe58Y/Oc7q9WECj/2IggIf354aojMxstEpWJSwzjwogEGbtAyNR4wrQ8Ny8s4+wvPwXF5QAVNhSBvlNMEw="
)


def test_blocks_of_the_release_before_are_read() -> None:
    ids = [uuid.UUID(int=n + 1) for n in range(4)]
    documents = [
        b'{"id":"%s","n":%d,"of":[{"a":0%d},{"a":7}]}' % (str(ids[n]).encode(), n * n * 1000, n) for n in range(4)
    ]
    documents[2] = b"without"
    sizes = [len(document) for document in documents]
    block = base64.b64decode(FORMER_WITH_IDS)
    assert [unseal(block, sizes, number, ids) for number in range(4)] == documents
    assert unseal_all(base64.b64decode(FORMER)) == [b"1 2", b"3 40"]
    with pytest.raises(DamagedBlockError):
        unseal(block[:40] + b"x" + block[41:], sizes, 0, ids)


def test_a_list_that_grows_and_a_number_in_another_form_cost_little() -> None:
    chance = random.Random(3)
    texts = []
    for n in range(300):
        entries = [b'{"name":"postgres","size_bytes":%d}' % chance.getrandbits(40) for _ in range(1)] * (5 + n % 3)
        texts.append(b'{"seconds":%s,"of":[%s]}' % (b"1e-05" if n % 2 else b"0.0001", b",".join(entries)))
    assert len(seal(texts)) < 300 * 40
    assert unseal_all(seal(texts)) == texts


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=3))
def test_damage_is_an_error_or_changes_nothing(at: int, damage: bytes) -> None:
    documents = [b"%d {} 0%d" % (n, n * n) for n in range(50)]
    block = bytearray(seal(documents))
    at %= len(block)
    block[at : at + len(damage)] = damage
    try:
        assert unseal_all(bytes(block)) == documents
    except DamagedBlockError:
        return


@pytest.mark.parametrize("cut", [0, 1, 5, 30])
def test_a_block_that_was_cut_off_is_an_error(cut: int) -> None:
    with pytest.raises(DamagedBlockError):
        unseal_all(seal([b"1 2 3"] * 9)[:cut])


HOSTILE = {
    "braces": [b"a" * (n + 1) + b"{" * 20_000 for n in range(6)],
    "braces and numbers": [b"a" * (n + 1) + b"{0" * 20_000 for n in range(6)],
    "braces alone": [b"{" * 30_000] * 4,
    "numbers of one digit": [b"a" * (n + 1) + b"0 1 " * 20_000 for n in range(6)],
    "no two parts alike": [b"".join(b"{%d%s" % (n * i, b"x" * (i % 7)) for i in range(20_000)) for n in range(6)],
}


@pytest.mark.parametrize("documents", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_node_sends_is_packed_in_bounded_memory_and_read_back(documents: list[bytes]) -> None:
    """A text of braces had an object per brace, and a block of 400 kB could not be read back."""
    ids = [uuid.uuid4() for _ in documents]
    tracemalloc.start()
    try:
        block = seal(documents, ids)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    weight = sum(map(weight_bytes, documents))
    assert peak < 24 * weight + (1 << 25)
    sizes = [len(document) for document in documents]
    assert [unseal(block, sizes, number, ids) for number in range(len(documents))] == documents


@pytest.mark.parametrize("kind", ["text", "numbers", "braces", "alone"])
def test_one_document_of_a_block_is_read_in_hardly_more_memory_than_all_of_them_take(kind: str) -> None:
    """Each copy of the streams counts, and an array of all numbers takes eight times as much."""
    chance = random.Random(3)
    documents = {
        "text": lambda: [b"%x" % chance.getrandbits(80_000) for _ in range(450)],
        "numbers": lambda: [b" ".join(b"%d" % chance.randrange(9) for _ in range(20_000)) for _ in range(90)],
        "braces": lambda: [b"".join(b"{%d" % chance.randrange(9) for _ in range(20_000)) for _ in range(90)],
        "alone": lambda: [b"%x" % chance.getrandbits(16_000_000)],
    }[kind]()
    block, sizes = seal_sized(documents)
    unseal(block, sizes, 0)
    tracemalloc.start()
    try:
        assert unseal(block, sizes, len(documents) - 1) == documents[-1]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    parts = 4 << 20 if kind == "braces" else 0  # of one document
    assert peak < 2 * sum(sizes) + parts + (4 << 20), f"{peak / sum(sizes):.1f} times as much"


def test_braces_beyond_the_bound_begin_no_part() -> None:
    texts = [b"a" * (number + 1) + b"{0" * 3_000 for number in range(40)]
    of_form = [len(form.parts) for form in forms_of(texts, 20_000)]
    assert of_form == [501] * 40
    assert unpack_columns(_joined(pack_columns(taken_apart(texts), 20_000))) == texts
    assert unpack_columns(_joined(pack_columns(taken_apart(texts), 0))) == texts


@given(st.lists(BYTES, max_size=9), st.integers(0, 300))
def test_how_many_texts_are_taken_apart_together_changes_nothing(texts: list[bytes], at_once: int) -> None:
    together = _joined(pack_columns(taken_apart(texts)))
    with mock.patch.object(columns, "_AT_ONCE_BYTES", at_once):
        assert _joined(pack_columns(taken_apart(texts))) == together


def test_six_hours_of_a_node_take_less_than_six_times_their_memory() -> None:
    """Taken apart all at once they took seven, in pages that the system mapped for each block."""
    report = (Path(__file__).parents[3] / "docs/report.example.json").read_bytes()
    documents = [report.replace(b"00", b"%02d" % (number % 100)) for number in range(360)]
    tracemalloc.start()
    try:
        seal(documents)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * sum(map(len, documents))


def _joined(packed: list[Any]) -> bytes:
    return b"".join(map(bytes, packed))
