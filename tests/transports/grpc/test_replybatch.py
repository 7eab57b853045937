"""Replies of quick calls that leave together: when they are held, and that nothing they would have to wait for is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from invoker.core.steps import Close
from invoker.execution.thread.leader_follower import LeaderFollower, Turn
from invoker.transports.grpc import replybatch as module
from invoker.transports.grpc.operations import DONE
from invoker.transports.grpc.replybatch import ReplyBatch
from invoker.transports.grpc.unarycall import ArrivalStats, UnaryCall
from tests.execution.wires import direct_driver, square

HERE = SimpleNamespace(completion_type=DONE)
NOTHING = SimpleNamespace(completion_type=object())


class Queue:
    """Gives the events of a list, and says what was sent when somebody waited for one.

    Attributes:
        waits: How many replies had been sent at each wait.
    """

    def __init__(self, world: World, *events: Any) -> None:
        self._world, self._events = world, list(events)
        self.waits: list[int] = []

    def poll(self, deadline: float | None = None) -> Any:
        """The next event, which comes at last if it is waited for."""
        if self._events:
            return self._events.pop(0)
        if deadline is not None:
            return NOTHING
        self.waits.append(len(self._world.sent))
        self._world.now += 0.001
        return HERE


class World:
    """One leading thread, with a clock that tests set.

    Attributes:
        sent: The replies, in the order in which they left.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.sent: list[list[bytes]] = []
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.driver = direct_driver(square)
        self.leader_follower = LeaderFollower(self.driver.threads, self.driver.sweeper, lambda _: None)
        self.turn = Turn(self.leader_follower, self.driver.sweeper)
        self.leader_follower.leader = self.turn
        self.held = ReplyBatch(self.turn, lambda _thread_call, frames, _close: self.sent.append(frames))

    def call(self) -> UnaryCall:
        return UnaryCall(SimpleNamespace(start_server_batch=lambda *_: 0), Queue(self), self.driver, self.turn)

    def serve(self, queue: Queue, *frames: bytes, took_s: float = 0.0, call: UnaryCall | None = None) -> None:
        """Take the next call of a queue, and answer it."""
        self.held.next(queue)
        self.now += took_s
        self.held.finish(call or self.call(), list(frames), Close())


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_replies_to_calls_that_were_waiting_leave_before_the_next_one_is_waited_for(world):
    """In their order."""
    queue = Queue(world, HERE, HERE, HERE)
    for reply in (b"a", b"b", b"c"):
        world.serve(queue, reply)
    assert world.sent == []
    world.held.next(queue)
    assert world.sent == [[b"a"], [b"b"], [b"c"]]
    assert queue.waits == [3]


def test_a_call_that_was_waited_for_is_answered_at_once(world):
    """Nobody else gains by a delay."""
    queue = Queue(world)
    world.serve(queue, b"a")
    assert queue.waits == [0]
    assert world.sent == [[b"a"]]


def test_so_many_replies_are_held_and_for_so_long(world):
    """Otherwise calls that are always there would keep them for ever."""
    queue = Queue(world, *[HERE] * 100)
    for number in range(module._MOST):
        world.serve(queue, b"%d" % number)
    assert world.sent == []
    world.serve(queue, b"one more")
    assert len(world.sent) == module._MOST
    world.now += module._LONGEST_S * 1.1
    world.serve(queue, b"later")
    assert world.sent[-1] == [b"one more"]


def test_what_took_long_or_is_large_or_in_parts_is_answered_at_once(world):
    """So is what a thread answers that has passed the lead on, as it may not come back to what it holds."""
    queue = Queue(world, *[HERE] * 5)
    world.serve(queue, b"slow", took_s=module._QUICK_S * 2)
    large = bytes(16 * 1024 + 1)
    world.serve(queue, large)
    world.serve(queue, b"two", b"parts")
    long = world.call()
    long._thread_call = object()  # an ordinary call has taken over
    world.serve(queue, b"long", call=long)
    world.leader_follower.leader = None
    world.serve(queue, b"led before")
    assert world.sent == [[b"slow"], [large], [b"two", b"parts"], [b"long"], [b"led before"]]


def test_what_is_held_leaves_when_the_lead_is_passed_on(world):
    """Which the sweeper does when a call behind it has been in user code for a beat."""
    world.serve(Queue(world, HERE), b"a")
    assert world.sent == []
    world.leader_follower.leader = None  # somebody else leads already
    world.turn.pass_on()
    assert world.sent == [[b"a"]]
    world.held.let_go()
    assert world.sent == [[b"a"]]


@pytest.mark.parametrize(("event", "stats"), [(NOTHING, ArrivalStats()), (HERE, None)])
def test_what_is_held_leaves_before_the_rest_of_a_call_is_waited_for_or_a_large_one_read(world, event, stats):
    """The wait may take milliseconds, and so may its values."""
    world.serve(Queue(world, HERE), b"a")
    call, sent = world.call(), []

    def poll(until: float = 0.0) -> Any:
        if until or event is HERE:
            sent.append(list(world.sent))
        message = bytes(17 * 1024) if event is HERE else None
        return SimpleNamespace(
            completion_type=event.completion_type, batch_operations=[SimpleNamespace(message=lambda: message)]
        )

    call.queue = SimpleNamespace(poll=poll)
    assert call.take(lambda: stats, takes_one=True) is (event is HERE)
    assert world.sent == [[b"a"]]
    assert sent == [[[b"a"]] if event is NOTHING else []]
