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
from tests.protocols.federated.house import Client, House, caught, population, task

LARGE = bytes(100_000)


def house(**numbers: object) -> House:
    return House(population("iris", task(**numbers)))


def test_F051_a_round_goes_from_selection_to_a_committed_checkpoint():
    """All clients are accepted at once, answered when their reports are fed, and the next round starts from the sum."""
    desk = house()
    one = desk.client().check_in()
    assert one.is_waiting
    assert desk.phases() == ["selecting"]
    (two,) = desk.clients(1)
    assert one.offer == two.offer
    assert (one.offer.task, one.offer.plan.data, one.offer.checkpoint.data) == ("train", b"plan train", b"model 0")
    assert desk.round().words == [Begin()]
    two.report(b"b")
    one.report(b"a", duration_s=0.25)
    assert one.ending is two.ending is None
    assert isinstance(desk.round().words[-1], Enough)
    assert desk.phases() == ["aggregating"]
    assert desk.round().take().updates == [b"b", b"a"]
    assert one.ending == two.ending == ReportTaken()
    desk.round().finish(b"model 1")
    assert desk.phases() == ["committing"]
    commit = desk.stored()
    assert (commit.population, commit.task, commit.number, commit.checkpoint) == ("iris", "train", 1, b"model 1")
    assert commit.phase_id == one.offer.phase_id
    assert desk.phases() == ["selecting"]
    assert desk.clients(2)[0].offer.checkpoint.data == b"model 1"
    (record,) = desk.desk.tally.records
    assert (record.outcome, record.accepted, record.ok, record.number) == ("committed", 2, 2, 1)


def accepted(desk: House, many: int) -> list[Client]:
    """Clients that take part in a round."""
    made = desk.clients(many)
    assert all(one.offer is not None for one in made)
    return made


def test_F048_ids_are_random_and_the_same_for_all_clients_of_a_round():
    """Another round, and the same round of another desk, have others."""
    ids = set()
    for _ in range(2):
        desk = house(goal_clients=3, max_clients=3)
        for _ in range(2):
            ids.add(frozenset(one.offer.phase_id for one in accepted(desk, 3)))
            desk.passes(600)
    assert len(ids) == 4
    assert all(len(one) == 1 and len(next(iter(one))) >= 20 for one in ids)


def test_F016_F051_a_round_closes_at_its_goal_and_turns_the_rest_away():
    """Stragglers hear ABORTED at once, and exactly the goal is fed."""
    desk = house(goal_clients=3, max_clients=5, over_selection=2.0)
    made = accepted(desk, 5)
    for one in made[:3]:
        one.report()
    assert [one.error.status for one in made[3:]] == [Status.ABORTED] * 2
    made[3].report(b"late")
    desk.round().take().finish()
    desk.stored()
    (record,) = desk.desk.tally.records
    assert (record.ok, record.late, record.accepted) == (3, 2, 5)
    assert len(desk.round().updates) == 3


@pytest.mark.parametrize(("reports", "outcome"), [(1, "failed"), (2, "committed"), (3, "committed")])
def test_F051_at_its_time_limit_a_round_needs_the_least_number_of_reports(reports, outcome):
    """With fewer than min it has failed, and the checkpoint is what it was."""
    desk = house(min_clients=2, goal_clients=4, max_clients=4)
    made = accepted(desk, 4)
    for one in made[:reports]:
        one.report()
    desk.round().take()
    desk.passes(599)
    assert made[3].ending is None
    desk.passes(1)
    assert made[3].error.status == Status.ABORTED
    if outcome == "committed":
        desk.round().finish()
        desk.stored()
    assert [one.outcome for one in desk.desk.tally.records] == [outcome]
    assert [one.ending for one in made[:reports]] == [ReportTaken()] * reports
    assert desk.round().is_abandoned == (outcome == "failed")
    model = b"model 1" if outcome == "committed" else b"model 0"
    assert desk.clients(4)[0].offer.checkpoint.data == model


def test_F051_a_round_without_anybody_left_closes_at_once():
    """Nobody waits for clients that have gone."""
    desk = house(min_clients=2, goal_clients=4, max_clients=4)
    made = accepted(desk, 4)
    made[0].report()
    made[1].report()
    made[2].leave()
    assert not desk.round().has_enough
    made[3].leave()
    assert desk.round().has_enough
    desk.round().take().finish()
    desk.stored()
    (record,) = desk.desk.tally.records
    assert (record.ok, record.dropped) == (2, 2)


