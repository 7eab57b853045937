"""Admission, time limits, several populations, room for reports, drain."""

from __future__ import annotations

import pytest

from invoker.core.peers import PEER
from invoker.errors import DeadlineExceeded, InvocationError, LimitExceeded, ShuttingDown, Status, StatusError
from invoker.message import Headers
from invoker.protocols.federated.coordinator import CoordinatorLimits
from invoker.protocols.federated.messages import Checkin, Over, Rejected, ReportTaken
from tests.protocols.federated.house import Client, House, population, task


def status_of(call, *args: object) -> Status:
    with pytest.raises(InvocationError) as caught:
        call(*args)
    return caught.value.status


def test_F005_an_unknown_population_is_not_found():
    """Whatever the client asks for."""
    coordinator = House(population())
    for call in (
        coordinator.coordinator.windows,
        coordinator.coordinator.eligibility,
        coordinator.coordinator.check_in,
    ):
        assert status_of(call, coordinator.client(), Checkin("roses")) == Status.NOT_FOUND


def test_F006_metadata_that_name_another_population_are_invalid():
    """The same name, and none, are right."""
    coordinator = House(population("iris"), population("roses"))
    for name, fits in (("iris", True), ("roses", False), ("nobody", False), ("", True)):
        checkin = Checkin("iris", metadata=Headers({"x-goog-population": name}))
        if fits:
            coordinator.coordinator.windows(coordinator.client(), checkin)
        else:
            assert status_of(coordinator.coordinator.windows, coordinator.client(), checkin) == Status.INVALID_ARGUMENT


def test_F007_a_population_with_a_key_needs_it():
    """It is looked at when a conversation begins, if that names its population, and at each checkin."""
    coordinator = House(population("iris", api_key="key"), population("open"))
    for key in ({}, {"X-Goog-Api-Key": "other"}, {"x-goog-api-key": "kéy"}):
        named = Headers({"x-goog-population": "iris", **key})
        assert status_of(Client, coordinator, named) == Status.UNAUTHENTICATED
        assert (
            status_of(coordinator.coordinator.windows, coordinator.client(), Checkin("iris", metadata=Headers(key)))
            == 16
        )
        coordinator.coordinator.windows(coordinator.client(), Checkin("open", metadata=Headers(key)))
    right = Headers({"x-goog-population": "iris", "X-Goog-Api-Key": "key"})
    coordinator.coordinator.windows(Client(coordinator, right), Checkin("iris", metadata=right))


def test_F139_conversations_are_bounded_in_all_and_of_each_peer():
    """Ports make no difference; a place is free again when its device has left."""
    coordinator = House(population(), limits=CoordinatorLimits(sessions=4, sessions_per_peer=2))

    def from_(address: str) -> Client:
        return Client(coordinator, Headers({PEER: address}))

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
    assert coordinator.coordinator.tally.states["entered"] == 4


def test_F139_the_bounds_are_32_and_10000_by_default():
    """As the catalogue says."""
    assert (CoordinatorLimits().sessions_per_peer, CoordinatorLimits().sessions) == (32, 10_000)


def test_F014_a_device_that_says_nothing_is_let_go():
    """After 60 s with DEADLINE_EXCEEDED; one that has checked in waits for its round."""
    coordinator = House(population("iris", task(selection_timeout_s=100.0)))
    silent, (waiting,) = coordinator.client(), coordinator.clients(1)
    coordinator.passes(59)
    assert silent.is_waiting
    coordinator.passes(1)
    assert isinstance(silent.error, DeadlineExceeded)
    assert waiting.is_waiting


def test_F014_a_device_has_time_to_evaluate_its_eligibility():
    """As long as the file says; without an eligibility task, 60 s from the answer."""
    coordinator = House(population("iris", eligibility=True, eligibility_timeout_s=300.0), population("other"))
    slow, other = coordinator.client(), coordinator.client()
    coordinator.passes(30)
    coordinator.coordinator.eligibility(slow, Checkin("iris"))
    coordinator.coordinator.eligibility(other, Checkin("other"))
    coordinator.passes(59)
    assert other.is_waiting
    coordinator.passes(1)
    assert isinstance(other.error, DeadlineExceeded)
    coordinator.passes(239)
    assert slow.is_waiting
    coordinator.passes(1)
    assert isinstance(slow.error, DeadlineExceeded)


def test_F015_a_device_that_does_not_half_close_is_let_go():
    """5 s after its answer, with OK."""
    coordinator = House(population())
    one, two, rejected = coordinator.clients(3)
    assert rejected.notices == [Rejected("full")]
    coordinator.passes(4.9)
    assert len(rejected.notices) == 1
    coordinator.passes(0.1)
    assert rejected.notices[1:] == [Over(None)]
    one.report()
    two.report()
    coordinator.round().take()
    two.leave()
    coordinator.passes(5)
    assert one.notices[1:] == [ReportTaken(), Over(None)]
    assert two.notices[1:] == [ReportTaken()]


