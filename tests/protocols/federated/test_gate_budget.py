"""Room for reports, and the budget of the process in which they count."""

from __future__ import annotations

from invoker.core.budget import ProcessBudget
from invoker.errors import Status
from tests.protocols.federated.gates import HUGE, STEP, Served


def test_F081_reports_count_in_the_budget_of_the_process_as_they_come():
    """Before they are complete, while they wait for their round, and no longer."""
    memory = ProcessBudget(HUGE)
    served = Served(HUGE, memory)
    for upto in range(2 * STEP, 16 * STEP, STEP):
        assert served.ask("a", 16 * STEP, upto)
        assert upto <= memory.held <= upto + max(STEP, upto // 8)
    assert served.ask("a", 16 * STEP, 16 * STEP)
    served.keep("a", 15 * STEP)
    assert 15 * STEP <= memory.held <= 18 * STEP
    assert served.come("b", 10 * STEP) == 10 * STEP
    served.leave("b")
    assert memory.held <= 18 * STEP
    served.leave("a")
    assert memory.held == 0


def test_F081_a_report_that_came_whole_counts_too():
    """It is not asked for."""
    memory = ProcessBudget(HUGE)
    served = Served(HUGE, memory)
    served.keep("a", 4 * STEP)
    assert memory.held == 4 * STEP
    served.leave("a")
    assert memory.held == 0


def test_F081_reports_for_which_the_process_has_no_room_are_put_out():
    """What holds it may hold it for long; each is refused, and has given back what it had."""
    memory = ProcessBudget(20 * STEP)
    other = memory.share()
    other.grow(10 * STEP)
    served = Served(HUGE, memory)
    assert served.come("a", 8 * STEP) == 8 * STEP
    assert served.come("b", 8 * STEP) < 8 * STEP
    assert (served.out, set(served.why)) == (["b"], {Status.RESOURCE_EXHAUSTED})
    assert served.gate.held == 8 * STEP
    served.leave("a")
    assert memory.held == other.charged


def test_F081_those_that_wait_are_put_out_when_it_is_their_turn_and_the_process_is_full():
    """All of them, though each makes room for the next one, and nobody is left waiting."""
    memory = ProcessBudget(4000 * STEP)
    served = Served(4 * STEP, memory)
    served.keep("kept", 4 * STEP)
    waiting = [f"w{number}" for number in range(2000)]
    assert not any(served.ask(key, 4 * STEP, 2 * STEP) for key in waiting)
    other = memory.share()
    other.grow(memory.most_bytes - memory.held - STEP)
    served.leave("kept")
    assert served.out + served.resumed != []
    for key in served.resumed:
        served.leave(key)
    assert served.gate.waiting == 0
    other.close()
    assert memory.held == 0