def test_F053_reports_after_the_close_are_turned_away_and_not_counted():
    """Whether or not their clients know already that the round has closed."""
    desk = house(goal_clients=2, max_clients=3, over_selection=2.0)
    made = accepted(desk, 3)
    for one in made:
        one.report(b"x")
    assert made[2].error.status == Status.ABORTED
    assert len(desk.round().reports) == 2
    assert desk.desk.tally.codes == {0: 2}


def test_F060_a_client_that_failed_is_answered_but_not_aggregated():
    """Its code is counted; F-061: one that is none is UNKNOWN."""
    desk = house(min_clients=1, goal_clients=3, max_clients=3)
    made = accepted(desk, 3)
    made[0].report(b"bad", status=13)
    assert made[0].ending == ReportTaken()
    made[1].report(b"bad", status=4711)
    made[2].report(b"good")
    desk.round().take().finish()
    desk.stored()
    (record,) = desk.desk.tally.records
    assert (record.ok, record.failed) == (1, 2)
    assert desk.round().updates == [b"good"]
    assert desk.desk.tally.codes == {0: 1, 2: 1, 13: 1}


@pytest.mark.parametrize(("status", "counted"), [(0, 0), (13, 13), (16, 16), (17, 2), (-1, 2), (2**31 - 1, 2)])
def test_F061_a_status_that_is_no_code_is_unknown(status, counted):
    """Those of google.rpc.Code are counted as they are; all but OK are failures."""
    desk = house(min_clients=1)
    accepted(desk, 2)[0].report(status=status)
    assert desk.desk.tally.codes == {counted: 1}
    assert len(desk.round().reports) == (status == 0)


def test_F051_reports_of_failed_clients_do_not_reach_the_goal():
    """Successful ones are counted."""
    desk = house(min_clients=2, goal_clients=2, max_clients=4, over_selection=2.0)
    made = accepted(desk, 4)
    made[0].report(status=13)
    made[1].report(status=13)
    assert not desk.round().has_enough
    made[2].report()
    made[3].report()
    assert desk.round().has_enough


def test_F080_frames_tell_of_the_round_and_of_no_client():
    """Population, task, round, ordinal, and how long it took if the client said so."""
    desk = house()
    one, two = accepted(desk, 2)
    two.report(b"b", duration_s=1.5)
    one.report(b"a")
    first, second = (word.message for word in desk.round().reports)
    facts = {"population": "iris", "task": "train", "round": "1"}
    assert dict(first.headers) == {**facts, "ordinal": "0", "duration_ms": "1500"}
    assert dict(second.headers) == {**facts, "ordinal": "1"}
    assert first.media_type == second.media_type == "application/vnd.fcp.checkpoint"


def test_F081_clients_are_answered_when_the_function_takes_their_reports():
    """A slow one delays answers, not the counting."""
    desk = house(goal_clients=3, max_clients=3)
    made = accepted(desk, 3)
    for one in made:
        one.report()
    assert [one.ending for one in made] == [None] * 3
    desk.round().take(2)
    assert [one.ending for one in made] == [ReportTaken(), ReportTaken(), None]


def test_F016_a_report_counts_even_if_its_client_does_not_wait_for_the_answer():
    """It was accepted; nothing is told to whoever has left."""
    desk = house()
    one, two = accepted(desk, 2)
    one.report()
    one.leave()
    two.report()
    desk.round().take().finish()
    desk.stored()
    assert desk.desk.tally.records[-1].ok == 2
    assert one.ending is None


@pytest.mark.parametrize("has_closed", [False, True])
def test_F082_a_function_that_raises_fails_the_round(has_closed):
    """Clients that were answered stay answered, all others hear ABORTED; the old checkpoint is served again."""
    desk = house(goal_clients=4, max_clients=4)
    made = accepted(desk, 4)
    for one in made[: 4 if has_closed else 2]:
        one.report()
    desk.round().take(1).finish(error=FunctionError("no good"))
    assert made[0].ending == ReportTaken()
    assert [one.error.status for one in made[1:]] == [Status.ABORTED] * 3
    (record,) = desk.desk.tally.records
    assert (record.outcome, record.reason, record.ok, record.cut) == ("failed", "aggregation", 1, 3)
    assert not desk.commits
    assert desk.clients(4)[0].offer.checkpoint.data == b"model 0"


