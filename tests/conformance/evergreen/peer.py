"""A small Evergreen peer on bare grpc.aio that can be told to be wrong: what the Evergreen chapters have to catch.

Without faults it is right in all that the scenarios of `test_scenarios` judge. It shares no code with the invoker.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.evergreen import evergreen_pb2 as pb
from tests.conformance.evergreen.named import FUNCTIONS, REQUIRED, Named
from tests.conformance.evergreen.nodes import INVALID, Nodes, Refused, frag
from tests.conformance.evergreen.running import Running

END = object()


def act(text: str) -> Refused:
    """An invalid action."""
    return Refused(INVALID, f"Evergreen: Invalid Action: {text}")


class Peer:
    """A server of the named actions; ``async with`` starts and stops it.

    Args:
        faults: What it does wrong; see `test_scenarios`.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = frozenset(faults)
        self.marks: Counter[str] = Counter()
        self.address = ""
        self.orphans: set[asyncio.Task[None]] = set()
        self.turn = asyncio.Lock()
        self.shared: Nodes | None = None

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(self._start)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("evergreen.v2.EvergreenService", {"StartSession": handler}),)
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for orphan in self.orphans:
            orphan.cancel()
        await asyncio.gather(*self.orphans, return_exceptions=True)
        await self._server.stop(0)

    def has(self, fault: str) -> bool:
        """Whether it was told to be wrong in this way."""
        return fault in self.faults

    async def _start(self, requests: AsyncIterator[bytes], context: Any) -> None:
        await context.send_initial_metadata(())
        try:
            await Session(self, requests, context.write).serve()
        except Refused as refused:
            text = refused.text.replace("Evergreen: ", "") if self.has("own prefix") else refused.text
            await context.abort(refused.code, text)


