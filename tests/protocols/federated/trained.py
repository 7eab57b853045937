"""A real device of secure aggregation at a coordinator in memory."""

from __future__ import annotations

from typing import Any

from invoker.protocols.federated.client.messages import SecAggTask, Turn
from invoker.protocols.federated.client.secagg import SecAggClient
from invoker.protocols.federated.messages import ReportIn, Secure
from tests.protocols.federated.house import Client


class Trained:
    """A device that takes part with a vector of its own, and leaves when it would say something."""

    def __init__(self, client: Client, values: Any, until: str = "") -> None:
        self.client, self.until = client, until
        terms = client.offer.secagg
        self.values = {"w": values}
        self.said: list[str] = []
        task = SecAggTask({"w": 2**20}, terms.expected, terms.threshold, terms.min_visible)
        self.machine = SecAggClient(task, self.values)
        self.heard = 0

    def turn(self, turn: Turn) -> None:
        while turn.job is not None:
            turn = turn.job()
        for message in turn.messages:
            kind = message.WhichOneof("message_content")
            if kind == self.until:
                self.client.leave()
                return
            self.said.append(kind)
            report = ReportIn(b"") if kind == "masked_input_response" else None
            self.client.house.coordinator.secure(self.client, message, report)

    def listen(self) -> bool:
        """Answer what the server has said; whether there was something."""
        told = [one.message for one in self.client.notices if isinstance(one, Secure)]
        news, self.heard = told[self.heard :], len(told)
        for message in news:
            self.turn(self.machine.receive(message))
        return bool(news)
