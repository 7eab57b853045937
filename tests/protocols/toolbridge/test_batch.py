"""BatchExecuteTools as a pure session: what begins when, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import Unserializable, pack, unpack
from invoker.core.limits import LimitReached
from invoker.core.steps import Answered, Ask, Await, Close, Finished, Open, Send, Step
from invoker.core.store import Look, Reason, Refused
from invoker.errors import FunctionError, ShuttingDown, Status
from invoker.protocols.toolbridge.batch import BatchExecuteTools
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.toolcall import ToolCall
from tests.protocols.toolbridge.calls import emitted, host_sessions_with
from tests.protocols.toolbridge.hosts import SECOND, TestHostSessions, a_space, began, known

FULL = LimitReached("full", code="concurrency", scope="function", limit=1)


def an_item(index: int, tool: str = "square", *args: object) -> pb.ToolCallItem:
    given = [any_pb2.Any.FromString(pack(one)) for one in args or (index,)]
    return pb.ToolCallItem(index=index, tool_id=tool, args=given)


class Batch:
    """One rpc, and what it has opened."""

    def __init__(
        self, items: Sequence[pb.ToolCallItem], host_sessions: TestHostSessions | None = None,
        *, session: dict[str, int] | None = None,
        **config: Any,
    ) -> None:  # fmt: skip
        self.host_sessions = host_sessions or host_sessions_with()
        if host_sessions is None:
            known(self.host_sessions, **(session or {}))
        self.session = BatchExecuteTools(self.host_sessions)
        self.opened: list[str] = []
        self.others: list[Step] = []
        self.response: pb.BatchToolCallResponse | None = None
        self.close: Close | None = None
        request = pb.BatchToolCallRequest(session_id="s1", batch_id="b", items=items, config=pb.BatchConfig(**config))
        self.take(self.session.receive(request.SerializeToString()))

    def take(self, steps: Sequence[Step]) -> None:
        for one in steps:
            if isinstance(one, Open):
                self.opened.append(one.id)
            elif isinstance(one, Send):
                self.response = pb.BatchToolCallResponse.FromString(one.frame)
            elif isinstance(one, Close):
                self.close = one
            elif isinstance(one, (Ask, Await)):
                self.others.append(one)

    def done(self, key: str, value: object = 1) -> None:
        self.take(self.session.deliver(emitted(value, key=key)))
        self.finish(key)

    def finish(self, key: str, error: Any = None) -> None:
        self.take(self.session.deliver(Finished(key, error)))

    @property
    def told(self) -> list[tuple[int, Any]]:
        """Index and result, or the type of the error."""
        assert self.response is not None
        return [
            (one.index, unpack(one.result.SerializeToString()) if one.success else one.error.type)
            for one in self.response.results
        ]

    @property
    def status(self) -> tuple[Status, str]:
        assert self.close is not None
        assert self.close.error is not None
        ((_, info),) = self.close.trailers
        assert isinstance(info, bytes)
        return self.close.error.status, pb.ErrorInfo.FromString(info).details["code"]


def test_T089_items_run_one_by_one_in_order():
    """Unless the caller wants more."""
    batch = Batch([an_item(one) for one in (7, 8, 9)])
    assert batch.opened == ["0"]
    batch.done("0", "a")
    batch.done("1", "b")
    assert batch.opened == ["0", "1", "2"]
    assert batch.response is None
    batch.done("2", "c")
    assert batch.told == [(7, "a"), (8, "b"), (9, "c")]
    assert batch.close == Close()
    assert batch.response is not None
    assert batch.response.batch_id == "b"


@pytest.mark.parametrize(("count", "asked", "expected"), [(20, 0, 10), (3, 0, 3), (20, 15, 15), (3, 15, 3)])
def test_T089_as_many_run_at_once_as_is_asked_for(count, asked, expected):
    """Ten, if nothing is."""
    batch = Batch([an_item(one) for one in range(count)], parallel=True, max_parallel=asked)
    assert len(batch.opened) == expected
    batch.done("0")
    assert len(batch.opened) == min(count, expected + 1)


def test_T088_results_are_in_the_order_of_the_items():
    """Whatever ends first; the index is only echoed."""
    batch = Batch([an_item(one) for one in (5, -3, 2**31 - 1)], parallel=True)
    for key in ("2", "0", "1"):
        batch.done(key, key)
    assert batch.told == [(5, "0"), (-3, "1"), (2**31 - 1, "2")]


def test_T090_nothing_begins_after_a_failure_if_the_caller_wants_that():
    """What did not begin has no result."""
    batch = Batch([an_item(one) for one in range(4)], stop_on_error=True)
    batch.done("0")
    batch.finish("1", FunctionError("no"))
    assert batch.opened == ["0", "1"]
    assert batch.told == [(0, 1), (1, "InternalError")]
    metrics = batch.response.metrics
    assert (metrics.total_items, metrics.successful_items, metrics.failed_items) == (4, 1, 1)


def test_T090_what_runs_when_another_fails_ends_and_counts():
    """In parallel."""
    batch = Batch([an_item(one) for one in range(6)], parallel=True, max_parallel=3, stop_on_error=True)
    batch.finish("1", FunctionError("no"))
    assert batch.response is None
    batch.done("2")
    batch.done("0")
    assert batch.told == [(0, 1), (1, "InternalError"), (2, 1)]
    assert batch.opened == ["0", "1", "2"]


def test_T091_one_bad_item_does_not_fail_the_batch():
    """An unknown tool and a bad argument are results."""
    batch = Batch([an_item(0), an_item(1, "nope"), an_item(2, "square", "x"), an_item(3)])
    batch.done("0")
    batch.done("3")
    assert batch.told == [(0, 1), (1, "ToolNotFound"), (2, "ValidationError"), (3, 1)]
    assert [one.via for one in batch.host_sessions.ended] == ["batch"] * 4


def test_T092_a_batch_of_nothing_is_empty():
    """Its mean is 0, not NaN."""
    batch = Batch([])
    assert batch.told == []
    assert batch.response is not None
    assert batch.response.metrics.avg_duration_ms == 0.0


def test_T092_too_many_items_are_refused_before_any_runs():
    """A hundred are taken."""
    batch = Batch([an_item(one) for one in range(101)])
    assert batch.status == (Status.INVALID_ARGUMENT, "batch_size")
    assert batch.opened == []
    assert Batch([an_item(one) for one in range(100)]).opened == ["0"]


def test_T093_a_batch_that_contradicts_itself_is_refused():
    """Two items of one index; a negative number."""
    assert Batch([an_item(1), an_item(1)]).status == (Status.INVALID_ARGUMENT, "duplicate_index")
    assert Batch([an_item(1)], max_parallel=-1).status == (Status.INVALID_ARGUMENT, "range")


def test_T089_an_item_waits_for_a_place_in_the_session():
    """Beside others that run there; of its own items the end of one is enough."""
    host_sessions = host_sessions_with()
    session = known(host_sessions, max_concurrent_tools=2)
    other = began(host_sessions, session)
    batch = Batch([an_item(one) for one in range(3)], host_sessions, parallel=True)
    assert batch.opened == ["0"]
    assert batch.others == []
    batch.done("0")
    assert batch.opened == ["0", "1"]
    third = Batch([an_item(0)], host_sessions)
    assert third.opened == []
    (wait,) = third.others
    assert isinstance(wait, Await)
    host_sessions.end(other)
    third.take(third.session.deliver(Answered("room", None)))
    assert third.opened == ["0"]
    batch.done("1")
    assert batch.opened == ["0", "1", "2"]
    batch.done("2")
    assert [one for _, one in batch.told] == [1, 1, 1]


def test_T058_an_item_waits_for_a_place_of_its_tool():
    """As long as another item runs, which may have it; else it fails."""
    batch = Batch([an_item(0), an_item(1)], parallel=True)
    batch.finish("1", FULL)
    assert batch.response is None
    batch.done("0")
    assert batch.opened == ["0", "1", "1"]
    batch.finish("1", FULL)
    assert batch.told == [(0, 1), (1, "ResourceExhausted")]
    assert batch.host_sessions.sessions["s1"].tools == 0


def test_T096_a_rate_is_not_waited_for():
    """Some items fail."""
    batch = Batch([an_item(0), an_item(1)], parallel=True)
    batch.finish("1", LimitReached("slow", code="rate_limit", scope="party", limit=1, retry_after_s=1))
    batch.done("0")
    assert batch.told == [(0, 1), (1, "ResourceExhausted")]


def test_T094_items_that_have_no_time_left_are_told():
    """Those that have ended keep their results; one that runs may take what is left."""
    batch = Batch([an_item(one) for one in range(3)])
    batch.host_sessions.now += 590 * SECOND
    opened = batch.session.deliver(Finished("0"))[0]
    assert isinstance(opened, Open)
    assert opened.timeout_s == 10.0
    batch.host_sessions.now += 10 * SECOND
    batch.finish("1")
    assert batch.told == [(0, None), (1, None), (2, "TimeoutError")]


def test_T095_the_metrics_are_of_the_batch():
    """The whole is wall time, the mean is of the items that ran."""
    batch = Batch([an_item(0), an_item(1)])
    batch.done("0")
    batch.host_sessions.now += 2 * SECOND
    batch.done("1")
    assert batch.response is not None
    assert batch.response.metrics.total_duration_ms == 2000
    assert 0 < batch.response.metrics.avg_duration_ms < 2000


def test_T095_the_mean_is_of_the_items_that_ran():
    """Those that were never begun have no part in it."""
    batch = Batch([an_item(number) for number in range(4)], stop_on_error=True)
    batch.host_sessions.now += SECOND
    batch.finish("0", FunctionError("no"))
    assert batch.response is not None
    (result,) = batch.response.results
    took_ms = [one.took_s * 1000 for one in batch.host_sessions.ended]
    assert len(took_ms) == 1
    assert result.metrics.duration_ms == int(took_ms[0])
    assert batch.response.metrics.avg_duration_ms == pytest.approx(took_ms[0])


def test_a_batch_of_an_unknown_session_is_refused_by_the_status():
    """Once the store has said so (T-160); a session that it knows goes on."""
    batch = Batch([an_item(0)], host_sessions_with())
    assert batch.others == [Ask("session", Look("toolbridge/s1"))]
    batch.take(batch.session.deliver(Answered("session", Refused(Reason.UNKNOWN))))
    assert batch.status == (Status.NOT_FOUND, "unknown")
    batch = Batch([an_item(0)], host_sessions_with())
    batch.take(batch.session.deliver(Answered("session", a_space())))
    assert batch.opened == ["0"]


@pytest.mark.parametrize(
    ("most", "count"), [(1000, 2), *((most, count) for most in (100_000, 10_000_000) for count in (2, 10, 100))]
)
def test_T062_T091_results_that_do_not_fit_are_errors_of_their_items(most, count):
    """What fits beside those that ended before is kept, none is held twice, and the whole is no more than is sent."""
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=most))
    known(host_sessions)
    batch = Batch([an_item(n) for n in range(count)], host_sessions)
    for number in range(count):
        batch.done(str(number), "x" * (most // 4))
        assert sum(map(len, batch.session._results.values())) < most
        assert not any(any(call.items) for call in batch.session._ended.values())
    assert batch.opened == [str(n) for n in range(count)]
    kept = [one for _, one in batch.told if one != "ResourceExhausted"]
    assert kept == ["x" * (most // 4)] * len(kept)
    assert 1 <= len(kept) < 4
    assert batch.response.metrics.successful_items == len(kept)
    assert batch.response.metrics.failed_items == count - len(kept)
    codes = {one.error.details["code"] for one in batch.response.results if not one.success}
    assert codes == ({"result_too_large"} if count > len(kept) else set())
    assert not [one for one in host_sessions.ended if one.error is not None], "the calls themselves were well"
    if most > 1000:
        assert batch.response.ByteSize() <= most


def test_T062_a_small_result_fits_behind_a_large_one():
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=100_000))
    known(host_sessions)
    batch = Batch([an_item(n) for n in range(3)], host_sessions)
    for key, size in (("0", 10), ("1", 200_000 // 2), ("2", 10)):
        batch.done(key, "x" * size)
    assert [one for _, one in batch.told] == ["x" * 10, "ResourceExhausted", "x" * 10]


def test_T062_long_errors_are_cut_where_all_together_do_not_fit():
    """And results have their place before them."""
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=1_000_000))
    known(host_sessions)
    batch = Batch([an_item(n) for n in range(100)], host_sessions)
    for number in range(99):
        batch.finish(str(number), FunctionError("\u00fc" * 20_000))
    batch.done("99", "x" * 400_000)
    assert [one for _, one in batch.told] == ["InternalError"] * 99 + ["x" * 400_000]
    assert batch.response.ByteSize() <= 1_000_000
    assert len(batch.response.results[0].error.message) > 1000
    assert len(batch.response.results[98].error.message) < 300


def test_T090_a_result_that_does_not_fit_is_a_failure():
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=1000))
    known(host_sessions)
    batch = Batch([an_item(n) for n in range(3)], host_sessions, stop_on_error=True)
    batch.done("0", "x" * 900)
    assert batch.told == [(0, "ResourceExhausted")]


def test_T104_a_stream_that_is_no_list_is_an_error_of_its_item(monkeypatch):
    """Not of the batch."""
    batch = Batch([an_item(n) for n in range(2)])

    def refuse(_call):
        raise Unserializable("is a DataFrame within a list")

    with monkeypatch.context() as patched:
        patched.setattr(ToolCall, "result", refuse)
        batch.done("0")
    batch.done("1", 7)
    assert batch.told == [(0, "InternalError"), (1, 7)]


def test_a_process_that_leaves_refuses_the_batch():
    """The caller may try another one."""
    batch = Batch([an_item(0), an_item(1)])
    batch.finish("0", ShuttingDown("bye"))
    assert batch.close is not None
    assert batch.close.error is not None
    assert batch.close.error.status is Status.UNAVAILABLE
    assert batch.opened == ["0"]
