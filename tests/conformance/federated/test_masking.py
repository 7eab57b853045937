"""A raw device of secure aggregation: what several of them send takes apart to the sum of their inputs."""

from __future__ import annotations

import numpy as np

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.wire.derive import session_id
from invoker.protocols.federated.wire.packing import unpack
from invoker_conformance.federated.masking import Secret


def info() -> pb.AcceptanceInfo:
    made = pb.AcceptanceInfo()
    made.side_channels["v"].secure_aggregand.modulus = 1009
    terms = made.side_channel_protocol_execution_info.secure_aggregation
    terms.minimum_surviving_clients_for_reconstruction = 2
    return made


def met(secrets: list[Secret]) -> list[secagg_pb.MaskedInputCollectionRequest]:
    pairs = [one.advertise().pair_of_public_keys for one in secrets]
    session = session_id((one.noise_pk, one.enc_pk) for one in pairs)
    request = secagg_pb.ShareKeysRequest(pairs_of_public_keys=pairs, session_id=session)
    assert [one.meet(request) for one in secrets] == [""] * len(secrets)
    shares = [one.share().encrypted_key_shares for one in secrets]
    return [
        secagg_pb.MaskedInputCollectionRequest(encrypted_key_shares=[row[index] for row in shares])
        for index in range(len(secrets))
    ]


def test_pairwise_masks_cancel_out() -> None:
    """What is left of a sum of masked inputs are the inputs and the own masks."""
    secrets = [Secret(info(), {"v": [1, 2, 3]}) for _ in range(3)]
    for one, request in zip(secrets, met(secrets), strict=True):
        assert one.open(request) == ""
    masked = [unpack(one.masked().vectors["v"].encoded_vector, 1009, 3) for one in secrets]
    own = []
    for one in secrets:
        alone = Secret(info(), {"v": [0, 0, 0]})
        alone.own, alone.session = one.own, one.session
        own.append(unpack(alone.masked().vectors["v"].encoded_vector, 1009, 3))
    assert ((np.sum(masked, axis=0) - np.sum(own, axis=0).astype(np.int64)) % 1009).tolist() == [3, 6, 9]


def test_what_is_wrong_is_told() -> None:
    """Other keys, another session, shares of somebody else."""
    secrets = [Secret(info(), {"v": [1]}) for _ in range(3)]
    requests = met(secrets)
    assert "entry 0" in secrets[1].open(requests[2])
    del requests[1].encrypted_key_shares[0]
    assert "2 entries" in secrets[1].open(requests[1])
    alone = secagg_pb.ShareKeysRequest(pairs_of_public_keys=[secrets[0].advertise().pair_of_public_keys])
    assert "session_id" in secrets[0].meet(alone)
    assert "own keys" in secrets[1].meet(alone)


def test_replies_name_the_missing_by_their_noise_keys() -> None:
    """Of all others the share of the own mask is told."""
    secrets = [Secret(info(), {"v": [1]}) for _ in range(3)]
    for one, request in zip(secrets, met(secrets), strict=True):
        one.open(request)
    reply = secrets[0].unmask(secagg_pb.UnmaskingRequest(dead_3_client_ids=[2]))
    kinds = [one.WhichOneof("oneof_shares") for one in reply.noise_or_prf_key_shares]
    assert kinds == ["prf_sk_share", "noise_sk_share", "prf_sk_share"]
