"""Rounds with secure aggregation, with a server that does what a test says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import FunctionError, ShuttingDown, Status
from invoker.protocols.federated.aggregating import Enough
from invoker.protocols.federated.backing import DEVICE_BYTES
from invoker.protocols.federated.config import SecAggConfig
from invoker.protocols.federated.messages import Over, Rejected, ReportIn, ReportTaken, SecAggTerms, Secure
from invoker.protocols.federated.secagg.events import Drop, Failed, Reason, Summed
from invoker.protocols.federated.secure import SecureRound, serialize
from tests.protocols.federated.house import Client, House, population, task

KEYS = secagg_pb.ClientToServerWrapperMessage(advertise_keys=secagg_pb.AdvertiseKeys())
HELLO = secagg_pb.ServerToClientWrapperMessage(unmasking_request=secagg_pb.UnmaskingRequest())


class Server:
    """Writes down what it is told."""

    def __init__(self, owner: SecureRound, terms: SecAggTerms, size: int) -> None:
        self.owner, self.terms, self.size = owner, terms, size
        self.round = 0
        self.heard: list[Any] = []

    def start(self) -> None:
        self.heard.append("start")

    def receive(self, index: int, message: secagg_pb.ClientToServerWrapperMessage) -> None:
        self.heard.append((index, message.WhichOneof("message_content")))

    def lost(self, index: int) -> None:
        self.heard.append(("lost", index))

    def elapsed(self) -> None:
        self.heard.append("elapsed")
        self.round = min(3, self.round + 1)

    def abandon(self) -> None:
        self.heard.append("abandon")


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    made: list[Server] = []

    def new_server(self: SecureRound, terms: SecAggTerms, size: int) -> Server:
        made.append(Server(self, terms, size))
        return made[-1]

    monkeypatch.setattr(SecureRound, "_new_server", new_server)
    return made


def house(**numbers: Any) -> House:
    of = {key: numbers.pop(key) for key in ("min_visible", "dropout_rate", "round_timeout_s") if key in numbers}
    secagg = SecAggConfig(vectors={"w": (5, 3)}, **of)
    return House(population("iris", task(secagg=secagg, **{"min_clients": 2, "report_timeout_s": 100.0, **numbers})))


def three(**more: Any) -> tuple[House, list[Client]]:
    coordinator = house(goal_clients=3, max_clients=3, **more)
    return coordinator, coordinator.clients(3)


def total(*values: int, clients: int = 3) -> Summed:
    return Summed({"w": np.array(values, np.uint64)}, clients)


def test_F089_an_offer_has_the_terms_of_secure_aggregation(servers):
    """F-091: the most clients of a round are expected; the threshold is that of those there are."""
    coordinator = house(min_clients=3, goal_clients=10, max_clients=20, dropout_rate=0.2)
    made = coordinator.clients(10)
    coordinator.passes(60)
    assert made[0].offer.secagg == SecAggTerms({"w": (5, 3)}, expected=10, threshold=8, min_visible=8)
    assert servers[0].terms == made[0].offer.secagg
    assert servers[0].size == 10
    coordinator = house(
        min_clients=3, goal_clients=10, max_clients=20, over_selection=1.5, min_visible=4, dropout_rate=0.2
    )
    made = coordinator.clients(5)
    coordinator.passes(60)
    assert made[0].offer.secagg == SecAggTerms({"w": (5, 3)}, expected=15, threshold=4, min_visible=4)


def test_F091_the_most_clients_of_a_round_are_expected(servers):
    """Whoever is there: the goal with over-selection, but not above max_clients."""
    for most, expected in ((20, 15), (12, 12)):
        coordinator = house(min_clients=3, goal_clients=10, max_clients=most, over_selection=1.5, dropout_rate=0.2)
        made = coordinator.clients(5)
        coordinator.passes(60)
        assert made[0].offer.secagg.expected == expected >= servers[-1].size == 5


def test_F129_a_round_with_fewer_than_may_be_seen_does_not_begin(servers):
    """It could only fail; all are rejected, as where there are too few."""
    coordinator = house(min_clients=2, goal_clients=5, max_clients=5, min_visible=4)
    made = coordinator.clients(3)
    coordinator.passes(60)
    assert [one.notices for one in made] == [[Rejected("too_few")]] * 3
    assert not servers


def test_F130_the_function_gets_one_frame_with_the_sum(servers):
    """A Checkpoint of aggregands, and how many clients are in it; then all that are in are answered, and not before."""
    coordinator, made = three()
    (server,) = servers
    assert server.heard == ["start"]
    for one in reversed(made):
        coordinator.coordinator.secure(one, KEYS, None)
    assert server.heard[1:] == [(2, "advertise_keys"), (1, "advertise_keys"), (0, "advertise_keys")]
    assert not coordinator.round().reports
    server.owner._ended(total(4, 0, 1))
    (report,) = coordinator.round().reports
    assert isinstance(coordinator.round().words[-1], Enough)
    told = pb.Checkpoint.FromString(report.message.payload)
    assert list(told.aggregands["w"].values) == [4, 0, 1]
    assert told.aggregands["w"].bitwidth == 3
    facts = {"population": "iris", "task": "train", "round": "1", "ordinal": "0", "num_clients": "3"}
    assert dict(report.message.headers) == facts
    assert [one.ending for one in made] == [None] * 3
    coordinator.round().take()
    assert [one.ending for one in made] == [ReportTaken()] * 3
    coordinator.round().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.outcome, record.ok, record.summed) == ("committed", 3, 3)


def test_F082_what_no_device_can_take_is_not_committed(servers):
    """Not of a secure round either."""
    coordinator, _ = three()
    servers[0].owner._ended(total(1, 2, 3))
    coordinator.round().take().finish(bytes(DEVICE_BYTES))
    assert not coordinator.commits
    assert coordinator.coordinator.tally.records[-1].reason == "too_large"


def test_F094_messages_come_before_the_answer(servers):
    """The last message of secure aggregation is in the mailbox before ReportTaken."""
    coordinator, made = three()
    servers[0].owner._send(1, HELLO)
    servers[0].owner._ended(total(1))
    coordinator.round().take()
    assert made[1].notices[1:] == [Secure(HELLO), ReportTaken()]
    assert made[0].notices[1:] == [ReportTaken()]


def test_F133_each_of_the_four_rounds_has_its_own_time(servers):
    """A quarter of the report's; it begins anew when the server goes on by itself, and also in the last round."""
    coordinator, made = three()
    (server,) = servers
    coordinator.passes(10)
    coordinator.coordinator.secure(made[1], KEYS, None)
    coordinator.passes(14.9)
    server.round = 1
    coordinator.coordinator.secure(made[0], KEYS, None)
    coordinator.passes(24.9)
    assert "elapsed" not in server.heard
    coordinator.passes(0.1)
    assert server.round == 2
    coordinator.passes(25)
    assert server.round == 3
    coordinator.passes(24.9)
    assert server.heard.count("elapsed") == 2
    coordinator.passes(25.1)
    assert server.heard.count("elapsed") == 4


