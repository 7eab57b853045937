"""Admission, time limits, several populations, room for reports, drain."""

from __future__ import annotations

import pytest

from invoker.core.peers import PEER
from invoker.errors import DeadlineExceeded, InvocationError, LimitExceeded, ShuttingDown, Status, StatusError
from invoker.message import Headers
from invoker.protocols.federated.desk import DeskLimits
from invoker.protocols.federated.gate import SMALL_BYTES
from invoker.protocols.federated.messages import Checkin, Over, Rejected, ReportTaken
from tests.protocols.federated.house import Client, House, population, task

LARGE = 1_000_000


def status_of(call, *args: object) -> Status:
    with pytest.raises(InvocationError) as caught:
        call(*args)
    return caught.value.status


def test_F005_an_unknown_population_is_not_found():
    """Whatever the client asks for."""
    desk = House(population())
    for call in (desk.desk.windows, desk.desk.eligibility, desk.desk.check_in):
        assert status_of(call, desk.client(), Checkin("roses")) == Status.NOT_FOUND


def test_F006_metadata_that_name_another_population_are_invalid():
    """The same name, and none, are right."""
    desk = House(population("iris"), population("roses"))
    for name, fits in (("iris", True), ("roses", False), ("nobody", False), ("", True)):
        checkin = Checkin("iris", metadata=Headers({"x-goog-population": name}))
        if fits:
            desk.desk.windows(desk.client(), checkin)
        else:
            assert status_of(desk.desk.windows, desk.client(), checkin) == Status.INVALID_ARGUMENT


def test_F007_a_population_with_a_key_needs_it():
    """It is looked at when a conversation begins, if that names its population, and at each checkin."""
    desk = House(population("iris", api_key="key"), population("open"))
    for key in ({}, {"X-Goog-Api-Key": "other"}, {"x-goog-api-key": "kéy"}):
        named = Headers({"x-goog-population": "iris", **key})
        assert status_of(Client, desk, named) == Status.UNAUTHENTICATED
        assert status_of(desk.desk.windows, desk.client(), Checkin("iris", metadata=Headers(key))) == 16
        desk.desk.windows(desk.client(), Checkin("open", metadata=Headers(key)))
    right = Headers({"x-goog-population": "iris", "X-Goog-Api-Key": "key"})
    desk.desk.windows(Client(desk, right), Checkin("iris", metadata=right))


def test_F139_conversations_are_bounded_in_all_and_of_each_peer():
    """Ports make no difference; a place is free again when its device has left."""
    desk = House(population(), limits=DeskLimits(sessions=4, sessions_per_peer=2))

    def from_(address: str) -> Client:
        return Client(desk, Headers({PEER: address}))

    first = from_("ipv4:192.0.2.1:1")
    from_("ipv4:192.0.2.1:2")
    with pytest.raises(LimitExceeded, match="2 devices of this address"):
        from_("ipv4:192.0.2.1:3")
    from_("ipv6:%5B::1%5D:1")
    from_("ipv6:%5B::1%5D:2")
    with pytest.raises(LimitExceeded, match="4 devices are connected"):
        from_("ipv4:192.0.2.9:1")
    first.leave()
    first.leave()
    from_("ipv4:192.0.2.1:4")
    assert desk.desk.tally.states["entered"] == 4


def test_F139_the_bounds_are_32_and_10000_by_default():
    """As the catalogue says."""
    assert (DeskLimits().sessions_per_peer, DeskLimits().sessions) == (32, 10_000)


def test_F014_a_device_that_says_nothing_is_let_go():
    """After 60 s with DEADLINE_EXCEEDED; one that has checked in waits for its round."""
    desk = House(population("iris", task(selection_timeout_s=100.0)))
    silent, (waiting,) = desk.client(), desk.clients(1)
    desk.passes(59)
    assert silent.is_waiting
    desk.passes(1)
    assert isinstance(silent.error, DeadlineExceeded)
    assert waiting.is_waiting


def test_F014_a_device_has_time_to_evaluate_its_eligibility():
    """As long as the file says; without an eligibility task, 60 s from the answer."""
    desk = House(population("iris", eligibility=True, eligibility_timeout_s=300.0), population("other"))
    slow, other = desk.client(), desk.client()
    desk.passes(30)
    desk.desk.eligibility(slow, Checkin("iris"))
    desk.desk.eligibility(other, Checkin("other"))
    desk.passes(59)
    assert other.is_waiting
    desk.passes(1)
    assert isinstance(other.error, DeadlineExceeded)
    desk.passes(239)
    assert slow.is_waiting
    desk.passes(1)
    assert isinstance(slow.error, DeadlineExceeded)