def test_F013_a_device_that_leaves_is_forgotten():
    """Wherever it stood; nothing is told to it any more, and what it stood for is counted once."""
    coordinator = House(population("iris", eligibility=True))
    made = [coordinator.client() for _ in range(5)]
    coordinator.coordinator.eligibility(made[1], Checkin("iris"))
    for one in made[2:]:
        one.check_in(weights={"train": 1.0})
    coordinator.passes(0)
    assert made[4].notices == [Rejected("full")]
    for one in made:
        one.leave()
        one.leave()
    told = [list(one.notices) for one in made]
    assert coordinator.coordinator.next_tick() is None
    coordinator.passes(1000)
    assert [one.notices for one in made] == told
    assert coordinator.coordinator.tally.dropped == {"entered": 1, "eligible": 1, "accepted": 2}
    assert not +coordinator.coordinator.tally.states
    assert not coordinator.coordinator._peers


def test_a_late_checkin_of_a_device_that_was_let_go_changes_nothing():
    """Its message was under way when its time was over."""
    coordinator = House(population())
    late = coordinator.client()
    coordinator.passes(60)
    assert coordinator.coordinator.eligibility(late, Checkin("iris")) == Rejected("over")
    late.check_in().report()
    assert len(late.notices) == 1
    assert coordinator.coordinator.status()[0].waiting == 0


def test_F138_populations_do_not_share_anything():
    """Their rounds interleave, each with its own clients, reports and checkpoints."""
    coordinator = House(population("a"), population("b"))
    made = {name: [] for name in "ab"}
    for name in "abab":
        made[name].append(coordinator.client().check_in(name))
    coordinator.passes(0)
    for at in range(2):
        for name in "ba":
            made[name][at].report(f"{name}{at}".encode())
    found = {}
    for one in coordinator.rounds:
        population_name = one.reports[0].message.headers["population"]
        found[population_name] = one.take().updates
        one.finish(population_name.encode())
        coordinator.stored()
    assert found == {"a": [b"a0", b"a1"], "b": [b"b0", b"b1"]}
    assert [coordinator.clients(2, name)[0].offer.checkpoint.data for name in "ab"] == [b"a", b"b"]


def test_F143_a_coordinator_that_drains_takes_nobody_and_lets_rounds_finish():
    """Those that wait are rejected, running rounds commit, and then it is not busy."""
    coordinator = House(population("iris", task("a"), task("b")))
    known = coordinator.client()
    assert not coordinator.coordinator.is_busy
    running = [coordinator.client().check_in(weights={"a": 1.0}) for _ in range(2)]
    coordinator.passes(0)
    waiting = coordinator.client().check_in(weights={"b": 1.0})
    assert coordinator.coordinator.is_busy
    coordinator.coordinator.drain()
    assert waiting.notices == [Rejected("draining")]
    assert known.check_in().notices == [Rejected("draining")]
    assert coordinator.client().check_in().notices == [Rejected("draining")]
    assert coordinator.coordinator.is_busy
    for one in running:
        one.report()
    coordinator.round().take().finish()
    assert coordinator.coordinator.is_busy
    coordinator.stored()
    assert not coordinator.coordinator.is_busy
    assert coordinator.phases() == ["drained", "drained"]
    assert [one.notices[-1] for one in running] == [ReportTaken()] * 2


@pytest.mark.parametrize("is_eligibility", [False, True])
def test_F143_a_population_that_is_closed_during_a_drain_still_rejects(is_eligibility):
    """Idle ones go to another process at once; a device that knows no better hears when to come again."""
    coordinator = House(population("iris", task(), eligibility=is_eligibility or None), population("rose", task()))
    early, evaluates = coordinator.client(), coordinator.client()
    coordinator.coordinator.eligibility(evaluates, Checkin("iris"))
    running = coordinator.clients(2, "rose")
    coordinator.coordinator.drain()
    for name in ("iris", "rose"):
        coordinator.coordinator.close(name, StatusError(Status.UNAVAILABLE, "elsewhere"))
    assert [one.error.status for one in running] == [Status.UNAVAILABLE] * 2
    for one in (early, evaluates, coordinator.client()):
        assert one.ending is None
        assert coordinator.coordinator.windows(one, Checkin("iris"))[1].delay_max_s > 0
        assert one.check_in(weights={"train": 1.0}).notices == [Rejected("draining")]
    assert isinstance(coordinator.coordinator.eligibility(coordinator.client(), Checkin("iris")), Rejected)
    assert status_of(coordinator.coordinator.check_in, coordinator.client(), Checkin("roses")) == Status.NOT_FOUND
    coordinator.coordinator.stop()
    with pytest.raises(ShuttingDown):
        coordinator.client()


