"""`SyncEvergreenSession`: sessions for code without an event loop; one runs in a thread of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from invoker.connect.feeds import pull
from invoker.connect.portal import Portal
from invoker.connect.sync import SyncClient, SyncPart, blocking, giving, opening
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.nodes import LeafNode, Node, TreeNode
from invoker.protocols.evergreen.client.outputs import OutputNode
from invoker.protocols.evergreen.client.session import OUTPUT, EvergreenSession

__all__ = ["SyncAnswer", "SyncEvergreenSession", "SyncLeafNode", "SyncOutput", "SyncTreeNode"]

T = TypeVar("T")


class _Part(SyncPart[T]):
    """A node of a session."""

    @property
    def node(self) -> T:
        """The node on the loop."""
        return self._source


class SyncOutput(_Part[OutputNode]):
    """One output, as `OutputNode`: iterate it for its pieces as they come; it can be read once."""

    text = blocking(OutputNode.text)
    items = blocking(OutputNode.items)
    value = blocking(OutputNode.value)

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(lambda: aiter(self.node))

    def messages(self) -> Iterator[Message[Any]]:
        """The leaves, each when it is whole."""
        return self._iterate(self.node.messages)

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


class SyncLeafNode(_Part[LeafNode]):
    """A leaf that is sent as it is written."""

    write = blocking(LeafNode.write)
    end = blocking(LeafNode.end)


class SyncTreeNode(_Part[TreeNode]):
    """An interior node to which children are added as they come up."""

    end = blocking(TreeNode.end)

    def add(self, *items: object) -> None:
        """Add children; waits while too much is unsent."""
        self._portal.run(self.node.add(*map(_plain, items)))


class SyncEvergreenSession(SyncClient[EvergreenSession]):
    """One session with one server, from ``with`` to the end of the block; the arguments of `EvergreenSession`.

    It may be used by several threads at once. Iterators among the inputs may block: each is iterated in a daemon thread
    of its own.
    """

    @opening(EvergreenSession)
    def __init__(self) -> None: ...

    @property
    def extensions(self) -> frozenset[str]:
        """The extensions that were asked for and that the server accepted."""
        return self._source.extensions

    actions = blocking(EvergreenSession.actions)
    wait = blocking(EvergreenSession.wait)
    node = giving(EvergreenSession.node, SyncLeafNode)
    tree = giving(EvergreenSession.tree, SyncTreeNode)

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
        portal = self._portal
        given = {name: _plain(value) for name, value in inputs.items()}

        async def act() -> Answer:
            return self._source.act(action, given, outputs=outputs, configs=configs, accept=accept, target=target)

        return SyncAnswer(portal, portal.run(act()))

    def put(self, value: object) -> Node:
        """As `EvergreenSession.put`."""
        return self._do(lambda: self._source.put(_plain(value)))

    def drop(self, node: object) -> None:
        """As `EvergreenSession.drop`."""
        self._do(lambda: self._source.drop(_node(node)))

    def set_ttl(self, node: object, seconds: float) -> None:
        """As `EvergreenSession.set_ttl`."""
        self._do(lambda: self._source.set_ttl(_node(node), seconds))

    def cancel(self) -> None:
        """End the session at once, from any thread; threads that wait on it get `CallFailed` with CANCELLED."""
        self._portal.soon(self._source.cancel)

    def _do(self, work: Callable[[], T]) -> T:
        async def run() -> T:
            return work()

        return self._portal.run(run())


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
