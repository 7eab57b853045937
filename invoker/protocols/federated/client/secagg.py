"""The four rounds of secure aggregation on the side of a device, for one update; messages in, messages out.

::

    state     the server sends                 the device answers
    --------  -------------------------------  ------------------------------------------------------------------
    start     -                                AdvertiseKeys: two public keys, made for this session
    keys      ShareKeysRequest                 ShareKeysResponse: for each device, shares of two secrets, sealed
    shares    MaskedInputCollectionRequest     MaskedInputCollectionResponse: the update under all masks
    input     UnmaskingRequest                 UnmaskingResponse: for each device one share, of one secret or the other
    done      -                                nothing: the answer to the report comes next
    over      -                                nothing: the device has left, or the server broke the protocol

The server's requests are checked before anything is sent, because the server must not learn the update. A device that
finds an error sends an AbortMessage and leaves, so that the server does not get its shares.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import msgspec
from google.protobuf.message import DecodeError

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import Status
from invoker.protocols.federated.client.messages import SecAggTask, Turn
from invoker.protocols.federated.wire.derive import mask_key, session_id
from invoker.protocols.federated.wire.keys import KEY_BYTES, KeyPair, is_point, new_key, open_sealed, seal
from invoker.protocols.federated.wire.masks import add_masks
from invoker.protocols.federated.wire.packing import bit_width, pack
from invoker.protocols.federated.wire.shares import SHARE_BYTES, split

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]


class _At(enum.Enum):
    START = "start"
    KEYS = "share_keys_request"
    SHARES = "masked_input_request"
    INPUT = "unmasking_request"
    DONE = "done"
    OVER = "over"


class _Secrets(msgspec.Struct, frozen=True):
    enc: KeyPair
    noise: KeyPair
    own: bytes


class _WrongError(Exception):
    """A message of the server breaks the protocol; the text is for the server's operator."""