def test_F015_a_device_that_does_not_half_close_is_let_go():
    """5 s after its answer, with OK."""
    desk = House(population())
    one, two, rejected = desk.clients(3)
    assert rejected.notices == [Rejected("full")]
    desk.passes(4.9)
    assert len(rejected.notices) == 1
    desk.passes(0.1)
    assert rejected.notices[1:] == [Over(None)]
    one.report()
    two.report()
    desk.round().take()
    two.leave()
    desk.passes(5)
    assert one.notices[1:] == [ReportTaken(), Over(None)]
    assert two.notices[1:] == [ReportTaken()]


def test_F013_a_device_that_leaves_is_forgotten():
    """Wherever it stood; nothing is told to it any more, and what it stood for is counted once."""
    desk = House(population("iris", eligibility=True))
    made = [desk.client() for _ in range(5)]
    desk.desk.eligibility(made[1], Checkin("iris"))
    for one in made[2:]:
        one.check_in(weights={"train": 1.0})
    desk.passes(0)
    assert made[4].notices == [Rejected("full")]
    for one in made:
        one.leave()
        one.leave()
    told = [list(one.notices) for one in made]
    assert desk.desk.next_tick() is None
    desk.passes(1000)
    assert [one.notices for one in made] == told
    assert desk.desk.tally.dropped == {"entered": 1, "eligible": 1, "accepted": 2}
    assert not +desk.desk.tally.states
    assert not desk.desk._peers


def test_a_late_checkin_of_a_device_that_was_let_go_changes_nothing():
    """Its message was under way when its time was over."""
    desk = House(population())
    late = desk.client()
    desk.passes(60)
    assert desk.desk.eligibility(late, Checkin("iris")) == Rejected("over")
    late.check_in().report()
    assert len(late.notices) == 1
    assert desk.desk.status()[0].waiting == 0


def test_F138_populations_do_not_share_anything():
    """Their rounds interleave, each with its own clients, reports and checkpoints."""
    desk = House(population("a"), population("b"))
    made = {name: [] for name in "ab"}
    for name in "abab":
        made[name].append(desk.client().check_in(name))
    desk.passes(0)
    for at in range(2):
        for name in "ba":
            made[name][at].report(f"{name}{at}".encode())
    found = {}
    for one in desk.rounds:
        population_name = one.reports[0].message.headers["population"]
        found[population_name] = one.take().updates
        one.finish(population_name.encode())
        desk.stored()
    assert found == {"a": [b"a0", b"a1"], "b": [b"b0", b"b1"]}
    assert [desk.clients(2, name)[0].offer.checkpoint.data for name in "ab"] == [b"a", b"b"]


def may(client: Client, size: int = LARGE) -> bool:
    """Whether all of a message may come."""
    return client.house.desk.may_receive(client, size, size)


def test_F081_large_reports_wait_for_room():
    """Until the function has taken others; a device that leaves makes room, too."""
    several = task(min_clients=1, goal_clients=5, max_clients=5)
    desk = House(population("iris", several), limits=DeskLimits(report_bytes=2 * LARGE))
    one, two, third, fourth, fifth = desk.clients(5)
    assert may(one)
    assert may(two)
    for ready in (one, two):
        ready.report(b"x" * LARGE)
        desk.desk.received(ready)
    assert not may(third)
    assert not may(fourth)
    assert desk.desk.held_bytes == 2 * LARGE
    desk.round().take(1)
    assert third.was_resumed
    assert fourth.was_resumed
    assert not may(fifth)
    third.leave()
    assert not fifth.was_resumed
    fourth.leave()
    assert fifth.was_resumed
    desk.desk.received(fifth)
    assert desk.desk.held_bytes == LARGE


def test_F138_a_population_whose_function_is_slow_holds_up_no_other():
    """All room is taken by its reports; those of the other one come, one at a time."""
    several = task(min_clients=1, goal_clients=2, max_clients=2)
    desk = House(population("a", several), population("b", several), limits=DeskLimits(report_bytes=LARGE))
    slow, waits = desk.clients(2, "a")
    slow.report(b"x" * LARGE)
    assert not may(waits)
    for one in desk.clients(2, "b"):
        assert may(one)
        one.report(b"x" * LARGE)
        desk.rounds[-1].take()
    assert not waits.was_resumed


