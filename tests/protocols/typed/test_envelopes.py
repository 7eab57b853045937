"""Messages within bodies."""

from __future__ import annotations

import gzip
from base64 import b64encode
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.typed.envelopes import Envelopes, Text, envelope, unpacked

compress = partial(gzip.compress, mtime=0)  # the names of tests have its bytes, and are the same in each process

MESSAGES = st.lists(st.tuples(st.sampled_from([0, 1, 2, 128]), st.binary(max_size=20)), max_size=5)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data, cut at these places."""
    places = [0, *sorted(min(one, len(data)) for one in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]


@given(MESSAGES, st.lists(st.integers(0, 60), max_size=4))
def test_H110_messages_come_however_they_are_cut(messages, cuts):
    """In order, with their flags."""
    reader = Envelopes(100)
    data = b"".join(envelope(message, flags) for flags, message in messages)
    found = [one for piece in pieces(data, cuts) for one in reader.feed(piece)]
    assert found == messages
    assert not reader.is_within


def test_H110_a_message_that_has_begun_is_told():
    """Also one of which only a part of the length is here."""
    for size in range(1, 7):
        reader = Envelopes(100)
        assert reader.feed(envelope(b"ab")[:size]) == []
        assert reader.is_within


def test_H110_a_message_that_is_too_long_is_refused_by_its_head():
    """Nothing of it is kept."""
    with pytest.raises(ValueError, match="a message has 101 bytes, which exceeds the limit of 100 bytes"):
        Envelopes(100).feed(envelope(b"x" * 101)[:5])


@given(st.lists(st.binary(max_size=12), max_size=5), st.lists(st.integers(0, 80), max_size=4))
def test_H112_base64_may_be_padded_anywhere(parts, cuts):
    """Senders pad wherever they flush."""
    reader, data = Text(), b"".join(b64encode(one) for one in parts)
    assert b"".join(reader.feed(one) for one in pieces(data, cuts)) == b"".join(parts)
    assert not reader.is_within


@pytest.mark.parametrize("signs", [b"a===", b"ab*d", b"====", b"a=bc"])
def test_H112_what_is_no_base64_is_refused(signs):
    """As a ValueError."""
    with pytest.raises(ValueError, match="not base64"):
        Text().feed(signs)


def test_H112_signs_that_are_left_are_told():
    """Four make a group."""
    reader = Text()
    assert reader.feed(b"YWJjZ") == b"abc"
    assert reader.is_within


@given(st.binary(max_size=200))
def test_H205_what_was_packed_is_unpacked(message):
    """All of it, up to the limit."""
    assert unpacked(compress(message), 200) == message


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (compress(bytes(1000)), "exceeds the limit of 200 bytes once it is decompressed"),
        (b"plain", "not gzip"),
        (b"", "from its beginning to its end"),
        (compress(b"abc")[:-1], "from its beginning to its end"),
        (compress(b"abc") + b"x", "from its beginning to its end"),
        (compress(b"abc") + compress(b"abc"), "from its beginning to its end"),
        (compress(b"abc")[:-8] + bytes(8), "not gzip"),
    ],
)
def test_H205_what_is_no_packed_message_is_refused(packed, why):
    """Too long, damaged, cut short, or followed by anything."""
    with pytest.raises(ValueError, match=why):
        unpacked(packed, 200)
