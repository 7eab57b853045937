"""A small riff peer on bare grpc.aio that can be told to be wrong: what the conformance suite has to catch.

Without faults it is right in all that the scenarios of `test_runner` judge. It shares no code with the invoker.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.conformance.named import FUNCTIONS, Named

END = object()
JSON = "application/json"


class Refused(Exception):
    """The call ends with this status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Broken(Exception):
    """What an input raises when the call has failed."""


class Peer:
    """A server of every named function; ``async with`` starts and stops it.

    Args:
        faults: What it does wrong; see `tests.conformance.test_runner`.
        serves: The one function it serves; empty: the one that the metadata names.
        address: To listen at; empty: a free port.
    """

    def __init__(self, *faults: str, serves: str = "", address: str = "") -> None:
        self.serves = serves
        self.faults = frozenset(faults)
        self.marks: Counter[str] = Counter()
        self.turn = asyncio.Lock()
        self.memory: list[Any] = []
        self.orphans: set[asyncio.Task[None]] = set()
        self.deaths: set[asyncio.Task[None]] = set()
        self.address = address

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(self._invoke)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("streaming.Riff", {"Invoke": handler}),)
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port(self.address or '127.0.0.1:0')}"
        await self._server.start()
        return self

    async def die(self) -> None:
        """Stop listening and drop every call, as when a process ends."""
        self.deaths.add(asyncio.create_task(self._server.stop(None)))
        await asyncio.Event().wait()

    async def __aexit__(self, *exc: object) -> None:
        for orphan in self.orphans:
            orphan.cancel()
        await asyncio.gather(*self.orphans, return_exceptions=True)
        await self._server.stop(0)
        await asyncio.gather(*self.deaths)  # a stop that is cancelled fails every other one

    def has(self, fault: str) -> bool:
        """Whether it was told to be wrong in this way."""
        return fault in self.faults

    async def _invoke(self, requests: AsyncIterator[bytes], context: Any) -> None:
        name = self.serves or dict(context.invocation_metadata()).get("invoker-function", "")
        if name not in FUNCTIONS:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no function {name}")
        if self.has("begins late") and name != "marks":  # no fault: a machine may be busy
            await asyncio.sleep(0.1)
        async with AsyncExitStack() as stack:
            if self.has("one call at a time") and name != "marks":
                await stack.enter_async_context(self.turn)
            try:
                await Conversation(self, FUNCTIONS[name], requests, context.write).serve()
            except Refused as refused:
                await context.abort(refused.code, refused.text)

    def violation(self, text: str) -> Refused:
        """A protocol violation."""
        prefix = "Grammar" if self.has("own prefix") else "Invoker: Protocol Violation"
        return Refused(grpc.StatusCode.UNKNOWN, f"{prefix}: {text}")


