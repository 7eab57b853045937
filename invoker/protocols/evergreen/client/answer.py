"""`Answer`: an action that was requested, with its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from invoker.connect.failure import CallFailed
from invoker.protocols.evergreen.client.nodes import Node
from invoker.protocols.evergreen.client.outcome import Outcome
from invoker.protocols.evergreen.client.outputs import Messages, OutputNode, Pieces


class Answer:
    """The outputs of an action. The methods read the only output; of several outputs, ``answer["name"]`` is one.

    Attributes:
        action: The name of the action.
        inputs: The nodes of the inputs, by name; later actions can use them again.
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
            ValueError: There is no output, or more than one.
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
        """See `OutputNode.messages`, for the only output."""
        return self.output.messages()

    async def text(self) -> str:
        """See `OutputNode.text`, for the only output."""
        return await self.output.text()

    async def items(self) -> list[Any]:
        """See `OutputNode.items`, for the only output."""
        return await self.output.items()

    async def value(self) -> Any:
        """See `OutputNode.value`, for the only output."""
        return await self.output.value()

    def discard(self) -> None:
        """Discard all outputs unread."""
        for output in self.outputs.values():
            output.discard()

    def cancel(self) -> None:
        """Cancel only this action (E-122); readers of its outputs get `CallFailed` with CANCELLED.

        Raises:
            RuntimeError: The server has not accepted the extension ``cancel``, or the action has no output, whose id
                the request needs.
        """
        named = next(iter(self.outputs.values()), None)
        if named is None:
            raise RuntimeError(
                f"{self.action} has no output, and an action can only be cancelled by the id of an output"
            )
        self._cancel(named.id)
        self._outcome.fail(CallFailed.by_caller())
        self.discard()

    async def done(self) -> None:
        """Wait for the status of the action, if the server sends one (extension ``partial-failures``).

        Raises:
            CallFailed: The action failed.
        """
        await self._outcome.settled()
