"""`invoker.protocols.riff.parts`: multipart/form-data while it arrives."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import DecodeError, LimitExceeded
from invoker.protocols.riff.parts import MAX_PARTS, Parts, is_form

BODY = (
    b'--b\r\nContent-Disposition: form-data; name="a"; filename="f.txt"\r\nContent-Type: text/csv\r\n\r\n1,2\r\n'
    b'--b\r\nContent-Disposition: form-data; name="\xc3\xbc"\r\n\r\n\r\n--b--\r\n'
)


def parsed(*chunks: bytes) -> list[tuple[str, str, bytes]]:
    parts = Parts("multipart/form-data; boundary=b")
    for chunk in chunks:
        parts.write(chunk)
    return [(part.name, part.media_type, part.payload) for part in parts.finish()]


@pytest.mark.parametrize("text", ["multipart/form-data", "Multipart/Form-Data ; boundary=x"])
def test_forms_are_known_by_their_type(text: str) -> None:
    """Parameters and case do not matter."""
    assert is_form(text)
    assert not is_form("multipart/mixed")


def test_a_part_has_name_type_headers_and_payload() -> None:
    """The type is text/plain by default; names are UTF-8."""
    assert parsed(BODY) == [("a", "text/csv", b"1,2"), ("ü", "text/plain", b"")]


@given(st.lists(st.integers(0, len(BODY)), max_size=6))
def test_chunks_may_be_cut_anywhere(cuts: list[int]) -> None:
    """The parts do not depend on how the body came."""
    edges = [0, *sorted(cuts), len(BODY)]
    assert parsed(*(BODY[start:end] for start, end in itertools.pairwise(edges))) == parsed(BODY)


@given(
    st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([BODY, BODY[:40], b"--b\r\n", b"\r\n\r\n"])), max_size=5)
)
def test_any_bytes_parse_or_raise_decode_error(chunks: list[bytes]) -> None:
    """Nothing else is ever raised."""
    with suppress(DecodeError):
        parsed(*chunks)


@given(st.text(max_size=60))
def test_any_content_type_parses_or_raises_decode_error(text: str) -> None:
    """Boundaries come from strangers."""
    with suppress(DecodeError):
        Parts("multipart/form-data;" + text)


def test_a_body_with_too_many_parts_is_refused() -> None:
    """Each part costs far more than its bytes."""
    parts = Parts("multipart/form-data; boundary=b")
    one = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    with pytest.raises(LimitExceeded, match=f"more than {MAX_PARTS} parts"):
        parts.write(one * (MAX_PARTS + 1))
