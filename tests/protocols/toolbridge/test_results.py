"""Responses by request ids: no call runs twice, and a failed one may run again."""

from __future__ import annotations

import gc

import pytest

from invoker.codecs.anyvalue import pack
from invoker.core.budget import ProcessBudget
from invoker.core.store import Reason
from invoker.errors import Overloaded
from invoker.protocols.toolbridge import results as module
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.results import Entry, Results, results_of
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall
from tests.protocols.toolbridge.calls import emitted, host_sessions_with, square
from tests.protocols.toolbridge.hosts import SECOND, TestHostSessions, known


def same(x: str) -> str:
    return x


def test_T070_responses_of_64_mib_are_kept_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of them may be large."""
    monkeypatch.setattr(module, "_MOST_BYTES", 500)
    kept = Cache()
    for number in range(3):
        kept.done(f"r{number}", "x" * 150)
    assert sorted(kept.results._entries) == ["r1", "r2"]
    assert kept.results._size <= 500


class Cache:
    """The results of one session."""

    def __init__(self, memory: ProcessBudget | None = None) -> None:
        self.host_sessions: TestHostSessions = host_sessions_with(square, same)
        self.host_sessions.memory = memory or self.host_sessions.memory
        self.session = known(self.host_sessions, enable_caching=1)
        self.results: Results = results_of(self.host_sessions, self.session)

    def run(self, request_id: str, value: object = 1) -> ToolCall:
        asked = Asked("s1", "square" if value == 1 else "same", [pack(value)], request_id=request_id)
        call = ToolCall(self.host_sessions, asked, "execute")
        self.results.begin(asked, call)
        call.begin(self.session)
        return call

    def done(self, request_id: str, value: object = 1) -> None:
        call = self.run(request_id, value)
        call.emitted(emitted(value))
        call.finish(None)

    def find(self, request_id: str, value: object = 1, tool: str = "square") -> Entry | None:
        return self.results.find(Asked("s1", tool, [pack(value)], request_id=request_id), self.host_sessions.now)


def test_T070_a_call_that_runs_is_found_and_later_its_response():
    """The response is the same bytes each time."""
    kept = Cache()
    assert kept.find("r") is None
    call = kept.run("r")
    found = kept.find("r")
    assert found is not None
    assert (found.call, found.response) == (call, None)
    call.emitted(emitted(1))
    call.finish(None)
    assert found.response is not None
    again = kept.find("r")
    assert again is not None
    assert again.response == found.response


def test_T070_a_response_is_kept_for_five_minutes():
    """Then the id is new."""
    kept = Cache()
    kept.done("r")
    kept.host_sessions.now += 300 * SECOND
    assert kept.find("r") is not None
    kept.host_sessions.now += 1
    assert kept.find("r") is None


def test_T070_what_is_kept_is_given_back_after_five_minutes():
    """Though nobody sends the id again; a call that runs is still known."""
    memory = ProcessBudget(100 * MIB)
    kept = Cache(memory)
    assert kept.results.expire(kept.host_sessions.now) is None
    running = kept.run("running")
    kept.done("a", "x" * (8 * MIB))
    kept.host_sessions.now += 100 * SECOND
    kept.done("b", "x" * MIB)
    assert kept.results.expire(kept.host_sessions.now) == 200
    assert sorted(kept.results._entries) == ["a", "b", "running"]
    kept.host_sessions.now += 200 * SECOND + 1
    assert kept.results.expire(kept.host_sessions.now) == pytest.approx(100)
    assert sorted(kept.results._entries) == ["b", "running"]
    assert memory.held <= 2 * MIB
    kept.host_sessions.now += 101 * SECOND
    assert kept.results.expire(kept.host_sessions.now) == 300
    running.finish(Overloaded("full"))
    assert kept.results.expire(kept.host_sessions.now) is None


def test_T070_a_thousand_responses_are_kept():
    """The one that was least recently used goes first."""
    kept = Cache()
    for number in range(1000):
        kept.done(f"r{number}")
    assert kept.find("r0") is not None
    kept.done("one more")
    assert kept.find("r0") is not None
    assert kept.find("r1") is None
    assert kept.find("r2") is not None


def test_responses_take_a_bounded_number_of_bytes(monkeypatch):
    """The older ones make room."""
    monkeypatch.setattr(module, "_MOST_BYTES", 250)
    kept = Cache()
    for name in ("a", "b", "c"):
        kept.done(name, "x" * 50)
    assert kept.find("a", "x" * 50, "same") is None
    assert kept.find("c", "x" * 50, "same") is not None


@pytest.mark.parametrize(("value", "tool"), [(2, "square"), (1, "same")])
def test_T071_an_id_that_was_used_for_something_else_is_refused(value, tool):
    """While that runs and afterwards."""
    kept = Cache()
    call = kept.run("r")
    for _ in range(2):
        with pytest.raises(BridgeError) as caught:
            kept.find("r", value, tool)
        assert caught.value.details["code"] == "request_id_conflict"
        call.emitted(emitted(1))
        call.finish(None)


def test_T072_a_failed_call_is_not_kept():
    """A retry runs again."""
    kept = Cache()
    kept.run("r").finish(Overloaded("full"))
    assert kept.find("r") is None


def test_T017_the_ids_of_two_sessions_are_unrelated():
    """Each has its own."""
    kept = Cache()
    kept.done("r")
    other = known(kept.host_sessions, "s2", enable_caching=1)
    assert (
        results_of(kept.host_sessions, other).find(
            Asked("s2", "square", [pack(1)], request_id="r"), kept.host_sessions.now
        )
        is None
    )


MIB = 1 << 20


def test_T070_what_sessions_keep_counts_as_memory_and_the_one_that_keeps_most_loses_it() -> None:
    """Sixty-four MiB of each of forty sessions are 2.5 GiB; the others keep theirs."""
    memory = ProcessBudget(47 * MIB // 4)
    large, small = Cache(memory), Cache(memory)
    large.done("a", "x" * (3 * MIB))
    large.done("b", "x" * (3 * MIB))
    small.done("c", "x" * (3 * MIB))
    assert 9 * MIB <= memory.held <= 11 * MIB
    running = large.run("d")
    small.done("e", "x" * (2 * MIB))
    assert large.find("a", "x" * (3 * MIB), "same") is None
    assert large.find("d") is not None, "a call that runs is still known"
    assert small.find("c", "x" * (3 * MIB), "same") is not None
    assert small.find("e", "x" * (2 * MIB), "same") is not None
    assert memory.held <= 7 * MIB
    running.emitted(emitted(1))
    running.finish(None)
    large.done("f", "x" * MIB)
    assert large.find("f", "x" * MIB, "same") is not None


def test_T070_a_session_that_is_gone_gives_back_what_it_kept() -> None:
    """Also what a call brings that ends behind it."""
    memory = ProcessBudget(10 * MIB)
    kept = Cache(memory)
    kept.done("a", "x" * MIB)
    late = kept.run("b", "x" * MIB)
    assert memory.held > MIB
    kept.host_sessions.remove(kept.session, Reason.DROPPED)
    assert memory.held == 0
    late.emitted(emitted("x" * MIB))
    late.finish(None)
    assert memory.held == 0


def test_T070_a_call_that_outlives_its_session_still_has_its_response() -> None:
    """It was let go of with what was kept, so that whoever waited was answered with null."""
    kept = Cache()
    call = kept.run("r")
    entry = kept.find("r")
    assert entry is not None
    kept.host_sessions.remove(kept.session, Reason.DROPPED)
    call.emitted(emitted("mine"))
    call.finish(None)
    assert entry.response is not None
    assert b"mine" in entry.response
    assert call.entry is entry


def alive() -> int:
    """How much there is of what sessions keep."""
    return sum(type(one) in (Entry, Results, ToolCall) for one in gc.get_objects())


@pytest.mark.parametrize("is_well", [True, False])
def test_T070_a_session_that_is_gone_leaves_nothing_to_the_collector(is_well: bool) -> None:
    """Neither responses nor calls and their arguments are in a circle, which may stay for minutes."""
    gc.collect()
    before = alive()

    def run() -> None:
        kept = Cache()
        call = kept.run("r")
        if is_well:
            call.emitted(emitted(1))
        call.finish(None if is_well else Overloaded("full"))
        kept.host_sessions.remove(kept.session, Reason.DROPPED)
        kept.host_sessions.ended.clear()

    gc.disable()
    try:
        run()
        assert alive() == before
    finally:
        gc.enable()
