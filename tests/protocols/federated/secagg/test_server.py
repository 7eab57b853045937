"""Whole rounds: sums are exact, whoever leaves and whenever (`invoker.protocols.federated.secagg.server`)."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.protocols.federated.messages import SecAggTerms
from invoker.protocols.federated.secagg.events import Drop, Failed, Reason, Summed
from invoker.protocols.federated.secagg.server import SecAggServer
from tests.protocols.federated.secagg.rounds import (
    INPUT,
    KEYS,
    SHARES,
    STEPS,
    UNMASKING,
    UP,
    VECTORS,
    Rounds,
    kind_of,
    tampering,
)

SILENCE = {KEYS: Drop.SILENT_KEYS, SHARES: Drop.SILENT_SHARES, INPUT: Drop.SILENT_INPUT}


def assert_summed(rounds: Rounds, included: set[int]) -> None:
    """The outcome is the sum of exactly these devices."""
    (outcome,) = rounds.outcomes
    assert isinstance(outcome, Summed), outcome
    assert {name: total.tolist() for name, total in outcome.sums.items()} == rounds.expected(included)
    assert outcome.clients == len(included)
    assert {total.dtype for total in outcome.sums.values()} == {np.dtype(np.uint64)}


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("modulus", [2, 5, 129, 2**20, 1000003, 2**62])
def test_F096_the_sum_of_five_devices_is_exact(modulus: int, later: bool) -> None:
    """Scenario 53: two vectors, every kind of modulus; all devices end well."""
    rounds = Rounds(5, threshold=3, vectors={"w": (modulus, 70), "bias": (2**16, 1)}, later=later)
    rounds.play()
    assert_summed(rounds, set(range(5)))
    assert rounds.finished == set(range(5))
    assert (rounds.errors, rounds.dropped) == ({}, {})


@pytest.mark.parametrize("how", ["lost", "silent"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("who", range(5))
def test_F122_one_device_leaves_anywhere_and_the_rest_is_summed(who: int, step: str, how: str) -> None:
    """Scenario 54, alone: after its masked input a device stays in the sum, before it never was in it."""
    rounds = Rounds(5, threshold=3, **{how: {who: step}})  # type: ignore[arg-type]
    rounds.play()
    assert_summed(rounds, set(range(5)) if step == UNMASKING else set(range(5)) - {who})
    wanted = {who: SILENCE[step]} if how == "silent" and step in SILENCE else {}
    assert rounds.dropped == wanted


@pytest.mark.parametrize("step", STEPS)
def test_F122_a_device_is_lost_while_others_still_speak(step: str) -> None:
    """What it has said in a round that goes on counts only if it was its vector, or its shares of the last round."""
    rounds = Rounds(5, threshold=3, after={1: step})
    rounds.play()
    assert_summed(rounds, set(range(5)) if step in (INPUT, UNMASKING) else {0, 2, 3, 4})
    pair = rounds.sent[0][0].share_keys_request.pairs_of_public_keys[1]
    assert bool(pair.noise_pk) == (step != KEYS)
    entry = rounds.sent[0][1].masked_input_request.encrypted_key_shares[1]
    assert bool(entry) == (step not in (KEYS, SHARES))
    # Who is dead before the vectors come has no masks in them that would have to be taken off.
    assert list(rounds.sent[0][2].unmasking_request.dead_3_client_ids) == []


def test_F122_the_last_reply_counts_though_its_device_is_gone() -> None:
    """Three of five are left at last, and four have answered."""
    rounds = Rounds(5, threshold=4, after={0: UNMASKING, 1: UNMASKING})
    rounds.play()
    assert_summed(rounds, set(range(5)))


def test_F122_devices_leave_in_all_rounds_of_one_session() -> None:
    """Scenario 54, combined: one in each round, of 9."""
    for order in itertools.permutations(range(4)):
        rounds = Rounds(9, threshold=5, lost={2 * who: step for who, step in zip(order, STEPS, strict=True)})
        rounds.play()
        gone = {2 * who for who, step in zip(order, STEPS, strict=True) if step != UNMASKING}
        assert_summed(rounds, set(range(9)) - gone)


@pytest.mark.timeout(20)  # four seconds of computing
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_F124_any_devices_leave_and_the_sum_is_right_or_there_is_none(data: st.DataObject) -> None:
    """From 3 to 20 devices, lost or silent at any point, fast or slow jobs."""
    size = data.draw(st.integers(3, 20))
    gone = data.draw(st.dictionaries(st.integers(0, size - 1), st.tuples(st.booleans(), st.sampled_from(STEPS))))
    lost = {who: step for who, (is_lost, step) in gone.items() if is_lost}
    silent = {who: step for who, (is_lost, step) in gone.items() if not is_lost}
    rounds = Rounds(size, lost=lost, silent=silent, later=data.draw(st.booleans()), seed=size)
    outcome = rounds.play()
    if size - len(gone) >= size // 2 + 1:
        assert_summed(rounds, {who for who in range(size) if gone.get(who, (0, UNMASKING))[1] == UNMASKING})
    else:
        assert isinstance(outcome, Failed)
        assert outcome.reason is Reason.TOO_FEW


@pytest.mark.parametrize("step", STEPS)
def test_F124_with_too_few_devices_the_round_fails_for_all(step: str) -> None:
    """Scenario 55: one less than the threshold, in every round."""
    rounds = Rounds(5, threshold=3, lost=dict.fromkeys((0, 2, 4), step))
    outcome = rounds.play()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.TOO_FEW
    if step == UNMASKING:
        assert outcome.detail == "fewer than 3 devices are left in round 3"
    for index in (1, 3):
        abort = rounds.sent[index][-1].abort
        assert (abort.diagnostic_info, abort.early_success) == ("Too many clients aborted.", False)
        assert rounds.errors[index] == "SecAgg aborted"


@pytest.mark.parametrize("expected", [5, 6, 100])
def test_F091_more_devices_may_be_expected_than_come(expected: int) -> None:
    """Scenario 70: the number is told before the cohort is known; devices take it as the most there may be."""
    rounds = Rounds(5, threshold=3, expected=expected)
    rounds.play()
    assert_summed(rounds, set(range(5)))
    assert rounds.errors == {}


def test_F115_silent_devices_are_aborted_and_have_empty_pairs() -> None:
    """The order of the pairs is that of the cohort."""
    rounds = Rounds(5, threshold=3, silent={1: KEYS}, lost={3: KEYS})
    rounds.play()
    assert rounds.sent[1][0].abort.diagnostic_info == "did not send AdvertiseKeys"
    assert rounds.sent[3] == []
    pairs = rounds.sent[0][0].share_keys_request.pairs_of_public_keys
    assert [bool(pair.noise_pk and pair.enc_pk) for pair in pairs] == [True, False, True, False, True]


def test_F117_shares_are_delivered_to_whom_they_are_for() -> None:
    """Entry j of device i is entry i of device j; nobody gets one of a device that is dead."""
    said: dict[int, list[bytes]] = {}

    def note(index: int, message: UP) -> list[UP]:
        if kind_of(message) == SHARES:
            said[index] = list(message.share_keys_response.encrypted_key_shares)
        return [message]

    rounds = Rounds(5, threshold=3, tamper=note, lost={4: SHARES})
    rounds.play()
    for index in range(4):
        got = list(rounds.sent[index][1].masked_input_request.encrypted_key_shares)
        assert got == [said[sender][index] for sender in range(4)] + [b""]


def test_F120_F123_the_last_round_as_a_trace() -> None:
    """Missing devices are told by number; those that need not answer hear early success."""
    rounds = Rounds(7, threshold=4, silent={1: INPUT, 4: INPUT, 6: UNMASKING})
    rounds.play()
    assert_summed(rounds, {0, 2, 3, 5, 6})
    for index in (0, 2, 3, 5, 6):
        assert list(rounds.sent[index][2].unmasking_request.dead_3_client_ids) == [2, 5]
    assert [len(rounds.sent[index]) for index in (0, 2, 3, 5)] == [3, 3, 3, 3]
    assert rounds.sent[6][3].abort.early_success
    # Of device 6 nobody knew that it was silent: it has done its part.
    assert rounds.finished == {0, 2, 3, 5, 6}


def test_F120_a_device_that_sent_no_shares_is_not_named_as_missing() -> None:
    """Nobody has added a mask that it shares with this device, and nobody has a share of its noise key."""
    rounds = Rounds(7, threshold=4, silent={0: KEYS, 1: SHARES, 4: INPUT})
    rounds.play()
    assert_summed(rounds, {2, 3, 5, 6})
    assert list(rounds.sent[2][2].unmasking_request.dead_3_client_ids) == [5]


def test_F123_replies_that_cross_with_early_success_are_no_fault() -> None:
    """All devices answer at once; the fifth reply comes when four have been enough."""
    rounds = Rounds(5, threshold=4)
    rounds.play()
    assert rounds.sent[4][3].abort.early_success
    assert rounds.dropped == {}
    assert_summed(rounds, set(range(5)))


def test_F123_a_reply_that_comes_while_masks_are_taken_off_is_no_fault() -> None:
    """It was under way when its device heard of early success; a reply that is wrong would not matter either."""
    late: list[UP] = []
    rounds = Rounds(
        5, threshold=4, tamper=tampering(4, UNMASKING, lambda message: late.append(message) or []), later=True
    )
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    while not rounds.sent[4] or not rounds.sent[4][-1].abort.early_success:
        if rounds.up:
            rounds.hear(*rounds.up.popleft())
        else:
            job, then = rounds.jobs.popleft()
            then(job())
    assert not rounds.outcomes
    rounds.server.receive(4, late[0])
    rounds.server.receive(4, UP(unmasking_response={}))
    assert rounds.dropped == {}
    rounds.server.lost(2)
    rounds.server.elapsed()
    rounds.deliver()
    assert_summed(rounds, set(range(5)))


@pytest.mark.timeout(20)  # two seconds of computing
def test_F119_masked_vectors_are_not_kept() -> None:
    """Fifty vectors of 400 KB each take the memory of a few, not of fifty."""
    vectors = {"w": (2**32, 100_000)}
    rounds = Rounds(50, vectors=vectors, silent=dict.fromkeys(range(50), INPUT))
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    rounds.deliver()
    assert rounds.server.round == 2
    packed = bytes(400_000)
    tracemalloc.start()
    for index in range(50):
        message = UP()
        message.masked_input_response.vectors["w"].encoded_vector = packed[:-1] + bytes([index])
        rounds.server.receive(index, message)
        del message
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rounds.server.round == 3
    assert peak < 12 * 400_000


def test_F129_a_sum_of_too_few_is_never_made() -> None:
    """Scenario 73: three of five would do for the shares, but four must be in a sum; no secret is asked for."""
    rounds = Rounds(5, threshold=3, min_visible=4, silent={0: INPUT, 1: INPUT})
    outcome = rounds.play()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.TOO_FEW_VISIBLE
    assert outcome.detail == "3 devices have sent a vector; only a sum of 4 or more may be seen"
    said = {kind_of(message) for messages in rounds.sent.values() for message in messages}
    assert "unmasking_request" not in said
    enough = Rounds(5, threshold=3, min_visible=4, silent={0: INPUT})
    enough.play()
    assert_summed(enough, {1, 2, 3, 4})


def test_F126_a_device_that_says_abort_is_not_answered() -> None:
    """Whatever it was about to send."""
    for step in STEPS:
        abort = UP()
        abort.abort.diagnostic_info = "the user needs the battery"
        rounds = Rounds(5, threshold=3, tamper=tampering(2, step, lambda _, abort=abort: [abort]))
        before = STEPS.index(step)
        rounds.play()
        assert_summed(rounds, set(range(5)) if step == UNMASKING else {0, 1, 3, 4})
        assert rounds.dropped == {2: Drop.CLIENT_ABORT}
        assert len(rounds.sent[2]) == before


def test_F133_the_round_is_told_so_that_its_time_can_be_limited() -> None:
    """0 to 3; when nobody answers, the time limit ends it."""
    rounds = Rounds(3, threshold=2, silent=dict.fromkeys(range(3), UNMASKING))
    seen = [rounds.server.round]
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    while rounds.up:
        rounds.deliver()
        seen.append(rounds.server.round)
    assert seen == [0, 3]
    rounds.server.elapsed()
    (outcome,) = rounds.outcomes
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.TOO_FEW
    rounds.server.elapsed()
    rounds.server.lost(0)
    assert len(rounds.outcomes) == 1


def test_F131_heavy_work_is_left_to_the_owner() -> None:
    """Routing, adding, recovering and unmasking are jobs; without them nothing moves on."""
    rounds = Rounds(3, threshold=2, later=True)
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    done = 0
    while rounds.up or rounds.jobs:
        while rounds.up:
            rounds.hear(*rounds.up.popleft())
        if rounds.jobs:
            job, then = rounds.jobs.popleft()
            result = job()
            assert not rounds.up
            then(result)
            done += 1
    assert done >= 4
    assert_summed(rounds, {0, 1, 2})


def test_a_bug_in_a_job_fails_the_round_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The owner hears of an end, whatever happens."""

    def broken(*_: object, **__: object) -> None:
        raise MemoryError("planted")

    monkeypatch.setattr("invoker.protocols.federated.secagg.server.unmask", broken)
    outcome = Rounds(3, threshold=2).play()
    assert outcome == Failed(Reason.INTERNAL, "the server could not compute the sum")
    assert "secure aggregation has a bug" in caplog.text


