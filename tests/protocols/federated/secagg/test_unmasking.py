"""Corrupted shares are found out, and no wrong sum is given (`invoker.protocols.federated.secagg.unmasking`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from invoker.protocols.federated.secagg import unmasking
from invoker.protocols.federated.secagg.events import Failed, Reason
from invoker.protocols.federated.secagg.unmasking import Cohort, recover
from invoker.protocols.federated.wire.keys import KeyPair, new_key
from invoker.protocols.federated.wire.shares import combine, split, stack
from tests.protocols.federated.secagg.rounds import INPUT, UNMASKING, UP, Rounds, tampering, wrong_share
from tests.protocols.federated.secagg.test_server import assert_summed


def lying(kind: str, about: int) -> Callable[[UP], Any]:
    """Changes one share of a reply."""

    def change(message: UP) -> None:
        entry = message.unmasking_response.noise_or_prf_key_shares[about]
        setattr(entry, kind, wrong_share(getattr(entry, kind)))

    return change


@pytest.mark.parametrize("liar", range(6))
def test_F127_a_wrong_noise_share_is_found_and_another_subset_taken(liar: int) -> None:
    """Scenario 59: the reconstructed noise key must give the public one; further replies are waited for."""
    rounds = Rounds(7, threshold=4, silent={6: INPUT}, tamper=tampering(liar, UNMASKING, lying("noise_sk_share", 6)))
    rounds.play()
    assert_summed(rounds, set(range(6)))
    released = [index for index in range(6) if rounds.sent[index][-1].abort.early_success]
    # A liar among the first four makes one more reply necessary.
    assert released == ([5] if liar < 4 else [4, 5])


@pytest.mark.parametrize("liar", range(4))
def test_F127_replies_that_came_meanwhile_are_tried_at_once(liar: int) -> None:
    """All have answered before the first four turn out to be wrong, so nobody is waited for."""
    change = lying("noise_sk_share", 6)
    rounds = Rounds(7, threshold=4, silent={6: INPUT}, tamper=tampering(liar, UNMASKING, change), later=True)
    rounds.play()
    assert_summed(rounds, set(range(6)))


@pytest.mark.parametrize("liars", [{0, 1}, {2, 5}, {3, 4}])
def test_F127_two_liars_of_seven_are_found(liars: set[int]) -> None:
    """All subsets are tried, not only the first ones."""
    rounds = Rounds(8, threshold=5, silent={7: INPUT}, tamper=tampering(liars, UNMASKING, lying("noise_sk_share", 7)))
    rounds.play()
    assert_summed(rounds, set(range(7)))


def test_F127_without_enough_right_shares_the_round_fails() -> None:
    """Three replies are right and four are needed."""
    rounds = Rounds(
        7, threshold=4, silent={6: INPUT}, tamper=tampering({0, 1, 4}, UNMASKING, lying("noise_sk_share", 6))
    )
    outcome = rounds.play()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.CORRUPTED_SHARES
    assert outcome.detail == "the shares of 6 devices do not fit together"
    for index in range(6):
        assert "do not fit together" in rounds.sent[index][-1].abort.diagnostic_info
        assert rounds.errors[index] == "SecAgg aborted"


def test_F127_the_time_limit_ends_the_waiting_for_right_shares() -> None:
    """The device that could help does not answer."""
    rounds = Rounds(
        6,
        threshold=4,
        silent={5: INPUT, 4: UNMASKING},
        tamper=tampering(0, UNMASKING, lying("noise_sk_share", 5)),
    )
    outcome = rounds.play()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.CORRUPTED_SHARES


def test_F128_a_wrong_share_of_an_own_mask_is_found_by_a_spare_reply() -> None:
    """Scenario 60, with spare shares: replies that come while the first ones are put together must fit them."""
    for liar in range(5):
        rounds = Rounds(5, threshold=3, tamper=tampering(liar, UNMASKING, lying("prf_sk_share", 1)), later=True)
        outcome = rounds.play()
        assert isinstance(outcome, Failed), liar
        assert outcome.reason is Reason.CORRUPTED_SHARES


def test_F128_who_heard_of_early_success_is_not_told_of_a_failure() -> None:
    """It has nothing more to do; the end of its conversation tells it the rest."""
    rounds = Rounds(
        6, threshold=4, silent={5: UNMASKING}, tamper=tampering(0, UNMASKING, lying("prf_sk_share", 1)), later=True
    )
    outcome = rounds.play()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.CORRUPTED_SHARES
    assert [message.abort.early_success for message in rounds.sent[5][3:]] == [True]
    assert [message.abort.early_success for message in rounds.sent[4][3:]] == [False]


def test_F128_without_a_spare_reply_it_cannot_be_found() -> None:
    """Scenario 60, without spare shares: the sum is wrong, as it is when a device sends wrong numbers."""
    rounds = Rounds(5, threshold=3, tamper=tampering(0, UNMASKING, lying("prf_sk_share", 1)))
    outcome = rounds.play()
    assert not isinstance(outcome, Failed)
    assert {name: total.tolist() for name, total in outcome.sums.items()} != rounds.expected(range(5))


def test_F128_who_lies_about_a_noise_key_is_not_believed_about_masks() -> None:
    """Its shares of own masks do not fit either, and yet the sum is right: its noise share has shown that it lies."""

    def change(message: UP) -> None:
        lying("noise_sk_share", 6)(message)
        lying("prf_sk_share", 0)(message)

    rounds = Rounds(7, threshold=4, silent={6: INPUT}, tamper=tampering(5, UNMASKING, change), later=True)
    rounds.play()
    assert_summed(rounds, set(range(6)))


def test_F135_an_impossible_limb_is_as_bad_as_a_wrong_key() -> None:
    """Scenario 77: shares of an own mask's key that no 32 bytes have; another subset does."""
    key, count = new_key(), 5
    shares = stack(split(key, threshold=3, count=count))
    cohort = Cohort(b"", [b""] * count, [0], [])
    replies = {index: shares[index : index + 1].astype(np.uint32) for index in range(count)}
    assert recover(cohort, replies, 3).own == [key]  # type: ignore[union-attr]
    # The first limb has 8 bits; a share that is moved by anything makes it one of 31.
    replies[1] = replies[1].copy()
    replies[1][0, 0] ^= 1 << 20
    assert recover(cohort, {index: replies[index] for index in (0, 1, 2)}, 3) is None
    assert recover(cohort, {index: replies[index] for index in (0, 2, 3)}, 3).own == [key]  # type: ignore[union-attr]
    # The subset without the wrong share is possible, but the wrong one does not fit it, and nobody vouches for either.
    assert recover(cohort, replies, 3) is None


