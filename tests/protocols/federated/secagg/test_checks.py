"""Hostile devices abort only themselves: one test for each thing that a message must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from invoker.protocols.federated.secagg.events import Drop
from invoker.protocols.federated.wire.keys import KeyPair
from tests.protocols.federated.secagg.rounds import INPUT, KEYS, SHARES, UNMASKING, UP, Rounds, tampering
from tests.protocols.federated.secagg.test_server import assert_summed

HOSTILE = 2
OFF_CURVE = b"\x02" + bytes(31) + b"\x01"


def alone(step: str, change: Callable[[UP], Any], reason: Drop, text: str, *, is_in_sum: bool = False) -> Rounds:
    """Play a round in which device 2 changes a message: it is aborted, and the sum of the rest is exact."""
    # Late jobs: so its reply is looked at before the first replies have been enough.
    rounds = Rounds(5, threshold=3, vectors={"w": (1000003, 4), "b": (2, 9)}, tamper=tampering(HOSTILE, step, change))
    rounds.is_later = True
    rounds.play()
    assert rounds.dropped == {HOSTILE: reason}
    assert rounds.errors == {HOSTILE: "SecAgg aborted"}
    assert text in rounds.sent[HOSTILE][-1].abort.diagnostic_info
    assert not rounds.sent[HOSTILE][-1].abort.early_success
    assert_summed(rounds, set(range(5)) - (set() if is_in_sum else {HOSTILE}))
    return rounds


@pytest.mark.parametrize("which", ["noise_pk", "enc_pk"])
@pytest.mark.parametrize(
    ("key", "text"),
    [
        (OFF_CURVE, "not a point of P-256"),
        (bytes(33), "not a point of P-256"),
        (b"\x00", "has 1 bytes"),
        (b"", "has 0 bytes"),
        (b"\x04" + bytes(64), "has 65 bytes"),
        (bytes(91), "has 91 bytes"),
    ],
)
def test_F113_F114_bad_public_keys(which: str, key: bytes, text: str) -> None:
    """Scenario 56: off the curve, the point at infinity, and the forms of legacy clients."""

    def change(message: UP) -> None:
        setattr(message.advertise_keys.pair_of_public_keys, which, key)

    alone(KEYS, change, Drop.INVALID_PUBLIC_KEY, text)


@pytest.mark.parametrize("whose", ["noise_pk", "enc_pk"])
@pytest.mark.parametrize("which", ["noise_pk", "enc_pk"])
def test_F113_keys_of_another_device(which: str, whose: str) -> None:
    """Scenario 57: the first one that sends a key has it, as either of its keys."""
    rounds: Rounds
    stolen: list[bytes] = []

    def tamper(index: int, message: UP) -> list[UP]:
        pair = message.advertise_keys.pair_of_public_keys
        if index == 0 and pair.noise_pk:
            stolen.append(getattr(pair, whose))
        if index == HOSTILE and pair.noise_pk:
            changed = UP()
            changed.CopyFrom(message)
            setattr(changed.advertise_keys.pair_of_public_keys, which, stolen[0])
            return [changed]
        return [message]

    rounds = Rounds(5, threshold=3, tamper=tamper)
    rounds.play()
    assert rounds.dropped == {HOSTILE: Drop.INVALID_PUBLIC_KEY}
    assert "another device has the same public key" in rounds.sent[HOSTILE][-1].abort.diagnostic_info
    assert_summed(rounds, {0, 1, 3, 4})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda shares: shares.pop(), "4 shares came"),
        (lambda shares: shares.append(b""), "6 shares came"),
        (lambda shares: shares.__setitem__(HOSTILE, b"x" * 104), "a share for device 3"),
        (lambda shares: shares.__setitem__(0, b""), "no share for device 1"),
        (lambda shares: shares.__setitem__(0, bytes(257)), "a share has 257 bytes"),
    ],
)
def test_F116_bad_share_keys_responses(change: Callable[[Any], Any], text: str) -> None:
    """Too few, too many, one for itself, none for a device that is alive, one that is too large."""

    def tamper(message: UP) -> None:
        change(message.share_keys_response.encrypted_key_shares)

    alone(SHARES, tamper, Drop.INVALID_SHARE_KEYS_RESPONSE, text)


def test_F116_a_share_for_a_dead_device() -> None:
    """A device that was dead in round 0 gets none."""

    def change(message: UP) -> None:
        message.share_keys_response.encrypted_key_shares[4] = b"x" * 104

    rounds = Rounds(5, threshold=3, lost={4: KEYS}, tamper=tampering(HOSTILE, SHARES, change))
    rounds.play()
    assert rounds.dropped == {HOSTILE: Drop.INVALID_SHARE_KEYS_RESPONSE}
    assert_summed(rounds, {0, 1, 3})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda vectors: vectors.clear(), "0 vectors came"),
        (lambda vectors: vectors.pop("b"), "1 vectors came"),
        (lambda vectors: vectors["x"].encoded_vector, "3 vectors came"),
        (lambda vectors: (vectors["v"].CopyFrom(vectors["b"]), vectors.pop("b")), "names are not those"),
        (lambda vectors: setattr(vectors["w"], "encoded_vector", bytes(9)), "'w' has 9 bytes; 4 elements"),
        (lambda vectors: setattr(vectors["w"], "encoded_vector", bytes(11)), "'w' has 11 bytes"),
        (lambda vectors: setattr(vectors["b"], "encoded_vector", b""), "'b' has 0 bytes"),
    ],
)
def test_F118_bad_masked_vectors(change: Callable[[Any], Any], text: str) -> None:
    """Scenario 64: wrong names, a vector too many or missing, wrong sizes; the device is missing in the sum."""

    def tamper(message: UP) -> None:
        change(message.masked_input_response.vectors)

    rounds = alone(INPUT, tamper, Drop.INVALID_MASKED_INPUT, text)
    assert list(rounds.sent[0][2].unmasking_request.dead_3_client_ids) == [HOSTILE + 1]


def test_F118_values_that_are_not_below_the_modulus_are_reduced() -> None:
    """Scenario 65: 20 bits hold more than 1,000,003; the peer's sum counts modulo that."""

    def change(message: UP) -> None:
        message.masked_input_response.vectors["w"].encoded_vector = b"\xff" * 10

    rounds = Rounds(3, threshold=2, vectors={"w": (1000003, 4)}, tamper=tampering(HOSTILE, INPUT, change))
    outcome = rounds.play()
    assert rounds.dropped == {}
    assert all(0 <= int(value) < 1000003 for value in outcome.sums["w"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda shares: shares.pop(), "4 shares came"),
        (lambda shares: shares.add(), "6 shares came"),
        (lambda shares: [shares.pop() for _ in range(5)], "0 shares came"),
        (lambda shares: setattr(shares[0], "noise_sk_share", bytes(36)), "device 1 there is noise_sk_share"),
        (lambda shares: shares[0].Clear(), "device 1 there is no share"),
        (lambda shares: setattr(shares[1], "prf_sk_share", bytes(35)), "a share has 35 bytes"),
        (lambda shares: setattr(shares[1], "prf_sk_share", bytes(20)), "a share has 20 bytes"),
    ],
)
def test_F121_bad_unmasking_responses(change: Callable[[Any], Any], text: str) -> None:
    """Scenario 61: a wrong count, a share of another kind, legacy sizes; the input stays in the sum."""

    def tamper(message: UP) -> None:
        change(message.unmasking_response.noise_or_prf_key_shares)

    alone(UNMASKING, tamper, Drop.INVALID_UNMASKING_RESPONSE, text, is_in_sum=True)