class SecAggClient:
    """One device in one session of secure aggregation.

    Args:
        task: The terms in the server's acceptance.
        vectors: The update: arrays of any shape by name, with integers from 0 to the modulus less one.

    Raises:
        ValueError: The terms give no protection (F-090), or a vector is missing, empty, or has an element that is not
            below its modulus (F-095).
    """

    def __init__(self, task: SecAggTask, vectors: Mapping[str, Any]) -> None:
        if task.threshold < 2:
            raise ValueError(f"the threshold is {task.threshold}; it must be at least 2")
        if set(task.moduli) != set(vectors):
            raise ValueError(f"the update has the vectors {sorted(vectors)}; the task needs {sorted(task.moduli)}")
        self._task = task
        self._vectors = {name: _checked(name, vectors[name], modulus) for name, modulus in task.moduli.items()}
        self._at = _At.START
        self._secrets: _Secrets | None = _Secrets(KeyPair(), KeyPair(), new_key())
        self._public = self._secrets.noise.public, self._secrets.enc.public
        self._session = b""
        self._index = 0
        self._pairs: Sequence[tuple[bytes, bytes]] = ()
        # The other devices: at first all that have sent keys, later only those that have sent shares, too.
        self._peers: set[int] = set()
        self._agreed: dict[int, bytes] = {}
        # by index of the device: a share of its noise key, and a share of the key of its own mask; this device is
        # included
        self._shares: dict[int, tuple[bytes, bytes]] = {}

    def start(self) -> Turn:
        """Return the message that advertises two fresh keys (F-099)."""
        self._at = _At.KEYS
        noise, enc = self._public
        pair = secagg_pb.PairOfPublicKeys(noise_pk=noise, enc_pk=enc)
        return _saying(advertise_keys=secagg_pb.AdvertiseKeys(pair_of_public_keys=pair))

    def receive(self, message: secagg_pb.ServerToClientWrapperMessage) -> Turn:
        """Take a message of the server.

        Returns:
            The messages to send, or a long job that returns them. The job may run in a thread; no other message is
                received before it returns. After `abort` its result is empty.
        """
        kind = message.WhichOneof("message_content")
        if kind == "abort":
            return self._aborted(message.abort)
        if kind is None or kind != self._at.value:
            # F-109, F-111: such a message may be a second UnmaskingRequest
            text = f"the server sent {kind or 'an empty message'} while the device was {self._at.name.lower()}"
            return self._leave(Status.FAILED_PRECONDITION, text)
        try:
            if self._at is _At.KEYS:
                self._meet(message.share_keys_request)
                self._at = _At.SHARES
                return Turn(job=partial(self._guarded, self._share))
            if self._at is _At.SHARES:
                self._at = _At.INPUT
                sealed = message.masked_input_request.encrypted_key_shares
                return Turn(job=partial(self._guarded, partial(self._mask, sealed)))
            return self._unmask(message.unmasking_request)
        except _WrongError as error:
            return self._object(str(error))

    def abort(self, reason: str) -> Turn:
        """Leave on the device's own decision, and notify the server (F-145)."""
        if self._at in (_At.START, _At.DONE, _At.OVER):
            return self._leave(Status.CANCELLED, reason)
        return self._object(reason)

    # Round 1.

    def _meet(self, request: secagg_pb.ShareKeysRequest) -> None:
        """Check and keep the keys of all devices that take part."""
        pairs = [(pair.noise_pk, pair.enc_pk) for pair in request.pairs_of_public_keys]
        count, threshold = len(pairs), self._task.threshold
        if not threshold <= count <= self._task.expected:
            _refuse(f"{count} pairs of keys came; there must be {threshold} to {self._task.expected}")
        if 2 * threshold <= count:
            # D9: otherwise a server could ask each half of the devices for the secrets that unmask the other half
            _refuse(f"{threshold} of {count} devices are not a majority")
        if len(request.session_id) != KEY_BYTES:
            _refuse(f"the id of the session has {len(request.session_id)} bytes, not {KEY_BYTES}")
        if count == self._task.expected and session_id(pairs) != request.session_id:
            # F-104: not checked for a server that forms groups: it sends only the pairs of one group, so the id cannot
            # be computed
            _refuse("the id of the session is not that of the keys")
        if (times := pairs.count(self._public)) != 1:
            _refuse(f"the keys of this device came {times} times")
        for keys in pairs:
            if not all(not key or is_point(key) for key in keys):
                _refuse("a public key is not a compressed point of P-256")
        for column in zip(*(keys for keys in pairs if all(keys)), strict=True):
            # a device with two numbers would have two shares, and its masks would cancel out for a device between the
            # two
            if len(set(column)) < len(column):
                _refuse("two devices have the same public key")
        self._session, self._pairs, self._index = request.session_id, pairs, pairs.index(self._public)
        self._set_peers({index for index, keys in enumerate(pairs) if all(keys) and index != self._index})

    def _share(self, secrets: _Secrets) -> Turn:
        count, threshold = len(self._pairs), self._task.threshold
        noise = split(secrets.noise.secret, threshold=threshold, count=count)
        own = split(secrets.own, threshold=threshold, count=count)
        self._shares[self._index] = noise[self._index], own[self._index]
        sealed = [b""] * count
        for peer in self._peers:
            agreed = self._agreed[peer] = secrets.enc.agree(self._pairs[peer][1])
            pair = secagg_pb.PairOfKeyShares(noise_sk_share=noise[peer], prf_sk_share=own[peer])
            sealed[peer] = seal(agreed, pair.SerializeToString())
        return _saying(share_keys_response=secagg_pb.ShareKeysResponse(encrypted_key_shares=sealed))

    # Round 2.

    def _mask(self, sealed: Sequence[bytes], secrets: _Secrets) -> Turn:
        vectors = self._vectors
        self._open(sealed)
        plus, minus = [secrets.own], list[bytes]()
        for peer in self._peers:
            (plus if peer < self._index else minus).append(secrets.noise.agree(self._pairs[peer][0]))
        response = secagg_pb.MaskedInputCollectionResponse()
        for name, modulus in self._task.moduli.items():
            masked = self._masked(vectors[name], name, modulus, plus, minus)
            response.vectors[name].encoded_vector = pack(masked, modulus)
        self._vectors = {}
        return _saying(masked_input_response=response)

    def _open(self, sealed: Sequence[bytes]) -> None:
        """Decrypt the shares of the other devices; no mask is shared with a device that sent none."""
        agreed = self._agreed
        if len(sealed) != len(self._pairs):
            _refuse(f"{len(sealed)} shares came for {len(self._pairs)} devices")
        for index, share in enumerate(sealed):
            if not share:
                continue
            if index not in self._peers:
                _refuse(f"a share of device {index + 1} came, which is not a participant")
            self._shares[index] = _opened(agreed[index], share)
        self._agreed = {}
        self._set_peers({index for index in self._peers if sealed[index]})

    def _masked(self, values: Array, name: str, modulus: int, plus: Sequence[bytes], minus: Sequence[bytes]) -> Array:
        import numpy as np

        key_of = partial(mask_key, session=self._session, modulus=modulus, length=len(values), name=name)

        def total(keys: Sequence[bytes]) -> Array:
            return add_masks([key_of(key) for key in keys], modulus, len(values), stopped=lambda: self._at is _At.OVER)

        # each of the three terms is at most 2^62, so their sum does not overflow before the remainder is taken
        result: Array = (values + total(plus) + (np.uint64(modulus) - total(minus))) % np.uint64(modulus)
        return result

    # Round 3.

    def _unmask(self, request: secagg_pb.UnmaskingRequest) -> Turn:
        missing = {number - 1 for number in request.dead_3_client_ids}
        if len(missing) != len(request.dead_3_client_ids):
            _refuse("a device is named twice as missing")
        if not missing <= self._peers:
            # F-107: this device's own number is refused, too: with its noise key and its own mask the server could
            # compute its update
            _refuse("a device is named as missing that is this one, unknown, or known to be dead")
        self._set_peers(self._peers - missing)
        response = secagg_pb.UnmaskingResponse()
        for index in range(len(self._pairs)):
            entry = response.noise_or_prf_key_shares.add()
            noise, own = self._shares.get(index, (b"", b""))
            if index in missing:
                entry.noise_sk_share = noise
            elif own:
                entry.prf_sk_share = own
        self._forget()
        self._at = _At.DONE
        return _saying(is_done=True, unmasking_response=response)

    # All rounds.

    def _set_peers(self, peers: set[int]) -> None:
        """F-102, F-106, F-108: Set the devices that take part, and refuse too few, which give no protection."""
        if len(peers) + 1 < self._task.threshold:
            _refuse(f"{len(peers) + 1} devices are left, and {self._task.threshold} are needed")
        self._peers = peers

    def _guarded(self, job: Callable[[_Secrets], Turn]) -> Turn:
        """Run a job; meanwhile the device may leave, in another thread."""
        secrets = self._secrets
        try:
            turn = Turn() if secrets is None else job(secrets)
        except _WrongError as error:
            turn = Turn() if self._at is _At.OVER else self._object(str(error))
        return Turn() if self._secrets is None and turn.error is None else turn

    def _aborted(self, message: secagg_pb.AbortMessage) -> Turn:
        """F-110: Handle an abort; with early success it means that this device is done."""
        if self._at is _At.OVER or not message.early_success:
            return self._leave(Status.CANCELLED, "SecAgg aborted")
        self._forget()
        self._at = _At.DONE
        return Turn(is_done=True)

    def _object(self, text: str) -> Turn:
        abort = secagg_pb.ClientToServerWrapperMessage(abort=secagg_pb.AbortMessage(diagnostic_info=text))
        return Turn((abort,), error=self._leave(Status.CANCELLED, text).error)

    def _leave(self, status: Status, text: str) -> Turn:
        self._forget()
        self._at = _At.OVER
        return Turn(error=(status, text))

    def _forget(self) -> None:
        """F-097: Drop all secrets; they cannot be overwritten in Python."""
        self._secrets, self._shares, self._agreed, self._vectors = None, {}, {}, {}


