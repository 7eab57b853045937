"""`EvergreenSession`: one session with an Evergreen server, in which the client requests actions on nodes.

::

    async with EvergreenSession("127.0.0.1:8081") as session:
        answer = session.act("GENERATE", {"prompt": "Hello"})
        async for piece in answer:
            print(piece, end="")
        again = session.act("GENERATE", {"prompt": [answer.inputs["prompt"], answer.output, "Go on."]})
        print(await again.text())
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from google.protobuf.duration_pb2 import Duration

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs import Registry, builtin
from invoker.connect.failure import CallFailed
from invoker.connect.tls import Tls
from invoker.errors import Status
from invoker.message import EMPTY
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.drafts import Draft, packed
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.media import metadata_of
from invoker.protocols.evergreen.client.nodes import LeafNode, Node, TreeNode, new_id
from invoker.protocols.evergreen.client.outcome import STATUS_OUTPUT, Outcome
from invoker.protocols.evergreen.client.outputs import OutputNode
from invoker.protocols.evergreen.client.sessioncall import SessionCall, Settings
from invoker.protocols.evergreen.client.streams import Streams

LIST_ACTIONS = "__list_actions"

OUTPUT = "response"
"""The default name of an output; a function with one output accepts any name (E-085)."""


class EvergreenSession:
    """One session with one server, from ``async with`` to the end of the block.

    The end of the block half-closes the session, drops unread outputs, and waits until the server has ended the session
    with OK; an exception that ends the block cancels everything instead.

    Args:
        target: ``host:port``, or any name that gRPC understands.
        extensions: The extensions to ask for (E-118): drop, ttl, partial-failures, cancel, accept, discovery.
            `extensions` says which of them the server accepted.
        tls: The TLS settings of the connection; None: plain text.
        metadata: gRPC metadata of the session.
        registry: Codecs for values; None: the built-in ones.
        timeout_s: The session ends with DEADLINE_EXCEEDED after this many seconds; None: never.
        connect_timeout_s: How long to wait for a connection, and for the server's answer about extensions.
        held_bytes: When this many bytes are unread, the session fails with RESOURCE_EXHAUSTED. Before that, at 4 MiB,
            reading from the call pauses unless a reader waits for an item that has not come.

    All methods must be called on the same event loop.
    """

    def __init__(
        self,
        target: str,
        *,
        extensions: Iterable[str] = (),
        tls: Tls | None = None,
        metadata: Mapping[str, str | bytes] = EMPTY,
        registry: Registry | None = None,
        timeout_s: float | None = None,
        connect_timeout_s: float = 10.0,
        held_bytes: int = 256 << 20,
    ) -> None:
        self.target = target
        self._registry = builtin(max_containers=sys.maxsize) if registry is None else registry
        self._inbox = Inbox(target, held_bytes=held_bytes)
        self._call = SessionCall(
            self._inbox,
            Settings(
                target=target,
                extensions=tuple(extensions),
                tls=tls,
                metadata=metadata,
                timeout_s=timeout_s,
                connect_timeout_s=connect_timeout_s,
                held_bytes=held_bytes,
            ),
        )
        self._streams = Streams(self._inbox, self._input_failed)

    @property
    def extensions(self) -> frozenset[str]:
        """The requested extensions that the server accepted."""
        return self._call.extensions

    @property
    def is_open(self) -> bool:
        """Whether actions can be requested."""
        return self._call.is_open and not self._inbox.ended.is_set()

    async def wait(self) -> None:
        """Wait until the session has ended, with or without a failure.

        Raises:
            CallFailed: The session failed.
        """
        await self._inbox.ended.wait()
        self._raise()

    async def __aenter__(self) -> Self:
        await self._call.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.close()
        else:
            self._call.cancel()
            await self._release()

    async def close(self) -> None:
        """Half-close, wait for the server's status, and release everything, as the end of the block does.

        Raises:
            CallFailed: The session did not end with OK, and no other method has raised its error yet.
        """
        try:
            if not self._inbox.is_closing:
                self._inbox.close()
                await self._streams.finish()
                self._call.half_close()
                await self._inbox.ended.wait()
        except BaseException:
            self._call.cancel()
            raise
        finally:
            await self._release()
        if not self._inbox.is_told:
            self._raise()

    def cancel(self) -> None:
        """End the session at once; tasks that wait on it get `CallFailed` with CANCELLED. Idempotent."""
        self._call.cancel()

    def act(
        self,
        action: str,
        inputs: Mapping[str, object] = EMPTY,
        *,
        outputs: str | Sequence[str] = OUTPUT,
        configs: Iterable[object] = (),
        accept: Mapping[str, str] = EMPTY,
        target: str = "",
    ) -> Answer:
        """Request an action; the request is sent at once.

        Args:
            action: The name of the action.
            inputs: Values by name: ``str`` (text/plain), bytes (application/octet-stream), `Message`, `Ref`, nodes and
                answers of this session; other values are sent as JSON. A list or tuple is a sequence of such values,
                each a leaf; so ``[[1, 2]]`` is one leaf, which is a JSON list. An iterator, plain or async, is a
                sequence whose items are sent as they come.
            outputs: The names of the outputs to send; empty: the action runs for its side effects only.
            configs: Protobuf messages, or dicts (sent as ``google.protobuf.Struct``).
            accept: By the name of an output, the media types that it may have, the preferred one first (extension
                ``accept``).
            target: The id of the target that should run the action, if the server has several.

        Raises:
            TypeError: A value cannot be an input.
            ValueError: A node belongs to another session, or the extension for an option is missing.
            InvokerError: A value cannot be encoded.
            CallFailed: The session has ended.
        """
        self._check()
        if not isinstance(inputs, Mapping):
            raise TypeError(f"inputs are a mapping of names to values, not {type(inputs).__name__}: {{'prompt': ...}}")
        if accept and "accept" not in self.extensions:
            raise ValueError("`accept` needs the extension 'accept', which was not asked for or not accepted")
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        draft = Draft(self, self._registry)
        nodes = {name: draft.node(value) for name, value in inputs.items()}
        message = pb.Action(name=action, configs=packed((*configs, {"accept": dict(accept)}) if accept else configs))
        if target:
            message.target_spec.id = target
        return self._begin(message, nodes, names, draft)

    def put(self, value: object) -> Node:
        """Send a node that later actions can use; the kinds of values and the errors are those of `act`."""
        self._check()
        draft = Draft(self, self._registry)
        node = draft.node(value)
        self.send(*draft.frames)
        self._streams.start(draft.streams, (), Outcome(self._inbox))
        return node

    def node(self, media_type: str = "text/plain", headers: Mapping[str, str] = EMPTY) -> LeafNode:
        """Make a leaf, which is written piece by piece.

        Args:
            media_type: The media type of the whole leaf.
            headers: Any of role, original-file-name, capture-time, experimental.
        """
        return LeafNode(self, metadata_of(media_type, headers))

    def tree(self) -> TreeNode:
        """Make an interior node, to which children are added one by one."""
        return Draft(self, self._registry).tree()

    async def actions(self) -> list[dict[str, Any]]:
        """The server's actions: name, inputs, outputs and description of each action (extension ``discovery``)."""
        self._need("discovery")
        found: list[dict[str, Any]] = await self.act(LIST_ACTIONS, outputs="actions").items()
        return found

    def drop(self, node: Node) -> None:
        """Let the server drop a node (extension ``drop``), which can then not be used any more."""
        self._need("drop")
        self._command("DROP", "node", node.id)

    def set_ttl(self, node: Node, seconds: float) -> None:
        """Let the server drop a node, and all nodes below it, after this many seconds (extension ``ttl``)."""
        self._need("ttl")
        lifetime = Duration()
        lifetime.FromNanoseconds(round(seconds * 1e9))
        self._command("SET_TTL", "node", node.id, lifetime)

    def send(self, *frames: bytes) -> None:
        """Put serialised messages into the outbox; called by nodes."""
        self._check()
        for frame in frames:
            self._call.outbox.put(frame)

    async def room(self) -> None:
        """Wait until the outbox has room; called by nodes. Raises `CallFailed` if the session has ended."""
        if self._call.outbox.is_full:
            is_own = self._streams.is_own(asyncio.current_task())
            with contextlib.nullcontext() if is_own else self._inbox.writing():
                await self._call.outbox.room()
        self._inbox.check()

    def _begin(self, message: pb.Action, nodes: Mapping[str, Node], names: Sequence[str], draft: Draft) -> Answer:
        ids = {name: new_id() for name in names}
        # The listing has no status of its own: it may have one output only (E-123).
        is_told = "partial-failures" in self.extensions and STATUS_OUTPUT not in ids and message.name != LIST_ACTIONS
        outcome = Outcome(self._inbox, status_id := new_id() if is_told else "")
        message.inputs.extend(pb.NamedParameter(name=name, id=node.id) for name, node in nodes.items())
        message.outputs.extend(pb.NamedParameter(name=name, id=id_) for name, id_ in ids.items())
        if is_told:
            message.outputs.add(name=STATUS_OUTPUT, id=status_id)
        outputs = {
            name: OutputNode(self, id_, name, inbox=self._inbox, outcome=outcome, registry=self._registry)
            for name, id_ in ids.items()
        }
        # Actions are sent before their nodes, and parents before children, so that the server can start early.
        self._call.outbox.put(pb.SessionMessage(actions=(message,)).SerializeToString())
        self.send(*draft.frames)
        self._streams.start(draft.streams, tuple(ids.values()), outcome)
        return Answer(message.name, nodes, outputs, outcome, self._cancel_action)

    def _cancel_action(self, output: str) -> None:
        self._need("cancel")
        if not self._inbox.ended.is_set():
            self._command("CANCEL", "output", output)

    def _command(self, name: str, parameter: str, id_: str, *configs: object) -> None:
        self._check()
        action = pb.Action(name=name, inputs=(pb.NamedParameter(name=parameter, id=id_),), configs=packed(configs))
        self._call.outbox.put(pb.SessionMessage(actions=(action,)).SerializeToString())

    def _input_failed(self, error: BaseException, outputs: Sequence[str], outcome: Outcome) -> None:
        """Handle an error that an iterator raised.

        The node of the iterator will never end, so its action is cancelled; if that is not possible, the session fails.
        """
        failure = CallFailed(Status.CANCELLED, f"an input raised {type(error).__name__}: {error}")
        failure.__cause__ = error
        if outputs and "cancel" in self.extensions:
            self._cancel_action(outputs[0])
            outcome.fail(failure)
        else:
            self._call.fail(failure)

    def _need(self, extension: str) -> None:
        if extension not in self.extensions:
            raise RuntimeError(f"{self.target} has not accepted the extension {extension!r}, or was not asked to")

    def _check(self) -> None:
        if not self._call.is_open:
            raise RuntimeError("the session is not open; use it as `async with EvergreenSession(...) as session:`")
        self._inbox.check()

    def _raise(self) -> None:
        if (failure := self._inbox.failure()) is not None:
            raise failure

    async def _release(self) -> None:
        await self._streams.close()
        await self._call.close()