def test_F121_shares_of_devices_that_are_missing_or_dead() -> None:
    """For a missing device its noise share and nothing else; for a dead one nothing."""
    for at, kind in ((3, "prf_sk_share"), (4, "prf_sk_share"), (4, "noise_sk_share")):

        def change(message: UP, at: int = at, kind: str = kind) -> None:
            setattr(message.unmasking_response.noise_or_prf_key_shares[at], kind, bytes(36))

        rounds = Rounds(
            5, threshold=3, lost={3: INPUT, 4: SHARES}, tamper=tampering(HOSTILE, UNMASKING, change), later=True
        )
        outcome = rounds.play()
        assert rounds.dropped == {HOSTILE: Drop.INVALID_UNMASKING_RESPONSE}
        # Two of three needed replies are left, so this round fails, for a reason that can be told.
        assert outcome.reason.value == "too_few_clients"


@pytest.mark.parametrize("step", [KEYS, SHARES, INPUT])
def test_F125_a_message_that_comes_twice(step: str) -> None:
    """The second one is out of its round or a duplicate; after the masked input the device stays in the sum."""
    alone(step, lambda message: [message, message], Drop.UNEXPECTED, "was not expected", is_in_sum=step == INPUT)


@pytest.mark.parametrize("step", [KEYS, SHARES, INPUT])
@pytest.mark.parametrize("wrong", [KEYS, SHARES, INPUT, UNMASKING, ""])
def test_F125_a_message_out_of_its_round(step: str, wrong: str) -> None:
    """Each message in each round, and one with nothing in it."""
    if wrong == step:
        return
    message = UP()
    if wrong:
        getattr(message, wrong).SetInParent()
    alone(step, lambda _: [message], Drop.UNEXPECTED, f"{wrong or 'an empty message'} was not expected")


def test_F125_a_second_unmasking_reply() -> None:
    """While shares are put together, a duplicate puts its sender out; the sum stands."""
    alone(UNMASKING, lambda message: [message, message], Drop.UNEXPECTED, "was not expected", is_in_sum=True)


def test_what_a_dead_device_sends_is_not_looked_at() -> None:
    """After its abort it may say what it wants, without another answer."""
    bad = UP()
    bad.advertise_keys.pair_of_public_keys.noise_pk = OFF_CURVE
    good = UP()
    pair = KeyPair()
    good.advertise_keys.pair_of_public_keys.noise_pk = pair.public
    good.advertise_keys.pair_of_public_keys.enc_pk = KeyPair().public
    rounds = alone(KEYS, lambda _: [bad, good, good], Drop.INVALID_PUBLIC_KEY, "not a point")
    assert len(rounds.sent[HOSTILE]) == 1


def test_F105_a_share_that_one_peer_cannot_open_puts_out_that_peer() -> None:
    """Scenario 58: the server cannot see it; the peer says abort, and with enough others the sum is exact."""

    def change(message: UP) -> None:
        message.share_keys_response.encrypted_key_shares[0] = bytes(104)

    rounds = Rounds(5, threshold=3, tamper=tampering(HOSTILE, SHARES, change))
    rounds.play()
    assert rounds.dropped == {0: Drop.CLIENT_ABORT}
    assert rounds.errors == {0: "a share could not be decrypted"}
    assert_summed(rounds, {1, 2, 3, 4})