def test_F143_a_coordinator_that_stops_ends_everything():
    """Whoever has not heard its ending hears UNAVAILABLE, and functions are told to end."""
    coordinator = House(population("iris", task("a"), task("b"), eligibility=True))
    weights = {"a": 1.0}
    reported, silent = (coordinator.client().check_in(weights=weights) for _ in range(2))
    coordinator.passes(0)
    reported.report()
    entered, evaluates, rejected = (coordinator.client() for _ in range(3))
    coordinator.coordinator.eligibility(evaluates, Checkin("iris"))
    rejected.check_in(weights={})
    coordinator.coordinator.stop()
    for one in (reported, silent, entered, evaluates):
        assert isinstance(one.error, ShuttingDown)
    assert rejected.notices == [Rejected("ineligible")]
    with pytest.raises(ShuttingDown):
        coordinator.client()
    assert coordinator.round().is_abandoned
    assert not coordinator.coordinator.is_busy


def test_a_population_that_is_closed_leaves_the_others():
    """Its devices hear why; it can be opened again, from what another process has committed."""
    coordinator = House(population("a"), population("b"))
    one, other = coordinator.client().check_in("a"), coordinator.client().check_in("b")
    entered = coordinator.client()
    coordinator.coordinator.windows(entered, Checkin("a"))
    gone = StatusError(Status.UNAVAILABLE, "another process serves it")
    accepted = coordinator.clients(1, "a")[0]
    coordinator.coordinator.close("a", gone)
    assert one.error is accepted.error is entered.error is gone
    assert other.is_waiting
    assert status_of(coordinator.coordinator.check_in, coordinator.client(), Checkin("a")) == Status.NOT_FOUND
    coordinator.coordinator.open(population("a", task(committed=7)))
    again = coordinator.clients(2, "a")
    for client in again:
        client.report()
    coordinator.rounds[-1].take().finish()
    assert coordinator.stored().number == 8


def test_whoever_waits_when_a_population_is_closed_is_rejected():
    """It has a window by which it can come again."""
    coordinator = House(population("a"))
    (waits,) = coordinator.clients(1, "a")
    coordinator.coordinator.close("a", StatusError(Status.UNAVAILABLE, "another process serves it"))
    assert waits.notices == [Rejected("closed")]


def test_F141_what_metrics_tell_of_a_scripted_round():
    """Sessions by state, accepted, rejected, dropped, reports, rounds with their duration, bytes of chunks."""
    coordinator = House(population("iris", task(min_clients=2, goal_clients=3, max_clients=6, over_selection=2.0)))
    seen = []
    coordinator.coordinator.tally.observers.append(seen.append)
    made = [coordinator.client().check_in() for _ in range(7)]
    coordinator.passes(0)
    tally = coordinator.coordinator.tally
    assert +tally.states == {"accepted": 6, "answered": 1}
    assert tally.accepted == {("iris", "train"): 6}
    assert tally.rejected == {("iris", "full"): 1}
    made[0].report(status=13)
    made[1].leave()
    coordinator.passes(10)
    for one in made[2:5]:
        one.report()
    assert +tally.states == {"reported": 3, "over": 3}
    coordinator.round().take().finish()
    coordinator.stored()
    assert tally.dropped == {"accepted": 1}
    counts = {"ok": 3, "failed": 1, "late": 1, "dropped": 1}
    assert tally.reports == {("iris", "train", what): many for what, many in counts.items()}
    assert tally.selections == {("iris", "train", "begun"): 1}
    assert [(one.outcome, one.seconds) for one in seen] == [("committed", 10.0)]
    coordinator.coordinator.moved(made[0], sent=3, received=4)
    coordinator.coordinator.moved(made[2], sent=3, received=4)
    assert (tally.sent, tally.received) == (6, 8)


def test_F140_nothing_that_is_counted_or_logged_has_an_update(caplog):
    """Also of a round that fails, and of an update that does not fit."""

    def checker(model: bytes):
        def check(update: bytes) -> None:
            if update.endswith(b"!"):
                raise ValueError("it does not fit")

        return check

    caplog.set_level("DEBUG")
    coordinator = House(population("iris", task(min_clients=1, goal_clients=3, max_clients=3, checker=checker)))
    made = coordinator.clients(3)
    for one, update in zip(made, (b"SECRET", b"SECRET!", b"SECRET"), strict=True):
        one.report(update)
    coordinator.round().finish(error=StatusError(Status.INTERNAL, "this is bad: SECRET"))
    told = repr([vars(coordinator.coordinator.tally), coordinator.coordinator.status(), [one.notices for one in made]])
    assert "the aggregation of a round has failed" in caplog.text
    assert "SECRET" not in told + caplog.text + repr([vars(one) for one in caplog.records])