def test_F133_a_message_does_not_give_a_round_more_time(servers):
    """Only the next round has its own."""
    coordinator, made = three()
    for one in made:
        coordinator.passes(8)
        coordinator.coordinator.secure(one, KEYS, None)
    assert "elapsed" not in servers[0].heard
    coordinator.passes(1)
    assert servers[0].heard[-1] == "elapsed"


def test_F133_the_round_after_a_device_is_lost_has_its_own_time(servers):
    """It may have been the last one that was waited for."""
    coordinator, made = three()
    coordinator.passes(20)
    lost = servers[0].lost
    servers[0].lost = lambda index: (lost(index), setattr(servers[0], "round", 1))
    made[0].leave()
    coordinator.passes(24)
    assert "elapsed" not in servers[0].heard
    coordinator.passes(1)
    assert servers[0].heard[-1] == "elapsed"


def test_F133_the_time_can_be_set(servers):
    """By round_timeout_s; the report's time counts no more."""
    coordinator, _ = three(round_timeout_s=500.0)
    coordinator.passes(499)
    assert servers[0].heard == ["start"]
    coordinator.passes(1)
    assert servers[0].heard == ["start", "elapsed"]


def test_F133_time_also_begins_anew_after_a_computation(servers):
    """The server goes on when a job is done."""
    coordinator, _ = three()
    (server,) = servers
    jobs: list[tuple[Any, Any]] = []
    coordinator.compute = lambda job, then: jobs.append((job, then))
    got: list[int] = []

    def then(result: int) -> None:
        got.append(result)
        server.round = 1

    server.owner._compute(lambda: 7, then)
    coordinator.passes(20)
    job, done = jobs.pop()
    done(job())
    assert got == [7]
    coordinator.passes(24)
    assert "elapsed" not in server.heard


