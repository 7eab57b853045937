"""Makes the messages of the server, each by one function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker._pb.federated.secagg_messages_pb2 import ServerToClientWrapperMessage


def abort(text: str) -> ServerToClientWrapperMessage:
    """The message that tells a device that it was dropped, or that the round failed."""
    return ServerToClientWrapperMessage(abort=secagg_pb.AbortMessage(diagnostic_info=text))


def early_success() -> ServerToClientWrapperMessage:
    """F-123: The message that ends a device's part: the round needs no more messages from it."""
    text = "The sum does not need the shares of this device."
    return ServerToClientWrapperMessage(abort=secagg_pb.AbortMessage(diagnostic_info=text, early_success=True))


def share_keys_request(pairs: Sequence[secagg_pb.PairOfPublicKeys], session: bytes) -> ServerToClientWrapperMessage:
    """The message with the public keys of all devices; a dead device has an empty pair."""
    request = secagg_pb.ShareKeysRequest(pairs_of_public_keys=pairs, session_id=session)
    return ServerToClientWrapperMessage(share_keys_request=request)


def masked_input_request(shares: Mapping[int, Sequence[bytes]], index: int, size: int) -> ServerToClientWrapperMessage:
    """The message for device ``index``, with the entries for this device from all that have sent shares (F-117)."""
    entries = [shares[sender][index] if sender in shares else b"" for sender in range(size)]
    request = secagg_pb.MaskedInputCollectionRequest(encrypted_key_shares=entries)
    return ServerToClientWrapperMessage(masked_input_request=request)


def unmasking_request(missing: Iterable[int]) -> ServerToClientWrapperMessage:
    """F-120: The message that names the devices missing in the sum; on the wire the first device has number 1."""
    request = secagg_pb.UnmaskingRequest(dead_3_client_ids=[index + 1 for index in missing])
    return ServerToClientWrapperMessage(unmasking_request=request)