def test_F082_a_function_that_takes_too_long_fails_the_round():
    """Its time begins when all reports are accepted."""
    desk = house()
    for one in accepted(desk, 2):
        one.report()
    desk.round().take()
    desk.passes(59.9)
    assert not desk.round().is_abandoned
    desk.passes(0.1)
    assert desk.round().is_abandoned
    assert desk.desk.tally.records[-1].reason == "aggregate_timeout"
    desk.rounds[0].finish()
    assert not desk.commits


def test_F082_F083_a_checkpoint_that_is_not_stored_does_not_count():
    """The round has failed, and the next one starts from the old checkpoint with the same number."""
    desk = house()
    for _ in range(2):
        for one in accepted(desk, 2):
            assert one.offer.checkpoint.data == b"model 0"
            one.report()
        desk.round().take().finish()
        assert desk.stored(ok=False).number == 1
    assert [one.reason for one in desk.desk.tally.records] == ["commit"] * 2


def test_F082_what_no_device_can_take_is_not_committed():
    """The round fails, the old checkpoint stands, and the log says the sizes; a byte less is what devices can take."""
    plan = b"plan train"
    desk = house()
    for size, reason in ((70_000_000, "too_large"), (DEVICE_BYTES - len(plan) + 1, "too_large")):
        for one in accepted(desk, 2):
            assert one.offer.checkpoint.data == b"model 0"
            one.report()
        desk.round().take().finish(bytes(size))
        assert not desk.commits
        assert desk.desk.tally.records[-1].reason == reason
    for one in accepted(desk, 2):
        one.report()
    desk.round().take().finish(bytes(DEVICE_BYTES - len(plan)))
    desk.stored()
    offer = accepted(desk, 2)[0].offer
    inline = form_of_offer(offer, Capabilities(chunks=True), Terms(8192, 2)).build()
    assert inline.ByteSize() <= Limits().message_bytes
    assert len(offer.checkpoint.data) <= MOST_BYTES


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (lambda desk: desk.passes(1000), "the round has failed: too few reports came"),
        (
            lambda desk: desk.round().finish(error=FunctionError("secret")),
            "the aggregation function gave no checkpoint",
        ),
    ],
)
def test_F082_devices_hear_why_a_round_has_failed(ends, said):
    """Those whose reports it had not taken; one that only came too late hears something else."""
    desk = house(min_clients=2, goal_clients=3, max_clients=3)
    one, _, _ = accepted(desk, 3)
    one.report()
    ends(desk)
    assert one.error.status is Status.ABORTED
    assert said in str(one.error)
    assert "secret" not in str(one.error)
    desk = house(min_clients=1, goal_clients=1, max_clients=2, over_selection=2.0)
    one, late = accepted(desk, 2)
    one.report()
    assert "the round has closed before the report came" in str(late.error)


def test_F084_a_function_that_ends_early_closes_the_round():
    """What it was not fed does not count, and whoever still has to report hears ABORTED."""
    desk = house(min_clients=2, goal_clients=5, max_clients=5)
    made = accepted(desk, 5)
    for one in made[:3]:
        one.report()
    desk.round().take(2).finish()
    assert [one.error.status for one in made[2:]] == [Status.ABORTED] * 3
    made[4].report()
    desk.stored()
    (record,) = desk.desk.tally.records
    assert (record.outcome, record.ok, record.late) == ("committed", 2, 3)


def test_F084_a_function_that_ends_before_the_least_number_of_reports_fails():
    """Its checkpoint would tell of too few clients."""
    desk = house(min_clients=2, goal_clients=5, max_clients=5)
    made = accepted(desk, 5)
    made[0].report()
    desk.round().take().finish()
    assert desk.desk.tally.records[-1].reason == "ended_early"
    assert made[0].ending == ReportTaken()
    assert not desk.commits


def test_F086_a_malformed_update_excludes_its_client_only():
    """It hears INVALID_ARGUMENT with what is wrong; the round goes on without it."""

    def checker(model: bytes) -> Callable[[bytes], object]:
        def check(update: bytes) -> None:
            if not update.startswith(model[:5]):
                raise ValueError("it has no model")

        return check

    desk = house(min_clients=2, goal_clients=3, max_clients=3, checker=checker)
    made = accepted(desk, 3)
    made[0].report(b"model a")
    made[1].report(b"other b")
    made[2].report(b"model c")
    assert made[1].error.status == Status.INVALID_ARGUMENT
    assert "it has no model" in str(made[1].error)
    desk.round().take().finish()
    desk.stored()
    assert desk.round().updates == [b"model a", b"model c"]
    assert desk.desk.tally.records[-1].invalid == 1