def _checked(name: str, given: Any, modulus: int) -> Array:
    """Check a vector, and return it as (length,) of uint64 below the modulus."""
    import numpy as np

    bit_width(modulus)
    values = np.asarray(given).reshape(-1)
    if not values.size:
        raise ValueError(f"vector '{name}' is empty")
    if values.dtype.kind not in "iu":
        raise ValueError(f"vector '{name}' is {values.dtype}; it must be integers, which invoker.secagg.quantize makes")
    least, most = int(values.min()), int(values.max())
    if least < 0 or most >= modulus:
        raise ValueError(f"vector '{name}' has elements from {least} to {most}; they must be from 0 to {modulus - 1}")
    return values.astype(np.uint64)


def _opened(key: bytes, sealed: bytes) -> tuple[bytes, bytes]:
    plain = open_sealed(key, sealed)
    if plain is None:
        _refuse("a share could not be decrypted")
    try:
        pair = secagg_pb.PairOfKeyShares.FromString(plain)
    except DecodeError:
        _refuse("a share could not be read")
    if len(pair.noise_sk_share) != SHARE_BYTES or len(pair.prf_sk_share) != SHARE_BYTES:
        _refuse(f"a share does not have {SHARE_BYTES} bytes")
    return pair.noise_sk_share, pair.prf_sk_share


def _refuse(text: str) -> NoReturn:
    raise _WrongError(text)


def _saying(*, is_done: bool = False, **content: Any) -> Turn:
    return Turn((secagg_pb.ClientToServerWrapperMessage(**content),), is_done=is_done)
