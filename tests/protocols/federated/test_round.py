"""Rounds of one task: selection, reporting, aggregation, commit, and every way in which they fail."""

from __future__ import annotations

from invoker.protocols.federated.aggregating import Begin, Enough
from invoker.protocols.federated.words import ReportTaken
from tests.protocols.federated.house import House, population, task


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
