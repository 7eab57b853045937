"""Checks of devices' messages, by round. Each returns None, or a sentence with which the device is put out.

A device that sends anything else is removed from the round, without an effect on the others (F-113, F-116, F-118,
F-121). So these checks are complete, and the later mathematics needs no checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.wire.keys import POINT_BYTES, is_point
from invoker.protocols.federated.wire.packing import packed_size
from invoker.protocols.federated.wire.shares import SHARE_BYTES

SEALED_MAX_BYTES: Final = 256
"""The most bytes of an encrypted pair of shares. Peers send 104 bytes; a server cannot look inside, but it need not
store anything."""


def invalid_keys(pair: secagg_pb.PairOfPublicKeys, taken: set[bytes]) -> str | None:
    """F-113, F-114: Check that there are two compressed points of the curve that no other device has sent."""
    for key in (pair.noise_pk, pair.enc_pk):
        if len(key) != POINT_BYTES:
            return f"a public key has {len(key)} bytes; a compressed point of P-256 has {POINT_BYTES}"
        if not is_point(key):
            return "a public key is not a point of P-256"
        if key in taken:
            return "another device has the same public key"
    return None


def invalid_shares(shares: Sequence[bytes], own: int, alive: set[int], count: int) -> str | None:
    """F-116: Check that there is one entry for each device, empty only for the sender itself and for dead devices."""
    if len(shares) != count:
        return f"{len(shares)} shares came; there must be one entry for each of {count} devices"
    for index, share in enumerate(shares):
        is_wanted = index != own and index in alive
        if bool(share) != is_wanted:
            met = "a share" if share else "no share"
            return f"there is {met} for device {index + 1}"
        if len(share) > SEALED_MAX_BYTES:
            return f"a share has {len(share)} bytes, which exceeds the limit of {SEALED_MAX_BYTES} bytes"
    return None


def invalid_input(
    vectors: Mapping[str, secagg_pb.MaskedInputVector], wanted: Mapping[str, tuple[int, int]]
) -> str | None:
    """F-118: Check that the vectors are those of the task, each of its declared size."""
    if set(vectors) != set(wanted):
        return f"{len(vectors)} vectors came, and their names are not those of the {len(wanted)} vectors of the task"
    for name, (modulus, length) in wanted.items():
        met, size = len(vectors[name].encoded_vector), packed_size(modulus, length)
        if met != size:
            return f"vector '{name}' has {met} bytes; {length} elements modulo {modulus} need {size}"
    return None


def invalid_unmasking(
    shares: Sequence[secagg_pb.NoiseOrPrfKeyShare], included: set[int], missing: set[int], count: int
) -> str | None:
    """F-121: Check for a share of the own mask of each device in the sum, and of the noise key of each missing one."""
    if len(shares) != count:
        return f"{len(shares)} shares came; there must be one entry for each of {count} devices"
    for index, share in enumerate(shares):
        kind = share.WhichOneof("oneof_shares")
        wanted = "prf_sk_share" if index in included else "noise_sk_share" if index in missing else None
        if kind != wanted:
            return f"for device {index + 1} there is {kind or 'no share'}; expected {wanted or 'no share'}"
        if kind is not None and len(getattr(share, kind)) != SHARE_BYTES:
            return f"a share has {len(getattr(share, kind))} bytes, not {SHARE_BYTES}"
    return None