@pytest.mark.parametrize(
    ("terms", "size", "why"),
    [
        (SecAggTerms(VECTORS, 5, 1, 1), 2, "1 of 2 devices cannot be the threshold"),
        (SecAggTerms(VECTORS, 9, 3, 1), 6, "3 of 6 devices"),
        (SecAggTerms(VECTORS, 9, 6, 1), 5, "6 of 5 devices"),
        (SecAggTerms(VECTORS, 4, 3, 1), 5, "of at most 4"),
        (SecAggTerms({"w": (2**20, 0)}, 5, 3, 1), 5, "vector 'w' has 0 elements"),
        (SecAggTerms({"w": (2**62, 2**26)}, 5, 3, 1), 5, "as many as fit 2"),
        (SecAggTerms({"w": (1, 4)}, 5, 3, 1), 5, "the modulus is 1"),
    ],
)
def test_F092_F090_terms_that_protect_nobody_are_refused(terms: SecAggTerms, size: int, why: str) -> None:
    """A threshold of one, or of half the devices; moduli and sizes out of range."""
    with pytest.raises(ValueError, match=why):
        SecAggServer(
            terms,
            size,
            send=lambda *_: None,
            drop=lambda *_: None,
            ended=lambda _: None,
            compute=lambda job, then: then(job()),
        )
