"""A slow model of section 1.4 of the catalogue, in plain numbers: no numpy, no curve library, one element at a time.

It shares nothing with `invoker.protocols.federated.secagg`; of `cryptography` it takes a single block of AES.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
A = -3
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
SHAMIR = 2**31 + 11
Point = tuple[int, int] | None


def plus(one: Point, two: Point) -> Point:
    """The sum of two points."""
    if one is None or two is None:
        return two if one is None else one
    if one[0] == two[0]:
        if (one[1] + two[1]) % P == 0:
            return None
        slope = (3 * one[0] * one[0] + A) * pow(2 * one[1], -1, P)
    else:
        slope = (two[1] - one[1]) * pow(two[0] - one[0], -1, P)
    x = (slope * slope - one[0] - two[0]) % P
    return x, (slope * (one[0] - x) - one[1]) % P


def times(number: int, point: Point) -> Point:
    """A multiple of a point."""
    result: Point = None
    while number:
        if number & 1:
            result = plus(result, point)
        point, number = plus(point, point), number >> 1
    return result


def compressed(point: Point) -> bytes:
    """The 33 bytes of a point."""
    assert point is not None
    return bytes([2 + point[1] % 2]) + point[0].to_bytes(32, "big")


def expanded(data: bytes) -> Point:
    """The point of 33 bytes."""
    x = int.from_bytes(data[1:], "big")
    square = (x**3 + A * x + B) % P
    y = pow(square, (P + 1) // 4, P)
    assert y * y % P == square, "the point is not on the curve"
    return x, y if y % 2 == data[0] % 2 else P - y


def public(secret: bytes) -> bytes:
    """The public key of a secret one."""
    return compressed(times(int.from_bytes(secret, "big"), G))


def agree(secret: bytes, peer: bytes) -> bytes:
    """The x-coordinate of the common point."""
    point = times(int.from_bytes(secret, "big"), expanded(peer))
    assert point is not None
    return point[0].to_bytes(32, "big")


def session_id(pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Id of a session."""
    told = b""
    for noise, enc in pairs:
        told += len(noise).to_bytes(4, "big") + noise + len(noise).to_bytes(4, "big") + enc
    return hashlib.sha256(told).digest()


def width(modulus: int) -> int:
    """The smallest number of bits that modulus - 1 fits into."""
    return next(bits for bits in range(1, 64) if modulus - 1 < 2**bits)


def mask_key(key: bytes, session: bytes, modulus: int, length: int, name: str) -> bytes:
    """The key of one mask."""
    bits = width(modulus).to_bytes(4, "big")
    told = session + bits + length.to_bytes(4, "big") + name.encode()
    return hashlib.sha256(bits + key + b"\x02" + len(told).to_bytes(4, "big") + told).digest()


def keystream(key: bytes) -> Iterator[int]:
    """AES-256-CTR from counter 0, byte by byte."""
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    counter = 0
    while True:
        yield from block.update(counter.to_bytes(16, "big"))
        counter += 1


def mask(key: bytes, modulus: int, length: int) -> list[int]:
    """The elements of one mask."""
    bits = width(modulus)
    size = -(-bits // 8)
    threshold = (2**bits - modulus) % modulus
    stream, found = keystream(key), []
    while len(found) < length:
        sample = [next(stream) for _ in range(size)]
        sample[0] &= 2 ** (bits - 8 * (size - 1)) - 1
        value = int.from_bytes(bytes(sample), "big")
        if value >= threshold:
            found.append(value % modulus)
    return found


def packed(values: Sequence[int], modulus: int) -> bytes:
    """A vector as a bit string."""
    bits = width(modulus)
    number = sum(value << (place * bits) for place, value in enumerate(values))
    return number.to_bytes(-(-len(values) * bits // 8), "little")


def secret(shares: dict[int, bytes], size: int) -> bytes:
    """The secret of shares by list index."""
    result = 0
    for limb in range(next(iter(map(len, shares.values()))) // 4):
        value = 0
        for index, share in shares.items():
            term = int.from_bytes(share[4 * limb : 4 * limb + 4], "big")
            for other in shares:
                if other != index:
                    term = term * (other + 1) * pow(other - index, -1, SHAMIR) % SHAMIR
            value += term
        result = result << 31 | value % SHAMIR
    return result.to_bytes(size, "big")
