"""What crosses the wire besides structure: metadata as headers, and fragments byte for byte as protobuf writes them."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import any_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.errors import EncodeError
from invoker.protocols.evergreen.wire import (
    children_frame,
    headers_of,
    is_marker,
    is_utf8_text,
    leaf_frame,
    metadata_of,
    prefix_of,
)

IDS = st.text(min_size=1, max_size=300).filter(lambda text: not any("\ud800" <= one <= "\udfff" for one in text))
SEQS = st.integers(0, 2**31 - 1) | st.integers(0, 300)


def message(fragment):
    return pb.SessionMessage(node_fragments=[fragment]).SerializeToString(deterministic=True)


@given(IDS, SEQS, st.binary(max_size=400), st.booleans(), st.none() | st.sampled_from(["", "text/plain", "x" * 200]))
def test_E097_a_leaf_is_written_as_protobuf_writes_it(name, seq, data, continued, mimetype):
    """Byte for byte, with and without metadata, for names and bytes of any length."""
    fragment = pb.NodeFragment(id=name, seq=seq, continued=continued)
    fragment.chunk_fragment.data = data
    metadata = None
    if mimetype is not None:
        fragment.chunk_fragment.metadata.CopyFrom(pb.ChunkMetadata(mimetype=mimetype))
        metadata = metadata_of(mimetype, {})
    assert leaf_frame(prefix_of(name), seq, data, continued=continued, metadata=metadata) == message(fragment)


@given(IDS, IDS | st.just(""), st.booleans())
def test_E059_a_reference_is_written_as_protobuf_writes_it(name, uri, continued):
    """In place of the bytes."""
    fragment = pb.NodeFragment(id=name, continued=continued)
    fragment.chunk_fragment.metadata.mimetype = "a/b"
    fragment.chunk_fragment.ref = uri
    made = leaf_frame(prefix_of(name), 0, b"", continued=continued, metadata=metadata_of("a/b", {}), ref=uri)
    assert made == message(fragment)


@given(IDS, SEQS, st.lists(IDS, max_size=5), st.booleans())
def test_E099_children_are_written_as_protobuf_writes_them(name, seq, children, continued):
    """Also none, which only ends the node."""
    fragment = pb.NodeFragment(id=name, seq=seq, continued=continued, child_ids=children)
    assert children_frame(prefix_of(name), seq, children, continued=continued) == message(fragment)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
def test_lengths_are_written_at_every_border(size):
    """Where the number of bytes of a length changes."""
    fragment = pb.NodeFragment(id="r")
    fragment.chunk_fragment.data = bytes(size)
    assert leaf_frame(prefix_of("r"), 0, bytes(size), continued=False) == message(fragment)


def test_joined_frames_are_one_message():
    """Several may be sent at once."""
    joined = leaf_frame(prefix_of("a"), 0, b"x", continued=True) + children_frame(
        prefix_of("b"), 0, (), continued=False
    )
    assert [one.id for one in pb.SessionMessage.FromString(joined).node_fragments] == ["a", "b"]


def metadata_with(**fields):
    return pb.ChunkMetadata(mimetype="a/b", **fields)


EVERYTHING = metadata_with(
    role="user",
    original_file_name="ü b.txt",
    capture_time=timestamp_pb2.Timestamp(seconds=1_769_860_800, nanos=5),
    experimental=[any_pb2.Any(type_url="t/x", value=b"\x00"), any_pb2.Any()],
)


def test_E044_metadata_become_headers():
    """All but the media type."""
    assert dict(headers_of(EVERYTHING)) == {
        "role": "user",
        "original-file-name": "ü b.txt",
        "capture-time": "2026-01-31T12:00:00.000000005Z",
        "experimental": base64.b64encode(EVERYTHING.experimental[0].SerializeToString()).decode() + ",",
    }
    assert dict(headers_of(metadata_with())) == {}


@given(
    st.text(max_size=9), st.text(max_size=9), st.none() | st.integers(-62_135_596_800, 253_402_300_799),
    st.lists(st.binary(min_size=1, max_size=9), max_size=3),
)  # fmt: skip
def test_E044_headers_become_the_metadata_that_they_were(role, file_name, seconds, values):
    """There and back."""
    made = metadata_with(role=role, original_file_name=file_name)
    if seconds is not None:
        made.capture_time.seconds = seconds
    for value in values:
        made.experimental.add(value=value)
    assert pb.ChunkMetadata.FromString(metadata_of("a/b", headers_of(made))) == made


def test_E044_a_time_that_has_no_name_is_still_told():
    """One that RFC 3339 cannot write."""
    headers = headers_of(metadata_with(capture_time=timestamp_pb2.Timestamp(seconds=10**15, nanos=7)))
    assert headers["capture-time"] == "1000000000000000.7"


def test_names_of_headers_have_no_case():
    """And others than these four stay here."""
    made = pb.ChunkMetadata.FromString(metadata_of("a/b", {"Role": "user", "ORIGINAL-File-Name": "a", "X-Own": "z"}))
    assert made == pb.ChunkMetadata(mimetype="a/b", role="user", original_file_name="a")


@pytest.mark.parametrize("value", ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-31 12:00:00"])
def test_E106_a_time_that_cannot_be_read_is_an_error(value):
    """Of the function that gave it."""
    with pytest.raises(EncodeError, match="header 'capture-time' is"):
        metadata_of("a/b", {"capture-time": value})


@pytest.mark.parametrize("header", ["role", "original-file-name"])
def test_E106_text_that_is_no_unicode_is_an_error(header):
    """A lone surrogate cannot be sent."""
    with pytest.raises(EncodeError, match=f"header '{header}'"):
        metadata_of("a/b", {header: "\ud800"})


@pytest.mark.parametrize("value", ["%%%", "AA", "/w==", "CgN0L3gSATE=,%%"])
def test_E106_experimental_metadata_that_cannot_be_read_are_an_error(value):
    """Neither base64 nor messages."""
    with pytest.raises(EncodeError, match="header 'experimental'"):
        metadata_of("a/b", {"experimental": value})


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("application/x-protobuf; type=EndOfTurn", True),
        ("application/x-protobuf;type=EndOfTurn", True),
        ('application/x-protobuf; type="EndOfTurn"', True),
        ("Application/X-Protobuf; Type=EndOfTurn", True),
        ("application/x-protobuf; v=1; type=EndOfTurn", True),
        ("application/x-protobuf; type=endofturn", False),
        ("application/x-protobuf; type=Other", False),
        ("application/x-protobuf", False),
        ("application/x-protobufs; type=EndOfTurn", False),
        ("application/json; type=EndOfTurn", False),
        ("application/x-protobuf; type", False),
        ("", False),
    ],
)
def test_E049_a_marker_is_known_by_its_type(media_type, expected):
    """Media types have no case, values of their parameters have."""
    assert is_marker(media_type) is expected


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("text/plain", True),
        ("text/markdown", True),
        ("TEXT/HTML; charset=UTF-8", True),
        ("text/plain; charset=utf8", True),
        ("text/plain; charset=us-ascii", True),
        ("application/x-latex", True),
        ("text/plain; charset=latin-1", False),
        ("text/plain; charset=utf-16", False),
        ("text/plain; encoding=base64", False),
        ("application/json", False),
        ("application/octet-stream", False),
        ("image/png", False),
        ("", False),
        ("no type", False),
    ],
)
def test_E046_what_may_be_read_as_text_piece_by_piece(media_type, expected):
    """``text/*`` and markup, in UTF-8."""
    assert is_utf8_text(media_type) is expected
