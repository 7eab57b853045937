"""The four rounds of secure aggregation on the side of the server; messages in, messages out.

::

    round 0  AdvertiseKeys              all, or at the time limit enough: ShareKeysRequest to each
    round 1  ShareKeysResponse          likewise: MaskedInputCollectionRequest to each
    round 2  MaskedInputCollection-     added as they come; then those without one are missing, which UnmaskingRequest
             Response                   gives
    round 3  UnmaskingResponse          the first ``threshold`` replies are enough: the secrets are put together, the
                                        rest of the devices hear early success, the masks come off the sums
    over     -                          ended(Summed), or ended(Failed) from any round

A device is alive until it is lost, sends an abort, sends nothing until the end of a round, or sends an invalid message;
this ends only its own part. With fewer than ``threshold`` devices alive the round fails (F-124), since the sum could
never be unmasked. In round 3 a reply counts even if its device is lost later.

Of a single device the server knows its public keys, its encrypted shares, whether it is in the sum, and in round 3
either the key of its own mask or its noise key, never both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.messages import SecAggTerms
from invoker.protocols.federated.secagg import checks, messages
from invoker.protocols.federated.secagg.events import (
    Compute,
    Drop,
    Drops,
    Ended,
    Failed,
    Outcome,
    Reason,
    Send,
    Summed,
)
from invoker.protocols.federated.secagg.jobs import Jobs
from invoker.protocols.federated.secagg.sums import Sums
from invoker.protocols.federated.secagg.unmasking import Cohort, Secrets, recover, unmask
from invoker.protocols.federated.wire.derive import session_id
from invoker.protocols.federated.wire.packing import bit_width

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

_EXPECTED: Final = ("advertise_keys", "share_keys_response", "masked_input_response", "unmasking_response")
_SILENT: Final = (
    (Drop.SILENT_KEYS, "did not send AdvertiseKeys"),
    (Drop.SILENT_SHARES, "did not send ShareKeysResponse"),
    (Drop.SILENT_INPUT, "did not send MaskedInputCollectionResponse"),
)
_ROUTED: Final = 50
"""How many requests of round 2 one job makes; each has an entry for every device."""


class SecAggServer:
    """The server's side of one session of secure aggregation; `events` describes the calls to and from its owner.

    Args:
        terms: The terms of the task; the threshold must be at least 2 and more than half of ``size`` (F-092).
        size: How many devices take part; they are numbered from 0.
        send: Sends a message to a device.
        drop: Called when the server drops a device.
        ended: Called once with the outcome.
        compute: Runs long jobs in threads.

    Raises:
        ValueError: The terms are invalid.
    """

    def __init__(
        self, terms: SecAggTerms, size: int, *, send: Send, drop: Drops, ended: Ended, compute: Compute
    ) -> None:
        if not (2 <= terms.threshold <= size < 2 * terms.threshold and size <= terms.expected):
            raise ValueError(
                f"{terms.threshold} of {size} devices cannot be the threshold: "
                f"it must be a majority, at least 2, of at most {terms.expected}"
            )
        for name, (modulus, length) in terms.vectors.items():
            if length < 1 or length * bit_width(modulus) > 2**31:
                raise ValueError(
                    f"vector '{name}' has {length} elements; it must have from 1 to as many as fit 2^31 bits"
                )
        self._terms = terms
        self._size = size
        self._send_to = send
        self._drop = drop
        self._ended = ended
        self._jobs = Jobs(compute, partial(self._fail, Reason.INTERNAL, "the server could not compute the sum"))
        self._round = 0
        self._alive = set(range(size))
        # The devices that have sent the message of the current round.
        self._done: set[int] = set()
        self._keys: set[bytes] = set()
        self._pairs: dict[int, secagg_pb.PairOfPublicKeys] = {}
        self._shares: dict[int, list[bytes]] = {}
        self._sums = Sums(terms.vectors, self._jobs.run)
        self._included: set[int] = set()
        self._missing: set[int] = set()
        self._cohort = Cohort(b"", (), (), ())
        self._replies: dict[int, Array] = {}
        self._secrets: Secrets | None = None
        self._is_recovering = False

    @property
    def round(self) -> int:
        """The current round, 0 to 3; when it changes, its time limit begins (F-133)."""
        return self._round

    @property
    def alive(self) -> frozenset[int]:
        """The devices that were neither lost nor dropped."""
        return frozenset(self._alive)

    def start(self) -> None:
        """Begin round 0; the server sends nothing, since the devices send first."""

    def receive(self, index: int, message: secagg_pb.ClientToServerWrapperMessage) -> None:
        """Handle a message of a device; messages of a dead device are ignored."""
        if self._jobs.are_stopped or index not in self._alive:
            return
        kind = message.WhichOneof("message_content")
        if kind == "abort":
            # The device left on its own, so it gets no message.
            self._die(index)
            self._drop(index, Drop.CLIENT_ABORT)
        elif self._secrets is not None and kind == _EXPECTED[3]:
            # The reply was sent before the device got the message of early success.
            return
        elif kind != _EXPECTED[self._round] or index in self._done:
            self._refuse(
                index, Drop.UNEXPECTED, f"{kind or 'an empty message'} was not expected in round {self._round}"
            )
        else:
            take = (self._take_keys, self._take_shares, self._take_input, self._take_unmasking)[self._round]
            take(index, message)
        self._go_on()

    def lost(self, index: int) -> None:
        """Handle the loss of a device, which gets no message."""
        if index in self._alive and not self._jobs.are_stopped:
            self._die(index)
            self._go_on()

    def elapsed(self) -> None:
        """Handle the end of the current round's time limit (F-115, F-133)."""
        if self._jobs.are_stopped:
            return
        if self._round < 3:
            self._end_round()
        elif len(self._replies) < self._terms.threshold:
            self._fail_too_few()
        elif not self._is_recovering and self._secrets is None:
            self._fail_corrupted()

    def abandon(self) -> None:
        """Abandon the round: jobs stop, and no more callbacks are called."""
        self._jobs.stop()
        self._forget()

    # Round 0.

    def _take_keys(self, index: int, message: secagg_pb.ClientToServerWrapperMessage) -> None:
        pair = message.advertise_keys.pair_of_public_keys
        if (why := checks.invalid_keys(pair, self._keys)) is not None:
            self._refuse(index, Drop.INVALID_PUBLIC_KEY, why)
            return
        self._keys.update((pair.noise_pk, pair.enc_pk))
        self._pairs[index] = pair
        self._done.add(index)

    def _request_shares(self) -> None:
        dead = secagg_pb.PairOfPublicKeys()
        pairs = [self._pairs.get(index, dead) for index in range(self._size)]
        session = session_id((pair.noise_pk, pair.enc_pk) for pair in pairs)
        self._cohort = Cohort(session, [pair.noise_pk for pair in pairs], (), ())
        self._send_all(messages.share_keys_request(pairs, session))

    # Round 1.

    def _take_shares(self, index: int, message: secagg_pb.ClientToServerWrapperMessage) -> None:
        shares = list(message.share_keys_response.encrypted_key_shares)
        if (why := checks.invalid_shares(shares, index, set(self._pairs), self._size)) is not None:
            self._refuse(index, Drop.INVALID_SHARE_KEYS_RESPONSE, why)
            return
        self._shares[index] = shares
        self._done.add(index)

    def _request_inputs(self) -> None:
        self._missing = set(self._shares)
        self._route(sorted(self._alive), self._shares)
        self._shares = {}

    def _route(self, left: list[int], shares: dict[int, list[bytes]]) -> None:
        """F-117: Forward shares: entry j of device i becomes entry i of the message for device j.

        This is done in pieces, since a thousand such messages take long to make.
        """
        some, rest = left[:_ROUTED], left[_ROUTED:]

        def job() -> list[secagg_pb.ServerToClientWrapperMessage]:
            requests = [messages.masked_input_request(shares, index, self._size) for index in some]
            while shares and not rest:
                # A million shares are freed device by device, so that the event loop is not blocked.
                shares.popitem()
            return requests

        def then(requests: list[secagg_pb.ServerToClientWrapperMessage]) -> None:
            for index, request in zip(some, requests, strict=True):
                self._send(index, request)
            if rest:
                self._route(rest, shares)

        self._jobs.run(job, then)

    # Round 2.

    def _take_input(self, index: int, message: secagg_pb.ClientToServerWrapperMessage) -> None:
        vectors = message.masked_input_response.vectors
        if (why := checks.invalid_input(vectors, self._terms.vectors)) is not None:
            self._refuse(index, Drop.INVALID_MASKED_INPUT, why)
            return
        self._included.add(index)
        self._missing.discard(index)
        self._done.add(index)
        self._sums.add({name: vectors[name].encoded_vector for name in self._terms.vectors})

    def _request_unmasking(self) -> None:
        if (count := len(self._included)) < (least := self._terms.min_visible):
            # F-129: devices are not asked for secrets, so this sum can never be unmasked
            self._fail(
                Reason.TOO_FEW_VISIBLE,
                f"{count} devices have sent a vector; only a sum of {least} or more may be seen",
            )
            return
        included, missing = sorted(self._included), sorted(self._missing)
        self._cohort = Cohort(self._cohort.session, self._cohort.noise, included, missing)
        self._send_all(messages.unmasking_request(missing))

    # Round 3.

    def _take_unmasking(self, index: int, message: secagg_pb.ClientToServerWrapperMessage) -> None:
        import numpy as np

        shares = message.unmasking_response.noise_or_prf_key_shares
        if (why := checks.invalid_unmasking(shares, self._included, self._missing, self._size)) is not None:
            self._refuse(index, Drop.INVALID_UNMASKING_RESPONSE, why)
            return
        self._done.add(index)
        own = [shares[at].prf_sk_share for at in self._cohort.included]
        noise = [shares[at].noise_sk_share for at in self._cohort.missing]
        table = np.frombuffer(b"".join([*own, *noise]), ">u4").astype(np.uint32)
        self._replies[index] = table.reshape(len(own) + len(noise), -1)
        self._recover()

    def _recover(self) -> None:
        if self._is_recovering or len(self._replies) < self._terms.threshold:
            return
        self._is_recovering = True
        replies = dict(self._replies)
        self._jobs.run(
            lambda: recover(self._cohort, replies, self._terms.threshold), partial(self._recovered, count=len(replies))
        )

    def _recovered(self, secrets: Secrets | None, count: int) -> None:
        self._is_recovering = False
        is_first = self._secrets is None
        if secrets is None and not is_first:
            # with one reply more than needed, wrong shares are noticed, but not whose they are
            self._fail_corrupted()
            return
        if secrets is None:
            # Another subset of replies may be consistent; each further reply adds subsets.
            if len(self._replies) > count:
                self._recover()
            else:
                self._go_on()
            return
        self._secrets = secrets
        if is_first:
            self._release()
        if self._jobs.are_stopped:
            return
        if len(self._replies) > count:
            # F-128: replies that have come meanwhile must be consistent, too
            self._recover()
        else:
            self._sums.finish(partial(self._unmask, secrets))

    def _release(self) -> None:
        """F-123: Send early success to the devices that have not replied."""
        for index in sorted(self._alive - self._done):
            self._send(index, messages.early_success())

    def _unmask(self, secrets: Secrets, sums: Mapping[str, Array]) -> None:
        def job() -> dict[str, Array]:
            return unmask(self._cohort, secrets, sums, self._terms.vectors, stopped=lambda: self._jobs.are_stopped)

        self._jobs.run(job, lambda unmasked: self._end(Summed(unmasked, len(self._included))))

    # All rounds.

    def _go_on(self) -> None:
        """End the current round if all needed messages have come, or can never come."""
        if self._jobs.are_stopped or self._secrets is not None:
            return
        if len(self._alive | set(self._replies)) < self._terms.threshold:
            self._fail_too_few()
        elif not self._alive <= self._done:
            return
        elif self._round < 3:
            self._end_round()
        elif not self._is_recovering:
            self._fail_corrupted()

    def _end_round(self) -> None:
        ended, done = self._round, self._done
        silent = sorted(self._alive - done)
        self._alive &= done
        self._done = set()
        self._round = ended + 1
        reason, text = _SILENT[ended]
        for index in silent:
            self._send_to(index, messages.abort(text))
            self._drop(index, reason)
        if len(self._alive) < self._terms.threshold:
            self._fail_too_few()
        if not self._jobs.are_stopped:
            (self._request_shares, self._request_inputs, self._request_unmasking)[ended]()

    def _refuse(self, index: int, reason: Drop, why: str) -> None:
        self._die(index)
        self._send_to(index, messages.abort(why))
        self._drop(index, reason)

    def _die(self, index: int) -> None:
        self._alive.discard(index)
        if self._round == 0:
            self._pairs.pop(index, None)
        elif self._round == 1:
            self._shares.pop(index, None)

    def _fail_too_few(self) -> None:
        self._fail(Reason.TOO_FEW, f"fewer than {self._terms.threshold} devices are left in round {self._round}")

    def _fail_corrupted(self) -> None:
        self._fail(Reason.CORRUPTED_SHARES, f"the shares of {len(self._replies)} devices do not fit together")

    def _fail(self, reason: Reason, detail: str) -> None:
        if self._jobs.are_stopped:
            return
        text = "Too many clients aborted." if reason is Reason.TOO_FEW else f"The round has failed: {detail}."
        told = self._alive if self._secrets is None else self._alive & self._done
        self._jobs.stop()
        for index in sorted(told):
            self._send_to(index, messages.abort(text))
        self._close(Failed(reason, detail))

    def _end(self, outcome: Outcome) -> None:
        self._jobs.stop()
        self._close(outcome)

    def _close(self, outcome: Outcome) -> None:
        self._forget()
        self._ended(outcome)

    def _forget(self) -> None:
        """F-097: Drop all secrets and vectors, since this object may continue to exist."""
        self._secrets, self._replies, self._shares, self._pairs = None, {}, {}, {}

    def _send_all(self, message: secagg_pb.ServerToClientWrapperMessage) -> None:
        for index in sorted(self._alive):
            self._send(index, message)

    def _send(self, index: int, message: secagg_pb.ServerToClientWrapperMessage) -> None:
        # sending to one device may cause the loss of another, or the end of the round
        if index in self._alive and not self._jobs.are_stopped:
            self._send_to(index, message)