class Conversation:
    """One call."""

    def __init__(
        self, peer: Peer, named: Named, requests: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self.peer = peer
        self.named = named
        self.requests = requests
        self.write = write
        bound = 256 if peer.has("bounded inputs") else 0
        self.inputs: list[asyncio.Queue[Any]] = [asyncio.Queue(bound) for _ in range(max(named.inputs, 1))]
        self.outbox: asyncio.Queue[Any] = asyncio.Queue(0 if peer.has("no back-pressure") else 16)
        self.held: list[tuple[int, Any]] = []
        self.kept: dict[int, Any] = {}
        self.refused: Refused | None = None

    async def serve(self) -> None:
        """Read the StartFrame, then feed the function and forward its outputs."""
        signal = self._parse(await anext(self.requests, None))
        first: list[pb.InputSignal] = []
        if signal.WhichOneof("frame") == "start":
            await self._check(signal.start)
        elif self.peer.has("no start needed") and signal.WhichOneof("frame") == "data":
            first.append(signal)
        else:
            raise self.peer.violation("the first signal has to be a start")
        if self.peer.has("starts at first data"):
            first.append(self._parse(await anext(self.requests, None)))
        for held in first:
            await self._take(held)
        await self._run()

    def _parse(self, message: bytes | None) -> pb.InputSignal:
        if message is None:
            raise self.peer.violation("half-close before the start")
        try:
            return pb.InputSignal.FromString(message)
        except DecodeError as error:
            raise self.peer.violation(f"undecodable signal: {error}") from None

    async def _check(self, start: pb.StartFrame) -> None:
        if len(start.expectedContentTypes) != self.named.outputs:
            raise self.peer.violation(f"{len(start.expectedContentTypes)} types for {self.named.outputs} outputs")
        for index, accept in enumerate(start.expectedContentTypes):
            if JSON not in accept and "*" not in accept and not self.peer.has("late negotiation"):
                text = f"Invoker: Not Acceptable: Unsupported content-type '{accept}' for output #{index}"
                if not self.peer.has("refuses at once"):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(anext(self.requests, None), 1.0)
                raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text)
        if not start.inputNames and self.peer.has("serves no sources"):
            raise Refused(grpc.StatusCode.INTERNAL, "undefined")
        self.accepts = start.expectedContentTypes

    async def _run(self) -> None:
        feeding = asyncio.create_task(self._feed())
        running = asyncio.create_task(self._produce())
        writing = asyncio.create_task(self._forward())
        for task in (feeding, running, writing):
            task.add_done_callback(_seen)
        try:
            await asyncio.wait({feeding, running}, return_when=asyncio.FIRST_COMPLETED)
            if self.refused is not None:
                raise self.refused
            await running
            await self.outbox.put(END)
            await writing
            if self.peer.has("waits for half-close"):
                await feeding
        finally:
            feeding.cancel()
            if self.peer.has("end before cancel"):
                self._tell(END)
                await asyncio.wait({running}, timeout=1.0)
            if self.peer.has("deaf to cancel"):
                self.peer.orphans.add(running)
            else:
                running.cancel()
            writing.cancel()
            ending = [feeding, writing] if self.peer.has("deaf to cancel") else [feeding, writing, running]
            await asyncio.gather(*ending, return_exceptions=True)

    async def _feed(self) -> None:
        ended: Any = END
        try:
            async for message in self.requests:
                await self._take(self._parse(message))
            if not self.peer.has("believes half-closes"):
                await asyncio.sleep(0.02)  # a cancel looks like a normal end first
        except BaseException as error:
            ended = Broken()
            self.refused = error if isinstance(error, Refused) else None
            raise
        finally:
            if not self.peer.has("hangs on half-close"):
                self._tell(ended if not self.peer.has("end before cancel") else END)
            await asyncio.sleep(0.05 if ended is not END else 0)

    def _tell(self, ended: Any) -> None:
        for queue in self.inputs:
            with suppress(asyncio.QueueFull):  # the fault of bounded inputs
                queue.put_nowait(ended)

    async def _take(self, signal: pb.InputSignal) -> None:
        case = signal.WhichOneof("frame")
        if case is None and self.peer.has("ignores empty signals"):
            return
        if case == "start" and self.peer.has("accepts a second start"):
            return
        if case != "data":
            start = signal.start
            raise self.peer.violation(
                f"a second start: {list(start.expectedContentTypes)} {list(start.inputNames)} {list(start.outputNames)}"
            )
        index = 0 if self.peer.has("ignores the index") else signal.data.argIndex
        if not 0 <= index < len(self.inputs):
            if self.peer.has("dies of an index"):
                await self.peer.die()
            raise self.peer.violation(f"argIndex {index} of {len(self.inputs)} inputs")
        value = signal.data.payload if signal.data.contentType != JSON else self._decode(signal.data.payload)
        if self.peer.has("reorders input"):  # swaps each value with the one after it
            if index not in self.kept:
                self.kept[index] = value
                return
            await self.inputs[index].put(value)
            value = self.kept.pop(index)
        await self.inputs[index].put(value)

    def _decode(self, payload: bytes) -> Any:
        try:
            return json.loads(payload)
        except ValueError as error:
            if self.peer.has("repairs payloads"):
                return 0
            raise Refused(grpc.StatusCode.UNKNOWN, f"Invoker: Bad Input Signal: {error}") from None

    async def _values(self, queue: asyncio.Queue[Any]) -> AsyncIterator[Any]:
        while (value := await queue.get()) is not END:
            if isinstance(value, Broken):
                raise value
            yield value

    async def _produce(self) -> None:
        inputs = [self._values(queue) for queue in self.inputs]
        outputs = self.named.body(self.peer, *inputs[: self.named.inputs])
        streams: Sequence[AsyncIterator[Any]] = outputs if isinstance(outputs, tuple) else (outputs,)
        try:
            if self.peer.has("one output after the other"):
                for index, stream in enumerate(streams):
                    await self._emit(index, stream)
                return
            tasks = [asyncio.create_task(self._emit(index, stream)) for index, stream in enumerate(streams)]
            try:
                when = (
                    asyncio.FIRST_COMPLETED if self.peer.has("ends with the first output") else asyncio.FIRST_EXCEPTION
                )
                done, _ = await asyncio.wait(tasks, return_when=when)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        except Refused:
            raise
        except (ValueError, Broken, StopAsyncIteration) as error:
            if not self.peer.has("swallows errors"):
                await self.outbox.join()
                raise self._unexpected(error) from None

    def _unexpected(self, error: Exception) -> Refused:
        text = f"{type(error).__name__}: {error}"
        if self.peer.has("leaks tracebacks"):
            text = traceback.format_exc()
        if not self.peer.has("long details"):
            text = text.encode()[:1300].decode(errors="ignore")
        return Refused(grpc.StatusCode.UNKNOWN, f"Invoker: Unexpected Error: {text}")

    async def _emit(self, index: int, stream: AsyncIterator[Any]) -> None:
        try:
            async for value in stream:
                await self.outbox.put((index, value))
                await asyncio.sleep(0)
        finally:
            if hasattr(stream, "aclose"):
                await stream.aclose()

    async def _forward(self) -> None:
        count = 0
        while (item := await self.outbox.get()) is not END:
            count += 1
            index, value = item
            dropped = self.peer.has("drops a frame") and count == 2
            if dropped or (self.peer.has("loses the tail") and count > 900):
                self.outbox.task_done()
                continue
            frame = pb.OutputFrame(
                payload=value if isinstance(value, bytes) else json.dumps(value).encode(),
                contentType="*/*" if self.peer.has("wildcard type") else JSON,
                resultIndex=index + self.peer.has("wrong result index"),
            )
            if not self.peer.has("loses values before an error"):
                await self.write(pb.OutputSignal(data=frame).SerializeToString())
                self.outbox.task_done()
            else:
                self.held.append((index, frame))
                self.outbox.task_done()
        for _, frame in self.held:
            await self.write(pb.OutputSignal(data=frame).SerializeToString())


def _seen(task: asyncio.Task[None]) -> None:
    """Take note of an error that a cancelled call had no more time to look at."""
    if not task.cancelled():
        task.exception()