@pytest.mark.parametrize(
    ("reason", "status", "what"),
    [
        (Drop.SILENT_SHARES, Status.ABORTED, "late"),
        (Drop.INVALID_PUBLIC_KEY, Status.INVALID_ARGUMENT, "invalid"),
        (Drop.UNEXPECTED, Status.INVALID_ARGUMENT, "invalid"),
        (Drop.CLIENT_ABORT, Status.CANCELLED, "dropped"),
    ],
)
def test_F125_a_client_that_is_put_out_ends_alone(servers, reason, status, what):
    """Its conversation ends with a status, behind what it is told; the round goes on and counts why, by round."""
    coordinator, made = three()
    (server,) = servers
    server.owner._send(1, HELLO)
    server.round = 1
    server.owner._drop(1, reason)
    assert made[1].notices[1] == Secure(HELLO)
    assert made[1].error.status == status
    made[1].leave()
    assert ("lost", 1) not in server.heard
    server.owner._ended(total(1, clients=2))
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, getattr(record, what), record.accepted) == (2, 1, 3)
    assert coordinator.coordinator.tally.secure_drops == {("iris", "train", 0, reason.value): 1}


def test_F124_a_round_that_has_lost_too_many_fails(servers):
    """Whoever is still there hears ABORTED after its message, and the function is told to end."""
    coordinator, made = three()
    for number in range(3):
        servers[0].owner._send(number, HELLO)
    servers[0].owner._ended(Failed(Reason.TOO_FEW, "too few"))
    for one in made:
        assert one.notices[1] == Secure(HELLO)
        assert one.error.status == Status.ABORTED
    assert coordinator.round().is_abandoned
    (record,) = coordinator.coordinator.tally.records
    assert (record.outcome, record.reason, record.cut) == ("failed", "too_few_clients", 3)
    assert not coordinator.commits


def test_F013_a_client_that_leaves_is_lost_to_secure_aggregation(servers):
    """Once; F-122: the sum may contain what it has sent before."""
    coordinator, made = three()
    made[2].leave()
    assert servers[0].heard == ["start", ("lost", 2)]
    servers[0].owner._drop(2, Drop.SILENT_KEYS)
    assert coordinator.coordinator.tally.secure_drops == {("iris", "train", 0, "connection_closed"): 1}
    servers[0].owner._ended(total(1, clients=3))
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.dropped, record.summed) == (2, 1, 3)


@pytest.mark.parametrize("step", range(4))
def test_F013_a_client_that_cancels_counts_as_a_dropout_of_its_round(servers, step):
    """CONNECTION_CLOSED, in each of the four; one that ends in another way counts as that, and only once."""
    coordinator, made = three(min_clients=2)
    servers[0].round = step
    coordinator.coordinator.secure(made[0], KEYS, None)
    made[2].leave()
    made[1].report(b"update")
    made[1].leave()
    made[0].leave()
    closed = coordinator.coordinator.tally.secure_drops
    assert closed == {("iris", "train", step, "connection_closed"): 2}


