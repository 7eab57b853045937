"""The codec of ``application/vnd.graphpipe.tensor``: arrays as tensors of GraphPipe.

Theory. A tensor is sent in one of two forms (ADR 10). The *table* needs no parameter: the payload is a FlatBuffer whose
root is a ``Tensor``, with its type and shape; encoders write this form. The *raw* form has the parameter ``type``
(``float32``) and, unless it is a scalar, ``shape`` (``2x3``): the payload has only the elements, little-endian and in
row-major order, so that a part of a larger buffer can be passed on without a copy. Strings have no raw form.

Both become an array without a copy where alignment allows. The codec is registered only where a function uses arrays.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from invoker.codecs.interface import Decode, Encode, Offer, Specialised, refusing
from invoker.codecs.refusal import reason, refuse_decode, refuse_encode
from invoker.codecs.typed import bytes_like, is_any, leaves
from invoker.errors import EncodeError
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType, parse
from invoker.message import EMPTY, Message
from invoker.tensors import (
    ITEM_BYTES,
    MAX_RANK,
    ArrayType,
    Code,
    GraphPipeError,
    Tensor,
    TensorType,
    array_type,
    count_of,
    read_tensor,
    spelled,
    write_tensor,
)
from invoker.tensors.tables import wrong_length

TENSOR: Final = "application/vnd.graphpipe.tensor"

_LEAST_BYTES: Final = 1024
_LIMIT_PER_BYTE: Final = 3
"""The ``limit_bytes`` of `Totals` for each byte of the payload. Four times the limit may be decoded, twelve times the
payload, since the shortest strings take that much; tables that share bytes count each time."""

_RAW_TYPES: Final = {spelled(one).lower(): one for one in TensorType if ITEM_BYTES[one]}


class TensorCodec(Specialised):
    """Encodes arrays, and values that can become arrays, as tensors; does not cast element types (G-061)."""

    media_types = (TENSOR,)

    def can_decode(self, type_: Any) -> bool:
        """Whether the annotation wants arrays, the payload as it is, or leaves the choice to the codec."""
        return array_wanted(type_) is not None or bytes_like(type_) is not None

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that makes an array of a tensor."""
        if (wanted := array_wanted(type_)) is None:
            return _as_bytes(bytes_like(type_))
        from invoker.tensors import arrays, numbers

        essence = media_type.essence
        try:
            raw = _raw(media_type)
        except GraphPipeError as error:
            return refusing(refuse_decode(error, where, essence, type_))

        def make_of_table(payload: bytes) -> Any:
            return arrays.fitted(arrays.to_array(_read_table(payload)), wanted)

        make = make_of_table if raw is None else numbers.reader(raw.type, raw.shape, wanted)

        def decode(message: Message[bytes]) -> Any:
            try:
                return make(message.payload)
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that writes values of ``cls`` as tables."""
        from invoker.tensors import arrays, numbers

        if not arrays.is_takeable(cls):
            return None
        name, is_array = offer.media_type.essence, cls is arrays.PLAIN_ARRAY

        def encode(value: Any) -> Message[bytes]:
            try:
                payload = numbers.written(value) if is_array else None
                return Message(payload or bytes(write_tensor(arrays.to_tensor(value))), EMPTY, name)
            except GraphPipeError as error:  # the error's text already says what cannot become a tensor
                raise EncodeError(f": {reason(error).text}", place=where) from error
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode

    def refusal(self, cls: type) -> str:
        """The reason why values of ``cls`` cannot be tensors, as in the errors of `to_tensor`."""
        return f"{'None' if cls is type(None) else cls.__name__} cannot be a tensor"


def array_wanted(type_: Any) -> ArrayType | None:
    """The arrays that an annotation takes, alone or in a union; None when it takes none."""
    if is_any(type_):
        return ArrayType()
    return next((found for one in leaves(type_) if (found := array_type(one)) is not None), None)


def message_of(tensor: Tensor) -> Message[bytes]:
    """Convert a received tensor to a message for a function: numbers in the raw form, without a copy."""
    if isinstance(tensor.data, list):
        return Message(bytes(write_tensor(tensor)), EMPTY, TENSOR)
    shape = f";shape={'x'.join(map(str, tensor.shape))}" if tensor.shape else ""
    media_type = f"{TENSOR};type={spelled(tensor.type).lower()}{shape}"
    return Message(cast("bytes", tensor.data), EMPTY, media_type)  # a view, which all readers of this type accept


def tensor_in(message: Message[bytes]) -> Tensor:
    """The tensor in a message of this media type, in either form; its numbers are a view on the payload.

    Raises:
        GraphPipeError: The message is malformed, or its tensor is invalid.
    """
    raw = _raw(parse(message.media_type))
    if raw is None:
        return _read_table(message.payload)
    view, size = memoryview(message.payload), count_of(raw.shape) * ITEM_BYTES[raw.type]
    if len(view) != size:
        raise wrong_length("it", raw.type, raw.shape, f"{len(view)} bytes", f"{size}")
    return Tensor(raw.type, raw.shape, view)


class _Raw(NamedTuple):
    """The parameters of a media type that describe a tensor in the raw form."""

    type: TensorType
    shape: tuple[int, ...]


def _raw(media_type: MediaType) -> _Raw | None:
    """The raw form that a media type describes; None for the table."""
    spelling = media_type.param("type")
    if spelling is None:
        if media_type.param("shape") is not None:
            raise GraphPipeError(Code.UNSUPPORTED_TYPE, "the media type has a shape but no type")
        return None
    type_ = _RAW_TYPES.get(spelling.lower())
    if type_ is None:
        raise GraphPipeError(Code.UNSUPPORTED_TYPE, f"there is no raw form of type {spelling[:40]!r}")
    shape = _shape(media_type.param("shape") or "")
    return _Raw(type_, shape)


def _read_table(payload: bytes) -> Tensor:
    return read_tensor(payload, _LEAST_BYTES + _LIMIT_PER_BYTE * len(payload))


def _shape(spelling: str) -> tuple[int, ...]:
    sizes = spelling.split("x") if spelling else []
    if len(sizes) > MAX_RANK or not all(one.isascii() and one.isdigit() and len(one) < 20 for one in sizes):
        raise GraphPipeError(Code.SHAPE, f"{spelling[:80]!r} is not a shape; write it like 2x3")
    return tuple(map(int, sizes))


def _as_bytes(kind: type | None) -> Decode:
    """A decoder for annotations without an array; it returns the payload, perhaps as a view."""
    make = kind or bytes
    return lambda message: message.payload if type(message.payload) is make else make(message.payload)
