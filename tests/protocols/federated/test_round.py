"""Rounds of one task: selection, reporting, aggregation, commit, and every way in which they fail."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.codecs.chunks import Limits, Terms
from invoker.errors import FunctionError, Status
from invoker.protocols.federated.aggregating import Begin, Enough
from invoker.protocols.federated.backing import DEVICE_BYTES
from invoker.protocols.federated.client.downloads import MOST_BYTES
from invoker.protocols.federated.forms import form_of_offer
from invoker.protocols.federated.messages import Capabilities, Rejected, ReportTaken
from tests.protocols.federated.onetask import accepted, house


def test_F051_a_round_goes_from_selection_to_a_committed_checkpoint():
    """All clients are accepted at once, answered when their reports are fed, and the next round starts from the sum."""
    coordinator = house()
    one = coordinator.client().check_in()
    assert one.is_waiting
    assert coordinator.phases() == ["selecting"]
    (two,) = coordinator.clients(1)
    assert one.offer == two.offer
    assert (one.offer.task, one.offer.plan.data, one.offer.checkpoint.data) == ("train", b"plan train", b"model 0")
    assert coordinator.round().words == [Begin()]
    two.report(b"b")
    one.report(b"a", duration_s=0.25)
    assert one.ending is two.ending is None
    assert isinstance(coordinator.round().words[-1], Enough)
    assert coordinator.phases() == ["aggregating"]
    assert coordinator.round().take().updates == [b"b", b"a"]
    assert one.ending == two.ending == ReportTaken()
    coordinator.round().finish(b"model 1")
    assert coordinator.phases() == ["committing"]
    commit = coordinator.stored()
    assert (commit.population, commit.task, commit.number, commit.checkpoint) == ("iris", "train", 1, b"model 1")
    assert commit.phase_id == one.offer.phase_id
    assert coordinator.phases() == ["selecting"]
    assert coordinator.clients(2)[0].offer.checkpoint.data == b"model 1"
    (record,) = coordinator.coordinator.tally.records
    assert (record.outcome, record.accepted, record.ok, record.number) == ("committed", 2, 2, 1)


def test_F048_ids_are_random_and_the_same_for_all_clients_of_a_round():
    """Another round, and the same round of another coordinator, have others."""
    ids = set()
    for _ in range(2):
        coordinator = house(goal_clients=3, max_clients=3)
        for _ in range(2):
            ids.add(frozenset(one.offer.phase_id for one in accepted(coordinator, 3)))
            coordinator.passes(600)
    assert len(ids) == 4
    assert all(len(one) == 1 and len(next(iter(one))) >= 20 for one in ids)


def test_F016_F051_a_round_closes_at_its_goal_and_turns_the_rest_away():
    """Stragglers hear ABORTED at once, and exactly the goal is fed."""
    coordinator = house(goal_clients=3, max_clients=5, over_selection=2.0)
    made = accepted(coordinator, 5)
    for one in made[:3]:
        one.report()
    assert [one.error.status for one in made[3:]] == [Status.ABORTED] * 2
    made[3].report(b"late")
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.late, record.accepted) == (3, 2, 5)
    assert len(coordinator.round().updates) == 3


@pytest.mark.parametrize(("reports", "outcome"), [(1, "failed"), (2, "committed"), (3, "committed")])
def test_F051_at_its_time_limit_a_round_needs_the_least_number_of_reports(reports, outcome):
    """With fewer than min it has failed, and the checkpoint is what it was."""
    coordinator = house(min_clients=2, goal_clients=4, max_clients=4)
    made = accepted(coordinator, 4)
    for one in made[:reports]:
        one.report()
    coordinator.round().take()
    coordinator.passes(599)
    assert made[3].ending is None
    coordinator.passes(1)
    assert made[3].error.status == Status.ABORTED
    if outcome == "committed":
        coordinator.round().finish()
        coordinator.stored()
    assert [one.outcome for one in coordinator.coordinator.tally.records] == [outcome]
    assert [one.ending for one in made[:reports]] == [ReportTaken()] * reports
    assert coordinator.round().is_abandoned == (outcome == "failed")
    model = b"model 1" if outcome == "committed" else b"model 0"
    assert coordinator.clients(4)[0].offer.checkpoint.data == model


def test_F051_a_round_without_anybody_left_closes_at_once():
    """Nobody waits for clients that have gone."""
    coordinator = house(min_clients=2, goal_clients=4, max_clients=4)
    made = accepted(coordinator, 4)
    made[0].report()
    made[1].report()
    made[2].leave()
    assert not coordinator.round().has_enough
    made[3].leave()
    assert coordinator.round().has_enough
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.dropped) == (2, 2)


def test_F053_reports_after_the_close_are_turned_away_and_not_counted():
    """Whether or not their clients know already that the round has closed."""
    coordinator = house(goal_clients=2, max_clients=3, over_selection=2.0)
    made = accepted(coordinator, 3)
    for one in made:
        one.report(b"x")
    assert made[2].error.status == Status.ABORTED
    assert len(coordinator.round().reports) == 2
    assert coordinator.coordinator.tally.codes == {0: 2}


def test_F060_a_client_that_failed_is_answered_but_not_aggregated():
    """Its code is counted; F-061: one that is none is UNKNOWN."""
    coordinator = house(min_clients=1, goal_clients=3, max_clients=3)
    made = accepted(coordinator, 3)
    made[0].report(b"bad", status=13)
    assert made[0].ending == ReportTaken()
    made[1].report(b"bad", status=4711)
    made[2].report(b"good")
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.failed) == (1, 2)
    assert coordinator.round().updates == [b"good"]
    assert coordinator.coordinator.tally.codes == {0: 1, 2: 1, 13: 1}


@pytest.mark.parametrize(("status", "counted"), [(0, 0), (13, 13), (16, 16), (17, 2), (-1, 2), (2**31 - 1, 2)])
def test_F061_a_status_that_is_no_code_is_unknown(status, counted):
    """Those of google.rpc.Code are counted as they are; all but OK are failures."""
    coordinator = house(min_clients=1)
    accepted(coordinator, 2)[0].report(status=status)
    assert coordinator.coordinator.tally.codes == {counted: 1}
    assert len(coordinator.round().reports) == (status == 0)


def test_F051_reports_of_failed_clients_do_not_reach_the_goal():
    """Successful ones are counted."""
    coordinator = house(min_clients=2, goal_clients=2, max_clients=4, over_selection=2.0)
    made = accepted(coordinator, 4)
    made[0].report(status=13)
    made[1].report(status=13)
    assert not coordinator.round().has_enough
    made[2].report()
    made[3].report()
    assert coordinator.round().has_enough


def test_F080_frames_tell_of_the_round_and_of_no_client():
    """Population, task, round, ordinal, and how long it took if the client said so."""
    coordinator = house()
    one, two = accepted(coordinator, 2)
    two.report(b"b", duration_s=1.5)
    one.report(b"a")
    first, second = (word.message for word in coordinator.round().reports)
    facts = {"population": "iris", "task": "train", "round": "1"}
    assert dict(first.headers) == {**facts, "ordinal": "0", "duration_ms": "1500"}
    assert dict(second.headers) == {**facts, "ordinal": "1"}
    assert first.media_type == second.media_type == "application/vnd.fcp.checkpoint"


def test_F081_clients_are_answered_when_the_function_takes_their_reports():
    """A slow one delays answers, not the counting."""
    coordinator = house(goal_clients=3, max_clients=3)
    made = accepted(coordinator, 3)
    for one in made:
        one.report()
    assert [one.ending for one in made] == [None] * 3
    coordinator.round().take(2)
    assert [one.ending for one in made] == [ReportTaken(), ReportTaken(), None]


def test_F016_a_report_counts_even_if_its_client_does_not_wait_for_the_answer():
    """It was accepted; nothing is told to whoever has left."""
    coordinator = house()
    one, two = accepted(coordinator, 2)
    one.report()
    one.leave()
    two.report()
    coordinator.round().take().finish()
    coordinator.stored()
    assert coordinator.coordinator.tally.records[-1].ok == 2
    assert one.ending is None


@pytest.mark.parametrize("has_closed", [False, True])
def test_F082_a_function_that_raises_fails_the_round(has_closed):
    """Clients that were answered stay answered, all others hear ABORTED; the old checkpoint is served again."""
    coordinator = house(goal_clients=4, max_clients=4)
    made = accepted(coordinator, 4)
    for one in made[: 4 if has_closed else 2]:
        one.report()
    coordinator.round().take(1).finish(error=FunctionError("no good"))
    assert made[0].ending == ReportTaken()
    assert [one.error.status for one in made[1:]] == [Status.ABORTED] * 3
    (record,) = coordinator.coordinator.tally.records
    assert (record.outcome, record.reason, record.ok, record.cut) == ("failed", "aggregation", 1, 3)
    assert not coordinator.commits
    assert coordinator.clients(4)[0].offer.checkpoint.data == b"model 0"


def test_F082_a_function_that_takes_too_long_fails_the_round():
    """Its time begins when all reports are accepted."""
    coordinator = house()
    for one in accepted(coordinator, 2):
        one.report()
    coordinator.round().take()
    coordinator.passes(59.9)
    assert not coordinator.round().is_abandoned
    coordinator.passes(0.1)
    assert coordinator.round().is_abandoned
    assert coordinator.coordinator.tally.records[-1].reason == "aggregate_timeout"
    coordinator.rounds[0].finish()
    assert not coordinator.commits


def test_F082_F083_a_checkpoint_that_is_not_stored_does_not_count():
    """The round has failed, and the next one starts from the old checkpoint with the same number."""
    coordinator = house()
    for _ in range(2):
        for one in accepted(coordinator, 2):
            assert one.offer.checkpoint.data == b"model 0"
            one.report()
        coordinator.round().take().finish()
        assert coordinator.stored(ok=False).number == 1
    assert [one.reason for one in coordinator.coordinator.tally.records] == ["commit"] * 2


def test_F082_what_no_device_can_take_is_not_committed():
    """The round fails, the old checkpoint stands, and the log says the sizes; a byte less is what devices can take."""
    plan = b"plan train"
    coordinator = house()
    for size, reason in ((70_000_000, "too_large"), (DEVICE_BYTES - len(plan) + 1, "too_large")):
        for one in accepted(coordinator, 2):
            assert one.offer.checkpoint.data == b"model 0"
            one.report()
        coordinator.round().take().finish(bytes(size))
        assert not coordinator.commits
        assert coordinator.coordinator.tally.records[-1].reason == reason
    for one in accepted(coordinator, 2):
        one.report()
    coordinator.round().take().finish(bytes(DEVICE_BYTES - len(plan)))
    coordinator.stored()
    offer = accepted(coordinator, 2)[0].offer
    inline = form_of_offer(offer, Capabilities(chunks=True), Terms(8192, 2)).build()
    assert inline.ByteSize() <= Limits().message_bytes
    assert len(offer.checkpoint.data) <= MOST_BYTES


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (lambda coordinator: coordinator.passes(1000), "the round has failed: too few reports came"),
        (
            lambda coordinator: coordinator.round().finish(error=FunctionError("secret")),
            "the aggregation function gave no checkpoint",
        ),
    ],
)
def test_F082_devices_hear_why_a_round_has_failed(ends, said):
    """Those whose reports it had not taken; one that only came too late hears something else."""
    coordinator = house(min_clients=2, goal_clients=3, max_clients=3)
    one, _, _ = accepted(coordinator, 3)
    one.report()
    ends(coordinator)
    assert one.error.status is Status.ABORTED
    assert said in str(one.error)
    assert "secret" not in str(one.error)
    coordinator = house(min_clients=1, goal_clients=1, max_clients=2, over_selection=2.0)
    one, late = accepted(coordinator, 2)
    one.report()
    assert "the round has closed before the report came" in str(late.error)


def test_F084_a_function_that_ends_early_closes_the_round():
    """What it was not fed does not count, and whoever still has to report hears ABORTED."""
    coordinator = house(min_clients=2, goal_clients=5, max_clients=5)
    made = accepted(coordinator, 5)
    for one in made[:3]:
        one.report()
    coordinator.round().take(2).finish()
    assert [one.error.status for one in made[2:]] == [Status.ABORTED] * 3
    made[4].report()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.outcome, record.ok, record.late) == ("committed", 2, 3)


def test_F084_a_function_that_ends_before_the_least_number_of_reports_fails():
    """Its checkpoint would tell of too few clients."""
    coordinator = house(min_clients=2, goal_clients=5, max_clients=5)
    made = accepted(coordinator, 5)
    made[0].report()
    coordinator.round().take().finish()
    assert coordinator.coordinator.tally.records[-1].reason == "ended_early"
    assert made[0].ending == ReportTaken()
    assert not coordinator.commits


def test_F086_a_malformed_update_excludes_its_client_only():
    """It hears INVALID_ARGUMENT with what is wrong; the round goes on without it."""

    def checker(model: bytes) -> Callable[[bytes], object]:
        def check(update: bytes) -> None:
            if not update.startswith(model[:5]):
                raise ValueError("it has no model")

        return check

    coordinator = house(min_clients=2, goal_clients=3, max_clients=3, checker=checker)
    made = accepted(coordinator, 3)
    made[0].report(b"model a")
    made[1].report(b"other b")
    made[2].report(b"model c")
    assert made[1].error.status == Status.INVALID_ARGUMENT
    assert "it has no model" in str(made[1].error)
    coordinator.round().take().finish()
    coordinator.stored()
    assert coordinator.round().updates == [b"model a", b"model c"]
    assert coordinator.coordinator.tally.records[-1].invalid == 1


def test_F083_a_task_goes_on_after_its_last_committed_round():
    """What is committed next has the next number; after the last round nobody is accepted."""
    coordinator = house(committed=18, rounds=20)
    for number in (19, 20):
        for one in accepted(coordinator, 2):
            one.report()
        coordinator.round().take().finish(b"%d" % number)
        assert coordinator.stored().number == number
    assert coordinator.phases() == ["done"]
    assert coordinator.clients(1)[0].notices == [Rejected("done")]


def test_a_message_of_secure_aggregation_in_a_plain_round_ends_its_sender():
    """With INVALID_ARGUMENT; the others go on."""
    coordinator = house(min_clients=1, goal_clients=2)
    one, two = accepted(coordinator, 2)
    coordinator.coordinator.secure(one, secagg_pb.ClientToServerWrapperMessage(), None)
    assert one.error.status == Status.INVALID_ARGUMENT
    two.report()
    assert coordinator.round().has_enough


def test_a_round_that_has_ended_is_not_kept_until_the_garbage_is_collected():
    """It holds checkpoints; so do selections that were too small, and rounds that have failed."""
    coordinator = house()
    gc.disable()
    try:
        seen = []
        for fails in (False, True):
            seen.append(weakref.ref(coordinator.coordinator._populations["iris"].tasks["train"].round))
            for one in accepted(coordinator, 2):
                one.report()
                one.leave()
            coordinator.round().take().finish(error=FunctionError("no") if fails else None)
            if not fails:
                coordinator.stored()
        seen.append(weakref.ref(coordinator.coordinator._populations["iris"].tasks["train"].round))
        coordinator.clients(1)
        coordinator.passes(60)
        coordinator.rounds.clear()
        coordinator.commits.clear()
        assert [one() for one in seen] == [None] * 3
    finally:
        gc.enable()
