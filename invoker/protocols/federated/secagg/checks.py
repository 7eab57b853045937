"""Checks of devices' messages, by round; each returns None, or the reason why the device is removed.

A device that sends an invalid message is removed from the round, without an effect on other devices (F-113, F-116,
F-118, F-121). These checks are complete, so the computations need none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.wire.keys import POINT_BYTES, is_point
from invoker.protocols.federated.wire.packing import packed_size
from invoker.protocols.federated.wire.shares import SHARE_BYTES

SEALED_MAX_BYTES: Final = 256
"""The largest encrypted pair of shares, in bytes. Peers send 104 bytes; the server cannot decrypt them, so it only
limits their size."""


def invalid_keys(pair: secagg_pb.PairOfPublicKeys, taken: set[bytes]) -> str | None:
    """F-113, F-114: Check that the keys are two compressed points of the curve that no other device has sent."""
    for key in (pair.noise_pk, pair.enc_pk):
        if len(key) != POINT_BYTES:
            return f"a public key has {len(key)} bytes; a compressed point of P-256 has {POINT_BYTES}"
        if not is_point(key):
            return "a public key is not a point of P-256"
        if key in taken:
            return "another device has the same public key"
    return None


def invalid_shares(shares: Sequence[bytes], own: int, alive: set[int], count: int) -> str | None:
    """F-116: Check that there is one entry for each device, which is empty only for the sender and dead devices."""
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
    """F-118: Check that the vectors are those of the task, with their declared sizes."""
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
    """F-121: Check for a share of each included device's own mask, and of each missing device's noise key."""
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
