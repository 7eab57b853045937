"""Masks: long vectors of random numbers that are made from short keys; and the sums of very many masks (F-096).

A mask is the keystream of AES-256-CTR, cut into samples of ceil(b / 8) bytes, big-endian, of which the lowest b bits
are used. If the modulus is not a power of two, samples below 2^b - modulus are skipped, and the others are elements of
the mask, modulo the modulus.

Only sums of masks are needed: a device adds the masks that it shares with all others, a server those of all dead
devices. So for powers of two no single mask is converted to numbers. Keystreams are added eight bytes at a time, and
the sums of the single bytes are separated afterwards, once for up to 256 masks. Let W be a word of eight bytes, with
the even bytes e0, e1, e2, e3 and the odd bytes o0, o1, o2, o3, the lowest first. Two sums are kept, in 64 bits each::

    whole = sum of W                                    modulo 2^64
    odd   = sum of (W >> 8) & 0x00ff00ff00ff00ff        four sums of 16 bits, which 256 masks cannot overflow
    even  = whole - (odd << 8)                          likewise, because W = even bytes + (odd bytes << 8)

The sum of samples is computed from the sums of their bytes; bits above the lowest b vanish modulo 2^b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from invoker.protocols.federated.wire.packing import bit_width

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]
    Update: TypeAlias = Callable[[bytes | memoryview, Any], int]

_ODD: Final = 0x00FF00FF00FF00FF
_OVERFLOW: Final = 256
# sixteen keystreams are added in one step, 64 KiB of each: a megabyte fits into the cache of a core
_TOGETHER: Final = 16
_PIECE_BYTES: Final = 65536
_ZEROS: Final = bytes(_PIECE_BYTES)


def add_masks(keys: Sequence[bytes], modulus: int, length: int, *, stopped: Callable[[], bool] = bool) -> Array:
    """The sum of the masks of these keys, modulo the modulus.

    Args:
        keys: Any number of keys, from `invoker.protocols.federated.wire.derive.mask_key`.
        modulus: The modulus, from 2 to 2^62.
        length: The length of each mask, in elements.
        stopped: Called from time to time; if it returns True, the sum is not needed any more, and is returned
            incomplete.

    Returns:
        An array (length,) of uint64, each below the modulus. The memory for the computation does not grow with the
            number of keys.
    """
    add = _add_samples if modulus & (modulus - 1) else _add_bytes
    return add(keys, modulus, length, stopped)


def _add_bytes(keys: Sequence[bytes], modulus: int, length: int, stopped: Callable[[], bool]) -> Array:
    """The sum for a modulus that is a power of two, by sums of bytes."""
    import numpy as np

    size = -(-bit_width(modulus) // 8)
    words = -(-length * size // 8)
    total = np.zeros(length, np.uint64)
    for start in range(0, len(keys), _OVERFLOW):
        whole, odd = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
        for first in range(start, min(start + _OVERFLOW, len(keys)), _TOGETHER):
            if stopped():
                return total
            _add_streams(keys[first : min(first + _TOGETHER, start + _OVERFLOW)], whole, odd)
        _add_sums(total, whole, odd, size)
    total &= np.uint64(modulus - 1)
    return total


def _add_streams(keys: Sequence[bytes], whole: Array, odd: Array) -> None:
    """Add the keystreams of up to 16 keys to the two sums of the module's docstring."""
    import numpy as np

    updates = [_keystream(key) for key in keys]
    piece = _PIECE_BYTES // 8
    buffer = np.empty((len(keys), min(piece, len(whole))), "<u8")
    for start in range(0, len(whole), piece):
        part = buffer[:, : len(whole) - start]
        zeros = memoryview(_ZEROS)[: part.shape[1] * 8]
        for update, row in zip(updates, part, strict=True):
            update(zeros, row.view(np.uint8))
        whole[start : start + piece] += np.add.reduce(part, axis=0)
        np.right_shift(part, np.uint64(8), out=part)
        np.bitwise_and(part, np.uint64(_ODD), out=part)
        odd[start : start + piece] += np.add.reduce(part, axis=0)


def _add_sums(total: Array, whole: Array, odd: Array, size: int) -> None:
    """Compute the sum of samples of ``size`` bytes from the sums of their bytes, and add it to ``total``."""
    import numpy as np

    sums = np.empty((len(whole), 4, 2), np.uint16)
    sums[:, :, 0] = (whole - (odd << np.uint64(8))).astype("<u8", copy=False).view("<u2").reshape(-1, 4)
    sums[:, :, 1] = odd.astype("<u8", copy=False).view("<u2").reshape(-1, 4)
    single = sums.reshape(-1)[: len(total) * size]
    for place in range(size):
        total += single[place::size].astype(np.uint64) << np.uint64(8 * (size - 1 - place))


def _add_samples(keys: Sequence[bytes], modulus: int, length: int, stopped: Callable[[], bool]) -> Array:
    """The sum for a modulus that is not a power of two."""
    import numpy as np

    bits = bit_width(modulus)
    total = np.zeros(length, np.uint64)
    # the sum is reduced when the next mask might not fit into 64 bits
    room = max(1, (2**64 - modulus) >> bits)
    for place, key in enumerate(keys):
        if stopped():
            return total
        if place % room == 0:
            np.remainder(total, np.uint64(modulus), out=total)
        filled = 0
        for values in _accepted(key, modulus, length):
            total[filled : filled + len(values)] += values
            filled += len(values)
    np.remainder(total, np.uint64(modulus), out=total)
    return total


def _accepted(key: bytes, modulus: int, length: int) -> Iterator[Array]:
    """Iterate over the elements of one mask in pieces, modulo the modulus; in total ``length`` elements."""
    import numpy as np

    bits = bit_width(modulus)
    size = -(-bits // 8)
    update = _keystream(key)
    # a sample is put into the last bytes of a number of 1, 2, 4 or 8 bytes; its unused bits are masked
    word = next(width for width in (1, 2, 4, 8) if width >= size)
    native = np.dtype(f"u{word}").type
    low, least = native((1 << bits) - 1), native((1 << bits) - modulus)
    most = _PIECE_BYTES // size
    buffer = np.zeros(word + most * size, np.uint8)
    while length:
        count = min(most, (length << bits) // modulus + 16)
        update(memoryview(_ZEROS)[: count * size], buffer[word : word + count * size])
        samples = np.ndarray((count,), f">u{word}", buffer, offset=size, strides=(size,)).astype(native)
        samples &= low
        # This is five times as fast as a boolean index if many samples are skipped.
        values = samples.compress(samples >= least)[:length]
        length -= len(values)
        yield values


def _keystream(key: bytes) -> Update:
    """Return a function that writes the next bytes of a keystream into a buffer, given as many zero bytes."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    update: Update = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update_into
    return update