def test_F060_a_client_whose_plan_failed_is_answered_and_not_in_the_sum(servers):
    """With its masked input, or with a report alone."""
    coordinator, made = three()
    coordinator.coordinator.secure(made[0], KEYS, ReportIn(b"", status=13))
    made[1].report(status=13)
    assert [one.ending for one in made] == [ReportTaken(), ReportTaken(), None]
    assert servers[0].heard == ["start", ("lost", 0), ("lost", 1)]
    assert coordinator.coordinator.tally.codes == {13: 2}


def test_F093_a_report_without_masked_input_ends_its_client(servers):
    """INVALID_ARGUMENT; the others go on."""
    _, made = three()
    made[0].report(b"update")
    assert made[0].error.status == Status.INVALID_ARGUMENT
    assert servers[0].heard == ["start", ("lost", 0)]


def test_D15_an_update_beside_a_masked_input_is_dropped(servers):
    """The function gets the sum alone."""
    coordinator, made = three()
    coordinator.coordinator.secure(made[0], KEYS, ReportIn(b"plain update"))
    servers[0].owner._ended(total(1))
    assert b"plain" not in b"".join(one.message.payload for one in coordinator.round().reports)
    assert len(coordinator.round().reports) == 1
    assert coordinator.coordinator.tally.codes == {0: 1}
    assert +coordinator.coordinator.tally.states == {"reported": 3}


def test_F082_a_function_that_takes_too_long_with_a_sum_fails_the_round(servers):
    """Its time begins with the sum; one that is written too late is not fed."""
    coordinator, made = three()
    jobs: list[tuple[Any, Any]] = []
    coordinator.compute = lambda job, then: jobs.append((job, then))
    servers[0].owner._ended(total(1))
    coordinator.passes(59)
    assert made[0].ending is None
    coordinator.passes(1)
    assert [one.error.status for one in made] == [Status.ABORTED] * 3
    for job, then in jobs:
        then(job())
    assert not coordinator.round().reports


def test_F082_a_function_that_raises_fails_a_round_with_a_sum(servers):
    """Before it was fed all hear ABORTED."""
    coordinator, made = three()
    servers[0].owner._ended(total(1))
    coordinator.round().finish(error=FunctionError("no"))
    assert [one.error.status for one in made] == [Status.ABORTED] * 3
    assert coordinator.coordinator.tally.records[-1].cut == 3


def test_what_comes_after_the_end_of_a_round_is_not_heard(servers):
    """Jobs that end, devices that are put out, and a sum that nobody wants any more."""
    coordinator, made = three()
    (server,) = servers
    jobs: list[tuple[Any, Any]] = []
    coordinator.compute = lambda job, then: jobs.append((job, then))
    server.owner._compute(lambda: 1, lambda _: pytest.fail("the round is over"))
    coordinator.coordinator.stop()
    for job, then in jobs:
        then(job())
    server.owner._drop(0, Drop.UNEXPECTED)
    server.owner._ended(total(1))
    assert [one.notices[1:] for one in made] == [[Over(one.error)] for one in made]
    assert isinstance(made[0].error, ShuttingDown)
    assert server.heard[-1] == "abandon"
    assert coordinator.coordinator.next_tick() is None
    assert not coordinator.round().reports


def test_a_sum_of_many_elements_is_written_in_pieces():
    """All of them arrive, of each vector."""
    values = np.arange(120_001, dtype=np.uint64)
    data = serialize(Summed({"a": values, "b": values[:2]}, 2), {"a": (2**62, 120_001), "b": (2, 2)})
    told = pb.Checkpoint.FromString(data).aggregands
    assert np.array_equal(np.array(told["a"].values, np.uint64), values)
    assert (told["a"].bitwidth, told["b"].bitwidth, list(told["b"].values)) == (62, 1, [0, 1])
