"""The codec of ``application/x-npy``: arrays in numpy's file format.

Any dtype of numbers, text or times is allowed, also those without a tensor type. Arrays of objects, which would be
pickles, and records are refused. An array is a view on the payload where alignment allows.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, Final

from invoker.codecs.interface import Decode, Encode, Offer, Specialised
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.tensor import array_wanted
from invoker.codecs.typed import bytes_like
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message

_KINDS: Final = "biufcmMSU"
_HEADER_BYTES: Final = 10_000
_PLAIN: Final = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<descr>[<|][biufc][0-9]{1,2})', 'fortran_order': (?P<order>True|False), "
    rb"'shape': \((?P<shape>|[0-9]{1,18},|[0-9]{1,18}(?:, [0-9]{1,18}){1,31})\), \} *\n",
    re.DOTALL,
)
"""Matches a header that numpy writes for numbers; other headers are parsed by numpy, which takes ten times as long.

Each text matches in at most one way, so that matching takes linear time, whatever a peer has sent.
"""

_ATTEMPTS: Final = 5

_HEAD_BYTES: Final = 0x1_0000 + 12
"""The most bytes that a file's magic, the length of its header, and a header of format 1.0 can have."""


class NpyCodec(Specialised):
    """Reads arrays in numpy's formats 1.0 and 2.0, and writes 1.0."""

    media_types = ("application/x-npy",)

    def can_decode(self, type_: Any) -> bool:
        """Whether the annotation wants arrays, the payload as it is, or leaves the choice to the codec."""
        return array_wanted(type_) is not None or bytes_like(type_) is not None

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that makes an array of a file."""
        if (wanted := array_wanted(type_)) is None:
            make = bytes_like(type_) or bytes
            return lambda message: message.payload if make is bytes else make(message.payload)
        from invoker.tensors import arrays

        essence = media_type.essence

        def decode(message: Message[bytes]) -> Any:
            try:
                return arrays.fitted(read_array(message.payload), wanted)
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that writes arrays, and objects that can become arrays."""
        from invoker.tensors import arrays

        if not arrays.is_takeable(cls):
            return None
        name = offer.media_type.essence

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(write_array(value), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode


def read_array(payload: bytes | memoryview) -> Any:
    """The array in a file of numpy; it is read-only, and a view on the payload where alignment allows.

    Raises:
        ValueError: The payload is malformed, or has elements of another kind than numbers, text and times.
    """
    import numpy as np

    shape, is_fortran, dtype, start = _header(payload)
    _check(dtype)
    size = dtype.itemsize
    for one in shape:
        if one < 0:
            raise ValueError(f"the shape {shape} has a negative size")
        size *= one
    if len(payload) - start != size:
        raise ValueError(f"it has {len(payload) - start} bytes of elements, and its header says {size}")
    array: Any = np.ndarray(shape, dtype, payload, start, order="F" if is_fortran else "C")
    array = array.astype(dtype.newbyteorder("="), copy=not array.flags.aligned)
    array.flags.writeable = False
    return array


def _header(payload: bytes | memoryview) -> tuple[tuple[int, ...], bool, Any, int]:
    """The header: shape, whether the order is column-major, dtype, and the index at which the elements begin."""
    import numpy as np

    if plain := _PLAIN.match(payload):
        descr, order, sizes = plain["descr"], plain["order"], plain["shape"]
        if plain.end() == 10 + int.from_bytes(payload[8:10], "little"):
            return (
                tuple(map(int, sizes.replace(b",", b" ").split())),
                order == b"True",
                np.dtype(descr.decode()),
                plain.end(),
            )
    file = io.BytesIO(payload[:_HEAD_BYTES])
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"format {version[0]}.{version[1]} is neither 1.0 nor 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = _parsed(read, file)
    return shape, is_fortran, dtype, file.tell()


def _parsed(read: Callable[..., Any], file: io.BytesIO) -> Any:
    """Read the header with numpy's parser, which may fail by chance."""
    begin = file.tell()
    for left in reversed(range(_ATTEMPTS)):
        try:
            return read(file, max_header_size=_HEADER_BYTES)
        except SystemError:  # two threads parse at once (python/cpython#106905; drop with Python 3.12)
            if not left:
                raise
            file.seek(begin)
    raise AssertionError("the last attempt returns or raises")


def write_array(value: Any) -> bytes:
    """Convert an array, or a value that numpy can convert to one, to a file of numpy in format 1.0.

    Raises:
        ValueError: The array has elements of another kind than numbers, text and times.
    """
    import numpy as np

    array = np.asarray(value)
    _check(array.dtype)
    array = np.asarray(array, order="C")
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    return b"".join((head.getvalue(), array.reshape(-1).view(np.uint8).data if array.size else b""))


def _check(dtype: Any) -> None:
    if dtype.kind not in _KINDS or dtype.subdtype is not None or dtype.itemsize == 0:
        raise ValueError(f"elements of dtype {dtype} are refused; only numbers, text and times can be sent")
