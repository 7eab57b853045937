"""`Secret`: a device's part of secure aggregation by the primitives of `federated.secagg`; scenarios can make it lie.

It does not check the server's messages; the scenarios do that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.wire.derive import mask_key, session_id
from invoker.protocols.federated.wire.keys import KeyPair, new_key, open_sealed, seal
from invoker.protocols.federated.wire.masks import add_masks
from invoker.protocols.federated.wire.packing import pack
from invoker.protocols.federated.wire.shares import split


class Secret:
    """The secrets of one device in one session.

    Args:
        info: The acceptance.
        inputs: The vectors by name, with numbers below the modulus.

    Attributes:
        index: The position of the device in the list.
        enc: The key pair for encrypting shares.
        noise: The key pair for agreeing on masks.
    """

    def __init__(self, info: pb.AcceptanceInfo, inputs: Mapping[str, Sequence[int]]) -> None:
        terms = info.side_channel_protocol_execution_info.secure_aggregation
        self.threshold = terms.minimum_surviving_clients_for_reconstruction
        self.moduli = {name: one.secure_aggregand.modulus for name, one in info.side_channels.items()}
        self.inputs = inputs
        self.enc, self.noise, self.own = KeyPair(), KeyPair(), new_key()
        self.index = 0
        self.session = b""
        self.pairs: list[tuple[bytes, bytes]] = []
        self.shares: dict[int, secagg_pb.PairOfKeyShares] = {}

    def advertise(self) -> secagg_pb.AdvertiseKeys:
        """The message of round 0: two public keys."""
        pair = secagg_pb.PairOfPublicKeys(noise_pk=self.noise.public, enc_pk=self.enc.public)
        return secagg_pb.AdvertiseKeys(pair_of_public_keys=pair)

    def meet(self, request: secagg_pb.ShareKeysRequest) -> str:
        """Keep the keys of all devices; returns an error in them, or an empty text."""
        self.pairs = [(one.noise_pk, one.enc_pk) for one in request.pairs_of_public_keys]
        self.session = request.session_id
        if self.pairs.count((self.noise.public, self.enc.public)) != 1:
            return "the list does not have the device's own keys exactly once (F-115)"
        self.index = self.pairs.index((self.noise.public, self.enc.public))
        return "" if session_id(self.pairs) == self.session else "the session_id does not follow from the keys (F-096)"

    def share(self) -> secagg_pb.ShareKeysResponse:
        """The message of round 1: encrypted shares for the others."""
        count, sealed = len(self.pairs), []
        noise = split(self.noise.secret, threshold=self.threshold, count=count)
        own = split(self.own, threshold=self.threshold, count=count)
        for index, (_, enc) in enumerate(self.pairs):
            pair = secagg_pb.PairOfKeyShares(noise_sk_share=noise[index], prf_sk_share=own[index])
            if index == self.index:
                self.shares[index] = pair
            is_sent = enc and index != self.index
            sealed.append(seal(self.enc.agree(enc), pair.SerializeToString()) if is_sent else b"")
        return secagg_pb.ShareKeysResponse(encrypted_key_shares=sealed)

    def open(self, request: secagg_pb.MaskedInputCollectionRequest) -> str:
        """Decrypt the shares of the other devices; returns a text about the first error, or ""."""
        if len(request.encrypted_key_shares) != len(self.pairs):
            return f"{len(request.encrypted_key_shares)} entries for {len(self.pairs)} devices (F-117)"
        for index, sealed in enumerate(request.encrypted_key_shares):
            if not sealed:
                continue
            plain = open_sealed(self.enc.agree(self.pairs[index][1]), sealed)
            if plain is None:
                return f"entry {index} cannot be opened with the key of this device (F-117)"
            self.shares[index] = secagg_pb.PairOfKeyShares.FromString(plain)
        return ""

    def masked(self) -> secagg_pb.MaskedInputCollectionResponse:
        """The message of round 2: the masked input."""
        plus, minus = [self.own], list[bytes]()
        for peer in self.shares:
            if peer != self.index:
                (plus if peer < self.index else minus).append(self.noise.agree(self.pairs[peer][0]))
        response = secagg_pb.MaskedInputCollectionResponse()
        for name, modulus in self.moduli.items():
            values = self._masked(name, modulus, plus, minus)
            response.vectors[name].encoded_vector = pack(values, modulus)
        return response

    def _masked(self, name: str, modulus: int, plus: Sequence[bytes], minus: Sequence[bytes]) -> Any:
        import numpy as np

        values = np.array(self.inputs[name], np.uint64)

        def total(keys: Sequence[bytes]) -> Any:
            made = [mask_key(key, session=self.session, modulus=modulus, length=len(values), name=name) for key in keys]
            return add_masks(made, modulus, len(values))

        return (values + total(plus) + (np.uint64(modulus) - total(minus))) % np.uint64(modulus)

    def unmask(self, request: secagg_pb.UnmaskingRequest) -> secagg_pb.UnmaskingResponse:
        """The message of round 3: the requested shares."""
        missing = {number - 1 for number in request.dead_3_client_ids}
        response = secagg_pb.UnmaskingResponse()
        for index in range(len(self.pairs)):
            entry = response.noise_or_prf_key_shares.add()
            if index in self.shares and index in missing:
                entry.noise_sk_share = self.shares[index].noise_sk_share
            elif index in self.shares:
                entry.prf_sk_share = self.shares[index].prf_sk_share
        return response
