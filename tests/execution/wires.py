"""A wire in memory for direct conversations, and one call of a function over it in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import Close, Trailers
from invoker.errors import Cancelled, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.thread.direct import DirectConversation
from invoker.protocols.riff.session import RiffSession
from tests.execution.memory import driver_of

LIMIT_S = 5.0

Event = Callable[[], None]


def square(x: int) -> int:
    return x * x


def gen(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * x


def sink(xs: Iterator[int]) -> None:
    for _ in xs:
        pass


class SweeperByHand:
    """Keeps conversations; tests call their `sweep` with the time that it shall be."""

    def __init__(self) -> None:
        self.conversations: list[Any] = []

    def add(self, conversation: Any) -> None:
        self.conversations.append(conversation)


def direct_driver(*functions: Any, **settings: Any) -> Driver:
    """A driver whose sweeper does nothing by itself."""
    driver = driver_of(*functions, **settings)
    driver.sweeper = SweeperByHand()
    return driver


class MemoryWire:
    """What a line is to a conversation: events on a queue, one thread at a time that waits there.

    Attributes:
        sent: Each frame with its hold, in the order of writing.
        status: The first one that was sent, as (code, detail).
        trailers: What was sent with it.
        told: Set once there is a status.
        waiting: Set while a thread waits for an event.
    """

    def __init__(self, *, is_slow: bool = False) -> None:
        self.lock = threading.Lock()
        self.changed: threading.Condition | None = None
        self.is_gone = self.is_ended = self.is_accepted = False
        self.settles = True
        self.sent: list[tuple[bytes, bool]] = []
        self.status: tuple[int, str] | None = None
        self.trailers: Trailers = ()
        self.waiting = threading.Event()
        self.told = threading.Event()
        self.arrived = threading.Condition()
        self.is_done = False
        self._is_slow = is_slow
        self._sending = self._polling = False
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._frames: deque[bytes] = deque()

    # The peer's side.

    def send(self, frame: bytes) -> None:
        self._events.put(lambda: self._frames.append(frame))

    def half_close(self) -> None:
        self._events.put(lambda: setattr(self, "is_ended", True))

    def cancel(self) -> None:
        self._events.put(lambda: setattr(self, "is_gone", True))

    def take(self) -> None:
        """Read one frame, on a slow wire."""
        self._events.put(lambda: setattr(self, "_sending", False))

    # For the thread that runs the function.

    def accepted(self) -> None:
        self.is_accepted = True

    def read(self) -> bytes | None:
        self._polling = True
        while not self._frames and not self.is_ended and not self.is_gone:
            self._wait()()
        self._polling = False
        self._fail_if_gone()
        return self._frames.popleft() if self._frames else None

    def await_frame(self, delay_s: float) -> bool:
        until = time.monotonic() + delay_s
        while not self._frames and not self.is_ended and not self.is_gone:
            try:
                self._events.get(timeout=max(0.0, until - time.monotonic()))()
            except Empty:
                break
        return bool(self._frames) or self.is_gone

    def write(self, frame: bytes, *, hold: bool) -> None:
        self._polling = True
        while self._sending and not self.is_gone:
            self._wait()()
        self._polling = False
        with self.lock:
            self.glance()
        self._fail_if_gone()
        self._send(frame, hold)

    def look_ahead(self) -> tuple[bytes, ...]:
        return tuple(self._frames)

    def refuse(self, code: int, detail: str) -> bool:
        with self.lock:
            self.send_status(code, detail)
        self.is_gone = True
        return True

    def look(self) -> bool:
        with self.lock:
            self.glance()
        return self.is_gone

    @property
    def is_idle(self) -> bool:
        return self._polling

    def finish(self, code: int, detail: str, trailers: Trailers = ()) -> bool:
        with self.lock:
            self.send_status(code, detail, trailers)
            self.glance()
        return self.is_done

    def cut(self, code: int, detail: str) -> None:
        self.status = self.status or (code, detail)
        self.cancel()

    # For several threads, with the lock held.

    def share(self) -> threading.Condition:
        self.changed = threading.Condition(self.lock)
        return self.changed

    def send_now(self, frame: bytes) -> bool:
        self.glance()
        if self._sending or self.is_gone or self.status is not None:
            return False
        self._send(frame, hold=False)
        return True

    def glance(self) -> None:
        while not self._polling:
            try:
                self._events.get_nowait()()
            except Empty:
                return

    def next_frame(self) -> bytes | None:
        return self._frames.popleft() if self._frames else None

    def ask(self) -> None:
        assert not self.is_ended
        assert not self.is_gone

    def turn(self) -> None:
        assert self.changed is not None
        if self._polling:
            self.changed.wait()
            return
        self._polling = True
        self.lock.release()
        try:
            event = self._wait()
        finally:
            self.lock.acquire()
            self._polling = False
        event()
        self.changed.notify_all()

    def await_room(self) -> None:
        while self._sending and not self.is_gone:
            self.turn()
        self._fail_if_gone()

    def put(self, frame: bytes) -> None:
        assert not self._sending
        self._send(frame, hold=False)

    def send_status(self, code: int, detail: str, trailers: Trailers = ()) -> None:
        if self.status is None:
            self.status = (code, detail)
            self.trailers = trailers
            self.told.set()
            self._events.put(lambda: setattr(self, "is_done", True))

    # Inside.

    def _wait(self) -> Event:
        self.waiting.set()
        event = self._events.get()
        self.waiting.clear()
        return event

    def _send(self, frame: bytes, hold: bool) -> None:
        assert self.status is None, "a frame behind the status"
        self._sending = self._is_slow
        with self.arrived:
            self.sent.append((frame, hold))
            self.arrived.notify_all()

    def _fail_if_gone(self) -> None:
        if self.is_gone:
            raise Cancelled("the peer cancelled, or is gone")


class Call:
    """One conversation in a thread: what the caller sends is put, what it gets is collected."""

    def __init__(
        self, driver: Driver, *, deadline: float | None = None, is_slow: bool = False, session: Any = None
    ) -> None:
        self.driver = driver
        self.wire = MemoryWire(is_slow=is_slow)
        self.conversation = DirectConversation(session or RiffSession(), self.wire, driver, deadline=deadline)
        self.close = Close()
        self._result: list[InvocationError | None] = []
        self._thread = threading.Thread(target=self._run, name="invoker-call", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.close = close = self.conversation.run()
        error = close.error
        code, detail = (0, "") if error is None else (int(error.status), str(error))
        self.wire.finish(code, detail, close.trailers)
        self._result.append(error)

    def start(self, *types: str) -> Call:
        frame = pb.StartFrame(expectedContentTypes=types or ("application/json",))
        return self.raw(pb.InputSignal(start=frame).SerializeToString())

    def data(self, payload: bytes, index: int = 0) -> Call:
        frame = pb.InputFrame(payload=payload, contentType="application/json", argIndex=index)
        return self.raw(pb.InputSignal(data=frame).SerializeToString())

    def raw(self, frame: bytes) -> Call:
        self.wire.send(frame)
        return self

    def half_close(self) -> Call:
        self.wire.half_close()
        return self

    def cancel(self) -> Call:
        self.wire.cancel()
        return self

    def await_pull(self) -> None:
        """Wait until a thread waits for the peer."""
        assert self.wire.waiting.wait(LIMIT_S)

    def outputs(self, count: int) -> list[bytes]:
        """The first ``count`` payloads, once they have been written."""
        with self.wire.arrived:
            assert self.wire.arrived.wait_for(lambda: len(self.wire.sent) >= count, LIMIT_S)
        return self.payloads()[:count]

    def end(self) -> InvocationError | None:
        """How the conversation ended; nothing is left of it then."""
        self._thread.join(LIMIT_S)
        assert self._result, "the conversation has not ended"
        assert not self.driver.engine.running
        return self._result[0]

    def payloads(self, index: int | None = None) -> list[bytes]:
        """What all outputs, or one of them, have got so far."""
        got = [pb.OutputSignal.FromString(frame).data for frame, _ in self.wire.sent]
        return [one.payload for one in got if index is None or one.resultIndex == index]

    def holds(self) -> list[bool]:
        """Which frames were held."""
        return [hold for _, hold in self.wire.sent]
