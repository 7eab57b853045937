"""`Answer`: one action that was asked for, its inputs and its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.evergreen.client.nodes import Node
from invoker.protocols.evergreen.client.outcome import Outcome
from invoker.protocols.evergreen.client.outputs import Messages, OutputNode, Pieces

__all__ = ["Answer"]


class Answer:
    """What an action gives. With one output this reads it directly; with several, ``answer["name"]`` does.

    Attributes:
        action: Its name.
        inputs: The nodes that stand for the inputs, by name, to be used again.
        outputs: The outputs by name.
    """

    def __init__(
        self,
        action: str,
        inputs: Mapping[str, Node],
        outputs: Mapping[str, OutputNode],
        outcome: Outcome,
        cancel: Callable[[str], None],
    ) -> None:
        self.action = action
        self.inputs = inputs
        self.outputs = outputs
        self._outcome = outcome
        self._cancel = cancel

    @property
    def output(self) -> OutputNode:
        """The only output.

        Raises:
            ValueError: There is none, or more than one.
        """
        if len(self.outputs) != 1:
            names = ", ".join(self.outputs) or "none"
            raise ValueError(f"{self.action} was asked for the outputs {names}; name one, as in answer['name']")
        return next(iter(self.outputs.values()))

    def __getitem__(self, name: str) -> OutputNode:
        return self.outputs[name]

    def __aiter__(self) -> Pieces:
        return aiter(self.output)

    def messages(self) -> Messages:
        """As `OutputNode.messages` of the only output."""
        return self.output.messages()

    async def text(self) -> str:
        """As `OutputNode.text` of the only output."""
        return await self.output.text()

    async def items(self) -> list[Any]:
        """As `OutputNode.items` of the only output."""
        return await self.output.items()

    async def value(self) -> Any:
        """As `OutputNode.value` of the only output."""
        return await self.output.value()

    def discard(self) -> None:
        """Give up all outputs: nobody will read them."""
        for output in self.outputs.values():
            output.discard()

    def cancel(self) -> None:
        """Cancel this action alone (E-122); who reads it gets `CallFailed` with CANCELLED. The session goes on.

        Raises:
            RuntimeError: The server has not accepted the extension ``cancel``, or the action has no output by which it
                could be named.
        """
        named = next(iter(self.outputs.values()), None)
        if named is None:
            raise RuntimeError(
                f"{self.action} has no output, and it is by the id of an output that an action is cancelled"
            )
        self._cancel(named.id)
        self._outcome.fail(CallFailed(Status.CANCELLED, "the caller cancelled"))
        self.discard()

    async def done(self) -> None:
        """Wait for the status of the action, if the server sends one (extension ``partial-failures``).

        Raises:
            CallFailed: It failed.
        """
        await self._outcome.settled()
