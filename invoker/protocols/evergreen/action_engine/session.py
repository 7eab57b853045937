"""`ActionEngineSession`: one connection of an action-engine peer; each of its actions is an invocation.

Theory. The peer may send these, in any order and any number:

==================  ===================================================================================
fragment            its chunk is kept in the node; actions that read the node are fed
fragment __abort__  the session ends at once, without an answer
action              Open; an unknown or malformed action is answered by statuses, without other effects
empty message       half-close: running actions go on; an input fails if its node has not come
==================  ===================================================================================

For each action the peer gets the items of its outputs, each with the next place in its node; then, in one message, the
ends of the outputs and the status. After an error the outputs end with the status instead. The session closes after the
half-close, as soon as no action runs. An invalid message, or an id that is in use, ends the session with `farewell`.

Memory: an input is fed a *window* of messages ahead of its function. The rest stays in the nodes until the driver
reports, by `Wants`, that the function has taken most of the window. While many bytes wait for slow functions, `is_full`
is set, and the driver stops reading, unless a function waits for an empty input: all nodes share one connection, and
the items that this function needs may come behind items that nobody takes yet (the starvation rule, R-129).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from invoker.core.steps import (
    Cancel,
    Close,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Step,
    Terms,
    Wants,
)
from invoker.errors import Cancelled, InvocationError, LimitExceeded, ProtocolViolation, Status, StatusError
from invoker.message import EMPTY
from invoker.protocols.evergreen.action_engine.box import WireError
from invoker.protocols.evergreen.action_engine.items import chunk_of, message_of, texts
from invoker.protocols.evergreen.action_engine.nodes import Reader
from invoker.protocols.evergreen.action_engine.running import Running, acceptance, listing, refusal
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.statuses import status_chunk
from invoker.protocols.evergreen.action_engine.store import NodeStore
from invoker.protocols.evergreen.action_engine.table import Table
from invoker.protocols.evergreen.action_engine.wire import (
    ABORT,
    HALF_CLOSE,
    Action,
    Fragment,
    WireMessage,
    decode,
    encode,
)


class ActionEngineSession:
    """Translates the messages of one connection.

    Args:
        table: The table of the actions.
        metadata: The metadata of the handshake, given to the functions' contexts.
        settings: The limits of the session.

    Attributes:
        headers: Always empty, since no headers are sent.
        stalled: Inputs with items that have come but were not fed yet.
        hears_waits: Whether the driver should report for which inputs functions wait.
        is_full: Whether the driver should stop reading.
        last_frame: The frame that is sent before a normal end: the server's half-close.
    """

    def __init__(self, table: Table, metadata: Mapping[str, str], settings: ActionEngineSettings) -> None:
        self.headers: tuple[tuple[str, str], ...] = ()
        self.stalled: set[tuple[str, int]] = set()
        self.is_full = self.hears_waits = False
        self.last_frame = HALF_CLOSE
        self._table = table
        self._metadata = dict(metadata)
        self._settings = settings
        self._store = NodeStore(settings)
        self._running: dict[str, Running] = {}
        self._readers: dict[tuple[str, int], Reader] = {}
        self._starving: set[tuple[str, int]] = set()
        self._opened = 0
        self._has_ended = False

    @property
    def held(self) -> int:
        """The size of all nodes of the session, in bytes."""
        return self._store.size

    # Messages of the peer.

    def receive(self, frame: bytes | str) -> Iterable[Step]:
        """Translate one message.

        Raises:
            ProtocolViolation: The frame is text, is not a valid message, or has an id that is in use.
            LimitExceeded: The session would hold too many bytes or nodes.
        """
        if isinstance(frame, str):
            raise ProtocolViolation("a text message was received; messages are binary")
        try:
            message = decode(frame)
        except WireError as error:
            raise ProtocolViolation(f"a message of {len(frame)} bytes is not a valid WireMessage: {error}") from None
        if not message.fragments and not message.actions:
            return self.half_close()
        steps: list[Step] = []
        for fragment in message.fragments:
            if fragment.id == ABORT:
                return self._aborted()
            for reader in self._store.put(fragment):
                self._feed(reader, steps)
        for action in message.actions:
            self._accept(action, message, steps)
        return self._settled(steps)

    def half_close(self) -> Iterable[Step]:
        """Translate the half-close of the peer; running actions continue."""
        self._has_ended = self.hears_waits = True
        return () if self._running else (Close(),)

    def _aborted(self) -> Iterable[Step]:
        error = Cancelled("the peer aborted the session")
        return (*(Cancel(key, error) for key in self._running), Close(error))

    # Actions.

    def _accept(self, action: Action, message: WireMessage, steps: list[Step]) -> None:
        if any(one.id == action.id for one in self._running.values()):
            # the outputs and the status of both actions would have the same ids
            raise ProtocolViolation(f"an action with the id {action.id!a} is running; give each its own")
        self._store.check_names(action)
        if self._table.lists(action.name):
            steps.append(Send(listing(action, self._table.listing())))
            return
        try:
            self._open(action, message, steps)
        except StatusError as error:
            self._store.abandon(port[1] for port in action.inputs)
            steps.append(Send(refusal(action, error)))

    def _open(self, action: Action, message: WireMessage, steps: list[Step]) -> None:
        if len(self._running) >= self._settings.actions_running:
            raise StatusError(Status.RESOURCE_EXHAUSTED, f"{len(self._running)} actions run in this session already")
        binding = self._table.bind(action)
        self._opened += 1
        key = f"{self._opened}"
        readers = self._store.attach(key, binding.inputs, set(binding.outputs.values()))
        metadata = self._metadata | texts(message.headers) | texts(action.headers)
        steps.append(
            Open(
                key,
                binding.function,
                ("*/*",) * len(binding.output_names) if binding.output_names else None,
                (),
                binding.output_names,
                metadata or EMPTY,
                bound=binding.bound,
                terms=Terms.LOOSE,
                unwanted=binding.unwanted,
                protocol="action-engine",
            )
        )
        steps.append(Send(acceptance(action)))
        self._running[key] = Running(action.id, binding.outputs, readers)
        for reader in readers:
            self._readers[key, reader.index] = reader
            self._feed(reader, steps)

    # Inputs.

    def _feed(self, reader: Reader, steps: list[Step]) -> bool:
        """Feed the function the items that have come, up to the window; returns whether anything was fed."""
        node, place, before = reader.node, (reader.key, reader.index), reader.seq
        while not reader.is_ended:
            if node.has_ended_at(reader.seq):
                reader.is_ended = True
                steps.append(EndInput(reader.key, reader.index))
                break
            item = node.at(reader.seq)
            if item is None:
                break
            if not reader.credit:
                self.stalled.add(place)
                break
            try:
                message = message_of(item)
            except StatusError as error:
                reader.is_ended = True
                steps.append(Cancel(reader.key, error))
                break
            steps.append(Feed(reader.key, reader.index, message))
            reader.seq += 1
            reader.credit -= 1
            self._starving.discard(place)
        if reader.is_ended:
            self.stalled.discard(place)
            self._starving.discard(place)
        self._store.trim(node)
        return reader.is_ended or reader.seq > before

    def _wanted(self, event: Wants, steps: list[Step]) -> None:
        place = (event.id, event.index)
        reader = self._readers.get(place)
        if reader is None or reader.is_ended:
            return
        reader.credit = self._settings.window
        self.stalled.discard(place)
        if self._feed(reader, steps) or not event.waits:
            return
        if self._has_ended and not reader.node.is_made_here:
            reader.is_ended = True
            text = f"node {reader.node.id!a} is not complete, and the peer has half-closed"
            steps.append(Cancel(event.id, StatusError(Status.FAILED_PRECONDITION, f"Incomplete Input: {text}")))
        else:
            self._starving.add(place)

    # Events of actions.

    def deliver(self, event: Event) -> Iterable[Step]:
        """Translate an event of an invocation."""
        steps: list[Step] = []
        kind = type(event)
        if kind is Emitted:
            self._emitted(event, steps)  # type: ignore[arg-type]
        elif kind is Wants:
            self._wanted(event, steps)  # type: ignore[arg-type]
        elif kind is OutputEnded:
            self._output_ended(event, steps)  # type: ignore[arg-type]
        elif kind is Finished:
            self._finished(event, steps)  # type: ignore[arg-type]
        return self._settled(steps)

    def _emitted(self, event: Emitted, steps: list[Step]) -> None:
        running = self._running.get(event.id)
        size, most = len(event.message.payload), self._settings.item_bytes
        if size > most:
            steps.append(
                Cancel(event.id, LimitExceeded(f"an item has {size} bytes, which exceeds the limit of {most} bytes"))
            )
            return
        fragment = None if running is None else running.item(event.index, chunk_of(event.message))
        if fragment is not None:
            self._tell((fragment,), steps)

    def _output_ended(self, event: OutputEnded, steps: list[Step]) -> None:
        running = self._running.get(event.id)
        fragment = None if running is None else running.end(event.index)
        if fragment is not None:
            self._tell((fragment,), steps)

    def _finished(self, event: Finished, steps: list[Step]) -> None:
        running = self._running.pop(event.id, None)
        if running is None:
            return
        for reader in running.readers:
            place = (event.id, reader.index)
            del self._readers[place]
            self.stalled.discard(place)
            self._starving.discard(place)
        self._tell(running.ending(event.error), steps)
        self._store.release(running)
        if self._has_ended and not self._running:
            steps.append(Close())

    def _tell(self, fragments: tuple[Fragment, ...], steps: list[Step]) -> None:
        """Send fragments of outputs, and feed them to the actions of this session that read them."""
        steps.append(Send(encode(fragments)))
        for fragment in fragments:
            for reader in self._store.made_here(fragment):
                self._feed(reader, steps)

    def _settled(self, steps: list[Step]) -> list[Step]:
        """Update `is_full` and `hears_waits`, and return the steps."""
        high_bytes = self._settings.high_bytes
        waiting = {self._readers[place].node for place in self.stalled} if self.stalled else ()
        size = sum(node.size for node in waiting)
        self.is_full = not self._starving and size > (high_bytes // 2 if self.is_full else high_bytes)
        self.hears_waits = self._has_ended or self.is_full
        return steps

    def farewell(self, error: InvocationError) -> list[bytes]:
        """The last messages of a session that ends with an error: a status for each action, then the abort.

        A peer's code that waits for an action does not see an abort, so each action gets its status first.
        """
        if isinstance(error, Cancelled):
            return []
        endings = [encode(running.ending(error)) for running in self._running.values()]
        self._running.clear()
        return [*endings, encode((Fragment(ABORT, status_chunk(error)),))]

    def release(self) -> None:
        """Drop all nodes and actions when the session has ended."""
        self.is_full = False
        self._store.clear()
        self._running.clear()
        self._readers.clear()
        self._starving.clear()
        self.stalled.clear()