def test_F081_a_device_that_is_over_is_not_resumed():
    """It has waited for room for longer than its round."""
    desk = House(population("iris", task(min_clients=1, report_timeout_s=5.0)), limits=DeskLimits(report_bytes=LARGE))
    slow, late = desk.clients(2)
    assert may(slow, 2 * LARGE)
    assert not may(late)
    desk.passes(5)
    slow.leave()
    assert late.error.status == Status.ABORTED
    assert not late.was_resumed
    late.leave()
    assert desk.desk.held_bytes == 0


def test_F081_a_device_that_keeps_others_waiting_is_let_go():
    """It hears DEADLINE_EXCEEDED and counts as dropped; the one that waits goes on."""
    desk = House(population("iris", task(min_clients=1)), limits=DeskLimits(report_bytes=LARGE))
    slow, waits = desk.clients(2)
    assert may(slow, 2 * LARGE)
    assert not may(waits)
    desk.passes(4)
    assert slow.ending is None
    desk.passes(10)
    assert isinstance(slow.error, DeadlineExceeded)
    assert waits.was_resumed
    slow.leave()
    desk.desk.received(waits)
    waits.report(b"x" * LARGE)
    desk.round().take().finish()
    desk.stored()
    (record,) = desk.desk.tally.records
    assert (record.ok, record.dropped) == (1, 1)


def test_F081_only_clients_that_were_accepted_may_send_large_messages():
    """Whoever has nothing to report cannot take the room of those that do: RESOURCE_EXHAUSTED."""
    desk = House(population())
    entered, waiting = desk.client(), desk.client().check_in()
    for one in (entered, waiting):
        assert may(one, SMALL_BYTES)
        assert not may(one, SMALL_BYTES + 1)
        assert one.error.status == Status.RESOURCE_EXHAUSTED
    assert desk.desk.held_bytes == 0
    waiting.leave()
    assert desk.desk.status()[0].waiting == 0


def test_F081_a_report_needs_room_until_it_is_taken_or_turned_away():
    """Whether its device is still there or not."""
    desk = House(population("iris", task(min_clients=1)))
    one, two = desk.clients(2)
    one.report(b"x" * LARGE)
    one.leave()
    assert desk.desk.held_bytes == LARGE
    desk.round().take()
    assert desk.desk.held_bytes == 0
    two.report(b"x" * LARGE)
    assert desk.desk.held_bytes == LARGE
    desk.round().finish(error=StatusError(Status.INTERNAL, "no"))
    assert desk.desk.held_bytes == 0


def test_F143_a_desk_that_drains_takes_nobody_and_lets_rounds_finish():
    """Those that wait are rejected, running rounds commit, and then it is not busy."""
    desk = House(population("iris", task("a"), task("b")))
    known = desk.client()
    assert not desk.desk.is_busy
    running = [desk.client().check_in(weights={"a": 1.0}) for _ in range(2)]
    desk.passes(0)
    waiting = desk.client().check_in(weights={"b": 1.0})
    assert desk.desk.is_busy
    desk.desk.drain()
    assert waiting.notices == [Rejected("draining")]
    assert known.check_in().notices == [Rejected("draining")]
    assert desk.client().check_in().notices == [Rejected("draining")]
    assert desk.desk.is_busy
    for one in running:
        one.report()
    desk.round().take().finish()
    assert desk.desk.is_busy
    desk.stored()
    assert not desk.desk.is_busy
    assert desk.phases() == ["drained", "drained"]
    assert [one.notices[-1] for one in running] == [ReportTaken()] * 2


@pytest.mark.parametrize("is_eligibility", [False, True])
def test_F143_a_population_that_is_closed_during_a_drain_still_rejects(is_eligibility):
    """Idle ones go to another process at once; a device that knows no better hears when to come again."""
    desk = House(population("iris", task(), eligibility=is_eligibility or None), population("rose", task()))
    early, evaluates = desk.client(), desk.client()
    desk.desk.eligibility(evaluates, Checkin("iris"))
    running = desk.clients(2, "rose")
    desk.desk.drain()
    for name in ("iris", "rose"):
        desk.desk.close(name, StatusError(Status.UNAVAILABLE, "elsewhere"))
    assert [one.error.status for one in running] == [Status.UNAVAILABLE] * 2
    for one in (early, evaluates, desk.client()):
        assert one.ending is None
        assert desk.desk.windows(one, Checkin("iris"))[1].delay_max_s > 0
        assert one.check_in(weights={"train": 1.0}).notices == [Rejected("draining")]
    assert isinstance(desk.desk.eligibility(desk.client(), Checkin("iris")), Rejected)
    assert status_of(desk.desk.check_in, desk.client(), Checkin("roses")) == Status.NOT_FOUND
    desk.desk.stop()
    with pytest.raises(ShuttingDown):
        desk.client()


