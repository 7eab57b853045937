"""`RunningAction`: an action from its acceptance to its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from invoker.core.steps import Open, Terms
from invoker.errors.wording import Place, quoted
from invoker.message import Headers
from invoker.protocols.evergreen.inputs import Input
from invoker.protocols.evergreen.nodes import Node
from invoker.protocols.evergreen.table import Binding
from invoker.protocols.evergreen.writers import Writer


class RunningAction:
    """One action, which is one invocation.

    Args:
        number: The ordinal of the action in the session, from 1.
        name: The name that the client gave.

    Attributes:
        key: The id of its invocation, in steps and events.
        where: A description of the action for error texts.
        open: The step that starts it; None for an action that the session itself performs.
        inputs: The inputs by index.
        writers: The writers by index of the output.
        status: The node of its output ``__status__``, if the client listed that.
        charged: How many of the session's held bytes its configurations count for.
        is_started: Whether its invocation was opened.
        is_failing: Whether its invocation was told to end with an error.
        is_cancelled: Whether the client cancelled it by the extension ``cancel``.
    """

    __slots__ = ("charged", "inputs", "is_cancelled", "is_failing", "is_started", "key", "name", "number", "open",
                 "status", "where", "writers")  # fmt: skip

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.key = f"a{number}"
        self.where = f"action {quoted(name)} #{number}"
        self.open: Open | None = None
        self.inputs: Sequence[Input] = ()
        self.writers: dict[int, Writer] = {}
        self.status: Node | None = None
        self.charged = 0
        self.is_started = self.is_failing = self.is_cancelled = False

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the outputs that the client listed, and of the status."""
        found = [writer.node for writer in self.writers.values()]
        return found if self.status is None else [*found, self.status]

    @property
    def names(self) -> dict[Place, str]:
        """The client's names of inputs and outputs, by place."""
        found = {Place("input", one.index): f"input {quoted(one.name)}" for one in self.inputs}
        found.update((Place("output", index), f"output {quoted(one.node.id)}") for index, one in self.writers.items())
        return found

    @property
    def is_awaited(self) -> bool:
        """Whether another action waits for an output of this one."""
        return any(node.waiters for node in self.nodes)

    @property
    def awaits(self) -> list[Input] | None:
        """The inputs that the function waits for, if nothing else can let it continue.

        None if it can continue without more input from the client.
        """
        waited = [one for one in self.inputs if one.is_waited_for and not one.is_ended]
        for one in waited:
            if one.is_stalled or one.cursor.asked is not None or one.awaited is None:
                return None
        return waited or None

    def unwant(self, index: int) -> None:
        """Record, before the invocation is opened, that an output has no reader."""
        assert self.open is not None
        self.open = msgspec.structs.replace(self.open, unwanted=(*self.open.unwanted, index))

    def close(self) -> None:
        """Stop the inputs of an action that has ended, and release its configurations."""
        self.open = None
        for one in self.inputs:
            one.close()


def open_step(
    key: str, binding: Binding, *, metadata: Headers, configs: tuple[Any, ...], accepts: dict[str, str]
) -> Open:
    """The step that starts the invocation of a bound action.

    Args:
        key: The key of the invocation.
        binding: The function, with the bound inputs and outputs.
        metadata: The metadata of the session.
        configs: The configurations for the function's context.
        accepts: Media ranges by the name of the output (E-124).
    """
    spec = binding.spec
    count = len(binding.outputs) if spec.open_outputs else len(spec.outputs)
    ranges = ("*/*",) * count
    if accepts:
        asked = {index: accepts.get(one.name, "") for index, one, _ in binding.outputs}
        ranges = tuple(asked.get(index) or "*/*" for index in range(count))
    return Open(
        key,
        spec.name,
        accepts=ranges,
        input_names=binding.bound,
        output_names=binding.output_names,
        metadata=metadata,
        bound=binding.bound,
        terms=Terms.LOOSE,
        unwanted=binding.unwanted,
        configs=configs,
        protocol="evergreen",
    )