def test_F083_a_task_goes_on_after_its_last_committed_round():
    """What is committed next has the next number; after the last round nobody is accepted."""
    desk = house(committed=18, rounds=20)
    for number in (19, 20):
        for one in accepted(desk, 2):
            one.report()
        desk.round().take().finish(b"%d" % number)
        assert desk.stored().number == number
    assert desk.phases() == ["done"]
    assert desk.clients(1)[0].notices == [Rejected("done")]


def test_a_message_of_secure_aggregation_in_a_plain_round_ends_its_sender():
    """With INVALID_ARGUMENT; the others go on."""
    desk = house(min_clients=1, goal_clients=2)
    one, two = accepted(desk, 2)
    desk.desk.secure(one, secagg_pb.ClientToServerWrapperMessage(), None)
    assert one.error.status == Status.INVALID_ARGUMENT
    two.report()
    assert desk.round().has_enough


def test_a_round_that_has_ended_is_not_kept_until_the_garbage_is_collected():
    """It holds checkpoints; so do selections that were too small, and rounds that have failed."""
    desk = house()
    gc.disable()
    try:
        seen = []
        for fails in (False, True):
            seen.append(weakref.ref(desk.desk._populations["iris"].tasks["train"].round))
            for one in accepted(desk, 2):
                one.report()
                one.leave()
            desk.round().take().finish(error=FunctionError("no") if fails else None)
            if not fails:
                desk.stored()
        seen.append(weakref.ref(desk.desk._populations["iris"].tasks["train"].round))
        desk.clients(1)
        desk.passes(60)
        desk.rounds.clear()
        desk.commits.clear()
        assert [one() for one in seen] == [None] * 3
    finally:
        gc.enable()


def fits(_: bytes) -> Callable[[bytes], object]:
    """A check that takes what does not end with an exclamation mark."""

    def check(update: bytes) -> None:
        if update.endswith(b"!"):
            raise ValueError("it does not fit")

    return check


def checking(many: int, **numbers: object) -> tuple[House, list[Client], list[Callable[[], None]]]:
    """A house whose checks end when a test says so."""
    desk = house(min_clients=1, goal_clients=many, max_clients=many, checker=fits, **numbers)
    jobs: list[Callable[[], None]] = []
    desk.compute = lambda job, then: jobs.append(lambda: then(caught(job)))
    return desk, accepted(desk, many), jobs


def test_F086_updates_are_checked_beside_the_loop_however_small_they_are():
    """Few bytes may inflate to many. They are fed in the order in which their checks end."""
    desk, made, jobs = checking(4)
    for one, update in zip(made, (LARGE + b"0", b"!", LARGE + b"2", b"l"), strict=True):
        one.report(update)
    assert not desk.round().reports
    assert desk.desk.held_bytes == 2 * len(LARGE) + 4
    for job in reversed(jobs):
        job()
    assert [one.message.payload[-1:] for one in desk.round().reports] == [b"l", b"2", b"0"]
    assert made[1].error.status == Status.INVALID_ARGUMENT
    desk.round().take().finish()
    desk.stored()
    assert (desk.desk.tally.records[-1].ok, desk.desk.tally.records[-1].invalid) == (3, 1)
    assert desk.desk.held_bytes == 0


def test_F053_a_report_that_is_still_checked_when_its_round_closes_does_not_count():
    """Its device has heard ABORTED, or has left; its room is free when the check has ended."""
    desk, made, jobs = checking(3, report_timeout_s=5.0)
    made[0].report(b"small")
    jobs.pop()()
    made[1].report(LARGE)
    made[2].report(LARGE)
    made[2].leave()
    desk.passes(5)
    assert made[1].error.status == Status.ABORTED
    for job in jobs:
        job()
    assert [one.message.payload for one in desk.round().reports] == [b"small"]
    desk.round().take().finish()
    desk.stored()
    (record,) = desk.desk.tally.records
    assert (record.ok, record.late, record.dropped) == (1, 1, 1)
    assert desk.desk.held_bytes == 0
