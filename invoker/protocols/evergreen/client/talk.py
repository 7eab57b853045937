"""`Talk`: a conversation with one action; the input of each turn is the conversation so far and the new message.

Nothing is sent twice: of earlier turns only the ids of their nodes are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.nodes import Node
from invoker.protocols.evergreen.client.session import EvergreenSession

TEXT = "text/plain"


class Talk:
    """The turns of a conversation.

    Args:
        session: The session in which all turns are requested.
        action: The name of the action.
        input_: The name of the input that takes the conversation.
        output: The name of the output that is the answer.
        config: The configuration that is sent with each turn.
        system: The system message, sent before the first turn.
    """

    def __init__(
        self,
        session: EvergreenSession,
        action: str,
        *,
        input_: str = "prompt",
        output: str = "response",
        config: Mapping[str, Any] = EMPTY,
        system: str = "",
    ) -> None:
        self._session = session
        self._action = action
        self._input = input_
        self._output = output
        self._configs = (config,) if config else ()
        self._said: list[Node] = []
        if system:
            self._said.append(session.put(Message(system, {"role": "system"}, TEXT)))

    def attach(self, message: Message[Any]) -> None:
        """Add a message to the next turn, and to all turns after it."""
        self._said.append(self._session.put(message))

    def say(self, text: str) -> Answer:
        """Request the answer to the next message.

        Raises:
            CallFailed: The session has ended.
        """
        asked = self._session.put(Message(text, {"role": "user"}, TEXT))
        prompt = [*self._said, asked]
        answer = self._session.act(self._action, {self._input: prompt}, outputs=self._output, configs=self._configs)
        self._said += (asked, answer.output)
        return answer

    def forget(self, answer: Answer) -> None:
        """Remove the last turn from the conversation after it was cancelled or failed."""
        if self._said[-1:] == [answer.output]:
            del self._said[-2:]

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes of all messages so far, in order."""
        return tuple(self._said)