class Session:
    """One session."""

    def __init__(self, peer: Peer, requests: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[None]]) -> None:
        self.peer = peer
        self.requests = requests
        self.write = write
        self.owned: set[str] = set()
        self.nodes = Nodes(peer.has, self.owned)
        if peer.has("shares nodes between sessions"):
            self.nodes = peer.shared = peer.shared or self.nodes
        self.nodes.on_wait = self._look_for_misses
        self.running: set[asyncio.Task[None]] = set()
        self.is_half_closed = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.outbox: asyncio.Queue[Any] = asyncio.Queue(0 if peer.has("no back-pressure") else 16)

    async def serve(self) -> None:
        """Read, run, write; end with the first failure or when all is done."""
        writing = asyncio.create_task(self._forward())
        reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait({reading, self.failed}, return_when=asyncio.FIRST_COMPLETED)
            while reading.done() and not self.failed.done() and reading.exception() is None and self.running:
                await asyncio.wait({self.failed, *self.running}, return_when=asyncio.FIRST_COMPLETED)
            if not self.peer.has("loses fragments before a failure") or not self.failed.done():
                await self.outbox.put(END)
                await writing
            if self.failed.done():
                self.failed.result()
            reading.result()
        finally:
            spared = self.peer.has("deaf to cancel") or (self.peer.has("failures spare others") and self.failed.done())
            self.peer.orphans |= self.running if spared else set()
            for task in {reading, writing} | (set() if spared else self.running):
                task.cancel()
            ending = {reading, writing} if spared else {reading, writing, *self.running}
            await asyncio.gather(*ending, return_exceptions=True)
            if self.failed.done():
                self.failed.exception()

    async def _read(self) -> None:
        async for data in self.requests:
            try:
                message = pb.SessionMessage.FromString(data)
            except DecodeError as error:
                raise frag(f"undecodable: {error}") from None
            if not data and self.peer.has("takes an empty message for the end"):
                break
            for fragment in message.node_fragments:
                await self.nodes.take(fragment)
            for action in message.actions:
                self._accept(action)
        if self.peer.has("half-close cancels"):
            raise Refused(grpc.StatusCode.CANCELLED, "")
        if not self.peer.has("takes a cancel for a half-close"):
            await asyncio.sleep(0.02)  # a cancel looks like a normal end first
        self.is_half_closed = True
        if self.peer.has("takes a cancel for a half-close"):
            await self._end_all()
        self._look_for_misses()
        async with self.nodes.moved:
            self.nodes.moved.notify_all()

    async def _end_all(self) -> None:
        """End every open node, so that actions see the end of their input."""
        for id_, node in list(self.nodes.by_id.items()):
            if node.final is None:
                await self.nodes.take(pb.NodeFragment(id=id_, seq=max(node.fragments, default=-1) + 1), is_ours=True)
        await asyncio.sleep(0.05)

    def _look_for_misses(self) -> None:
        is_time = self.is_half_closed or self.peer.has("misses before the half-close")
        stuck = {task: id_ for task, id_ in self.nodes.waits.items() if task in self.running}
        if not is_time or not self.running or len(stuck) < len(self.running) or self.peer.has("never misses"):
            return
        names = [id_ for id_ in stuck.values() if id_ not in self.owned] or list(stuck.values())
        text = f"Evergreen: Incomplete Input: {names[0]!r}"
        self._fail(Refused(grpc.StatusCode.FAILED_PRECONDITION, text))

    def _fail(self, refused: Refused) -> None:
        if not self.failed.done():
            self.failed.set_exception(refused)

    def _accept(self, action: pb.Action) -> None:
        named = FUNCTIONS.get(action.name)
        if named is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"Evergreen: Action Not Found: {action.name!r}")
        if action.target_spec.id and not self.peer.has("ignores targets"):
            raise Refused(grpc.StatusCode.NOT_FOUND, f"Evergreen: Target Not Found: {action.target_spec.id!r}")
        self._check_inputs(action, named)
        self._check_outputs(action, named)
        self.owned.update(each.id for each in action.outputs)
        task = asyncio.create_task(Running(self, action, named).run())
        self.running.add(task)
        task.add_done_callback(self._ended)

    def _check_inputs(self, action: pb.Action, named: Named) -> None:
        names = [each.name for each in action.inputs]
        if any(not each.name or not each.id for each in (*action.inputs, *action.outputs)):
            raise act("an empty name or id")
        unknown = [name for name in names if name not in named.params]
        if unknown and "" not in named.params and not self.peer.has("takes unknown inputs"):
            raise act(f"no parameter {unknown[0]!r}")
        if len(set(names)) < len(names):
            raise act("a name comes twice")
        missing = [name for name, default in named.params.items() if name and default is REQUIRED and name not in names]
        if missing:
            raise act(f"no input {missing[0]!r}")

    def _check_outputs(self, action: pb.Action, named: Named) -> None:
        names, ids = [each.name for each in action.outputs], [each.id for each in action.outputs]
        is_known = len(named.outputs) == 1 or set(names) <= set(named.outputs)
        if not is_known or len(names) > len(named.outputs) or len(set(names)) < len(names):
            raise act("names of outputs")
        used = self.owned | set(self.nodes.by_id) | {each.id for each in action.inputs}
        seen = {id_ for id_ in used if id_ in self.owned or self.nodes.by_id.get(id_, _NOBODY).fragments}
        taken = (seen | {each.id for each in action.inputs}) & set(ids) or len(set(ids)) < len(ids)
        if taken and not self.peer.has("takes used output ids"):
            raise act("output id already in use")

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, Refused) else self._told(error))
        self._look_for_misses()

    def _told(self, error: BaseException) -> Refused:
        text = f"{type(error).__name__}: {error}"
        if self.peer.has("leaks tracebacks"):
            text = "".join(traceback.format_exception(error))
        return Refused(
            grpc.StatusCode.UNKNOWN, f"Evergreen: Action Failed: {text.encode()[:1200].decode(errors='ignore')}"
        )

    async def send(self, fragment: pb.NodeFragment) -> None:
        """Keep a fragment of an output and send it."""
        await self.nodes.take(fragment, is_ours=True)
        await self.outbox.put(fragment)

    async def _forward(self) -> None:
        while (fragment := await self.outbox.get()) is not END:
            message = pb.SessionMessage(node_fragments=[fragment])
            if self.peer.has("sends actions"):
                message.actions.add(name="upper")
            await self.write(message.SerializeToString())


class _Nobody:
    fragments: dict[int, pb.NodeFragment] = {}  # noqa: RUF012  # never filled


_NOBODY = _Nobody()