def test_F127_a_noise_key_vouches_for_its_subset() -> None:
    """With a missing device, the impossible limb of one reply is simply left out."""
    pair, key, count = KeyPair(), new_key(), 5
    own, noise = (stack(split(secret, threshold=3, count=count)) for secret in (key, pair.secret))
    cohort = Cohort(b"", [b"", pair.public, b"", b"", b""], [0], [1])
    replies = {index: np.stack([own[index], noise[index]]).astype(np.uint32) for index in range(count)}
    replies[0][0, 0] ^= 1 << 20
    replies[0][1, 3] ^= 1
    secrets = recover(cohort, replies, 3)
    assert secrets is not None
    assert (secrets.own, secrets.noise) == ([key], [pair.secret])


def test_F127_a_liar_among_just_enough_replies_costs_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one subset then; to try it for each reply once more took seconds with 300 devices."""
    attempts = []
    monkeypatch.setattr(unmasking, "combine", lambda weights, shares: attempts.append(1) or combine(weights, shares))
    key = KeyPair()
    shares = split(key.secret, threshold=20, count=30)
    cohort = Cohort(b"session", [b""] * 29 + [key.public], (), [29])
    replies = {index: stack([shares[index]]).astype(np.uint32) for index in range(20)}
    assert recover(cohort, replies, 20) is not None
    replies[3] = replies[3] ^ np.uint32(1)
    attempts.clear()
    assert recover(cohort, replies, 20) is None
    assert len(attempts) == 1
