"""Translates the metadata of leaves to headers and back, and serialises fragments.

Fragments that carry bytes are the hot path, so they are written by hand, byte for byte as protobuf would write them.
"""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError as WireError

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs.varint import varint
from invoker.errors import EncodeError
from invoker.mediatypes import MediaType, parse
from invoker.message import EMPTY

ROLE, FILE_NAME, CAPTURE_TIME, EXPERIMENTAL = "role", "original-file-name", "capture-time", "experimental"
"""The names of the headers for the metadata of a leaf."""

_MARKUP = frozenset({"application/x-latex", "application/x-tex", "application/xml", "application/javascript"})


def headers_of(metadata: pb.ChunkMetadata) -> Mapping[str, str]:
    """The headers of a message for the metadata of a leaf, without the media type (E-044)."""
    found = {}
    if metadata.role:
        found[ROLE] = metadata.role
    if metadata.original_file_name:
        found[FILE_NAME] = metadata.original_file_name
    if metadata.HasField("capture_time"):
        try:
            found[CAPTURE_TIME] = metadata.capture_time.ToJsonString()
        except ValueError:
            found[CAPTURE_TIME] = f"{metadata.capture_time.seconds}.{metadata.capture_time.nanos}"
    if metadata.experimental:
        packed = (base64.b64encode(one.SerializeToString()).decode() for one in metadata.experimental)
        found[EXPERIMENTAL] = ",".join(packed)
    return found or EMPTY


def metadata_of(media_type: str, headers: Mapping[str, str]) -> bytes:
    """Serialise the metadata of a leaf.

    Raises:
        EncodeError: The value of a header does not fit the field of the metadata.
    """
    made = pb.ChunkMetadata(mimetype=media_type)
    for name, value in headers.items():
        known = name.lower()
        try:
            if known == ROLE:
                made.role = value
            elif known == FILE_NAME:
                made.original_file_name = value
        except UnicodeEncodeError:
            raise EncodeError(f"the header '{known}' is {value!a}, which is not valid Unicode") from None
        if known in (ROLE, FILE_NAME):
            continue
        if known == CAPTURE_TIME:
            try:
                made.capture_time.FromJsonString(value)
            except ValueError:
                raise EncodeError(
                    f"the header '{CAPTURE_TIME}' is {value!r}; a time like 2026-01-31T12:00:00Z is expected"
                ) from None
        elif known == EXPERIMENTAL:
            _add_experimental(made, value)
    return made.SerializeToString()


def _add_experimental(made: pb.ChunkMetadata, value: str) -> None:
    for part in filter(None, value.split(",")):
        try:
            made.experimental.add().ParseFromString(base64.b64decode(part, validate=True))
        except (binascii.Error, ValueError, WireError):
            raise EncodeError(
                f"the header '{EXPERIMENTAL}' must be base64 of google.protobuf.Any messages, joined by commas"
            ) from None


@functools.lru_cache(maxsize=512)
def _parsed(media_type: str) -> MediaType | None:
    try:
        return parse(media_type)
    except ValueError:
        return None


@functools.lru_cache(maxsize=512)
def is_marker(media_type: str) -> bool:
    """Whether a leaf is a marker of the end of a turn (E-049)."""
    one = _parsed(media_type)
    return one is not None and one.essence == "application/x-protobuf" and one.param("type") == "EndOfTurn"


@functools.lru_cache(maxsize=512)
def is_utf8_text(media_type: str) -> bool:
    """Whether a media type is text in UTF-8, which may be read piece by piece."""
    one = _parsed(media_type)
    if one is None or (one.type != "text" and one.essence not in _MARKUP) or one.param("encoding") is not None:
        return False
    return (one.charset or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8", "us-ascii", "ascii")


def prefix_of(id: str) -> bytes:
    """The serialised id of a node, which is the first field of each of its fragments."""
    name = id.encode()
    return b"\n" + varint(len(name)) + name


def leaf_frame(
    prefix: bytes, seq: int, data: bytes, *, continued: bool, metadata: bytes | None = None, ref: str | None = None
) -> bytes:
    """Serialise a SessionMessage with one fragment of a leaf.

    Args:
        prefix: The prefix of the node, by `prefix_of`.
        seq: The seq of the fragment.
        data: The bytes of the fragment; may be empty.
        continued: Whether more fragments follow.
        metadata: The serialised metadata; for seq 0 only.
        ref: A URI instead of the bytes; None: the fragment has bytes.
    """
    chunk = b"" if metadata is None else b"\n" + varint(len(metadata)) + metadata
    if ref is not None:
        uri = ref.encode()
        chunk += b"\x1a" + varint(len(uri)) + uri
    else:
        chunk += b"\x52" + varint(len(data)) + data
    body = b"".join((prefix, _seq(seq), b"\x18\x01" if continued else b"", b"\x2a", varint(len(chunk)), chunk))
    return b"\n" + varint(len(body)) + body


def children_frame(prefix: bytes, seq: int, children: Sequence[str], *, continued: bool) -> bytes:
    """Serialise a SessionMessage with one fragment of an interior node; without children it only ends the node."""
    names = [one.encode() for one in children]
    body = b"".join(
        (
            prefix,
            _seq(seq),
            b"\x18\x01" if continued else b"",
            *(b"\x22" + varint(len(name)) + name for name in names),
        )
    )
    return b"\n" + varint(len(body)) + body


def _seq(seq: int) -> bytes:
    return b"\x10" + varint(seq) if seq else b""
