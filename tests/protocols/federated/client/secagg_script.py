"""A scripted server of secure aggregation, for one real device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.client.messages import SecAggTask, Turn
from invoker.protocols.federated.client.secagg import SecAggClient
from invoker.protocols.federated.wire.derive import session_id
from invoker.protocols.federated.wire.keys import KeyPair, seal
from invoker.protocols.federated.wire.shares import split

DOWN = secagg_pb.ServerToClientWrapperMessage
TASK = SecAggTask({"w": 1000003}, 5, 3, 3)
VALUES = {"w": np.array([0, 1, 1000002], np.uint64)}
SIZE, OWN = 5, 1


def finish(turn: Turn) -> Turn:
    """What a caller without threads does."""
    while turn.job is not None:
        turn = turn.job()
    return turn


class Scripted:
    """A scripted server with four other devices whose secrets the test knows; the device has index 1."""

    def __init__(self, task: SecAggTask = TASK, values: Any = VALUES) -> None:
        self.client = SecAggClient(task, values)
        self.noise = {index: KeyPair() for index in range(SIZE) if index != OWN}
        self.enc = {index: KeyPair() for index in range(SIZE) if index != OWN}
        self.own = {index: bytes([index]) * 32 for index in range(SIZE)}
        (hello,) = self.client.start().messages
        self.hello = hello.advertise_keys.pair_of_public_keys
        self.pairs = [
            (self.hello.noise_pk, self.hello.enc_pk)
            if index == OWN
            else (self.noise[index].public, self.enc[index].public)
            for index in range(SIZE)
        ]

    def keys(self, pairs: Sequence[tuple[bytes, bytes]] | None = None, session: bytes | None = None) -> DOWN:
        """ShareKeysRequest."""
        pairs = self.pairs if pairs is None else pairs
        message = DOWN()
        message.share_keys_request.session_id = session_id(pairs) if session is None else session
        for noise, enc in pairs:
            message.share_keys_request.pairs_of_public_keys.add(noise_pk=noise, enc_pk=enc)
        return message

    def shares(self, change: Callable[[list[bytes]], Any] = len, size: int = 36) -> DOWN:
        """MaskedInputCollectionRequest: shares of each other device's two secrets for this one."""
        entries = []
        for index in range(SIZE):
            if index == OWN:
                entries.append(b"")
                continue
            noise = split(self.noise[index].secret, threshold=3, count=SIZE)[OWN][:size]
            own = split(self.own[index], threshold=3, count=SIZE)[OWN][:size]
            plain = secagg_pb.PairOfKeyShares(noise_sk_share=noise, prf_sk_share=own).SerializeToString()
            entries.append(seal(self.enc[index].agree(self.hello.enc_pk), plain))
        change(entries)
        message = DOWN()
        message.masked_input_request.encrypted_key_shares.extend(entries)
        return message

    def missing(self, *numbers: int) -> DOWN:
        """UnmaskingRequest."""
        message = DOWN()
        message.unmasking_request.SetInParent()
        message.unmasking_request.dead_3_client_ids.extend(numbers)
        return message

    def hear(self, message: DOWN) -> Turn:
        """The device takes a message."""
        return finish(self.client.receive(message))

    def until(self, step: str, change: Callable[[list[bytes]], Any] = len) -> Scripted:
        """Bring the device to where it waits for this message."""
        if step in ("masked_input_request", "unmasking_request", "done"):
            assert self.hear(self.keys()).error is None
        if step in ("unmasking_request", "done"):
            assert self.hear(self.shares(change)).error is None
        if step == "done":
            assert self.hear(self.missing()).is_done
        return self

    def message(self, step: str) -> DOWN:
        """A right message of any step."""
        makers: dict[str, Callable[[], DOWN]] = {
            "share_keys_request": self.keys,
            "masked_input_request": self.shares,
            "unmasking_request": self.missing,
        }
        return makers[step]()
