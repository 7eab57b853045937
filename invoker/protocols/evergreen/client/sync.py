"""`SyncEvergreenSession`: sessions for code without an event loop; one runs in a thread of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

from invoker.codecs import Registry
from invoker.connect.feeds import pull
from invoker.connect.portal import Portal
from invoker.connect.tls import Tls
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.nodes import LeafNode, Node, TreeNode
from invoker.protocols.evergreen.client.outputs import OutputNode
from invoker.protocols.evergreen.client.session import OUTPUT, EvergreenSession

__all__ = ["SyncAnswer", "SyncEvergreenSession", "SyncLeafNode", "SyncOutput", "SyncTreeNode"]

T = TypeVar("T")


class SessionOptions(TypedDict, total=False):
    """The keywords of `EvergreenSession`, where they are described."""

    extensions: Iterable[str]
    tls: Tls | None
    metadata: Mapping[str, str | bytes]
    registry: Registry | None
    timeout_s: float | None
    connect_timeout_s: float
    held_bytes: int


class SyncEvergreenSession:
    """One session with one server, from ``with`` to the end of the block; the arguments of `EvergreenSession`.

    It may be used by several threads at once. Iterators among the inputs may block: each is iterated in a daemon thread
    of its own.
    """

    def __init__(self, target: str, **options: Unpack[SessionOptions]) -> None:
        self._session = EvergreenSession(target, **options)
        self._portal: Portal | None = None

    @property
    def extensions(self) -> frozenset[str]:
        """The extensions that were asked for and that the server accepted."""
        return self._session.extensions

    def __enter__(self) -> Self:
        self._portal = Portal()
        try:
            self._portal.run(self._session.__aenter__())
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._portal is not None:
                self._portal.run(self._session.__aexit__(kind, error, trace))
        finally:
            self._close()

    def act(
        self,
        action: str,
        inputs: Mapping[str, object] = EMPTY,
        *,
        outputs: str | Sequence[str] = OUTPUT,
        configs: Iterable[object] = (),
        accept: Mapping[str, str] = EMPTY,
        target: str = "",
    ) -> SyncAnswer:
        """As `EvergreenSession.act`; iterators may block, and nodes are those of this session."""
        portal = self._open()
        given = {name: _plain(value) for name, value in inputs.items()}

        async def act() -> Answer:
            return self._session.act(action, given, outputs=outputs, configs=configs, accept=accept, target=target)

        return SyncAnswer(portal, portal.run(act()))

    def put(self, value: object) -> Node:
        """As `EvergreenSession.put`."""
        return self._do(lambda: self._session.put(_plain(value)))

    def node(self, media_type: str = "text/plain", headers: Mapping[str, str] = EMPTY) -> SyncLeafNode:
        """As `EvergreenSession.node`."""
        return SyncLeafNode(self._open(), self._session.node(media_type, headers))

    def tree(self) -> SyncTreeNode:
        """As `EvergreenSession.tree`."""
        return SyncTreeNode(self._open(), self._session.tree())

    def actions(self) -> list[dict[str, Any]]:
        """As `EvergreenSession.actions`."""
        return self._open().run(self._session.actions())

    def drop(self, node: object) -> None:
        """As `EvergreenSession.drop`."""
        self._do(lambda: self._session.drop(_node(node)))

    def set_ttl(self, node: object, seconds: float) -> None:
        """As `EvergreenSession.set_ttl`."""
        self._do(lambda: self._session.set_ttl(_node(node), seconds))

    def cancel(self) -> None:
        """End the session at once, from any thread; threads that wait on it get `CallFailed` with CANCELLED."""
        self._open().soon(self._session.cancel)

    def _do(self, work: Callable[[], T]) -> T:
        async def run() -> T:
            return work()

        return self._open().run(run())

    def _open(self) -> Portal:
        if self._portal is None:
            raise RuntimeError("the session is not open; use it as `with SyncEvergreenSession(...) as session:`")
        return self._portal

    def _close(self) -> None:
        portal, self._portal = self._portal, None
        if portal is not None:
            portal.close()


class SyncOutput:
    """One output, as `OutputNode`: iterate it for its pieces as they come; it can be read once."""

    def __init__(self, portal: Portal, node: OutputNode) -> None:
        self._portal = portal
        self.node = node

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(lambda: aiter(self.node))

    def messages(self) -> Iterator[Message[Any]]:
        """The leaves, each when it is whole."""
        return self._iterate(self.node.messages)

    def text(self) -> str:
        """The text of all leaves, joined; raises as `OutputNode.text` does."""
        return self._portal.run(self.node.text())

    def items(self) -> list[Any]:
        """All leaves, decoded; waits until the output has ended."""
        return self._portal.run(self.node.items())

    def value(self) -> Any:
        """The only leaf, decoded; raises as `OutputNode.value` does."""
        return self._portal.run(self.node.value())

    def discard(self) -> None:
        """Give up reading the output."""
        self._portal.soon(self.node.discard)

    def _iterate(self, begin: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        async def start() -> AsyncIterator[T]:
            return begin()

        found = self._portal.run(start())
        end: Any = object()
        while (item := self._portal.run(_next(found, end))) is not end:
            yield item


class SyncAnswer:
    """What an action gives, as `Answer`: with one output this reads it, with several ``answer["name"]`` does."""

    def __init__(self, portal: Portal, answer: Answer) -> None:
        self._portal = portal
        self._answer = answer
        self.inputs = answer.inputs
        self.outputs = {name: SyncOutput(portal, node) for name, node in answer.outputs.items()}

    @property
    def output(self) -> SyncOutput:
        """The output of an action that has only one."""
        return self.outputs[self._answer.output.name]

    def __getitem__(self, name: str) -> SyncOutput:
        return self.outputs[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.output)

    def messages(self) -> Iterator[Message[Any]]:
        """The leaves of the only output, each when it is whole."""
        return self.output.messages()

    def text(self) -> str:
        """All text of the only output."""
        return self.output.text()

    def items(self) -> list[Any]:
        """All decoded leaves of the only output."""
        return self.output.items()

    def value(self) -> Any:
        """The only decoded leaf of the only output."""
        return self.output.value()

    def cancel(self) -> None:
        """Cancel this action alone, from any thread (extension ``cancel``)."""

        async def cancel() -> None:
            self._answer.cancel()

        self._portal.run(cancel())

    def done(self) -> None:
        """Wait for the status of the action (extension ``partial-failures``)."""
        self._portal.run(self._answer.done())


class SyncLeafNode:
    """A leaf that is sent as it is written."""

    def __init__(self, portal: Portal, node: LeafNode) -> None:
        self._portal = portal
        self.node = node

    def write(self, piece: str | bytes) -> None:
        """Send a piece; waits while too much is unsent."""
        self._portal.run(self.node.write(piece))

    def end(self) -> None:
        """End the leaf, which is whole."""
        self._portal.run(self.node.end())


class SyncTreeNode:
    """An interior node to which children are added as they come up."""

    def __init__(self, portal: Portal, node: TreeNode) -> None:
        self._portal = portal
        self.node = node

    def add(self, *items: object) -> None:
        """Add children; waits while too much is unsent."""
        self._portal.run(self.node.add(*map(_plain, items)))

    def end(self) -> None:
        """End the node: no more children will come."""
        self._portal.run(self.node.end())


def _plain(value: object) -> object:
    """Turn a value into one for the session on the loop: use its nodes, and iterators that do not block the loop."""
    if isinstance(value, SyncAnswer):
        value = value.output
    if isinstance(value, SyncOutput | SyncLeafNode | SyncTreeNode):
        return value.node
    if isinstance(value, Iterator):
        return pull(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _node(value: object) -> Node:
    node = _plain(value)
    if not isinstance(node, Node):
        raise TypeError(f"{type(value).__name__} is no node")
    return node


def _next(items: AsyncIterator[T], end: T) -> Coroutine[Any, Any, T]:
    async def step() -> T:
        return await anext(items, end)

    return step()
