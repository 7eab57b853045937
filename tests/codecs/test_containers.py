"""`invoker.codecs.containers`: lists and dicts are counted before they are made, and the collector pauses meanwhile."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import builtin, containers
from invoker.codecs.containers import SMALL_BYTES, careful, json_exceeds, json_list_exceeds, msgpack_exceeds
from invoker.errors import DecodeError
from tests.codecs.wire import JSON, MSGPACK, PATIENT, decode
from tests.conftest import cpu_within

_TRICKY = st.text(alphabet='[{"\\ ]}a\u00e4', max_size=8)
_VALUES = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | _TRICKY,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TRICKY, inner, max_size=4),
    max_leaves=30,
)
_PACKED = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=40) | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.binary(max_size=40), inner, max_size=20),
    max_leaves=40,
)

SMALL_PIECES = mock.patch.object(containers, "_PIECE_BYTES", 64)
"""So that short values, too, are looked at piece by piece."""


def counted(value: Any) -> int:
    """Lists and dicts in a value, itself included."""
    if isinstance(value, dict):
        return 1 + sum(map(counted, value.values()))
    return 1 + sum(map(counted, value)) if isinstance(value, list) else 0


@PATIENT
@given(_VALUES)
def test_exactly_the_containers_of_json_are_counted(value: Any) -> None:
    """Brackets, quotes and backslashes within strings are none, as bytes and as text."""
    count = counted(value)
    with SMALL_PIECES:
        for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
            for payload in (text, text.encode()):
                assert not json_exceeds(payload, count)
                assert count == 0 or json_exceeds(payload, count - 1)


@PATIENT
@given(_PACKED)
def test_exactly_the_containers_of_msgpack_are_counted(value: Any) -> None:
    """Bytes of strings, numbers and binaries are none, whatever they look like."""
    count, payload = counted(value), msgspec.msgpack.encode(value)
    with SMALL_PIECES:
        assert not msgpack_exceeds(payload, count)
        assert count == 0 or msgpack_exceeds(payload, count - 1)


@pytest.mark.parametrize("lead", [b"\xc4\x05", b"\xc5\x00\x05", b"\xc6\x00\x00\x00\x05", b"\xc7\x05\x01", b"\xd9\x05",
                                  b"\xc8\x00\x05\x01", b"\xc9\x00\x00\x00\x05\x01", b"\xda\x00\x05",
                                  b"\xdb\x00\x00\x00\x05", b"\xa5", b"\xd6\x01\x90", b"\xce\x90"])  # fmt: skip
def test_each_form_of_a_msgpack_scalar_is_passed_as_a_whole(lead: bytes) -> None:
    """What it holds looks like arrays; the one behind it is one."""
    content = b"\x90" * (3 if lead[-1:] == b"\x90" else 5)
    payload = b"\xdc\x00\x03" + lead + content + b"\x90" + lead + content
    assert msgpack_exceeds(payload, 1)
    assert not msgpack_exceeds(payload, 2)


@PATIENT
@given(st.binary(max_size=400), st.integers(0, 20))
def test_garbage_is_left_to_the_decoder(payload: bytes, most: int) -> None:
    """Whatever the bytes are, the count ends with an answer."""
    assert msgpack_exceeds(payload, most) in (True, False)
    assert json_exceeds(payload, most) in (True, False)


@pytest.mark.parametrize(
    ("media_type", "payload"),
    [
        (JSON, b"[" + b",".join([b"[]"] * 250_000) + b"]"),
        (f"{JSON};charset=utf-16", ("[" + ",".join(["{}"] * 250_000) + "]").encode("utf-16")),
        (MSGPACK, b"\xdd" + (250_000).to_bytes(4, "big") + b"\x90" * 250_000),
    ],
)
def test_too_many_containers_are_refused_before_they_are_decoded(media_type: str, payload: bytes) -> None:
    """The text says the limit and its setting; with a higher one, the same payload is decoded."""
    with pytest.raises(DecodeError, match=r"more than 250000 lists and objects.*INVOKER_MAX_CONTAINERS"):
        decode(media_type, payload)
    registry = builtin(entry_points=False, max_containers=250_001)
    assert len(decode(media_type, payload, registry=registry)) == 250_000


def test_a_json_part_of_a_form_is_counted_as_well() -> None:
    """A body of several parts is no way round."""
    part = b"[" + b",".join([b"[]"] * 250_000) + b"]"
    head = b'--x\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: application/json\r\n\r\n'
    with pytest.raises(DecodeError, match="more than 250000 lists"):
        decode("multipart/form-data;boundary=x", head + part + b"\r\n--x--\r\n")


def test_scalars_are_not_capped() -> None:
    """A million numbers are one list."""
    values = list(range(1_000_000))
    assert decode(JSON, msgspec.json.encode(values)) == values
    assert decode(MSGPACK, msgspec.msgpack.encode(values)) == values


def test_text_full_of_brackets_is_decoded() -> None:
    """What looks like containers is counted exactly; only then the answer is no."""
    text = ['\\"[{' * 200_000, "\x90" * 300_000]
    assert decode(JSON, msgspec.json.encode(text)) == text
    assert decode(MSGPACK, msgspec.msgpack.encode([b"\x90" * 300_000])) == [b"\x90" * 300_000]


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """Collections as they begin."""
    seen: list[str] = []

    def note(phase: str, _: Any) -> None:
        seen.append(phase)

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


@pytest.mark.parametrize("media_type", [JSON, MSGPACK])
def test_a_large_decode_sets_off_no_collection(media_type: str, collections: list[str]) -> None:
    """However many lists it makes; the collector looks once when it is on again, where it looked 140 times."""
    encode = msgspec.json.encode if media_type == JSON else msgspec.msgpack.encode
    payload = encode([[] for _ in range(100_000)])
    decode(media_type, payload)
    gc.collect()
    del collections[:]
    assert len(decode(media_type, payload)) == 100_000
    assert gc.isenabled()
    assert collections.count("start") <= 1


def test_decodes_of_several_threads_leave_the_collector_as_it_was() -> None:
    """It is off while any of them decodes, and on when the last one is done, in whatever order they end."""
    begun, first, second = threading.Semaphore(0), threading.Event(), threading.Event()

    def held(event: threading.Event) -> None:
        begun.release()
        event.wait(5)

    parse = careful(held, msgpack_exceeds, 10**9)

    class Payload(bytes):
        """Long enough."""

        def __len__(self) -> int:
            return SMALL_BYTES + 1

        set_by = first

        def wait(self, timeout: float) -> bool:
            """As an event."""
            return self.set_by.wait(timeout)

    one, other = Payload(), Payload()
    other.set_by = second
    threads = [threading.Thread(target=parse, args=(each,)) for each in (one, other)]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=5)
    assert not gc.isenabled()
    first.set()
    threads[0].join(5)
    assert not gc.isenabled()
    second.set()
    threads[1].join(5)
    assert gc.isenabled()


def test_a_collector_that_the_author_turned_off_stays_off() -> None:
    """We only give back what we took."""
    gc.disable()
    try:
        decode(JSON, msgspec.json.encode(["x" * SMALL_BYTES]))
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "payload",
    [
        b"\xdd" + (466_000).to_bytes(4, "big") + (b"\xcf" + b"\x90" * 8) * 466_000,
        b"\xdd" + (800_000).to_bytes(4, "big") + b"\xc6\x00\x00\x00\x00" * 400_000 + b"\xc0\x90" * 100_000,
        b"\x91" * 200_000 + b"\xc6\x00\x20\x00\x00" + b"\x90" * (2 << 20),
    ],
)
def test_counting_exactly_takes_no_more_than_a_moment(payload: bytes) -> None:
    """Four MiB that were made for it; each match is bounded, and none looks at a byte twice."""
    with cpu_within(1):
        msgpack_exceeds(payload, 250_000)


@pytest.mark.parametrize(
    "element", [b"1", b' "a,\\"]" ', b"[]", b'{"a": [1, 2, {"b": ["]"]}]}', b"[[[[1]], 2], 3]", "\u20ac".encode()]
)
def test_elements_of_an_array_are_counted_at_its_beginning(element: bytes) -> None:
    """Commas within elements are none of the array's; what is behind the first elements is not looked at."""
    assert not json_list_exceeds(b" [%b] " % b",".join([element] * 5), 5)
    assert json_list_exceeds(b" [%b] " % b",".join([element] * 6), 5)
    assert json_list_exceeds(b"[" + b",".join([element] * 6) + b',"', 5)
    assert not json_list_exceeds(b"[[%b]]" % b",".join([element] * 50), 5)


@pytest.mark.parametrize("payload", [b"", b"[", b"null", b"[[[[[[1,2,3]]]]],1]", b'["a,b,c', b"[1,2", b"{,,,}"])
def test_arrays_that_do_not_show_their_elements_pass(payload: bytes) -> None:
    """They are counted when they are decoded, or refused there."""
    assert not json_list_exceeds(payload, 2)