def test_F143_a_desk_that_stops_ends_everything():
    """Whoever has not heard its ending hears UNAVAILABLE, and functions are told to end."""
    desk = House(population("iris", task("a"), task("b"), eligibility=True))
    weights = {"a": 1.0}
    reported, silent = (desk.client().check_in(weights=weights) for _ in range(2))
    desk.passes(0)
    reported.report()
    entered, evaluates, rejected = (desk.client() for _ in range(3))
    desk.desk.eligibility(evaluates, Checkin("iris"))
    rejected.check_in(weights={})
    desk.desk.stop()
    for one in (reported, silent, entered, evaluates):
        assert isinstance(one.error, ShuttingDown)
    assert rejected.notices == [Rejected("ineligible")]
    with pytest.raises(ShuttingDown):
        desk.client()
    assert desk.round().is_abandoned
    assert not desk.desk.is_busy


def test_a_population_that_is_closed_leaves_the_others():
    """Its devices hear why; it can be opened again, from what another process has committed."""
    desk = House(population("a"), population("b"))
    one, other = desk.client().check_in("a"), desk.client().check_in("b")
    entered = desk.client()
    desk.desk.windows(entered, Checkin("a"))
    gone = StatusError(Status.UNAVAILABLE, "another process serves it")
    accepted = desk.clients(1, "a")[0]
    desk.desk.close("a", gone)
    assert one.error is accepted.error is entered.error is gone
    assert other.is_waiting
    assert status_of(desk.desk.check_in, desk.client(), Checkin("a")) == Status.NOT_FOUND
    desk.desk.open(population("a", task(committed=7)))
    again = desk.clients(2, "a")
    for client in again:
        client.report()
    desk.rounds[-1].take().finish()
    assert desk.stored().number == 8


def test_whoever_waits_when_a_population_is_closed_is_rejected():
    """It has a window by which it can come again."""
    desk = House(population("a"))
    (waits,) = desk.clients(1, "a")
    desk.desk.close("a", StatusError(Status.UNAVAILABLE, "another process serves it"))
    assert waits.notices == [Rejected("closed")]


def test_F141_what_metrics_tell_of_a_scripted_round():
    """Sessions by state, accepted, rejected, dropped, reports, rounds with their duration, bytes of chunks."""
    desk = House(population("iris", task(min_clients=2, goal_clients=3, max_clients=6, over_selection=2.0)))
    seen = []
    desk.desk.tally.observers.append(seen.append)
    made = [desk.client().check_in() for _ in range(7)]
    desk.passes(0)
    tally = desk.desk.tally
    assert +tally.states == {"accepted": 6, "answered": 1}
    assert tally.accepted == {("iris", "train"): 6}
    assert tally.rejected == {("iris", "full"): 1}
    made[0].report(status=13)
    made[1].leave()
    desk.passes(10)
    for one in made[2:5]:
        one.report()
    assert +tally.states == {"reported": 3, "over": 3}
    desk.round().take().finish()
    desk.stored()
    assert tally.dropped == {"accepted": 1}
    counts = {"ok": 3, "failed": 1, "late": 1, "dropped": 1}
    assert tally.reports == {("iris", "train", what): many for what, many in counts.items()}
    assert tally.selections == {("iris", "train", "begun"): 1}
    assert [(one.outcome, one.seconds) for one in seen] == [("committed", 10.0)]
    desk.desk.moved(made[0], sent=3, received=4)
    desk.desk.moved(made[2], sent=3, received=4)
    assert (tally.sent, tally.received) == (6, 8)


def test_F140_nothing_that_is_counted_or_logged_has_an_update(caplog):
    """Also of a round that fails, and of an update that does not fit."""

    def checker(model: bytes):
        def check(update: bytes) -> None:
            if update.endswith(b"!"):
                raise ValueError("it does not fit")

        return check

    caplog.set_level("DEBUG")
    desk = House(population("iris", task(min_clients=1, goal_clients=3, max_clients=3, checker=checker)))
    made = desk.clients(3)
    for one, update in zip(made, (b"SECRET", b"SECRET!", b"SECRET"), strict=True):
        one.report(update)
    desk.round().finish(error=StatusError(Status.INTERNAL, "this is bad: SECRET"))
    told = repr([vars(desk.desk.tally), desk.desk.status(), [one.notices for one in made]])
    assert "the aggregation of a round has failed" in caplog.text
    assert "SECRET" not in told + caplog.text + repr([vars(one) for one in caplog.records])
