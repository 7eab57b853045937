"""`invoker.codecs.parts`: a multipart body in pieces."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import Part, PartReader
from invoker.codecs.parts import MAX_PARTS
from invoker.errors import DecodeError, LimitExceeded
from tests.codecs.wire import PATIENT

TYPE = "multipart/form-data;boundary=b"
BODY = (
    b'preamble\r\n--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n'
    b'--b\r\ncontent-disposition: form-data; name="f"; filename="C:\\dir\\../x y.bin"\r\nContent-Type: image/png\r\n'
    b"X-More: 1\r\n\r\n\x00\xff\r\n--\r\n--b--\r\nepilogue"
)
BODY = BODY.removeprefix(b"preamble\r\n")


def read(body: bytes, size: int = 10_000, media_type: str = TYPE) -> list[Part]:
    reader = PartReader(media_type)
    found = [part for at in range(0, len(body), size) for part in reader.feed(body[at : at + size])]
    reader.close()
    return found


def test_parts_have_names_files_and_headers() -> None:
    """A filename is without directories, so that nobody writes where a peer wants."""
    text, file = read(BODY)
    assert (text.name, text.text, text.filename, text.media_type) == ("a", "hello", None, "")
    assert (file.name, file.payload, file.filename) == ("f", b"\x00\xff\r\n--", "x y.bin")
    assert file.headers["x-more"] == "1"
    assert file == Part("f", b"\x00\xff\r\n--", "image/png", "x y.bin")
    assert len({text, file, *read(BODY)}) == 2
    assert repr(file) == "Part('f', 6 bytes, 'image/png', filename='x y.bin')"
    assert text != "hello"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_pieces_make_no_difference(size: int) -> None:
    """Wherever the body is cut."""
    assert read(BODY, size) == read(BODY)


def test_text_has_a_charset() -> None:
    """That of its media type."""
    assert Part("a", b"\xe9", "text/plain; charset=latin1").text == "é"
    for part in (Part("a", b"\xff"), Part("a", b"", "text/plain;charset=nope"), Part("a", b"", "nonsense")):
        with pytest.raises(ValueError, match=r"decode|charset|media type"):
            _ = part.text


@pytest.mark.parametrize(
    "media_type",
    ["multipart/form-data", "multipart/form-data;boundary=", 'multipart/form-data;boundary="é"', TYPE + "b" * 80],
)
def test_a_boundary_is_needed(media_type: str) -> None:
    """One that is usable."""
    with pytest.raises(DecodeError, match="needs a boundary"):
        PartReader(media_type)


@pytest.mark.parametrize("boundary", ["----=_Part_1_2.3", '"----=_Part_1_2.3"', "a:b", "(x)/y?"])
def test_a_boundary_without_quotes_is_understood(boundary: str) -> None:
    """Some programs leave them out although RFC 2045 wants them."""
    body = BODY.replace(b"--b", b"--" + boundary.strip('"').encode())
    assert read(body, media_type=f"Multipart/Form-Data ; charset=utf-8; boundary={boundary}") == read(BODY)


@PATIENT
@given(st.text(max_size=60))
def test_any_media_type_is_read_or_a_decode_error(text: str) -> None:
    """Boundaries come from strangers."""
    try:
        PartReader("multipart/form-data;" + text)
    except DecodeError as error:
        str(error).encode()


@pytest.mark.parametrize(
    "body",
    [b"", b"garbage", BODY[:-20], BODY[:40], b"--b\r\n\r\nx\r\n--b--\r\n", b"--b\r\nno header\r\n\r\n--b--\r\n",
     b'--b\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nx\r\n--b--\r\n',
     b'--b\r\nContent-Disposition: attachment; name="x"\r\n\r\nx\r\n--b--\r\n',
     b"--b\r\n" + b"X: y\r\n" * 100 + b"\r\n\r\n--b--\r\n", b"--b\r\nX: " + b"y" * 100_000],
)  # fmt: skip
def test_a_broken_body_is_a_decode_error(body: bytes) -> None:
    """At once, or at its end."""
    with pytest.raises(DecodeError, match=r"multipart"):
        read(body)


def test_the_number_of_parts_is_bounded() -> None:
    """Each costs far more memory than it has bytes."""
    one = b'--b\r\nContent-Disposition: form-data; name=""\r\n\r\n\r\n'
    assert len(read(one * MAX_PARTS + b"--b--\r\n")) == MAX_PARTS
    with pytest.raises(LimitExceeded, match="more than 1000 parts"):
        read(one * (MAX_PARTS + 1) + b"--b--\r\n")


def test_H162_what_is_held_goes_with_its_reader() -> None:
    """Not with the next run of the collector: a hundred clients can begin parts of megabytes before that."""
    reader = PartReader(TYPE)
    reader.feed(BODY[:60])
    content = weakref.ref(reader._content)
    gc.disable()
    try:
        del reader
        assert content() is None
    finally:
        gc.enable()


@PATIENT
@given(st.binary(max_size=80), st.integers(1, 80), st.integers(0, len(BODY)))
def test_any_bytes_are_parts_or_a_decode_error(noise: bytes, size: int, at: int) -> None:
    """Also within a body that began well."""
    for body in (noise, BODY[:at] + noise + BODY[at:]):
        try:
            read(body, size)
        except DecodeError as error:
            str(error).encode()
