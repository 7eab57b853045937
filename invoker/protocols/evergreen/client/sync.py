"""`SyncEvergreenSession`: sessions for code without an event loop, which run a loop in a thread of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from invoker.connect.feeds import pull
from invoker.connect.portal import Portal
from invoker.connect.sync import SyncClient, SyncIterator, SyncPart, blocking, giving, opening, soon
from invoker.message import Message
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.nodes import LeafNode, Node, TreeNode
from invoker.protocols.evergreen.client.outputs import OutputNode
from invoker.protocols.evergreen.client.session import EvergreenSession

T = TypeVar("T")


class _Part(SyncPart[T]):
    """A node of a session."""

    @property
    def node(self) -> T:
        """The wrapped node, which belongs to the event loop."""
        return self._source

    def _taken(self, argument: object) -> object:
        return _plain(argument)


class SyncOutput(_Part[OutputNode]):
    """One output, like `OutputNode`: iterate it for its pieces as they come; it can be read once."""

    text = blocking(OutputNode.text)
    items = blocking(OutputNode.items)
    value = blocking(OutputNode.value)
    __iter__ = giving(OutputNode.__aiter__, SyncIterator[Any])
    messages = giving(OutputNode.messages, SyncIterator[Message[Any]])
    discard = soon(OutputNode.discard)


class SyncAnswer(SyncPart[Answer]):
    """The outputs of an action, like `Answer`: its methods read the only output, ``answer["name"]`` one of several."""

    def __init__(self, portal: Portal, answer: Answer) -> None:
        super().__init__(portal, answer)
        self.inputs = answer.inputs
        self.outputs = {name: SyncOutput(portal, node) for name, node in answer.outputs.items()}

    @property
    def output(self) -> SyncOutput:
        """The output of an action that has only one."""
        return self.outputs[self._source.output.name]

    def __getitem__(self, name: str) -> SyncOutput:
        return self.outputs[name]

    __iter__ = giving(Answer.__aiter__, SyncIterator[Any])
    messages = giving(Answer.messages, SyncIterator[Message[Any]])
    text = blocking(Answer.text)
    items = blocking(Answer.items)
    value = blocking(Answer.value)
    discard = soon(Answer.discard)
    cancel = giving(Answer.cancel)
    done = blocking(Answer.done)


class SyncLeafNode(_Part[LeafNode]):
    """A leaf that is sent piece by piece, as it is written."""

    write = blocking(LeafNode.write)
    end = blocking(LeafNode.end)


class SyncTreeNode(_Part[TreeNode]):
    """An interior node; children are added one by one."""

    add = blocking(TreeNode.add)
    end = blocking(TreeNode.end)


class SyncEvergreenSession(SyncClient[EvergreenSession]):
    """One session with one server, within a ``with`` block; the arguments are those of `EvergreenSession`.

    Several threads may use it at once. Iterators among the inputs may block, since each is iterated in a daemon thread
    of its own.
    """

    @opening(EvergreenSession)
    def __init__(self, source: EvergreenSession) -> None:
        super().__init__(source)

    @property
    def extensions(self) -> frozenset[str]:
        """The requested extensions that the server accepted."""
        return self._source.extensions

    actions = blocking(EvergreenSession.actions)
    wait = blocking(EvergreenSession.wait)
    node = giving(EvergreenSession.node, SyncLeafNode)
    tree = giving(EvergreenSession.tree, SyncTreeNode)

    act = giving(EvergreenSession.act, SyncAnswer)
    put = giving(EvergreenSession.put)
    cancel = soon(EvergreenSession.cancel)
    _drop = giving(EvergreenSession.drop)
    _set_ttl = giving(EvergreenSession.set_ttl)

    def drop(self, node: object) -> None:
        """See `EvergreenSession.drop`."""
        self._drop(_node(node))

    def set_ttl(self, node: object, seconds: float) -> None:
        """See `EvergreenSession.set_ttl`."""
        self._set_ttl(_node(node), seconds)

    def _taken(self, argument: object) -> object:
        if isinstance(argument, Mapping):
            return {name: _plain(one) for name, one in argument.items()}
        return _plain(argument)


def _plain(value: object) -> object:
    """Convert a value for the async session: unwrap nodes, and wrap iterators so that they do not block the loop."""
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
        raise TypeError(f"{type(value).__name__} is not a node")
    return node
