"""Who takes part: eligibility, attestation, tokens, and the choice among tasks."""

from __future__ import annotations

from invoker.protocols.federated.words import Checkin, Eligibility
from tests.protocols.federated.house import House, population


def test_F040_an_eligibility_task_is_handed_out_with_an_id_of_its_own():
    """The id is the same for all clients; a population without such a task says so."""
    desk = House(population("iris", eligibility=True), population("other"))
    got = [desk.desk.eligibility(desk.client(), Checkin("iris")) for _ in range(2)]
    assert isinstance(got[0], Eligibility)
    assert got[0] == got[1]
    assert (got[0].plan.data, got[0].checkpoint.data, got[0].spec) == (b"which", b"start", b"spec")
    assert len(got[0].execution_id) >= 20
    assert desk.desk.eligibility(desk.client(), Checkin("other")) is None
