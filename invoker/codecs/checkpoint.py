"""The codec of ``application/vnd.fcp.checkpoint``: named arrays that devices and servers of federated compute send.

Theory. A payload has one of two forms, which differ in the first bytes. An *npz* is a file of ``numpy.savez``: a zip
whose entries are files of numpy, ``NAME.npy``. This codec writes them without compression and aligned, so that arrays
can be views on the payload; the weight of an update is the entry ``__examples__.npy``. *Aggregands* are the message
Checkpoint of federated_api.proto, in which sums of secure aggregation come (F-130); its vectors are flat arrays of
uint64. An empty payload has no arrays.

A zip can claim more than it holds. Stored entries are views on the payload; compressed entries together may inflate to
a limit in bytes; entries may not share bytes. Pickles and records are refused as in `invoker.codecs.npy`.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

from invoker.codecs.aggregands import read_aggregands
from invoker.codecs.costs import limit_on_loop
from invoker.codecs.interface import Decode, Encode, Offer, Specialised
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import BYTES_LIKE, bytes_like, is_any, members
from invoker.errors import InvocationError
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message
from invoker.tensors.checkpoint import CHECKPOINT, NUM_CLIENTS, Checkpoint, Update

if TYPE_CHECKING:
    from zipfile import ZipInfo

__all__ = ["CHECKPOINT", "MOST_INFLATED", "CheckpointCodec", "checkpoint_wanted", "read_checkpoint", "write_checkpoint"]

MOST_INFLATED: Final = 64 << 20
"""The most bytes to which the compressed entries of one payload may inflate (F-034)."""

_MOST_ENTRIES: Final = 10_000
_EXAMPLES: Final = "__examples__"
_SUFFIX: Final = ".npy"
_ALIGNMENT: Final = 64
_PADDING_ID: Final = 0xD935
_LOCAL_BYTES: Final = 30
_STORED, _DEFLATED = 0, 8
_ENTRY: Final = b"PK\1\2"
_ENCRYPTED: Final = 1

C = TypeVar("C", bound=Checkpoint)

limit_on_loop((CHECKPOINT,), 16 * 1024)  # deflate can expand a payload a thousand times


class CheckpointCodec(Specialised):
    """Reads `Checkpoint` and `Update` from npz files or aggregands, and writes npz files."""

    media_types = (CHECKPOINT,)

    def can_decode(self, type_: Any) -> bool:
        """Whether the annotation wants a checkpoint, bytes, or leaves the choice to the codec."""
        return is_any(type_) or checkpoint_wanted(type_) is not None or bytes_like(type_) is not None

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that makes a checkpoint of a payload."""
        wanted = checkpoint_wanted(type_)
        if wanted is None and (make := bytes_like(type_)) is not None:
            return lambda message: message.payload if type(message.payload) is make else make(message.payload)
        essence = media_type.essence

        def decode(message: Message[bytes]) -> Any:
            try:
                return _read(message.payload, wanted, float(message.headers.get(NUM_CLIENTS, 1.0)))
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that writes checkpoints as an npz, and bytes as they are."""
        name = offer.media_type.essence
        if issubclass(cls, BYTES_LIKE):
            return lambda value: Message(bytes(value), EMPTY, name)
        if not issubclass(cls, Checkpoint):
            return None

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(write_checkpoint(value), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode


def checkpoint_wanted(type_: Any) -> type[Checkpoint] | None:
    """The class of checkpoints that an annotation takes, alone or in a union; None when it takes none."""
    return next((one for one in members(type_) if isinstance(one, type) and issubclass(one, Checkpoint)), None)


def read_checkpoint(payload: bytes, wanted: type[C], *, most_bytes: int = MOST_INFLATED) -> C:
    """A checkpoint in either form.

    Args:
        payload: The bytes of the checkpoint; the arrays may be read-only views on them.
        wanted: `Checkpoint` or `Update`.
        most_bytes: The most bytes to which the compressed entries, or all aggregands, may expand.

    Raises:
        DecodeError: The payload is malformed, or expands too much.
    """
    try:
        return _read(payload, wanted, 1.0, most_bytes)  # type: ignore[return-value]  # made by `wanted`
    except BaseException as error:
        raise refuse_decode(error, Place("checkpoint"), CHECKPOINT, wanted) from error


def write_checkpoint(value: Checkpoint) -> bytes:
    """A checkpoint as an npz; equal checkpoints give equal bytes."""
    import zipfile

    from invoker.codecs.npy import write_array

    named = dict(value.items())
    if isinstance(value, Update):
        import numpy as np

        named[_EXAMPLES] = np.asarray(value.examples)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in named.items():
            info = zipfile.ZipInfo(name + _SUFFIX)
            start = file.tell() + _LOCAL_BYTES + len(info.filename.encode()) + 4
            padding = -start % _ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING_ID, padding) + bytes(padding)
            archive.writestr(info, write_array(array))
    return file.getvalue()


def _read(payload: bytes, wanted: type[Checkpoint] | None, examples: float, most: int | None = None) -> Checkpoint:
    is_npz = payload[:2] == b"PK"
    arrays = _read_npz(payload, most or MOST_INFLATED) if is_npz else read_aggregands(payload, most)
    weight = arrays.pop(_EXAMPLES, None)
    if weight is not None:
        if weight.shape or weight.dtype.kind not in "iuf":
            raise ValueError(f"its {_EXAMPLES} is {weight.dtype}{list(weight.shape)}, and not one number")
        examples = float(weight)
    wanted = wanted or (Checkpoint if weight is None else Update)
    return wanted(arrays, examples=examples) if issubclass(wanted, Update) else wanted(arrays)


def _read_npz(payload: bytes, most: int) -> dict[str, Any]:
    import zipfile

    from invoker.codecs.npy import read_array

    # zipfile reads all entries before it gives their number, which takes seconds for a million entries. Bytes of arrays
    # may look like entries by chance, but not so often.
    if (count := payload.count(_ENTRY)) > _MOST_ENTRIES:
        raise ValueError(f"it has {count} arrays, which exceeds the limit of {_MOST_ENTRIES}")
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"it is not a complete zip: {error}") from error
    if sum(one.compress_size for one in entries) > len(payload):
        raise ValueError("its entries share bytes")
    view, found = memoryview(payload), dict[str, Any]()
    for entry in entries:
        name = entry.filename.removesuffix(_SUFFIX)
        if name == entry.filename or name in found:
            raise ValueError(f"its entry {entry.filename!r} is not a file of numpy, or occurs twice")
        content = _content(view, entry, most)
        most -= len(content) if entry.compress_type == _DEFLATED else 0
        try:
            found[name] = read_array(content)
        except (ValueError, InvocationError) as error:
            raise ValueError(f"its array {name!r}: {error}") from error
    return found


# Checksums are not verified: the transport has done so, and each array says its own length.
def _content(payload: memoryview, entry: ZipInfo, most: int) -> memoryview | bytes:
    """The bytes of one entry; a view of the payload if the entry is not compressed."""
    head = payload[entry.header_offset : entry.header_offset + _LOCAL_BYTES]
    if len(head) < _LOCAL_BYTES or bytes(head[:4]) != b"PK\3\4" or entry.flag_bits & _ENCRYPTED:
        raise ValueError(f"its entry {entry.filename!r} is not where the zip says, or is encrypted")
    start = entry.header_offset + _LOCAL_BYTES + sum(struct.unpack("<HH", head[26:30]))
    data = payload[start : start + entry.compress_size]
    if len(data) != entry.compress_size:
        raise ValueError(f"its entry {entry.filename!r} ends after the end of the zip")
    if entry.compress_type == _STORED:
        return data
    if entry.compress_type != _DEFLATED:
        raise ValueError(f"its entry {entry.filename!r} is compressed by method {entry.compress_type}, not by deflate")
    if entry.file_size > most:
        raise ValueError(
            f"its entry {entry.filename!r} inflates to {entry.file_size} bytes, which exceeds the {most} "
            "bytes that are left"
        )
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(data, entry.file_size + 1)
    except zlib.error as error:
        raise ValueError(f"its entry {entry.filename!r} cannot be inflated: {error}") from error
    if len(content) != entry.file_size or not inflate.eof:
        raise ValueError(f"its entry {entry.filename!r} does not inflate to the {entry.file_size} bytes that it claims")
    return content
