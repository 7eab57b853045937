"""`BatchExecuteTools`: many tool calls in one rpc, with one response for all (T-088 to T-096).

Theory. An item is *due* until its call begins, then *running* until the call ends, and then has a *result*. Items begin
in their order; the request and the session limit how many run at once. If the session is full, the next item waits for
a place. If the tool of an item has reached its own limit of calls, the item waits until another item ends. A wait fails
only at the time limit of the batch. A result has the same position as its item. If the caller asks to stop after a
failure, items that have not begun get no result (D24). A result that cannot be sent, or is too large beside the earlier
ones, is an error of its item. An error of the batch itself is reported by the status of the rpc (D25).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.limits import LimitReached
from invoker.core.steps import Ask, Await, Emitted, Event, Finished, Step
from invoker.errors import InvocationError
from invoker.protocols.toolbridge.errors import ENDS_RPC, BridgeError, Kind, translated
from invoker.protocols.toolbridge.host_sessions import HostSession, NoPlace
from invoker.protocols.toolbridge.reply import metrics_of
from invoker.protocols.toolbridge.sessions import found_session, question_about
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall
from invoker.protocols.toolbridge.unary import UnarySession
from invoker.protocols.toolbridge.wire import BatchRequest

_MOST: Final = 100
_TIMEOUT_MS: Final = 600_000
_AT_ONCE: Final = 10
_ITEM_BYTES: Final = 4096
"""Bytes that are reserved for the numbers of one item, and for the short form of an error."""
_BOUND: Final = "bound/"
"""The prefix of the key of `Answered` after the arguments of an item were read."""


class BatchExecuteTools(UnarySession[Any]):
    """Translates one ``BatchExecuteTools`` rpc; the module's docstring has the rules."""

    reads, answers = BatchRequest, pb.BatchToolCallResponse
    _request: Any
    _session: HostSession

    def asked(self, request: Any) -> Sequence[Step]:
        """Check the batch, and look for its host session."""
        self._request = request
        self._began_ns = self.host_sessions.now_ns()
        config, count = request.config, len(request.items)
        if count > _MOST:
            text = f"the batch has {count} items and exceeds the limit of {_MOST}"
            raise BridgeError(Kind.VALIDATION, text, code="batch_size", field="items")
        if len({one.index for one in request.items}) < count:
            text = "two items of the batch have the same index"
            raise BridgeError(Kind.VALIDATION, text, code="duplicate_index", field="items.index")
        if config.max_parallel < 0:
            text = f"config.max_parallel is {config.max_parallel}; expected a number that is not negative"
            raise BridgeError(Kind.VALIDATION, text, code="range", field="config.max_parallel")
        self._at_once = (config.max_parallel or min(_AT_ONCE, count)) if config.parallel else 1
        self._due = deque(range(count))
        self._running: dict[int, ToolCall] = {}
        self._ended: dict[int, ToolCall] = {}
        self._bound: dict[int, ToolCall] = {}
        self._size = request.ByteSize()
        self._results: dict[int, bytes] = {}
        self._unsent: dict[int, InvocationError] = {}
        self._given = 0
        self._is_waiting = self._is_stopped = False
        session = self.host_sessions.find(request.session_id)
        if session is None:
            return (Ask("session", question_about(self.host_sessions, request.session_id)),)
        self._session = session
        return self._go_on()

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Continue after the host session was found, the arguments of an item were read, or a place may be free."""
        if key == "room":
            self._is_waiting = False
            return self._go_on()
        if key.startswith(_BOUND):
            number = int(key.removeprefix(_BOUND))
            self._bound[number] = self._running.pop(number)
            self._due.appendleft(number)
            return self._go_on()
        self._session = found_session(self.host_sessions, self._request.session_id, value)
        return self._go_on()

    def heard(self, event: Event) -> Sequence[Step]:
        """Handle an event of an item: a value, or its end."""
        if not isinstance(event, (Emitted, Finished)):
            return ()
        number = int(event.id)
        call = self._running.get(number)
        if call is None:
            return ()
        if isinstance(event, Emitted):
            return call.emitted(event)
        error = event.error
        if isinstance(error, LimitReached) and error.code == "concurrency" and len(self._running) > 1:
            del self._running[number]
            self.host_sessions.end(call)
            self._due = deque(sorted((*self._due, number)))  # the item waits until another one has ended
            return ()
        call.finish(error)
        if isinstance(error, ENDS_RPC):
            return self.refuse(error)
        self._over(number, call)
        return self._go_on()

    # Private helpers.

    def _go_on(self) -> Sequence[Step]:
        """Begin as many items as possible; send the response when no item is left."""
        steps = tuple(self._begin_due())
        if self._running or self._is_waiting or self.is_closed:
            return steps
        return (*steps, *self._answer())

    def _begin_due(self) -> Iterator[Step]:
        while self._due and len(self._running) < self._at_once and not (self._is_waiting or self._is_stopped):
            number = self._due.popleft()
            left_ms = self._left_ms()
            call = self._call(number)
            if left_ms <= 0:
                text = f"the batch took longer than {_TIMEOUT_MS // 1000} s, before this item began"
                call.finish(BridgeError(Kind.TIMEOUT, text, timeout_ms=_TIMEOUT_MS))
                self._over(number, call)
                continue
            call.most_ms = left_ms
            aside = call.aside(self._size, f"{_BOUND}{number}")
            if aside is not None:
                self._running[number] = call
                yield aside
                continue
            try:
                steps = call.begin(self._session)
            except NoPlace:
                self._due.appendleft(number)
                if not self._running:
                    self._is_waiting = True
                    yield Await("room", partial(self.host_sessions.keeper.room, self._session, left_ms / 1000))
                return
            if steps:
                self._running[number] = call
                yield from steps
            else:
                self._over(number, call)

    def _call(self, number: int) -> ToolCall:
        item = self._request.items[number]
        asked = Asked(self._request.session_id, item.tool_id, item.args, item.kwargs, metadata=self.metadata)
        call = ToolCall(self.host_sessions, asked, "batch", key=str(number))
        if number in self._bound:
            call.bind(self._bound[number])
        return call

    def _left_ms(self) -> int:
        return _TIMEOUT_MS - (self.host_sessions.now_ns() - self._began_ns) // 1_000_000

    def _over(self, number: int, call: ToolCall) -> None:
        self._running.pop(number, None)
        self._bound.pop(number, None)
        self._ended[number] = call
        if call.error is None:
            try:
                self._keep(number, call.result())
            except InvocationError as error:
                self._unsent[number] = translated(error).kept()
        call.release()
        if self._error_of(number) is not None and self._request.config.stop_on_error:
            self._is_stopped = True

    def _error_of(self, number: int) -> InvocationError | None:
        """The error of an item: its call has failed, or its result cannot be sent."""
        return self._ended[number].error or self._unsent.get(number)

    def _keep(self, number: int, result: bytes) -> None:
        """Keep the result of an item for the response.

        Raises:
            BridgeError: The response would be too large with this result and a short entry for each missing one
                (T-062).
        """
        size = len(result)
        if size > self._left:
            most = self.host_sessions.settings.message_bytes
            raise BridgeError(
                Kind.EXHAUSTED,
                f"the result has {size} bytes, and {self._left} bytes are left of the limit of {most} "
                "for a batch; send "
                "fewer items, or call the tool by itself",
                code="result_too_large", size=size, limit=most,
            )  # fmt: skip
        self._given += size
        self._results[number] = result

    @property
    def _left(self) -> int:
        """How many bytes of the response remain for values and long errors; short entries are already reserved."""
        most = self.host_sessions.settings.message_bytes
        return max(0, most - min(_ITEM_BYTES * len(self._request.items), most // 2) - self._given)

    def _answer(self) -> Sequence[Step]:
        request = self._request
        response = pb.BatchToolCallResponse(batch_id=request.batch_id)
        for number in sorted(self._ended):
            self._tell(response.results.add(), request.items[number].index, number)
        metrics, results = response.metrics, response.results
        metrics.total_items = len(request.items)
        metrics.successful_items = sum(one.success for one in results)
        metrics.failed_items = len(results) - metrics.successful_items
        metrics.total_duration_ms = (self.host_sessions.now_ns() - self._began_ns) // 1_000_000
        took_ms = [call.took_s * 1000 for call in self._ended.values()]
        metrics.avg_duration_ms = sum(took_ms) / len(took_ms) if took_ms else 0.0
        self._ended, self._results, self._request = {}, {}, None
        return self.reply(response)

    def _tell(self, result: Any, index: int, number: int) -> None:
        error = self._error_of(number)
        result.index = index
        result.metrics.CopyFrom(metrics_of(self._ended[number]))
        result.success = error is None
        if error is None:
            result.result.MergeFromString(self._results[number])
        else:
            told = translated(error)
            info = told.info()
            if (size := info.ByteSize()) > self._left:
                info, size = pb.ErrorInfo.FromString(told.trailer()), 0
            self._given += size
            result.error.CopyFrom(info)
